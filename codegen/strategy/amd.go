package strategy

import (
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// Margin is the share by which a candidate must be predicted to be faster than one that its family
// offers earlier: the model is not finer than that.
const Margin = 0.03

// slowOnAMD reports whether AMD's compiler (Mesa's, for gfx1201 and gfx1100) spills registers of gemm_coop with a tile,
// as it does for tiles that load far ahead, or makes slow code. It does so for widths that are no powers of two, and
// for tiles of 128 rows that load two steps ahead where tiles that load one step ahead are offered. The remaining tiles
// were the best at all 143 sites that `zincc tune` compared (target/rdna), and asking about the others takes 9 % of a
// compilation.
func slowOnAMD(t *site.Tiling) bool {
	return t.Ahead >= 4 || t.Outputs&(t.Outputs-1) != 0 || t.Rows >= 128 && t.Ahead > 1
}

// keptElements is the number of elements of x that a lane of gemv keeps, except on AMD, where lanes have more registers
// and the compiler says which shapes spill.
const keptElements = 96

// Prediction is the cost model's view of a dispatch on an AMD GPU: the time of its
// slowest part, all of which overlap, and of the dispatch itself.
//
//	bytes    bytes that it must move, over the bandwidth
//	issue    busy cycles of all subgroups, divided among the SIMDs
//	latency  rounds of resident subgroups, each as long as one subgroup
//
// Cycles are the compiler's, corrected by kernel.Func.Weigh. They ignore
// caches and lanes that wait for each other, and assume a nearly empty KV cache.
type Prediction struct {
	Seconds float64
	Busy    float64 // seconds for which a SIMD issues, of all these
	Bound   string  // the slowest part
	Waves   int     // subgroups that a SIMD holds
}

// Timing is the prediction in tuning's words. Of candidates that bytes bound alike, the one with fewer cycles is
// better.
func (p *Prediction) Timing() tuning.Timing {
	return tuning.Timing{Micros: 1e6 * p.Seconds, Busy: 1e6 * p.Busy}
}

// Beats reports whether a candidate is chosen rather than one that its family offers earlier.
func (p *Prediction) Beats(earlier *Prediction) bool {
	mine, other := p.Timing(), earlier.Timing()
	return mine.Beats(&other, Margin)
}

// AMDKernel is a dispatch of a kernel as AMD's compiler and kernel.Func.Weigh see it.
type AMDKernel struct {
	Wave, Workgroup int
	Grid            [3]int  // workgroups
	VGPRs, LDS      int     // registers of a lane, bytes of shared memory
	Issue           float64 // cycles for which a subgroup keeps its SIMD busy, on average over the grid
	Latency         float64 // cycles that the busiest takes
	// Operations is the average number of operations of the kernel language that a subgroup executes, Busiest that of
	// the busiest subgroup.
	Operations, Busiest float64
}

// Subgroups is the number of subgroups of all workgroups.
func (k *AMDKernel) Subgroups() int {
	return k.Grid[0] * k.Grid[1] * k.Grid[2] * ((k.Workgroup + k.Wave - 1) / k.Wave)
}

// PredictAMD evaluates the cost model.
func PredictAMD(t *target.Target, k *AMDKernel, c plans.Cost) Prediction {
	p := Prediction{Waves: t.AMD.Occupancy(k.Wave, k.VGPRs, k.Workgroup, k.LDS), Bound: "bytes"}
	subgroups := k.Subgroups()
	simds := t.AMD.SIMDs(t.Units)
	slots := simds * max(1, p.Waves)
	// A SIMD works on whole subgroups: fewer than there are SIMDs take as long as one.
	perSIMD := (subgroups + simds - 1) / simds
	rounds := (subgroups + slots - 1) / slots
	p.Seconds = float64(c.ReadBytes+c.WriteBytes) / t.Bandwidth
	p.Busy = float64(perSIMD) * k.Issue / t.AMD.Clock
	for _, part := range []struct {
		name   string
		cycles float64
	}{
		{"issue", float64(perSIMD) * k.Issue},
		{"latency", float64(rounds) * k.Latency},
	} {
		if s := part.cycles / t.AMD.Clock; s > p.Seconds {
			p.Seconds, p.Bound = s, part.name
		}
	}
	p.Seconds += t.Stage
	return p
}

// Slack is the share by which a kernel that the compiler has not compiled may be faster than expected. With 0.4 the
// choice for gopher-moe on gfx1201 is up to a fifth slower at two sites than the choice after compiling all
// (TestFewQuestions); with 0.5, which asks about 57 % of the candidates, no site is a tenth slower.
const Slack = 0.5

// Pace compares a candidate's cycles per operation with those of the first candidate of its site. For the same two
// candidates it differs little from site to site.
type Pace struct {
	Issue, Latency float64
	VGPRs          int // of a lane; 0: as many as the first
}

// PaceOf compares kernel k with the first.
func PaceOf(k, first *AMDKernel) Pace {
	return Pace{
		Issue:   k.Issue / max(1, k.Operations) / (first.Issue / max(1, first.Operations)),
		Latency: k.Latency / max(1, k.Busiest) / (first.Latency / max(1, first.Busiest)),
		VGPRs:   k.VGPRs,
	}
}

// alike are families whose candidates take about the same number of cycles per operation. That does not hold where one
// operation multiplies matrices.
var alike = map[string]bool{"gemv": true, "expert_gemv": true, "expert_down": true, "embed": true, "argmax": true}

// Alike returns the pace to assume for a family's candidate before the compiler has compiled it anywhere, if there is
// one.
func Alike(family string) (Pace, bool) { return Pace{Issue: 1, Latency: 1}, alike[family] }

// Expect returns k, whose sizes and operations are known, with the cycles that are expected, judged by those of the
// first candidate.
func (p Pace) Expect(first, k *AMDKernel) *AMDKernel {
	e := *k
	e.Issue = p.Issue * first.Issue / max(1, first.Operations) * k.Operations
	e.Latency = p.Latency * first.Latency / max(1, first.Busiest) * k.Busiest
	if p.VGPRs > 0 {
		e.VGPRs = p.VGPRs
	}
	return &e
}
