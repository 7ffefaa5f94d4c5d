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

// dealing says which elements of a block the lanes get: which octet of it octet i of
// step p of a lane of four is.
type dealing func(b *kernel.Builder, lane, i kernel.Value, p int) kernel.Value

const (
	dealtBlock = 256 // elements
	dealtSteps = 2   // of a block
)

// dealtItem is what a lane takes of the blocks of a row. Loads and what waits for them
// are kept apart.
type dealtItem struct {
	// load loads what the lane needs of a block: by step; the last list is for all.
	load func(block kernel.Value) [][]kernel.Value
	// scales returns what all steps need, from the last list.
	scales func(loaded []kernel.Value) []kernel.Value
	// octets returns the four octets of step p, each a u32x4.
	octets func(scales, loaded []kernel.Value, p int) []kernel.Value
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

var dealings = map[string]dealing{"turn": octetInTurn, "pairs": octetOfPair, "halves": octetOfHalf}

// octetInTurn deals 32 neighbours of each half of a block to each lane.
func octetInTurn(b *kernel.Builder, lane, i kernel.Value, p int) kernel.Value {
	return b.Add(b.Mul(lane, 4), i, 16*p)
}

// octetOfPair deals a pair of sub-blocks of 32 to each lane, which are the low and the
// high nibbles of 32 bytes; a step has half of each.
func octetOfPair(b *kernel.Builder, lane, i kernel.Value, p int) kernel.Value {
	return b.Add(b.Mul(lane, 8), b.Mul(b.Shr(i, 1), 4), b.And(i, 1), 2*p)
}

// octetOfHalf deals of each half of a super-block 32 elements and the 32 that lie 64
// further to each of two lanes; a step has half of each.
func octetOfHalf(b *kernel.Builder, lane, i kernel.Value, p int) kernel.Value {
	return b.Add(b.Mul(b.Shr(lane, 1), 16), b.Mul(b.Shr(i, 1), 8), b.Mul(b.And(lane, 1), 4), b.And(i, 1), 2*p)
}

// noScales is dealtItem.scales of formats whose steps have nothing in common.
func noScales(loaded []kernel.Value) []kernel.Value { return nil }

// dealtWide reads elements of 16 bits.
func dealtWide(octet func(b *kernel.Builder, w kernel.Value) kernel.Value) func(d *coopDecoder, m matrix, row, lane kernel.Value) dealtItem {
	return func(d *coopDecoder, m matrix, row, lane kernel.Value) dealtItem {
		first := d.Add(d.Mul(row, d.Div(m.cols, 8)), d.Mul(lane, 4))
		return dealtItem{
			load: func(block kernel.Value) [][]kernel.Value {
				steps := make([][]kernel.Value, dealtSteps+1)
				for p := range dealtSteps {
					for i := range 4 {
						steps[p] = append(steps[p], d.load(m.buf, u32x4, d.Add(first, d.Mul(block, 32), 16*p+i)))
					}
				}
				return steps
			},
			scales: noScales,
			octets: func(_, loaded []kernel.Value, _ int) []kernel.Value {
				var list []kernel.Value
				for _, w := range loaded {
					list = append(list, octet(d.Builder, w))
				}
				return list
			},
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
	shift, upper := b.Mul(b.And(lane, 1), 16), b.Ge(lane, 2)
	s, m, low := b.Shr(b.Elem(header, 1), shift), b.Shr(b.Elem(header, 2), shift), b.Shr(b.Elem(header, 3), shift)
	scales := b.Select(upper, b.Or(b.And(low, 0x0f0f), b.And(b.Shr(s, 2), 0x3030)), b.And(s, 0x3f3f))
	mins := b.Select(upper, b.Or(b.And(b.Shr(low, 4), 0x0f0f), b.And(b.Shr(m, 2), 0x3030)), b.And(m, 0x3f3f))
	of := fields(b, b.Or(scales, b.Shl(mins, 16)), 0, 8)
	pair := b.UnpackHalf(b.Elem(header, 0))
	scale, negMin := b.Mul(b.Elem(pair, 0), 1/fieldUnit), b.Mul(b.Elem(pair, 1), -1/fieldUnit)
	return []kernel.Value{halfPair(b, b.Mul(scale, b.Elem(of, 0))), halfPair(b, b.Mul(negMin, b.Elem(of, 2))),
		halfPair(b, b.Mul(scale, b.Elem(of, 1))), halfPair(b, b.Mul(negMin, b.Elem(of, 3)))}
}

// dealtQ4K reads raw blocks of 9 vec4: see coopQ4K.
func dealtQ4K(d *coopDecoder, m matrix, row, lane kernel.Value) dealtItem {
	first := d.Mul(row, d.Div(m.cols, 256))
	return dealtItem{
		load: func(block kernel.Value) [][]kernel.Value {
			at := d.Mul(d.Add(first, block), 9)
			nibbles := d.Add(at, d.Mul(lane, 2))
			head := d.load(m.buf, u32x4, at)
			return [][]kernel.Value{{d.load(m.buf, u32x4, d.Add(nibbles, 1))}, {d.load(m.buf, u32x4, d.Add(nibbles, 2))}, {head}}
		},
		scales: func(loaded []kernel.Value) []kernel.Value { return pairScales(d, loaded[0], lane) },
		octets: func(s, loaded []kernel.Value, _ int) []kernel.Value {
			words := elems4(d.Builder, loaded[0])
			return append(d.codes(words, 0, 4, 0, s[0], s[1]), d.codes(words, 4, 4, 0, s[2], s[3])...)
		},
	}
}

// dealtQ5K is as dealtQ4K with 2 vec4 of fifth bits after the header: see coopQ5K.
func dealtQ5K(d *coopDecoder, m matrix, row, lane kernel.Value) dealtItem {
	b := d.Builder
	first := b.Mul(row, b.Div(m.cols, 256))
	return dealtItem{
		load: func(block kernel.Value) [][]kernel.Value {
			at := b.Mul(b.Add(first, block), 11)
			nibbles := b.Add(at, b.Mul(lane, 2))
			head := d.load(m.buf, u32x4, at)
			var steps [][]kernel.Value
			for p := range dealtSteps {
				steps = append(steps, []kernel.Value{d.load(m.buf, u32x4, b.Add(nibbles, 3+p)), d.load(m.buf, u32x4, b.Add(at, 1+p))})
			}
			return append(steps, []kernel.Value{head})
		},
		scales: func(loaded []kernel.Value) []kernel.Value { return pairScales(d, loaded[0], lane) },
		octets: func(s, loaded []kernel.Value, _ int) []kernel.Value {
			fifth := b.Shr(loaded[1], b.Splat(b.Mul(lane, 2), 4)) // bits 0 and 1 of each byte are ours
			low := elems4(b, b.Or(lowNibbles(b, loaded[0]), b.Shl(b.And(fifth, 0x01010101), 4)))
			high := elems4(b, b.Or(highNibbles(b, loaded[0]), b.Shl(b.And(fifth, 0x02020202), 3)))
			return append(d.codes(low, 0, 5, 0, s[0], s[1]), d.codes(high, 0, 5, 0, s[2], s[3])...)
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
		load: func(block kernel.Value) [][]kernel.Value {
			at := b.Add(first, block)
			var steps [][]kernel.Value
			for p := range dealtSteps {
				steps = append(steps, []kernel.Value{
					d.load(m.buf, u32x4, b.Add(b.Mul(at, 8), b.Mul(lane, 2), p)),
					d.load(m.buf, u32x4, b.Add(b.Mul(blocks, 8), b.Mul(at, 4), b.Mul(half, 2), p)),
				})
			}
			return append(steps, []kernel.Value{
				d.load(m.buf, u32x2, b.Add(b.Mul(blocks, 24), b.Mul(at, 2), half)),
				d.halfAt(m.buf, b.Mul(blocks, 52), at),
			})
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
		octets: func(s, loaded []kernel.Value, p int) []kernel.Value {
			pairs := b.Shr(loaded[1], b.Splat(b.Mul(odd, 2), 4)) // bit pairs 0 and 2 are ours
			low := b.Or(lowNibbles(b, loaded[0]), b.Shl(b.And(pairs, 0x03030303), 4))
			high := b.Or(highNibbles(b, loaded[0]), b.And(pairs, 0x30303030))
			return append(d.codes(elems4(b, low), 0, 6, 32, s[2*p], b.U32(0)), d.codes(elems4(b, high), 0, 6, 32, s[2*p+1], b.U32(0))...)
		},
	}
}

// dealtQ4_0 reads a plane of 16-byte blocks and one of f16: see coopQ4_0.
func dealtQ4_0(d *coopDecoder, m matrix, row, lane kernel.Value) dealtItem {
	b := d.Builder
	first := b.Add(b.Mul(row, b.Div(m.cols, 32)), lane)
	return dealtItem{
		load: func(block kernel.Value) [][]kernel.Value {
			steps := make([][]kernel.Value, dealtSteps+1)
			for p := range dealtSteps {
				at := b.Add(first, b.Mul(block, 8), 4*p)
				steps[p] = []kernel.Value{d.load(m.buf, u32x4, at), d.halfAt(m.buf, b.Div(b.Mul(m.rows, m.cols), 8), at)}
			}
			return steps
		},
		scales: noScales,
		octets: func(_, loaded []kernel.Value, _ int) []kernel.Value {
			scale, words := halfPair(b, lowHalf(b, loaded[1])), elems4(b, loaded[0])
			return append(d.codes(words, 0, 4, 8, scale, b.U32(0)), d.codes(words, 4, 4, 8, scale, b.U32(0))...)
		},
	}
}

// dealtBytes reads a plane of int8, of which a lane takes two vec4 of a step. rest loads
// what else belongs to elements from 16 times at on, and terms returns their scale and
// offset, as f32, for each of the two.
func dealtBytes(d *coopDecoder, m matrix, row, lane kernel.Value, rest func(at kernel.Value) []kernel.Value, terms func(rest []kernel.Value, i int) (scale, offset kernel.Value)) dealtItem {
	first := d.Add(d.Mul(row, d.Div(m.cols, 16)), d.Mul(lane, 2))
	return dealtItem{
		load: func(block kernel.Value) [][]kernel.Value {
			steps := make([][]kernel.Value, dealtSteps+1)
			for p := range dealtSteps {
				at := d.Add(first, d.Mul(block, 16), 8*p)
				steps[p] = append([]kernel.Value{d.load(m.buf, u32x4, at), d.load(m.buf, u32x4, d.Add(at, 1))}, rest(at)...)
			}
			return steps
		},
		scales: noScales,
		octets: func(_, loaded []kernel.Value, _ int) []kernel.Value {
			var list []kernel.Value
			for i := range 2 {
				scale, offset := terms(loaded[2:], i)
				list = append(list, d.ints(loaded[i], scale, offset)...)
			}
			return list
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

// halfAt is halfAt with load.
func (d *coopDecoder) halfAt(buf *kernel.Buffer, word, i kernel.Value) kernel.Value {
	return d.Shr(d.load(buf, kernel.U32, d.Add(word, d.Shr(i, 1))), d.Mul(d.And(i, 1), 16))
}
