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

var plainFormats = map[uint32]format{
	0:  {name: "F32", dtype: ir.F32, dequantize: dequantF32},
	1:  {name: "F16", dtype: ir.F16, dequantize: dequantF16},
	24: {name: "I8", dtype: ir.I8, dequantize: dequantI8},
	25: {name: "I16", dtype: ir.I16, dequantize: dequantI16},
	26: {name: "I32", dtype: ir.I32, dequantize: dequantI32},
	27: {name: "I64", dtype: ir.I64},
	28: {name: "F64", dtype: ir.F64, dequantize: dequantF64},
	30: {name: "BF16", dtype: ir.BF16, dequantize: dequantBF16},
}

// Dequantize fills dst with the elements of src, which holds len(dst) elements
// of type t in whole blocks. The results equal llama.cpp's bit for bit.
func Dequantize(dst []float32, src []byte, t ir.DType) error {
	number, _ := numberOf(t)
	dequantize := formats[number].dequantize
	if formats[number].dtype != t || dequantize == nil {
		return fmt.Errorf("dequantize: type %s is not supported", t)
	}
	if len(dst)%t.Block() != 0 {
		return fmt.Errorf("dequantize: %d elements are not whole %s blocks of %d", len(dst), t, t.Block())
	}
	if want := t.Bytes(int64(len(dst))); int64(len(src)) != want {
		return fmt.Errorf("dequantize: %d elements of %s take %d bytes, not %d", len(dst), t, want, len(src))
	}
	dequantize(dst, src)
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
