package plans

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// checkExact finds call sites that add in one order in an exact entry and in another order in another one, where they
// compute the same ops. Of entries with copies of other candidates, the first counts.
func checkExact(c *checker) {
	first := map[string]*site{}
	for i := range c.sites {
		s := &c.sites[i]
		if _, copied := tuning.Variant(s.entry.Name); copied || !s.entry.Exact() || s.group.Call == nil {
			continue
		}
		f := first[s.Site]
		if f == nil {
			first[s.Site] = s
			continue
		}
		order, other := tuning.Order(s.group.Call.Candidate), tuning.Order(f.group.Call.Candidate)
		if order != other && slices.EqualFunc(s.group.Ops, f.group.Ops, func(a, b *ir.Op) bool { return a.Kind == b.Kind }) {
			c.addAt("exact", s, "sums are of order %q, in %s of %q", order, f.entry.Name, other)
		}
	}
}
