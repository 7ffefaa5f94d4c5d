package codegen

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/passes"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// overlap says of each dispatch when it may begin, what it may load before it waits, and when it lets the next one begin.
func (e *emitter) overlap() {
	mixed := map[string]bool{} // entries with copies: tuning puts dispatches of one between those of another
	for _, f := range e.p.Funcs {
		if entry, copied := tuning.Variant(f.Name); copied {
			mixed[entry] = true
		}
	}
	for _, f := range e.p.Funcs {
		when := overlapOf(e.t, f)
		entry, _ := tuning.Variant(f.Name)
		for i, g := range f.Groups {
			c := e.chosen[g]
			if c.Overlap = when; when != kernels.LoadsFirst {
				continue
			}
			c.Patient = c.Patient || mixed[entry]
			if c.Early {
				e.settle(f, i)
			}
		}
	}
}

// settle says which operands of group i of f its dispatch loads early: those that no other of its step, nor one of the step before, writes.
func (e *emitter) settle(f *ir.Func, i int) {
	c, written := e.chosen[f.Groups[i]], map[*ir.Value]bool{}
	for _, g := range f.Groups {
		before := g.Step == f.Groups[i].Step-1
		if g == f.Groups[i] || g.Step != f.Groups[i].Step && !before {
			continue
		}
		other := e.chosen[g]
		other.Patient = other.Patient || before
		for _, o := range other.Operands {
			written[o.Value] = written[o.Value] || o.Access&kernel.Write != 0
		}
	}
	c.Settled = make([]bool, len(c.Operands))
	for j, o := range c.Operands {
		c.Settled[j] = !constant(o.Value) && !written[o.Value]
	}
}

// overlapOf returns when dispatches of a function may begin. In a step of few rows weights are most of what a dispatch reads, so it loads some early.
func overlapOf(t *target.Target, f *ir.Func) kernels.Overlap {
	switch {
	case !t.Overlaps():
		return kernels.NoOverlap
	case passes.KindOf(f) == passes.Decode:
		return kernels.LoadsFirst
	}
	return kernels.WaitsFirst
}

// constant reports whether no dispatch writes a value.
func constant(v *ir.Value) bool { return v.Class == ir.Weight || v.Class == ir.Table }

// constants says of an overlapping candidate that it waits first of all, or else which operands no dispatch writes, and which others are settled.
func constants(c *kernels.Candidate) string {
	switch c.Overlap {
	case kernels.NoOverlap:
		return ""
	case kernels.WaitsFirst:
		return " behind"
	}
	text := make([]byte, len(c.Operands))
	for i, o := range c.Operands {
		switch {
		case constant(o.Value):
			text[i] = 'c'
		case c.Settled != nil && c.Settled[i]:
			text[i] = 's'
		default:
			text[i] = '-'
		}
	}
	if c.Patient {
		text = append(text, " patient"...)
	}
	return " " + string(text)
}
