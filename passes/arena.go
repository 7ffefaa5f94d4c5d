package passes

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// ArenaAlign is the alignment of every arena offset, in bytes: a cache line of
// the devices at hand, and more than any load needs.
const ArenaAlign = 256

// span is a value's place in time and memory.
type span struct {
	v           *ir.Value
	first, last int // stages, inclusive
	bytes       int64
}

// placeArena gives every value that one group makes and another reads an offset
// in the arena. Values share bytes only if a barrier stands between the last use
// of one and the first use of the other. It places the largest value first, at the lowest offset that fits. For
// the few sizes of a transformer that is optimal or close to it.
func placeArena(p *ir.Program) error {
	for _, f := range p.Funcs {
		spans, err := lifetimes(f, p.Ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		slices.SortStableFunc(spans, func(a, b span) int {
			return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.first, b.first), cmp.Compare(a.v.ID, b.v.ID))
		})
		placed := map[int][]span{} // by stage in which they live
		for _, s := range spans {
			s.v.Offset = lowestFit(s, placed)
			for stage := s.first; stage <= s.last; stage++ {
				placed[stage] = append(placed[stage], s)
			}
		}
	}
	return nil
}

// lowestFit returns the lowest offset at which s overlaps no placed span
// with an overlapping lifetime.
func lowestFit(s span, placed map[int][]span) int64 {
	var busy []span
	for stage := s.first; stage <= s.last; stage++ {
		busy = append(busy, placed[stage]...)
	}
	slices.SortFunc(busy, func(a, b span) int { return cmp.Compare(a.v.Offset, b.v.Offset) })
	at := int64(0)
	for _, o := range busy {
		if at+s.bytes <= o.v.Offset {
			break
		}
		at = max(at, align(o.v.Offset+o.bytes))
	}
	return at
}

func align(n int64) int64 { return (n + ArenaAlign - 1) / ArenaAlign * ArenaAlign }

// lifetimes returns the arena values of f that leave their group, and the groups'
// scratch.
func lifetimes(f *ir.Func, ctx int) ([]span, error) {
	uses := f.Uses()
	stageOf := map[*ir.Op]int{}
	for _, g := range f.Groups {
		for _, op := range g.Ops {
			stageOf[op] = g.Stage
		}
	}
	var spans []span
	for _, g := range f.Groups {
		for _, v := range append(g.Outputs(uses), g.Scratch(uses)...) {
			if v.Class != ir.Arena {
				continue
			}
			bytes, err := v.Type.Bytes(f.Rows, ctx)
			if err != nil {
				return nil, err
			}
			s := span{v: v, first: g.Waits, last: g.Stage, bytes: bytes}
			for _, u := range uses[v] {
				s.last = max(s.last, stageOf[u])
			}
			spans = append(spans, s)
		}
	}
	return spans, nil
}

// ArenaBytes is the size of the arena that f needs.
func ArenaBytes(f *ir.Func, ctx int) (int64, error) {
	var size int64
	for _, op := range f.Ops() {
		r := op.Result
		if r == nil || r.Offset < 0 {
			continue
		}
		n, err := r.Type.Bytes(f.Rows, ctx)
		if err != nil {
			return 0, err
		}
		size = max(size, align(r.Offset+n))
	}
	return size, nil
}
