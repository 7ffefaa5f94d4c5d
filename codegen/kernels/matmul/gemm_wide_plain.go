package matmul

import (
	"math"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// Runs with a float scale each, such as those of q8_0: the products of a run are integers, which are exact. Multiplied
// by their scales, they are added as gemm_fixed adds them.

// plainLeast is the elements of the shortest rows for which that pays: those of 512 are slower than with gemm_fixed
// (docs/lab/experts.md).
const plainLeast = fixedChunk * fixedBlock

// plainRuns reports whether a run of the format is its scale times its codes, and nothing else.
func plainRuns(f *weight.FixedFormat) bool { return !f.Super && !f.Fine && !f.Offset }

// plainProducts are wideProducts of such runs.
func plainProducts() (steps []wideProduct) {
	for slot := range weight.FixedRuns {
		steps = append(steps, wideProduct{slot: slot, clear: true, next: -1})
	}
	return steps
}

// plainBlock is what wideBlock has of such runs.
type plainBlock struct {
	scales [2][2]kernel.Value // by row, parity of the slot: of the two slots of which the lane has them
	trees  []slotTree         // by matrix of 8 columns, row, column
}

// inRuns returns the sums of a block.
func (k *wideBlock) inRuns() (values []kernel.Value) {
	b, p := k.b, &k.plain
	for h := range p.scales {
		for i, t := range k.rows[h].Terms(k.words[h]) {
			p.scales[h][i] = t[0].Scale
			if e := k.format.Exponents[i]; e != 0 {
				p.scales[h][i] = b.Mul(t[0].Scale, math.Ldexp(1, -e)) // exact
			}
		}
	}
	k.follow(-1)
	k.loadScales()
	p.trees = make([]slotTree, 4*k.wideTask.matrices())
	k.multiplyAll()
	for _, t := range p.trees {
		values = append(values, t.waiting[0])
	}
	return values
}

// end adds the accumulators of step n to the sums.
func (p *plainBlock) end(k *wideBlock, n int) {
	b, slot := k.b, k.steps[n].slot
	var scales [2]kernel.Value
	for h := range scales {
		scales[h] = b.SubgroupShuffle(p.scales[h][slot%2], b.Add(b.Mul(k.place, 4), slot/2))
	}
	for j, v := range k.sets[n%len(k.sets)] {
		for e := range 4 {
			p.trees[4*j+e].add(b, b.Mul(b.Mul(scales[e/2], k.xs[2*j+e%2]), v.Elem(e)))
		}
	}
}
