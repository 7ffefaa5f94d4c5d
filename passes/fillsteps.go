package passes

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

const (
	// mostLate bounds the steps by which a group moves: what it reads and writes lives longer for it.
	mostLate = 3
	// leastMoved is the work of a group, in bytes, from which on it moves.
	leastMoved = 64 << 10
	// flopsOfByte is what a device computes while it moves a byte.
	flopsOfByte = 200
)

// fillSteps moves groups of many rows to later steps. assignSteps gives each group its earliest step; where nothing waits for a group, a later
// one will do. It goes to the step, of the next mostLate, whose largest group has the most to do, and fills what that leaves of the
// device; the step that it leaves may end sooner. In its new step it stands first, and runtime/cuda launches the first of a step last: launched
// before the others it would keep them waiting (docs/lab/between-dispatches.md).
func fillSteps(f *ir.Func) {
	before := dependencies(f)
	last := f.Groups[len(f.Groups)-1].Step
	latest := slices.Repeat([]int{last}, len(f.Groups))
	for i, list := range slices.Backward(before) {
		for _, j := range list {
			latest[j] = min(latest[j], latest[i]-1)
		}
	}
	most := make([]int64, last+1) // work of a step's largest group among those that cannot be later
	for i, g := range f.Groups {
		if g.Step == latest[i] {
			most[g.Step] = max(most[g.Step], workOf(f, g))
		}
	}
	for i, g := range f.Groups {
		if g.Step == latest[i] {
			continue
		}
		first := 0 // what it depends on may have moved
		for _, j := range before[i] {
			first = max(first, f.Groups[j].Step+1)
		}
		g.Step = first
		if workOf(f, g) < leastMoved {
			continue
		}
		for s := first + 1; s <= min(latest[i], first+mostLate); s++ {
			if most[s] > most[g.Step] {
				g.Step = s
			}
		}
	}
	slices.SortStableFunc(f.Groups, func(a, b *ir.Group) int { return a.Step - b.Step })
}

// dependencies returns, for each group, those that must end before it begins.
func dependencies(f *ir.Func) [][]int {
	before := make([][]int, len(f.Groups))
	made, read := map[*ir.Value]int{}, map[*ir.Value][]int{} // the group that made or last wrote a value; those that have read it since
	for i, g := range f.Groups {
		in, writes := g.Inputs(), g.Writes()
		for _, v := range slices.Concat(in, writes) {
			if j, ok := made[v]; ok {
				before[i] = append(before[i], j)
			}
		}
		for _, v := range writes {
			before[i] = append(before[i], read[v]...)
			made[v], read[v] = i, nil
		}
		for _, v := range in {
			if !slices.Contains(writes, v) {
				read[v] = append(read[v], i)
			}
		}
		for _, op := range g.Ops {
			if op.Result != nil {
				made[op.Result] = i
			}
		}
	}
	return before
}

// workOf is what a group has to do, in bytes: those that it reads, and what it computes at flopsOfByte.
func workOf(f *ir.Func, g *ir.Group) (n int64) {
	for _, op := range g.Ops {
		flops, _ := op.Kind.Flops(op, ir.StepSize{Rows: f.Rows, Sequences: 1, Positions: f.Rows})
		n += flops / flopsOfByte
	}
	for _, v := range g.Inputs() {
		if v.Class != ir.KV && v.Class != ir.State { // of which a step reads a part
			if b, err := v.Type.Bytes(f.Rows, 1); err == nil {
				n += b
			}
		}
	}
	return n
}
