package weight

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
)

// FragmentFormat is one row of the table of layouts that gemm_fragment reads. The four lanes
// of a subgroup that hold parts of the same row of a matrix take parts of the weights'
// row: 64 elements of each block of 256, in two iterations of four octets of 8. The format chooses
// these elements so that a lane loads 16 bytes at a time and needs few scales.
type FragmentFormat struct {
	Sharing string // names one of Sharings
	Loads   int    // vec4 of codes that a lane loads for an iteration, at most
	// Ahead is what a lane loads for an iteration and its head, vec4 and words, where copies to shared memory that are
	// on their way meanwhile gained time; zero elsewhere.
	Ahead [2]int
	Open  func(d *CoopDecoder, m Matrix, row, laneID kernel.Value) FragmentItem
}

// Sharing says which elements of a block the lanes get. It maps each bit of an octet's number in
// its block to a bit of o (its number among the four of an iteration), of its lane among the four,
// or of the step.
type Sharing struct {
	O, Lanes  [2]int
	Iteration int
}

const (
	FragmentBlock      = 256 // elements
	FragmentIterations = 2   // of a block
)

// FragmentItem is a lane's part of the blocks of a row. Loads are separate from the code that waits for
// them.
type FragmentItem struct {
	// Head loads the words that all iterations of a block need; nil if there are none.
	Head func(block kernel.Value) []kernel.Value
	// Load loads the other words that iteration p of a block needs.
	Load func(block kernel.Value, p int) []kernel.Value
	// Scales returns the values that the octets of iteration p share, from the words that Head loaded; nil
	// if there are none.
	Scales func(head []kernel.Value, p int) []kernel.Value
	// Octet returns octet o of the four of an iteration, a U32x4.
	Octet func(scales, loaded []kernel.Value, o int) kernel.Value
}

var Sharings = map[string]Sharing{
	// 32 neighbours of each half of a block to each lane
	"turn": {O: [2]int{0, 1}, Lanes: [2]int{2, 3}, Iteration: 4},
	// Two lanes share a pair of sub-blocks of 32, which are the low and the high nibbles of
	// 32 bytes; a step has two pairs. So what the lanes take at a time lies close together.
	"pairs": {O: [2]int{0, 2}, Lanes: [2]int{1, 3}, Iteration: 4},
	// Each lane gets 16 elements of half a super-block, and the 16 that lie 64 further.
	"halves": {O: [2]int{0, 3}, Lanes: [2]int{1, 2}, Iteration: 4},
}

// Octet returns the number in a block of a lane's octet o of iteration p.
func (d Sharing) Octet(b *kernel.Builder, laneID, o kernel.Value, p int) kernel.Value {
	at := b.U32(uint32(p << d.Iteration))
	for i := range 2 {
		at = b.Add(at, b.Shl(b.And(b.Shr(laneID, i), 1), d.Lanes[i]), b.Shl(b.And(b.Shr(o, i), 1), d.O[i]))
	}
	return at
}

// Place returns the lane of an octet, given its number in the block, and o + 4 times the iteration.
func (d Sharing) Place(b *kernel.Builder, octet kernel.Value) (laneID, o kernel.Value) {
	bit := func(at, to int) kernel.Value { return b.Shl(b.And(b.Shr(octet, at), 1), to) }
	return b.Or(bit(d.Lanes[0], 0), bit(d.Lanes[1], 1)), b.Or(bit(d.O[0], 0), bit(d.O[1], 1), bit(d.Iteration, 2))
}

// FragmentOctet is OctetOf of what lanes hold, by an instruction a word.
func FragmentOctet(b *kernel.Builder, w kernel.Value) kernel.Value {
	var v []kernel.Operand
	for i := 0; i < 4; i += 2 {
		lower, upper := b.PairHalves(b.Elem(w, i), b.Elem(w, i+1))
		v = append(v, lower, upper)
	}
	return b.Vec(v...)
}

// fragmentWide reads elements of 16 bits.
func fragmentWide(octet func(b *kernel.Builder, w kernel.Value) kernel.Value) func(d *CoopDecoder, m Matrix, row, laneID kernel.Value) FragmentItem {
	return func(d *CoopDecoder, m Matrix, row, laneID kernel.Value) FragmentItem {
		first := d.Add(d.Mul(row, d.Div(m.Cols, 8)), d.Mul(laneID, 4))
		return FragmentItem{
			Load: func(block kernel.Value, p int) (list []kernel.Value) {
				for i := range 4 {
					list = append(list, d.load(m.Buf, lane.U32x4, d.Add(first, d.Mul(block, 32), 16*p+i)))
				}
				return list
			},
			Octet: func(_, loaded []kernel.Value, o int) kernel.Value { return octet(d.Builder, loaded[o]) },
		}
	}
}

func octetOfBrains(b *kernel.Builder, w kernel.Value) kernel.Value {
	return octet(b, brains(b, b.Elem(w, 0), b.Elem(w, 1)), brains(b, b.Elem(w, 2), b.Elem(w, 3)))
}

// pairScales returns scales and offsets of the two sub-blocks that the lane shares in iteration p, each twice as f16,
// from a super-block's header: see subWords. The 6 bits of a scale and of a minimum are put into the mantissa of 1024,
// where they are exact, and are multiplied by d and dmin together, which rounds once.
func (d *CoopDecoder) pairScales(header, laneID kernel.Value, p int) []kernel.Value {
	both := subWords(d.Builder, header, d.Shr(laneID, 1))[p]
	var list []kernel.Value
	for _, w := range []kernel.Value{both, d.Shr(both, 8)} {
		terms := d.FMAHalf(d.Or(d.And(w, 0x003f003f), d.magic), Halves(1, -1), Halves(-1024, 1024))
		terms = d.FMAHalf(terms, d.Elem(header, 0), 0)
		scale, offset := d.PairHalves(terms, terms)
		list = append(list, scale, offset)
	}
	return list
}

// subWords returns two 6-bit scales and two minimums, as the bytes of a word, from a super-block's header:
// of the i-th pair of sub-blocks 0-3, and of that of 4-7. See subScale.
func subWords(b *kernel.Builder, header, i kernel.Value) [2]kernel.Value {
	shift := b.Mul(i, 16)
	s, m, low := b.Shr(b.Elem(header, 1), shift), b.Shr(b.Elem(header, 2), shift), b.Shr(b.Elem(header, 3), shift)
	both := b.Or(b.And(s, 0xffff), b.Shl(m, 16))
	lows := b.Or(b.And(low, 0x0f0f), b.Shl(b.And(low, 0xf0f0), 12))
	return [2]kernel.Value{b.And(both, 0x3f3f3f3f), b.Or(lows, b.And(b.Shr(both, 2), 0x30303030))}
}

// fragmentQ4K reads raw blocks of 9 vec4: see coopQ4K.
func fragmentQ4K(d *CoopDecoder, m Matrix, row, laneID kernel.Value) FragmentItem {
	first := d.Mul(row, d.Div(m.Cols, 256))
	at := func(block kernel.Value) kernel.Value { return d.Mul(d.Add(first, block), 9) }
	return FragmentItem{
		Head: func(block kernel.Value) []kernel.Value { return []kernel.Value{d.load(m.Buf, lane.U32x4, at(block))} },
		Load: func(block kernel.Value, p int) []kernel.Value {
			return []kernel.Value{d.load(m.Buf, lane.U32x4, d.Add(at(block), laneID, 1+4*p))}
		},
		Scales: func(head []kernel.Value, p int) []kernel.Value { return d.pairScales(head[0], laneID, p) },
		Octet: func(s, loaded []kernel.Value, o int) kernel.Value {
			high := o / 2
			return d.codes(elems2(d.Builder, loaded[0], o%2), 4*high, 4, 0, s[2*high], s[2*high+1])[0]
		},
	}
}

// fragmentQ5K is as fragmentQ4K with 2 vec4 of fifth bits after the header: see coopQ5K.
func fragmentQ5K(d *CoopDecoder, m Matrix, row, laneID kernel.Value) FragmentItem {
	b := d.Builder
	first := b.Mul(row, b.Div(m.Cols, 256))
	at := func(block kernel.Value) kernel.Value { return b.Mul(b.Add(first, block), 11) }
	return FragmentItem{
		Head: func(block kernel.Value) []kernel.Value {
			return []kernel.Value{d.load(m.Buf, lane.U32x4, at(block)), d.load(m.Buf, lane.U32x4, b.Add(at(block), 1, b.And(laneID, 1)))}
		},
		Load: func(block kernel.Value, p int) []kernel.Value {
			return []kernel.Value{d.load(m.Buf, lane.U32x4, b.Add(at(block), laneID, 3+4*p))}
		},
		Scales: func(head []kernel.Value, p int) []kernel.Value {
			// Bits 0 and 1 of each byte are ours.
			fifths := b.Shr(head[1], b.Splat(b.Add(b.And(laneID, 2), 4*p), 4))
			return append(d.pairScales(head[0], laneID, p), fifths)
		},
		Octet: func(s, loaded []kernel.Value, o int) kernel.Value {
			var codes []kernel.Value
			fifths := elems2(b, s[4], o%2)
			for i, w := range elems2(b, loaded[0], o%2) {
				if o < 2 {
					codes = append(codes, b.Or(lowNibbles(b, w), b.Shl(b.And(fifths[i], 0x01010101), 4)))
				} else {
					codes = append(codes, b.Or(highNibbles(b, w), b.Shl(b.And(fifths[i], 0x02020202), 3)))
				}
			}
			return d.codes(codes, 0, 5, 0, s[o/2*2], s[o/2*2+1])[0]
		},
	}
}

// fragmentQ6K reads the planes ql, qh, scales and d: see coopQ6K.
func fragmentQ6K(d *CoopDecoder, m Matrix, row, laneID kernel.Value) FragmentItem {
	b := d.Builder
	first := b.Mul(row, b.Div(m.Cols, 256))
	blocks := b.Div(b.Mul(m.Rows, m.Cols), 256) // planes of 32, 16 and 4 words a block
	return FragmentItem{
		Head: func(block kernel.Value) []kernel.Value {
			at := b.Add(first, block)
			return []kernel.Value{d.load(m.Buf, lane.U32x4, b.Add(b.Mul(blocks, 12), at)), d.halfAt(m.Buf, b.Mul(blocks, 52), at)}
		},
		Load: func(block kernel.Value, p int) []kernel.Value {
			at := b.Add(first, block)
			return []kernel.Value{
				d.load(m.Buf, lane.U32x4, b.Add(b.Mul(at, 8), laneID, 4*p)),
				d.load(m.Buf, lane.U32x4, b.Add(b.Mul(blocks, 8), b.Mul(at, 4), b.And(laneID, 1), 2*p)),
			}
		},
		Scales: func(head []kernel.Value, p int) []kernel.Value {
			var list []kernel.Value // of the low nibbles, of the high ones
			factor := LowHalf(b, head[1])
			for j := range 2 {
				s := b.BitExtract(b.Bitcast(kernel.I32, b.Elem(head[0], 2*p+j)), b.Mul(laneID, 8), 8)
				list = append(list, halfPair(b, b.Mul(b.Convert(kernel.F32, s), factor)))
			}
			return list
		},
		Octet: func(s, loaded []kernel.Value, o int) kernel.Value {
			var codes []kernel.Value
			tops := elems2(b, loaded[1], o%2)
			for i, w := range elems2(b, loaded[0], o%2) {
				pairs := b.Shr(tops[i], b.And(laneID, 2)) // bit pairs 0 and 2 are ours
				if o < 2 {
					codes = append(codes, b.Or(lowNibbles(b, w), b.Shl(b.And(pairs, 0x03030303), 4)))
				} else {
					codes = append(codes, b.Or(highNibbles(b, w), b.And(pairs, 0x30303030)))
				}
			}
			return d.codes(codes, 0, 6, 32, s[o/2], b.U32(0))[0]
		},
	}
}

// fragmentQ4_0 reads a plane of 16-byte blocks and one of f16: see coopQ4_0.
func fragmentQ4_0(d *CoopDecoder, m Matrix, row, laneID kernel.Value) FragmentItem {
	b := d.Builder
	first := b.Add(b.Mul(row, b.Div(m.Cols, 32)), laneID)
	return FragmentItem{
		Load: func(block kernel.Value, p int) []kernel.Value {
			at := b.Add(first, b.Mul(block, 8), 4*p)
			return []kernel.Value{d.load(m.Buf, lane.U32x4, at), d.halfAt(m.Buf, b.Div(b.Mul(m.Rows, m.Cols), 8), at)}
		},
		Octet: func(_, loaded []kernel.Value, o int) kernel.Value {
			scale := halfPair(b, LowHalf(b, loaded[1]))
			return d.codes(elems2(b, loaded[0], o%2), o/2*4, 4, 8, scale, b.U32(0))[0]
		},
	}
}

// fragmentBytes reads a plane of int8; a lane takes two vec4 of it an iteration. rest loads
// what else belongs to elements from 16 times at on, and terms returns their scale and
// offset, as f32, for each of the two.
func fragmentBytes(d *CoopDecoder, m Matrix, row, laneID kernel.Value, rest func(at kernel.Value) []kernel.Value, terms func(rest []kernel.Value, i int) (scale, offset kernel.Value)) FragmentItem {
	first := d.Add(d.Mul(row, d.Div(m.Cols, 16)), d.Mul(laneID, 2))
	return FragmentItem{
		Load: func(block kernel.Value, p int) []kernel.Value {
			at := d.Add(first, d.Mul(block, 16), 8*p)
			return append([]kernel.Value{d.load(m.Buf, lane.U32x4, at), d.load(m.Buf, lane.U32x4, d.Add(at, 1))}, rest(at)...)
		},
		Octet: func(_, loaded []kernel.Value, o int) kernel.Value {
			scale, offset := terms(loaded[2:], o/2)
			return d.ints(elems2(d.Builder, loaded[o/2], o%2), scale, offset)[0]
		},
	}
}

// fragmentQ8_0 reads a plane of int8 and one of f16 for 32 of them.
func fragmentQ8_0(d *CoopDecoder, m Matrix, row, laneID kernel.Value) FragmentItem {
	scales := d.Div(d.Mul(m.Rows, m.Cols), 4)
	return fragmentBytes(d, m, row, laneID,
		func(at kernel.Value) []kernel.Value {
			return []kernel.Value{d.halfAt(m.Buf, scales, d.Shr(at, 1))}
		},
		func(rest []kernel.Value, _ int) (kernel.Value, kernel.Value) {
			return LowHalf(d.Builder, rest[0]), d.F32(0)
		})
}

// elems2 returns words 2i and 2i+1 of a vec4.
func elems2(b *kernel.Builder, v kernel.Value, i int) []kernel.Value {
	return []kernel.Value{b.Elem(v, 2*i), b.Elem(v, 2*i+1)}
}

// halfAt is halfAt with load.
func (d *CoopDecoder) halfAt(buf *kernel.Buffer, word, i kernel.Value) kernel.Value {
	return d.Shr(d.load(buf, kernel.U32, d.Add(word, d.Shr(i, 1))), d.Mul(d.And(i, 1), 16))
}
