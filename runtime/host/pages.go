package host

import (
	"math"

	"github.com/zincc-dev/zincc/ir"
)

// Pages that no sequence has hold NaNs: a step that reads one says so in its logits. So do those that a sequence has
// just got, where it has not written yet.

// beginPages gives sequences pages of their own, where caches lie in pages.
func (x *Executor) beginPages() error {
	k := x.plan.Paged()
	if k == nil {
		return nil
	}
	copy(x.machine.Ints(x.plan.Program.Global(ir.StepPages)), x.plan.OwnPages(k.Pages).Entries)
	for page := range k.Pages {
		if err := x.poison(page); err != nil {
			return err
		}
	}
	return nil
}

// writeTable sets the first values of the block table.
func (x *Executor) writeTable(table, data []int32) error {
	changed, err := x.plan.ChangedRows(table, data)
	if err != nil {
		return err
	}
	each := x.plan.Paged().Rows / x.plan.Paged().Page
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
		if err := x.poison(int(page)); err != nil {
			return err
		}
	}
	return nil
}

// poison fills a page of all caches with NaNs.
func (x *Executor) poison(page int) error {
	windows, err := x.windows(x.plan.PageRows(page, 0, x.plan.Paged().Page))
	for _, w := range windows {
		for i := range w {
			w[i] = float32(math.NaN())
		}
	}
	return err
}
