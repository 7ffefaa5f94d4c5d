package weight

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// CoopDepth is the number of elements of a row in an iteration of a tile.
const CoopDepth = 64

// CoopFormat is one row of the table of layouts that gemm_coop reads, in iterations of 64 elements of a row. Lanes
// share the items of an iteration. An item is one or more runs of octets; item i begins with octet i*run. Weights in
// f32, such as routers, have no row, since they are not rounded.
type CoopFormat struct {
	Items  int
	Run    int // octets
	Stride int // octets from one run to the next
	Span   int // iterations of a block
	// Open returns an item of all blocks of a row.
	Open func(d *CoopDecoder, m Matrix, row, item kernel.Value) CoopItem
}

// CoopItem is one item in every iteration of a row. Loads are separate from the code that waits for
// them. The code depends on the iteration's number in its block.
type CoopItem struct {
	// Head loads the words that all iterations of a block need; nil if there are none.
	Head func(block kernel.Value) []kernel.Value
	// Load loads the other words that iteration p of a block needs.
	Load func(block kernel.Value, p int) []kernel.Value
	// Octets returns the octets of iteration p, each a U32x4, from what was loaded.
	Octets func(head, loaded []kernel.Value, p int) []kernel.Value
}

// CoopDecoder turns codes into f16.
type CoopDecoder struct {
	*kernel.Builder
	// magic is two f16 of 1024, in a register: NVIDIA's compiler merges an "and" and an "or"
	// into one instruction only if one of their masks is no constant.
	magic kernel.Value
	// sixteenth is two f16 of 1/16, likewise: otherwise the compiler builds it anew for each
	// use.
	sixteenth kernel.Value
	// Live says whether loaded values count; nil: always. If they do not, loads read
	// the first word.
	Live *kernel.Value
	// Fetch takes the place of loads from buffers; nil: nothing does.
	Fetch func(buf *kernel.Buffer, t kernel.Type, i kernel.Operand) kernel.Value
}

// load loads element i of a buffer, as Buffer.Load does.
func (d *CoopDecoder) load(buf *kernel.Buffer, t kernel.Type, i kernel.Operand) kernel.Value {
	if d.Live != nil {
		i = d.Select(*d.Live, i, 0)
	}
	if d.Fetch != nil {
		return d.Fetch(buf, t, i)
	}
	return buf.Load(t, i)
}

// NewCoopDecoder returns a decoder. odd is a value below 2^31 that the driver's compiler cannot know.
func NewCoopDecoder(b *kernel.Builder, odd kernel.Value) *CoopDecoder {
	zero := b.Shr(odd, 31)
	return &CoopDecoder{Builder: b, magic: b.Or(zero, 0x64006400), sixteenth: b.Or(zero, Half2(1.0/16))}
}

// An octet is eight f16 in the order 0 2 1 3 4 6 5 7, in which two bytes of a word
// that one mask leaves are neighbours.

// octet rounds eight f32 to f16.
func octet(b *kernel.Builder, x, y kernel.Value) kernel.Value {
	pair := func(v kernel.Value, i int) kernel.Operand { return b.PackHalf(b.Vec(b.Elem(v, i), b.Elem(v, i+2))) }
	return b.Vec(pair(x, 0), pair(x, 1), pair(y, 0), pair(y, 1))
}

// OctetOf puts eight f16 into the order of an octet.
func OctetOf(b *kernel.Builder, w kernel.Value) kernel.Value {
	var v []kernel.Operand
	for i := 0; i < 4; i += 2 {
		x, y := b.Elem(w, i), b.Elem(w, i+1)
		v = append(v, b.Or(b.And(x, 0xffff), b.Shl(y, 16)), b.Or(b.Shr(x, 16), b.And(y, uint32(0xffff0000))))
	}
	return b.Vec(v...)
}

// Half2 is a pair of the same f16.
func Half2(x float32) uint32 { return Halves(x, x) }

// Halves is a pair of f16, the first in the lower half.
func Halves(x, y float32) uint32 { return uint32(gguf.F32ToF16(x)) | uint32(gguf.F32ToF16(y))<<16 }

// halfPair returns x twice as f16.
func halfPair(b *kernel.Builder, x kernel.Value) kernel.Value { return b.PackHalf(b.Splat(x, 2)) }

// codes returns the octets of scale*(code-bias) + offset for the codes of words,
// each a field of some bits from bit base up of a byte. All is computed in f16: a
// code is put into the mantissa of 1024, where it is exact, and is brought down to
// itself exactly; scale and offset, pairs of f16, are what is rounded.
func (d *CoopDecoder) codes(words []kernel.Value, base, bits int, bias float32, scale, offset kernel.Value) []kernel.Value {
	mask := (uint32(1)<<bits - 1) << base * 0x00010001
	unit := 1 / float32(uint32(1)<<base)
	var v []kernel.Operand
	for _, w := range words {
		for _, x := range []kernel.Value{w, d.Shr(w, 8)} {
			x = d.Or(d.And(x, mask), d.magic)
			factor := d.U32(Half2(unit))
			if base == 4 {
				factor = d.sixteenth
			}
			x = d.FMAHalf(x, factor, Half2(-1024*unit-bias))
			v = append(v, d.FMAHalf(x, scale, offset))
		}
	}
	var list []kernel.Value
	for i := 0; i < len(v); i += 4 {
		list = append(list, d.Vec(v[i:i+4]...))
	}
	return list
}

func Elems4(b *kernel.Builder, v kernel.Value) []kernel.Value {
	return []kernel.Value{b.Elem(v, 0), b.Elem(v, 1), b.Elem(v, 2), b.Elem(v, 3)}
}

// coopPlain is an item of a format without blocks: load loads vec4 at of the row's
// first plus iteration times so many.
func coopPlain(d *CoopDecoder, m Matrix, row, item kernel.Value, perIteration int, octets func(w kernel.Value) []kernel.Value) CoopItem {
	first := d.Add(d.Mul(row, d.Div(m.Cols, CoopDepth/perIteration)), item)
	return CoopItem{
		Load: func(iteration kernel.Value, _ int) []kernel.Value {
			return []kernel.Value{m.Buf.Load(lane.U32x4, d.Add(first, d.Mul(iteration, perIteration)))}
		},
		Octets: func(_, loaded []kernel.Value, _ int) []kernel.Value { return octets(loaded[0]) },
	}
}

func coopF16(d *CoopDecoder, m Matrix, row, item kernel.Value) CoopItem {
	return coopPlain(d, m, row, item, 8, func(w kernel.Value) []kernel.Value { return []kernel.Value{OctetOf(d.Builder, w)} })
}

func coopBF16(d *CoopDecoder, m Matrix, row, item kernel.Value) CoopItem {
	return coopPlain(d, m, row, item, 8, func(w kernel.Value) []kernel.Value {
		b := d.Builder
		return []kernel.Value{octet(b, brains(b, b.Elem(w, 0), b.Elem(w, 1)), brains(b, b.Elem(w, 2), b.Elem(w, 3)))}
	})
}

// coopQ4K reads raw blocks of 9 vec4: a header, then the nibbles. 32 bytes of
// nibbles are 64 elements, the first 32 in the low halves.
func coopQ4K(d *CoopDecoder, m Matrix, row, item kernel.Value) CoopItem {
	first := d.Mul(row, d.Div(m.Cols, 256))
	at := func(block kernel.Value) kernel.Value { return d.Mul(d.Add(first, block), 9) }
	return CoopItem{
		Head: func(block kernel.Value) []kernel.Value { return []kernel.Value{m.Buf.Load(lane.U32x4, at(block))} },
		Load: func(block kernel.Value, p int) []kernel.Value {
			return []kernel.Value{m.Buf.Load(lane.U32x4, d.Add(at(block), item, 1+2*p))}
		},
		Octets: func(head, loaded []kernel.Value, p int) []kernel.Value {
			scales, offsets := d.mins(head[0], p)
			words := Elems4(d.Builder, loaded[0])
			return append(d.codes(words, 0, 4, 0, scales[0], offsets[0]), d.codes(words, 4, 4, 0, scales[1], offsets[1])...)
		},
	}
}

// coopQ5K is as coopQ4K with 2 vec4 of fifth bits after the header: bit s of byte l
// belongs to element l of sub-block s.
func coopQ5K(d *CoopDecoder, m Matrix, row, item kernel.Value) CoopItem {
	b := d.Builder
	first := b.Mul(row, b.Div(m.Cols, 256))
	at := func(block kernel.Value) kernel.Value { return b.Mul(b.Add(first, block), 11) }
	return CoopItem{
		Head: func(block kernel.Value) []kernel.Value {
			return []kernel.Value{m.Buf.Load(lane.U32x4, at(block)), m.Buf.Load(lane.U32x4, b.Add(at(block), item, 1))}
		},
		Load: func(block kernel.Value, p int) []kernel.Value {
			return []kernel.Value{m.Buf.Load(lane.U32x4, b.Add(at(block), item, 3+2*p))}
		},
		Octets: func(head, loaded []kernel.Value, p int) []kernel.Value {
			scales, offsets := d.mins(head[0], p)
			fifth := b.Shr(head[1], 2*p)
			low := Elems4(b, b.Or(lowNibbles(b, loaded[0]), b.Shl(b.And(fifth, 0x01010101), 4)))
			high := Elems4(b, b.Or(highNibbles(b, loaded[0]), b.Shl(b.And(fifth, 0x02020202), 3)))
			return append(d.codes(low, 0, 5, 0, scales[0], offsets[0]), d.codes(high, 0, 5, 0, scales[1], offsets[1])...)
		},
	}
}

// mins returns the scales and offsets of sub-blocks 2*pair and 2*pair+1 from
// the block's header: f16 d, f16 dmin, 12 bytes of 6-bit scales and minimums.
// Sub-blocks 0-3 have theirs in the low bits of bytes s and 4+s; the others have 4
// bits of each in byte 4+s and 2 in the high bits of bytes s-4 and s.
func (d *CoopDecoder) mins(header kernel.Value, pair int) (scale, offset [2]kernel.Value) {
	b := d.Builder
	shift := pair % 2 * 16 // the pair's two bytes, in each word
	s, m := b.Shr(b.Elem(header, 1), shift), b.Shr(b.Elem(header, 2), shift)
	if pair < 2 {
		s, m = b.And(s, 0x3f3f), b.And(m, 0x3f3f)
	} else {
		low := b.Shr(b.Elem(header, 3), shift)
		s = b.Or(b.And(low, 0x0f0f), b.And(b.Shr(s, 2), 0x3030))
		m = b.Or(b.And(b.Shr(low, 4), 0x0f0f), b.And(b.Shr(m, 2), 0x3030))
	}
	scales, mins := bytesToF32(b, s, 0), bytesToF32(b, m, 0)
	factors := b.UnpackHalf(b.Elem(header, 0))
	for i := range scale {
		scale[i] = halfPair(b, b.Mul(b.Elem(factors, 0), b.Elem(scales, i)))
		offset[i] = halfPair(b, b.Mul(b.Neg(b.Elem(factors, 1)), b.Elem(mins, i)))
	}
	return scale, offset
}

// coopQ6K reads the planes ql, qh, scales and d. In each half of a block, nibble byte l
// holds elements l and l+64, and byte l%32 of the high bit pairs has those of
// elements l%32 + 0, 32, 64 and 96. value = d*scale*(code-32).
func coopQ6K(d *CoopDecoder, m Matrix, row, item kernel.Value) CoopItem {
	b := d.Builder
	first := b.Mul(row, b.Div(m.Cols, 256))
	blocks := b.Div(b.Mul(m.Rows, m.Cols), 256) // planes of 8, 4 and 1 vec4 a block
	return CoopItem{
		Head: func(block kernel.Value) []kernel.Value {
			at := b.Add(first, block)
			word := m.Buf.Load(kernel.U32, b.Add(b.Mul(blocks, 52), b.Shr(at, 1)))
			return []kernel.Value{m.Buf.Load(lane.U32x4, b.Add(b.Mul(blocks, 12), at)), b.Shr(word, b.Mul(b.And(at, 1), 16))}
		},
		Load: func(block kernel.Value, p int) []kernel.Value {
			at := b.Add(first, block)
			return []kernel.Value{
				m.Buf.Load(lane.U32x4, b.Add(b.Mul(at, 8), item, p/2*4)),
				m.Buf.Load(lane.U32x4, b.Add(b.Mul(blocks, 8), b.Mul(at, 4), b.And(item, 1), p/2*2)),
			}
		},
		Octets: func(head, loaded []kernel.Value, p int) []kernel.Value {
			high := p % 2 * 4
			up := b.Shl(b.Elem(head[0], p), b.Sub(24, b.Mul(item, 8)))
			scale := b.Mul(b.Convert(kernel.F32, b.Shr(b.Bitcast(kernel.I32, up), 24)), LowHalf(b, head[1]))
			low := b.And(b.Shr(loaded[0], high), 0x0f0f0f0f)
			top := b.And(b.Shr(loaded[1], b.Splat(b.Add(b.And(item, 2), high), 4)), 0x03030303)
			return d.codes(Elems4(b, b.Or(low, b.Shl(top, 4))), 0, 6, 32, halfPair(b, scale), b.U32(0))
		},
	}
}

// coopQ4_0 reads a plane of 16-byte blocks, elements 0-15 in the low nibbles, and
// one of f16. value = d*(code-8).
func coopQ4_0(d *CoopDecoder, m Matrix, row, item kernel.Value) CoopItem {
	b := d.Builder
	first := b.Add(b.Mul(row, b.Div(m.Cols, 32)), item)
	return CoopItem{
		Load: func(iteration kernel.Value, _ int) []kernel.Value {
			block := b.Add(first, b.Mul(iteration, 2))
			return []kernel.Value{m.Buf.Load(lane.U32x4, block), halfAt(b, m.Buf, b.Div(b.Mul(m.Rows, m.Cols), 8), block)}
		},
		Octets: func(_, loaded []kernel.Value, _ int) []kernel.Value {
			scale, words := halfPair(b, LowHalf(b, loaded[1])), Elems4(b, loaded[0])
			return append(d.codes(words, 0, 4, 8, scale, b.U32(0)), d.codes(words, 4, 4, 8, scale, b.U32(0))...)
		},
	}
}

// ints returns the octets of int8, each of two words. scale and offset are f32.
func (d *CoopDecoder) ints(words []kernel.Value, scale, offset kernel.Value) []kernel.Value {
	b := d.Builder
	var codes []kernel.Value
	for _, w := range words {
		codes = append(codes, b.Xor(w, uint32(0x80808080)))
	}
	return d.codes(codes, 0, 8, 128, halfPair(b, scale), halfPair(b, offset))
}

// coopQ8_0 reads a plane of int8 and one of f16 for 32 of them.
func coopQ8_0(d *CoopDecoder, m Matrix, row, item kernel.Value) CoopItem {
	b := d.Builder
	first := b.Add(b.Mul(row, b.Div(m.Cols, 16)), item)
	return CoopItem{
		Load: func(iteration kernel.Value, _ int) []kernel.Value {
			at := b.Add(first, b.Mul(iteration, 4))
			return []kernel.Value{m.Buf.Load(lane.U32x4, at), halfAt(b, m.Buf, b.Div(b.Mul(m.Rows, m.Cols), 4), b.Shr(at, 1))}
		},
		Octets: func(_, loaded []kernel.Value, _ int) []kernel.Value {
			return d.ints(Elems4(b, loaded[0]), LowHalf(b, loaded[1]), b.F32(0))
		},
	}
}
