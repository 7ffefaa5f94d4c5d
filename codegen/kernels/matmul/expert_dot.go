package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
)

// ExpertDotCandidates returns gemm_dot over the tiles of a sortedGroup.
func ExpertDotCandidates(s *site.Site, of *Group) []site.Candidate {
	g := of.sorted(s)
	if !g.inBytes() {
		return nil
	}
	var list []site.Candidate
	for _, shape := range expertDotShapes(g, s.Target) {
		list = append(list, gemm{g.linearGroup, g, shape}.candidate("expert_dot", runDot))
	}
	return list
}

// expertDotShapes are dotShapes for experts: see expertRows.
func expertDotShapes(g *sortedGroup, t *target.Target) []gemmShape {
	switch {
	case t.Workgroup < processorDot.lanes:
		return []gemmShape{subgroupDot}
	case t.Wave < 16:
		return []gemmShape{processorDot}
	}
	var list []gemmShape
	for _, n := range expertRows(g.perExpert(), t) {
		list = append(list, g.dotShape(gemmRowStride*n))
	}
	if list[0].tileRows() == 32 {
		list = append(list, g.dotShape(16))
	}
	return list
}
