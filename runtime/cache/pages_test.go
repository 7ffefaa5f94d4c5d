package cache_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/runtime/cache"
)

// In the pools of TestPages.
const (
	poolSlots, poolEach, poolPage = 5, 6, 64
	poolWindow, poolAhead         = 100, 90
)

// pool is a pool of both groups of caches, and what a device has there.
type pool struct {
	*cache.Pages
	pages  [ir.PageGroups]int
	memory [ir.PageGroups][]int
	want   [poolSlots][]int // what each slot has written, by position, or shares

	stamp int
}

func (p *pool) at(group, slot, pos int) *int {
	return &p.memory[group][p.Table(group).At(slot, pos)*poolPage+pos%poolPage]
}

// write has a slot go on from a position to another, if there are pages.
func (p *pool) write(slot, from, to int) {
	if !p.Lacks(slot, from, to).Within(p.Free()) {
		return
	}
	moved := p.Own(slot, from, to)
	for g, old := range moved {
		if old > 0 {
			copy(p.memory[g][p.Table(g).At(slot, from)*poolPage:][:from%poolPage], p.memory[g][old*poolPage:])
		}
	}
	p.want[slot] = p.want[slot][:from]
	for pos := from; pos < min(to, from+poolAhead); pos++ {
		p.stamp++
		*p.at(ir.WholeGroup, slot, pos), *p.at(ir.WindowGroup, slot, pos) = p.stamp, p.stamp
		p.want[slot] = append(p.want[slot], p.stamp)
	}
	p.Drop(slot, len(p.want[slot]))
}

// TestPages holds a pool against what slots must read: each position of a slot has what the slot wrote there, or what
// the slot had whose pages it shares, and every page that nobody has is free. So it is in caches of a window, from the
// first position on that rows see.
func TestPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &pool{}
		var groups [ir.PageGroups]cache.Group
		for g := range groups {
			p.pages[g] = rapid.IntRange(poolEach+1, poolSlots*poolEach+1).Draw(t, "pages")
			p.memory[g] = make([]int, p.pages[g]*poolPage)
			groups[g] = cache.Group{Table: ir.PageTable{Entries: make([]int32, poolSlots*poolEach), Each: poolEach, Page: poolPage}, Pages: p.pages[g]}
		}
		groups[ir.WindowGroup].Window, groups[ir.WindowGroup].Ahead = poolWindow, poolAhead
		p.Pages = cache.NewPages(groups)
		slot := rapid.IntRange(0, poolSlots-1)
		for range 40 {
			s := slot.Draw(t, "slot")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				n := rapid.IntRange(0, len(p.want[s])).Draw(t, "dropped behind")
				if p.Sees(s, n) {
					p.Drop(s, n)
					p.want[s] = p.want[s][:n]
				}
			case 1:
				other := slot.Draw(t, "other")
				n := rapid.IntRange(0, len(p.want[other])).Draw(t, "shared")
				if other == s || !p.Sees(other, n) {
					continue
				}
				p.Share(s, other, n)
				p.want[s] = slices.Clone(p.want[other][:n])
			case 2:
				n := len(p.want[s])
				place := rapid.IntRange(0, n).Draw(t, "place")
				sees := p.Sees(s, place)
				p.GiveBack(s, n, place)
				if p.Sees(s, place) != sees {
					t.Fatalf("a place at %d is given up behind %d positions", place, n)
				}
			default:
				from := rapid.IntRange(0, min(len(p.want[s]), poolEach*poolPage-1)).Draw(t, "from")
				if p.Sees(s, from) {
					p.write(s, from, rapid.IntRange(from+1, poolEach*poolPage).Draw(t, "to"))
				}
			}
			p.check(t)
			p.checkSpare(t, s, rapid.SliceOfN(rapid.Bool(), poolSlots, poolSlots).Draw(t, "may"), rapid.IntRange(0, len(p.want[s])).Draw(t, "of"))
		}
	})
}

// seenFrom is the first position of which a slot has pages in a group, if its next row is at a position.
func (p *pool) seenFrom(group, pos int) int {
	if group == ir.WindowGroup {
		return ir.FirstKept(pos, poolWindow)
	}
	return 0
}

// check holds tables, counts and what slots read against the model.
func (p *pool) check(t *rapid.T) {
	held, free, more, total := 0, 0, 0, 0
	for g := range ir.PageGroups {
		used := map[int32]bool{}
		for i, page := range p.Table(g).Entries {
			slot, first := i/poolEach, i%poolEach*poolPage
			if page > 0 {
				used[page] = true
			}
			if n := len(p.want[slot]); page > 0 && first >= n || page == 0 && first < n && first+poolPage > p.seenFrom(g, n) {
				t.Fatalf("group %d: slot %d has page %d for positions from %d on, it holds %d", g, slot, page, first, n)
			}
		}
		if len(used)+p.Free()[g] != p.pages[g]-1 {
			t.Fatalf("group %d: %d pages are used and %d free, of %d", g, len(used), p.Free()[g], p.pages[g])
		}
		held, free, more, total = held+len(used), free+p.Free()[g], more+shared(p.Table(g).Entries), total+p.pages[g]-1
	}
	if st := p.Stats(); st != (cache.PageStats{Positions: poolPage, Total: total, Free: free, Held: held, Shared: more}) {
		t.Fatalf("counts %+v", st)
	}
	for s := range p.want {
		if !p.Sees(s, len(p.want[s])) {
			t.Fatalf("slot %d has not what its next row sees", s)
		}
		for pos, w := range p.want[s] {
			if got := *p.at(ir.WholeGroup, s, pos); got != w {
				t.Fatalf("slot %d reads %d at %d, want %d", s, got, pos, w)
			}
			if p.Table(ir.WindowGroup).At(s, pos) > 0 && *p.at(ir.WindowGroup, s, pos) != w {
				t.Fatalf("slot %d reads %d at %d of a window, want %d", s, *p.at(ir.WindowGroup, s, pos), pos, w)
			}
		}
	}
}

// checkSpare holds what would be free without some slots against the tables.
func (p *pool) checkSpare(t *rapid.T, slot int, may []bool, n int) {
	spare, stay := p.Spare(func(slot int) bool { return may[slot] }, slot, n)
	for g := range ir.PageGroups {
		held, stays := map[int32]bool{}, 0
		for i, page := range p.Table(g).Entries {
			if page > 0 && !may[i/poolEach] {
				held[page] = true
			}
		}
		for i := p.seenFrom(g, n) / poolPage; i < n/poolPage; i++ {
			if held[p.Table(g).Entries[slot*poolEach+i]] {
				stays++
			}
		}
		if spare[g] != p.pages[g]-1-len(held) || stay[g] != stays {
			t.Fatalf("group %d: %d pages would be free without some slots, want %d, and %d of slot %d's stay, want %d", g, spare[g], p.pages[g]-1-len(held), stay[g], slot, stays)
		}
	}
}

// TestPagesOfWindows: a sequence that only grows has no more pages of a window than Need says, whatever its length.
func TestPagesOfWindows(t *testing.T) {
	const each = 100
	var groups [ir.PageGroups]cache.Group
	for g := range groups {
		groups[g] = cache.Group{Table: ir.PageTable{Entries: make([]int32, each), Each: each, Page: poolPage}, Pages: each + 1}
	}
	groups[ir.WindowGroup].Window, groups[ir.WindowGroup].Ahead = poolWindow, poolAhead
	p := cache.NewPages(groups)
	most := 0
	for pos := 0; pos < each*poolPage; pos += 40 {
		p.GiveBack(0, pos, 0)
		p.Own(0, pos, each*poolPage)
		if has, need := p.Has(0), p.Need(each*poolPage); !has.Within(need) || has[ir.WholeGroup] != each {
			t.Fatalf("at %d there are %d pages, %d are needed", pos, has, need)
		}
		most = max(most, p.Has(0)[ir.WindowGroup])
	}
	if most > 7 {
		t.Errorf("%d pages for a window of %d and %d ahead", most, poolWindow, poolAhead)
	}
}

// shared counts the pages that stand in a table more than once.
func shared(table []int32) int {
	times, n := map[int32]int{}, 0
	for _, page := range table {
		if times[page]++; page > 0 && times[page] == 2 {
			n++
		}
	}
	return n
}
