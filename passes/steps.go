package passes

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// assignSteps gives every group the earliest step behind everything that it depends on. Kernels also read parts of the
// step block that no op names: how many rows there are.
func assignSteps(f *ir.Func) {
	made := map[*ir.Value]int{}   // step that makes or last writes a value
	readAt := map[*ir.Value]int{} // last step that reads a value
	seen := map[*ir.Value]bool{}
	for _, g := range f.Groups {
		step := 0
		after := func(m map[*ir.Value]int, v *ir.Value) {
			if s, ok := m[v]; ok {
				step = max(step, s+1)
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
		g.Step = step
		for _, v := range in {
			if !seen[v] || readAt[v] < step {
				readAt[v], seen[v] = step, true
			}
		}
		for _, v := range writes {
			made[v] = step
		}
		for _, op := range g.Ops {
			if op.Result != nil {
				made[op.Result] = step
			}
		}
	}
	slices.SortStableFunc(f.Groups, func(a, b *ir.Group) int { return a.Step - b.Step })
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
