package kernels

import "github.com/zincc-dev/zincc/codegen/kernel"

// dealtSplit is the part that a workgroup has in the elements of a row. It leaves its sums
// in memory, and the last of those that share a row adds them.
type dealtSplit struct {
	partial *kernel.Buffer // by row, split, workgroup, output
	split   kernel.Value
	splits  int
	tiles   kernel.Value // workgroups of a split
	wide    int          // vec4 of a row of a tile
}

// emitSplits emits the kernel whose workgroups share the elements of a row.
func (k gemmDealt) emitSplits(b *kernel.Builder, a *linearArgs, series kernel.Value, tile rowTile) {
	partial, arrivals := b.Arg("partial", kernel.ReadWrite), b.Arg("arrivals", kernel.ReadWrite)
	s := &dealtSplit{partial: partial, split: b.WorkgroupID(1), splits: k.splits, tiles: b.SpecU32("tiles", 32), wide: k.tile() / 4}
	workgroup := b.WorkgroupID(0)
	k.emit(b, a, series, workgroup, tile, s)
	b.ReturnIf(b.Not(meet(b, arrivals, workgroup, b.U32(uint32(s.splits)))))
	tile.b = b
	a.each(b, workgroup, func(p *projectArgs, at kernel.Value) {
		tile.p = p
		b.For(b.LocalID(), b.Mul(tile.rows, s.wide), k.threads(), func(i kernel.Value) {
			row, x := b.Div(i, s.wide), b.Mod(i, s.wide)
			col := b.Add(b.Mul(at, s.wide), x)
			var parts []kernel.Value
			for split := range k.splits {
				parts = append(parts, partial.Load(f32x4, s.place(b, row, split, workgroup, x)))
			}
			sum := parts[0]
			for _, part := range parts[1:] {
				sum = b.Add(sum, part)
			}
			tile.finish([]kernel.Value{sum}, row, col, b.Bool(true))()
		})
	})
}

// place is where a split leaves vec4 x of a row of a workgroup's tile.
func (s *dealtSplit) place(b *kernel.Builder, row kernel.Value, split kernel.Operand, workgroup, x kernel.Value) kernel.Value {
	return b.Add(b.Mul(b.Add(b.Mul(b.Add(b.Mul(row, s.splits), split), s.tiles), workgroup), s.wide), x)
}

// leave writes vec4 x of a row of the workgroup's sums.
func (s *dealtSplit) leave(t *dealtRun, sum, row, x kernel.Value) {
	b := t.b
	b.If(b.Lt(row, t.rows), func() { s.partial.Store(s.place(b, row, s.split, b.WorkgroupID(0), x), sum) })
}
