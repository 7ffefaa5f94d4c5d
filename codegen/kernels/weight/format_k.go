package weight

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
)

// Super-blocks of 256 elements, which are 8 sub-blocks of 32. A block has 8 units. Unit j
// takes elements 8c to 8c+7, c = j%4, of the 4 sub-blocks of half
// j/4 of the block: two words of each row of 32 bytes there.

// fetchQ4K loads of raw blocks of 9 vec4: a header, then 4 rows of nibbles. Row i is
// sub-block 2i in the low nibbles, 2i+1 in the high ones.
func fetchQ4K(b *kernel.Builder, m Matrix, row, u kernel.Value) []kernel.Value {
	p := superBlock(b, m, row, u)
	words := []kernel.Value{m.Buf.Load(lane.U32x4, b.Mul(p.block, 9))}
	for i := range 2 {
		words = append(words, m.Buf.Load(lane.U32x2, b.Add(b.Mul(p.block, 18), 2+4*i, b.Mul(p.half, 8), p.column)))
	}
	return words
}

func decodeQ4K(b *kernel.Builder, words []kernel.Value, u kernel.Value) []Run {
	runs := minRuns(b, words[0], halfOf(b, u), 4)
	for i, q := range words[1:] {
		for j := range 2 {
			runs[2*i+j].Codes = func(i int) kernel.Value { return fields(b, b.Elem(q, i), 4*j, 4) }
		}
	}
	return runs
}

// fetchQ5K is as fetchQ4K with a row of fifth bits after the header: bit s of a byte
// belongs to sub-block s.
func fetchQ5K(b *kernel.Builder, m Matrix, row, u kernel.Value) []kernel.Value {
	p := superBlock(b, m, row, u)
	at := b.Add(b.Mul(p.block, 22), p.column)
	words := []kernel.Value{m.Buf.Load(lane.U32x4, b.Mul(p.block, 11)), m.Buf.Load(lane.U32x2, b.Add(at, 2))}
	for i := range 2 {
		words = append(words, m.Buf.Load(lane.U32x2, b.Add(at, 6+4*i, b.Mul(p.half, 8))))
	}
	return words
}

func decodeQ5K(b *kernel.Builder, words []kernel.Value, u kernel.Value) []Run {
	half := halfOf(b, u)
	runs := minRuns(b, words[0], half, 0)
	fifth := b.Shr(words[1], b.Splat(b.Mul(half, 4), 2)) // bits 0 to 3 are ours
	for i, q := range words[2:] {
		for j, nibbles := range []kernel.Value{lowNibbles(b, q), highNibbles(b, q)} {
			s := 2*i + j
			v := b.Or(nibbles, b.Shl(b.And(fifth, 0x01010101<<s), 4-s))
			runs[s].Codes = func(i int) kernel.Value { return fields(b, b.Elem(v, i), 0, 8) }
		}
	}
	return runs
}

// decodeOneQ4K selects what decodeQ4K returns.
func decodeOneQ4K(b *kernel.Builder, words []kernel.Value, u kernel.Value) func(i kernel.Value) Run {
	runs := minRuns(b, words[0], halfOf(b, u), 0)
	return func(i kernel.Value) Run {
		r := selectRun(b, runs, i)
		q := b.Shr(selectRow(b, words[1:], i), b.Splat(b.Mul(b.And(i, 1), 4), 2))
		r.Codes = func(i int) kernel.Value { return fields(b, b.Elem(q, i), 0, 4) }
		return r
	}
}

// decodeOneQ5K selects what decodeQ5K returns.
func decodeOneQ5K(b *kernel.Builder, words []kernel.Value, u kernel.Value) func(i kernel.Value) Run {
	half := halfOf(b, u)
	runs := minRuns(b, words[0], half, 0)
	return func(i kernel.Value) Run {
		r := selectRun(b, runs, i)
		q := b.Shr(selectRow(b, words[2:], i), b.Splat(b.Mul(b.And(i, 1), 4), 2))
		fifth := b.Shr(words[1], b.Splat(b.Add(b.Mul(half, 4), i), 2))
		v := b.Or(lowNibbles(b, q), b.Shl(b.And(fifth, 0x01010101), 4))
		r.Codes = func(i int) kernel.Value { return fields(b, b.Elem(v, i), 0, 8) }
		return r
	}
}

// selectRow returns the row of nibbles of sub-block i of a half.
func selectRow(b *kernel.Builder, rows []kernel.Value, i kernel.Value) kernel.Value {
	return b.Select(b.Lt(i, 2), rows[0], rows[1])
}

// selectRun returns scale and offset of the i-th of four runs.
func selectRun(b *kernel.Builder, runs []Run, i kernel.Value) Run {
	odd, high := b.Ne(b.And(i, 1), 0), b.Ge(i, 2)
	pick := func(of func(r Run) kernel.Value) kernel.Value {
		low := b.Select(odd, of(runs[1]), of(runs[0]))
		return b.Select(high, b.Select(odd, of(runs[3]), of(runs[2])), low)
	}
	r := Run{Scale: pick(func(r Run) kernel.Value { return r.Scale })}
	if (runs[0].offset != kernel.Value{}) {
		r.offset = pick(func(r Run) kernel.Value { return r.offset })
	}
	return r
}

// place is where a unit is.
type place struct {
	block        kernel.Value // counted through the matrix
	half, column kernel.Value // in the block
}

func superBlock(b *kernel.Builder, m Matrix, row, u kernel.Value) place {
	return place{b.Add(b.Mul(row, b.Div(m.Cols, 256)), b.Shr(u, 3)), halfOf(b, u), columnOf(b, u)}
}

func halfOf(b *kernel.Builder, u kernel.Value) kernel.Value { return b.And(b.Shr(u, 2), 1) }

func columnOf(b *kernel.Builder, u kernel.Value) kernel.Value { return b.And(u, 3) }

// minRuns returns the scales and offsets of a half's sub-blocks, from the block's
// header: f16 d, f16 dmin, 12 bytes of 6-bit scales and minimums. Sub-blocks s < 4
// have theirs in the low bits of bytes s and 4+s; the others have 4 bits of each in
// byte 4+s and 2 in the high bits of bytes s-4 and s. Codes of odd sub-blocks are
// fields from bit base up, others from bit 0 up.
func minRuns(b *kernel.Builder, header, half kernel.Value, base int) []Run {
	s, m, low := b.Elem(header, 1), b.Elem(header, 2), b.Elem(header, 3)
	upper := b.Ne(half, 0)
	scales := fields(b, b.Select(upper, b.Or(lowNibbles(b, low), b.And(b.Shr(s, 2), 0x30303030)), b.And(s, 0x3f3f3f3f)), 0, 8)
	mins := fields(b, b.Select(upper, b.Or(highNibbles(b, low), b.And(b.Shr(m, 2), 0x30303030)), b.And(m, 0x3f3f3f3f)), 0, 8)
	d := b.UnpackHalf(b.Elem(header, 0))
	even := b.Mul(b.Elem(d, 0), 1/(fieldUnit*fieldUnit)) // one for the scales, one for the codes
	odd := b.Mul(b.Elem(d, 0), 1/(fieldUnit*fieldUnit*float64(uint32(1)<<base)))
	negMin := b.Mul(b.Elem(d, 1), -1/fieldUnit)
	runs := make([]Run, 4)
	for i := range runs {
		runs[i].Scale = b.Mul([2]kernel.Value{even, odd}[i%2], b.Elem(scales, i))
		runs[i].offset = b.Mul(negMin, b.Elem(mins, i))
	}
	return runs
}

// fetchQ6K loads of the planes ql, qh, scales and d. Each half of a block has 2 rows
// of nibbles, with 32 elements in the low and, 64 elements later, 32 in the high
// ones, and 1 row of bit pairs, one for each of its sub-blocks. The 16 scales are
// for 16 elements each. value = d*scale*(code-32).
func fetchQ6K(b *kernel.Builder, m Matrix, row, u kernel.Value) []kernel.Value {
	p := superBlock(b, m, row, u)
	blocks := b.Div(b.Mul(m.Rows, m.Cols), 256) // planes of 32, 16 and 4 words a block
	ql := b.Add(b.Mul(p.block, 16), b.Mul(p.half, 8), p.column)
	return []kernel.Value{
		m.Buf.Load(lane.U32x2, ql), m.Buf.Load(lane.U32x2, b.Add(ql, 4)),
		m.Buf.Load(lane.U32x2, b.Add(b.Mul(blocks, 16), b.Mul(p.block, 8), b.Mul(p.half, 4), p.column)),
		m.Buf.Load(lane.U32x2, b.Add(b.Mul(blocks, 24), b.Mul(p.block, 2), p.half)),
		halfAt(b, m.Buf, b.Mul(blocks, 52), p.block),
	}
}

func decodeQ6K(b *kernel.Builder, words []kernel.Value, u kernel.Value) []Run {
	return sixBits(b, words, b.Shr(columnOf(b, u), 1))
}

// sixBits returns the runs of a half's sub-blocks from two rows of nibbles, the row
// of bit pairs, the half's scales and d; odd says which of a sub-block's scales.
func sixBits(b *kernel.Builder, words []kernel.Value, odd kernel.Value) []Run {
	first, second, pairs := words[0], words[1], words[2]
	runs := sixScales(b, words, odd)
	for i, merge := range []func(i int) kernel.Value{
		func(i int) kernel.Value {
			return b.Or(lowNibbles(b, b.Elem(first, i)), b.Shl(b.And(b.Elem(pairs, i), 0x03030303), 4))
		},
		func(i int) kernel.Value {
			return b.Or(lowNibbles(b, b.Elem(second, i)), b.Shl(b.And(b.Elem(pairs, i), 0x0c0c0c0c), 2))
		},
		func(i int) kernel.Value {
			return b.Or(highNibbles(b, b.Elem(first, i)), b.And(b.Elem(pairs, i), 0x30303030))
		},
		func(i int) kernel.Value {
			return b.Or(highNibbles(b, b.Elem(second, i)), b.And(b.Shr(b.Elem(pairs, i), 2), 0x30303030))
		},
	} {
		runs[i].Codes = func(i int) kernel.Value { return fields(b, merge(i), 0, 6) }
	}
	return runs
}

// sixScales returns the scales of a half's sub-blocks.
func sixScales(b *kernel.Builder, words []kernel.Value, odd kernel.Value) []Run {
	d := b.Mul(LowHalf(b, words[4]), 1/fieldUnit)
	scales := b.Shr(words[3], b.Splat(b.Mul(odd, 8), 2)) // bytes 0 and 2 are ours
	runs := make([]Run, 4)
	for i := range 2 {
		own := int8sToF32(b, b.Elem(scales, i))
		runs[2*i].Scale, runs[2*i+1].Scale = b.Mul(d, b.Elem(own, 0)), b.Mul(d, b.Elem(own, 2))
	}
	return runs
}

// decodeOneQ6K selects what decodeQ6K returns.
func decodeOneQ6K(b *kernel.Builder, words []kernel.Value, u kernel.Value) func(i kernel.Value) Run {
	runs := sixScales(b, words, b.Shr(columnOf(b, u), 1))
	return func(i kernel.Value) Run {
		r := selectRun(b, runs, i)
		row := b.Select(b.Ne(b.And(i, 1), 0), words[1], words[0])
		nibbles := lowNibbles(b, b.Shr(row, b.Splat(b.Mul(b.Shr(i, 1), 4), 2)))
		pairs := b.And(b.Shr(words[2], b.Splat(b.Mul(i, 2), 2)), 0x03030303)
		v := b.Or(nibbles, b.Shl(pairs, 4))
		r.Codes = func(i int) kernel.Value { return fields(b, b.Elem(v, i), 0, 6) }
		return r
	}
}
