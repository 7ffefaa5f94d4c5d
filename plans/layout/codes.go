package layout

// Codes of elements as the file has them, without sign or bias: see package gguf for their bits.

// nibbles calls put with every element of 16 bytes of nibbles: the low ones are
// elements 0-15, the high ones 16-31.
func nibbles(b []byte, put func(i int, n byte)) {
	for j, n := range b[:16] {
		put(j, n&15)
		put(j+16, n>>4)
	}
}

// nibblesFrom returns what fills q with nibbles that begin at a byte of a block, 32 at a time.
func nibblesFrom(from int) func(q, b []byte) {
	return func(q, b []byte) {
		for i := 0; i < len(q); i += 32 {
			nibbles(b[from+i/2:], func(j int, n byte) { q[i+j] = n })
		}
	}
}

// fifths are nibbles with fifth bits, bit i of element i.
func fifths(high, low int) func(q, b []byte) {
	return func(q, b []byte) {
		bits := le.Uint32(b[high:])
		nibbles(b[low:], func(i int, n byte) { q[i] = n | byte(bits>>i&1<<4) })
	}
}

// quarters are 2-bit elements: each half of a block has 32 bytes, which hold elements l, l+32, l+64, l+96 from
// the low bits up.
func quarters(from int) func(q, b []byte) {
	return func(q, b []byte) {
		for i := range q {
			q[i] = b[from+i/128*32+i%32] >> (i % 128 / 32 * 2) & 3
		}
	}
}

func codesQ3_K(q, b []byte) {
	quarters(32)(q, b)
	for i := range q {
		q[i] |= b[i%32] >> (i / 32) & 1 << 2
	}
}

// scaleQ3_K is 6 bits: the low 4 in byte g%8 of the scales (the high nibble for g >= 8), the high 2 in byte
// 8+g%4 at bit g/4*2.
func scaleQ3_K(dst, b []byte, g int) {
	dst[0] = b[96+g%8]>>(g/8*4)&15 | b[96+8+g%4]>>(g/4*2)&3<<4
}

// scaleIQ4_XS is 6 bits: the low nibble in byte 4+g/2, the high 2 bits in the 16-bit word at 2.
func scaleIQ4_XS(dst, b []byte, g int) {
	dst[0] = b[4+g/2]>>(g%2*4)&15 | byte(le.Uint16(b[2:])>>(2*g)&3)<<4
}

func codesNVFP4(q, b []byte) {
	for s := range 4 {
		for j, n := range b[4+8*s:][:8] {
			q[16*s+j], q[16*s+8+j] = n&15, n>>4
		}
	}
}

// bitsFrom are elements of some bits each, from the low bits of a byte up.
func bitsFrom(from, bits int) func(q, b []byte) {
	return func(q, b []byte) {
		each := 8 / bits
		for i := range q {
			q[i] = b[from+i/each] >> (i % each * bits) & (1<<bits - 1)
		}
	}
}
