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
	op          *ir.Op
}

// tableArgs are what both kernels of a table take.
type tableArgs struct {
	ids, table, y       *kernel.Buffer
	width, vocab, scale kernel.Value
}

func (k embed) declare(s *site.Signature) tableArgs {
	table := k.op.Args[1]
	return tableArgs{
		ids: s.Read("ids", k.op.Args[0]), table: s.Read("table", table), y: s.Write("y", k.op.Result),
		width: s.U32("width", int(table.Type.Shape[1]), 4096, "elements of a row"),
		vocab: s.U32("vocab", int(table.Type.Shape[0]), 32000, "rows of the table"),
		scale: s.F32("scale", k.op.Attrs.Float("scale"), 1, "factor of all elements"),
	}
}

func EmbedCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	table := op.Args[1]
	width := int(table.Type.Shape[1])
	rows, ok := site.ExtentOf(s, op.Args[0])
	k := embed{weight.FormatOf(s.Target, table.Type.DType, width), weight.RowsOf(s.Target, table), rows, op}
	if !ok || k.format == nil {
		return nil
	}
	if k.interleaved != nil {
		return k.fromLines(s.Target.Wave, width)
	}
	// A multiple of the units that lie in each other's gaps, so that a workgroup
	// writes consecutive elements.
	workgroup := min(max(32, s.Target.Wave), s.Target.Workgroup)
	tile := workgroup * k.format.Unit
	return []site.Candidate{site.Implement(site.Candidate{
		Kernel: fmt.Sprintf("embed %s%s", k.format.Name, rows.Key()),
		Grid:   [3]int{site.CeilDiv(width, tile), rows.Max, 1},
		Cover:  []plans.Cover{{Arg: "y", Dims: []int{rows.Max, width}, Tile: []int{1, tile}, Axis: []int{1, 0}}},
	}, "embed", func(s *site.Signature) func(b *kernel.Builder) { return k.gather(s, workgroup) })}
}

func (k embed) gather(s *site.Signature, lanes int) func(b *kernel.Builder) {
	a := k.declare(s)
	workgroup, extent := s.U32("workgroup", lanes, 32, "lanes"), k.rows.Declare(s)
	return func(b *kernel.Builder) {
		b.Workgroup(workgroup)
		rows, width, vocab := extent.Load(b), a.width, a.vocab

		u := b.Add(b.Mul(b.WorkgroupID(0), workgroup), b.LocalID())
		b.ReturnIf(b.Ge(u, b.Div(width, k.format.Unit)))
		row := b.WorkgroupID(1)
		begin := b.Add(b.Mul(row, b.Div(width, 4)), b.Div(k.format.Begin(b, u), 4))
		id := b.Select(b.Lt(row, rows), a.ids.Load(kernel.U32, row), vocab)
		put := func(value func(run, i int) kernel.Value) {
			for v := range k.format.Unit / 4 {
				i := k.format.Run / 4
				a.y.Store(b.Add(begin, k.format.At(v)/4), value(v/i, v%i))
			}
		}
		b.IfElse(b.Lt(id, vocab), func() {
			runs := k.format.Load(b, weight.Matrix{Format: k.format, Buf: a.table, Rows: vocab, Cols: width}, id, u)
			put(func(r, i int) kernel.Value { return b.Mul(runs[r].Value(b, k.format, i), b.Splat(a.scale, 4)) })
		}, func() {
			zero := b.Splat(b.F32(0), 4)
			put(func(int, int) kernel.Value { return zero })
		})
	}
}
