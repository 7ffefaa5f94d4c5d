package strategy

import (
	"cmp"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/codegen/target/device"
	"github.com/zincc-dev/zincc/plans"
)

// Roofline predicts the time of a dispatch from the target's peak figures: a roofline with the slope
// and roof of the units that have a workgroup, plus the stage if the
// dispatch is the first of its step. It ignores caches, operations that
// wait for each other, and other losses of a kernel. So it is a lower bound
// if the figures are peaks.
func Roofline(c *plans.Cost, t *target.Target, grid [3]int, matrix, first bool) plans.Times {
	busy := min(1, float64(grid[0])*float64(grid[1])*float64(grid[2])/float64(t.Units))
	rate := t.FLOPs
	if matrix && t.MatrixFLOPs > 0 {
		rate = t.MatrixFLOPs
	}
	times := plans.Times{
		Bytes:      over(c.ReadBytes+c.WriteBytes, t.Bandwidth*busy),
		Operations: over(c.FLOPs, rate*busy),
	}
	if first {
		times.Stage = float32(t.Stage)
	}
	return times
}

// Launch is a dispatch of a candidate as its plan has it, with the times of its roofline or the curve.
type Launch struct {
	*kernels.Candidate
	Cost   *plans.Cost
	Rows   int  // of the step
	Shared int  // bytes of shared memory of a workgroup
	Matrix bool // the kernel multiplies cooperative matrices
	Early  bool // it begins and loads while the dispatch before it runs
}

// Fitted are the times of a dispatch, plus what measured dispatches of the target take beyond theirs. Those of a curve
// and of families with a pace were measured between two timestamps; where the dispatch begins early, a plan does not
// spend all of that.
func Fitted(l *Launch, t *target.Target) plans.Times {
	times, fit := l.Cost.Predicted, &t.Fit
	pace, paced := fit.Paces[l.Family]
	if share := cmp.Or(pace.Share, fit.Share); share > 0 {
		times.Bytes /= float32(share)
	}
	if l.Matrix && l.Cost.FLOPsPerPos > 0 && fit.Attention > 0 {
		times.Operations /= float32(fit.Attention)
	}
	if times.Stage > 0 {
		times.Stage += float32(fit.Ramp)
	}
	if paced {
		times = l.paced(times, pace, t)
	}
	if _, curved := Seconds(l.Candidate, t, l.Rows); l.Early && (paced || curved) {
		times = less(times, float32(fit.Overlap-fit.Timestamp))
	}
	return times
}

// paced adds what the family's pace says to times.
func (l *Launch) paced(times plans.Times, pace target.Pace, t *target.Target) plans.Times {
	workgroups := cmp.Or(l.Work.Workgroups, l.Grid[0]*l.Grid[1]*l.Grid[2])
	atOnce := t.Units // workgroups, as far as shared memory allows
	if l.Shared > 0 {
		atOnce *= max(1, t.SharedOptIn/l.Shared)
	}
	if l.Work.Readers > 1 {
		times.Bytes = max(times.Bytes, over(int64(l.Work.Readers)*(l.Cost.ReadBytes+l.Cost.WriteBytes), t.Fit.Cached))
	}
	times.Bytes += over(l.Work.Again, t.Fit.Cached)
	each := pace.Each + pace.Item*float64(l.Work.Items)
	times.Operations = max(times.Operations, float32(each*float64(workgroups)/float64(t.Units)))
	if times.Stage > 0 { // else latencies pass while the first dispatch of the stage runs
		times.Stage += float32(pace.Once + pace.Round*float64(device.Rounds(workgroups, atOnce)))
	}
	return times
}

// less takes seconds from the stage and, where that is shorter, from the rest.
func less(times plans.Times, seconds float32) plans.Times {
	rest := max(0, seconds-times.Stage)
	return plans.Times{Bytes: max(0, times.Bytes-rest), Operations: max(0, times.Operations-rest), Stage: max(0, times.Stage-seconds)}
}

// tunedDepth is the number of cached positions behind which zincrun tune measures by default.
const tunedDepth = 512

// Measured is a prediction with its parts scaled to the seconds of a row of a tuning
// table, which include a barrier. The part that depends on positions keeps its slope; the stage is the rest.
func Measured(c plans.Cost, seconds float32, predicted bool) plans.Times {
	times := c.Predicted
	if c.BytesPerPos > 0 || c.FLOPsPerPos > 0 {
		depth := tunedDepth
		if predicted { // behind an empty cache
			depth = 0
		}
		there := c.At(depth).Predicted
		times.Stage = max(0, seconds-max(there.Bytes, there.Operations))
		return times
	}
	times.Stage = min(times.Stage, seconds)
	most := max(times.Bytes, times.Operations)
	if most == 0 {
		times.Stage = seconds
		return times
	}
	scale := (seconds - times.Stage) / most
	times.Bytes *= scale
	times.Operations *= scale
	return times
}

// over is the time of n at rate, 0 if the rate is not known.
func over(n int64, rate float64) float32 {
	if rate == 0 {
		return 0
	}
	return float32(float64(n) / rate)
}
