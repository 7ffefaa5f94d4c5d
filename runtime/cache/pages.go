package cache

import (
	"github.com/zincc-dev/zincc/ir"
)

// Pages knows which pages of a device's caches sequence slots have, of each group of caches. A page that several have
// nobody writes. Page 0 is nobody's, and stands where a slot has none. In caches of a window slots have pages from that
// on which rows still see. It is for one goroutine.
type Pages struct {
	groups [ir.PageGroups]group
	seen   []int32 // slots that Spare has found to have a page, by page
}

// Group is what there is of a group of caches: the zero value if no cache is of it.
type Group struct {
	Table  ir.PageTable // says how many entries the slots' tables have
	Pages  int          // page 0 among them
	Window int          // that rows see; 0: all positions
	Ahead  int          // of caches of a window: for how many positions a slot has pages beyond what it holds
}

type group struct {
	Group
	users []int32 // slots that have a page, by page
	free  []int32
	more  int   // pages that several slots have
	has   []int // pages, by slot
}

// Counts is how many pages there are of each group.
type Counts [ir.PageGroups]int

// Sum is how many these are together.
func (c Counts) Sum() (n int) {
	for _, k := range c {
		n += k
	}
	return n
}

// Plus returns c and others of each group together.
func (c Counts) Plus(others Counts) Counts {
	for g, n := range others {
		c[g] += n
	}
	return c
}

// Within says whether there are so many of each group.
func (c Counts) Within(there Counts) bool {
	for g, n := range c {
		if n > there[g] {
			return false
		}
	}
	return true
}

// NewPages makes a pool of the pages of each group, that are all free.
func NewPages(groups [ir.PageGroups]Group) *Pages {
	p := &Pages{}
	for i, of := range groups {
		g := group{Group: of, users: make([]int32, of.Pages)}
		if of.Pages > 0 {
			g.Table.Entries = make([]int32, len(of.Table.Entries))
			g.has = make([]int, len(of.Table.Entries)/of.Table.Each)
		}
		for n := of.Pages - 1; n > 0; n-- {
			g.free = append(g.free, int32(n))
		}
		p.groups[i] = g
	}
	return p
}

// Table is the block table of a group of all slots, valid until the next change.
func (p *Pages) Table(group int) ir.PageTable { return p.groups[group].Table }

// each calls f for the groups that there are, and returns what it counts.
func (p *Pages) each(f func(g *group) int) (c Counts) {
	for i := range p.groups {
		if g := &p.groups[i]; g.Pages > 0 {
			c[i] = f(g)
		}
	}
	return c
}

// Free is how many pages nobody has.
func (p *Pages) Free() Counts { return p.each(func(g *group) int { return len(g.free) }) }

// Need is how many pages so many positions take at once: in caches of a window no more than those that rows see, and
// those of Group.Ahead.
func (p *Pages) Need(positions int) Counts {
	return p.each(func(g *group) int {
		n := g.need(positions)
		if g.Window > 0 {
			n = min(n, g.need(g.Window+g.Ahead)+2) // of which neither end may be whole
		}
		return n
	})
}

func (g *group) need(positions int) int { return ir.PagesOf(positions, g.Table.Page) }

// of is the table of a slot.
func (g *group) of(slot int) []int32 {
	return g.Table.Entries[slot*g.Table.Each : (slot+1)*g.Table.Each]
}

// seenFrom is the first page of which a row at a position sees some.
func (g *group) seenFrom(pos int) int {
	if g.Window == 0 {
		return 0
	}
	return ir.FirstKept(pos, g.Window) / g.Table.Page
}

// end is up to where a slot gets pages that is to have some for positions [from, to).
func (g *group) end(from, to int) int {
	if g.Window > 0 {
		to = min(to, from+g.Ahead)
	}
	return to
}

// set puts a page, or none, into a slot's table, and frees the one that was there if nobody else has it.
func (g *group) set(slot, i int, page int32) {
	entry := &g.of(slot)[i]
	if page > 0 {
		g.has[slot]++
		if g.users[page]++; g.users[page] == 2 {
			g.more++
		}
	}
	if old := *entry; old > 0 {
		g.has[slot]--
		switch g.users[old]--; g.users[old] {
		case 0:
			g.free = append(g.free, old)
		case 1:
			g.more--
		}
	}
	*entry = page
}

// Drop takes a slot's pages behind its first so many positions away.
func (p *Pages) Drop(slot, positions int) {
	p.each(func(g *group) int { g.drop(slot, positions); return 0 })
}

func (g *group) drop(slot, positions int) {
	for i := g.need(positions); i < g.Table.Each; i++ {
		g.set(slot, i, 0)
	}
}

// GiveBack takes pages of caches of a window from a slot: those that neither a row at pos or behind sees, nor one that
// goes on at one of the places. It says whether there were some.
func (p *Pages) GiveBack(slot, pos int, places ...int) bool {
	given := p.each(func(g *group) (n int) {
		own := g.of(slot)
	pages:
		for i := range min(len(own), g.seenFrom(pos)) {
			if own[i] == 0 {
				continue
			}
			for _, at := range places {
				if i >= g.seenFrom(at) && i*g.Table.Page < at {
					continue pages
				}
			}
			g.set(slot, i, 0)
			n++
		}
		return n
	})
	return given.Sum() > 0
}

// Sees says whether a slot has all pages that a row at pos sees, of what it has written before.
func (p *Pages) Sees(slot, pos int) bool {
	lacks := p.each(func(g *group) (n int) {
		for _, page := range g.of(slot)[g.seenFrom(pos):max(g.seenFrom(pos), g.need(pos))] {
			if page == 0 {
				n++
			}
		}
		return n
	})
	return lacks.Sum() == 0
}

// Share gives a slot another's pages of the first so many positions, in place of all that it had.
func (p *Pages) Share(to, from, positions int) {
	p.each(func(g *group) int {
		first := g.seenFrom(positions)
		for i, page := range g.of(from)[:g.need(positions)] {
			if i < first {
				page = 0
			}
			g.set(to, i, page)
		}
		g.drop(to, positions)
		return 0
	})
}

// Lacks is how many free pages a slot takes to have positions [from, to) for itself.
func (p *Pages) Lacks(slot, from, to int) Counts {
	return p.each(func(g *group) (n int) {
		for _, page := range g.of(slot)[from/g.Table.Page : g.need(g.end(from, to))] {
			if page == 0 || g.users[page] > 1 {
				n++
			}
		}
		return n
	})
}

// Own gives a slot pages for positions [from, to) that no other has, and none behind; so many as it lacks are free. It
// returns the page of each group where the positions before from are that are to be copied to the page that has them
// now; 0 where there are none.
func (p *Pages) Own(slot, from, to int) (moved Counts) {
	return p.each(func(g *group) (moved int) {
		own, end := g.of(slot), g.end(from, to)
		for i := from / g.Table.Page; i < g.need(end); i++ {
			if old := own[i]; old == 0 || g.users[old] > 1 {
				if i*g.Table.Page < from {
					moved = int(old)
				}
				last := len(g.free) - 1
				page := g.free[last]
				g.free = g.free[:last]
				g.set(slot, i, page)
			}
		}
		g.drop(slot, end)
		return moved
	})
}

// Spare is how many pages are free, or would be if the slots that may be emptied were, and how many of the pages that a
// row behind a slot's first whole positions sees would stay.
func (p *Pages) Spare(may func(slot int) bool, slot, positions int) (spare, stay Counts) {
	for i := range p.groups {
		g := &p.groups[i]
		if g.Pages == 0 {
			continue
		}
		p.seen = append(p.seen[:0], make([]int32, g.Pages)...)
		spare[i] = len(g.free)
		for slot, n := range g.has {
			if n == 0 || !may(slot) {
				continue
			}
			for _, page := range g.of(slot) {
				if page == 0 {
					continue
				}
				if p.seen[page]++; p.seen[page] == g.users[page] {
					spare[i]++
				}
			}
		}
		if slot < 0 {
			continue
		}
		first, last := g.seenFrom(positions), positions/g.Table.Page
		for _, page := range g.of(slot)[min(first, last):last] {
			if page > 0 && p.seen[page] < g.users[page] {
				stay[i]++
			}
		}
	}
	return spare, stay
}

// Has is how many pages a slot has.
func (p *Pages) Has(slot int) Counts { return p.each(func(g *group) int { return g.has[slot] }) }

// Alone is how many pages a slot has that no other has.
func (p *Pages) Alone(slot int) int {
	return p.each(func(g *group) (n int) {
		for _, page := range g.of(slot) {
			if page > 0 && g.users[page] == 1 {
				n++
			}
		}
		return n
	}).Sum()
}

// PageStats counts pages, those of all groups together. Held are those that slots have; those that several have count
// once there, and are Shared.
type PageStats struct {
	Positions                 int // of a page
	Total, Free, Held, Shared int
}

// Stats returns the counts.
func (p *Pages) Stats() (s PageStats) {
	for _, g := range p.groups {
		if g.Pages > 0 {
			total := g.Pages - 1
			s.Positions = g.Table.Page
			s.Total, s.Free, s.Held, s.Shared = s.Total+total, s.Free+len(g.free), s.Held+total-len(g.free), s.Shared+g.more
		}
	}
	return s
}
