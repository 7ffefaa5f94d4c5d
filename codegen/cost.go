package codegen

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// cost counts the bytes and floating-point operations of a group at full rows
// behind an empty cache, and what each cached position adds.
func cost(p *ir.Program, t *target.Target, f *ir.Func, g *ir.Group, outputs []*ir.Value) (plans.Cost, error) {
	k := &costs{p: p, t: t, f: f, g: g}
	for _, v := range g.Inputs() {
		if err := k.input(v); err != nil {
			return k.c, err
		}
	}
	for _, v := range outputs {
		n, err := v.Type.Bytes(f.Rows, p.Ctx)
		if err != nil {
			return k.c, err
		}
		k.c.WriteBytes += n
	}
	for _, v := range g.Writes() {
		switch v.Class {
		case ir.KV:
			k.c.WriteBytes += int64(f.Rows) * rowBytes(v.Type)
		case ir.State:
			n, err := k.stateBytes(v)
			if err != nil {
				return k.c, err
			}
			k.c.WriteBytes += k.written(v, n)
		}
	}
	size := ir.StepSize{Rows: f.Rows, Sequences: int(k.sequences())}
	for _, op := range g.Ops {
		n, perPos := op.Kind.Flops(op, size)
		k.c.FLOPs += n
		k.c.FLOPsPerPos += perPos
	}
	return k.c, nil
}

// costs adds up the cost of one group.
type costs struct {
	p *ir.Program
	t *target.Target
	f *ir.Func
	g *ir.Group
	c plans.Cost
}

// input adds what the group reads of v.
func (k *costs) input(v *ir.Value) error {
	var n int64
	var err error
	switch v.Class {
	case ir.Weight:
		n, err = k.weightBytes(v)
	case ir.Table:
		n = int64(k.f.Rows) * rowBytes(v.Type)
	case ir.KV:
		if k.reads(v) {
			n = int64(k.f.Rows) * rowBytes(v.Type)
			if w := k.window(v); w > 0 { // as if it were full
				n += k.sequences() * int64(min(w, k.p.Ctx)) * rowBytes(v.Type)
			} else {
				k.c.BytesPerPos += k.sequences() * rowBytes(v.Type)
			}
		}
	case ir.State:
		if k.reads(v) {
			n, err = k.stateBytes(v)
		}
	default:
		if slices.ContainsFunc(k.g.Ops, func(op *ir.Op) bool { return decidesBy(op, v) }) {
			return nil
		}
		n, err = v.Type.Bytes(k.f.Rows, k.p.Ctx)
		if !slices.ContainsFunc(k.g.Ops, func(op *ir.Op) bool { return !takesRows(op) && slices.Contains(op.Args, v) }) {
			n = n / int64(k.f.Rows) * int64(k.f.Heads())
		}
	}
	k.c.ReadBytes += n
	return err
}

// takesRows reports whether op takes from its first operand only the rows that get logits.
func takesRows(op *ir.Op) bool { return op.Kind.Name == "last_row" || op.Kind.Name == "take_rows" }

// rowsOf is how many rows of a step of f the group g computes, at most.
func rowsOf(f *ir.Func, g *ir.Group) int {
	if f.Part > 0 && !slices.ContainsFunc(g.Ops, func(op *ir.Op) bool { return op.Result == nil || op.Result.Type.Shape[0] == ir.T }) {
		return f.Heads()
	}
	return f.Rows
}

// weightBytes is the number of bytes of a weight that the group reads: all of it, except rows of
// an embedding and experts of a mixture that no row chooses.
func (k *costs) weightBytes(v *ir.Value) (int64, error) {
	w, err := weight.LayoutOf(v)
	if err != nil {
		return 0, err
	}
	if k.g.Ops[0].Kind.Name == "embed" {
		return w.Bytes / w.Rows * int64(k.f.Rows), nil
	}
	n, sliced := int64(0), false
	for _, op := range k.g.Ops {
		if op.Kind.Name == "expert_linear" && op.Args[1] == v {
			experts, rows := int64(v.Type.Shape[0]), int64(v.Type.Shape[1])
			slots := int64(op.Args[2].Type.Shape[1])
			n += w.Bytes / experts * k.touched(experts, slots) / rows * int64(op.Attrs.Int("rows"))
			sliced = true
		}
	}
	if sliced {
		return n, nil
	}
	return w.Bytes, nil
}

// touched is the expected number of experts that at least one row chooses, if rows choose
// slots of them at random: each row misses an expert with probability
// 1 - slots/experts.
func (k *costs) touched(experts, slots int64) int64 {
	missed, pass := 1.0, float64(experts-slots)/float64(experts)
	for range k.f.Rows {
		missed *= pass
	}
	// The conversion keeps processors from rounding product and sum at once.
	return max(slots, int64(float64((1-missed)*float64(experts))+0.5))
}

// reads reports whether an op of the group reads the cache or state v.
func (k *costs) reads(v *ir.Value) bool {
	return slices.ContainsFunc(k.g.Ops, func(op *ir.Op) bool { _, reads := op.Sees(v); return reads })
}

// window is how many positions of the cache v a row reads at most, 0 if there is no bound.
func (k *costs) window(v *ir.Value) int {
	for _, op := range k.g.Ops {
		if w, _ := op.Sees(v); w > 0 {
			return w
		}
	}
	return 0
}

// sequences is the largest number of sequence slots to which the rows of a step belong, if each has rows of its own:
// the cost of a prompt's step is that of one prompt.
func (k *costs) sequences() int64 {
	if k.p.Mixes(k.f) && k.f.Part == 0 {
		return int64(min(k.f.Rows, k.p.Slots))
	}
	return 1
}

// stateBytes is the size of v for the slots of a step.
func (k *costs) stateBytes(v *ir.Value) (int64, error) {
	n, err := v.Type.Bytes(k.f.Rows, k.p.Ctx)
	return n / int64(v.Type.Shape[0]) * k.sequences(), err
}

// written is what a step writes of the n bytes of states v that it has: of those that the group defers a share, and in
// the other steps three rows of the log of each head.
func (k *costs) written(v *ir.Value, n int64) int64 {
	for _, op := range k.g.Ops {
		if every := int64(op.Attrs.Int("defer")); every > 0 && op.Args[5] == v {
			return n/every + n/int64(v.Type.Shape[2])*3*(every-1)/every
		}
	}
	return n
}

// rowBytes is the size of a row of t.
func rowBytes(t ir.Type) int64 { return t.DType.Bytes(int64(t.Last())) }
