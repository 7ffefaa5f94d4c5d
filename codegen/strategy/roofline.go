package strategy

import (
	"github.com/zincc-dev/zincc/codegen/target"
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

// Fitted is the roofline of a dispatch of cost c, plus the time that measured dispatches of the target take
// beyond theirs.
func Fitted(c *plans.Cost, times plans.Times, matrix bool, fit target.Fit) plans.Times {
	if fit.Share > 0 {
		times.Bytes /= float32(fit.Share)
	}
	if matrix && c.FLOPsPerPos > 0 && fit.Attention > 0 {
		times.Operations /= float32(fit.Attention)
	}
	if times.Stage > 0 {
		times.Stage += float32(fit.Ramp)
	}
	return times
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
