package kernels

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func elementwiseCandidates(s *Site) []Candidate {
	return slices.Concat(pointwiseCandidates(s), halfCandidates(s), sliceCandidates(s), lastRowCandidates(s))
}

// rowAccesses is the shape of a kernel that handles each access of a row by
// itself: grid axis 0 tiles the row, axis 1 counts the rows.
type rowAccesses struct {
	vec, size, width int
}

func accessesOf(width int, t *target.Target) rowAccesses {
	return rowAccesses{vec: widest(width), size: min(t.Workgroup, 256) / t.Wave * t.Wave, width: width}
}

func (a rowAccesses) grid(rows int) [3]int {
	return [3]int{ceilDiv(a.width, a.vec*a.size), rows, 1}
}

func (a rowAccesses) cover(rows int) []plans.Cover {
	return []plans.Cover{{Arg: "y", Dims: []int{rows, a.width}, Tile: []int{1, a.vec * a.size}, Axis: []int{1, 0}}}
}

func (a rowAccesses) consts() []ir.Const {
	return []ir.Const{{Name: "width", Value: uint32(a.width)}, {Name: "workgroup", Value: uint32(a.size)}}
}

// run declares the constants and runs body for access i of a row, of n.
func (a rowAccesses) run(b *kernel.Builder, body func(i, n kernel.Value)) {
	width, size := b.SpecU32("width", 4096), b.SpecU32("workgroup", 256)
	b.Workgroup(size)
	n := b.Div(width, a.vec)
	i := b.Add(b.Mul(b.WorkgroupID(0), size), b.LocalID())
	b.If(b.Lt(i, n), func() { body(i, n) })
}

// elementFunc computes an element of a result from those of the operands.
type elementFunc func(b *kernel.Builder, x []kernel.Value) kernel.Value

// pointwise has the ops that compute each element from those at its place in the
// rows of the operands; an operand without rows is the same in all of them.
var pointwise = map[string]elementFunc{
	"add":     func(b *kernel.Builder, x []kernel.Value) kernel.Value { return b.Add(x[0], x[1]) },
	"gate":    func(b *kernel.Builder, x []kernel.Value) kernel.Value { return b.Mul(x[0], sigmoid(b, x[1])) },
	"sigmoid": func(b *kernel.Builder, x []kernel.Value) kernel.Value { return sigmoid(b, x[0]) },
	"decay":   func(b *kernel.Builder, x []kernel.Value) kernel.Value { return logDecay(b, x[0], x[1], x[2]) },
}

// pointwiseOf returns the function of op and its name; nil if op is none.
func pointwiseOf(op *ir.Op) (elementFunc, string) {
	name := op.Kind.Name
	if name != "glu" {
		return pointwise[name], name
	}
	act := op.Attrs.Str("act")
	apply := func(b *kernel.Builder, x []kernel.Value) kernel.Value { return b.Mul(activations[act](b, x[0]), x[1]) }
	return apply, name + " " + act
}

func pointwiseCandidates(s *Site) []Candidate {
	if len(s.Group.Ops) != 1 {
		return nil
	}
	op := s.Group.Ops[0]
	apply, name := pointwiseOf(op)
	if apply == nil || only(s, op.Kind.Name) == nil {
		return nil
	}
	rows, ok := extentOf(s, op.Result)
	if !ok {
		return nil
	}
	a := accessesOf(int(op.Result.Type.Last()), s.Target)
	operands := rows.operands()
	for i, v := range op.Args {
		operands = append(operands, Operand{op.Kind.Params[i], v, kernel.Read})
	}
	return []Candidate{{
		Kernel: fmt.Sprintf("elementwise %s v=%d%s", name, a.vec, rows.key()),
		Build: func() (*kernel.Func, error) {
			return kernel.Build("elementwise", func(b *kernel.Builder) {
				bound := rows.bound(b)
				args := make([]*kernel.Buffer, len(op.Args))
				for i := range args {
					args[i] = b.Arg(op.Kind.Params[i], kernel.Read)
				}
				y, row := b.Arg("y", kernel.Write), b.WorkgroupID(1)
				a.run(b, func(i, n kernel.Value) {
					at, t := b.Add(b.Mul(row, n), i), kernel.F32.Vec(a.vec)
					b.If(b.Lt(row, bound), func() {
						x := make([][]kernel.Value, a.vec) // by element, then operand
						for j, v := range op.Args {
							from := at
							if len(v.Type.Shape) == 1 {
								from = i
							}
							for e, element := range elements(b, args[j].Load(t, from)) {
								x[e] = append(x[e], element)
							}
						}
						out := make([]kernel.Operand, a.vec)
						for e := range out {
							out[e] = apply(b, x[e])
						}
						y.Store(at, vector(b, out))
					})
				})
			})
		},
		Consts:   append(rows.consts(), a.consts()...),
		Grid:     a.grid(rows.max),
		Operands: append(operands, Operand{"y", op.Result, kernel.Write}),
		Cover:    a.cover(rows.max),
	}}
}

// sliceCandidates copy a run of each row.
func sliceCandidates(s *Site) []Candidate {
	op := only(s, "slice")
	if op == nil {
		return nil
	}
	rows, ok := extentOf(s, op.Result)
	if !ok {
		return nil
	}
	x, first := op.Args[0], op.Attrs.Int("first")
	a := accessesOf(int(op.Result.Type.Last()), s.Target)
	for int(x.Type.Last())%a.vec != 0 || first%a.vec != 0 {
		a.vec /= 2
	}
	return []Candidate{{
		Kernel: fmt.Sprintf("elementwise slice v=%d%s", a.vec, rows.key()),
		Build: func() (*kernel.Func, error) {
			return kernel.Build("slice", func(b *kernel.Builder) {
				bound := rows.bound(b)
				x, y, row := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write), b.WorkgroupID(1)
				from, first := b.SpecU32("from", 4096), b.SpecU32("first", 0)
				a.run(b, func(i, n kernel.Value) {
					at := b.Add(b.Div(b.Add(b.Mul(row, from), first), a.vec), i)
					b.If(b.Lt(row, bound), func() { y.Store(b.Add(b.Mul(row, n), i), x.Load(kernel.F32.Vec(a.vec), at)) })
				})
			})
		},
		Consts: append(append(rows.consts(), ir.Const{Name: "from", Value: uint32(x.Type.Last())},
			ir.Const{Name: "first", Value: uint32(first)}), a.consts()...),
		Grid:     a.grid(rows.max),
		Operands: append(rows.operands(), Operand{"x", x, kernel.Read}, Operand{"y", op.Result, kernel.Write}),
		Cover:    a.cover(rows.max),
	}}
}

// lastRowCandidates copies row n-1 of a value of 32-bit elements.
func lastRowCandidates(s *Site) []Candidate {
	op := only(s, "last_row")
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
	a := accessesOf(width, s.Target)
	return []Candidate{{
		Kernel: fmt.Sprintf("elementwise last_row v=%d", a.vec),
		Build: func() (*kernel.Func, error) {
			return kernel.Build("last_row", func(b *kernel.Builder) {
				x, rows, y := b.Arg("x", kernel.Read), b.Arg("n", kernel.Read), b.Arg("y", kernel.Write)
				a.run(b, func(i, n kernel.Value) {
					last := b.Sub(rows.Load(kernel.U32, 0), 1)
					y.Store(i, x.Load(kernel.U32.Vec(a.vec), b.Add(b.Mul(last, n), i)))
				})
			})
		},
		Consts:   a.consts(),
		Grid:     a.grid(1),
		Operands: []Operand{{"x", op.Args[0], kernel.Read}, {"n", op.Args[1], kernel.Read}, {"y", op.Result, kernel.Write}},
		Cover:    a.cover(1),
	}}
}

// elements returns the elements of a vector, or the scalar itself.
func elements(b *kernel.Builder, v kernel.Value) []kernel.Value {
	if v.Type().Lanes() == 1 {
		return []kernel.Value{v}
	}
	out := make([]kernel.Value, v.Type().Lanes())
	for i := range out {
		out[i] = b.Elem(v, i)
	}
	return out
}

// vector is the reverse of elements.
func vector(b *kernel.Builder, list []kernel.Operand) kernel.Value {
	if len(list) == 1 {
		return list[0].(kernel.Value)
	}
	return b.Vec(list...)
}

// splat returns the vector of n times x, or x itself for n = 1.
func splat(b *kernel.Builder, x kernel.Value, n int) kernel.Value {
	if n == 1 {
		return x
	}
	return b.Splat(x, n)
}

// halfCandidates computes a half of its own.
func halfCandidates(s *Site) []Candidate {
	op := only(s, "half")
	if op == nil || op.Result.Type.Last()%4 != 0 {
		return nil
	}
	rows, ok := extentOf(s, op.Result)
	if !ok {
		return nil
	}
	a := accessesOf(int(op.Result.Type.Last()), s.Target)
	return []Candidate{{
		Kernel: "elementwise half" + rows.key(),
		Build: func() (*kernel.Func, error) {
			return kernel.Build("half", func(b *kernel.Builder) {
				bound := rows.bound(b)
				x, y, row := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write), b.WorkgroupID(1)
				a.run(b, func(i, n kernel.Value) {
					at := b.Add(b.Mul(row, n), i)
					b.If(b.Lt(row, bound), func() { y.Store(at, roundHalf(b, x.Load(f32x4, at))) })
				})
			})
		},
		Consts:   append(rows.consts(), a.consts()...),
		Grid:     a.grid(rows.max),
		Operands: append(rows.operands(), Operand{"x", op.Args[0], kernel.Read}, Operand{"y", op.Result, kernel.Write}),
		Cover:    a.cover(rows.max),
	}}
}
