package exec

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/internal/contents"
)

// table is the block table of a group of caches that lie in pages. Tables stand behind what else is in the step block,
// and no submission brings one as a whole: 256 sequences of 1,024 pages have 1 MiB of it. Rows go to the device when
// they have changed, each by a copy of its own, and never come back.
type table struct {
	group int
	at    int64 // in the step block
	row   int64 // bytes of a sequence
	late  []int // rows that the device has not, ascending
}

// newTables puts the tables at their places, with pages of its own for each sequence, as far as there are some.
func newTables(plan *plans.Plan, block []byte, regions map[string]place) (tables []*table) {
	for group, name := range ir.TableNames {
		k := plan.PagedIn(group)
		if k == nil {
			continue
		}
		own := plan.OwnPages(group)
		t := &table{group: group, at: regions[name].at, row: 4 * int64(own.Each)}
		copy(contents.Numbers[int32](block[t.at:]), own.Entries)
		for i := range k.Sequences {
			t.late = append(t.late, i)
		}
		tables = append(tables, t)
	}
	return tables
}

// write takes the first values of the table.
func (t *table) write(plan *plans.Plan, block []byte, data []int32) error {
	have := contents.Numbers[int32](block[t.at:])
	changed, err := plan.ChangedRows(t.group, have, data)
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

// putRows adds the works that bring the device the rows of the tables which it has not.
func (x *Executor) putRows(s *seat, works []driver.Work) ([]driver.Work, error) {
	m := x.memory
	for _, t := range m.tables {
		for _, i := range t.late {
			at := t.at + int64(i)*t.row
			copy(s.up.Bytes()[at:at+t.row], m.block[at:])
			if s.rows[at] == nil {
				w, err := x.dev.Record(driver.Stage{Copies: []driver.Copy{{To: m.step, ToAt: at, From: s.up, FromAt: at, Bytes: t.row}}})
				if err != nil {
					return nil, err
				}
				s.rows[at] = w
			}
			works = append(works, s.rows[at])
		}
		t.late = t.late[:0]
	}
	return works, nil
}
