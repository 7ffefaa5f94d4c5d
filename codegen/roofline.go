package codegen

import (
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/plans"
)

// roofline is the time of a dispatch by the target's figures: a roofline whose slope
// and roof are those of the units that have a workgroup, plus the stage if the
// dispatch is the first of its step. It knows nothing of caches, of operations that
// wait for each other, or of what a kernel loses besides, so it is a lower bound
// where the figures are peaks.
func roofline(c *plans.Cost, t *target.Target, grid [3]int, matrix, first bool) plans.Times {
	busy := min(1, float64(grid[0])*float64(grid[1])*float64(grid[2])/float64(t.Units))
	rate := t.FLOPs
	if matrix && t.MatrixFLOPs > 0 {
		rate = t.MatrixFLOPs
	}
	times := plans.Times{
		Bytes:      seconds(c.ReadBytes+c.WriteBytes, t.Bandwidth*busy),
		Operations: seconds(c.FLOPs, rate*busy),
	}
	if first {
		times.Stage = float32(t.Stage)
	}
	return times
}

// seconds is the time of n at rate, 0 if the rate is not known.
func seconds(n int64, rate float64) float32 {
	if rate == 0 {
		return 0
	}
	return float32(float64(n) / rate)
}
