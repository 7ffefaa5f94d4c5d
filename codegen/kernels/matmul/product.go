package matmul

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
)

// A product of many rows is a linear group that workgroups compute in tiles, of some rows of x and some outputs of each
// matrix. A family of products is a choice of four things:
//
//	rows        of a step (stepRows), or slots sorted by expert (sortedGroup): a rowSource
//	weights     as floats, as bytes, as copies for matrices, as fragments: a view of weight.Format
//	multiplier  FMAs (gemm, gemm_float, gemm_lanes), dot products of bytes (gemm_dot), matrices in shared memory
//	            (gemm_coop), matrices that lanes fill (gemm_fragment, gemm_wgmma), which bring x in four ways: pipelines
//	finish      element by element (projectArgs.store), 4 neighbours of a row (rowTile.finish), or what a lane holds of
//	            fragments (storeDirect)
//
// A product says what a family chose for a site. Its kernel declares the group, then its rows; in the kernel the rows
// give the workgroup's rowTile, which the multiplier takes.
type product struct {
	family  string
	from    rowSource
	rows    int             // of x, of a tile
	outputs func(i int) int // of each matrix of projection i, of a tile
	code    string          // of the multiplier: what shapes the code besides the group and its rows
	shape   string          // among those of the site
	sums    string          // what the sums of a row depend on, see site.Candidate
	tiling  *site.Tiling    // nil if nobody estimates it
	kernel  site.Kernel
}

func (p product) candidate() site.Candidate {
	c := p.from.offer(p.rows, p.outputs)
	c.Kernel, c.Shape, c.Sums, c.Tiling = fmt.Sprintf("%s %s %s", p.family, p.from.key(), p.code), p.shape, p.sums, p.tiling
	return site.Implement(c, p.family, p.kernel)
}

// each returns that all projections have so many outputs in a tile.
func each(outputs int) func(int) int { return func(int) int { return outputs } }

// rowSource says which rows of x the tiles have.
type rowSource interface {
	// key is that of the group with what shapes the code that finds its rows.
	key() string
	// offer returns grid and cover of a candidate whose tiles have so many rows, and outputs of each matrix.
	offer(tileRows int, outputs func(i int) int) site.Candidate
	// declareRows declares what tells the rows.
	declareRows(s *site.Signature) rowFinder
}

// rowFinder loads what tells the rows, and returns what finds the workgroup's tile of so many rows.
type rowFinder func(b *kernel.Builder, a *linearArgs) func(tileRows int) rowTile

// stepRows are the rows of a step, in their order. Grid axis 0 covers them.
type stepRows struct {
	group  *linearGroup
	extent site.Extent
}

// step returns the group's rows as stepRows, if it has those of a step.
func (g *linearGroup) step(s *site.Site) (stepRows, bool) {
	extent, ok := site.ExtentOf(s, g.projects[0].result)
	return stepRows{g, extent}, ok
}

func (r stepRows) key() string { return r.group.key() + r.extent.Key() }

func (r stepRows) offer(tileRows int, outputs func(i int) int) site.Candidate {
	_, tiles := r.group.workgroupsBy(outputs)
	return site.Candidate{
		Grid:  [3]int{site.CeilDiv(r.group.rows, tileRows), tiles, 1},
		Cover: r.group.covers(r.group.rows, tileRows, 0, outputs),
	}
}

func (r stepRows) declareRows(s *site.Signature) rowFinder {
	extent := r.extent.Declare(s)
	return func(b *kernel.Builder, _ *linearArgs) func(tileRows int) rowTile {
		rows := extent.Load(b)
		return func(tileRows int) rowTile {
			return rowTile{b: b, rows: rows, row: b.Mul(b.WorkgroupID(0), tileRows)}
		}
	}
}
