package plans

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// checkAlike finds call sites that add in one order in an entry of class alike and in another order in another one: the
// calls state other sums, or the groups have other ops. How rows are laid out in memory does not matter. Of entries
// with copies of other candidates, the first counts.
func checkAlike(c *checker) {
	of := map[*Entry]map[string]*site{}
	var entries []*Entry
	for i := range c.sites {
		s := &c.sites[i]
		_, copied := tuning.Variant(s.entry.Name)
		switch {
		case s.group.Call == nil || copied:
			continue
		case !s.entry.Alike() && s.group.Call.Sums != "":
			c.addAt("alike", s, "sums %q are stated, and the class is %q", s.group.Call.Sums, s.entry.Class)
		}
		if !s.entry.Alike() || len(summed(s.group)) == 0 {
			continue
		}
		if of[s.entry] == nil {
			of[s.entry], entries = map[string]*site{}, append(entries, s.entry)
		}
		of[s.entry][s.Site] = s
	}
	for i := range c.sites {
		s := &c.sites[i]
		if of[s.entry][s.Site] != s {
			continue
		}
		for _, e := range entries {
			switch other := of[e][s.Site]; {
			case e == s.entry:
			case other == nil:
				c.addAt("alike", s, "%s, which is alike, has no such site", e.Name)
			case !slices.Equal(summed(s.group), summed(other.group)):
				c.addAt("alike", s, "has other ops in %s, which is alike", e.Name)
			case s.group.Call.Sums != other.group.Call.Sums && e == entries[0]:
				c.addAt("alike", s, "sums are %q, in %s, which is alike, %q", s.group.Call.Sums, e.Name, other.group.Call.Sums)
			}
		}
	}
}

// summed describes the ops of a group but for those that only say where rows lie: of attention with its splits.
func summed(g *ir.Group) (list []string) {
	for _, op := range g.Ops {
		switch op.Kind.Name {
		case "tile", "untile", "workspace":
		case "attention_split":
			list = append(list, op.Kind.Name+op.Attrs.String())
		default:
			list = append(list, op.Kind.Name)
		}
	}
	return list
}
