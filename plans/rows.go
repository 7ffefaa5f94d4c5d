package plans

import (
	"fmt"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/layout"
)

// Rows lists what positions [from, to) of a sequence take in the caches that have a row for each position side by side.
func (p *Plan) Rows(sequence, from, to int) []Span {
	return p.cacheRows(ir.KeepPositions, func(t ir.Type, k *Kept) []layout.Range {
		return layout.CacheRows(t, k.Rows, sequence, from, to)
	})
}

// PageRows lists what the first n positions of a page take in the caches that lie in pages.
func (p *Plan) PageRows(page, n int) []Span {
	return p.cacheRows(ir.KeepPages, func(t ir.Type, k *Kept) []layout.Range {
		return layout.PageRows(t, page, n)
	})
}

// Rings lists what a sequence takes in the caches that are rings.
func (p *Plan) Rings(sequence int) []Span {
	return p.cacheRows(ir.KeepRing, func(t ir.Type, k *Kept) []layout.Range {
		return layout.CacheRows(t, k.Rows, sequence, 0, k.Rows)
	})
}

// cacheRows lists what is asked for of each cache of a kind, which lies on the device as its type says.
func (p *Plan) cacheRows(kind ir.Keep, rows func(t ir.Type, k *Kept) []layout.Range) []Span {
	var spans []Span
	for _, r := range p.Memory.KV {
		if r.Kept.Kind != kind.String() {
			continue
		}
		t := p.Program.Global(r.Name).Type
		if p.IsHost() { // it holds elements as float32, whatever their type
			t = ir.MakeType(ir.F32, t.Shape...)
		}
		for _, part := range rows(t, r.Kept) {
			spans = append(spans, Span{r.Name, part.Offset, part.Bytes})
		}
	}
	return spans
}

// Paged returns what the plan says of caches that lie in pages, all of which have the same; nil if there are none.
func (p *Plan) Paged() *Kept {
	for _, r := range p.Memory.KV {
		if r.Kept.Page > 0 {
			return r.Kept
		}
	}
	return nil
}

// CheckTable returns an error unless all entries of a block table are pages that there are.
func (p *Plan) CheckTable(table []int32) error {
	k := p.Paged()
	for i, page := range table {
		if k == nil || page < 0 || int(page) >= k.Pages {
			return fmt.Errorf("entry %d of the block table is page %d, which the caches do not have", i, page)
		}
	}
	return nil
}

// OwnPages returns a block table by which each sequence has pages of its own, as far as there are so many; an empty one
// for a plan without pages.
func (p *Plan) OwnPages(pages int) ir.PageTable {
	k := p.Paged()
	if k == nil {
		return ir.PageTable{}
	}
	each := k.Rows / k.Page
	return ir.PageTable{Entries: ir.OwnPages(k.Sequences, each, pages), Each: each, Page: k.Page}
}
