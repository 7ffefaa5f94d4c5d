package gguf

import (
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf/codebook"
)

// Formats of one bit, three values or two bits an element with one scale for the block, and NVFP4.

var lowBitFormats = map[uint32]format{
	34: {name: "TQ1_0", dtype: ir.TQ1_0, dequantize: dequantTQ1_0},
	35: {name: "TQ2_0", dtype: ir.TQ2_0, dequantize: dequantTQ2_0},
	40: {name: "NVFP4", dtype: ir.NVFP4, dequantize: dequantNVFP4},
	41: {name: "Q1_0", dtype: ir.Q1_0, dequantize: dequantQ1_0},
	42: {name: "Q2_0", dtype: ir.Q2_0, dequantize: dequantQ2_0},
}

// TQ1_0: 48 bytes of five elements each, 4 bytes of four, f16 d; d*(digit-1). See trit. Elements of the first 32
// bytes lie 32 apart, those of the next 16 bytes 16, those of the last four 4.
func dequantTQ1_0(dst []float32, src []byte) {
	for ; len(dst) >= 256; dst, src = dst[256:], src[54:] {
		d, y := half(src[52:]), dst
		for _, part := range []struct{ from, bytes, digits int }{{0, 32, 5}, {32, 16, 5}, {48, 4, 4}} {
			for n := range part.digits {
				for _, q := range src[part.from:][:part.bytes] {
					y[0] = float32(int(trit(q, n))-1) * d
					y = y[1:]
				}
			}
		}
	}
}

// trit returns digit n of a byte, which is a fraction to base 3 in units of 1/256.
func trit(q byte, n int) byte {
	for range n {
		q *= 3
	}
	return byte(uint16(q) * 3 >> 8)
}

// TQ2_0: 64 bytes of 2-bit elements as in Q2_K, f16 d; d*(q-1).
func dequantTQ2_0(dst []float32, src []byte) {
	for ; len(dst) >= 256; dst, src = dst[256:], src[66:] {
		d := half(src[64:])
		for i := range 256 {
			dst[i] = float32(int(src[i/128*32+i%32]>>(i%128/32*2)&3)-1) * d
		}
	}
}

// Q1_0: f16 d, 128 bits; d where a bit is set, else -d.
func dequantQ1_0(dst []float32, src []byte) {
	for ; len(dst) >= 128; dst, src = dst[128:], src[18:] {
		d := half(src)
		for i := range 128 {
			if src[2+i/8]>>(i%8)&1 != 0 {
				dst[i] = d
			} else {
				dst[i] = -d
			}
		}
	}
}

// Q2_0: f16 d, 64 2-bit elements, four to a byte; d*(q-1).
func dequantQ2_0(dst []float32, src []byte) {
	for ; len(dst) >= 64; dst, src = dst[64:], src[18:] {
		d := half(src)
		for i := range 64 {
			dst[i] = float32(int(src[2+i/4]>>(i%4*2)&3)-1) * d
		}
	}
}

// NVFP4: four scales in E4M3 without sign, for 16 elements each, then 8 bytes of nibbles for each: the low ones
// are elements 0-7, the high ones 8-15; scale/2 times codebook.E2M1.
func dequantNVFP4(dst []float32, src []byte) {
	for ; len(dst) >= 64; dst, src = dst[64:], src[36:] {
		for s := range 4 {
			d := E4M3ToF32(src[s]) * 0.5
			y := dst[16*s:][:16]
			for j, q := range src[4+8*s:][:8] {
				y[j] = float32(codebook.E2M1[q&15]) * d
				y[j+8] = float32(codebook.E2M1[q>>4]) * d
			}
		}
	}
}
