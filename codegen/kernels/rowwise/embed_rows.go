package rowwise

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// rowsTile is the elements of a workgroup that reads rows which lie interleaved.
const rowsTile = 64

// fromLines is the kernel of a table of which 16 rows lie interleaved: a lane takes one element at a time.
func (k embed) fromLines(s *site.Site, op *ir.Op) []site.Candidate {
	ids, table := op.Args[0], op.Args[1]
	vocab, width := int(table.Type.Shape[0]), int(table.Type.Shape[1])
	wave := s.Target.Wave
	return []site.Candidate{{
		Kernel: fmt.Sprintf("embed rows %s w=%d%s", k.interleaved.Name, wave, k.rows.Key()),
		Build:  func() (*kernel.Func, error) { return k.buildLines(wave) },
		Consts: append([]ir.Const{
			{Name: "width", Value: uint32(width)}, {Name: "vocab", Value: uint32(vocab)},
			ir.FloatConst("scale", op.Attrs.Float("scale")),
		}, k.rows.Consts()...),
		Grid: [3]int{site.CeilDiv(width, rowsTile), k.rows.Max, 1},
		Operands: append([]site.Operand{
			{Name: "ids", Value: ids, Access: kernel.Read}, {Name: "table", Value: table, Access: kernel.Read}, {Name: "y", Value: op.Result, Access: kernel.Write},
		}, k.rows.Operands()...),
		Cover: []plans.Cover{{Arg: "y", Dims: []int{k.rows.Max, width}, Tile: []int{1, rowsTile}, Axis: []int{1, 0}}},
	}}
}

func (k embed) buildLines(wave int) (*kernel.Func, error) {
	const lanes = 16 // of a line
	return kernel.Build("embed", func(b *kernel.Builder) {
		ids, table, y := b.Arg("ids", kernel.Read), b.Arg("table", kernel.Read), b.Arg("y", kernel.Write)
		width, vocab, scale := b.SpecU32("width", 4096), b.SpecU32("vocab", 32000), b.SpecF32("scale", 1)
		b.Workgroup(wave)
		rows := k.rows.Bound(b)
		f, row := k.interleaved, b.WorkgroupID(1)
		id := b.Select(b.Lt(row, rows), ids.Load(kernel.U32, row), vocab)
		images := b.Div(width, f.Cols)
		group := b.Mul(b.Div(id, lanes), images)
		for j := 0; j < rowsTile; j += wave {
			i := b.Add(b.Mul(b.WorkgroupID(0), rowsTile), b.LocalID(), j)
			to := b.Add(b.Mul(row, width), i)
			b.IfElse(b.Lt(id, vocab), func() {
				from := b.Mul(b.Add(group, b.Div(i, f.Cols)), f.Words)
				word := func(w kernel.Value) kernel.Value {
					return table.Load(kernel.U32, b.Add(b.Mul(b.Add(from, w), lanes), b.Mod(id, lanes)))
				}
				y.Store(to, b.Mul(f.Decode(b, word, b.Mod(i, f.Cols)), scale))
			}, func() { y.Store(to, b.F32(0)) })
		}
	})
}
