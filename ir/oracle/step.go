package oracle

import (
	"fmt"

	"github.com/zincc-dev/zincc/ir"
)

// rowsOf is the number of rows of the step: @n, or f.Rows in a program without it.
func (m *Machine) rowsOf(f *ir.Func) (int, error) {
	n := f.Rows
	if m.n != nil {
		n = int(m.n[0])
	}
	if n < 1 || n > f.Rows {
		return 0, fmt.Errorf("a step of %d rows, not of 1 to %d", n, f.Rows)
	}
	return n, nil
}

// checkRows holds the step block against what f says of its rows: those of a sequence stand
// side by side at consecutive positions, and all are of one sequence unless f takes many.
func (m *Machine) checkRows(f *ir.Func) error {
	n, err := m.rowsOf(f)
	if err != nil || m.pos == nil || m.slot == nil {
		return err
	}
	if f.Part > 0 {
		return m.checkParts(f, n)
	}
	pos, slot := m.pos[:n], m.slot[:n]
	seen := map[int32]bool{slot[0]: true}
	run := 1 // rows of the sequence so far
	for r := 1; r < n; r++ {
		if run++; slot[r] != slot[r-1] {
			run = 1
		}
		switch {
		case run > f.Run:
			return fmt.Errorf("row %d: a run of more than %d rows of slot %d", r, f.Run, slot[r])
		case slot[r] == slot[r-1] && pos[r] != pos[r-1]+1:
			return fmt.Errorf("row %d: position %d does not follow %d in slot %d", r, pos[r], pos[r-1], slot[r])
		case slot[r] != slot[r-1] && f.Sequences == ir.OneSequence:
			return fmt.Errorf("row %d: slot %d in a step of slot %d, which takes one sequence", r, slot[r], slot[0])
		case slot[r] != slot[r-1] && seen[slot[r]]:
			return fmt.Errorf("row %d: slot %d again: rows of a sequence stand side by side", r, slot[r])
		}
		seen[slot[r]] = true
	}
	return nil
}

// checkParts is checkRows of a function whose steps have parts, for n rows.
func (m *Machine) checkParts(f *ir.Func, n int) error {
	pos, slot := m.pos[:n], m.slot[:n]
	seen := map[int32]bool{}
	run := int32(ir.NoSlot) // the sequence of the rows before
	for r := range n {
		begins := slot[r] != run && slot[r] != ir.NoSlot
		switch {
		case begins && r%f.Part != 0:
			return fmt.Errorf("row %d: slot %d begins within a part of %d rows", r, slot[r], f.Part)
		case begins && seen[slot[r]]:
			return fmt.Errorf("row %d: slot %d again: a sequence has one run", r, slot[r])
		case slot[r] == ir.NoSlot && (r%f.Part == 0 || r == n-1):
			return fmt.Errorf("row %d: dead where a part begins or the step ends", r)
		case slot[r] == ir.NoSlot && pos[r] != pos[r-1]:
			return fmt.Errorf("row %d: position %d of a dead row behind %d", r, pos[r], pos[r-1])
		case slot[r] != ir.NoSlot && !begins && (slot[r-1] == ir.NoSlot || pos[r] != pos[r-1]+1):
			return fmt.Errorf("row %d: position %d does not follow %d in slot %d", r, pos[r], pos[r-1], slot[r])
		}
		if begins {
			run, seen[slot[r]] = slot[r], true
		}
	}
	return nil
}
