package passes

import (
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// joinIfComputed merges ops, of which one is op, into one group if a kernel computes that at any width.
func (d Device) joinIfComputed(p *ir.Program, f *ir.Func, op *ir.Op, group []*ir.Op) {
	joinIf(f, op, group, func(g *ir.Group) bool { return d.computesAtAnyWidth(p, f, g) })
}

// joinIf merges ops, of which one is op, into one group if that is computed.
func joinIf(f *ir.Func, op *ir.Op, group []*ir.Op, computed func(g *ir.Group) bool) {
	if group == nil {
		return
	}
	before := f.Groups
	f.Groups = nil
	for _, g := range before {
		same := *g
		f.Groups = append(f.Groups, &same)
	}
	if !merge(f, group...) || !computed(groupOf(f, op)) {
		f.Groups = before
	}
}

// computesAtAnyWidth asks for the widest exact step, which needs the most. All widths must use one kernel, so that they
// give the same bits.
func (d Device) computesAtAnyWidth(p *ir.Program, f *ir.Func, g *ir.Group) bool {
	widest := *f
	widest.Rows, widest.Run, widest.Class = d.Widest, d.Widest, ir.ExactStep
	return d.Kernels.Computes(p, &widest, g)
}

// withSlices adds the slices that only the ops of a group read.
func withSlices(uses map[*ir.Value][]*ir.Op, group []*ir.Op) []*ir.Op {
	for _, reader := range slices.Clone(group) {
		for _, v := range reader.Args {
			if cut := v.Def; cut != nil && cut.Kind.Name == "slice" && within(uses[v], group) && !slices.Contains(group, cut) {
				group = append(group, cut)
			}
		}
	}
	return group
}

func groupOf(f *ir.Func, op *ir.Op) *ir.Group {
	return f.Groups[slices.IndexFunc(f.Groups, func(g *ir.Group) bool { return slices.Contains(g.Ops, op) })]
}
