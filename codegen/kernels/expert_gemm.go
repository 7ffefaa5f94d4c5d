package kernels

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
)

// expertGemm is gemm over the tiles of a sortedGroup.
type expertGemm struct {
	*sortedGroup
	gemm gemm
}

func expertGemmCandidates(s *Site) []Candidate {
	g := matchSorted(s)
	if g == nil || !g.allF32() {
		return nil
	}
	var list []Candidate
	for _, n := range expertRows(g.perExpert(), s.Target) {
		k := expertGemm{g, gemm{g.linearGroup, g.extent, n}}
		c := g.candidate(k.gemm.tileRows(), gemmOutputs)
		c.Kernel, c.Build = fmt.Sprintf("expert_gemm %s tile=%dx%d", k.key(), k.gemm.tileRows(), gemmOutputs), k.build
		c.Shape = fmt.Sprintf("%dx%d", k.gemm.tileRows(), gemmOutputs)
		list = append(list, c)
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
	for n < 8 && gemmRowStep*n*2 < 3*perExpert {
		n *= 2
	}
	if n == 8 {
		return []int{8, 4}
	}
	return []int{n, 2 * n}
}

func (k expertGemm) build() (*kernel.Func, error) {
	return kernel.Build("expert_gemm", func(b *kernel.Builder) {
		a := k.declare(b, false)
		tile := k.findTile(b, a, k.gemm.tileRows(), func() { b.Workgroup(gemmLanes) })
		t := &gemmTile{gemm: k.gemm, b: b, a: a, sorted: tile.rows, row: tile.row, rows: tile.end, lane: b.LocalID()}
		for j := range k.gemm.tileRows() / gemmColStep {
			r := b.Add(t.row, b.Shr(t.lane, 3), gemmColStep*j)
			t.sorted.sources = append(t.sorted.sources, t.sorted.source(r, t.rows))
		}
		t.run()
	})
}
