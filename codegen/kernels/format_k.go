package kernels

import "github.com/zincc-dev/zincc/codegen/kernel"

// Super-blocks of 256 elements, which are 8 sub-blocks of 32. Of the 8 units of a
// block, unit j takes elements 8c to 8c+7, c = j%4, of the 4 sub-blocks of half
// j/4 of the block: two words of each row of 32 bytes there.

// loadQ4K reads raw blocks of 9 vec4: a header, then 4 rows of nibbles. Row i is
// sub-block 2i in the low nibbles, 2i+1 in the high ones.
func loadQ4K(b *kernel.Builder, m matrix, row, u kernel.Value) []run {
	p := superBlock(b, m, row, u)
	runs := p.minRuns(b, m.buf.Load(u32x4, b.Mul(p.block, 9)))
	for i := range 2 {
		q := m.buf.Load(u32x2, b.Add(b.Mul(p.block, 18), 2+4*i, b.Mul(p.half, 8), p.column))
		runs[2*i].codes = func(i int) kernel.Value { return fields(b, b.Elem(q, i), 0, 4, 0) }
		runs[2*i+1].codes = func(i int) kernel.Value { return fields(b, b.Elem(q, i), 4, 4, 0) }
	}
	return runs
}

// loadQ5K is as loadQ4K with a row of fifth bits after the header: bit s of a byte
// belongs to sub-block s.
func loadQ5K(b *kernel.Builder, m matrix, row, u kernel.Value) []run {
	p := superBlock(b, m, row, u)
	runs := p.minRuns(b, m.buf.Load(u32x4, b.Mul(p.block, 11)))
	at := b.Add(b.Mul(p.block, 22), p.column)
	fifth := m.buf.Load(u32x2, b.Add(at, 2))
	fifth = b.Shr(fifth, b.Splat(b.Mul(p.half, 4), 2)) // bits 0 to 3 are ours
	for i := range 2 {
		q := m.buf.Load(u32x2, b.Add(at, 6+4*i, b.Mul(p.half, 8)))
		for j, nibbles := range []kernel.Value{lowNibbles(b, q), highNibbles(b, q)} {
			s := 2*i + j
			v := b.Or(nibbles, b.Shl(b.And(fifth, 0x01010101<<s), 4-s))
			runs[s].codes = func(i int) kernel.Value { return bytesToF32(b, b.Elem(v, i), 0) }
		}
	}
	return runs
}

// place is where a unit is.
type place struct {
	block        kernel.Value // counted through the matrix
	half, column kernel.Value // in the block
}

func superBlock(b *kernel.Builder, m matrix, row, u kernel.Value) place {
	return place{b.Add(b.Mul(row, b.Div(m.cols, 256)), b.Shr(u, 3)), b.And(b.Shr(u, 2), 1), b.And(u, 3)}
}

// minRuns returns the scales and offsets of the half's sub-blocks, from the block's
// header: f16 d, f16 dmin, 12 bytes of 6-bit scales and minimums. Sub-blocks s < 4
// have theirs in the low bits of bytes s and 4+s; the others have 4 bits of each in
// byte 4+s and 2 in the high bits of bytes s-4 and s.
func (p place) minRuns(b *kernel.Builder, header kernel.Value) []run {
	s, m, low := b.Elem(header, 1), b.Elem(header, 2), b.Elem(header, 3)
	upper := b.Ne(p.half, 0)
	scales := bytesToF32(b, b.Select(upper, b.Or(lowNibbles(b, low), b.And(b.Shr(s, 2), 0x30303030)), b.And(s, 0x3f3f3f3f)), 0)
	mins := bytesToF32(b, b.Select(upper, b.Or(highNibbles(b, low), b.And(b.Shr(m, 2), 0x30303030)), b.And(m, 0x3f3f3f3f)), 0)
	d := b.UnpackHalf(b.Elem(header, 0))
	negMin := b.Neg(b.Elem(d, 1))
	runs := make([]run, 4)
	for i := range runs {
		runs[i].scale = b.Mul(b.Elem(d, 0), b.Elem(scales, i))
		runs[i].offset = b.Mul(negMin, b.Elem(mins, i))
	}
	return runs
}

// loadQ6K reads the planes ql, qh, scales and d. Each half of a block has 2 rows of
// nibbles, with 32 elements in the low and, 64 elements later, 32 in the high
// ones, and 1 row of bit pairs, one for each of its sub-blocks. The 16 scales are
// for 16 elements each. value = d*scale*(code-32).
func loadQ6K(b *kernel.Builder, m matrix, row, u kernel.Value) []run {
	p := superBlock(b, m, row, u)
	blocks := b.Div(b.Mul(m.rows, m.cols), 256) // planes of 32, 16 and 4 words a block
	ql := b.Add(b.Mul(p.block, 16), b.Mul(p.half, 8), p.column)
	first, second := m.buf.Load(u32x2, ql), m.buf.Load(u32x2, b.Add(ql, 4))
	pairs := m.buf.Load(u32x2, b.Add(b.Mul(blocks, 16), b.Mul(p.block, 8), b.Mul(p.half, 4), p.column))
	scales := m.buf.Load(u32x2, b.Add(b.Mul(blocks, 24), b.Mul(p.block, 2), p.half))
	scales = b.Shr(scales, b.Splat(b.Mul(b.Shr(p.column, 1), 8), 2)) // bytes 0 and 2 are ours
	d := halfAt(b, m.buf, b.Mul(blocks, 52), p.block)
	own := [2]kernel.Value{int8sToF32(b, b.Elem(scales, 0)), int8sToF32(b, b.Elem(scales, 1))}
	var runs []run
	for i, q := range []kernel.Value{
		b.Or(lowNibbles(b, first), b.Shl(b.And(pairs, 0x03030303), 4)),
		b.Or(lowNibbles(b, second), b.Shl(b.And(pairs, 0x0c0c0c0c), 2)),
		b.Or(highNibbles(b, first), b.And(pairs, 0x30303030)),
		b.Or(highNibbles(b, second), b.And(b.Shr(pairs, 2), 0x30303030)),
	} {
		runs = append(runs, run{
			codes: func(i int) kernel.Value { return bytesToF32(b, b.Elem(q, i), 32) },
			scale: b.Mul(d, b.Elem(own[i/2], 2*(i%2))),
		})
	}
	return runs
}
