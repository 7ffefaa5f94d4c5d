package weight

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
)

// Plain types: the raw bytes of the file.

func fetchF32(b *kernel.Builder, m Matrix, row, u kernel.Value) []kernel.Value {
	return []kernel.Value{m.Buf.Load(lane.F32x4, b.Add(b.Mul(row, b.Div(m.Cols, 4)), u))}
}

func decodeF32(_ *kernel.Builder, words []kernel.Value, _ kernel.Value) []Run {
	return []Run{{Codes: func(int) kernel.Value { return words[0] }}}
}

// fetchWide16 loads eight 16-bit elements.
func fetchWide16(b *kernel.Builder, m Matrix, row, u kernel.Value) []kernel.Value {
	return []kernel.Value{m.Buf.Load(lane.U32x4, b.Add(b.Mul(row, b.Div(m.Cols, 8)), u))}
}

// fetchNarrow16 loads four, for rows that are not aligned to 16 bytes.
func fetchNarrow16(b *kernel.Builder, m Matrix, row, u kernel.Value) []kernel.Value {
	return []kernel.Value{m.Buf.Load(lane.U32x2, b.Add(b.Mul(row, b.Div(m.Cols, 4)), u))}
}

func decode16(unpack func(b *kernel.Builder, lo, hi kernel.Value) kernel.Value) func(*kernel.Builder, []kernel.Value, kernel.Value) []Run {
	return func(b *kernel.Builder, words []kernel.Value, _ kernel.Value) []Run {
		return []Run{{Codes: func(i int) kernel.Value { return unpack(b, b.Elem(words[0], 2*i), b.Elem(words[0], 2*i+1)) }}}
	}
}

// halves returns the four f16 of two words.
func halves(b *kernel.Builder, lo, hi kernel.Value) kernel.Value {
	l, h := b.UnpackHalf(lo), b.UnpackHalf(hi)
	return b.Vec(b.Elem(l, 0), b.Elem(l, 1), b.Elem(h, 0), b.Elem(h, 1))
}

// brains returns the four bf16, upper halves of f32, of two words.
func brains(b *kernel.Builder, lo, hi kernel.Value) kernel.Value {
	var v []kernel.Operand
	for _, w := range []kernel.Value{lo, hi} {
		v = append(v, b.Bitcast(kernel.F32, b.Shl(w, 16)), b.Bitcast(kernel.F32, b.And(w, uint32(0xffff0000))))
	}
	return b.Vec(v...)
}
