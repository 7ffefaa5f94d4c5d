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
