package exec

import (
	"slices"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/internal/contents"
)

// table is the block table of caches that lie in pages. It stands behind what else is in the step block, and no
// submission brings it as a whole: 256 sequences of 1,024 pages have 1 MiB of it. Rows go to the device when they have
// changed, each by a copy of its own, and never come back.
type table struct {
	at   int64 // in the step block
	row  int64 // bytes of a sequence
	late []int // rows that the device has not, ascending
}

// newTable puts the table at its place, with pages of its own for each sequence, as far as there are some; nil for a
// plan without pages.
func newTable(plan *plans.Plan, block []byte, at int64) *table {
	k := plan.Paged()
	if k == nil {
		return nil
	}
	own := plan.OwnPages(k.Pages)
	copy(contents.Numbers[int32](block[at:]), own.Entries)
	t := &table{at: at, row: 4 * int64(own.Each)}
	for i := range k.Sequences {
		t.late = append(t.late, i)
	}
	return t
}

// write takes the first values of the table.
func (t *table) write(plan *plans.Plan, block []byte, data []int32) error {
	have := contents.Numbers[int32](block[t.at:])
	changed, err := plan.ChangedRows(have, data)
	if err != nil {
		return err
	}
	copy(have, data)
	for _, i := range changed {
		if at, late := slices.BinarySearch(t.late, i); !late {
			t.late = slices.Insert(t.late, at, i)
		}
	}
	return nil
}

// putRows adds the works that bring the device the rows of the table which it has not.
func (x *Executor) putRows(s *seat, works []driver.Work) ([]driver.Work, error) {
	m, t := x.memory, x.memory.table
	if t == nil {
		return works, nil
	}
	for _, i := range t.late {
		at := t.at + int64(i)*t.row
		copy(s.up.Bytes()[at:at+t.row], m.block[at:])
		if s.rows[i] == nil {
			w, err := x.dev.Record(driver.Stage{Copies: []driver.Copy{{To: m.step, ToAt: at, From: s.up, FromAt: at, Bytes: t.row}}})
			if err != nil {
				return nil, err
			}
			s.rows[i] = w
		}
		works = append(works, s.rows[i])
	}
	t.late = t.late[:0]
	return works, nil
}
