package gguf

import (
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf/codebook"
)

// Formats with blocks of 256 in sub-blocks of 16 or 32 with a small scale each.

var block256Formats = map[uint32]format{
	10: {name: "Q2_K", dtype: ir.Q2_K, dequantize: dequantQ2_K},
	11: {name: "Q3_K", dtype: ir.Q3_K, dequantize: dequantQ3_K},
	12: {name: "Q4_K", dtype: ir.Q4_K, dequantize: dequantQ4_K},
	13: {name: "Q5_K", dtype: ir.Q5_K, dequantize: dequantQ5_K},
	14: {name: "Q6_K", dtype: ir.Q6_K, dequantize: dequantQ6_K},
	23: {name: "IQ4_XS", dtype: ir.IQ4_XS, dequantize: dequantIQ4_XS},
}

// Q2_K: 16 bytes of (4-bit scale, 4-bit minimum) for 16 elements each, 64 bytes
// of 2-bit elements, f16 d, f16 dmin; d*scale*q - dmin*min. Each half of the
// block has 32 bytes, which hold elements l, l+32, l+64, l+96 from the low bits up.
func dequantQ2_K(dst []float32, src []byte) {
	for ; len(dst) >= 256; dst, src = dst[256:], src[84:] {
		b := (*[84]byte)(src)
		d, dmin := half(b[80:]), half(b[82:])
		for sub := range 16 {
			y := (*[16]float32)(dst[16*sub:])
			q := (*[16]byte)(b[16+32*(sub/8)+16*(sub%2):])
			shift := sub % 8 / 2 * 2
			scale := d * float32(b[sub]&15)
			minimum := float32(dmin * float32(b[sub]>>4))
			for l := range y {
				y[l] = float32(scale*float32(q[l]>>shift&3)) - minimum
			}
		}
	}
}

// Q3_K: 32 bytes of high bits (bit i/32 of byte i%32 for element i), 64 bytes of
// 2-bit elements as in Q2_K, 12 bytes of 6-bit scales, f16 d; d*(scale-32)*(q-4).
func dequantQ3_K(dst []float32, src []byte) {
	for ; len(dst) >= 256; dst, src = dst[256:], src[110:] {
		b := (*[110]byte)(src)
		d := half(b[108:])
		scales := scalesQ3((*[12]byte)(b[96:]))
		for sub := range 16 {
			y := (*[16]float32)(dst[16*sub:])
			q := (*[16]byte)(b[32+32*(sub/8)+16*(sub%2):])
			high := (*[16]byte)(b[16*(sub%2):])
			shift, bit := sub%8/2*2, sub/2
			scale := d * float32(int(scales[sub])-32)
			for l := range y {
				y[l] = scale * float32(int(q[l]>>shift&3|high[l]>>bit&1<<2)-4)
			}
		}
	}
}

// scalesQ3 unpacks 16 6-bit scales: scale i has its low 4 bits in byte i%8 (the
// high nibble for i >= 8) and its high 2 bits in byte 8+i%4 at bit i/4*2.
func scalesQ3(b *[12]byte) (scales [16]byte) {
	for i := range scales {
		scales[i] = b[i%8]>>(i/8*4)&15 | b[8+i%4]>>(i/4*2)&3<<4
	}
	return scales
}

// scaleMin4 unpacks the i-th of 8 pairs of 6-bit scale and minimum: 4 scales,
// 4 minimums, then the nibbles of the last 4 pairs, whose high bits are the top
// 2 bits of the first 8 bytes.
func scaleMin4(b *[12]byte, i int) (scale, minimum float32) {
	if i < 4 {
		return float32(b[i] & 63), float32(b[i+4] & 63)
	}
	return float32(b[i+4]&15 | b[i-4]>>6<<4), float32(b[i+4]>>4 | b[i]>>6<<4)
}

// Q4_K: f16 d, f16 dmin, 12 bytes of scales and minimums for 32 elements each,
// 128 bytes of nibbles; d*scale*q - dmin*min. 32 bytes hold 64 elements, the
// first 32 in the low nibbles.
func dequantQ4_K(dst []float32, src []byte) {
	for ; len(dst) >= 256; dst, src = dst[256:], src[144:] {
		b := (*[144]byte)(src)
		d, dmin := half(b[:]), half(b[2:])
		for pair := range 4 {
			y := (*[64]float32)(dst[64*pair:])
			q := (*[32]byte)(b[16+32*pair:])
			s1, m1 := scaleMin4((*[12]byte)(b[4:]), 2*pair)
			s2, m2 := scaleMin4((*[12]byte)(b[4:]), 2*pair+1)
			s1, m1, s2, m2 = d*s1, float32(dmin*m1), d*s2, float32(dmin*m2)
			for l, q := range q {
				y[l] = float32(s1*float32(q&15)) - m1
				y[l+32] = float32(s2*float32(q>>4)) - m2
			}
		}
	}
}

// Q5_K: as Q4_K, with 32 bytes of fifth bits (bit i/32 of byte i%32 for element
// i) before the nibbles.
func dequantQ5_K(dst []float32, src []byte) {
	for ; len(dst) >= 256; dst, src = dst[256:], src[176:] {
		b := (*[176]byte)(src)
		d, dmin := half(b[:]), half(b[2:])
		high := (*[32]byte)(b[16:])
		for pair := range 4 {
			y := (*[64]float32)(dst[64*pair:])
			q := (*[32]byte)(b[48+32*pair:])
			s1, m1 := scaleMin4((*[12]byte)(b[4:]), 2*pair)
			s2, m2 := scaleMin4((*[12]byte)(b[4:]), 2*pair+1)
			s1, m1, s2, m2 = d*s1, float32(dmin*m1), d*s2, float32(dmin*m2)
			for l, q := range q {
				h := high[l] >> (2 * pair)
				y[l] = float32(s1*float32(q&15|h&1<<4)) - m1
				y[l+32] = float32(s2*float32(q>>4|h>>1&1<<4)) - m2
			}
		}
	}
}

// Q6_K: 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 int8 scales for
// 16 elements each, f16 d; d*scale*(q-32). In each half of the block, nibble byte
// l holds elements l and l+64, pair byte l%32 elements l, l+32, l+64, l+96.
func dequantQ6_K(dst []float32, src []byte) {
	for ; len(dst) >= 256; dst, src = dst[256:], src[210:] {
		b := (*[210]byte)(src)
		d := half(b[208:])
		for sub := range 8 {
			n, l0 := sub/4, sub%4/2*32+sub%2*16 // half, first nibble byte of this 16
			lo := (*[16]float32)(dst[128*n+l0:])
			hi := (*[16]float32)(dst[128*n+l0+64:])
			q := (*[16]byte)(b[64*n+l0:])
			pairs := (*[16]byte)(b[128+32*n+l0%32:])
			shift := l0 / 32 * 2
			s1 := d * float32(int8(b[192+8*n+l0/16]))
			s2 := d * float32(int8(b[192+8*n+l0/16+4]))
			for l, q := range q {
				p := pairs[l] >> shift
				lo[l] = s1 * float32(int(q&15|p&3<<4)-32)
				hi[l] = s2 * float32(int(q>>4|p>>4&3<<4)-32)
			}
		}
	}
}

// IQ4_XS: f16 d, 8 6-bit scales (2 high bits each in 16 bits, then low nibbles)
// for 32 elements each, 128 bytes of nibbles; d*(scale-32) times codebook.IQ4.
func dequantIQ4_XS(dst []float32, src []byte) {
	for ; len(dst) >= 256; dst, src = dst[256:], src[136:] {
		b := (*[136]byte)(src)
		d, high := half(b[:]), le.Uint16(b[2:])
		for sub := range 8 {
			y := (*[32]float32)(dst[32*sub:])
			q := (*[16]byte)(b[8+16*sub:])
			scale := b[4+sub/2]>>(sub%2*4)&15 | byte(high>>(2*sub)&3)<<4
			dl := d * float32(int(scale)-32)
			for j, q := range q {
				y[j] = dl * float32(codebook.IQ4[q&15])
				y[j+16] = dl * float32(codebook.IQ4[q>>4])
			}
		}
	}
}
