package gguf

import (
	"math/bits"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf/codebook"
)

// Formats with blocks of 256 whose elements are vectors of a grid. Eight groups of 32 have four runs of
// 8 elements each. A sign bit says that its element is negative.

var gridFormats = map[uint32]format{
	16: {name: "IQ2_XXS", dtype: ir.IQ2_XXS, dequantize: dequantIQ2_XXS},
	17: {name: "IQ2_XS", dtype: ir.IQ2_XS, dequantize: dequantIQ2_XS},
	18: {name: "IQ3_XXS", dtype: ir.IQ3_XXS, dequantize: dequantIQ3_XXS},
	19: {name: "IQ1_S", dtype: ir.IQ1_S, dequantize: dequantIQ1_S},
	21: {name: "IQ3_S", dtype: ir.IQ3_S, dequantize: dequantIQ3_S},
	22: {name: "IQ2_S", dtype: ir.IQ2_S, dequantize: dequantIQ2_S},
	29: {name: "IQ1_M", dtype: ir.IQ1_M, dequantize: dequantIQ1_M},
}

// signs7 completes seven sign bits with the eighth, which makes the number of negative elements even.
func signs7(b uint32) byte { return byte(b&127 | uint32(bits.OnesCount32(b&127)&1)<<7) }

// signed fills y with elements of a grid times scale, with the sign bits of a byte from bit 0 up.
func signed(y []float32, grid []int8, signs byte, scale float32) {
	for j, v := range grid {
		x := scale * float32(v)
		if signs>>j&1 != 0 {
			x = -x
		}
		y[j] = x
	}
}

// IQ2_XXS: f16 d, 8 bytes for each group: four indices, then four times 7 signs and a 4-bit scale;
// d*(2*scale+1)/8.
func dequantIQ2_XXS(dst []float32, src []byte) {
	for ; len(dst) >= 256; dst, src = dst[256:], src[66:] {
		d := half(src)
		for g := range 8 {
			q := src[2+8*g:]
			rest := le.Uint32(q[4:])
			scale := d * (0.5 + float32(rest>>28)) * 0.25
			for l := range 4 {
				signed(dst[32*g+8*l:], codebook.IQ2XXS.Vector(int(q[l])), signs7(rest>>(7*l)), scale)
			}
		}
	}
}

// IQ2_XS: f16 d, 16 bits for each run: 9 of an index and 7 signs, a 4-bit scale for two runs each;
// d*(2*scale+1)/8.
func dequantIQ2_XS(dst []float32, src []byte) {
	for ; len(dst) >= 256; dst, src = dst[256:], src[74:] {
		d := half(src)
		for r := range 32 {
			q := le.Uint16(src[2+2*r:])
			scale := d * (0.5 + float32(src[66+r/4]>>(r%4/2*4)&15)) * 0.25
			signed(dst[8*r:], codebook.IQ2XS.Vector(int(q&511)), signs7(uint32(q>>9)), scale)
		}
	}
}

// IQ2_S: f16 d, for each run the low 8 bits of an index, the signs, the 2 high bits of the index, and scales
// as in IQ2_XS.
func dequantIQ2_S(dst []float32, src []byte) {
	for ; len(dst) >= 256; dst, src = dst[256:], src[82:] {
		d := half(src)
		for r := range 32 {
			i := int(src[2+r]) | int(src[66+r/4])>>(r%4*2)&3<<8
			scale := d * (0.5 + float32(src[74+r/4]>>(r%4/2*4)&15)) * 0.25
			signed(dst[8*r:], codebook.IQ2S.Vector(i), src[34+r], scale)
		}
	}
}

// IQ3_XXS: f16 d, two indices for each run, then for each group four times 7 signs and a 4-bit scale;
// d*(2*scale+1)/4.
func dequantIQ3_XXS(dst []float32, src []byte) {
	for ; len(dst) >= 256; dst, src = dst[256:], src[98:] {
		d := half(src)
		for g := range 8 {
			rest := le.Uint32(src[66+4*g:])
			scale := d * (0.5 + float32(rest>>28)) * 0.5
			for l := range 4 {
				y, q, signs := dst[32*g+8*l:], src[2+8*g+2*l:], signs7(rest>>(7*l))
				signed(y, codebook.IQ3XXS.Vector(int(q[0])), signs, scale)
				signed(y[4:], codebook.IQ3XXS.Vector(int(q[1])), signs>>4, scale)
			}
		}
	}
}

// IQ3_S: f16 d, the low 8 bits of two indices for each run, their ninth bits, the signs, and a 4-bit
// scale for each group; d*(2*scale+1).
func dequantIQ3_S(dst []float32, src []byte) {
	for ; len(dst) >= 256; dst, src = dst[256:], src[110:] {
		d := half(src)
		for r := range 64 { // of 4
			i := int(src[2+r]) | int(src[66+r/8])>>(r%8)&1<<8
			scale := d * (1 + 2*float32(src[106+r/16]>>(r/8%2*4)&15))
			signed(dst[4*r:], codebook.IQ3S.Vector(i), src[74+r/2]>>(r%2*4), scale)
		}
	}
}

// iq1Delta is what the IQ1 formats add to their grid, or take from it.
const iq1Delta = 0.125

// shifted fills y with elements of a grid, moved by delta, times scale.
func shifted(y []float32, grid []int8, negative bool, scale float32) {
	delta := float32(iq1Delta)
	if negative {
		delta = -delta
	}
	for j, v := range grid {
		y[j] = scale * (float32(v) + delta)
	}
}

// IQ1_S: f16 d, for each run the low 8 bits of an index, for each group 16 bits: the 3 high bits of
// four indices, a 3-bit scale and the sign of the shift; d*(2*scale+1).
func dequantIQ1_S(dst []float32, src []byte) {
	for ; len(dst) >= 256; dst, src = dst[256:], src[50:] {
		d := half(src)
		for r := range 32 {
			h := le.Uint16(src[34+r/4*2:])
			i := int(src[2+r]) | int(h)>>(r%4*3)&7<<8
			shifted(dst[8*r:], codebook.IQ1S.Vector(i), h>>15 != 0, d*float32(2*(h>>12&7)+1))
		}
	}
}

// IQ1_M: for each run the low 8 bits of an index, then 4 bits: the 3 high ones and the sign of the
// shift, then a 3-bit scale for two runs each, in four words that have a nibble of the f16 d each, too;
// d*(2*scale+1).
func dequantIQ1_M(dst []float32, src []byte) {
	for ; len(dst) >= 256; dst, src = dst[256:], src[56:] {
		var d16 uint16
		for k := range 4 {
			d16 |= le.Uint16(src[48+2*k:]) >> 12 << (4 * k)
		}
		d := F16ToF32(d16)
		for r := range 32 {
			h := src[32+r/2] >> (r % 2 * 4)
			i := int(src[r]) | int(h&7)<<8
			scale := le.Uint16(src[48+r/8*2:]) >> (r % 8 / 2 * 3) & 7
			shifted(dst[8*r:], codebook.IQ1S.Vector(i), h&8 != 0, d*float32(2*scale+1))
		}
	}
}
