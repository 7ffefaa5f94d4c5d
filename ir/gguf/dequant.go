package gguf

import (
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/ir"
)

// The arithmetic of every format is that of ggml's dequantize_row_*, operation
// by operation in float32. A product that ends up in a sum is converted
// explicitly, wherever it is made, because otherwise Go may fuse the two into
// one rounding (on arm64, and on amd64 with GOAMD64=v3).

// dequantizers fill dst from src, whose sizes Dequantize has checked.
var dequantizers = [...]func(dst []float32, src []byte){
	ir.F32:     dequantF32,
	ir.F16:     dequantF16,
	ir.BF16:    dequantBF16,
	ir.F64:     dequantF64,
	ir.I8:      dequantI8,
	ir.I16:     dequantI16,
	ir.I32:     dequantI32,
	ir.Q4_0:    dequantQ4_0,
	ir.Q4_1:    dequantQ4_1,
	ir.Q5_0:    dequantQ5_0,
	ir.Q5_1:    dequantQ5_1,
	ir.Q8_0:    dequantQ8_0,
	ir.Q2_K:    dequantQ2_K,
	ir.Q3_K:    dequantQ3_K,
	ir.Q4_K:    dequantQ4_K,
	ir.Q5_K:    dequantQ5_K,
	ir.Q6_K:    dequantQ6_K,
	ir.IQ4_NL:  dequantIQ4_NL,
	ir.IQ4_XS:  dequantIQ4_XS,
	ir.MXFP4:   dequantMXFP4,
	ir.IQ1_S:   dequantIQ1_S,
	ir.IQ1_M:   dequantIQ1_M,
	ir.IQ2_XXS: dequantIQ2_XXS,
	ir.IQ2_XS:  dequantIQ2_XS,
	ir.IQ2_S:   dequantIQ2_S,
	ir.IQ3_XXS: dequantIQ3_XXS,
	ir.IQ3_S:   dequantIQ3_S,
	ir.TQ1_0:   dequantTQ1_0,
	ir.TQ2_0:   dequantTQ2_0,
	ir.Q1_0:    dequantQ1_0,
	ir.Q2_0:    dequantQ2_0,
	ir.NVFP4:   dequantNVFP4,
}

// Dequantize fills dst with the elements of src, which holds len(dst) elements
// of type t in whole blocks. The results equal llama.cpp's bit for bit.
func Dequantize(dst []float32, src []byte, t ir.DType) error {
	if int(t) >= len(dequantizers) || dequantizers[t] == nil {
		return fmt.Errorf("dequantize: type %s is not supported", t)
	}
	if len(dst)%t.Block() != 0 {
		return fmt.Errorf("dequantize: %d elements are not whole %s blocks of %d", len(dst), t, t.Block())
	}
	if want := t.Bytes(int64(len(dst))); int64(len(src)) != want {
		return fmt.Errorf("dequantize: %d elements of %s take %d bytes, not %d", len(dst), t, want, len(src))
	}
	dequantizers[t](dst, src)
	return nil
}

func half(b []byte) float32 { return F16ToF32(le.Uint16(b)) }

func dequantF32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(le.Uint32(src[4*i:]))
	}
}

// The 16-bit formats are read four at a time, which spares most bounds checks.

func dequantF16(dst []float32, src []byte) {
	for ; len(dst) >= 4; dst, src = dst[4:], src[8:] {
		y, q := (*[4]float32)(dst), le.Uint64(src)
		y[0] = F16ToF32(uint16(q))
		y[1] = F16ToF32(uint16(q >> 16))
		y[2] = F16ToF32(uint16(q >> 32))
		y[3] = F16ToF32(uint16(q >> 48))
	}
	for i := range dst {
		dst[i] = F16ToF32(le.Uint16(src[2*i:]))
	}
}

func dequantBF16(dst []float32, src []byte) {
	for ; len(dst) >= 4; dst, src = dst[4:], src[8:] {
		y, q := (*[4]float32)(dst), le.Uint64(src)
		y[0] = bf16ToF32(uint16(q))
		y[1] = bf16ToF32(uint16(q >> 16))
		y[2] = bf16ToF32(uint16(q >> 32))
		y[3] = bf16ToF32(uint16(q >> 48))
	}
	for i := range dst {
		dst[i] = bf16ToF32(le.Uint16(src[2*i:]))
	}
}

func dequantF64(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(math.Float64frombits(le.Uint64(src[8*i:])))
	}
}

func dequantI8(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int8(src[i]))
	}
}

func dequantI16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int16(le.Uint16(src[2*i:])))
	}
}

func dequantI32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int32(le.Uint32(src[4*i:])))
	}
}
