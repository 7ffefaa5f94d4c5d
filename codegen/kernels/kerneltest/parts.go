package kerneltest

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// Run is rows of a sequence in a step with parts, from a position on.
type Run struct{ Slot, From, Rows int }

// InParts is the test with a step of so many rows a part that has these runs.
func (c Case) InParts(part int, runs ...Run) Case {
	c.Part, c.Pos, c.Slot = part, nil, nil
	for _, r := range runs {
		for n := len(c.Pos); n%part > 0; n++ {
			c.Pos, c.Slot = append(c.Pos, c.Pos[n-1]), append(c.Slot, ir.NoSlot)
		}
		for i := range r.Rows {
			c.Pos, c.Slot = append(c.Pos, r.From+i), append(c.Slot, r.Slot)
		}
	}
	c.N = len(c.Pos)
	return c
}

// dead reports whether a row of the step is of no sequence.
func (c Case) dead(row int) bool { return c.Part > 0 && At(c.Slot, c.First+row, 0) == ir.NoSlot }

// clearDead clears the rows of v that nobody reads.
func (c Case) clearDead(v *ir.Value, b []byte) {
	if c.Part == 0 || v.Type.Shape[0] != ir.T || v.IsGlobal() {
		return
	}
	for r, n := 0, len(b)/c.Rows; r < c.live(); r++ {
		if c.dead(r) {
			clear(b[r*n:][:n])
		}
	}
}

// alone are the tests that have one of the runs each: the first rows and how many there are.
func (c Case) alone() (list []Case) {
	for r := 0; r < c.live(); r++ {
		if c.dead(r) {
			continue
		}
		one := c
		one.First, one.N = r, 1
		for r+1 < c.live() && At(c.Slot, r+1, 0) == At(c.Slot, r, 0) {
			r, one.N = r+1, one.N+1
		}
		list = append(list, one)
	}
	return list
}

// CheckParts holds that the kernels follow the runs of a step of InParts: they leave for each the bits of a step that
// has it alone, and nothing else in caches and states, in the interpreter.
func (c Case) CheckParts(t testing.TB, on *target.Target) {
	t.Helper()
	for _, k := range Different(c.Candidates(t, c.Site(t, on))) {
		c.Kernel = k.Kernel
		whole := c.FirstOf(t, on, InterpretOnly)
		caches := map[string][][]byte{} // that are only written, as each run leaves them
		given := maps.Clone(c.Given)
		if given == nil {
			given = map[string][]byte{}
		}
		for _, one := range c.alone() {
			one.Given = maps.Clone(given)
			left := one.FirstOf(t, on, InterpretOnly)
			for _, o := range k.Operands {
				v, label := o.Value, Label(o.Value)
				switch {
				case o.Access&kernel.Write == 0 || whole[label] == nil:
				case v.IsGlobal() && o.Access == kernel.Write:
					caches[label] = append(caches[label], left[label])
				case v.IsGlobal():
					given[v.Name] = left[label]
				default:
					one.checkAlone(t, k.Kernel, v, left[label], whole[label])
				}
			}
		}
		for _, o := range k.Operands {
			v, label := o.Value, Label(o.Value)
			if v.IsGlobal() && o.Access == kernel.ReadWrite && !bytes.Equal(given[v.Name], whole[label]) {
				t.Errorf("%s: %s is not what the runs leave one behind the other", k.Kernel, label)
			}
			for i, b := range whole[label] {
				if list := caches[label]; list != nil && !slices.ContainsFunc(list, func(one []byte) bool { return one[i] == b }) {
					t.Errorf("%s: byte %d of %s is none that a run writes", k.Kernel, i, label)
					break
				}
			}
		}
	}
}

// checkAlone compares what a step of one run leaves in an output with what the step of all leaves there.
func (c Case) checkAlone(t testing.TB, kernel string, v *ir.Value, left, whole []byte) {
	t.Helper()
	row, rows := len(whole)/c.Rows, 1
	if v.Type.Shape[0] != ir.T { // in tiles
		row, rows = len(whole)/(c.Rows/ir.TileRows), ir.TileRows
	}
	n := (c.N + rows - 1) / rows * row
	if !bytes.Equal(left[:n], whole[c.First/rows*row:][:n]) {
		t.Errorf("%s: %s has other bits than with %d rows from row %d on alone", kernel, Label(v), c.N, c.First)
	}
}
