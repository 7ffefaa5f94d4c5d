package ir

import (
	"fmt"
	"slices"
)

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

// Groups of caches in pages. Those of a group share a block table, so a sequence has the same pages in all of them.
const (
	WholeGroup  = iota // rows may see all positions
	WindowGroup        // rows see a window: sequences give pages before it back
	PageGroups         // how many there are
)

// TableNames are the regions of the step block with the block tables of the groups.
var TableNames = [PageGroups]string{StepPages, StepWindow}

// PagesUnit is how many positions of a cache a kernel loads at once, at most: of a window those from a multiple of them
// on, also if no row sees the first.
const PagesUnit = 128

// FirstKept is the first position that a sequence keeps in caches of a window if pos is the next to be written, or has
// to be seen later: a page may go if all of its positions lie before.
func FirstKept(pos, window int) int { return max(0, pos+1-window) / PagesUnit * PagesUnit }

// WindowPages is how many pages a pool of some needs for caches of a window, both with the one that is nobody's: enough
// for what each sequence sees at its end and at the place that a later prompt goes on from, for a step of a prompt, and
// for the whole context of one sequence.
func WindowPages(pool, sequences, ctx, window, page int) int {
	one := PagesOf(window+PagesUnit, page) + 1
	return min(pool, 1+max(PagesOf(ctx, page), 2*one*sequences+PagesOf(promptRows, page)))
}

// promptRows is how many rows a step of a prompt has at most.
const promptRows = 2048

// GroupOf returns the group whose block table v is.
func GroupOf(v *Value) int { return slices.Index(TableNames[:], v.Name) }

// TableFor returns the block table of a cache; nil if it does not lie in pages, or no op uses it.
func (p *Program) TableFor(cache *Value) *Value {
	for _, f := range p.Funcs {
		for _, op := range f.Ops() {
			for _, k := range op.Kind.Keeps {
				if k.Class == KV && op.Args[k.Arg] == cache {
					return op.Table()
				}
			}
		}
	}
	return nil
}

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

// checkGroups checks that caches of a group have as many pages, and that each cache is of one group.
func checkGroups(p *Program) error {
	pages, tables := map[*Value]Dim{}, map[*Value]*Value{}
	for _, f := range p.Funcs {
		for _, op := range f.Ops() {
			table := op.Table()
			if table == nil {
				continue
			}
			for _, k := range op.Kind.Keeps {
				c := op.Args[k.Arg]
				if n, ok := pages[table]; ok && n != c.Type.Shape[0] {
					return fmt.Errorf("func %q: cache @%s has %d pages, others of block table @%s have %d", f.Name, c.Name, c.Type.Shape[0], table.Name, n)
				}
				if own := tables[c]; own != nil && own != table {
					return fmt.Errorf("func %q: cache @%s has two block tables, @%s and @%s", f.Name, c.Name, own.Name, table.Name)
				}
				pages[table], tables[c] = c.Type.Shape[0], table
			}
		}
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
		if GroupOf(table) < 0 {
			return fmt.Errorf("%s: block table %s, want one of %q", op.Kind.Name, table, TableNames)
		}
		if block := op.Attrs.Int("block"); block > PagesUnit {
			return fmt.Errorf("%s: blocks of %d positions: sequences keep pages from a multiple of %d on", op.Kind.Name, block, PagesUnit)
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
