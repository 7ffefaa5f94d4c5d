package ir

import "fmt"

// PagesLayout is the layout of a KV cache that lies in pages: its type is [pages, positions of a page, elements], and a
// block table says which page has which positions of which sequence. Page 0 is nobody's: a table has it where a
// sequence has no page.
const PagesLayout = "pages"

// The positions of a page are a power of two. Kernels that take more at once look into the block table for each.
const leastPage, mostPage = 64, 4096

// CheckPage returns an error unless pages may have so many positions.
func CheckPage(positions int) error {
	if positions < leastPage || positions > mostPage || positions&(positions-1) != 0 {
		return fmt.Errorf("pages of %d positions: want a power of two from %d to %d", positions, leastPage, mostPage)
	}
	return nil
}

// Paged reports whether v is a cache that lies in pages.
func (v *Value) Paged() bool { return v.Class == KV && v.Layout == PagesLayout }

// PagesOf is how many pages a sequence of ctx positions has at most.
func PagesOf(ctx, page int) int { return (ctx + page - 1) / page }

// Table returns the operand that is the block table of op's caches, i32[sequences, pages of a sequence]; nil if they do
// not lie in pages.
func (op *Op) Table() *Value {
	for _, k := range op.Kind.Keeps {
		last := op.Args[len(op.Args)-1]
		if k.Class == KV && last.Type.DType == I32 && len(last.Type.Shape) == 2 {
			return last
		}
	}
	return nil
}

// Sinks returns the operand of attention that has the sinks of its heads, nil if there is none.
func (op *Op) Sinks() *Value {
	if len(op.Args) > 5 && op.Args[5] != op.Table() {
		return op.Args[5]
	}
	return nil
}

// PageTable is the content of a block table.
type PageTable struct {
	Entries []int32 // pages, by sequence
	Each    int     // entries of a sequence
	Page    int     // positions of a page
}

// Row returns the row of a cache in which a position of a sequence lies when L is ctx; t is nothing where the cache
// does not lie in pages. Who reads and who writes caches asks nobody else.
func (t PageTable) Row(cache *Value, ctx, sequence, position int) int {
	if !cache.Paged() {
		return cache.Type.Place(ctx, sequence, position)
	}
	return t.At(sequence, position)*t.Page + position%t.Page
}

// TableOf returns the block table of a program that has those entries.
func (p *Program) TableOf(entries []int32) PageTable {
	for _, g := range p.Globals {
		if g.Paged() {
			page := int(g.Type.Shape[1])
			return PageTable{Entries: entries, Each: PagesOf(p.Ctx, page), Page: page}
		}
	}
	return PageTable{}
}

// At returns the page that has a position of a sequence.
func (t PageTable) At(sequence, position int) int {
	return int(t.Entries[sequence*t.Each+position/t.Page])
}

// OwnPages is a block table in which each of some sequences has pages of its own, one behind the other, as far as there
// are pages: of so many, the first of which is nobody's.
func OwnPages(sequences, each, pages int) []int32 {
	table := make([]int32, sequences*each)
	for i := range min(len(table), pages-1) {
		table[i] = int32(i + 1)
	}
	return table
}

// inPages checks that op has a block table if one of caches, its operands, lies in pages, and none if not.
func (op *Op) inPages(caches ...*Value) error {
	table := op.Table()
	if n := len(op.Kind.Params); len(op.Args) == n && table == nil {
		return fmt.Errorf("pages %s are no block table", op.Args[n-1].Type)
	}
	for _, c := range caches {
		if c.Paged() != (table != nil) {
			return fmt.Errorf("cache %s lies in pages: %t, and there is a block table: %t", c.Type, c.Paged(), table != nil)
		}
	}
	return nil
}

// checkPages checks the block table of an op and the caches that it is for.
func checkPages(p *Program, op *Op) error {
	table := op.Table()
	if table == nil {
		return nil
	}
	for _, k := range op.Kind.Keeps {
		c := op.Args[k.Arg].Type
		if err := CheckPage(int(c.Shape[1])); err != nil {
			return fmt.Errorf("%s: cache %s: %w", op.Kind.Name, c, err)
		}
		each := PagesOf(p.Ctx, int(c.Shape[1]))
		if want := MakeType(I32, Dim(p.Slots), Dim(each)); table.Class != Step || !table.Type.Equal(want) {
			return fmt.Errorf("%s: block table %s %s of cache %s, want step %s", op.Kind.Name, table.Class, table.Type, c, want)
		}
		if int(c.Shape[0]) <= each {
			return fmt.Errorf("%s: cache %s has no %d pages for one sequence beside the one that is nobody's", op.Kind.Name, c, each)
		}
	}
	return nil
}
