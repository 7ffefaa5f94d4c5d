package matmul

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
)

// expertGroup is a dispatch group of the form
//
//	[rmsnorm of whole rows] [fixed12, fixed8 or bfloat16] [topk] (expert_linear [expert_bias] | linear | glu [half] | relu2)...
//	head_cut expert_linear
//
// with one expert_linear at least: the projections of routed experts, and those
// of shared experts that read the same x. Behind a cut of heads each slot has its part of a head.
type expertGroup struct {
	*linearGroup
	top     *ir.Op    // topk of the group, or nil
	ids     *ir.Value // i32[rows, slots]: the experts of every row
	slots   int
	perSlot bool   // x has a run for each slot
	cut     *ir.Op // head_cut that says where in x these lie, or nil
	extent  site.Extent
	// Rows sorted by expert, or nil: see op expert_linear.
	order, offsets *ir.Value
}

// matchExperts returns the site's group as an expertGroup without a cut, nil if it is none or
// has what the kernels cannot do.
func matchExperts(s *site.Site) *expertGroup {
	if g := matchCutExperts(s); g != nil && g.cut == nil {
		return g
	}
	return nil
}

// matchCutExperts is matchExperts with a cut or without.
func matchCutExperts(s *site.Site) *expertGroup {
	g := &expertGroup{linearGroup: &linearGroup{rows: s.Func.Rows, exact: s.Func.Class == ir.ExactStep, halves: s.Target.LoadsEarly()}}
	var norm *ir.Value
	for i, op := range s.Group.Ops {
		ok := false
		switch op.Kind.Name {
		case "rmsnorm":
			if ok = i == 0 && isWeighted(op); ok {
				g.x, norm = op.Args[0], op.Result
				g.gain, g.eps = op.Args[1], float32(op.Attrs.Float("eps"))
			}
		case "head_cut":
			ok = i == 0 && op.Attrs.Int("stride")%4 == 0 && op.Attrs.Int("first")%4 == 0
			g.cut, g.x = op, op.Args[0]
		case "fixed12", "fixed8", "bfloat16":
			ok = g.fixed == nil && (norm == nil && g.x == nil || norm == op.Args[0])
			if norm == nil {
				g.x = op.Args[0]
			}
			g.fixed, g.bits = op.Result, fixedBits[op.Kind.Name]
		case "topk":
			ok = g.top == nil
			g.top = op
		case "expert_linear":
			ok = g.addExperts(s, op, norm)
		case "expert_bias":
			ok = op.Args[2] == g.ids && g.take(s, op, g.x)
		case "linear":
			ok = g.reads(op.Args[0], int(op.Args[1].Type.Shape[1]), norm) && g.take(s, op, op.Args[0])
		case "glu":
			gate, up := g.making(op.Args[0]), g.making(op.Args[1])
			ok = gate != nil && up != nil && gate.slots == up.slots && g.take(s, op, g.x)
		case "half", "relu2":
			ok = g.take(s, op, g.x)
		}
		if !ok {
			return nil
		}
	}
	if g.ids == nil || g.top != nil && g.top.Result != g.ids || g.cut != nil && (!g.perSlot || len(s.Group.Ops) > 2 || g.cut.Attrs.Int("width") != g.k) || !g.writes(s.Outputs) {
		return nil
	}
	var ok bool
	g.extent, ok = site.ExtentOf(s, g.ids)
	if !ok {
		return nil
	}
	g.rows, g.exact, g.half = g.extent.Max, g.extent.Exact, g.x.Type.DType == ir.F16
	return g
}

// reads checks that a projection of k columns reads the group's x, which is norm
// behind a norm.
func (g *expertGroup) reads(x *ir.Value, k int, norm *ir.Value) bool {
	if g.fixed != nil && x == g.fixed {
		x = g.fixed.Def.Args[0]
	}
	if g.cut != nil && x == g.cut.Result {
		x = g.x
	}
	if norm != nil && x != norm {
		return false
	}
	if norm == nil && g.x == nil {
		g.x = x
	}
	if g.k == 0 {
		g.k = k
	}
	return g.k == k && (norm != nil || g.x == x)
}

// addExperts adds an expert_linear.
func (g *expertGroup) addExperts(s *site.Site, op *ir.Op, norm *ir.Value) bool {
	x, w, ids := op.Args[0], op.Args[1], op.Args[2]
	k := int(w.Type.Shape[2])
	if !g.reads(x, k, norm) || g.ids != nil && g.ids != ids || !indexable(w) {
		return false
	}
	g.ids, g.slots = ids, int(ids.Type.Shape[1])
	g.perSlot = int(x.Type.Last()) != k
	if len(op.Args) > 3 {
		g.order, g.offsets = op.Args[3], op.Args[4]
	}
	fixed := g.fixed != nil && x == g.fixed
	m := &weights{value: w, format: weight.FormatOf(s.Target, w.Type.DType, k), rows: weight.RowsOf(s.Target, w), from: op.Attrs.Int("first")}
	g.projects = append(g.projects, &projection{matrices: []*weights{m}, result: op.Result, width: op.Attrs.Int("rows"), slots: g.slots, fixed: fixed})
	return m.format != nil && (!fixed || m.format.Bytes != nil) && !(g.perSlot && g.gain != nil)
}

// indexable reports whether the elements of a weight can be counted in 32 bits.
func indexable(w *ir.Value) bool {
	n, err := w.Type.Elements(1, 1)
	return err == nil && n < 1<<32
}

// writes reports whether others read the results of all projections and, if the
// group chooses them, maybe ids, but nothing else.
func (g *expertGroup) writes(outputs []*ir.Value) bool {
	for _, p := range g.projects {
		if !slices.Contains(outputs, p.result) {
			return false
		}
	}
	n := len(g.projects)
	if g.top != nil && slices.Contains(outputs, g.ids) {
		n++
	}
	return len(outputs) == n
}
