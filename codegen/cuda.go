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

func lowerPTX(_ context.Context, k *specialized, c *kernels.Candidate, t *target.Target) ([]byte, string, error) {
	var ahead []ptx.Ahead
	for _, a := range c.Ahead {
		ahead = append(ahead, ptx.Ahead{Arg: a.Operand, Parts: a.Parts, Lines: a.Lines, First: a.First, Stride: a.Stride, After: a.After})
	}
	var early func(arg int) bool
	if c.EarlyLoads != nil {
		early = func(arg int) bool { return c.EarlyLoads[arg] }
	}
	text, err := ptx.Lower(k.fn, ptx.Options{
		Ahead: ahead, Grid: c.Grid[0] * c.Grid[1] * c.Grid[2],
		Arch: t.CUDA, Spec: k.spec, Room: uint32(c.Room), Overlap: c.Overlap != ir.NotEarly, LateTrigger: c.LateTrigger, WaitFirst: c.Overlap == ir.WaitsFirst,
		Constant: func(arg int) bool { return constant(c.Operands[arg].Value) }, EarlyLoads: early,
		EvictFirst: evictsFirst(c), Common: sharesSubgroup(c),
	})
	return []byte(text), ptx.Entry, err
}

// sharesSubgroup reports whether the kernel tells the driver's compiler that the lanes of a subgroup share the
// subgroup's number. Beside a delta rule that changes nothing; other kernels were not measured
// (docs/lab/cuda.md).
func sharesSubgroup(c *kernels.Candidate) bool {
	return c.Overlap == ir.LoadsFirst && (c.Family == "gemv" || c.Family == "attention_split")
}

// evictsFirst reports whether a candidate is a projection of super-blocks alone, which lie in a row, or of one row of x
// with q8_0, too. With what that changes in all kernels, the 35B loses (docs/lab/cuda.md).
func evictsFirst(c *kernels.Candidate) bool {
	return slices.Contains([]string{"gemv", "gemm_fixed", "gemm_wide"}, c.Family) && !slices.ContainsFunc(c.Operands, func(o kernels.Operand) bool {
		d := o.Value.Type.DType
		return o.Value.Class == ir.Weight && d.IsQuantized() && d.Block() != weight.SuperElements && !(d == ir.Q8_0 && c.Rows == 1)
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
