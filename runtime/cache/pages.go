package cache

import (
	"sort"

	"github.com/zincc-dev/zincc/ir"
)

// Pages knows which pages of a device's caches sequence slots have. A page that several have nobody writes. Page 0 is
// nobody's, and stands where a slot has none. It is for one goroutine.
type Pages struct {
	table ir.PageTable
	users []int32 // slots that have a page, by page
	free  []int32
	more  int     // pages that several slots have
	seen  []int32 // slots that Spare has found to have a page, by page
}

// NewPages makes a pool of so many pages, page 0 among them, that are all free. like says how many entries the slots'
// tables have.
func NewPages(like ir.PageTable, pages int) *Pages {
	p := &Pages{table: like, users: make([]int32, pages)}
	p.table.Entries = make([]int32, len(like.Entries))
	for n := pages - 1; n > 0; n-- {
		p.free = append(p.free, int32(n))
	}
	return p
}

// Table is the block table of all slots, valid until the next change.
func (p *Pages) Table() ir.PageTable { return p.table }

// Free is how many pages nobody has.
func (p *Pages) Free() int { return len(p.free) }

// Need is how many pages so many positions take.
func (p *Pages) Need(positions int) int { return ir.PagesOf(positions, p.table.Page) }

// of is the table of a slot.
func (p *Pages) of(slot int) []int32 {
	return p.table.Entries[slot*p.table.Each : (slot+1)*p.table.Each]
}

// set puts a page, or none, into a table, and frees the one that was there if nobody else has it.
func (p *Pages) set(entry *int32, page int32) {
	if page > 0 {
		if p.users[page]++; p.users[page] == 2 {
			p.more++
		}
	}
	if old := *entry; old > 0 {
		switch p.users[old]--; p.users[old] {
		case 0:
			p.free = append(p.free, old)
		case 1:
			p.more--
		}
	}
	*entry = page
}

// Drop takes a slot's pages behind its first so many positions away.
func (p *Pages) Drop(slot, positions int) {
	own := p.of(slot)
	for i := p.Need(positions); i < len(own); i++ {
		p.set(&own[i], 0)
	}
}

// Share gives a slot another's pages of the first so many positions, in place of all that it had.
func (p *Pages) Share(to, from, positions int) {
	own := p.of(to)
	for i, page := range p.of(from)[:p.Need(positions)] {
		p.set(&own[i], page)
	}
	p.Drop(to, positions)
}

// Lacks is how many free pages a slot takes to have positions [from, to) for itself.
func (p *Pages) Lacks(slot, from, to int) int {
	n := 0
	for _, page := range p.of(slot)[from/p.table.Page : p.Need(to)] {
		if page == 0 || p.users[page] > 1 {
			n++
		}
	}
	return n
}

// Own gives a slot pages for positions [from, to) that no other has, and none behind; so many as it lacks are free.
// moved says that position from lies in a new page where the positions before it, in the old page, are to be copied to.
func (p *Pages) Own(slot, from, to int) (moved bool) {
	own := p.of(slot)
	for i := from / p.table.Page; i < p.Need(to); i++ {
		if old := own[i]; old == 0 || p.users[old] > 1 {
			moved = moved || old > 0 && i*p.table.Page < from
			last := len(p.free) - 1
			page := p.free[last]
			p.free = p.free[:last]
			p.set(&own[i], page)
		}
	}
	p.Drop(slot, to)
	return moved
}

// Spare is how many pages are free, or would be if the slots that may be emptied were, and how many of the pages of a
// slot's first whole positions would stay.
func (p *Pages) Spare(may func(slot int) bool, slot, positions int) (spare, stay int) {
	p.seen = append(p.seen[:0], make([]int32, len(p.users))...)
	spare = len(p.free)
	for from := 0; from < len(p.table.Entries); from += p.table.Each {
		if p.table.Entries[from] == 0 || !may(from/p.table.Each) {
			continue
		}
		for _, page := range p.of(from / p.table.Each) {
			if page == 0 {
				break
			}
			if p.seen[page]++; p.seen[page] == p.users[page] {
				spare++
			}
		}
	}
	if slot >= 0 {
		for _, page := range p.of(slot)[:positions/p.table.Page] {
			if page > 0 && p.seen[page] < p.users[page] {
				stay++
			}
		}
	}
	return spare, stay
}

// Has is how many pages a slot has.
func (p *Pages) Has(slot int) int {
	own := p.of(slot)
	return sort.Search(len(own), func(i int) bool { return own[i] == 0 })
}

// Alone is how many pages a slot has that no other has.
func (p *Pages) Alone(slot int) int {
	n := 0
	for _, page := range p.of(slot)[:p.Has(slot)] {
		if p.users[page] == 1 {
			n++
		}
	}
	return n
}

// PageStats counts pages. Held are those that slots have; those that several have count once there, and are Shared.
type PageStats struct {
	Positions                 int // of a page
	Total, Free, Held, Shared int
}

// Stats returns the counts.
func (p *Pages) Stats() PageStats {
	total := len(p.users) - 1
	return PageStats{Positions: p.table.Page, Total: total, Free: len(p.free), Held: total - len(p.free), Shared: p.more}
}
