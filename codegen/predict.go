package codegen

import (
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/plans"
)

// prediction is the cost model's view of a dispatch on an AMD GPU: the time of its
// slowest part, all of which overlap, and of the dispatch itself.
//
//	bytes    what it must move, over the bandwidth
//	issue    busy cycles of all subgroups, shared out over the SIMDs
//	latency  rounds of resident subgroups, each of which takes as long as one
//
// Cycles are the compiler's, corrected by kernel.Func.Weigh. They know nothing of
// caches, nor of lanes that wait for each other; the KV cache is as good as empty.
type prediction struct {
	seconds float64
	bound   string // the slowest part
	waves   int    // subgroups that a SIMD holds
}

// predict is the model. wave is the subgroup size, grid counts workgroups.
func predict(t *target.Target, r *rating, wave int, grid [3]int, c plans.Cost) prediction {
	p := prediction{waves: t.AMD.Occupancy(wave, r.VGPRs, r.workgroup, r.LDS), bound: "bytes"}
	subgroups := grid[0] * grid[1] * grid[2] * ((r.workgroup + wave - 1) / wave)
	simds := t.AMD.SIMDs(t.Units)
	slots := simds * max(1, p.waves)
	// A SIMD works on whole subgroups: fewer than there are SIMDs take as long as one.
	perSIMD := (subgroups + simds - 1) / simds
	rounds := (subgroups + slots - 1) / slots
	p.seconds = float64(c.ReadBytes+c.WriteBytes) / t.Bandwidth
	for _, part := range []struct {
		name   string
		cycles float64
	}{
		{"issue", float64(perSIMD) * float64(r.InverseThroughput) * r.mean},
		{"latency", float64(rounds) * float64(r.Latency) * r.most},
	} {
		if s := part.cycles / t.AMD.Clock; s > p.seconds {
			p.seconds, p.bound = s, part.name
		}
	}
	p.seconds += t.Stage
	return p
}
