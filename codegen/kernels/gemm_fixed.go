package kernels

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// gemmFixed computes a linear group for up to 8 rows of x, which it calls columns, in fixed point
// with cooperative matrices of f16, on devices of which it is known which elements of a matrix
// each lane holds. It makes the bits that gemv makes of a column: codes and integers of x are
// exact in f16, so are sums of their products in f32, and what is made of them is added in the same order.
//
// A matrix of weights is 16 outputs and half a run of 32 elements, one of x the same half of
// 8 columns. A subgroup has a block of 8 runs at a time.
type gemmFixed struct {
	*linearGroup
	fixedTile
}

// fixedTile says what a workgroup computes. Outputs are counted over all matrices of a
// projection, as in coopTile.
type fixedTile struct {
	outputs int // a multiple of 16
	groups  int // subgroups
	// chunks: each subgroup goes through chunks of a row, and rounds x as it comes to it; else
	// each has one block, whose x its lanes keep.
	chunks bool
	series int // tiles of a workgroup, one after the other
}

const (
	fixedSide    = 16 // outputs of a matrix
	fixedColumns = 8
	fixedRuns    = 8 // of a block
	fixedBlock   = fixedRuns * 32
	fixedChunk   = 4 // blocks whose sums are added as a tree
	// fixedFrom is from how many columns on it is offered.
	fixedFrom = 3
	// fixedGroups bounds the subgroups of a workgroup: more leave a lane too few registers.
	fixedGroups = 16
)

func gemmFixedCandidates(s *Site) []Candidate {
	g := matchLinear(s)
	if g == nil || !g.fitsFixed(s.Target) {
		return nil
	}
	return []Candidate{gemmFixed{g, fixedTileOf(g, s.Target)}.candidate()}
}

// fitsFixed reports whether gemm_fixed computes the group.
func (g *linearGroup) fitsFixed(t *target.Target) bool {
	if !t.Dealt || t.Wave != dealtLanes || g.last || g.fixed == nil || g.bits == 8 || !g.allF32() ||
		g.rows < fixedFrom || g.rows > fixedColumns || g.k%fixedBlock != 0 || !g.alike() {
		return false
	}
	for _, p := range g.projects {
		if !p.fixed {
			return false
		}
		for _, w := range p.matrices {
			f := fixedFormatOf(w.format.layout)
			if f == nil || f != fixedFormatOf(p.matrices[0].format.layout) {
				return false
			}
		}
	}
	return true
}

// fixedTileOf returns the tile for the group.
func fixedTileOf(g *linearGroup, t *target.Target) fixedTile {
	blocks := g.k / fixedBlock
	s := fixedTile{outputs: fixedSide, groups: blocks, series: 1}
	if blocks <= fixedGroups {
		most := t.Units * (fixedGroups / blocks) // workgroups at once
		for g.tiles(gemmFixed{g, s}.outputsOf()) > most {
			s.series++
		}
		return s
	}
	s.chunks = true
	chunks := ceilDiv(blocks, fixedChunk)
	s.groups = ceilDiv(chunks, ceilDiv(chunks, fixedGroups))
	if g.tiles(gemmFixed{g, s}.outputsOf()) > t.Units {
		s.outputs *= 2 // x is rounded once for more
	}
	return s
}

func (t fixedTile) name() string {
	x := "kept"
	if t.chunks {
		x = "in chunks"
	}
	return fmt.Sprintf("outputs=%d groups=%d x %s", t.outputs, t.groups, x)
}

// turns is how many regions for sums tiles take turns in.
func (t fixedTile) turns() int { return min(2, t.series) }

// each is the outputs of each matrix of a tile.
func (k gemmFixed) each() int { return k.outputs / len(k.projects[0].matrices) }

// outputsOf is the outputs of each matrix of a workgroup.
func (k gemmFixed) outputsOf() int { return k.series * k.each() }

// parts is how many sums of an output meet in shared memory: of a block, or of a chunk.
func (k gemmFixed) parts() int {
	if k.chunks {
		return ceilDiv(k.k, fixedBlock*fixedChunk)
	}
	return k.groups
}

func (k gemmFixed) candidate() Candidate {
	firsts := k.firsts(k.outputsOf())
	c := Candidate{
		Kernel:   fmt.Sprintf("gemm_fixed %s k=%d %s turns=%d", k.key(), k.k, k.name(), k.turns()),
		Order:    fixedOrder(dealtLanes),
		Shape:    "matrices, " + k.name(),
		Build:    k.build,
		Operands: k.operands(false),
		Grid:     [3]int{k.tiles(k.outputsOf()), 1, 1},
		Consts:   append(k.consts(firsts), ir.Const{Name: "series", Value: uint32(k.series)}, ir.Const{Name: "columns", Value: uint32(k.rows)}),
	}
	for i, p := range k.projects {
		c.Cover = append(c.Cover, plans.Cover{
			Arg:  fmt.Sprint("y", i),
			Dims: []int{k.rows, p.width}, Tile: []int{k.rows, k.outputsOf()},
			Axis: []int{1, 0}, First: []int{0, firsts[i]},
		})
	}
	return c
}

func (k gemmFixed) build() (*kernel.Func, error) {
	return kernel.Build("gemm_fixed", func(b *kernel.Builder) {
		a, series, columns := k.declare(b, false), b.SpecU32("series", 1), b.SpecU32("columns", fixedColumns)
		b.Workgroup(k.groups * dealtLanes)
		a.join(b, b.WorkgroupID(0))
		shared := newFixedShared(b, k)
		a.each(b, b.WorkgroupID(0), func(p *projectArgs, at kernel.Value) {
			r := &fixedTask{gemmFixed: k, b: b, a: a, p: p, fixedShared: shared, columns: columns, format: fixedFormatOf(p.spec.matrices[0].format.layout)}
			r.lane, r.group = b.SubgroupLane(), b.SubgroupID()
			r.place, r.quad = b.Shr(r.lane, 2), b.And(r.lane, 3)
			r.col = b.Mul(at, b.Mul(series, k.each()))
			if k.chunks {
				r.inChunks()
			} else {
				r.inSeries(series)
			}
		})
	})
}
