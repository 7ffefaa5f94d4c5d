package kernels

import (
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func rowNormCandidates(s *Site) []Candidate {
	var op *ir.Op
	for _, name := range []string{"rmsnorm", "gated_rmsnorm", "l2norm"} {
		if op == nil {
			op = only(s, name)
		}
	}
	half := roundedNorm(s)
	if half {
		op = s.Group.Ops[0]
	}
	if op == nil || len(op.Args) > 1 && op.Args[1].Type.DType != ir.F32 {
		return nil
	}
	rows, ok := extentOf(s, op.Result)
	if !ok {
		return nil
	}
	width, group := int(op.Result.Type.Last()), op.Attrs.Int("group")
	k, wave := rowNormKernel{rows: rows, op: op.Kind.Name, vec: widest(group), half: half}, s.Target.Wave
	size := min(ceilDiv(group/k.vec, wave)*wave, min(s.Target.Workgroup, 256)/wave*wave)
	operands := rows.operands()
	for i, v := range op.Args {
		operands = append(operands, Operand{rowNormArgs[i], v, kernel.Read})
	}
	return []Candidate{{
		Kernel: k.key(),
		Build:  k.build,
		Consts: append(rows.consts(),
			ir.Const{Name: "group", Value: uint32(group)},
			ir.Const{Name: "eps", Value: math.Float32bits(float32(op.Attrs.Float("eps")))},
			ir.Const{Name: "workgroup", Value: uint32(size)}),
		Grid:     [3]int{width / group, rows.max, 1},
		Operands: append(operands, Operand{"y", s.Outputs[0], kernel.Write}),
		Cover:    []plans.Cover{{Arg: "y", Dims: []int{rows.max, width}, Tile: []int{1, group}, Axis: []int{1, 0}}},
	}}
}

// rowNormArgs names the operands of the norms, of which l2norm has the first and
// rmsnorm the first two.
var rowNormArgs = []string{"x", "gain", "z"}

type rowNormKernel struct {
	rows extent
	op   string // rmsnorm, gated_rmsnorm or l2norm
	vec  int    // elements of one access
	half bool   // the result is rounded to f16
}

// roundedNorm reports whether the group is a norm of whole vec4 whose result is
// rounded to f16 and read in no other form.
func roundedNorm(s *Site) bool {
	ops := s.Group.Ops
	return len(ops) == 2 && ops[0].Kind.Name == "rmsnorm" && ops[1].Kind.Name == "half" && ops[1].Args[0] == ops[0].Result &&
		ops[0].Attrs.Int("group")%4 == 0 && len(s.Outputs) == 1 && s.Outputs[0] == ops[1].Result
}

func (k rowNormKernel) key() string {
	half := ""
	if k.half {
		half = "+half"
	}
	return fmt.Sprintf("rownorm %s%s v=%d%s", k.op, half, k.vec, k.rows.key())
}

func (k rowNormKernel) build() (*kernel.Func, error) {
	return kernel.Build("rownorm", func(b *kernel.Builder) {
		rows := k.rows.bound(b)
		x := b.Arg("x", kernel.Read)
		var gain, z *kernel.Buffer
		if k.op != "l2norm" {
			gain = b.Arg("gain", kernel.Read)
		}
		if k.op == "gated_rmsnorm" {
			z = b.Arg("z", kernel.Read)
		}
		y := b.Arg("y", kernel.Write)
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
		var scale kernel.Value
		if k.op == "l2norm" {
			scale = b.Div(1.0, b.Max(b.Sqrt(total), eps))
		} else {
			scale = b.InverseSqrt(b.Add(b.Div(total, b.Convert(kernel.F32, group)), eps))
		}
		b.For(b.LocalID(), n, size, func(i kernel.Value) {
			at := b.Add(from, i)
			v := b.Mul(x.Load(t, at), splat(b, scale, k.vec))
			if gain != nil {
				v = b.Mul(v, gain.Load(t, i))
			}
			if z != nil {
				v = b.Mul(v, eachElement(b, z.Load(t, at), activations["silu"]))
			}
			if k.half {
				v = roundHalf(b, v)
			}
			b.If(b.Lt(row, rows), func() { y.Store(at, v) })
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
