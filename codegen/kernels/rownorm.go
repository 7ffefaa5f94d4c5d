package kernels

import (
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func rowNormCandidates(s *Site) []Candidate {
	op := only(s, "rmsnorm")
	if op == nil || op.Args[1].Type.DType != ir.F32 {
		return nil
	}
	rows, ok := extentOf(s, op.Result)
	if !ok {
		return nil
	}
	width, group := int(op.Result.Type.Last()), op.Attrs.Int("group")
	k, wave := rowNormKernel{rows: rows, vec: widest(group)}, s.Target.Wave
	size := min(ceilDiv(group/k.vec, wave)*wave, min(s.Target.Workgroup, 256)/wave*wave)
	return []Candidate{{
		Kernel: k.key(),
		Build:  k.build,
		Consts: append(rows.consts(),
			ir.Const{Name: "group", Value: uint32(group)},
			ir.Const{Name: "eps", Value: math.Float32bits(float32(op.Attrs.Float("eps")))},
			ir.Const{Name: "workgroup", Value: uint32(size)}),
		Grid: [3]int{width / group, rows.max, 1},
		Operands: append(rows.operands(), Operand{"x", op.Args[0], kernel.Read},
			Operand{"gain", op.Args[1], kernel.Read}, Operand{"y", op.Result, kernel.Write}),
		Cover: []plans.Cover{{Arg: "y", Dims: []int{rows.max, width}, Tile: []int{1, group}, Axis: []int{1, 0}}},
	}}
}

type rowNormKernel struct {
	rows extent
	vec  int // elements of one access
}

func (k rowNormKernel) key() string {
	return fmt.Sprintf("rownorm v=%d%s", k.vec, k.rows.key())
}

func (k rowNormKernel) build() (*kernel.Func, error) {
	return kernel.Build("rownorm", func(b *kernel.Builder) {
		rows := k.rows.bound(b)
		x, gain, y := b.Arg("x", kernel.Read), b.Arg("gain", kernel.Read), b.Arg("y", kernel.Write)
		group, eps := b.SpecU32("group", 4096), b.SpecF32("eps", 1e-6)
		size := b.SpecU32("workgroup", 256)
		b.Workgroup(size)

		row := b.WorkgroupID(1)
		t, n := kernel.F32.Vec(k.vec), b.Div(group, k.vec)
		from := b.Mul(b.Add(b.Mul(row, b.NumWorkgroups(0)), b.WorkgroupID(0)), n)
		sum := b.Var(kernel.F32, 0)
		b.For(b.LocalID(), n, size, func(i kernel.Value) {
			v := x.Load(t, b.Add(from, i))
			for _, e := range elements(b, v) {
				sum.Set(b.FMA(e, e, sum.Get()))
			}
		})
		total := workgroupSum(b, size, sum.Get())
		scale := b.InverseSqrt(b.Add(b.Div(total, b.Convert(kernel.F32, group)), eps))
		b.For(b.LocalID(), n, size, func(i kernel.Value) {
			at := b.Add(from, i)
			v := b.Mul(x.Load(t, at), splat(b, scale, k.vec))
			b.If(b.Lt(row, rows), func() { y.Store(at, b.Mul(v, gain.Load(t, i))) })
		})
	})
}

// workgroupSum returns the sum of x over the workgroup, in all lanes: those of the
// subgroups are added in their order.
func workgroupSum(b *kernel.Builder, size, x kernel.Value) kernel.Value {
	parts := b.Shared(kernel.F32, size)
	x = b.SubgroupAdd(x)
	b.If(b.SubgroupElect(), func() { parts.Store(b.SubgroupID(), x) })
	b.Barrier()
	sum := b.Var(kernel.F32, 0)
	b.For(0, b.NumSubgroups(), 1, func(i kernel.Value) {
		sum.Set(b.Add(sum.Get(), parts.Load(i)))
	})
	return sum.Get()
}
