package strategy

import (
	"math"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/codegen/target/device"
)

// tileSeconds is the time of a tiled product by the curve of the target's device or, if it has none, by its roofline.
func tileSeconds(t *target.Target, family string, tile *kernels.Tiling, rows int) float64 {
	if t.Curve != nil {
		return t.Curve.Seconds[family](tile, rows, t.Units)
	}
	return tileRoofline(t, kernels.OnFloats(family), tile, rows)
}

// tileRoofline is the time of a tiled product by the peak figures of a target. Each unit has its share of bandwidth and
// operations, and goes through its workgroups one by one. A workgroup reads its rows of x and of the weights as they
// are multiplied, since a roofline knows no cache: so larger tiles are better, if they leave no unit idle. Workgroups
// that share the elements of a row also write and read what they have, and wait once.
func tileRoofline(t *target.Target, floats bool, tile *kernels.Tiling, rows int) float64 {
	size, rate := 2, t.MatrixFLOPs
	switch {
	case tile.TF32x3:
		size, rate = 4, t.MatrixFLOPs/2/3 // TF32 has half of f16's rate, by the data sheets
	case floats:
		size, rate = 4, t.FLOPs
	}
	outputs, splits, multiplied := tile.Outputs, max(1, tile.Splits), tile.Multiplied(rows)
	if outputs == 0 {
		outputs = device.Rounds(tile.Width, tile.Across)
	}
	workgroups, units := tile.Tiles(rows)*tile.Across*splits, float64(t.Units)
	elements := float64(tile.K) / float64(splits)
	bytes, operations := elements*float64(size*(multiplied+outputs)), elements*float64(2*multiplied*outputs)
	time := float64(device.Rounds(workgroups, t.Units)) * max(seconds(bytes, t.Bandwidth/units), seconds(operations, rate/units))
	if splits > 1 {
		const sum = 4 // bytes, written and read
		time += t.Stage + seconds(float64(2*sum*workgroups*multiplied*outputs), t.Bandwidth)
	}
	return time
}

// seconds is the time of n at a rate, 0 if the rate is not known.
func seconds(n, rate float64) float64 {
	if rate == 0 {
		return 0
	}
	return n / rate
}

// keptSeries is the number of tiles of outputs, a power of two, that a workgroup of expert_fragment should go through
// if its lanes keep x: as many as leave the rounds of workgroups that the curve says are best or, without one, as leave
// each unit a workgroup.
func keptSeries(t *target.Target, tile *kernels.Tiling, rows int) int {
	rounds, atOnce := 1.0, float64(t.Units)
	if c := t.Curve; c != nil {
		rounds, atOnce = c.KeptRounds, float64(t.Units*(c.KeptSubgroups/tile.Groups))
	}
	n := 1
	for n < tile.Across && tile.Chosen(rows)*float64(tile.Across) > math.Sqrt2*float64(n)*rounds*atOnce {
		n *= 2
	}
	return n
}
