package matmul

import "github.com/zincc-dev/zincc/codegen/kernel"

// pipeline is how gemm_fragment brings x to the lanes that multiply it, and goes through the blocks of a row.
type pipeline struct {
	family string // of the kernel table
	name   string
	// shared is the vec4 of shared memory of x; nil if it goes through none.
	shared func(k gemmFragment) int
	// space bounds the vec4 of shared memory of sums; nil if they are few.
	space func(k gemmFragment) int
	// cases: there is code of its own for fewer rows than those of a tile.
	cases bool
	// grouped: copies bring x, which subgroups multiply together.
	grouped bool
	run     func(t *fragmentRun, series kernel.Value)
}

// The pipelines. Few rows of x stay in the registers of the lanes that multiply them, which have one block of every row
// and load the weights of the next tile while they multiply. Where a row has more blocks than a workgroup has groups, x
// goes through shared memory: a block of each subgroup's own, with weights a block ahead. More rows are shared by the
// subgroups of the workgroup, with weights an iteration or a block ahead. Tiles of x are copied as they lie there, and
// multiplied by four subgroups together (wgmma).
var (
	kept    = &pipeline{family: "gemm_fragment", name: "kept", run: (*fragmentRun).runKept}
	staged  = &pipeline{family: "gemm_fragment", name: "staged", shared: gemmFragment.stagedVec4, run: (*fragmentRun).runStaged}
	pooled  = &pipeline{family: "gemm_fragment", name: "pooled", shared: gemmFragment.pooledVec4, space: gemmFragment.space, cases: true, run: (*fragmentRun).runPooled}
	grouped = &pipeline{family: "gemm_wgmma", name: "grouped", shared: gemmFragment.groupedVec4, space: gemmFragment.groupedSpace, grouped: true, run: (*fragmentRun).runGrouped}
)
