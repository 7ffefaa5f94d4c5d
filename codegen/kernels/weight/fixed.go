package weight

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
)

// FixedRuns is the number of runs of 32 elements in a block, which gemm_fixed takes at once.
const FixedRuns = 8

// FixedFormat is one row of the table of layouts that gemm_fixed reads. The four lanes of a
// subgroup that hold parts of the same row of a matrix have 8 elements each of every run
// of 32. The runs of a block of 256 are taken in the order of their slots: those of gemv's units.
type FixedFormat struct {
	// Apart: a lane's elements of a run are 4 of the first and 4 of the second half, see ApartQuad; otherwise
	// they are contiguous.
	Apart bool
	Fine  bool // scales are of 16 elements, not of 32; then they are apart
	Whole bool // gemv's units are runs: both halves are added before anything else
	// Offset: there are offsets; bias, if not 0, is subtracted from every code instead.
	Offset bool
	Bias   int
	// Exponents: codes are multiplied by 2 to the power of these, in slots of even and of odd number.
	Exponents [2]int
	runs      []int // by slot of a block; nil for all in order
	Super     bool  // blocks are super-blocks: see FixedItem.super
	Largest   int   // code of a super-block
	// Spans are the lengths, in vec4, of the contiguous parts of a block of a row, and Rest the
	// number of its other words. Nil: blocks are not copied to shared memory.
	Spans []int
	Rest  int
	Open  func(b *kernel.Builder, m Matrix, row, quad kernel.Value) FixedItem
}

// FixedItem is what a lane takes of the blocks of a row.
type FixedItem struct {
	// Load returns loads of the words of a block.
	Load func(block kernel.Value) []FixedWord
	// Spans returns the first vec4 of each of the format's spans of a block, and its other words.
	Spans func(block kernel.Value) (first, rest []kernel.Value)
	// Codes returns the lane's elements of the run in a slot, as pairs of f16: elements 0 and 2 of
	// each four that lie together, then 1 and 3.
	Codes func(words []kernel.Value, slot int) [4]kernel.Value
	// InCopy is set if lanes exchange words that they have loaded: Codes of words from a copy, where each lane loads
	// its own (FixedWord.Apart).
	InCopy func(words []kernel.Value, slot int) [4]kernel.Value
	// Bytes returns the lane's codes of the run in a slot, of words from a copy, as two words of unsigned bytes: of the
	// elements that Codes has, in order. They are multiplied by 2 to the power of Exponents, less the first of these.
	// Nil unless a block is a super-block.
	Bytes func(words []kernel.Value, slot int) [2]kernel.Value
	// Terms returns, in lane i of four, the scales of the runs in slots 2i and 2i+1 and, unless there is a bias, their
	// offsets; if scales are fine, those of each run's halves.
	Terms func(words []kernel.Value) [2][]DotScale
	// Super replaces Terms if a block is a super-block.
	Super func(words []kernel.Value) SuperScales
}

// SuperScales are the scales of a super-block; every lane has all of them. An element is
// factor*(scale*code) + offset*minimum.
type SuperScales struct {
	Factor, Offset kernel.Value
	Scales         []kernel.Value // four bytes a word, of runs or of their halves in order
	Mins           []kernel.Value // of runs; nil if there is a bias
}

// FixedWord loads a word. It is not needed behind slot last; -1 if only Terms needs it.
type FixedWord struct {
	Load func() kernel.Value
	Last int
	// Of is its type, void if it is computed. At is its index in a copy of the block's spans, one behind the other, or
	// of its other words.
	Of kernel.Type
	At func() kernel.Value
	// Apart: the lane's own words of a copy are one of each half of the run that begins at this pair: see ApartQuad.
	Apart bool
}

// in says where the word is in a copy.
func (w FixedWord) in(at func() kernel.Value) FixedWord {
	w.At = at
	return w
}

// apart says that the lane's words lie apart in a copy, of pair i on.
func (w FixedWord) apart(b *kernel.Builder, i int) FixedWord {
	w.Apart, w.At = true, func() kernel.Value { return b.U32(uint32(i)) }
	return w
}

// wordAt is a load of element first+i of a buffer.
func wordAt(b *kernel.Builder, buf *kernel.Buffer, t kernel.Type, first kernel.Value, i, last int) FixedWord {
	return FixedWord{Load: func() kernel.Value { return buf.Load(t, b.Add(first, i)) }, Last: last, Of: t}
}

// A code of less than 11 bits in the low bits of an f16 is a subnormal number, which matrices
// multiply exactly.
const Subnormal = -24

// Run returns the number in its block of the run in a slot.
func (f *FixedFormat) Run(slot int) int {
	if f.runs == nil {
		return slot
	}
	return f.runs[slot]
}

// SlotOf returns the slot of a run of a block.
func (f *FixedFormat) SlotOf(run int) int {
	if f.runs == nil {
		return run
	}
	return slices.Index(f.runs, run)
}

// Halves is the number of scales of a run.
func (f *FixedFormat) Halves() int {
	if f.Fine {
		return 2
	}
	return 1
}

// Stored reports whether offsets are stored, rather than a bias.
func (f *FixedFormat) Stored() bool { return f.Offset && f.Bias == 0 }

// fixedQ4K reads raw blocks of 9 vec4: see fetchDotQ4K.
func fixedQ4K(b *kernel.Builder, m Matrix, row, quad kernel.Value) FixedItem {
	first := b.Mul(row, b.Div(m.Cols, 256))
	return FixedItem{
		Load: func(block kernel.Value) []FixedWord {
			at := b.Mul(b.Add(first, block), 9)
			words := []FixedWord{wordAt(b, m.Buf, lane.U32x4, at, 0, -1).in(zero(b))}
			nibbles := b.Add(b.Mul(at, 2), quad, 2)
			for i := range 4 {
				words = append(words, wordAt(b, m.Buf, lane.U32x2, nibbles, 4*i, 2*i+1).in(quadAt(b, quad, 2+4*i)))
			}
			return words
		},
		Spans: func(block kernel.Value) (first, rest []kernel.Value) {
			return []kernel.Value{b.Mul(b.Add(b.Mul(row, b.Div(m.Cols, 256)), block), 9)}, nil
		},
		Codes: func(words []kernel.Value, slot int) [4]kernel.Value {
			return nibblePairs(b, lane.Elements(b, words[1+slot/2]), slot%2)
		},
		Bytes: func(words []kernel.Value, slot int) (bytes [2]kernel.Value) {
			for i, w := range lane.Elements(b, words[1+slot/2]) {
				bytes[i] = b.And(w, uint32(0x0f0f0f0f)<<(slot%2*4))
			}
			return
		},
		Super: func(words []kernel.Value) SuperScales { return subScales(b, words[0]) },
	}
}

// zero and quadAt are places in a copy.
func zero(b *kernel.Builder) func() kernel.Value { return func() kernel.Value { return b.U32(0) } }

func quadAt(b *kernel.Builder, quad kernel.Value, i int) func() kernel.Value {
	return func() kernel.Value { return b.Add(quad, i) }
}

// subScales returns the scales of a super-block of q4_k or q5_k from its header: see minRuns.
func subScales(b *kernel.Builder, header kernel.Value) SuperScales {
	s, m, low := b.Elem(header, 1), b.Elem(header, 2), b.Elem(header, 3)
	d := b.UnpackHalf(b.Elem(header, 0))
	return SuperScales{
		Factor: b.Elem(d, 0), Offset: b.Neg(b.Elem(d, 1)),
		Scales: []kernel.Value{b.And(s, 0x3f3f3f3f), b.Or(b.And(low, 0x0f0f0f0f), b.And(b.Shr(s, 2), 0x30303030))},
		Mins:   []kernel.Value{b.And(m, 0x3f3f3f3f), b.Or(b.And(b.Shr(low, 4), 0x0f0f0f0f), b.And(b.Shr(m, 2), 0x30303030))},
	}
}

// ofRuns are terms of whole runs.
func ofRuns(terms [2]DotScale) [2][]DotScale { return [2][]DotScale{terms[:1], terms[1:]} }

// pairsOf returns bytes 0 and 2 of words under a mask, then 1 and 3.
func pairsOf(b *kernel.Builder, words []kernel.Value, mask uint32) (pairs [4]kernel.Value) {
	for i, w := range words {
		pairs[2*i], pairs[2*i+1] = b.And(w, mask), b.And(b.Shr(w, 8), mask)
	}
	return
}

// nibblePairs returns the low or, times 16, the high nibbles of words.
func nibblePairs(b *kernel.Builder, words []kernel.Value, high int) [4]kernel.Value {
	return pairsOf(b, words, uint32(0x000f000f)<<(4*high))
}

// bytePairs returns the signed bytes of words.
func bytePairs(b *kernel.Builder, words []kernel.Value) [4]kernel.Value {
	for i, w := range words {
		words[i] = b.Xor(w, uint32(0x80808080))
	}
	pairs := pairsOf(b, words, 0x00ff00ff)
	for i, p := range pairs { // in the mantissa of 1024
		pairs[i] = b.FMAHalf(b.Or(p, 0x64006400), Half2(1), Half2(-1024-128))
	}
	return pairs
}

// ApartQuad returns which four elements of each half of a run a lane has if they are apart. They are chosen so that
// lanes that have loaded 8 contiguous bytes exchange one word.
func ApartQuad(b *kernel.Builder, quad kernel.Value) kernel.Value {
	return b.Or(b.Shl(b.And(quad, 1), 1), b.Shr(quad, 1))
}

// exchange returns the lane's words of both halves of a run of bytes. The lane has loaded two
// neighbouring words of the run.
func exchange(b *kernel.Builder, w, quad kernel.Value) kernel.Value {
	second := b.Ge(quad, 2) // whether they are of the second half
	got := b.SubgroupShuffleXor(b.Select(second, b.Elem(w, 0), b.Elem(w, 1)), 2)
	return b.Vec(b.Select(second, got, b.Elem(w, 0)), b.Select(second, b.Elem(w, 1), got))
}

// fixedQ5K is as fixedQ4K with 2 vec4 of fifth bits after the header: see fetchDotQ5K.
func fixedQ5K(b *kernel.Builder, m Matrix, row, quad kernel.Value) FixedItem {
	first := b.Mul(row, b.Div(m.Cols, 256))
	bytes := func(words []kernel.Value, slot int) (list [2]kernel.Value) {
		for i := range list {
			nibbles := lowNibbles(b, b.Shr(b.Elem(words[2+slot/2], i), slot%2*4))
			list[i] = b.Or(nibbles, bitsAt(b, b.Elem(words[1], i), slot, 1))
		}
		return
	}
	return FixedItem{
		Load: func(block kernel.Value) []FixedWord {
			at := b.Mul(b.Add(first, block), 11)
			rest := b.Add(b.Mul(at, 2), quad, 2)
			words := []FixedWord{wordAt(b, m.Buf, lane.U32x4, at, 0, -1).in(zero(b)), wordAt(b, m.Buf, lane.U32x2, rest, 0, 7).in(quadAt(b, quad, 2))}
			for i := range 4 {
				words = append(words, wordAt(b, m.Buf, lane.U32x2, rest, 4+4*i, 2*i+1).in(quadAt(b, quad, 6+4*i)))
			}
			return words
		},
		Spans: func(block kernel.Value) (first, rest []kernel.Value) {
			return []kernel.Value{b.Mul(b.Add(b.Mul(row, b.Div(m.Cols, 256)), block), 11)}, nil
		},
		Codes: func(words []kernel.Value, slot int) [4]kernel.Value {
			list := bytes(words, slot)
			return pairsOf(b, list[:], 0x00ff00ff)
		},
		Bytes: bytes,
		Super: func(words []kernel.Value) SuperScales { return subScales(b, words[0]) },
	}
}

// bitsAt returns some bits of each byte of a word, from bit base up, as bits from bit 4 up.
func bitsAt(b *kernel.Builder, w kernel.Value, base, bits int) kernel.Value {
	w = b.And(w, uint32(1<<bits-1)*0x01010101<<base)
	if base < 4 {
		return b.Shl(w, 4-base)
	}
	return b.Shr(w, base-4)
}

// fixedQ6K reads the planes ql, qh, scales and d: see fetchDotQ6K. The slots of a half are its
// runs 0, 2, 1 and 3.
func fixedQ6K(b *kernel.Builder, m Matrix, row, quad kernel.Value) FixedItem {
	first := b.Mul(row, b.Div(m.Cols, 256))
	blocks := b.Div(b.Mul(m.Rows, m.Cols), 256) // planes of 32, 16 and 4 words a block
	bytes := func(meet func(w kernel.Value) kernel.Value) func(words []kernel.Value, slot int) [2]kernel.Value {
		return func(words []kernel.Value, slot int) (list [2]kernel.Value) {
			h, r, high := slot/4, slot%4/2, slot%2
			pairs, row := &words[3+h], &words[5+2*h+r]
			if high == 0 { // the first slot of both, or of the row
				*row = meet(*row)
				if r == 0 {
					*pairs = meet(*pairs)
				}
			}
			for i := range list {
				nibbles := lowNibbles(b, b.Shr(b.Elem(*row, i), high*4))
				list[i] = b.Or(nibbles, bitsAt(b, b.Elem(*pairs, i), 2*(r+2*high), 2))
			}
			return
		}
	}
	codes := func(bytes func(words []kernel.Value, slot int) [2]kernel.Value) func(words []kernel.Value, slot int) [4]kernel.Value {
		return func(words []kernel.Value, slot int) [4]kernel.Value {
			list := bytes(words, slot)
			return pairsOf(b, list[:], 0x00ff00ff)
		}
	}
	copied := bytes(func(w kernel.Value) kernel.Value { return w })
	return FixedItem{
		Load: func(block kernel.Value) []FixedWord {
			at := b.Add(first, block)
			words := []FixedWord{
				wordAt(b, m.Buf, lane.U32x4, b.Add(b.Mul(blocks, 12), at), 0, -1).in(func() kernel.Value { return b.U32(12) }),
				wordAt(b, m.Buf, kernel.U32, b.Add(b.Mul(blocks, 52), b.Shr(at, 1)), 0, -1).in(zero(b)),
				{Load: func() kernel.Value { return b.Mul(b.And(at, 1), 16) }, Last: -1}, // what to shift it by, once it is there
			}
			pairs, nibbles := b.Add(b.Mul(b.Add(b.Mul(blocks, 2), at), 8), quad), b.Add(b.Mul(at, 16), quad)
			for i := range 2 {
				words = append(words, wordAt(b, m.Buf, lane.U32x2, pairs, 4*i, i*4+3).apart(b, 16+4*i))
			}
			for i := range 4 {
				words = append(words, wordAt(b, m.Buf, lane.U32x2, nibbles, 4*i, i*2+1).apart(b, 4*i))
			}
			return words
		},
		Spans: func(block kernel.Value) (list, rest []kernel.Value) {
			at, blocks := b.Add(b.Mul(row, b.Div(m.Cols, 256)), block), b.Div(b.Mul(m.Rows, m.Cols), 256)
			list = []kernel.Value{b.Mul(at, 8), b.Mul(b.Add(b.Mul(blocks, 2), at), 4), b.Add(b.Mul(blocks, 12), at)}
			return list, []kernel.Value{b.Add(b.Mul(blocks, 52), b.Shr(at, 1))}
		},
		Codes:  codes(bytes(func(w kernel.Value) kernel.Value { return exchange(b, w, quad) })),
		InCopy: codes(copied),
		Bytes:  copied,
		Super: func(words []kernel.Value) SuperScales {
			return SuperScales{Factor: LowHalf(b, b.Shr(words[1], words[2])), Scales: lane.Elements(b, words[0])}
		},
	}
}

// fixedQ4_0 reads a plane of 16-byte blocks and one of f16: see fetchDotQ4_0.
func fixedQ4_0(b *kernel.Builder, m Matrix, row, quad kernel.Value) FixedItem {
	first := b.Mul(row, b.Div(m.Cols, 32))
	scales := b.Div(b.Mul(m.Rows, m.Cols), 8)
	return FixedItem{
		Load: func(block kernel.Value) []FixedWord {
			at := b.Add(first, b.Mul(block, FixedRuns))
			words := []FixedWord{wordAt(b, m.Buf, kernel.U32, b.Add(scales, b.Shr(at, 1), quad), 0, -1)}
			nibbles := b.Add(b.Mul(at, 4), ApartQuad(b, quad))
			for i := range FixedRuns {
				words = append(words, wordAt(b, m.Buf, kernel.U32, nibbles, 4*i, i))
			}
			return words
		},
		Codes: func(words []kernel.Value, slot int) [4]kernel.Value {
			return nibblePairs(b, []kernel.Value{words[1+slot], b.Shr(words[1+slot], 4)}, 0)
		},
		Terms: func(words []kernel.Value) [2][]DotScale { return halfTerms(b, words[0]) },
	}
}

// halfTerms are scales that are the two f16 of a word.
func halfTerms(b *kernel.Builder, w kernel.Value) [2][]DotScale {
	pair := b.UnpackHalf(w)
	return ofRuns([2]DotScale{{Scale: b.Elem(pair, 0)}, {Scale: b.Elem(pair, 1)}})
}

// fixedBytes reads a plane of int8, in which a lane's elements may lie apart, and what load loads
// besides of runs from at on.
func fixedBytes(b *kernel.Builder, m Matrix, row, quad kernel.Value, apart bool, load func(at kernel.Value) []FixedWord, terms func(words []kernel.Value) [2][]DotScale) FixedItem {
	first := b.Mul(row, b.Div(m.Cols, 32))
	return FixedItem{
		Load: func(block kernel.Value) []FixedWord {
			at := b.Add(first, b.Mul(block, FixedRuns))
			var words []FixedWord
			codes := b.Add(b.Mul(at, 4), quad)
			for i := range FixedRuns {
				words = append(words, wordAt(b, m.Buf, lane.U32x2, codes, 4*i, i))
			}
			return append(words, load(at)...)
		},
		Codes: func(words []kernel.Value, slot int) [4]kernel.Value {
			w := words[slot]
			if apart {
				w = exchange(b, w, quad)
			}
			return bytePairs(b, lane.Elements(b, w))
		},
		Terms: func(words []kernel.Value) [2][]DotScale { return terms(words[FixedRuns:]) },
	}
}

// fixedQ8_0 reads a plane of int8 and one of f16 for 32 of them.
func fixedQ8_0(b *kernel.Builder, m Matrix, row, quad kernel.Value) FixedItem {
	scales := b.Div(b.Mul(m.Rows, m.Cols), 4)
	return fixedBytes(b, m, row, quad, false,
		func(at kernel.Value) []FixedWord {
			return []FixedWord{wordAt(b, m.Buf, kernel.U32, b.Add(scales, b.Shr(at, 1), quad), 0, -1)}
		},
		func(words []kernel.Value) [2][]DotScale { return halfTerms(b, words[0]) })
}

// Vectors is the number of vec4 that the terms of a run take, for two rows.
func (f *FixedFormat) Vectors() int {
	n := 2 * f.Halves()
	if f.Stored() {
		n *= 2
	}
	return site.CeilDiv(n, 4)
}
