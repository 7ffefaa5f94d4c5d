package kernels

import (
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// expertDealt is gemm_dealt over the tiles of a sortedGroup: of so few rows that most
// experts have one tile.
type expertDealt struct {
	*sortedGroup
	dealt gemmDealt // of a tile's rows
}

const (
	// dealtPerExpert bounds the slots of an expert that expert_dealt takes, if all have as
	// many: of more, expert_coop takes weights apart for more rows at once.
	dealtPerExpert = 4
	// dealtRounds is the rounds of workgroups that expert_dealt wants: with fewer some units
	// end early, with more each workgroup brings x for few outputs.
	dealtRounds = 2.5
)

func expertDealtCandidates(s *Site) []Candidate {
	g := matchExpertCoop(s)
	if g == nil || !g.half || g.perExpert() > dealtPerExpert {
		return nil
	}
	tile := *g.linearGroup
	tile.rows = dealtRows
	if !tile.fitsDealt(s.Target) || tile.k/dealtBlock > dealtGroups {
		return nil
	}
	k := expertDealt{g, gemmDealt{&tile, dealtTile{outputs: dealtSide, across: 1, rows: dealtRows, splits: 1, groups: tile.k / dealtBlock}, g.extent, g.wave, dealtRows, nil}}
	var list []Candidate
	for _, k.dealt.series = range k.series(s.Target) {
		list = append(list, k.candidate())
	}
	return list
}

// series returns how many tiles of outputs a workgroup may go through, best guess first.
func (k expertDealt) series(t *target.Target) []int {
	slots, experts := float64(k.linearGroup.rows*k.slots), float64(k.experts)
	chosen := experts * (1 - math.Exp(-slots/experts))
	atOnce := float64(t.Units * (dealtGroups / k.dealt.groups))
	n, tiles := 1, k.tiles(k.dealt.each())
	for n < tiles && chosen*float64(tiles) > math.Sqrt2*float64(n)*dealtRounds*atOnce {
		n *= 2
	}
	if n == 1 {
		return []int{1, 2}
	}
	return []int{n, n / 2, 2 * n}
}

func (k expertDealt) candidate() Candidate {
	c := k.sortedGroup.candidate(dealtRows, k.dealt.outputsOf())
	c.Kernel = fmt.Sprintf("expert_dealt %s %s", k.key(), k.dealt.name())
	c.Shape = fmt.Sprintf("%s of %d", k.dealt.name(), k.dealt.series)
	c.Build = k.build
	c.Consts = append(c.Consts, ir.Const{Name: "series", Value: uint32(k.dealt.series)})
	return c
}

func (k expertDealt) build() (*kernel.Func, error) {
	return kernel.Build("expert_dealt", func(b *kernel.Builder) {
		a, series := k.declare(b, false), b.SpecU32("series", 1)
		tile := k.findTile(b, a, dealtRows, func() { b.Workgroup(k.dealt.threads()) })
		k.dealt.emit(b, a, series, b.WorkgroupID(1), rowTile{sorted: tile.rows, row: tile.row, rows: tile.end}, nil)
	})
}
