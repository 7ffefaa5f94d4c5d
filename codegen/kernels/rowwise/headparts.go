package rowwise

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

// headPart is how an op on parts of heads makes access i of a row of its result. All widths are counted in accesses.
type headPart struct {
	consts []ir.Const // widths in elements, multiples of those of an access
	load   func(b *kernel.Builder, args []*kernel.Buffer, t kernel.Type, width func(name string) kernel.Value, row, i kernel.Value) kernel.Value
}

// headParts has the ops that take the heads of a row apart, or put them together.
var headParts = map[string]func(op *ir.Op) headPart{
	"head_cut": func(op *ir.Op) headPart {
		return headPart{
			consts: []ir.Const{attrConst(op, "stride"), attrConst(op, "first"), attrConst(op, "width")},
			load: func(b *kernel.Builder, args []*kernel.Buffer, t kernel.Type, width func(name string) kernel.Value, row, i kernel.Value) kernel.Value {
				head := b.Add(b.Mul(row, b.Div(width("row"), width("part"))), b.Div(i, width("part")))
				return args[0].Load(t, b.Add(b.Mul(head, width("stride")), width("first"), b.Mod(i, width("part"))))
			},
		}
	},
	"head_join": func(op *ir.Op) headPart {
		heads := op.Attrs.Int("heads")
		return headPart{
			consts: []ir.Const{{Name: "first", Value: uint32(int(op.Args[0].Type.Last()) / heads)}, {Name: "second", Value: uint32(int(op.Args[1].Type.Last()) / heads)}},
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
}

// attrConst is an attribute as a constant; the width of a result is that of a part of a row.
func attrConst(op *ir.Op, name string) ir.Const {
	c := ir.Const{Name: name, Value: uint32(op.Attrs.Int(name))}
	if name == "width" {
		c.Name = "part"
	}
	return c
}

// headPartCandidates copy an access a lane.
func headPartCandidates(s *site.Site) []site.Candidate {
	if len(s.Group.Ops) != 1 || headParts[s.Group.Ops[0].Kind.Name] == nil {
		return nil
	}
	name := s.Group.Ops[0].Kind.Name
	op := site.Only(s, name)
	if op == nil {
		return nil
	}
	rows, ok := site.ExtentOf(s, op.Result)
	if !ok {
		return nil
	}
	k, a := headParts[name](op), site.AccessesOf(int(op.Result.Type.Last()), s.Target)
	for _, c := range k.consts {
		for int(c.Value)%a.Vec != 0 {
			a.Vec /= 2
		}
	}
	operands := rows.Operands()
	for i, v := range op.Args {
		operands = append(operands, site.Operand{Name: op.Kind.Params[i], Value: v, Access: kernel.Read})
	}
	return []site.Candidate{{
		Kernel: fmt.Sprintf("elementwise %s v=%d%s", name, a.Vec, rows.Key()),
		Build: func() (*kernel.Func, error) {
			return kernel.Build(name, func(b *kernel.Builder) {
				bound, row := rows.Bound(b), b.WorkgroupID(1)
				var args []*kernel.Buffer
				for _, param := range op.Kind.Params {
					args = append(args, b.Arg(param, kernel.Read))
				}
				widths := map[string]kernel.Value{}
				for _, c := range k.consts {
					widths[c.Name] = b.Div(b.SpecU32(c.Name, 64), a.Vec)
				}
				y := b.Arg("y", kernel.Write)
				a.Run(b, func(i, n kernel.Value) {
					widths["row"] = n
					b.If(b.Lt(row, bound), func() {
						y.Store(b.Add(b.Mul(row, n), i), k.load(b, args, kernel.F32.Vec(a.Vec), func(name string) kernel.Value { return widths[name] }, row, i))
					})
				})
			})
		},
		Consts:   append(append(rows.Consts(), k.consts...), a.Consts()...),
		Grid:     a.Grid(rows.Max),
		Operands: append(operands, site.Operand{Name: "y", Value: op.Result, Access: kernel.Write}),
		Cover:    a.Cover(rows.Max),
	}}
}

// headIDCandidates number the heads of each row.
func headIDCandidates(s *site.Site) []site.Candidate {
	op := site.Only(s, "head_ids")
	if op == nil {
		return nil
	}
	rows, ok := site.ExtentOf(s, op.Result)
	if !ok {
		return nil
	}
	a := site.AccessesOf(int(op.Result.Type.Last()), s.Target)
	a.Vec = 1
	return []site.Candidate{{
		Kernel: "elementwise head_ids" + rows.Key(),
		Build: func() (*kernel.Func, error) {
			return kernel.Build("head_ids", func(b *kernel.Builder) {
				bound, y, row := rows.Bound(b), b.Arg("y", kernel.Write), b.WorkgroupID(1)
				a.Run(b, func(i, n kernel.Value) {
					b.If(b.Lt(row, bound), func() { y.Store(b.Add(b.Mul(row, n), i), i) })
				})
			})
		},
		Consts:   append(rows.Consts(), a.Consts()...),
		Grid:     a.Grid(rows.Max),
		Operands: append(rows.Operands(), site.Operand{Name: "y", Value: op.Result, Access: kernel.Write}),
		Cover:    a.Cover(rows.Max),
	}}
}
