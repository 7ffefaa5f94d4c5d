// Package rowwise has the families that handle rows without a matrix product: embedding, norms,
// elementwise ops, the choice of a token.
package rowwise

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

func ElementwiseCandidates(s *site.Site) []site.Candidate {
	return slices.Concat(pointwiseCandidates(s), halfCandidates(s), sliceCandidates(s), lastRowCandidates(s))
}

// elementFunc computes an element of a result from those of the operands.
type elementFunc func(b *kernel.Builder, x []kernel.Value) kernel.Value

// pointwise has the ops that compute each element from those at its place in the
// rows of the operands; an operand without rows is the same in all of them.
var pointwise = map[string]elementFunc{
	"add":     func(b *kernel.Builder, x []kernel.Value) kernel.Value { return b.Add(x[0], x[1]) },
	"mul":     func(b *kernel.Builder, x []kernel.Value) kernel.Value { return b.Mul(x[0], x[1]) },
	"gate":    func(b *kernel.Builder, x []kernel.Value) kernel.Value { return b.Mul(x[0], lane.Sigmoid(b, x[1])) },
	"sigmoid": func(b *kernel.Builder, x []kernel.Value) kernel.Value { return lane.Sigmoid(b, x[0]) },
	"decay":   func(b *kernel.Builder, x []kernel.Value) kernel.Value { return lane.LogDecay(b, x[0], x[1], x[2]) },
}

// pointwiseOf returns the function of op and its name; nil if op is none.
func pointwiseOf(op *ir.Op) (elementFunc, string) {
	name := op.Kind.Name
	switch name {
	case "glu":
		act := op.Attrs.Str("act")
		return func(b *kernel.Builder, x []kernel.Value) kernel.Value { return lane.GLU(b, act, x[0])(x[1]) }, name + " " + act
	case "scale":
		factor := float32(op.Attrs.Float("factor"))
		if len(op.Args) > 1 {
			return nil, name
		}
		return func(b *kernel.Builder, x []kernel.Value) kernel.Value { return b.Mul(x[0], factor) }, fmt.Sprint(name, " ", factor)
	case "softcap":
		scale, most := op.Attrs.Float("scale"), op.Attrs.Float("cap")
		return func(b *kernel.Builder, x []kernel.Value) kernel.Value {
			return b.Mul(lane.Tanh(b, b.Mul(x[0], float32(scale/most))), float32(most))
		}, fmt.Sprint(name, " ", scale, " ", most)
	}
	return pointwise[name], name
}

func pointwiseCandidates(s *site.Site) []site.Candidate {
	op := s.Group.Ops[len(s.Group.Ops)-1]
	apply, name := pointwiseOf(op)
	if apply == nil || len(s.Outputs) != 1 || s.Outputs[0] != op.Result {
		return nil
	}
	cuts := make([]*ir.Op, len(op.Args)) // the slices that operands are
	found := 0
	for i, v := range op.Args {
		if v.Def != nil && v.Def.Kind.Name == "slice" && slices.Contains(s.Group.Ops, v.Def) {
			cuts[i], name = v.Def, fmt.Sprint(name, " cut", i)
			found++
		}
	}
	if found != len(s.Group.Ops)-1 {
		return nil
	}
	rows, ok := site.ExtentOf(s, op.Result)
	if !ok {
		return nil
	}
	a := site.AccessesOf(int(op.Result.Type.Last()), s.Target)
	operands, consts := rows.Operands(), rows.Consts()
	for i, v := range op.Args {
		if cut := cuts[i]; cut != nil {
			v = cut.Args[0]
			from, first := int(v.Type.Last()), cut.Attrs.Int("first")
			for from%a.Vec != 0 || first%a.Vec != 0 {
				a.Vec /= 2
			}
			consts = append(consts, ir.Const{Name: fmt.Sprint("from", i), Value: uint32(from)}, ir.Const{Name: fmt.Sprint("first", i), Value: uint32(first)})
		}
		operands = append(operands, site.Operand{Name: op.Kind.Params[i], Value: v, Access: kernel.Read})
	}
	return []site.Candidate{{
		Kernel: fmt.Sprintf("elementwise %s v=%d%s", name, a.Vec, rows.Key()),
		Build: func() (*kernel.Func, error) {
			return kernel.Build("elementwise", func(b *kernel.Builder) {
				bound := rows.Bound(b)
				args := make([]*kernel.Buffer, len(op.Args))
				for i := range args {
					args[i] = b.Arg(op.Kind.Params[i], kernel.Read)
				}
				from, first := make([]kernel.Value, len(args)), make([]kernel.Value, len(args))
				for i, cut := range cuts {
					if cut != nil {
						from[i], first[i] = b.SpecU32(fmt.Sprint("from", i), 4096), b.SpecU32(fmt.Sprint("first", i), 0)
					}
				}
				y, row := b.Arg("y", kernel.Write), b.WorkgroupID(1)
				a.Run(b, func(i, n kernel.Value) {
					at, t := b.Add(b.Mul(row, n), i), kernel.F32.Vec(a.Vec)
					b.If(b.Lt(row, bound), func() {
						x := make([][]kernel.Value, a.Vec) // by element, then operand
						for j, v := range op.Args {
							place := at
							if len(v.Type.Shape) == 1 {
								place = i
							}
							if cuts[j] != nil {
								place = b.Add(b.Div(b.Add(b.Mul(row, from[j]), first[j]), a.Vec), i)
							}
							for e, element := range lane.Elements(b, args[j].Load(t, place)) {
								x[e] = append(x[e], element)
							}
						}
						out := make([]kernel.Operand, a.Vec)
						for e := range out {
							out[e] = apply(b, x[e])
						}
						y.Store(at, lane.Vector(b, out))
					})
				})
			})
		},
		Consts:   append(consts, a.Consts()...),
		Grid:     a.Grid(rows.Max),
		Operands: append(operands, site.Operand{Name: "y", Value: op.Result, Access: kernel.Write}),
		Cover:    a.Cover(rows.Max),
	}}
}

// sliceCandidates copy a run of each row.
func sliceCandidates(s *site.Site) []site.Candidate {
	op := site.Only(s, "slice")
	if op == nil {
		return nil
	}
	rows, ok := site.ExtentOf(s, op.Result)
	if !ok {
		return nil
	}
	x, first := op.Args[0], op.Attrs.Int("first")
	a := site.AccessesOf(int(op.Result.Type.Last()), s.Target)
	for int(x.Type.Last())%a.Vec != 0 || first%a.Vec != 0 {
		a.Vec /= 2
	}
	return []site.Candidate{{
		Kernel: fmt.Sprintf("elementwise slice v=%d%s", a.Vec, rows.Key()),
		Build: func() (*kernel.Func, error) {
			return kernel.Build("slice", func(b *kernel.Builder) {
				bound := rows.Bound(b)
				x, y, row := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write), b.WorkgroupID(1)
				from, first := b.SpecU32("from", 4096), b.SpecU32("first", 0)
				a.Run(b, func(i, n kernel.Value) {
					at := b.Add(b.Div(b.Add(b.Mul(row, from), first), a.Vec), i)
					b.If(b.Lt(row, bound), func() { y.Store(b.Add(b.Mul(row, n), i), x.Load(kernel.F32.Vec(a.Vec), at)) })
				})
			})
		},
		Consts: append(append(rows.Consts(), ir.Const{Name: "from", Value: uint32(x.Type.Last())},
			ir.Const{Name: "first", Value: uint32(first)}), a.Consts()...),
		Grid:     a.Grid(rows.Max),
		Operands: append(rows.Operands(), site.Operand{Name: "x", Value: x, Access: kernel.Read}, site.Operand{Name: "y", Value: op.Result, Access: kernel.Write}),
		Cover:    a.Cover(rows.Max),
	}}
}

// lastRowCandidates copies row n-1 of a value of 32-bit elements.
func lastRowCandidates(s *site.Site) []site.Candidate {
	op := site.Only(s, "last_row")
	if op == nil {
		return nil
	}
	width := 1
	for _, d := range op.Result.Type.Shape[1:] {
		width *= int(d)
	}
	if d := op.Result.Type.DType; d != ir.F32 && d != ir.I32 || width <= 0 {
		return nil
	}
	a := site.AccessesOf(width, s.Target)
	return []site.Candidate{{
		Kernel: fmt.Sprintf("elementwise last_row v=%d", a.Vec),
		Build: func() (*kernel.Func, error) {
			return kernel.Build("last_row", func(b *kernel.Builder) {
				x, rows, y := b.Arg("x", kernel.Read), b.Arg("n", kernel.Read), b.Arg("y", kernel.Write)
				a.Run(b, func(i, n kernel.Value) {
					last := b.Sub(rows.Load(kernel.U32, 0), 1)
					y.Store(i, x.Load(kernel.U32.Vec(a.Vec), b.Add(b.Mul(last, n), i)))
				})
			})
		},
		Consts:   a.Consts(),
		Grid:     a.Grid(1),
		Operands: []site.Operand{{Name: "x", Value: op.Args[0], Access: kernel.Read}, {Name: "n", Value: op.Args[1], Access: kernel.Read}, {Name: "y", Value: op.Result, Access: kernel.Write}},
		Cover:    a.Cover(1),
	}}
}

// halfCandidates computes a half of its own.
func halfCandidates(s *site.Site) []site.Candidate {
	op := site.Only(s, "half")
	if op == nil || op.Result.Type.Last()%4 != 0 {
		return nil
	}
	rows, ok := site.ExtentOf(s, op.Result)
	if !ok {
		return nil
	}
	a := site.AccessesOf(int(op.Result.Type.Last()), s.Target)
	return []site.Candidate{{
		Kernel: "elementwise half" + rows.Key(),
		Build: func() (*kernel.Func, error) {
			return kernel.Build("half", func(b *kernel.Builder) {
				bound := rows.Bound(b)
				x, y, row := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write), b.WorkgroupID(1)
				a.Run(b, func(i, n kernel.Value) {
					at := b.Add(b.Mul(row, n), i)
					b.If(b.Lt(row, bound), func() { y.Store(at, lane.RoundHalf(b, x.Load(lane.F32x4, at))) })
				})
			})
		},
		Consts:   append(rows.Consts(), a.Consts()...),
		Grid:     a.Grid(rows.Max),
		Operands: append(rows.Operands(), site.Operand{Name: "x", Value: op.Args[0], Access: kernel.Read}, site.Operand{Name: "y", Value: op.Result, Access: kernel.Write}),
		Cover:    a.Cover(rows.Max),
	}}
}
