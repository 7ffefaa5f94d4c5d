package plans

import (
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/ir"
)

// A plan states the pool of pages that it takes at least. Who loads it may give it more, as the device has memory: no
// kernel knows how many there are, and rule "regions" holds what dispatches say of caches against that.

// PageBytes is what a page takes in all caches together; 0 for a plan without pages.
func (p *Plan) PageBytes() int64 {
	sum := int64(0)
	for _, r := range p.Memory.KV {
		sum += r.Kept.RowBytes * int64(r.Kept.Page)
	}
	return sum
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
	return int(most)
}

// PagesIn is how many pages the pool may have where the plan takes no more than so many bytes: no fewer than it states,
// and no more than MostPages.
func (p *Plan) PagesIn(memory int64) int {
	k, page := p.Paged(), p.PageBytes()
	if k == nil {
		return 0
	}
	more := (memory - p.MemoryBytes()) / page
	return int(max(int64(k.Pages), min(int64(k.Pages)+more, int64(p.MostPages()))))
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
	more := map[string]int64{} // bytes, by region
	for i := range p.Memory.KV {
		r := &p.Memory.KV[i]
		if r.Kept.Page == 0 {
			continue
		}
		kept := *r.Kept
		kept.Pages = pages
		more[r.Name] = kept.rows()*kept.RowBytes - r.Bytes
		r.Kept, r.Bytes = &kept, r.Bytes+more[r.Name]
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
	for _, g := range p.Program.Globals {
		if g.Paged() {
			g.Type = ir.MakeType(g.Type.DType, ir.Dim(pages), g.Type.Shape[1], g.Type.Shape[2])
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
