package gguf

import (
	"math"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf/codebook"
)

// Formats with blocks of 32: a scale d, for some a minimum m, then the
// elements; of nibbles, the low ones are elements 0-15, the high ones 16-31.

var block32Formats = map[uint32]format{
	2:  {name: "Q4_0", dtype: ir.Q4_0, dequantize: dequantQ4_0},
	3:  {name: "Q4_1", dtype: ir.Q4_1, dequantize: dequantQ4_1},
	6:  {name: "Q5_0", dtype: ir.Q5_0, dequantize: dequantQ5_0},
	7:  {name: "Q5_1", dtype: ir.Q5_1, dequantize: dequantQ5_1},
	8:  {name: "Q8_0", dtype: ir.Q8_0, dequantize: dequantQ8_0},
	20: {name: "IQ4_NL", dtype: ir.IQ4_NL, dequantize: dequantIQ4_NL},
	39: {name: "MXFP4", dtype: ir.MXFP4, dequantize: dequantMXFP4},
}

// Q4_0: f16 d, 16 bytes of nibbles; d*(q-8).
func dequantQ4_0(dst []float32, src []byte) {
	for ; len(dst) >= 32; dst, src = dst[32:], src[18:] {
		y, b := (*[32]float32)(dst), (*[18]byte)(src)
		d := half(b[:])
		for j, q := range b[2:] {
			y[j] = float32(int(q&15)-8) * d
			y[j+16] = float32(int(q>>4)-8) * d
		}
	}
}

// Q4_1: f16 d, f16 m, 16 bytes of nibbles; d*q + m.
func dequantQ4_1(dst []float32, src []byte) {
	for ; len(dst) >= 32; dst, src = dst[32:], src[20:] {
		y, b := (*[32]float32)(dst), (*[20]byte)(src)
		d, m := half(b[:]), half(b[2:])
		for j, q := range b[4:] {
			y[j] = float32(float32(q&15)*d) + m
			y[j+16] = float32(float32(q>>4)*d) + m
		}
	}
}

// Q5_0: f16 d, 32 fifth bits (bit i of element i), 16 bytes of nibbles; d*(q-16).
func dequantQ5_0(dst []float32, src []byte) {
	for ; len(dst) >= 32; dst, src = dst[32:], src[22:] {
		y, b := (*[32]float32)(dst), (*[22]byte)(src)
		d, high := half(b[:]), le.Uint32(b[2:])
		for j, q := range b[6:] {
			y[j] = float32(int32(uint32(q&15)|high<<4&16)-16) * d
			y[j+16] = float32(int32(uint32(q>>4)|high>>12&16)-16) * d
			high >>= 1
		}
	}
}

// Q5_1: f16 d, f16 m, 32 fifth bits, 16 bytes of nibbles; d*q + m.
func dequantQ5_1(dst []float32, src []byte) {
	for ; len(dst) >= 32; dst, src = dst[32:], src[24:] {
		y, b := (*[32]float32)(dst), (*[24]byte)(src)
		d, m, high := half(b[:]), half(b[2:]), le.Uint32(b[4:])
		for j, q := range b[8:] {
			y[j] = float32(float32(int32(uint32(q&15)|high<<4&16))*d) + m
			y[j+16] = float32(float32(int32(uint32(q>>4)|high>>12&16))*d) + m
			high >>= 1
		}
	}
}

// Q8_0: f16 d, 32 int8; d*q.
func dequantQ8_0(dst []float32, src []byte) {
	for ; len(dst) >= 32; dst, src = dst[32:], src[34:] {
		y, b := (*[32]float32)(dst), (*[34]byte)(src)
		d := half(b[:])
		for j, q := range b[2:] {
			y[j] = float32(int8(q)) * d
		}
	}
}

// MXFP4: an E8M0 exponent, 16 bytes of nibbles; 2^(e-128) times codebook.E2M1.
func dequantMXFP4(dst []float32, src []byte) {
	for ; len(dst) >= 32; dst, src = dst[32:], src[17:] {
		y, b := (*[32]float32)(dst), (*[17]byte)(src)
		d := e8m0Half(b[0])
		for j, q := range b[1:] {
			y[j] = float32(codebook.E2M1[q&15]) * d
			y[j+16] = float32(codebook.E2M1[q>>4]) * d
		}
	}
}

// e8m0Half is 2^(e-128), half of what the exponent means, subnormal for 0 and 1.
func e8m0Half(e byte) float32 {
	if e < 2 {
		return math.Float32frombits(0x00200000 << e)
	}
	return math.Float32frombits(uint32(e-1) << 23)
}

// IQ4_NL: f16 d, 16 bytes of nibbles; d times codebook.IQ4.
func dequantIQ4_NL(dst []float32, src []byte) {
	for ; len(dst) >= 32; dst, src = dst[32:], src[18:] {
		y, b := (*[32]float32)(dst), (*[18]byte)(src)
		d := half(b[:])
		for j, q := range b[2:] {
			y[j] = d * float32(codebook.IQ4[q&15])
			y[j+16] = d * float32(codebook.IQ4[q>>4])
		}
	}
}
