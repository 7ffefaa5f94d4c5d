package codegen

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// roundInputs rounds what projections read to f16 where the kernels that the target
// has for them multiply f16. That is done once for all who read a value, behind the
// norm or the projections that make it if nobody else reads it. Else a norm is
// computed a second time, as that needs no step of its own; other values are rounded
// by themselves.
//
// Where kernels multiply bytes, x is rounded to fixed point: of 12 bits for few rows, of 8
// for many, unless the target has matrices. Each group that reads it does so itself.
func roundInputs(p *ir.Program, t *target.Target) error {
	if err := fixInputs(p, t); err != nil {
		return err
	}
	if t.Matrix == (target.MatrixShape{}) {
		return nil
	}
	for _, f := range p.Funcs {
		r := rounding{f: f, b: ir.NewBuilder(f), halves: map[*ir.Value]*ir.Op{}, rounds: map[*ir.Group]bool{}}
		uses := f.Uses()
		for _, g := range f.Groups {
			r.rounds[g] = slices.ContainsFunc(g.Ops, func(op *ir.Op) bool { return op.Kind.Name == "attention_merge" })
			s := &kernels.Site{Program: p, Func: f, Group: g, Outputs: g.Outputs(uses), Target: t}
			if x := kernels.HalfInput(s); x != nil {
				if err := r.read(g, x); err != nil {
					return err
				}
			}
		}
		r.place()
	}
	return nil
}

// fixInputs rounds what projections read to fixed point.
func fixInputs(p *ir.Program, t *target.Target) error {
	for _, f := range p.Funcs {
		b, uses := ir.NewBuilder(f), f.Uses()
		for _, g := range f.Groups {
			s := &kernels.Site{Program: p, Func: f, Group: g, Outputs: g.Outputs(uses), Target: t}
			kind, readers := "fixed12", kernels.FixedReaders(s)
			if len(readers) == 0 {
				kind, readers = "fixed8", kernels.ByteReaders(s)
			}
			if len(readers) == 0 {
				continue
			}
			fixed, err := b.Make(kind, nil, readers[0].Args[0])
			if err != nil {
				return err
			}
			for _, op := range readers {
				op.Args[0] = fixed.Result
			}
			g.Ops = slices.Insert(g.Ops, slices.Index(g.Ops, readers[0]), fixed)
		}
	}
	return nil
}

// rounding is the work of roundInputs on one function.
type rounding struct {
	f      *ir.Func
	b      *ir.Builder
	halves map[*ir.Value]*ir.Op // by what they round
	rounds map[*ir.Group]bool   // groups that can round their own result, as all with a rotation can
}

// roundedReaders are the ops whose first operand may be f16.
var roundedReaders = []string{"linear", "expert_linear", "attention", "attention_split"}

// read makes the projections or the attention of g read x as f16.
func (r *rounding) read(g *ir.Group, x *ir.Value) error {
	half := r.halves[x]
	if half == nil {
		var err error
		if half, err = r.b.Make("half", nil, x); err != nil {
			return err
		}
		r.halves[x] = half
	}
	for _, op := range g.Ops {
		if op.Args[0] == x && slices.Contains(roundedReaders, op.Kind.Name) {
			op.Args[0] = half.Result
		}
	}
	r.rounds[g] = true
	return nil
}

// place puts the ops that round behind those that make what they round.
func (r *rounding) place() {
	uses := r.f.Uses()
	for i := 0; i < len(r.f.Groups); i++ {
		g := r.f.Groups[i]
		for _, op := range g.Ops {
			half := r.halves[op.Result]
			if op.Result == nil || half == nil {
				continue
			}
			norm := len(g.Ops) == 1 && op.Kind.Name == "rmsnorm"
			gated := len(g.Ops) == 1 && op.Kind.Name == "gated_rmsnorm"
			unread := len(uses[op.Result]) == 0 && op.Result.Class == ir.Arena
			if norm || unread && (op.Kind.Name == "rope" || (gated || r.rounds[g]) && op == g.Ops[len(g.Ops)-1]) {
				g.Ops = append(g.Ops, half)
				break
			}
			r.f.Groups = slices.Insert(r.f.Groups, i+1, &ir.Group{Name: g.Name + ".half", Ops: []*ir.Op{half}})
		}
	}
}
