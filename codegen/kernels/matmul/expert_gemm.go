package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
)

// ExpertGemmCandidates returns gemm over the tiles of a sortedGroup.
func ExpertGemmCandidates(s *site.Site, of *Group) []site.Candidate {
	g := of.sorted(s)
	if !g.alike() {
		return nil
	}
	var list []site.Candidate
	for _, n := range expertRows(g.perExpert(), s.Target) {
		for n > 2 && g.gemmBytes(n) > s.Target.Shared {
			n /= 2
		}
		list = append(list, gemm{g.linearGroup, g, gemmOf(n, s.Target)}.candidate("expert_gemm", (*gemmTile).run))
	}
	return list
}

// expertRows returns how many rows a lane may compute, best guess first, given the
// slots of an expert. A tile that is too small dequantizes weights again, one that
// is too large multiplies nothing.
func expertRows(perExpert int, t *target.Target) []int {
	if t.Wave < 16 {
		return []int{4} // see gemmRows
	}
	n := 2
	for n < 8 && gemmRowStride*n*2 < 3*perExpert {
		n *= 2
	}
	if n == 8 {
		return []int{8, 4}
	}
	return []int{n, 2 * n}
}
