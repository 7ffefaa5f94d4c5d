package kernels

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// CoopOctets returns a kernel that writes the octets of a weight of dtype d as
// gemm_coop puts them into shared memory: one workgroup a row.
func CoopOctets(d ir.DType, rows, cols int) (*kernel.Func, error) {
	w := formatOf(d, cols)
	f := coopFormatOf(w.layout)
	return kernel.Build("octets", func(b *kernel.Builder) {
		m := matrix{w, b.Arg("w", kernel.Read), b.SpecU32("rows", uint32(rows)), b.SpecU32("cols", uint32(cols))}
		y := b.Arg("y", kernel.Write)
		b.Workgroup(cols / coopDepth * f.items)
		step, item := b.Div(b.LocalID(), f.items), b.Mod(b.LocalID(), f.items)
		at := b.Add(b.Mul(b.WorkgroupID(0), cols/8), b.Mul(step, coopOctets), b.Mul(item, f.run))
		row := f.open(newCoopDecoder(b, b.LocalID()), m, b.WorkgroupID(0), item)
		for p := range f.span {
			b.If(b.Eq(b.Mod(step, f.span), p), func() {
				block := b.Div(step, f.span)
				var head []kernel.Value
				if row.head != nil {
					head = row.head(block)
				}
				for i, v := range row.octets(head, row.load(block, p), p) {
					y.Store(b.Add(at, i/f.run*f.stride+i%f.run), v)
				}
			})
		}
	})
}

// DealtOctets returns a kernel that writes the octets of a weight of dtype d as lanes of
// gemm_dealt make them, each where it is in its row: one workgroup a row, four lanes a block.
func DealtOctets(d ir.DType, rows, cols int) (*kernel.Func, error) {
	w := formatOf(d, cols)
	f := dealtFormatOf(w.layout)
	return kernel.Build("octets", func(b *kernel.Builder) {
		m := matrix{w, b.Arg("w", kernel.Read), b.SpecU32("rows", uint32(rows)), b.SpecU32("cols", uint32(cols))}
		y := b.Arg("y", kernel.Write)
		b.Workgroup(cols / dealtBlock * 4)
		block, quad := b.Div(b.LocalID(), 4), b.Mod(b.LocalID(), 4)
		row := b.WorkgroupID(0)
		item := f.open(newCoopDecoder(b, b.LocalID()), m, row, quad)
		for p := range dealtSteps {
			loaded := item.load(block, p)
			var scales []kernel.Value
			if item.scales != nil {
				scales = item.scales(item.head(block), p)
			}
			for i := range 4 {
				v := item.octet(scales, loaded, i)
				at := dealings[f.dealing].octet(b, quad, b.U32(uint32(i)), p)
				y.Store(b.Add(b.Mul(row, cols/8), b.Mul(block, dealtBlock/8), at), v)
			}
		}
	})
}

// CoopElement returns which element of the row is half i of its octets.
func CoopElement(i int) int { return i&^7 | []int{0, 2, 1, 3, 4, 6, 5, 7}[i%8] }

// CoopTile names the best tile for projections of so many outputs from rows of k.
func CoopTile(t *target.Target, rows, k, matrices int, widths ...int) string {
	g := &linearGroup{rows: rows, k: k}
	for _, w := range widths {
		g.projects = append(g.projects, &projection{width: w, matrices: make([]*weights, matrices)})
	}
	return coopTiles(g, t)[0].name()
}
