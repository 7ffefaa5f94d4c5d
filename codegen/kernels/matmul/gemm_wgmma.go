package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
)

// gemm_wgmma is gemm_fragment with products of four subgroups (wgmma of NVIDIA's Hopper): a subgroup has 16 outputs, whose
// weights its lanes make in registers, and four of them multiply with x in shared memory. The products
// are made while the lanes make the next weights.

// GemmWgmmaCandidates returns those of many rows.
func GemmWgmmaCandidates(s *site.Site) []site.Candidate {
	g := matchWgmma(s)
	if g == nil || !g.half || g.workspace != nil {
		return nil
	}
	step, ok := site.ExtentOf(s, g.projects[0].result)
	if !ok {
		return nil
	}
	var list []site.Candidate
	for _, shape := range wgmmaShapes {
		t := fragmentTile{outputs: fragment.Side, across: shape.across, groups: 1, rows: shape.rows, where: grouped, series: 1, splits: 1}
		list = append(list, gemmFragment{g, t, step, s.Target.Wave, t.rows, nil}.candidate())
	}
	return list
}

// GemmWgmmaWants asks for x in f16.
func GemmWgmmaWants(s *site.Site) []site.Rewrite { return wantHalf(s, matchWgmma(s)) }

// matchWgmma returns the site's group if gemm_wgmma computes it but for the type of x.
func matchWgmma(s *site.Site) *linearGroup {
	if !s.Target.Groups {
		return nil
	}
	if g := matchFragment(s); g != nil && g.rows > FragmentTall {
		return g
	}
	return nil
}

// wgmmaShapes are subgroups side by side and rows of x. Registers bound their product: lanes hold the sums.
var wgmmaShapes = []struct{ across, rows int }{{8, 256}, {8, 128}}
