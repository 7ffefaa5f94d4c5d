package rowwise

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

// headPart is how an op on parts of heads makes access i of a row of its result. All widths are counted in accesses.
type headPart struct {
	consts []headWidth
	load   func(b *kernel.Builder, args []*kernel.Buffer, t kernel.Type, width func(name string) kernel.Value, row, i kernel.Value) kernel.Value
}

// headWidth is a constant: elements, a multiple of those of an access.
type headWidth struct {
	name  string
	value int
	unit  string
}

// headParts has the ops that take the heads of a row apart, or put them together, and one that goes by slots of
// experts.
var headParts = map[string]func(op *ir.Op) headPart{
	"head_cut": func(op *ir.Op) headPart {
		return headPart{
			consts: []headWidth{{"stride", op.Attrs.Int("stride"), "elements of a head of the operand"}, {"first", op.Attrs.Int("first"), "its first element that counts"},
				{"part", op.Attrs.Int("width"), "elements of a head of the result"}},
			load: func(b *kernel.Builder, args []*kernel.Buffer, t kernel.Type, width func(name string) kernel.Value, row, i kernel.Value) kernel.Value {
				head := b.Add(b.Mul(row, b.Div(width("row"), width("part"))), b.Div(i, width("part")))
				return args[0].Load(t, b.Add(b.Mul(head, width("stride")), width("first"), b.Mod(i, width("part"))))
			},
		}
	},
	"head_join": func(op *ir.Op) headPart {
		heads := op.Attrs.Int("heads")
		return headPart{
			consts: []headWidth{{"first", int(op.Args[0].Type.Last()) / heads, "elements of a head of the first operand"},
				{"second", int(op.Args[1].Type.Last()) / heads, "elements of a head of the second operand"}},
			load: func(b *kernel.Builder, args []*kernel.Buffer, t kernel.Type, width func(name string) kernel.Value, row, i kernel.Value) kernel.Value {
				n, m := width("first"), width("second")
				both := b.Add(n, m)
				head, at := b.Add(b.Mul(row, b.Div(width("row"), both)), b.Div(i, both)), b.Mod(i, both)
				x := b.Var(t, args[0].Load(t, b.Add(b.Mul(head, n), b.Min(at, b.Sub(n, 1)))))
				b.If(b.Ge(at, n), func() { x.Set(args[1].Load(t, b.Add(b.Mul(head, m), b.Sub(at, n)))) })
				return x.Get()
			},
		}
	},
	"expert_scale": func(op *ir.Op) headPart {
		slots := int(op.Args[2].Type.Last())
		return headPart{
			consts: []headWidth{{"part", int(op.Result.Type.Last()) / slots, "elements of a slot"}},
			load: func(b *kernel.Builder, args []*kernel.Buffer, t kernel.Type, width func(name string) kernel.Value, row, i kernel.Value) kernel.Value {
				slot := b.Add(b.Mul(row, b.Div(width("row"), width("part"))), b.Div(i, width("part")))
				factor := args[1].Load(kernel.F32, args[2].Load(kernel.U32, slot))
				x := args[0].Load(t, b.Add(b.Mul(row, width("row")), i))
				return b.Mul(x, lane.Splat(b, factor, t.Lanes()))
			},
		}
	},
}

// headPartCandidates copy an access a lane.
func headPartCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	name := op.Kind.Name
	e, ok := elementsOf(s, op)
	if !ok {
		return nil
	}
	k := headParts[name](e.op)
	for _, c := range k.consts {
		for c.value%e.Vec != 0 {
			e.Vec /= 2
		}
	}
	return e.candidate(name, fmt.Sprintf("%s v=%d", name, e.Vec), func(s *site.Signature) func(b *kernel.Builder) {
		extent, args, widths := e.rows.Declare(s), s.ReadArgs(e.op), map[string]kernel.Value{}
		for _, c := range k.consts {
			widths[c.name] = s.U32(c.name, c.value, 64, c.unit)
		}
		y, accesses := s.Write("y", e.op.Result), e.Declare(s)
		return func(b *kernel.Builder) {
			bound, row := extent.Load(b), b.WorkgroupID(1)
			for _, c := range k.consts {
				widths[c.name] = b.Div(widths[c.name], e.Vec)
			}
			accesses.Each(b, func(i, n kernel.Value) {
				widths["row"] = n
				b.If(b.Lt(row, bound), func() {
					y.Store(b.Add(b.Mul(row, n), i), k.load(b, args, kernel.F32.Vec(e.Vec), func(name string) kernel.Value { return widths[name] }, row, i))
				})
			})
		}
	})
}

// headIDCandidates number the heads of each row.
func headIDCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	e, ok := elementsOf(s, op)
	if !ok {
		return nil
	}
	e.Vec = 1
	return e.candidate("head_ids", "head_ids", func(s *site.Signature) func(b *kernel.Builder) {
		extent, y, accesses := e.rows.Declare(s), s.Write("y", e.op.Result), e.Declare(s)
		return func(b *kernel.Builder) {
			bound, row := extent.Load(b), b.WorkgroupID(1)
			accesses.Each(b, func(i, n kernel.Value) {
				b.If(b.Lt(row, bound), func() { y.Store(b.Add(b.Mul(row, n), i), i) })
			})
		}
	})
}
