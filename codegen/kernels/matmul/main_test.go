package matmul_test

import (
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel/racetest"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
)

func TestMain(m *testing.M) { kerneltest.Main(m, spare...) }

// spare are the barriers that order nothing which others do not order.
var spare = []racetest.Spare{
	{Kernel: "gemv", File: "matmul/gemv_fixed.go", Why: "keeps compilers from moving the first loads of weights behind x"},
	{Kernel: "rows", File: "matmul/panels.go", Why: onProcessors},
	{Kernel: "rows", File: "matmul/rows_run.go", Why: onProcessors},
	{Kernel: "expert_wide", File: "matmul/expert_wide_workers.go", Why: "each panel begins with one, and roundings have registers alone; what steps take was measured with both"},
	{Kernel: "gemm_coop", Barrier: "subgroup_barrier", File: "matmul/gemm_coop.go", Why: "keeps the driver's compiler from loading all matrices at once"},
	{Kernel: "expert_coop", Barrier: "subgroup_barrier", File: "matmul/gemm_coop.go", Why: "as in gemm_coop"},
	{Kernel: "expert_coop", Why: "x is staged behind a barrier of its own before the first weight is taken apart"},
	{Kernel: "expert_fragment", Why: "as in expert_coop"},
}

const onProcessors = "barriers are nothing on processors, for which the kernel is"
