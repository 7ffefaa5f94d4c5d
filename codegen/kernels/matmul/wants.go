package matmul

import (
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// GemvWants asks for x in 12-bit fixed point, on targets with dot products of bytes, where a
// lane can keep its elements.
func GemvWants(s *site.Site, g *Group) []site.Rewrite {
	if !s.Target.Dot || g.fixed != nil || !weight.FitsDot(g.k) {
		return nil
	}
	g, ops := g.inFixed(s)
	k := gemv{linearGroup: g, wave: s.Target.Wave, most: residentElements}
	k.share(s.Target)
	if !k.fits(1) {
		return nil
	}
	return site.Fixed("fixed12", ops)
}

// ExpertGemvWants asks for x in 12-bit fixed point, where teams can share it.
func ExpertGemvWants(s *site.Site, g *Group) []site.Rewrite {
	if !s.Target.Dot || g.fixed != nil || g.routing.perSlot || !g.exact || !weight.FitsDot(g.k) {
		return nil
	}
	g, ops := g.inFixed(s)
	if len(g.routed().teamShapes(s.Target)) == 0 {
		return nil
	}
	return site.Fixed("fixed12", ops)
}

// ExpertWideWants asks for x in 12-bit fixed point, as expert_down does in narrower steps.
func ExpertWideWants(s *site.Site, g *Group) []site.Rewrite {
	ops := s.Group.Ops
	if ops[0].Kind.Name != "expert_linear" || s.Func.Class != ir.ExactStep {
		return nil
	}
	var shared *ir.Op
	if len(ops) == 2 && g.Features()&OwnX != 0 {
		shared = ops[1]
	} else if !site.Alone(s, ops[0]) {
		return nil
	}
	if !Unites(s.Target, s.Func.Rows, ops[0], shared) {
		return nil
	}
	list := site.Fixed("fixed12", ops[:1])
	if shared != nil {
		list = append(list, site.Fixed("fixed12", ops[1:])...)
	}
	return list
}

// Unites reports whether expert_wide computes the down projection of experts, of a step of so many rows, with the bits
// of expert_down. That adds the elements of a row as projections do where a lane has one unit of it. shared is that of
// a shared expert, or nil.
func Unites(t *target.Target, rows int, down, shared *ir.Op) bool {
	fits := func(op *ir.Op) bool {
		w := op.Args[1].Type
		k := int(w.Last())
		f := weight.FormatOf(t, w.DType, k)
		return f != nil && f.Fixed != nil && f.Bytes != nil && weight.FitsDot(k) && k%fixedBlock == 0 &&
			newDownShape(f, weight.DotUnitElements, k, fragment.Lanes).alone()
	}
	// Where registers are not bounded, expert_down has no x in fixed point of rows so short.
	return t.BoundsRegisters() && t.Fragments && t.Dot && t.Wave == fragment.Lanes && rows >= wideFrom &&
		fits(down) && (shared == nil || fits(shared))
}

// alone reports whether each lane of a team has one unit of a row.
func (s downShape) alone() bool { return s.exact && s.units == 1 }

// ExpertDownWants asks for x in 12-bit fixed point, and for that of projections whose rows members share or lanes have
// a unit of.
func ExpertDownWants(s *site.Site, _ *ir.Op) []site.Rewrite {
	g := matchExpertDown(s)
	if g == nil || !s.Target.Dot || s.Func.Class != ir.ExactStep {
		return nil
	}
	var list []site.Rewrite
	if g.wantsFixed() {
		list = site.Fixed("fixed12", []*ir.Op{g.linear})
	} else if g.fixed == nil {
		return nil
	}
	g.share(s.Target.Workgroup, func(t *downTerm) bool { return !t.fixed && t.w.format.Bytes != nil })
	for _, t := range g.terms {
		if !t.fixed && (t.parts > 1 || g.oneUnit(t)) {
			list = append(list, site.Fixed("fixed12", []*ir.Op{t.op})...)
		}
	}
	for i := range list {
		list[i].Units = g.fixedShape().units
	}
	return list
}

// GemmDotWants asks for x in 8-bit fixed point, on targets that have dot products of bytes and no matrices.
func GemmDotWants(s *site.Site, g *Group) []site.Rewrite {
	if !s.Target.Dot || s.Target.Exact || hasMatrices(s) || g.fixed != nil || !g.inBytes() {
		return nil
	}
	var ops []*ir.Op
	for _, op := range s.Group.Ops {
		if op.Kind.Name == "linear" || op.Kind.Name == "expert_linear" {
			ops = append(ops, op)
		}
	}
	return site.Fixed("fixed8", ops)
}

// GemmCoopWants asks for x in f16.
func GemmCoopWants(s *site.Site, g *Group) []site.Rewrite {
	if !g.inMatrices(s.Target) {
		return nil
	}
	return wantHalf(s, g)
}

// GemmFragmentWants asks for x in f16, and then for a workspace for each tile whose workgroups share the
// elements of a row.
func GemmFragmentWants(s *site.Site, g *Group) []site.Rewrite {
	switch {
	case !g.fitsFragment(s.Target), g.workspace != nil && g.half:
		return nil
	case !g.half:
		return wantHalf(s, g)
	}
	return wantSplits(g, fragmentTiles(s, g))
}

// wantSplits asks for a workspace for each of the tiles whose workgroups share the elements of a row.
func wantSplits(g *linearGroup, tiles []fragmentTile) (list []site.Rewrite) {
	for _, t := range tiles {
		if k := g.fragment(t); k.splits > 1 {
			list = append(list, site.Rewrite{Workspace: k.workspaceWidth(), Tiling: k.tiling(), Sums: k.sumsKey()})
		}
	}
	return list
}

// GemmFixedWants asks for a workspace, if workgroups are to share the elements of a row.
func GemmFixedWants(s *site.Site, g *Group) []site.Rewrite {
	if k := fixedAt(s, g); k != nil && k.workspaceWidth() > 0 && wideAt(s, g) == nil {
		return []site.Rewrite{{Workspace: k.workspaceWidth(), Rows: k.rows}}
	}
	return nil
}

// GemmWideWants asks for x that is rounded once for all workgroups and for others to add up products of its parts, or
// for a workspace, if they are to share the elements of a row.
func GemmWideWants(s *site.Site, g *Group) []site.Rewrite {
	if g.packed != nil || g.parts > 0 {
		return nil
	}
	k := wideAt(s, g)
	switch {
	case k == nil:
		return nil
	case !k.inParts(s.Target):
		if width := k.workspaceWidth(); width > 0 {
			return []site.Rewrite{{Workspace: width, Rows: k.rows}}
		}
		return nil
	}
	w := site.Rewrite{Pack: strings.Join(k.lanes(), " "), Columns: k.wide, Rows: k.rows, Each: wideEach}
	for _, op := range s.Group.Ops {
		if op.Kind.Name == "linear" {
			w.Readers = append(w.Readers, op)
		}
	}
	return []site.Rewrite{w}
}

// wantHalf asks for the x of a group, if there is one, in f16.
func wantHalf(s *site.Site, g *linearGroup) []site.Rewrite {
	if g.half || g.x.Def == nil || !hasMatrices(s) {
		return nil
	}
	return site.Half(s, g.x)
}

// hasMatrices reports whether the target has cooperative matrices: else what is in f16 would be
// read by kernels that have no use for it.
func hasMatrices(s *site.Site) bool { return s.Target.HasMatrices() }
