package passes

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

const (
	// mostLate bounds the stages by which a group moves, because its operands and results then live longer.
	mostLate = 3
	// leastMoved is the least work of a group that moves, in bytes.
	leastMoved = 64 << 10
	// flopsOfByte is the operations that a device computes while it moves a byte.
	flopsOfByte = 200
	// bytesOfRow is what a row of a delta rule counts for: more than a device moves in the 0.1 us that it takes, as the
	// rule leaves most of each unit idle (docs/lab/hybrids.md).
	bytesOfRow = 1 << 20
)

// fillStages moves groups of many rows to later stages. assignStages gives each group its earliest stage, but a group
// for which nothing waits can run later. It moves to the one of the next mostLate stages whose largest group has the
// most work, and uses the units which that group leaves idle; the stage that it leaves may end sooner.
func fillStages(f *ir.Func) {
	before := dependencies(f)
	last := f.Groups[len(f.Groups)-1].Stage
	latest := slices.Repeat([]int{last}, len(f.Groups))
	for i, list := range slices.Backward(before) {
		for _, j := range list {
			latest[j] = min(latest[j], latest[i]-1)
		}
	}
	most := make([]int64, last+1) // work of a stage's largest group among those that cannot be later
	for i, g := range f.Groups {
		if g.Stage == latest[i] {
			most[g.Stage] = max(most[g.Stage], workOf(f, g))
		}
	}
	for i, g := range f.Groups {
		if g.Stage == latest[i] {
			continue
		}
		first := 0 // what it depends on may have moved
		for _, j := range before[i] {
			first = max(first, f.Groups[j].Stage+1)
		}
		g.Stage = first
		if workOf(f, g) < leastMoved {
			continue
		}
		for s := first + 1; s <= min(latest[i], first+mostLate); s++ {
			if most[s] > most[g.Stage] {
				g.Stage = s
			}
		}
	}
	byStage(f)
}

// byStage puts groups in order of their stages.
func byStage(f *ir.Func) {
	slices.SortStableFunc(f.Groups, func(a, b *ir.Group) int { return a.Stage - b.Stage })
}

// dependencies returns, for each group, those that must end before it begins.
func dependencies(f *ir.Func) [][]int {
	before := make([][]int, len(f.Groups))
	made, read := map[*ir.Value]int{}, map[*ir.Value][]int{} // the group that made or last wrote a value; those that have read it since
	for i, g := range f.Groups {
		in, writes := g.Inputs(), writesOf(g)
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

// workOf is the work of a group in bytes: the bytes that it reads, its operations at flopsOfByte, and the rows of a
// delta rule at bytesOfRow.
func workOf(f *ir.Func, g *ir.Group) (n int64) {
	for _, op := range g.Ops {
		flops, _ := op.Kind.Flops(op, ir.StepSize{Rows: f.Rows, Sequences: 1, Positions: f.Rows})
		n += flops / flopsOfByte
		if op.Kind.Name == "deltanet" || op.Kind.Name == "deltanet_chunked" {
			n += int64(f.Rows) * bytesOfRow
		}
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
