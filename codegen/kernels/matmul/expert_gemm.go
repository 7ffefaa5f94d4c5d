package matmul

import (
	"fmt"
	"math/bits"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
)

// expertGemm is gemm, or gemm_dot, over the tiles of a sortedGroup.
type expertGemm struct {
	*sortedGroup
	gemm gemm
}

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
		list = append(list, expertGemm{g, gemm{g.linearGroup, g.extent, gemmOf(n, s.Target)}}.candidate("expert_gemm", (*gemmTile).run))
	}
	return list
}

// candidate returns the group's candidate of a family with this tile.
func (k expertGemm) candidate(family string, run func(t *gemmTile)) site.Candidate {
	c := k.sortedGroup.candidate(k.gemm.tileRows(), k.gemm.outputs())
	c.Kernel = fmt.Sprintf("%s %s tile=%dx%d", family, k.key(), k.gemm.tileRows(), k.gemm.outputs())
	c.Shape = fmt.Sprintf("%dx%d", k.gemm.tileRows(), k.gemm.outputs())
	return site.Implement(c, family, func(s *site.Signature) func(b *kernel.Builder) {
		a, order := k.declare(s, false, k.firsts(k.gemm.outputs())), k.declareOrder(s)
		return func(b *kernel.Builder) { run(k.tile(b, a, order)) }
	})
}

// expertRows returns how many rows a lane may compute, best guess first, given the
// slots of an expert. A tile that is too small dequantizes weights again, one that
// is too large multiplies nothing.
func expertRows(perExpert int, t *target.Target) []int {
	if t.Wave < 16 {
		return []int{4} // see gemmRows
	}
	n := 2
	for n < 8 && gemmRowStep*n*2 < 3*perExpert {
		n *= 2
	}
	if n == 8 {
		return []int{8, 4}
	}
	return []int{n, 2 * n}
}

// tile finds the workgroup's tile.
func (k expertGemm) tile(b *kernel.Builder, a *linearArgs, order sortedArgs) *gemmTile {
	tile := k.findTile(b, a, order, k.gemm.tileRows(), k.gemm.lanes)
	t := &gemmTile{gemm: k.gemm, b: b, a: a, sorted: tile.rows, row: tile.row, rows: tile.end, lane: b.LocalID()}
	down := k.gemm.lanes / k.gemm.loaders // rows that are loaded at once
	for j := range k.gemm.tileRows() / down {
		r := b.Add(t.row, b.Shr(t.lane, bits.TrailingZeros(uint(k.gemm.loaders))), down*j)
		t.sorted.sources = append(t.sorted.sources, t.sorted.source(r, t.rows))
	}
	return t
}
