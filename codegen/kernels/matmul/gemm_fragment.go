package matmul

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

const (
	// FragmentFew is the number of rows up to which a workgroup takes few outputs, and more rows
	// cost little. FragmentTall is the most rows of a workgroup: its lanes cannot keep the sums of
	// more.
	FragmentFew, FragmentTall = 16, 128
	// tallLoads bounds fragmentFormat.loads where many sums leave few registers.
	tallLoads = 2
)

// gemmFragment computes a linear group with cooperative matrices, as
// gemm_coop does, on devices whose fragments are known. Lanes fill their fragments right
// with the weights that they load, which never go through shared memory.
//
// A matrix of weights is 16 outputs and 16 elements, one of x 16 elements of 8 rows.
// Which elements of a row make up the 16 is free, as long as it is the same for both: each
// lane takes those that lie together where the weights are.
type gemmFragment struct {
	*linearGroup
	fragmentTile
	from rowSource
	wave int
	most int // rows that are multiplied
	// ahead: words of the next iteration are on their way to shared memory, not to registers.
	ahead bool
	// limit is the most rows of the workgroup's tile where tiles differ, else nil.
	limit *kernel.Value
	// counts are the counters of the last-block reduction of split-K products, else nil.
	counts *ir.Value
}

func GemmFragmentCandidates(s *site.Site, g *Group) []site.Candidate {
	step, ok := g.step(s)
	if !ok || !g.fitsFragment(s.Target) {
		return nil
	}
	return g.offers(s, fragmentTiles(s, g), step)
}

// offers returns the candidates for the tiles that need just the workspace that the group has.
func (g *linearGroup) offers(s *site.Site, tiles []fragmentTile, step stepRows) []site.Candidate {
	var list []site.Candidate
	for _, t := range tiles {
		k := g.fragment(t)
		k.from, k.wave = step, s.Target.Wave
		if !g.hasWorkspace(k.workspaceWidth()) {
			continue
		}
		k.ahead = k.copiesAhead(s)
		if k.splits > 1 {
			k.counts = site.Arrivals(s, k.rowTiles()*k.tiles(k.outputsOf()))
		}
		list = append(list, k.candidate())
	}
	return list
}

// fragment returns the product of a tile, as far as it has no site.
func (g *linearGroup) fragment(t fragmentTile) gemmFragment {
	return gemmFragment{linearGroup: g, fragmentTile: t, most: t.rows}
}

// workspaceWidth is the sums of a row that the workgroups of all splits leave for each other.
func (k gemmFragment) workspaceWidth() int {
	if k.splits == 1 {
		return 0
	}
	return k.splits * k.tiles(k.outputsOf()) * k.outputsOf()
}

// fitsFragment reports whether lanes can hold the matrices of the group.
func (g *linearGroup) fitsFragment(t *target.Target) bool {
	if !t.Fragments || t.Wave != fragment.Lanes || g.k%weight.FragmentBlock != 0 || !g.alike() {
		return false
	}
	for _, p := range g.projects {
		if p.width%4 != 0 {
			return false
		}
		for _, w := range p.matrices {
			f := w.format.Fragment
			if f == nil || f.Sharing != p.sharing() || g.rows > fragmentLow && f.Loads > tallLoads {
				return false
			}
		}
	}
	return true
}

// sharing is that of the projection's first matrix.
func (p *projection) sharing() string {
	return p.matrices[0].format.Fragment.Sharing
}

// each is the outputs of each matrix of a subgroup.
func (k gemmFragment) each() int { return k.outputs / len(k.projects[0].matrices) }

// tile is the outputs of each matrix of a tile.
func (k gemmFragment) tile() int { return k.across * k.each() }

// outputsOf is the outputs of each matrix of a workgroup.
func (k gemmFragment) outputsOf() int { return k.series * k.tile() }

// tileRows is the rows of x of a workgroup, in whole matrices.
func (k gemmFragment) tileRows() int {
	return site.CeilDiv(k.most, fragment.Columns) * fragment.Columns
}

// rowTiles is how many tiles the rows of a step are.
func (k gemmFragment) rowTiles() int { return site.CeilDiv(k.linearGroup.rows, k.fragmentTile.rows) }

// rowsKey says how many rows a workgroup takes, and whether there are others.
// Tiles of x may have more orders than are read here.
func (k gemmFragment) rowsKey() string {
	key := fmt.Sprint(k.tileRows())
	if k.rowTiles() > 1 {
		key += " each"
	}
	if k.tiled != nil && k.tiled.Attrs.Str("lanes") != k.tileOrders() {
		key += " of " + k.tiled.Attrs.Str("lanes")
	}
	return key
}

func (k gemmFragment) threads() int { return k.groups * k.across * k.wave }

func (k gemmFragment) product(family, code, shape string, tiling *site.Tiling) product {
	return product{family: family, from: k.from, rows: k.tileRows(), outputs: each(k.outputsOf()), code: code, shape: shape, sums: k.sumsKey(), tiling: tiling, kernel: k.kernel}
}

// sumsKey is what the sums of a row depend on: matrices are added in the order of blocks, whatever else the tile is.
func (t fragmentTile) sumsKey() string { return fmt.Sprintf("groups=%d splits=%d", t.groups, t.splits) }

func (k gemmFragment) candidate() site.Candidate {
	code := fmt.Sprintf("rows=%s %s", k.rowsKey(), k.name())
	if k.ahead {
		code += " ahead"
	}
	c := k.product(k.pipe.family, code, k.name(), k.tiling()).candidate()
	for i, p := range k.projects {
		if p.tile != nil {
			c.Cover[i] = k.tileCover(i)
		}
	}
	if k.late > 0 {
		c.Grid[2] = 2
		k.coverHalves(c.Cover)
	}
	if k.splits > 1 {
		for i := range c.Cover {
			c.Cover[i].Joined = []int{2}
		}
		c.Grid[2] = k.splits
		tiles := k.tiles(k.outputsOf())
		c.Cover = append(c.Cover, plans.Cover{Arg: "partial", Dims: []int{k.linearGroup.rows, k.splits, tiles, k.outputsOf()},
			Tile: []int{k.tileRows(), 1, 1, k.outputsOf()}, Axis: []int{0, 2, 1, -1}})
	}
	return c
}

// stride is the vec4 from row to row of the sums in shared memory.
func (k gemmFragment) stride() int { return k.across*k.outputs/4 + 1 }

// part is the rows of sums that are in shared memory at once.
func (k gemmFragment) part() int {
	part := k.tileRows()
	if k.pipe.space == nil {
		return part
	}
	for part > fragment.Columns && (k.tileRows()%part != 0 || k.groups*part*k.stride() > k.pipe.space(k)) {
		part -= fragment.Columns
	}
	return part
}

// region is the vec4 of the sums of a tile.
func (k gemmFragment) region() int { return k.groups * k.part() * k.stride() }

// shared is the vec4 of shared memory: x, later sums; of tiles in series those of two.
func (k gemmFragment) shared() int {
	size := 0
	for _, k.most = range k.cases() {
		if k.pipe.shared != nil {
			size = max(size, k.pipe.shared(k))
		}
		if !k.direct() {
			size = max(size, k.turns()*k.region())
		}
	}
	return size
}

// declareSeries declares how many tiles of outputs a workgroup goes through.
func (k gemmFragment) declareSeries(s *site.Signature) kernel.Value {
	return s.U32("series", k.series, 1, "tiles of outputs that a workgroup goes through")
}

func (k gemmFragment) kernel(s *site.Signature) func(b *kernel.Builder) {
	a, series, find := k.declare(s, false, k.firsts(k.outputsOf())), k.declareSeries(s), k.from.declareRows(s)
	split := k.declareSplit(s)
	late := a.projects[k.late].first
	return func(b *kernel.Builder) {
		b.Workgroup(k.threads())
		rows := find(b, a)
		if k.routing == nil {
			a.join(b, b.WorkgroupID(1))
		}
		tile := rows(k.tileRows())
		if k.late > 0 {
			k.halve(b, &tile, late)
		}
		if k.rowTiles() > 1 || k.late > 0 {
			none := b.Ge(tile.row, tile.rows)
			k.clearTiles(b, a, none)
			b.ReturnIf(none)
		}
		if split != nil {
			k.emitSplits(b, a, series, tile, split)
			return
		}
		k.emit(b, a, series, b.WorkgroupID(1), tile, nil)
	}
}
