package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

// routing is what a linear group has of experts. Its form is
//
//	[rmsnorm of whole rows] [fixed12, fixed8 or bfloat16] [topk] (expert_linear [expert_bias] | linear | glu [half] | relu2)...
//	head_cut expert_linear
//
// with one expert_linear at least: the projections of routed experts, and those
// of shared experts that read the same x or, where each slot has a run of x, another one, which is rounded as x is.
// Behind a cut of heads each slot has its part of a head.
type routing struct {
	top     *ir.Op    // topk of the group, or nil
	ids     *ir.Value // i32[rows, slots]: the experts of every row
	slots   int
	perSlot bool   // x has a run for each slot
	cut     *ir.Op // head_cut that says where in x these lie, or nil
	extent  site.Extent
	// Rows sorted by expert, or nil: see op expert_linear.
	order, offsets *ir.Value
}

// expertGroup is a linear group of experts.
type expertGroup struct {
	*linearGroup
	*routing
}

// routed returns the group with what it has of experts, which must be there.
func (g *linearGroup) routed() *expertGroup { return &expertGroup{g, g.routing} }

// route returns the group's routing, which this may begin.
func (m *match) route() *routing {
	if m.routing == nil {
		m.routing = &routing{}
	}
	return m.routing
}

// headCut takes parts of heads, which lie in units of four elements.
func (m *match) headCut(op *ir.Op) bool {
	if m.from != m.x || op.Attrs.Int("stride")%4 != 0 || op.Attrs.Int("first")%4 != 0 {
		return false
	}
	m.route().cut = op
	return true
}

func (m *match) topK(op *ir.Op) bool {
	if m.routing != nil && m.routing.top != nil {
		return false
	}
	m.route().top = op
	return true
}

func (m *match) expertLinear(op *ir.Op) bool {
	x, w, ids, e := op.Args[0], op.Args[1], op.Args[2], m.route()
	if e.ids != nil && e.ids != ids || !indexable(w) {
		return false
	}
	k := int(w.Type.Shape[2])
	e.ids, e.slots, e.perSlot = ids, int(ids.Type.Shape[1]), int(x.Type.Last()) != k
	if len(op.Args) > 3 {
		e.order, e.offsets = op.Args[3], op.Args[4]
	}
	matrix := &weights{value: w, from: op.Attrs.Int("first")}
	return !(e.perSlot && m.gain != nil) && m.project(x, k, &projection{matrices: []*weights{matrix}, result: op.Result, width: op.Attrs.Int("rows"), slots: e.slots})
}

func (m *match) expertBias(op *ir.Op) bool {
	p := m.making(op.Args[0])
	if p == nil || !p.plain() || p.slots == 0 || op.Args[2] != m.routing.ids || p.matrices[0].bias != nil {
		return false
	}
	p.matrices[0].bias, p.result = op.Args[1], op.Result
	return true
}

// finishExperts holds that the group reads the experts that it chooses, and that a cut is what they read.
func (m *match) finishExperts() bool {
	e := m.routing
	if e.ids == nil || e.top != nil && e.top.Result != e.ids {
		return false
	}
	if e.cut != nil && (!e.perSlot || len(m.s.Group.Ops) > 2 || e.cut.Attrs.Int("width") != m.k) {
		return false
	}
	var ok bool
	e.extent, ok = site.ExtentOf(m.s, e.ids)
	m.rows, m.exact = e.extent.Max, e.extent.Exact
	return ok
}

// indexable reports whether the elements of a weight can be counted in 32 bits.
func indexable(w *ir.Value) bool {
	n, err := w.Type.Elements(1, 1)
	return err == nil && n < 1<<32
}
