package kernels

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// coopFormat is one row of the table of layouts that gemm_coop reads, in steps of 64
// elements of a row. Lanes share a step: each takes an item, of which there are a
// number in a step. An item is one or more runs of octets: item i begins with octet
// i*run. Weights in f32, such as routers, have no row: they are not rounded.
type coopFormat struct {
	layout string
	items  int
	run    int // octets
	stride int // octets from one run to the next
	// header: the items of a step need the same header; one lane takes them.
	header bool
	// load emits the loads of an item. What it returns emits the octets, each a
	// u32x4, so that loads and what waits for them may be kept apart.
	load func(b *kernel.Builder, m matrix, row, step, item kernel.Value) func() []kernel.Value
}

var coopFormats = []*coopFormat{
	{layout: "f16", items: 8, run: 1, load: coopF16},
	{layout: "bf16", items: 8, run: 1, load: coopBF16},
	{layout: "q4_k", items: 2, run: 2, stride: 4, header: true, load: coopQ4K},
	{layout: "q5_k", items: 2, run: 2, stride: 4, header: true, load: coopQ5K},
	{layout: "q6_k", items: 4, run: 2, load: coopQ6K},
	{layout: "q4_0", items: 2, run: 4, load: coopQ4_0},
	{layout: "q8_0", items: 4, run: 2, load: coopQ8_0},
	{layout: "affine16", items: 4, run: 2, load: coopAffine(16, false)},
	{layout: "affine16m", items: 4, run: 2, load: coopAffine(16, true)},
	{layout: "affine32", items: 4, run: 2, load: coopAffine(32, false)},
	{layout: "affine32m", items: 4, run: 2, load: coopAffine(32, true)},
}

// coopFormatOf returns the row for a layout, nil if there is none.
func coopFormatOf(layout string) *coopFormat {
	for _, f := range coopFormats {
		if f.layout == layout {
			return f
		}
	}
	return nil
}

// An octet is eight f16 in the order 0 2 1 3 4 6 5 7, in which two bytes of a word
// that one mask leaves are neighbours.

// octet rounds eight f32 to f16.
func octet(b *kernel.Builder, x, y kernel.Value) kernel.Value {
	pair := func(v kernel.Value, i int) kernel.Operand { return b.PackHalf(b.Vec(b.Elem(v, i), b.Elem(v, i+2))) }
	return b.Vec(pair(x, 0), pair(x, 1), pair(y, 0), pair(y, 1))
}

// octetOf puts eight f16 into the order of an octet.
func octetOf(b *kernel.Builder, w kernel.Value) kernel.Value {
	var v []kernel.Operand
	for i := 0; i < 4; i += 2 {
		x, y := b.Elem(w, i), b.Elem(w, i+1)
		v = append(v, b.Or(b.And(x, 0xffff), b.Shl(y, 16)), b.Or(b.Shr(x, 16), b.And(y, uint32(0xffff0000))))
	}
	return b.Vec(v...)
}

// half2 is a pair of the same f16.
func half2(x float32) uint32 { return uint32(gguf.F32ToF16(x)) * 0x00010001 }

// halfPair returns x twice as f16.
func halfPair(b *kernel.Builder, x kernel.Value) kernel.Value { return b.PackHalf(b.Splat(x, 2)) }

// coopCodes returns the octets of scale*(code-bias) + offset for the codes of words,
// each a field of some bits from bit base up of a byte. All is computed in f16: a
// code is put into the mantissa of 1024, where it is exact, and is brought down to
// itself exactly; scale and offset, pairs of f16, are what is rounded.
func coopCodes(b *kernel.Builder, words []kernel.Value, base, bits int, bias float32, scale, offset kernel.Value) []kernel.Value {
	mask := (uint32(1)<<bits - 1) << base * 0x00010001
	unit := 1 / float32(uint32(1)<<base)
	var v []kernel.Operand
	for _, w := range words {
		for _, x := range []kernel.Value{w, b.Shr(w, 8)} {
			x = b.Or(b.And(x, mask), uint32(0x64006400))
			x = b.FMAHalf(x, half2(unit), half2(-1024*unit-bias))
			v = append(v, b.FMAHalf(x, scale, offset))
		}
	}
	var list []kernel.Value
	for i := 0; i < len(v); i += 4 {
		list = append(list, b.Vec(v[i:i+4]...))
	}
	return list
}

func elems4(b *kernel.Builder, v kernel.Value) []kernel.Value {
	return []kernel.Value{b.Elem(v, 0), b.Elem(v, 1), b.Elem(v, 2), b.Elem(v, 3)}
}

func coopF16(b *kernel.Builder, m matrix, row, step, item kernel.Value) func() []kernel.Value {
	w := m.buf.Load(u32x4, b.Add(b.Mul(row, b.Div(m.cols, 8)), b.Mul(step, 8), item))
	return func() []kernel.Value { return []kernel.Value{octetOf(b, w)} }
}

func coopBF16(b *kernel.Builder, m matrix, row, step, item kernel.Value) func() []kernel.Value {
	w := m.buf.Load(u32x4, b.Add(b.Mul(row, b.Div(m.cols, 8)), b.Mul(step, 8), item))
	return func() []kernel.Value {
		return []kernel.Value{octet(b, brains(b, b.Elem(w, 0), b.Elem(w, 1)), brains(b, b.Elem(w, 2), b.Elem(w, 3)))}
	}
}

// coopQ4K reads raw blocks of 9 vec4: a header, then the nibbles. 32 bytes of
// nibbles are 64 elements, the first 32 in the low halves.
func coopQ4K(b *kernel.Builder, m matrix, row, step, item kernel.Value) func() []kernel.Value {
	at := b.Mul(b.Add(b.Mul(row, b.Div(m.cols, 256)), b.Shr(step, 2)), 9)
	pair := b.And(step, 3)
	header := m.buf.Load(u32x4, at)
	q := m.buf.Load(u32x4, b.Add(at, 1, b.Mul(pair, 2), item))
	return func() []kernel.Value {
		scales, offsets := coopMins(b, header, pair)
		words := elems4(b, q)
		return append(coopCodes(b, words, 0, 4, 0, scales[0], offsets[0]), coopCodes(b, words, 4, 4, 0, scales[1], offsets[1])...)
	}
}

// coopQ5K is as coopQ4K with 2 vec4 of fifth bits after the header: bit s of byte l
// belongs to element l of sub-block s.
func coopQ5K(b *kernel.Builder, m matrix, row, step, item kernel.Value) func() []kernel.Value {
	at := b.Mul(b.Add(b.Mul(row, b.Div(m.cols, 256)), b.Shr(step, 2)), 11)
	pair := b.And(step, 3)
	header := m.buf.Load(u32x4, at)
	fifth := m.buf.Load(u32x4, b.Add(at, 1, item))
	q := m.buf.Load(u32x4, b.Add(at, 3, b.Mul(pair, 2), item))
	return func() []kernel.Value {
		scales, offsets := coopMins(b, header, pair)
		f := b.Shr(fifth, b.Splat(b.Mul(pair, 2), 4))
		low := elems4(b, b.Or(lowNibbles(b, q), b.Shl(b.And(f, 0x01010101), 4)))
		high := elems4(b, b.Or(highNibbles(b, q), b.Shl(b.And(f, 0x02020202), 3)))
		return append(coopCodes(b, low, 0, 5, 0, scales[0], offsets[0]), coopCodes(b, high, 0, 5, 0, scales[1], offsets[1])...)
	}
}

// coopMins returns the scales and offsets of sub-blocks 2*pair and 2*pair+1 from
// the block's header: f16 d, f16 dmin, 12 bytes of 6-bit scales and minimums.
// Sub-blocks 0-3 have theirs in the low bits of bytes s and 4+s; the others have 4
// bits of each in byte 4+s and 2 in the high bits of bytes s-4 and s.
func coopMins(b *kernel.Builder, header, pair kernel.Value) (scale, offset [2]kernel.Value) {
	shift := b.Mul(b.And(pair, 1), 16) // the pair's two bytes, in each word
	s := b.Shr(b.Elem(header, 1), shift)
	m := b.Shr(b.Elem(header, 2), shift)
	low := b.Shr(b.Elem(header, 3), shift)
	upper := b.Ge(pair, 2)
	scales := bytesToF32(b, b.Select(upper, b.Or(b.And(low, 0x0f0f), b.And(b.Shr(s, 2), 0x3030)), b.And(s, 0x3f3f)), 0)
	mins := bytesToF32(b, b.Select(upper, b.Or(b.And(b.Shr(low, 4), 0x0f0f), b.And(b.Shr(m, 2), 0x3030)), b.And(m, 0x3f3f)), 0)
	d := b.UnpackHalf(b.Elem(header, 0))
	for i := range scale {
		scale[i] = halfPair(b, b.Mul(b.Elem(d, 0), b.Elem(scales, i)))
		offset[i] = halfPair(b, b.Mul(b.Neg(b.Elem(d, 1)), b.Elem(mins, i)))
	}
	return scale, offset
}

// coopQ6K reads the planes ql, qh, scales and d. Of each half of a block, nibble
// byte l is elements l and l+64, and byte l%32 of the high bit pairs has those of
// elements l%32 + 0, 32, 64 and 96. value = d*scale*(code-32).
func coopQ6K(b *kernel.Builder, m matrix, row, step, item kernel.Value) func() []kernel.Value {
	block := b.Add(b.Mul(row, b.Div(m.cols, 256)), b.Shr(step, 2))
	blocks := b.Div(b.Mul(m.rows, m.cols), 256) // planes of 8, 4 and 1 vec4 a block
	quarter := b.And(step, 3)
	half, high := b.Shr(quarter, 1), b.And(quarter, 1)
	q := m.buf.Load(u32x4, b.Add(b.Mul(block, 8), b.Mul(half, 4), item))
	pairs := m.buf.Load(u32x4, b.Add(b.Mul(blocks, 8), b.Mul(block, 4), b.Mul(half, 2), b.And(item, 1)))
	scales := m.buf.Load(kernel.U32, b.Add(b.Mul(blocks, 48), b.Mul(block, 4), quarter))
	d := m.buf.Load(kernel.U32, b.Add(b.Mul(blocks, 52), b.Shr(block, 1)))
	return func() []kernel.Value {
		up := b.Shl(scales, b.Sub(24, b.Mul(item, 8)))
		scale := b.Convert(kernel.F32, b.Shr(b.Bitcast(kernel.I32, up), 24))
		scale = b.Mul(scale, b.Elem(b.UnpackHalf(b.Shr(d, b.Mul(b.And(block, 1), 16))), 0))
		low := b.And(b.Shr(q, b.Splat(b.Mul(high, 4), 4)), 0x0f0f0f0f)
		top := b.And(b.Shr(pairs, b.Splat(b.Add(b.Mul(high, 4), b.And(item, 2)), 4)), 0x03030303)
		return coopCodes(b, elems4(b, b.Or(low, b.Shl(top, 4))), 0, 6, 32, halfPair(b, scale), b.U32(0))
	}
}

// coopQ4_0 reads a plane of 16-byte blocks, elements 0-15 in the low nibbles, and
// one of f16. value = d*(code-8).
func coopQ4_0(b *kernel.Builder, m matrix, row, step, item kernel.Value) func() []kernel.Value {
	block := b.Add(b.Mul(row, b.Div(m.cols, 32)), b.Mul(step, 2), item)
	q := m.buf.Load(u32x4, block)
	d := m.buf.Load(kernel.U32, b.Add(b.Div(b.Mul(m.rows, m.cols), 8), b.Shr(block, 1)))
	return func() []kernel.Value {
		scale := halfPair(b, b.Elem(b.UnpackHalf(b.Shr(d, b.Mul(b.And(block, 1), 16))), 0))
		words := elems4(b, q)
		return append(coopCodes(b, words, 0, 4, 8, scale, b.U32(0)), coopCodes(b, words, 4, 4, 8, scale, b.U32(0))...)
	}
}

// coopInts returns the octets of 16 int8. scale and offset are f32.
func coopInts(b *kernel.Builder, q, scale, offset kernel.Value) []kernel.Value {
	return coopCodes(b, elems4(b, b.Xor(q, uint32(0x80808080))), 0, 8, 128, halfPair(b, scale), halfPair(b, offset))
}

// coopQ8_0 reads a plane of int8 and one of f16 for 32 of them.
func coopQ8_0(b *kernel.Builder, m matrix, row, step, item kernel.Value) func() []kernel.Value {
	at := b.Add(b.Mul(row, b.Div(m.cols, 16)), b.Mul(step, 4), item)
	q, block := m.buf.Load(u32x4, at), b.Shr(at, 1)
	d := m.buf.Load(kernel.U32, b.Add(b.Div(b.Mul(m.rows, m.cols), 4), b.Shr(block, 1)))
	return func() []kernel.Value {
		return coopInts(b, q, b.Elem(b.UnpackHalf(b.Shr(d, b.Mul(b.And(block, 1), 16))), 0), b.F32(0))
	}
}

// coopAffine reads a plane of int8, one of f32 scales and maybe one of f32
// offsets, for 16 or 32 elements each.
func coopAffine(group int, offset bool) func(b *kernel.Builder, m matrix, row, step, item kernel.Value) func() []kernel.Value {
	return func(b *kernel.Builder, m matrix, row, step, item kernel.Value) func() []kernel.Value {
		at := b.Add(b.Mul(row, b.Div(m.cols, 16)), b.Mul(step, 4), item)
		q := m.buf.Load(u32x4, at)
		elements := b.Mul(m.rows, m.cols)
		scales := b.Div(elements, 4) // in words, as all below
		i := b.Div(at, group/16)
		scale, low := m.buf.Load(kernel.F32, b.Add(scales, i)), b.F32(0)
		if offset {
			padded := b.Mul(b.Div(b.Add(b.Div(elements, group), 3), 4), 4)
			low = m.buf.Load(kernel.F32, b.Add(scales, padded, i))
		}
		return func() []kernel.Value { return coopInts(b, q, scale, low) }
	}
}
