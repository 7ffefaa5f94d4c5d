package cache_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/runtime/cache"
)

// TestPages holds a pool against what slots must read: each position of a slot has what the slot wrote there, or what
// the slot had whose pages it shares, and every page that nobody has is free.
func TestPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const slots, each, page64 = 5, 4, 64
		pages := rapid.IntRange(each+1, slots*each+1).Draw(t, "pages")
		p := cache.NewPages(ir.PageTable{Entries: make([]int32, slots*each), Each: each, Page: page64}, pages)
		memory := make([]int, pages*page64) // what the device has
		want := make([][]int, slots)        // what each slot has, by position
		at := func(slot, pos int) *int { return &memory[p.Table().At(slot, pos)*page64+pos%page64] }
		slot := rapid.IntRange(0, slots-1)
		stamp := 0
		for range 40 {
			s := slot.Draw(t, "slot")
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				n := rapid.IntRange(0, len(want[s])).Draw(t, "dropped behind")
				p.Drop(s, n)
				want[s] = want[s][:n]
			case 1:
				other := slot.Draw(t, "other")
				n := rapid.IntRange(0, len(want[other])).Draw(t, "shared")
				if other == s {
					continue
				}
				p.Share(s, other, n)
				want[s] = slices.Clone(want[other][:n])
			default:
				from := rapid.IntRange(0, min(len(want[s]), each*page64-1)).Draw(t, "from")
				to := rapid.IntRange(from+1, each*page64).Draw(t, "to")
				if p.Lacks(s, from, to) > p.Free() {
					continue
				}
				old := p.Table().At(s, from)
				if p.Own(s, from, to) {
					copy(memory[p.Table().At(s, from)*page64:][:from%page64], memory[old*page64:])
				}
				want[s] = want[s][:from]
				for pos := from; pos < to; pos++ {
					stamp++
					*at(s, pos) = stamp
					want[s] = append(want[s], stamp)
				}
			}
			used := map[int32]bool{}
			for _, page := range p.Table().Entries {
				if page > 0 {
					used[page] = true
				}
			}
			if len(used)+p.Free() != pages-1 {
				t.Fatalf("%d pages are used and %d free, of %d", len(used), p.Free(), pages-1)
			}
			may := rapid.SliceOfN(rapid.Bool(), slots, slots).Draw(t, "may")
			held, stays := map[int32]bool{}, 0
			for s := range may {
				for i, page := range p.Table().Entries[s*each:][:each] {
					if (i < ir.PagesOf(len(want[s]), page64)) != (page > 0) {
						t.Fatalf("slot %d has page %d for positions from %d on, it holds %d", s, page, i*page64, len(want[s]))
					}
					held[page] = held[page] || !may[s] && page > 0
				}
			}
			for page := range held {
				if !held[page] {
					delete(held, page)
				}
			}
			n := rapid.IntRange(0, len(want[s])).Draw(t, "of")
			for _, page := range p.Table().Entries[s*each:][:n/page64] {
				if held[page] {
					stays++
				}
			}
			if spare, stay := p.Spare(func(slot int) bool { return may[slot] }, s, n); spare != pages-1-len(held) || stay != stays {
				t.Fatalf("%d pages would be free without some slots, want %d, and %d of slot %d's stay, want %d", spare, pages-1-len(held), stay, s, stays)
			}
			if st := p.Stats(); st.Held != len(used) || st.Shared != shared(p.Table().Entries) || st.Free != p.Free() || st.Total != pages-1 || st.Positions != page64 {
				t.Fatalf("counts %+v", st)
			}
			for s := range want {
				for pos, w := range want[s] {
					if got := *at(s, pos); got != w {
						t.Fatalf("slot %d reads %d at %d, want %d", s, got, pos, w)
					}
				}
			}
		}
	})
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
