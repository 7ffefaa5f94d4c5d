package kernels

import "github.com/zincc-dev/zincc/codegen/kernel"

// dealtFormat is one row of the table of layouts that gemm_dealt reads. The four lanes
// of a subgroup that hold parts of the same row of a matrix take parts of the weights'
// row: of each block of 256 elements 64, in two steps of four octets of 8. Which ones they are
// is the format's, chosen such that a lane loads 16 bytes at a time and needs few scales.
type dealtFormat struct {
	layout  string
	dealing string // names one of dealings
	open    func(d *coopDecoder, m matrix, row, lane kernel.Value) dealtItem
}

// dealing says which elements of a block the lanes get: which bit of an octet's number in
// its block is which bit of its number o of the four of a step, of the lane of four that
// gets it, and of the step.
type dealing struct {
	o, lane [2]int
	step    int
}

const (
	dealtBlock = 256 // elements
	dealtSteps = 2   // of a block
)

// dealtItem is what a lane takes of the blocks of a row. Loads and what waits for them
// are kept apart.
type dealtItem struct {
	// load loads what the lane needs of a block for step p, or as step dealtSteps what all
	// steps need.
	load func(block kernel.Value, p int) []kernel.Value
	// scales returns what all steps need, from what was loaded for them.
	scales func(loaded []kernel.Value) []kernel.Value
	// octet returns octet o of the four of step p, a u32x4.
	octet func(scales, loaded []kernel.Value, p, o int) kernel.Value
}

var dealtFormats = []*dealtFormat{
	{"f16", "turn", dealtWide(octetOf)},
	{"bf16", "turn", dealtWide(octetOfBrains)},
	{"q4_k", "pairs", dealtQ4K},
	{"q5_k", "pairs", dealtQ5K},
	{"q6_k", "halves", dealtQ6K},
	{"q4_0", "turn", dealtQ4_0},
	{"q8_0", "turn", dealtQ8_0},
	{"affine16", "turn", dealtAffine(16, false)},
	{"affine16m", "turn", dealtAffine(16, true)},
	{"affine32", "turn", dealtAffine(32, false)},
	{"affine32m", "turn", dealtAffine(32, true)},
}

// dealtFormatOf returns the row for a layout, nil if there is none.
func dealtFormatOf(layout string) *dealtFormat {
	for _, f := range dealtFormats {
		if f.layout == layout {
			return f
		}
	}
	return nil
}

var dealings = map[string]dealing{
	// 32 neighbours of each half of a block to each lane
	"turn": {o: [2]int{0, 1}, lane: [2]int{2, 3}, step: 4},
	// A pair of sub-blocks of 32 to each lane, which are the low and the high nibbles of
	// 32 bytes; a step has half of each.
	"pairs": {o: [2]int{0, 2}, lane: [2]int{3, 4}, step: 1},
	// Of each half of a super-block 32 elements and the 32 that lie 64 further to each of
	// two lanes; a step has half of each.
	"halves": {o: [2]int{0, 3}, lane: [2]int{2, 4}, step: 1},
}

// octet returns the number in a block of a lane's octet o of step p.
func (d dealing) octet(b *kernel.Builder, lane, o kernel.Value, p int) kernel.Value {
	at := b.U32(uint32(p << d.step))
	for i := range 2 {
		at = b.Add(at, b.Shl(b.And(b.Shr(lane, i), 1), d.lane[i]), b.Shl(b.And(b.Shr(o, i), 1), d.o[i]))
	}
	return at
}

// place returns whose octet has a number, and which it is: o and 4 times the step.
func (d dealing) place(b *kernel.Builder, octet kernel.Value) (lane, o kernel.Value) {
	bit := func(at, to int) kernel.Value { return b.Shl(b.And(b.Shr(octet, at), 1), to) }
	return b.Or(bit(d.lane[0], 0), bit(d.lane[1], 1)), b.Or(bit(d.o[0], 0), bit(d.o[1], 1), bit(d.step, 2))
}

// noScales is dealtItem.scales of formats whose steps have nothing in common.
func noScales(loaded []kernel.Value) []kernel.Value { return nil }

// dealtWide reads elements of 16 bits.
func dealtWide(octet func(b *kernel.Builder, w kernel.Value) kernel.Value) func(d *coopDecoder, m matrix, row, lane kernel.Value) dealtItem {
	return func(d *coopDecoder, m matrix, row, lane kernel.Value) dealtItem {
		first := d.Add(d.Mul(row, d.Div(m.cols, 8)), d.Mul(lane, 4))
		return dealtItem{
			load: func(block kernel.Value, p int) (list []kernel.Value) {
				if p == dealtSteps {
					return nil
				}
				for i := range 4 {
					list = append(list, d.load(m.buf, u32x4, d.Add(first, d.Mul(block, 32), 16*p+i)))
				}
				return list
			},
			scales: noScales,
			octet:  func(_, loaded []kernel.Value, _, o int) kernel.Value { return octet(d.Builder, loaded[o]) },
		}
	}
}

func octetOfBrains(b *kernel.Builder, w kernel.Value) kernel.Value {
	return octet(b, brains(b, b.Elem(w, 0), b.Elem(w, 1)), brains(b, b.Elem(w, 2), b.Elem(w, 3)))
}

// pairScales returns scales and offsets of the lane's two sub-blocks, as pairs of f16,
// from a super-block's header: see minRuns.
func pairScales(d *coopDecoder, header, lane kernel.Value) []kernel.Value {
	b := d.Builder
	var list []kernel.Value
	for _, s := range pairTerms(b, header, lane) {
		list = append(list, halfPair(b, s.scale), halfPair(b, s.offset))
	}
	return list
}

// pairTerms returns scales and offsets of the sub-blocks 2i and 2i+1 of a super-block: see
// subScale.
func pairTerms(b *kernel.Builder, header, i kernel.Value) (terms [2]dotScale) {
	shift, upper := b.Mul(b.And(i, 1), 16), b.Ge(i, 2)
	s, m, low := b.Shr(b.Elem(header, 1), shift), b.Shr(b.Elem(header, 2), shift), b.Shr(b.Elem(header, 3), shift)
	scales := b.Select(upper, b.Or(b.And(low, 0x0f0f), b.And(b.Shr(s, 2), 0x3030)), b.And(s, 0x3f3f))
	mins := b.Select(upper, b.Or(b.And(b.Shr(low, 4), 0x0f0f), b.And(b.Shr(m, 2), 0x3030)), b.And(m, 0x3f3f))
	of := fields(b, b.Or(scales, b.Shl(mins, 16)), 0, 8)
	d := b.UnpackHalf(b.Elem(header, 0))
	scale, negMin := b.Mul(b.Elem(d, 0), 1/fieldUnit), b.Mul(b.Elem(d, 1), -1/fieldUnit)
	for j := range terms {
		terms[j] = dotScale{b.Mul(scale, b.Elem(of, j)), b.Mul(negMin, b.Elem(of, 2+j))}
	}
	return
}

// dealtQ4K reads raw blocks of 9 vec4: see coopQ4K.
func dealtQ4K(d *coopDecoder, m matrix, row, lane kernel.Value) dealtItem {
	first := d.Mul(row, d.Div(m.cols, 256))
	return dealtItem{
		load: func(block kernel.Value, p int) []kernel.Value {
			at := d.Mul(d.Add(first, block), 9)
			if p < dealtSteps {
				at = d.Add(at, d.Mul(lane, 2), 1+p)
			}
			return []kernel.Value{d.load(m.buf, u32x4, at)}
		},
		scales: func(loaded []kernel.Value) []kernel.Value { return pairScales(d, loaded[0], lane) },
		octet: func(s, loaded []kernel.Value, _, o int) kernel.Value {
			high := o / 2
			return d.codes(elems2(d.Builder, loaded[0], o%2), 4*high, 4, 0, s[2*high], s[2*high+1])[0]
		},
	}
}

// dealtQ5K is as dealtQ4K with 2 vec4 of fifth bits after the header: see coopQ5K.
func dealtQ5K(d *coopDecoder, m matrix, row, lane kernel.Value) dealtItem {
	b := d.Builder
	first := b.Mul(row, b.Div(m.cols, 256))
	return dealtItem{
		load: func(block kernel.Value, p int) []kernel.Value {
			at := b.Mul(b.Add(first, block), 11)
			if p == dealtSteps {
				return []kernel.Value{d.load(m.buf, u32x4, at)}
			}
			return []kernel.Value{d.load(m.buf, u32x4, b.Add(at, b.Mul(lane, 2), 3+p)), d.load(m.buf, u32x4, b.Add(at, 1+p))}
		},
		scales: func(loaded []kernel.Value) []kernel.Value { return pairScales(d, loaded[0], lane) },
		octet: func(s, loaded []kernel.Value, _, o int) kernel.Value {
			var codes []kernel.Value
			fifths := elems2(b, loaded[1], o%2)
			for i, w := range elems2(b, loaded[0], o%2) {
				fifth := b.Shr(fifths[i], b.Mul(lane, 2)) // bits 0 and 1 of each byte are ours
				if o < 2 {
					codes = append(codes, b.Or(lowNibbles(b, w), b.Shl(b.And(fifth, 0x01010101), 4)))
				} else {
					codes = append(codes, b.Or(highNibbles(b, w), b.Shl(b.And(fifth, 0x02020202), 3)))
				}
			}
			return d.codes(codes, 0, 5, 0, s[o/2*2], s[o/2*2+1])[0]
		},
	}
}

// dealtQ6K reads the planes ql, qh, scales and d: see coopQ6K.
func dealtQ6K(d *coopDecoder, m matrix, row, lane kernel.Value) dealtItem {
	b := d.Builder
	first := b.Mul(row, b.Div(m.cols, 256))
	blocks := b.Div(b.Mul(m.rows, m.cols), 256) // planes of 32, 16 and 4 words a block
	half, odd := b.Shr(lane, 1), b.And(lane, 1)
	return dealtItem{
		load: func(block kernel.Value, p int) []kernel.Value {
			at := b.Add(first, block)
			if p == dealtSteps {
				return []kernel.Value{
					d.load(m.buf, u32x2, b.Add(b.Mul(blocks, 24), b.Mul(at, 2), half)),
					d.halfAt(m.buf, b.Mul(blocks, 52), at),
				}
			}
			return []kernel.Value{
				d.load(m.buf, u32x4, b.Add(b.Mul(at, 8), b.Mul(lane, 2), p)),
				d.load(m.buf, u32x4, b.Add(b.Mul(blocks, 8), b.Mul(at, 4), b.Mul(half, 2), p)),
			}
		},
		scales: func(loaded []kernel.Value) []kernel.Value {
			var list []kernel.Value // by step, then half
			factor := lowHalf(b, loaded[1])
			for p := range dealtSteps {
				for j := range 2 {
					s := b.BitExtract(b.Bitcast(kernel.I32, b.Elem(loaded[0], j)), b.Add(b.Mul(odd, 16), 8*p), 8)
					list = append(list, halfPair(b, b.Mul(b.Convert(kernel.F32, s), factor)))
				}
			}
			return list
		},
		octet: func(s, loaded []kernel.Value, p, o int) kernel.Value {
			var codes []kernel.Value
			tops := elems2(b, loaded[1], o%2)
			for i, w := range elems2(b, loaded[0], o%2) {
				pairs := b.Shr(tops[i], b.Mul(odd, 2)) // bit pairs 0 and 2 are ours
				if o < 2 {
					codes = append(codes, b.Or(lowNibbles(b, w), b.Shl(b.And(pairs, 0x03030303), 4)))
				} else {
					codes = append(codes, b.Or(highNibbles(b, w), b.And(pairs, 0x30303030)))
				}
			}
			return d.codes(codes, 0, 6, 32, s[2*p+o/2], b.U32(0))[0]
		},
	}
}

// dealtQ4_0 reads a plane of 16-byte blocks and one of f16: see coopQ4_0.
func dealtQ4_0(d *coopDecoder, m matrix, row, lane kernel.Value) dealtItem {
	b := d.Builder
	first := b.Add(b.Mul(row, b.Div(m.cols, 32)), lane)
	return dealtItem{
		load: func(block kernel.Value, p int) []kernel.Value {
			if p == dealtSteps {
				return nil
			}
			at := b.Add(first, b.Mul(block, 8), 4*p)
			return []kernel.Value{d.load(m.buf, u32x4, at), d.halfAt(m.buf, b.Div(b.Mul(m.rows, m.cols), 8), at)}
		},
		scales: noScales,
		octet: func(_, loaded []kernel.Value, _, o int) kernel.Value {
			scale := halfPair(b, lowHalf(b, loaded[1]))
			return d.codes(elems2(b, loaded[0], o%2), o/2*4, 4, 8, scale, b.U32(0))[0]
		},
	}
}

// dealtBytes reads a plane of int8, of which a lane takes two vec4 of a step. rest loads
// what else belongs to elements from 16 times at on, and terms returns their scale and
// offset, as f32, for each of the two.
func dealtBytes(d *coopDecoder, m matrix, row, lane kernel.Value, rest func(at kernel.Value) []kernel.Value, terms func(rest []kernel.Value, i int) (scale, offset kernel.Value)) dealtItem {
	first := d.Add(d.Mul(row, d.Div(m.cols, 16)), d.Mul(lane, 2))
	return dealtItem{
		load: func(block kernel.Value, p int) []kernel.Value {
			if p == dealtSteps {
				return nil
			}
			at := d.Add(first, d.Mul(block, 16), 8*p)
			return append([]kernel.Value{d.load(m.buf, u32x4, at), d.load(m.buf, u32x4, d.Add(at, 1))}, rest(at)...)
		},
		scales: noScales,
		octet: func(_, loaded []kernel.Value, _, o int) kernel.Value {
			scale, offset := terms(loaded[2:], o/2)
			return d.ints(elems2(d.Builder, loaded[o/2], o%2), scale, offset)[0]
		},
	}
}

// dealtQ8_0 reads a plane of int8 and one of f16 for 32 of them.
func dealtQ8_0(d *coopDecoder, m matrix, row, lane kernel.Value) dealtItem {
	scales := d.Div(d.Mul(m.rows, m.cols), 4)
	return dealtBytes(d, m, row, lane,
		func(at kernel.Value) []kernel.Value {
			return []kernel.Value{d.halfAt(m.buf, scales, d.Shr(at, 1))}
		},
		func(rest []kernel.Value, _ int) (kernel.Value, kernel.Value) {
			return lowHalf(d.Builder, rest[0]), d.F32(0)
		})
}

// dealtAffine reads a plane of int8, one of f32 scales and maybe one of f32 offsets,
// for 16 or 32 elements each: see coopAffine.
func dealtAffine(group int, offset bool) func(d *coopDecoder, m matrix, row, lane kernel.Value) dealtItem {
	return func(d *coopDecoder, m matrix, row, lane kernel.Value) dealtItem {
		elements := d.Mul(m.rows, m.cols)
		scales := d.Div(elements, 4) // in words, as all below
		padded := d.Mul(d.Div(d.Add(d.Div(elements, group), 3), 4), 4)
		count := 32 / group // scales of the lane's 32 elements
		return dealtBytes(d, m, row, lane,
			func(at kernel.Value) []kernel.Value {
				var list []kernel.Value
				for i := range count {
					from := d.Add(scales, d.Div(at, group/16), i)
					list = append(list, d.load(m.buf, kernel.F32, from))
					if offset {
						list = append(list, d.load(m.buf, kernel.F32, d.Add(from, padded)))
					}
				}
				return list
			},
			func(rest []kernel.Value, i int) (kernel.Value, kernel.Value) {
				rest = rest[len(rest)/count*(i*count/2):]
				if offset {
					return rest[0], rest[1]
				}
				return rest[0], d.F32(0)
			})
	}
}

// elems2 returns words 2i and 2i+1 of a vec4.
func elems2(b *kernel.Builder, v kernel.Value, i int) []kernel.Value {
	return []kernel.Value{b.Elem(v, 2*i), b.Elem(v, 2*i+1)}
}

// halfAt is halfAt with load.
func (d *coopDecoder) halfAt(buf *kernel.Buffer, word, i kernel.Value) kernel.Value {
	return d.Shr(d.load(buf, kernel.U32, d.Add(word, d.Shr(i, 1))), d.Mul(d.And(i, 1), 16))
}
