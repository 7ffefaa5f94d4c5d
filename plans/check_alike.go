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
	type adding struct {
		*site
		ops []string
	}
	of := map[*Entry]map[string]adding{}
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
		if !s.entry.Alike() {
			continue
		}
		ops := summed(s.fn, s.group)
		if len(ops) == 0 {
			continue
		}
		if of[s.entry] == nil {
			of[s.entry], entries = map[string]adding{}, append(entries, s.entry)
		}
		of[s.entry][s.Site] = adding{s, ops}
	}
	for i := range c.sites {
		s := of[c.sites[i].entry][c.sites[i].Site]
		if s.site != &c.sites[i] {
			continue
		}
		for _, e := range entries {
			switch other := of[e][s.Site]; {
			case e == s.entry:
			case other.site == nil:
				c.addAt("alike", s.site, "%s, which is alike, has no such site", e.Name)
			case !slices.Equal(s.ops, other.ops):
				c.addAt("alike", s.site, "has other ops in %s, which is alike", e.Name)
			case s.group.Call.Sums != other.group.Call.Sums && e == entries[0]:
				c.addAt("alike", s.site, "sums are %q, in %s, which is alike, %q", s.group.Call.Sums, e.Name, other.group.Call.Sums)
			}
		}
	}
}

// summed describes the ops of a group of f but for those that only say where rows lie: of attention with its splits.
// Rows that a group unpacks are those that another one rounds itself. A group that adds up parts of products counts as
// the end of the group that makes them, and has no ops of its own.
func summed(f *ir.Func, g *ir.Group) (list []string) {
	var normed []*ir.Value // squares that scale rows
	for _, op := range withSums(f, g) {
		switch op.Kind.Name {
		case "tile", "untile", "workspace", "squares", "pack12":
		case "unpack12":
			list = append(list, "fixed12")
		case "linear_parts":
			list = append(list, "linear")
		case "add_parts":
			if squares, _ := ir.AddedTo(op); squares != nil && !slices.Contains(normed, squares) {
				normed, list = append(normed, squares), slices.Insert(list, 0, "rmsnorm")
			}
			if partsOf(op) == nil {
				list = append(list, op.Kind.Name)
			}
		case "attention_split":
			list = append(list, op.Kind.Name+op.Attrs.String())
		default:
			list = append(list, op.Kind.Name)
		}
	}
	return list
}

// withSums returns the ops of a group of f and those of the groups that add up its parts of products; none of a group
// that adds up what another one makes.
func withSums(f *ir.Func, g *ir.Group) []*ir.Op {
	if slices.ContainsFunc(g.Ops, func(op *ir.Op) bool { return partsOf(op) != nil && !slices.Contains(g.Ops, partsOf(op)) }) {
		return nil
	}
	if !slices.ContainsFunc(g.Ops, func(op *ir.Op) bool { return op.Kind.Name == "linear_parts" }) {
		return g.Ops
	}
	ops := slices.Clone(g.Ops)
	for _, h := range f.Groups {
		if h != g && slices.ContainsFunc(h.Ops, func(op *ir.Op) bool { return slices.Contains(g.Ops, partsOf(op)) }) {
			ops = append(ops, h.Ops...)
		}
	}
	return ops
}

// partsOf returns the op linear_parts whose parts op adds up, or nil.
func partsOf(op *ir.Op) *ir.Op {
	if op.Kind.Name != "add_parts" {
		return nil
	}
	if made := op.Args[0].Def; made != nil && made.Kind.Name == "linear_parts" {
		return made
	}
	return nil
}
