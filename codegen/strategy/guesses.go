package strategy

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// First guesses of which no figure of a device tells anything: each was measured on an H200 only, and holds for the
// kernels that a target has. docs/lab has the measurements.

// wgmmaRows is the least number of rows for which attention_wgmma is chosen. For 128 and 16 rows behind nothing,
// attention_coop takes 13 and 10 us, attention_wgmma 19 and 18 (docs/lab/prompts.md).
const wgmmaRows = 512

// fixedFrom is the least number of rows of x for which gemm_fixed is considered: fewer leave most of a matrix empty
// (docs/lab/batched-decoding.md).
const fixedFrom = 3

// convolvedColumns is the most columns for which a projection takes in the gated convolution behind it: from fixedFrom
// on, gemm_fixed may be faster.
const convolvedColumns = fixedFrom - 1

const (
	// ringMost is the most tiles of weights in a ring of gemm_fixed. Only rings of 2 to 4 were measured
	// (docs/lab/batched-decoding.md).
	ringMost = 4
	// ringSubgroups is the number of subgroups of such workgroups for which a unit has registers.
	ringSubgroups = 16
	// driverShared is the bytes of shared memory that CUDA takes for each workgroup.
	driverShared = 1 << 10
)

// downFrom is the least number of units of a row in a lane for which expert_down gets x in fixed point, except through
// CUDA, where rows of one unit are loaded at once. For the 35B's rows of 512 elements it makes no difference through
// Vulkan (docs/lab/experts.md).
const downFrom = 2

// timedFrom is the first architecture whose projections of one row were timed with more lanes and with more rows at a
// time: on an H200 1 to 4 % more tokens a second (docs/lab/tuning.md).
const timedFrom = 90

// attentionRoom is the lanes of a unit that attention of three rows and more leaves registers for, of heads of up to
// attentionHead elements: without, a unit has one workgroup. It was measured with heads of 128, 4 and 8 rows: 10.4 us
// where 13.0 were, and 14.8 of 17.8. With one and two rows each unit has no more than one anyway.
const attentionRoom, attentionFrom, attentionHead = 512, 3, 128

// roomFirst puts the form of attention of several rows first that leaves room.
func roomFirst(s *kernels.Site, offers []kernels.Candidate) []kernels.Candidate {
	if s.Func.Rows < attentionFrom || !slices.ContainsFunc(s.Group.Ops, func(op *ir.Op) bool {
		return op.Kind.Name == "attention_split" && op.Attrs.Int("head_dim") <= attentionHead
	}) {
		return offers
	}
	slices.SortStableFunc(offers, func(a, b kernels.Candidate) int {
		is := func(c kernels.Candidate) int {
			if c.Room == attentionRoom {
				return 0
			}
			return 1
		}
		return is(a) - is(b)
	})
	return offers
}

// Besides reports whether a delta rule of one row, of so many heads, has the projection of its gate beside it. That was
// measured through CUDA only, of 32 heads on 132 units (docs/lab/hybrids.md), and not where the rule leaves
// fewer than half of the units.
func Besides(t *target.Target, heads int) bool { return t.Overlaps() && 2*heads <= t.Units }
