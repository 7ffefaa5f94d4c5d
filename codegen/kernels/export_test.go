package kernels

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
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

// CoopElement returns which element of the row is half i of its octets.
func CoopElement(i int) int { return i&^7 | []int{0, 2, 1, 3, 4, 6, 5, 7}[i%8] }
