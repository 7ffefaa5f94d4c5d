package host

import (
	"math"

	"github.com/zincc-dev/zincc/ir"
)

// Pages that no sequence has hold NaNs: a step that reads one says so in its logits. So do those that a sequence has
// just got, where it has not written yet.

// beginPages gives sequences pages of their own, where caches lie in pages.
func (x *Executor) beginPages() error {
	for group, name := range ir.TableNames {
		k := x.plan.PagedIn(group)
		if k == nil {
			continue
		}
		copy(x.machine.Ints(x.plan.Program.Global(name)), x.plan.OwnPages(group).Entries)
		for page := range k.Pages {
			if err := x.poison(group, page); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeTable sets the first values of the block table of a group.
func (x *Executor) writeTable(group int, table, data []int32) error {
	changed, err := x.plan.ChangedRows(group, table, data)
	if err != nil {
		return err
	}
	k := x.plan.PagedIn(group)
	each := k.Rows / k.Page
	had := map[int32]bool{}
	for _, i := range changed {
		for _, page := range table[i*each : (i+1)*each] {
			had[page] = true
		}
	}
	copy(table, data)
	for _, page := range table {
		delete(had, page)
	}
	for page := range had {
		if err := x.poison(group, int(page)); err != nil {
			return err
		}
	}
	return nil
}

// poison fills a page of all caches of a group with NaNs.
func (x *Executor) poison(group, page int) error {
	windows, err := x.windows(x.plan.PageRows(group, page, 0, x.plan.PagedIn(group).Page))
	for _, w := range windows {
		for i := range w {
			w[i] = float32(math.NaN())
		}
	}
	return err
}
