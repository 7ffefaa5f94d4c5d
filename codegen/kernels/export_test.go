package kernels

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/ir"
)

// CoopOctets returns a kernel that writes the octets of a weight of dtype d as
// gemm_coop puts them into shared memory, slice after slice: one workgroup a row.
func CoopOctets(d ir.DType, rows, cols int) (*kernel.Func, error) {
	w := formatOf(d, cols)
	f := coopFormatOf(w.layout)
	return kernel.Build("octets", func(b *kernel.Builder) {
		m := matrix{w, b.Arg("w", kernel.Read), b.SpecU32("rows", uint32(rows)), b.SpecU32("cols", uint32(cols))}
		y := b.Arg("y", kernel.Write)
		b.Workgroup(cols / coopSlice * f.items)
		slice, item := b.Div(b.LocalID(), f.items), b.Mod(b.LocalID(), f.items)
		octets := f.load(b, m, b.WorkgroupID(0), slice, item)()
		at := b.Mul(b.Add(b.Mul(b.WorkgroupID(0), cols/coopSlice*f.items), b.LocalID()), len(octets))
		for i, v := range octets {
			y.Store(b.Add(at, i), v)
		}
	})
}

// CoopElement returns which element of the row is half i of the octets of a row.
func CoopElement(d ir.DType, cols, i int) int {
	octet, half := i/8, []int{0, 2, 1, 3, 4, 6, 5, 7}[i%8]
	if coopFormatOf(formatOf(d, cols).layout).paired {
		octet = octet&^7 | octet&1 | octet&2<<1 | octet&4>>1
	}
	return 8*octet + half
}
