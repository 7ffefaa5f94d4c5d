// Package step has the step block: the rows that an entry is run on. Who runs entries fills a Block and stores it into
// an executor; an executor in Go can keep one, to read what was stored.
package step

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// Row is a token of a step, and where in which sequence it stands.
type Row struct{ Token, Pos, Slot int32 }

// columns are the regions of the step block that have a value for each row.
var columns = [...]struct {
	region string
	of     func(r *Row) *int32
}{
	{ir.StepToken, func(r *Row) *int32 { return &r.Token }},
	{ir.StepPos, func(r *Row) *int32 { return &r.Pos }},
	{ir.StepSlot, func(r *Row) *int32 { return &r.Slot }},
}

// other is a region that is written when it has changed.
type other struct {
	region string
	data   *[]int32
}

func (b *Block) others() [3 + ir.PageGroups]other {
	return [...]other{{ir.StepHeads, &b.Heads}, {ir.StepPages, &b.Pages[ir.WholeGroup]}, {ir.StepWindow, &b.Pages[ir.WindowGroup]}, {ir.StepMasked, &b.Masked}, {ir.StepMask, &b.Mask}}
}

// Block is what a step is run on. The zero value has no rows.
type Block struct {
	Rows  []Row
	Count int32 // ids that were chosen before; 0 but in verify: the ids of a submission begin at the start of @out
	// Pages are the block tables of the groups, where caches lie in pages and it is another than before; else nil.
	// Executors begin with plans.Plan.OwnPages.
	Pages [ir.PageGroups][]int32
	// Masked and Mask are what bounds the choice of tokens (ir.StepMasked and ir.StepMask), where that is another than
	// before; else nil. Executors begin without masks.
	Masked, Mask []int32
	// Heads are the rows that get logits in a step of an entry with parts, where that is another than before; else nil.
	// Executors begin with row 0.
	Heads []int32

	data []int32 // of a column, on its way into an executor
}

// Reset takes all rows out.
func (b *Block) Reset() { b.Rows = b.Rows[:0] }

// Add appends a row.
func (b *Block) Add(token int32, pos, slot int) {
	b.Rows = append(b.Rows, Row{token, int32(pos), int32(slot)})
}

// Pad appends the dead rows behind a run, up to the next multiple of part rows, where another may begin.
func (b *Block) Pad(part int) {
	for len(b.Rows)%part != 0 {
		b.Rows = append(b.Rows, Row{0, b.Rows[len(b.Rows)-1].Pos, ir.NoSlot})
	}
}

// Writer is the part of an executor that takes the step block: Write sets the first values of a region. It does not
// keep data.
type Writer interface {
	Write(region string, data []int32) error
}

// Store writes the block into an executor.
func (b *Block) Store(to Writer) error {
	for _, c := range columns {
		b.data = b.data[:0]
		for i := range b.Rows {
			b.data = append(b.data, *c.of(&b.Rows[i]))
		}
		if err := to.Write(c.region, b.data); err != nil {
			return err
		}
	}
	for _, o := range b.others() {
		if *o.data == nil {
			continue
		}
		if err := to.Write(o.region, *o.data); err != nil {
			return err
		}
		*o.data = nil
	}
	b.data = append(b.data[:0], int32(len(b.Rows)), b.Count)
	if err := to.Write(ir.StepN, b.data[:1]); err != nil {
		return err
	}
	return to.Write(ir.StepCount, b.data[1:])
}

// Write takes what Store writes. Until the number of rows is written, rows of the step before may be behind new ones.
func (b *Block) Write(region string, data []int32) error {
	switch region {
	case ir.StepN:
		n := int(data[0])
		b.Rows = slices.Grow(b.Rows[:0], n)[:n]
		return nil
	case ir.StepCount:
		b.Count = data[0]
		return nil
	}
	for _, o := range b.others() {
		if o.region == region {
			*o.data = append((*o.data)[:0], data...)
			return nil
		}
	}
	for _, c := range columns {
		if c.region == region {
			if more := len(data) - len(b.Rows); more > 0 {
				b.Rows = append(b.Rows, make([]Row, more)...)
			}
			for i, v := range data {
				*c.of(&b.Rows[i]) = v
			}
			return nil
		}
	}
	return fmt.Errorf("the step block has no region %q", region)
}
