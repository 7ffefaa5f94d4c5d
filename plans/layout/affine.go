package layout

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/ir/gguf/codebook"
)

var le = binary.LittleEndian

// affineBlock takes a block of the file apart. Scale and offset of a group are
// computed in float32 as ggml does, so scale*q + offset gives its floats exactly,
// if product and sum are rounded apart.
type affineBlock struct {
	quants func(q, block []byte) // one int8 an element
	scale  func(block []byte, group int) float32
	offset func(block []byte, group int) float32 // nil: none
}

// affine returns the recipe with planes "q", "scale" and, if there are offsets, "offset".
func affine(d ir.DType, group int, b affineBlock) Recipe {
	r := Recipe{Name: fmt.Sprintf("affine%d", group), DType: d, Group: group, Offset: b.offset != nil}
	groups := d.Block() / group
	r.fields = []field{
		{name: "q", size: d.Block(), fill: b.quants},
		{name: "scale", size: 4 * groups, fill: floats(b.scale)},
	}
	if b.offset != nil {
		r.Name += "m"
		r.fields = append(r.fields, field{name: "offset", size: 4 * groups, fill: floats(b.offset)})
	}
	r.Format = r.Name
	return r
}

func floats(of func(block []byte, group int) float32) func(dst, block []byte) {
	return func(dst, block []byte) {
		for g := range len(dst) / 4 {
			le.PutUint32(dst[4*g:], math.Float32bits(of(block, g)))
		}
	}
}

func half(b []byte) float32 { return gguf.F16ToF32(le.Uint16(b)) }

// Formats of 32 elements that begin with an f16 scale and, for some, an f16 minimum.

func scaleF16(b []byte, _ int) float32  { return half(b) }
func offsetF16(b []byte, _ int) float32 { return half(b[2:]) }

// nibbles calls put with every element of 16 bytes of nibbles: the low ones are
// elements 0-15, the high ones 16-31.
func nibbles(b []byte, put func(i int, n byte)) {
	for j, n := range b[:16] {
		put(j, n&15)
		put(j+16, n>>4)
	}
}

func quantsQ4_1(q, b []byte) {
	nibbles(b[4:], func(i int, n byte) { q[i] = n })
}

func quantsQ5_0(q, b []byte) {
	high := le.Uint32(b[2:])
	nibbles(b[6:], func(i int, n byte) { q[i] = n + byte(high>>i&1<<4) - 16 })
}

func quantsQ5_1(q, b []byte) {
	high := le.Uint32(b[4:])
	nibbles(b[8:], func(i int, n byte) { q[i] = n + byte(high>>i&1<<4) })
}

func quantsIQ4_NL(q, b []byte) {
	nibbles(b[2:], func(i int, n byte) { q[i] = byte(codebook.IQ4[n]) })
}

func quantsIQ4_XS(q, b []byte) {
	for sub := range 8 {
		nibbles(b[8+16*sub:], func(i int, n byte) { q[32*sub+i] = byte(codebook.IQ4[n]) })
	}
}

// scaleIQ4_XS is d*(s-32); s has its low nibble in byte 4+g/2, its high 2 bits in
// the 16-bit word at 2.
func scaleIQ4_XS(b []byte, g int) float32 {
	s := int(b[4+g/2]>>(g%2*4)&15) | int(le.Uint16(b[2:])>>(2*g)&3)<<4
	return half(b) * float32(s-32)
}

func quantsMXFP4(q, b []byte) {
	nibbles(b[1:], func(i int, n byte) { q[i] = byte(codebook.E2M1[n]) })
}

// scaleMXFP4 is 2^(e-128): half of what the exponent means, since codebook.E2M1 is doubled.
func scaleMXFP4(b []byte, _ int) float32 {
	return float32(math.Ldexp(1, int(b[0])-128))
}

// Q2_K: 16 bytes of (scale, minimum) nibbles, 64 bytes of 2-bit elements, f16 d,
// f16 dmin. Q3_K: 32 bytes of high bits, the same 64 bytes, 12 bytes of scales, f16 d.

// bits2 returns element i of the 2-bit elements that both share: each half of the
// block has 32 bytes, which hold elements l, l+32, l+64, l+96 from the low bits up.
func bits2(b []byte, i int) byte { return b[i/128*32+i%32] >> (i % 128 / 32 * 2) & 3 }

func quantsQ2_K(q, b []byte) {
	for i := range q {
		q[i] = bits2(b[16:], i)
	}
}

func scaleQ2_K(b []byte, g int) float32  { return half(b[80:]) * float32(b[g]&15) }
func offsetQ2_K(b []byte, g int) float32 { return -(half(b[82:]) * float32(b[g]>>4)) }

func quantsQ3_K(q, b []byte) {
	for i := range q {
		q[i] = bits2(b[32:], i) | b[i%32]>>(i/32)&1<<2 - 4
	}
}

// scaleQ3_K is d*(s-32); s has its low 4 bits in byte g%8 of the scales (the high
// nibble for g >= 8), its high 2 bits in byte 8+g%4 at bit g/4*2.
func scaleQ3_K(b []byte, g int) float32 {
	s := b[96+g%8]>>(g/8*4)&15 | b[96+8+g%4]>>(g/4*2)&3<<4
	return half(b[108:]) * float32(int(s)-32)
}
