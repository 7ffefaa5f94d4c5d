package kernels

import "github.com/zincc-dev/zincc/codegen/kernel"

// Super-blocks of 256 elements with 8 units: unit j is the j-th 16 bytes of the
// nibbles, whose low and high halves are its two runs.

// loadQ4K reads raw blocks of 9 vec4: a header, then the nibbles. 32 bytes of
// nibbles are a pair of sub-blocks of 32 elements, one in the low halves.
func loadQ4K(b *kernel.Builder, m matrix, row, u kernel.Value) []run {
	block, j := superBlock(b, m, row, u)
	at := b.Mul(block, 9)
	header := m.buf.Load(u32x4, at)
	q := m.buf.Load(u32x4, b.Add(at, 1, j))
	runs := minRuns(b, header, j)
	runs[0].codes = codesOf(b, lowNibbles(b, q))
	runs[1].codes = codesOf(b, highNibbles(b, q))
	return runs
}

// loadQ5K is as loadQ4K with 2 vec4 of fifth bits after the header: bit s of byte
// l belongs to element l of sub-block s.
func loadQ5K(b *kernel.Builder, m matrix, row, u kernel.Value) []run {
	block, j := superBlock(b, m, row, u)
	at := b.Mul(block, 11)
	header := m.buf.Load(u32x4, at)
	q := m.buf.Load(u32x4, b.Add(at, 3, j))
	fifth := m.buf.Load(u32x4, b.Add(at, 1, b.And(j, 1)))
	fifth = b.Shr(fifth, b.Splat(b.And(j, 6), 4))
	runs := minRuns(b, header, j)
	runs[0].codes = codesOf(b, b.Or(lowNibbles(b, q), b.Shl(b.And(fifth, 0x01010101), 4)))
	runs[1].codes = codesOf(b, b.Or(highNibbles(b, q), b.Shl(b.And(fifth, 0x02020202), 3)))
	return runs
}

// superBlock returns the block of unit u, counted through the matrix, and the
// unit's place in it.
func superBlock(b *kernel.Builder, m matrix, row, u kernel.Value) (block, j kernel.Value) {
	return b.Add(b.Mul(row, b.Div(m.cols, 256)), b.Shr(u, 3)), b.And(u, 7)
}

// minRuns returns the scales and offsets of the pair of sub-blocks of unit j,
// from the block's header: f16 d, f16 dmin, 12 bytes of 6-bit scales and
// minimums. Sub-blocks 0-3 have theirs in the low bits of bytes s and 4+s; the
// others have 4 bits of each in byte 4+s and 2 in the high bits of bytes s-4 and s.
func minRuns(b *kernel.Builder, header, j kernel.Value) []run {
	shift := b.Mul(b.And(b.Shr(j, 1), 1), 16) // the pair's two bytes, in each word
	s := b.Shr(b.Elem(header, 1), shift)
	m := b.Shr(b.Elem(header, 2), shift)
	low := b.Shr(b.Elem(header, 3), shift)
	upper := b.Ge(j, 4)
	scales := b.Select(upper, b.Or(b.And(low, 0x0f0f), b.And(b.Shr(s, 2), 0x3030)), b.And(s, 0x3f3f))
	mins := b.Select(upper, b.Or(b.And(b.Shr(low, 4), 0x0f0f), b.And(b.Shr(m, 2), 0x3030)), b.And(m, 0x3f3f))
	d := b.UnpackHalf(b.Elem(header, 0))
	negMin := b.Neg(b.Elem(d, 1))
	runs := make([]run, 2)
	for i := range runs {
		runs[i].scale = b.Mul(b.Elem(d, 0), b.Convert(kernel.F32, byteOf(b, scales, i)))
		runs[i].offset = b.Mul(negMin, b.Convert(kernel.F32, byteOf(b, mins, i)))
	}
	return runs
}

// loadQ6K reads the planes ql, qh, scales and d. Of each half of a block, nibble
// byte l is elements l and l+64, and byte l%32 of the high bit pairs has those of
// elements l%32 + 0, 32, 64 and 96. value = d*scale*(code-32).
func loadQ6K(b *kernel.Builder, m matrix, row, u kernel.Value) []run {
	block, j := superBlock(b, m, row, u)
	blocks := b.Div(b.Mul(m.rows, m.cols), 256) // planes of 8, 4 and 1 vec4 a block
	half, part := b.Shr(j, 2), b.And(j, 3)
	q := m.buf.Load(u32x4, b.Add(b.Mul(block, 8), j))
	pairs := m.buf.Load(u32x4, b.Add(b.Mul(blocks, 8), b.Mul(block, 4), b.Mul(half, 2), b.And(j, 1)))
	pairs = b.Shr(pairs, b.Splat(b.And(part, 2), 4))
	scales := m.buf.Load(u32x2, b.Add(b.Mul(blocks, 24), b.Mul(block, 2), half))
	d := halfAt(b, m.buf, b.Mul(blocks, 52), block)
	runs := []run{
		{codes: codesOf(b, b.Or(lowNibbles(b, q), b.Shl(b.And(pairs, 0x03030303), 4)))},
		{codes: codesOf(b, b.Or(highNibbles(b, q), b.And(pairs, 0x30303030)))},
	}
	for i := range runs {
		runs[i].scale = b.Mul(d, int8At(b, b.Elem(scales, i), part))
		runs[i].offset = b.Mul(runs[i].scale, -32.0)
	}
	return runs
}
