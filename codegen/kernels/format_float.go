package kernels

import "github.com/zincc-dev/zincc/codegen/kernel"

// Plain types: the raw bytes of the file.

func loadF32(b *kernel.Builder, m matrix, row, u kernel.Value) []run {
	v := m.buf.Load(f32x4, b.Add(b.Mul(row, b.Div(m.cols, 4)), u))
	return []run{{codes: func(int) kernel.Value { return v }}}
}

func loadF16(b *kernel.Builder, m matrix, row, u kernel.Value) []run {
	return wide16(b, m, row, u, halves)
}

func loadBF16(b *kernel.Builder, m matrix, row, u kernel.Value) []run {
	return wide16(b, m, row, u, brains)
}

func loadF16x4(b *kernel.Builder, m matrix, row, u kernel.Value) []run {
	return narrow16(b, m, row, u, halves)
}

func loadBF16x4(b *kernel.Builder, m matrix, row, u kernel.Value) []run {
	return narrow16(b, m, row, u, brains)
}

// wide16 loads eight 16-bit elements.
func wide16(b *kernel.Builder, m matrix, row, u kernel.Value, unpack func(b *kernel.Builder, lo, hi kernel.Value) kernel.Value) []run {
	w := m.buf.Load(u32x4, b.Add(b.Mul(row, b.Div(m.cols, 8)), u))
	return []run{{codes: func(i int) kernel.Value { return unpack(b, b.Elem(w, 2*i), b.Elem(w, 2*i+1)) }}}
}

// narrow16 loads four, for rows that are not aligned to 16 bytes.
func narrow16(b *kernel.Builder, m matrix, row, u kernel.Value, unpack func(b *kernel.Builder, lo, hi kernel.Value) kernel.Value) []run {
	w := m.buf.Load(u32x2, b.Add(b.Mul(row, b.Div(m.cols, 4)), u))
	return []run{{codes: func(int) kernel.Value { return unpack(b, b.Elem(w, 0), b.Elem(w, 1)) }}}
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
