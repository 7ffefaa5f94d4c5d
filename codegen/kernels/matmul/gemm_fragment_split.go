package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
)

// fragmentSplit is the part that a workgroup has in the elements of a row. It leaves its sums
// in memory, and the last of those that share a row adds them.
type fragmentSplit struct {
	partial  *kernel.Buffer // by row, split, workgroup, output
	arrivals *kernel.Buffer
	split    kernel.Value
	splits   int
	tiles    kernel.Value // workgroups of a split
	wide     int          // vec4 of a row of a tile
}

// declareSplit declares what workgroups share; nil if each has all elements of its rows.
func (k gemmFragment) declareSplit(s *site.Signature) *fragmentSplit {
	if k.splits == 1 {
		return nil
	}
	return &fragmentSplit{partial: s.Update("partial", k.workspace), arrivals: s.Update("arrivals", k.counts),
		splits: k.splits, tiles: s.U32("tiles", k.tiles(k.outputsOf()), 32, "workgroups of a split"), wide: k.tile() / 4}
}

// emitSplits emits the kernel whose workgroups share the elements of a row.
func (k gemmFragment) emitSplits(b *kernel.Builder, a *linearArgs, series kernel.Value, tile rowTile, s *fragmentSplit) {
	s.split = b.WorkgroupID(2)
	workgroup := b.WorkgroupID(1)
	k.emit(b, a, series, workgroup, tile, s)
	b.ReturnIf(b.Not(site.LastBlock(b, s.arrivals, b.Add(b.Mul(b.WorkgroupID(0), s.tiles), workgroup), b.U32(uint32(s.splits)))))
	tile.b = b
	n := b.Mul(k.rowsOf(&tile), s.wide)
	a.each(b, workgroup, func(p *projectArgs, at kernel.Value) {
		tile.p = p
		b.For(b.LocalID(), n, k.threads()*sumsAtOnce, func(i kernel.Value) {
			var parts [sumsAtOnce][]kernel.Value
			var finish [sumsAtOnce]func()
			var rows, cols [sumsAtOnce]kernel.Value
			for j := range parts { // all is asked for before any of it is added
				i := b.Min(b.Add(i, j*k.threads()), b.Sub(n, 1))
				x := b.Mod(i, s.wide)
				rows[j], cols[j] = b.Add(tile.row, b.Div(i, s.wide)), b.Add(b.Mul(at, s.wide), x)
				for split := range k.splits {
					parts[j] = append(parts[j], s.partial.Load(lane.F32x4, s.place(b, rows[j], split, workgroup, x)))
				}
			}
			for j, list := range parts {
				sum := list[0]
				for _, part := range list[1:] {
					sum = b.Add(sum, part)
				}
				finish[j] = tile.finish([]kernel.Value{sum}, rows[j], cols[j], b.Lt(b.Add(i, j*k.threads()), n))
			}
			for _, f := range finish {
				f()
			}
		})
	})
}

// sumsAtOnce is the vec4 of sums that a lane adds up at a time.
const sumsAtOnce = 4

// place is where a split leaves vec4 x of a row of a workgroup's tile.
func (s *fragmentSplit) place(b *kernel.Builder, row kernel.Value, split kernel.Operand, workgroup, x kernel.Value) kernel.Value {
	return b.Add(b.Mul(b.Add(b.Mul(b.Add(b.Mul(row, s.splits), split), s.tiles), workgroup), s.wide), x)
}

// leave writes vec4 x of a row of the workgroup's sums.
func (s *fragmentSplit) leave(t *fragmentRun, sum, row, x kernel.Value) {
	b := t.b
	b.If(b.Lt(row, t.rows), func() { s.partial.Store(s.place(b, row, s.split, b.WorkgroupID(1), x), sum) })
}
