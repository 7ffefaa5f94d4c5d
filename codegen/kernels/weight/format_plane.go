package weight

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
)

// Blocks taken apart into planes: codes first, then what they are scaled by.

// fetchQ4_0 loads of a plane of 16-byte blocks, elements 0-15 in the low nibbles,
// and one of f16; a unit is a word of nibbles. value = d*(code-8).
func fetchQ4_0(b *kernel.Builder, m Matrix, row, u kernel.Value) []kernel.Value {
	at := b.Add(b.Mul(row, b.Div(m.Cols, 8)), u)
	return []kernel.Value{m.Buf.Load(kernel.U32, at), halfAt(b, m.Buf, b.Div(b.Mul(m.Rows, m.Cols), 8), b.Shr(at, 2))}
}

func decodeQ4_0(b *kernel.Builder, words []kernel.Value, _ kernel.Value) []Run {
	d := LowHalf(b, words[1])
	return []Run{
		{Codes: func(int) kernel.Value { return nibbleToF32(b, words[0], 0, 8) }, Scale: d},
		{Codes: func(int) kernel.Value { return nibbleToF32(b, words[0], 4, 8) }, Scale: d},
	}
}

// fetchQ8_0 loads of a plane of int8 and one of f16 for 32 of them; a unit is half
// a block.
func fetchQ8_0(b *kernel.Builder, m Matrix, row, u kernel.Value) []kernel.Value {
	q, at := int8Unit(b, m, row, u)
	return []kernel.Value{q, halfAt(b, m.Buf, b.Div(b.Mul(m.Rows, m.Cols), 4), b.Shr(at, 1))}
}

func decodeQ8_0(b *kernel.Builder, words []kernel.Value, _ kernel.Value) []Run {
	return []Run{{Codes: int8Codes(b, words[0]), Scale: LowHalf(b, words[1])}}
}

// int8Unit returns unit u, 16 int8 of the plane at the buffer's start, and its
// number in the matrix.
func int8Unit(b *kernel.Builder, m Matrix, row, u kernel.Value) (q, at kernel.Value) {
	at = b.Add(b.Mul(row, b.Div(m.Cols, 16)), u)
	return m.Buf.Load(lane.U32x4, at), at
}

func int8Codes(b *kernel.Builder, q kernel.Value) func(i int) kernel.Value {
	return func(i int) kernel.Value { return int8sToF32(b, b.Elem(q, i)) }
}
