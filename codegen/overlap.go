package codegen

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/passes"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// overlap says of each kernel how it takes part where dispatches begin early: what it may load before it waits, and
// when it lets the next one begin. What it says of a dispatch holds for those of copies of the entry, too: tuning puts
// dispatches of one between those of another.
func (e *emitter) overlap() {
	type site struct{ entry, name string }
	late := map[site]bool{}
	for _, f := range e.p.Funcs {
		when := passes.EarlyOf(f, e.t.Overlaps())
		entry, _ := tuning.Variant(f.Name)
		for i, g := range f.Groups {
			c := e.chosen[g]
			if c.Overlap = when; g.Early == ir.LoadsFirst && c.Early {
				before := f.Groups[i-1] // while which it begins
				c.EarlyLoads, late[site{entry, before.Name}] = earlyLoads(g, c, e.chosen[before]), true
			}
		}
	}
	for _, f := range e.p.Funcs {
		entry, _ := tuning.Variant(f.Name)
		for _, g := range f.Groups {
			e.chosen[g].LateTrigger = late[site{entry, g.Name}]
		}
	}
}

// earlyLoads says which operands of c, of group g, its kernel loads early: variables that neither the dispatch before
// writes nor the group makes.
func earlyLoads(g *ir.Group, c, before *kernels.Candidate) []bool {
	written := map[*ir.Value]bool{}
	for _, o := range before.Operands {
		written[o.Value] = written[o.Value] || o.Access&kernel.Write != 0
	}
	list := make([]bool, len(c.Operands))
	for i, o := range c.Operands {
		list[i] = !constant(o.Value) && !written[o.Value] && (o.Value.Def == nil || !slices.Contains(g.Ops, o.Value.Def))
	}
	return list
}

// constant reports whether no dispatch writes a value.
func constant(v *ir.Value) bool { return v.Class == ir.Weight || v.Class == ir.Table }

// constants says of an overlapping candidate that it waits first of all, or else which operands no dispatch writes, and
// which others are loaded early.
func constants(c *kernels.Candidate) string {
	switch c.Overlap {
	case ir.NotEarly:
		return ""
	case ir.WaitsFirst:
		return " behind"
	}
	text := make([]byte, len(c.Operands))
	for i, o := range c.Operands {
		switch {
		case constant(o.Value):
			text[i] = 'c'
		case c.EarlyLoads != nil && c.EarlyLoads[i]:
			text[i] = 's'
		default:
			text[i] = '-'
		}
	}
	if c.LateTrigger {
		text = append(text, " patient"...)
	}
	return " " + string(text)
}
