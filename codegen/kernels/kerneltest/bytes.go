package kerneltest

import (
	"encoding/binary"
	"math"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

func F32Bytes(x []float32) []byte {
	b := make([]byte, 4*len(x))
	for i, v := range x {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
	}
	return b
}

func I32Bytes(x ...int32) []byte {
	b := make([]byte, 4*len(x))
	for i, v := range x {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
	}
	return b
}

func ToF32(b []byte) []float32 {
	x := make([]float32, len(b)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return x
}

func appendElement(b []byte, d ir.DType, x float32) []byte {
	if d == ir.F16 {
		return binary.LittleEndian.AppendUint16(b, gguf.F32ToF16(x))
	}
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
}

func Halves(b []byte) []float32 {
	x := make([]float32, len(b)/2)
	for i := range x {
		x[i] = gguf.F16ToF32(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return x
}
