package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// Where tiles of 256 rows take two rounds of the units, and the second round leaves many of them idle, the later
// projections of a group have tiles of 128 rows, two for one along axis 2 of the grid. They begin last and take half as
// long.

// lateFrom returns which projection such tiles are for, 0 if none is.
func (g *linearGroup) lateFrom(s *site.Site, t fragmentTile) int {
	first := g.projects[0]
	if len(g.projects) == 1 || t.rows != groupedRows || t.splits > 1 || g.tiled == nil {
		return 0
	}
	k := g.fragment(t)
	whole, all := k.rowTiles()*site.CeilDiv(first.width, k.outputsOf()), k.rowTiles()*g.tiles(k.outputsOf())
	for _, p := range g.projects {
		if p.tile != nil {
			return 0
		}
	}
	if units := s.Target.Units; whole > units || all <= units || whole+2*(all-whole) > 2*units {
		return 0
	}
	return 1
}

// halve gives the workgroup half of the tile's rows where the projections from workgroup late on are computed; the
// other half is for its neighbour on axis 2, of which other projections have none.
func (k *gemmFragment) halve(b *kernel.Builder, t *rowTile, late kernel.Value) {
	is, half := b.Ge(b.WorkgroupID(1), late), b.WorkgroupID(2)
	b.ReturnIf(b.And(b.Not(is), b.Eq(half, 1)))
	t.row = b.Add(t.row, b.Select(is, b.Mul(half, ir.TileRows), 0))
	limit := b.Select(is, b.U32(ir.TileRows), groupedRows)
	k.limit = &limit
}

// coverHalves says it of what the workgroups write.
func (k gemmFragment) coverHalves(list []plans.Cover) {
	for i := range k.projects {
		c := &list[i]
		if i < k.late { // there is one
			c.Dims, c.Tile, c.Axis, c.First = append(c.Dims, 1), append(c.Tile, 1), append(c.Axis, 2), append(c.First, 0)
			continue
		}
		rows, width := c.Dims[0], c.Dims[1]
		c.Dims, c.Tile = []int{rows / groupedRows, groupedRows / ir.TileRows, ir.TileRows, width}, []int{1, 1, ir.TileRows, c.Tile[1]}
		c.Axis, c.First = []int{0, 2, -1, 1}, []int{0, 0, 0, c.First[1]}
	}
}
