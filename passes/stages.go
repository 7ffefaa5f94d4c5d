package passes

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// assignStages gives every group the earliest stage behind everything that it depends on. Kernels also read parts of
// the step block that no op names: how many rows there are.
func assignStages(f *ir.Func) {
	made := map[*ir.Value]int{}   // stage that makes or last writes a value
	readAt := map[*ir.Value]int{} // last stage that reads a value
	seen := map[*ir.Value]bool{}
	for _, g := range f.Groups {
		stage := 0
		after := func(m map[*ir.Value]int, v *ir.Value) {
			if s, ok := m[v]; ok {
				stage = max(stage, s+1)
			}
		}
		in, writes := g.Inputs(), writesOf(g)
		if g.Call != nil {
			for _, v := range g.Call.Args {
				if v.Class == ir.Step && !slices.Contains(in, v) {
					in = append(in, v)
				}
			}
		}
		for _, v := range in {
			after(made, v)
		}
		for _, v := range writes {
			after(made, v)
			after(readAt, v)
		}
		g.Stage = stage
		for _, v := range in {
			if !seen[v] || readAt[v] < stage {
				readAt[v], seen[v] = stage, true
			}
		}
		for _, v := range writes {
			made[v] = stage
		}
		for _, op := range g.Ops {
			if op.Result != nil {
				made[op.Result] = stage
			}
		}
	}
	byStage(f)
}

// writesOf returns what a group writes: what its ops do, and the counters of last-block reductions, which its kernel
// needs for itself.
func writesOf(g *ir.Group) []*ir.Value {
	writes := g.Writes()
	if g.Call != nil {
		for _, v := range g.Call.Args {
			if v.Name == ir.Arrivals && v.Class == ir.Step {
				writes = append(slices.Clone(writes), v)
			}
		}
	}
	return writes
}
