package rowwise

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// embed gathers rows of a table and dequantizes them: a lane takes one unit of one
// row. Rows without a token get zeros, so that no stale id is followed.
type embed struct {
	format      *weight.Format
	interleaved *weight.RowsFormat // nil if the rows are not
	rows        site.Extent
}

func EmbedCandidates(s *site.Site) []site.Candidate {
	op := site.Only(s, "embed")
	if op == nil {
		return nil
	}
	ids, table := op.Args[0], op.Args[1]
	vocab, width := int(table.Type.Shape[0]), int(table.Type.Shape[1])
	rows, ok := site.ExtentOf(s, ids)
	k := embed{weight.FormatOf(table.Type.DType, width), weight.RowsOf(s.Target, table), rows}
	if !ok || k.format == nil {
		return nil
	}
	if k.interleaved != nil {
		return k.fromLines(s, op)
	}
	// A multiple of the units that lie in each other's gaps, so that a workgroup
	// writes consecutive elements.
	workgroup := min(max(32, s.Target.Wave), s.Target.Workgroup)
	tile := workgroup * k.format.Unit
	return []site.Candidate{{
		Kernel: fmt.Sprintf("embed %s%s", k.format.Name, rows.Key()),
		Build:  k.build,
		Consts: append([]ir.Const{
			{Name: "width", Value: uint32(width)},
			{Name: "vocab", Value: uint32(vocab)},
			ir.FloatConst("scale", op.Attrs.Float("scale")),
			{Name: "workgroup", Value: uint32(workgroup)},
		}, rows.Consts()...),
		Grid: [3]int{site.CeilDiv(width, tile), rows.Max, 1},
		Operands: append([]site.Operand{
			{Name: "ids", Value: ids, Access: kernel.Read}, {Name: "table", Value: table, Access: kernel.Read}, {Name: "y", Value: op.Result, Access: kernel.Write},
		}, rows.Operands()...),
		Cover: []plans.Cover{{Arg: "y", Dims: []int{rows.Max, width}, Tile: []int{1, tile}, Axis: []int{1, 0}}},
	}}
}

func (k embed) build() (*kernel.Func, error) {
	return kernel.Build("embed", func(b *kernel.Builder) {
		ids := b.Arg("ids", kernel.Read)
		table := b.Arg("table", kernel.Read)
		y := b.Arg("y", kernel.Write)
		width := b.SpecU32("width", 4096)
		vocab := b.SpecU32("vocab", 32000)
		scale := b.SpecF32("scale", 1)
		workgroup := b.SpecU32("workgroup", 32)
		b.Workgroup(workgroup)
		rows := k.rows.Bound(b)

		u := b.Add(b.Mul(b.WorkgroupID(0), workgroup), b.LocalID())
		b.ReturnIf(b.Ge(u, b.Div(width, k.format.Unit)))
		row := b.WorkgroupID(1)
		begin := b.Add(b.Mul(row, b.Div(width, 4)), b.Div(k.format.Begin(b, u), 4))
		id := b.Select(b.Lt(row, rows), ids.Load(kernel.U32, row), vocab)
		put := func(value func(run, i int) kernel.Value) {
			for v := range k.format.Unit / 4 {
				i := k.format.Run / 4
				y.Store(b.Add(begin, k.format.At(v)/4), value(v/i, v%i))
			}
		}
		b.IfElse(b.Lt(id, vocab), func() {
			runs := k.format.Load(b, weight.Matrix{Format: k.format, Buf: table, Rows: vocab, Cols: width}, id, u)
			put(func(r, i int) kernel.Value { return b.Mul(runs[r].Value(b, k.format, i), b.Splat(scale, 4)) })
		}, func() {
			zero := b.Splat(b.F32(0), 4)
			put(func(int, int) kernel.Value { return zero })
		})
	})
}
