package kernels

import "github.com/zincc-dev/zincc/codegen/kernel"

// Blocks taken apart into planes: codes first, then what they are scaled by.

// loadQ4_0 reads a plane of 16-byte blocks, elements 0-15 in the low nibbles, and
// one of f16; a unit is a word of nibbles. value = d*(code-8).
func loadQ4_0(b *kernel.Builder, m matrix, row, u kernel.Value) []run {
	at := b.Add(b.Mul(row, b.Div(m.cols, 8)), u)
	q := m.buf.Load(kernel.U32, at)
	d := halfAt(b, m.buf, b.Div(b.Mul(m.rows, m.cols), 8), b.Shr(at, 2))
	return []run{
		{codes: func(int) kernel.Value { return fields(b, q, 0, 4, 8) }, scale: d},
		{codes: func(int) kernel.Value { return fields(b, q, 4, 4, 8) }, scale: d},
	}
}

// loadQ8_0 reads a plane of int8 and one of f16 for 32 of them; a unit is half a
// block.
func loadQ8_0(b *kernel.Builder, m matrix, row, u kernel.Value) []run {
	q, at := int8Unit(b, m, row, u)
	d := halfAt(b, m.buf, b.Div(b.Mul(m.rows, m.cols), 4), b.Shr(at, 1))
	return []run{{codes: q, scale: d}}
}

// loadAffine reads a plane of int8, one of f32 scales and maybe one of f32
// offsets, for 16 or 32 elements each.
func loadAffine(group int, offset bool) func(b *kernel.Builder, m matrix, row, u kernel.Value) []run {
	return func(b *kernel.Builder, m matrix, row, u kernel.Value) []run {
		q, at := int8Unit(b, m, row, u)
		elements := b.Mul(m.rows, m.cols)
		scales := b.Div(elements, 4) // in words, as all below
		i := b.Div(at, group/16)
		r := run{codes: q, scale: m.buf.Load(kernel.F32, b.Add(scales, i))}
		if offset {
			padded := b.Mul(b.Div(b.Add(b.Div(elements, group), 3), 4), 4)
			r.offset = m.buf.Load(kernel.F32, b.Add(scales, padded, i))
		}
		return []run{r}
	}
}

// int8Unit returns the codes of unit u, 16 int8 of the plane at the buffer's
// start, and the unit's number in the matrix.
func int8Unit(b *kernel.Builder, m matrix, row, u kernel.Value) (codes func(i int) kernel.Value, at kernel.Value) {
	at = b.Add(b.Mul(row, b.Div(m.cols, 16)), u)
	q := m.buf.Load(u32x4, at)
	return func(i int) kernel.Value { return int8sToF32(b, b.Elem(q, i)) }, at
}
