package plans

import (
	"fmt"
	"math"
	"sort"

	"github.com/zincc-dev/zincc/ir"
)

// A plan states the pool of pages that it takes at least. Who loads it may give it more, as the device has memory: no
// kernel knows how many there are, and rule "regions" holds what dispatches say of caches against that.

// pagesOf is how many pages caches have in a pool of so many: those of a window no more than they need.
func (k *Kept) pagesOf(pool int, ctx int) int {
	if k.Group != ir.WindowGroup {
		return pool
	}
	return ir.WindowPages(pool, k.Sequences, ctx, k.Window, k.Page)
}

// PoolBytes is what all that the plan takes of a device has with a pool of so many pages.
func (p *Plan) PoolBytes(pages int) int64 {
	bytes := p.MemoryBytes()
	for _, r := range p.Memory.KV {
		if k := r.Kept; k.Page > 0 {
			bytes += int64(p.PagedIn(k.Group).pagesOf(pages, p.Header.Ctx)-k.Pages) * k.RowBytes * int64(k.Page)
		}
	}
	return bytes
}

// MostPages is how many pages a pool may have, page 0 among them: those of the whole context of every sequence, as far
// as kernels can count the elements of a cache in 31 bits.
func (p *Plan) MostPages() int {
	k := p.Paged()
	if k == nil {
		return 0
	}
	most := int64(1 + k.Sequences*(k.Rows/k.Page))
	for _, g := range p.Program.Globals {
		if g.Paged() {
			most = min(most, math.MaxInt32/(int64(g.Type.Shape[1])*int64(g.Type.Shape[2])))
		}
	}
	if k.Group == ir.WindowGroup {
		return k.pagesOf(int(most), p.Header.Ctx)
	}
	return int(most)
}

// PagesIn is how many pages the pool may have where the plan takes no more than so many bytes: no fewer than it states,
// and no more than MostPages.
func (p *Plan) PagesIn(memory int64) int {
	k := p.Paged()
	if k == nil {
		return 0
	}
	return k.Pages + sort.Search(p.MostPages()-k.Pages, func(more int) bool { return p.PoolBytes(k.Pages+more+1) > memory })
}

// SetPages gives the pool so many pages, as if the plan had been compiled so; no fewer than it has. On an error the
// plan is as it was.
func (p *Plan) SetPages(pages int) error {
	k := p.Paged()
	if k == nil {
		return fmt.Errorf("the plan's caches do not lie in pages")
	}
	if most := p.MostPages(); pages < k.Pages || pages > most {
		return fmt.Errorf("%d pages: the plan takes from %d to %d", pages, k.Pages, most)
	}
	if pages == k.Pages {
		return nil
	}
	if bad := partsOfPools(p); len(bad) > 0 {
		return fmt.Errorf("%s", bad[0].Message)
	}
	var of [ir.PageGroups]int // pages, by group
	for group := range of {
		if k := p.PagedIn(group); k != nil {
			of[group] = k.pagesOf(pages, p.Header.Ctx)
		}
	}
	more := map[string]int64{} // bytes, by region
	for i := range p.Memory.KV {
		r := &p.Memory.KV[i]
		if r.Kept.Page == 0 {
			continue
		}
		kept := *r.Kept
		kept.Pages = of[kept.Group]
		more[r.Name] = kept.rows()*kept.RowBytes - r.Bytes
		r.Kept, r.Bytes = &kept, r.Bytes+more[r.Name]
		t := &p.Program.Global(r.Name).Type
		*t = ir.MakeType(t.DType, ir.Dim(kept.Pages), t.Shape[1], t.Shape[2])
	}
	for i := range p.Entries {
		for j := range p.Entries[i].Dispatches {
			args := p.Entries[i].Dispatches[j].Args
			for n := range args {
				if args[n].Space == ir.KV.String() {
					args[n].Bytes += more[args[n].Region]
				}
			}
		}
	}
	p.Require.Memory = p.MemoryBytes()
	return nil
}

// partsOfPools finds dispatches that take a part of a cache in pages: a pool of more pages would not lie in it.
func partsOfPools(p *Plan) (bad []Problem) {
	pools := map[string]int64{}
	for _, r := range p.Memory.KV {
		if r.Kept.Page > 0 {
			pools[r.Name] = r.Bytes
		}
	}
	for _, e := range p.Entries {
		for _, d := range e.Dispatches {
			for _, a := range d.Args {
				if all, ok := pools[a.Region]; ok && a.Space == ir.KV.String() && (a.Offset != 0 || a.Bytes != all) {
					bad = append(bad, Problem{"regions", e.Name, d.Site,
						fmt.Sprintf("argument %q is %d bytes at %d of a cache in pages, which has %d: kernels reach all pages", a.Name, a.Bytes, a.Offset, all)})
				}
			}
		}
	}
	return bad
}

// PageBytes is what a page takes in all caches together; 0 for a plan without pages.
func (p *Plan) PageBytes() (sum int64) {
	for group := range ir.PageGroups {
		sum += p.pageBytes(group)
	}
	return sum
}

// pageBytes is what a page takes in the caches of a group.
func (p *Plan) pageBytes(group int) (sum int64) {
	for _, r := range p.Memory.KV {
		if r.Kept.Group == group {
			sum += r.Kept.RowBytes * int64(r.Kept.Page)
		}
	}
	return sum
}
