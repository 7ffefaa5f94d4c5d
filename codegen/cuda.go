package codegen

import (
	"context"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernel/ptx"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func lowerPTX(_ context.Context, k *specialized, m made, t *target.Target) ([]byte, string, error) {
	var ahead []ptx.Ahead
	for _, p := range m.Prefetches {
		ahead = append(ahead, ptx.Ahead{Arg: p.Argument, Parts: p.Parts, Lines: p.Lines, First: p.First, Stride: p.Stride, After: p.After})
	}
	overlap := m.call.Overlap
	var early func(arg int) bool
	if len(overlap.Loads) > 0 {
		early = func(arg int) bool { return slices.Contains(overlap.Loads, arg) }
	}
	text, err := ptx.Lower(k.fn, ptx.Options{
		Ahead: ahead, Grid: m.Grid[0] * m.Grid[1] * m.Grid[2],
		Arch: t.CUDA, Spec: k.spec, Room: uint32(m.RoomFor()), Overlap: overlap.Waits != ir.NotEarly, LateTrigger: overlap.LateTrigger, WaitFirst: overlap.Waits == ir.WaitsFirst,
		Constant: func(arg int) bool { return constant(m.call.Args[arg]) }, EarlyLoads: early,
		EvictFirst: evictsFirst(m), Common: sharesSubgroup(m),
	})
	return []byte(text), ptx.Entry, err
}

// sharesSubgroup reports whether the kernel tells the driver's compiler that the lanes of a subgroup share the
// subgroup's number. Beside a delta rule that changes nothing; other kernels were not measured
// (docs/lab/cuda.md).
func sharesSubgroup(m made) bool {
	return m.call.Overlap.Waits == ir.LoadsFirst && (m.Family == "gemv" || m.Family == "attention_split")
}

// evictsFirst reports whether a candidate is a projection of super-blocks alone, which lie in a row, or of q8_0, too,
// if it has one row of x or is gemm_wide. With what that changes in all kernels, the 35B loses (docs/lab/cuda.md).
func evictsFirst(m made) bool {
	return slices.Contains([]string{"gemv", "gemm_fixed", "gemm_wide"}, m.Family) && !slices.ContainsFunc(m.Arguments(), func(o kernels.Operand) bool {
		d := o.Value.Type.DType
		return o.Value.Class == ir.Weight && d.IsQuantized() && d.Block() != weight.SuperElements && !(d == ir.Q8_0 && (m.Rows == 1 || m.Family == "gemm_wide"))
	})
}

func requireCUDA(p *plans.Plan, used []*kernel.Func, t *target.Target) {
	r := &plans.CUDARequirements{Arch: t.CUDA}
	for _, fn := range used {
		r.Exact = r.Exact || fn.Groups
	}
	for _, pl := range p.Pipelines {
		r.Workgroup = max(r.Workgroup, pl.Workgroup)
		r.Shared = max(r.Shared, pl.Shared)
	}
	p.Require.CUDA = r
}
