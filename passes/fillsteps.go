package passes

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

const (
	// mostLate is how many steps later than it could a group may begin: what it reads and writes lives longer.
	mostLate = 3
	// leastMoved is the work of a group that is worth a place beside others, in bytes.
	leastMoved = 64 << 10
	// flopsOfByte is what a device computes while it moves a byte.
	flopsOfByte = 200
)

// fillSteps has groups of many rows that others do not wait for share, of the next steps, the one in which most else is to do: there they fill
// what that leaves of the device. Where they were, a step may wait for less. There such a one stands before those that it came
// to, and of a step runtime/cuda launches the first last: launched before the others it would keep them waiting (docs/lab/between-dispatches.md).
func fillSteps(f *ir.Func) {
	before := dependencies(f)
	last := f.Groups[len(f.Groups)-1].Step
	latest := slices.Repeat([]int{last}, len(f.Groups))
	for i, list := range slices.Backward(before) {
		for _, j := range list {
			latest[j] = min(latest[j], latest[i]-1)
		}
	}
	most := make([]int64, last+1) // that a group of a step has to do which cannot be later
	for i, g := range f.Groups {
		if g.Step == latest[i] {
			most[g.Step] = max(most[g.Step], workOf(f, g))
		}
	}
	for i, g := range f.Groups {
		if g.Step == latest[i] {
			continue
		}
		// Those before may be later now.
		first := 0
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

// dependencies returns, for each group, those that must be done before.
func dependencies(f *ir.Func) [][]int {
	before := make([][]int, len(f.Groups))
	made, read := map[*ir.Value]int{}, map[*ir.Value][]int{} // which group makes or last writes a value; which read that
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

// workOf is what a group has to do, in bytes: those that it reads, and what it computes.
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
