package attention

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

// headGate is a gate on the result of an op on heads: each element is multiplied
// by the sigmoid of its own element of x, which has `parts` runs a head, the gate
// being one of them. x is nil where there is no gate.
type headGate struct {
	x           *ir.Value
	parts, part int
	half        bool // the gated result is rounded to f16
}

// onlyGated returns the gate of op in a group [head_slice] op [gate] [half], and the result that others read; nil if
// the group is none.
func onlyGated(s *site.Site, op *ir.Op) (headGate, *ir.Value) {
	return gateOf(s, op, slices.DeleteFunc(slices.Clone(s.Group.Ops), func(o *ir.Op) bool { return o == op }))
}

// gateOf returns the gate of op's result that ops are, and what becomes of the result,
// which is all that others read of the group; nil if ops are something else.
func gateOf(s *site.Site, op *ir.Op, ops []*ir.Op) (headGate, *ir.Value) {
	found := map[string]*ir.Op{}
	for _, o := range ops {
		found[o.Kind.Name] = o
	}
	gate, cut, half := found["gate"], found["head_slice"], found["half"]
	g, result, used := headGate{}, op.Result, 0
	if gate != nil && gate.Args[0] == result {
		g, result, used = headGate{x: gate.Args[1], parts: 1}, gate.Result, 1
		if cut != nil && cut.Result == g.x && cut.Attrs.Int("head_dim") == op.Attrs.Int("head_dim") {
			g, used = headGate{x: cut.Args[0], parts: cut.Attrs.Int("parts"), part: cut.Attrs.Int("part")}, 2
		}
		if slices.Contains(s.Group.Ops, g.x.Def) {
			return headGate{}, nil
		}
	}
	if half != nil && half.Args[0] == result {
		g.half, result, used = true, half.Result, used+1
	}
	if len(ops) != used || len(s.Outputs) != 1 || s.Outputs[0] != result {
		return headGate{}, nil
	}
	return g, result
}

// key tells kernels with a gate from those without.
func (g headGate) key() string {
	key := ""
	if g.x != nil {
		key = " gate"
	}
	if g.half {
		key += " half"
	}
	return key
}

// gateArgs is a headGate in a kernel.
type gateArgs struct {
	x           *kernel.Buffer // nil without gate
	parts, part kernel.Value
}

func (g headGate) declare(s *site.Signature) gateArgs {
	if g.x == nil {
		return gateArgs{}
	}
	return gateArgs{s.Read("gate", g.x), s.U32("gate_parts", g.parts, 1, "runs of a head in the gate's operand"), s.U32("gate_part", g.part, 0, "which of them is the gate")}
}

// load returns a function that gates access i, of n, of a head; the head is
// counted through all rows. It loads the gate's operands at once.
func (g gateArgs) load(b *kernel.Builder, t kernel.Type, head, i, n kernel.Operand) func(v kernel.Value) kernel.Value {
	if g.x == nil {
		return func(v kernel.Value) kernel.Value { return v }
	}
	x := g.access(b, t, head, i, n)
	return func(v kernel.Value) kernel.Value { return gatedBy(b, v, x) }
}

// access loads access i of the gate of a head.
func (g gateArgs) access(b *kernel.Builder, t kernel.Type, head, i, n kernel.Operand) kernel.Value {
	run := b.Add(b.Mul(g.parts, head), g.part)
	return g.x.Load(t, b.Add(b.Mul(run, n), i))
}

func gatedBy(b *kernel.Builder, v, gate kernel.Value) kernel.Value {
	return b.Mul(v, lane.EachElement(b, gate, lane.Sigmoid))
}
