package kernels

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

const (
	dealtSide = 16 // outputs of a matrix of weights, and its depth
	dealtRows = 8  // rows of x of a matrix
	// dealtLanes is the lanes among which matrices are dealt: 8 places for rows, 4 lanes each.
	dealtLanes = 32
	// dealtSums is the elements of a matrix of sums that a lane holds.
	dealtSums = dealtSide * dealtRows / dealtLanes
	// dealtFrom and DealtMost are the rows that gemm_dealt takes: of fewer, gemv reads
	// the weights as fast; of more, its lanes cannot keep x.
	dealtFrom, DealtMost = 3, 16
)

// dealtTile says what a workgroup computes. Outputs are counted over all matrices of a
// projection, as in coopTile.
type dealtTile struct {
	outputs int // a multiple of 16
	groups  int // subgroups, which share the blocks of a row
	// staged: x goes through shared memory; else lanes keep theirs, which is one block of
	// every row.
	staged bool
	series int // tiles of a workgroup, one after the other
}

func (t dealtTile) name() string {
	x := "kept"
	if t.staged {
		x = "staged"
	}
	return fmt.Sprintf("outputs=%d groups=%d x %s turns=%d", t.outputs, t.groups, x, t.turns())
}

// turns is how many regions for sums tiles take turns in.
func (t dealtTile) turns() int { return min(2, t.series) }

// gemmDealt computes a linear group for few rows of x with cooperative matrices, as
// gemm_coop does, on devices of which it is known which elements of a matrix each lane
// holds. Lanes put what they load of the weights right into what they hold: weights
// never go through shared memory.
//
// A matrix of weights is 16 outputs and 16 elements, one of x 16 elements of 8 rows.
// Which elements of a row make up the 16 is free, as long as it is the same for both: each
// lane takes those that lie together where the weights are.
type gemmDealt struct {
	*linearGroup
	dealtTile
	step extent
	wave int
}

func gemmDealtCandidates(s *Site) []Candidate {
	g := matchDealt(s)
	if g == nil || !g.half {
		return nil
	}
	step, ok := extentOf(s, g.projects[0].result)
	if !ok {
		return nil
	}
	return []Candidate{gemmDealt{g, dealtTileOf(g, s.Target), step, s.Target.Wave}.candidate()}
}

// matchDealt returns the site's group if gemm_dealt computes it but for the type of x.
func matchDealt(s *Site) *linearGroup {
	g := matchLinear(s)
	if g == nil || g.gain != nil || g.fixed != nil || !g.fitsDealt(s.Target) {
		return nil
	}
	return g
}

// BehindNorm returns the linear ops of a site of norm and projections that gemm_dealt
// computes if the norm is a dispatch of its own.
func BehindNorm(s *Site) []*ir.Op {
	g := matchLinear(s)
	if g == nil || g.gain == nil || !s.Target.Dealt {
		return nil
	}
	part := *g
	part.projects = nil
	for _, p := range g.projects {
		alone := *g
		if alone.projects = []*projection{p}; alone.fitsDealt(s.Target) {
			part.projects = append(part.projects, p)
		} else if !p.plain() || len(p.matrices) > 1 {
			return nil // more than a linear op
		}
	}
	if len(part.projects) == 0 || !part.fitsDealt(s.Target) {
		return nil
	}
	taken := map[*ir.Value]bool{} // weights
	for _, p := range part.projects {
		for _, w := range p.matrices {
			taken[w.value] = true
		}
	}
	var ops []*ir.Op
	for _, op := range s.Group.Ops {
		if op.Kind.Name == "linear" && taken[op.Args[1]] {
			ops = append(ops, op)
		}
	}
	return ops
}

// fitsDealt reports whether gemm_dealt has what the group needs besides what it does
// before its projections.
func (g *linearGroup) fitsDealt(t *target.Target) bool {
	if !t.Dealt || t.Wave != dealtLanes || g.last || g.rows < dealtFrom || g.rows > DealtMost || g.k%dealtBlock != 0 || !g.alike() {
		return false
	}
	for _, p := range g.projects {
		if p.width%4 != 0 {
			return false
		}
		for _, w := range p.matrices {
			f := dealtFormatOf(w.format.layout)
			if f == nil || f.dealing != p.dealing() {
				return false
			}
		}
	}
	return true
}

// dealing is that of the projection's first matrix.
func (p *projection) dealing() string { return dealtFormatOf(p.matrices[0].format.layout).dealing }

const (
	// dealtGroups bounds the groups of a workgroup whose lanes keep x, stagedGroups those
	// of others.
	dealtGroups, stagedGroups = 16, 8
)

// dealtTileOf returns the tile for the group. Where a lane's part of a row is one block,
// it keeps its x and goes through many tiles, such that all workgroups run at once. That is
// fastest. Longer rows go through shared memory.
func dealtTileOf(g *linearGroup, t *target.Target) dealtTile {
	blocks := g.k / dealtBlock
	s := dealtTile{outputs: dealtSide, groups: blocks, series: 1}
	if blocks <= dealtGroups {
		most := t.Units * (dealtGroups / blocks) // workgroups at once
		for g.tiles(gemmDealt{linearGroup: g, dealtTile: s}.outputsOf()) > most {
			s.series++
		}
		return s
	}
	s.outputs, s.staged = 2*dealtSide, true
	rows := gemmDealt{linearGroup: g}.tileRows()
	for s.groups = stagedGroups * dealtRows / rows; blocks%s.groups != 0; s.groups-- {
	}
	return s
}

// each is the outputs of each matrix of a tile.
func (k gemmDealt) each() int { return k.outputs / len(k.projects[0].matrices) }

// outputsOf is the outputs of each matrix of a workgroup.
func (k gemmDealt) outputsOf() int { return k.series * k.each() }

// tileRows is the rows of x of a workgroup: all, in whole matrices.
func (k gemmDealt) tileRows() int { return ceilDiv(k.rows, dealtRows) * dealtRows }

func (k gemmDealt) candidate() Candidate {
	firsts := k.firsts(k.outputsOf())
	c := Candidate{
		Kernel:   fmt.Sprintf("gemm_dealt %s%s rows=%d %s", k.key(), k.step.key(), k.tileRows(), k.name()),
		Shape:    k.name(),
		Build:    k.build,
		Operands: append(k.operands(false), k.step.operands()...),
		Grid:     [3]int{k.tiles(k.outputsOf()), 1, 1},
		Consts:   append(append(k.consts(firsts), ir.Const{Name: "series", Value: uint32(k.series)}), k.step.consts()...),
		Seconds:  k.seconds(),
	}
	for i, p := range k.projects {
		c.Cover = append(c.Cover, plans.Cover{
			Arg:  fmt.Sprint("y", i),
			Dims: []int{k.rows, p.width}, Tile: []int{k.tileRows(), k.outputsOf()},
			Axis: []int{1, 0}, First: []int{0, firsts[i]},
		})
	}
	return c
}

// seconds is what the group takes on an H200, where it was measured.
func (k gemmDealt) seconds() float64 {
	if k.staged {
		return 1e-6 * (5 + float64(k.k)/700)
	}
	return 1e-6 * (6 + float64(k.series)*(1+float64(k.k)/6000))
}

// stride is the vec4 from row to row of a subgroup's sums in shared memory.
func (k gemmDealt) stride() int { return k.outputs/4 + 1 }

// region is the vec4 of the sums of a tile.
func (k gemmDealt) region() int { return k.groups * k.tileRows() * k.stride() }

// shared is the vec4 of shared memory: x, later sums; of tiles in series those of two.
func (k gemmDealt) shared() int {
	if k.staged {
		return max(k.groups*dealtSteps*k.regionX(), k.region())
	}
	return k.turns() * k.region()
}

func (k gemmDealt) build() (*kernel.Func, error) {
	return kernel.Build("gemm_dealt", func(b *kernel.Builder) {
		a, series, rows := k.declare(b, false), b.SpecU32("series", 1), k.step.bound(b)
		b.Workgroup(k.groups * k.wave)
		k.emit(b, a, series, b.WorkgroupID(0), rowTile{rows: rows, row: b.U32(0)})
	})
}
