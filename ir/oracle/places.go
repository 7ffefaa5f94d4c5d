package oracle

import (
	"fmt"

	"github.com/zincc-dev/zincc/ir"
)

// places says in which rows of the caches of an op positions of sequences lie.
type places struct {
	cache     *ir.Value
	ctx       int
	sequences int
	table     ir.PageTable // where the caches lie in pages
}

// places returns those of operand i, a cache.
func (c *call) places(i int) places {
	v := c.op.Args[i]
	p := places{cache: v, ctx: c.prog.Ctx}
	table := c.op.Table()
	if table == nil {
		p.sequences = len(c.arg(i)) / (v.Type.Positions(p.ctx) * width(v))
		return p
	}
	p.sequences = int(table.Type.Shape[0])
	p.table = ir.PageTable{Entries: asInts(c.floats(table)), Each: width(table), Page: int(v.Type.Shape[1])}
	return p
}

// row is the row of a position.
func (p *places) row(sequence, position int) int {
	return p.table.Row(p.cache, p.ctx, sequence, position)
}

// has fails unless a sequence has pages for positions first to last. The sequence and the positions are in range.
func (p *places) has(sequence, first, last int) error {
	if !p.cache.Paged() {
		return nil
	}
	for n := first / p.table.Page; n <= last/p.table.Page; n++ {
		if page := p.table.At(sequence, n*p.table.Page); page <= 0 || page >= int(p.cache.Type.Shape[0]) {
			return fmt.Errorf("slot %d has page %d for its positions from %d on, want one of 1 to %d", sequence, page, n*p.table.Page, p.cache.Type.Shape[0]-1)
		}
	}
	return nil
}

// owns fails unless a sequence has a page for a position that no other has, and that it has nowhere else: who writes it
// changes nothing that another reads.
func (p *places) owns(sequence, position int) error {
	if err := p.has(sequence, position, position); err != nil || !p.cache.Paged() {
		return err
	}
	page, own := p.table.At(sequence, position), sequence*p.table.Each+position/p.table.Page
	for i, e := range p.table.Entries {
		if int(e) == page && i != own {
			return fmt.Errorf("slot %d writes position %d into page %d, which slot %d has, too", sequence, position, page, i/p.table.Each)
		}
	}
	return nil
}
