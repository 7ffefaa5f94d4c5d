package plans

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/layout"
)

// Rows lists what positions [from, to) of a sequence take in the caches that have a row for each position side by side.
func (p *Plan) Rows(sequence, from, to int) []Span {
	return p.cacheRows(ir.KeepPositions, func(t ir.Type, k *Kept) []layout.Range {
		return layout.CacheRows(t, k.Rows, sequence, from, to)
	})
}

// PageRows lists what positions [from, to) of a page take in the caches of a group that lie in pages.
func (p *Plan) PageRows(group, page, from, to int) []Span {
	return p.cacheRows(ir.KeepPages, func(t ir.Type, k *Kept) []layout.Range {
		if k.Group != group {
			return nil
		}
		return layout.PageRows(t, page, from, to)
	})
}

// Rings lists what a sequence takes in the caches that are rings.
func (p *Plan) Rings(sequence int) []Span {
	return p.cacheRows(ir.KeepRing, func(t ir.Type, k *Kept) []layout.Range {
		return layout.CacheRows(t, k.Rows, sequence, 0, k.Rows)
	})
}

// SeenInRings lists what a sequence has in caches that are rings of the positions that kernels load for a row at pos,
// and that lie before it: see ir.FirstKept.
func (p *Plan) SeenInRings(sequence, pos int) []Span {
	return p.cacheRows(ir.KeepRing, func(t ir.Type, k *Kept) (list []layout.Range) {
		for from := max(ir.FirstKept(pos, k.Window), pos-k.Rows); from < pos; {
			n := min(pos-from, k.Rows-from%k.Rows)
			list = append(list, layout.CacheRows(t, k.Rows, sequence, from%k.Rows, from%k.Rows+n)...)
			from += n
		}
		return list
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

// Paged returns what the plan says of caches that lie in pages: of those whose rows see all positions, if there are
// some, which have the most pages. nil: no cache lies in pages.
func (p *Plan) Paged() (most *Kept) {
	for _, r := range p.Memory.KV {
		if r.Kept.Page > 0 && (most == nil || r.Kept.Group < most.Group) {
			most = r.Kept
		}
	}
	return most
}

// PagedIn returns what the plan says of the caches of a group, but for their windows, which may differ: it is the
// largest. nil: there are none.
func (p *Plan) PagedIn(group int) *Kept {
	var all *Kept
	for _, r := range p.Memory.KV {
		if k := r.Kept; k.Page > 0 && k.Group == group && (all == nil || k.Window > all.Window) {
			all = k
		}
	}
	return all
}

// ChangedRows returns the sequences whose rows of the block table of a group differ in the first values of another, or
// an error unless all of these are pages that there are: kernels follow them without a look at how many there are.
func (p *Plan) ChangedRows(group int, table, next []int32) ([]int, error) {
	k := p.PagedIn(group)
	if k == nil || len(next) > len(table) {
		return nil, fmt.Errorf("%d values do not fit the block table, which has %d", len(next), len(table))
	}
	each := k.Rows / k.Page
	var changed []int
	for at := 0; at < len(next); at += each {
		end := min(at+each, len(next))
		if slices.Equal(table[at:end], next[at:end]) {
			continue
		}
		for i, page := range next[at:end] {
			if page < 0 || int(page) >= k.Pages {
				return nil, fmt.Errorf("entry %d of the block table is page %d, which the caches do not have", at+i, page)
			}
		}
		changed = append(changed, at/each)
	}
	return changed, nil
}

// OwnPages returns a block table of a group by which each sequence has pages of its own, as far as there are so many;
// an empty one where there is no such group.
func (p *Plan) OwnPages(group int) ir.PageTable {
	k := p.PagedIn(group)
	if k == nil {
		return ir.PageTable{}
	}
	each := k.Rows / k.Page
	return ir.PageTable{Entries: ir.OwnPages(k.Sequences, each, k.Pages), Each: each, Page: k.Page}
}
