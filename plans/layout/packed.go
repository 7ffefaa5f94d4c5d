package layout

import "github.com/zincc-dev/zincc/ir"

// packed is a recipe of planes in which the bits of a block lie in another order, and of which each
// run of 32 elements has its own words, halves, bytes or nibbles.
func packed(d ir.DType, group int, fields ...field) Recipe {
	return Recipe{Name: "packed", DType: d, Format: d.String(), Group: group, fields: fields}
}

// spread is a plane of some bits of every code, from bit low up, in words of 32/bits elements: elements
// 4k to 4k+3 of a word are in bits k*bits of its four bytes. So a shift and a mask make four bytes of a word.
func spread(name string, d ir.DType, low, bits int, codes func(q, block []byte)) field {
	n := d.Block()
	return field{name: name, size: n * bits / 8, fill: func(dst, block []byte) {
		var q [256]byte
		codes(q[:n], block)
		clear(dst)
		each := 32 / bits // elements of a word
		for i, c := range q[:n] {
			in := i % each
			dst[i/each*4+in%4] |= c >> low & (1<<bits - 1) << (in / 4 * bits)
		}
	}}
}

// each is a plane of a value for each of n parts of a block.
func each(name string, n, size int, fill func(dst, block []byte, part int)) field {
	return field{name: name, size: n * size, fill: func(dst, block []byte) {
		for i := range n {
			fill(dst[i*size:][:size], block, i)
		}
	}}
}

// PlaneBytes returns the bytes that each plane has of a block.
func (r Recipe) PlaneBytes() []int {
	var list []int
	for _, f := range r.fields {
		list = append(list, f.size)
	}
	return list
}

// write makes the plane's bytes of a block.
func (f field) write(dst, block []byte) {
	if f.fill == nil {
		copy(dst, block[f.from:])
		return
	}
	f.fill(dst, block)
}
