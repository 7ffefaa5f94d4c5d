package rowwise

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/plans"
)

// rowsTile is the elements of a workgroup that reads rows which lie interleaved.
const rowsTile = 64

// fromLines is the kernel of a table of which 16 rows lie interleaved: a lane takes one element at a time.
func (k embed) fromLines(wave, width int) []site.Candidate {
	return []site.Candidate{site.Implement(site.Candidate{
		Kernel: fmt.Sprintf("embed rows %s w=%d%s", k.interleaved.Name, wave, k.rows.Key()),
		Grid:   [3]int{site.CeilDiv(width, rowsTile), k.rows.Max, 1},
		Cover:  []plans.Cover{{Arg: "y", Dims: []int{k.rows.Max, width}, Tile: []int{1, rowsTile}, Axis: []int{1, 0}}},
	}, "embed", func(s *site.Signature) func(b *kernel.Builder) { return k.gatherLines(s, wave) })}
}

func (k embed) gatherLines(s *site.Signature, wave int) func(b *kernel.Builder) {
	const lanes = 16 // of a line
	a, extent := k.declare(s), k.rows.Declare(s)
	return func(b *kernel.Builder) {
		b.Workgroup(wave)
		rows := extent.Load(b)
		f, row := k.interleaved, b.WorkgroupID(1)
		id := b.Select(b.Lt(row, rows), a.ids.Load(kernel.U32, row), a.vocab)
		images := b.Div(a.width, f.Cols)
		group := b.Mul(b.Div(id, lanes), images)
		for j := 0; j < rowsTile; j += wave {
			i := b.Add(b.Mul(b.WorkgroupID(0), rowsTile), b.LocalID(), j)
			to := b.Add(b.Mul(row, a.width), i)
			b.IfElse(b.Lt(id, a.vocab), func() {
				from := b.Mul(b.Add(group, b.Div(i, f.Cols)), f.Words)
				word := func(w kernel.Value) kernel.Value {
					return a.table.Load(kernel.U32, b.Add(b.Mul(b.Add(from, w), lanes), b.Mod(id, lanes)))
				}
				a.y.Store(to, b.Mul(f.Decode(b, word, b.Mod(i, f.Cols)), a.scale))
			}, func() { a.y.Store(to, b.F32(0)) })
		}
	}
}
