package exec

import (
	"fmt"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/internal/contents"
)

// mask is what bounds the choice of tokens (ir.StepMask). It stands behind what else is in the step block: of it the
// rows that the host has written go to the device, when it has written them, and never come back.
type mask struct {
	at    int64 // in the step block
	bytes int64
	row   int64 // bytes of a row
	late  int64 // bytes that the device has not, from the first on
}

func newMask(plan *plans.Plan, p place) *mask {
	g := plan.Program.Global(ir.StepMask)
	if g == nil {
		return nil
	}
	return &mask{at: p.at, bytes: p.bytes, row: 4 * int64(g.Type.Last())}
}

// write takes the first rows.
func (m *mask) write(block []byte, data []int32) {
	copy(contents.Numbers[int32](block[m.at:m.at+m.bytes]), data)
	n := (4*int64(len(data)) + m.row - 1) / m.row * m.row
	m.late = max(m.late, n)
}

// fresh says that the device has the mask as the host has written it.
func (m *mask) fresh() bool { return m == nil || m.late == 0 }

// putMask adds the work that brings the device the rows of the mask which it has not.
func (x *Executor) putMask(s *seat, works []driver.Work) ([]driver.Work, error) {
	m := x.memory.mask
	if m.fresh() {
		return works, nil
	}
	copy(s.up.Bytes()[m.at:m.at+m.late], x.memory.block[m.at:])
	if s.masks[m.late] == nil {
		w, err := x.dev.Record(driver.Stage{Copies: []driver.Copy{{To: x.memory.step, ToAt: m.at, From: s.up, FromAt: m.at, Bytes: m.late}}})
		if err != nil {
			return nil, err
		}
		s.masks[m.late] = w
	}
	works, m.late = append(works, s.masks[m.late]), 0
	return works, nil
}

// check refuses rows of the mask that there are not: kernels follow them without a look at how many there are.
func (m *mask) check(masked []int32) error {
	for row, i := range masked {
		if i < 0 || int64(i) > m.bytes/m.row {
			return fmt.Errorf("row %d of the step has row %d of the mask, which has %d", row, i-1, m.bytes/m.row)
		}
	}
	return nil
}
