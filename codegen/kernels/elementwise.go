package kernels

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func elementwiseCandidates(s *Site) []Candidate {
	return append(pairwiseCandidates(s), lastRowCandidates(s)...)
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

// pairwiseCandidates are for y = f(a, b), element by element.
func pairwiseCandidates(s *Site) []Candidate {
	op := only(s, "add")
	apply, name := func(b *kernel.Builder, x, y kernel.Value) kernel.Value { return b.Add(x, y) }, "add"
	if op == nil {
		if op = only(s, "glu"); op == nil {
			return nil
		}
		act := op.Attrs.Str("act")
		name = "glu " + act
		apply = func(b *kernel.Builder, x, y kernel.Value) kernel.Value {
			return b.Mul(activations[act](b, x), y)
		}
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
				x, y := b.Arg(op.Kind.Params[0], kernel.Read), b.Arg(op.Kind.Params[1], kernel.Read)
				out := b.Arg("y", kernel.Write)
				row := b.WorkgroupID(1)
				a.run(b, func(i, n kernel.Value) {
					b.If(b.Lt(row, bound), func() {
						at, t := b.Add(b.Mul(row, n), i), kernel.F32.Vec(a.vec)
						out.Store(at, apply(b, x.Load(t, at), y.Load(t, at)))
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

// splat returns the vector of n times x, or x itself for n = 1.
func splat(b *kernel.Builder, x kernel.Value, n int) kernel.Value {
	if n == 1 {
		return x
	}
	return b.Splat(x, n)
}
