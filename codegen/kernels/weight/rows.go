package weight

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/layout"
)

// RowsFormat reads layout Rows16 in kernels whose lanes are rows of the weights: a line of 64 bytes has
// a word of each of 16 rows.
type RowsFormat struct {
	Name   string
	Cols   int  // elements of an image
	Words  int  // of an image
	Signed bool // codes are signed bytes
	// Product returns the product of an image and x, for each column of x.
	Product func(b *kernel.Builder, m RowsImage) []kernel.Value
	// Panel says how to unpack an image for many columns.
	Panel *Panel
	// Decode returns element i of an image, as the oracle does.
	Decode func(b *kernel.Builder, word func(k kernel.Value) kernel.Value, i kernel.Value) kernel.Value
}

// RowsImage is an image of the rows, and the elements of x that multiply it.
type RowsImage struct {
	Word    func(k kernel.Value) kernel.Value // word k of each lane's row
	X       RowsX
	Columns int
	// Unsigned: bytes above 127 are multiplied as fast as others, so codes may stay in the upper halves of bytes.
	Unsigned bool
}

// RowsX holds the integers of x for the elements of an image, the same in all lanes.
type RowsX struct {
	// Dot adds to start, which may be void, the products of the bytes of codes with those of x, from that word of x on.
	Dot func(column int, word kernel.Value, codes []kernel.Value, start kernel.Value) kernel.Value
	// Sum is the sum of the integers of 16 elements, times the negative bias, for formats whose codes have a bias.
	Sum func(column int, half kernel.Value) kernel.Value
	// Leasts returns the sum over an image's 8 runs of the sum of a run's integers times a byte, one of the 8 in two
	// words.
	Leasts func(column int, bytes [2]kernel.Value) kernel.Value
	// Scale is the factor of the integers of a run of 32.
	Scale func(column int, run kernel.Value) kernel.Value
	// Whole: 256 elements share a scale.
	Whole bool
}

var rowsFormats = map[ir.DType]*RowsFormat{
	ir.Q4_K: {Name: "q4_k", Cols: 256, Words: 36, Product: rowsMins(codesQ4K, 4), Panel: panelMins(codesQ4K, 0x0f0f0f0f), Decode: decodeRowsMins(4, false)},
	ir.Q5_K: {Name: "q5_k", Cols: 256, Words: 44, Product: rowsMins(codesQ5K, 0), Panel: panelMins(codesQ5K, 0x1f1f1f1f), Decode: decodeRowsMins(12, true)},
	ir.Q6_K: {Name: "q6_k", Cols: 256, Words: 53, Product: rowsQ6K, Panel: panelQ6K, Decode: decodeRowsQ6K},
	ir.Q8_0: {Name: "q8_0", Cols: 64, Words: 17, Product: rowsPair(true, codesQ8_0), Panel: panelPair(128, codesQ8_0, 0xffffffff), Decode: decodeRowsQ8_0},
	ir.Q4_0: {Name: "q4_0", Cols: 64, Words: 9, Product: rowsPair(true, codesQ4_0), Panel: panelPair(8, codesQ4_0, 0x0f0f0f0f), Decode: decodeRowsQ4_0},
}

// rowsQ8Signed is q8_0 where dot products are not of unsigned bytes.
var rowsQ8Signed = &RowsFormat{Name: "q8_0", Cols: 64, Words: 17, Signed: true, Product: rowsPair(false, codesQ8Signed), Panel: panelPair(0, codesQ8Signed, 0xffffffff),
	Decode: decodeRowsQ8_0}

// Codes of formats, a byte each: of two runs of 32 elements, or of one.

func codesQ4K(b *kernel.Builder, m RowsImage, pair kernel.Value) (codes [2][]kernel.Value) {
	for k := range 8 {
		w := m.Word(b.Add(b.Mul(pair, 8), 4+k))
		codes[0] = append(codes[0], lowNibbles(b, w))
		if m.Unsigned {
			codes[1] = append(codes[1], b.And(w, uint32(0xf0f0f0f0))) // times 16
		} else {
			codes[1] = append(codes[1], highNibbles(b, w))
		}
	}
	return codes
}

func codesQ5K(b *kernel.Builder, m RowsImage, pair kernel.Value) (codes [2][]kernel.Value) {
	for k := range 8 {
		w, fifth := m.Word(b.Add(b.Mul(pair, 8), 12+k)), b.Shr(m.Word(b.U32(uint32(4+k))), b.Mul(pair, 2))
		codes[0] = append(codes[0], b.Or(lowNibbles(b, w), b.Shl(b.And(fifth, 0x01010101), 4)))
		codes[1] = append(codes[1], b.Or(highNibbles(b, w), b.Shl(b.And(fifth, 0x02020202), 3)))
	}
	return codes
}

func codesQ8Signed(b *kernel.Builder, m RowsImage, run int) (codes []kernel.Value) {
	for k := range 8 {
		codes = append(codes, m.Word(b.U32(uint32(1+8*run+k))))
	}
	return codes
}

func codesQ8_0(b *kernel.Builder, m RowsImage, run int) (codes []kernel.Value) {
	for _, w := range codesQ8Signed(b, m, run) {
		codes = append(codes, b.Xor(w, uint32(0x80808080)))
	}
	return codes
}

func codesQ4_0(b *kernel.Builder, m RowsImage, run int) (codes []kernel.Value) {
	var high []kernel.Value
	for k := range 4 {
		w := m.Word(b.U32(uint32(1 + 4*run + k)))
		codes, high = append(codes, lowNibbles(b, w)), append(high, highNibbles(b, w))
	}
	return append(codes, high...)
}

// RowsOf returns how the target reads a weight whose rows are interleaved; nil if they are not.
func RowsOf(t *target.Target, w *ir.Value) *RowsFormat {
	if w.Layout != layout.Rows16 {
		return nil
	}
	if w.Type.DType == ir.Q8_0 && !t.UnsignedDot {
		return rowsQ8Signed
	}
	return rowsFormats[w.Type.DType]
}

// number makes a float of an integer.
func number(b *kernel.Builder, n kernel.Value) kernel.Value {
	return b.Convert(kernel.F32, b.Bitcast(kernel.I32, n))
}

// rowsMins is the product of q4_k and q5_k, whose images share a scale of x: pair i of runs has elements 64*i to
// 64*i+63. The pairs are a loop, as the code of all four is more than processors with few registers, or of many
// columns, can hold sums of; for q5_k always, since its loads would move to the front, before prefetched data has
// arrived: half as fast from memory. Where m is Unsigned, codes of the second run are shifted to the left by so many
// bits, if any.
func rowsMins(codes func(b *kernel.Builder, m RowsImage, pair kernel.Value) [2][]kernel.Value, shift int) func(b *kernel.Builder, m RowsImage) []kernel.Value {
	return func(b *kernel.Builder, m RowsImage) []kernel.Value {
		header := b.UnpackHalf(m.Word(b.U32(0)))
		d, dmin := b.Elem(header, 0), b.Neg(b.Elem(header, 1))
		scales, mins := rowsScales(b, m)
		t := rowsTotals(b, m)
		pairs := func(pair kernel.Value) {
			for h, list := range codes(b, m, pair) {
				run := b.Add(b.Mul(pair, 2), h)
				scale := ofRun(b, scales, pair, h)
				for c := range m.Columns {
					dot := m.X.Dot(c, b.Mul(run, 8), list, kernel.Value{})
					if h == 1 && shift > 0 && m.Unsigned {
						dot = b.Shr(dot, shift)
					}
					t[c].Set(b.Add(t[c].Get(), b.Mul(scale, b.Bitcast(kernel.U32, dot))))
				}
			}
		}
		if m.Columns == 1 && m.Unsigned && shift > 0 {
			for pair := range 4 {
				pairs(b.U32(uint32(pair)))
			}
		} else {
			b.For(0, 4, 1, pairs)
		}
		sums := make([]kernel.Value, m.Columns)
		for c := range sums {
			x := m.X.Scale(c, b.U32(0))
			lows := b.Convert(kernel.F32, m.X.Leasts(c, mins))
			sums[c] = b.FMA(dmin, b.Mul(x, lows), b.Mul(b.Mul(d, x), number(b, t[c].Get())))
		}
		return sums
	}
}

// rowsTotals are sums of an image, by column: integers where a scale is that of all of it.
func rowsTotals(b *kernel.Builder, m RowsImage) []*kernel.Var {
	list := make([]*kernel.Var, m.Columns)
	for c := range list {
		if m.X.Whole {
			list[c] = b.Var(kernel.U32, b.U32(0))
		} else {
			list[c] = b.Var(kernel.F32, 0.0)
		}
	}
	return list
}

// rowsScales returns the scales and minimums of the first and of the last four runs of a super-block, from words 1
// to 3: a byte each.
func rowsScales(b *kernel.Builder, m RowsImage) (scales, mins [2]kernel.Value) {
	s, n, low := m.Word(b.U32(1)), m.Word(b.U32(2)), m.Word(b.U32(3))
	of := func(w, low kernel.Value) [2]kernel.Value {
		return [2]kernel.Value{b.And(w, 0x3f3f3f3f), b.Or(lowNibbles(b, low), b.And(b.Shr(w, 2), 0x30303030))}
	}
	return of(s, low), of(n, b.Shr(low, 4))
}

// ofRun returns that of run h of a pair, of what rowsScales returns.
func ofRun(b *kernel.Builder, list [2]kernel.Value, pair kernel.Value, h int) kernel.Value {
	four := b.Select(b.Lt(pair, 2), list[0], list[1])
	return b.And(b.Shr(four, b.Add(b.Mul(b.And(pair, 1), 16), 8*h)), 63)
}

// halvesQ6K visits the halves of runs of q6_k, of 16 elements.
func halvesQ6K(b *kernel.Builder, m RowsImage, visit func(half, scale kernel.Value, codes []kernel.Value)) {
	b.For(0, 4, 1, func(part kernel.Value) { partQ6K(b, m, part, visit) })
}

// partQ6K visits four of them: see layout.Rows16 for the order of the words.
func partQ6K(b *kernel.Builder, m RowsImage, part kernel.Value, visit func(half, scale kernel.Value, codes []kernel.Value)) {
	at := b.Add(b.Mul(part, 13), 1)
	scales := b.Bitcast(kernel.I32, m.Word(at))
	var codes [4][]kernel.Value
	for i := range 4 {
		low, high, two := m.Word(b.Add(at, 1+3*i)), m.Word(b.Add(at, 2+3*i)), m.Word(b.Add(at, 3+3*i))
		codes[0] = append(codes[0], b.Or(lowNibbles(b, low), b.And(b.Shl(two, 4), 0x30303030)))
		codes[1] = append(codes[1], b.Or(lowNibbles(b, high), b.And(b.Shl(two, 2), 0x30303030)))
		codes[2] = append(codes[2], b.Or(highNibbles(b, low), b.And(two, 0x30303030)))
		codes[3] = append(codes[3], b.Or(highNibbles(b, high), b.And(b.Shr(two, 2), 0x30303030)))
	}
	for q, list := range codes {
		visit(b.Add(b.Mul(b.Shr(part, 1), 8), b.And(part, 1), 2*q), b.BitExtract(scales, 8*q, 8), list)
	}
}

// rowsQ6K is the product of q6_k.
func rowsQ6K(b *kernel.Builder, m RowsImage) []kernel.Value {
	d := b.Bitcast(kernel.F32, m.Word(b.U32(0)))
	t := rowsTotals(b, m)
	halvesQ6K(b, m, func(half, scale kernel.Value, codes []kernel.Value) {
		scale = b.Bitcast(kernel.U32, scale)
		for c := range m.Columns {
			p := m.X.Dot(c, b.Mul(half, 4), codes, m.X.Sum(c, half))
			n := b.Mul(scale, b.Bitcast(kernel.U32, p))
			if m.X.Whole {
				t[c].Set(b.Add(t[c].Get(), n))
			} else {
				t[c].Set(b.FMA(number(b, n), m.X.Scale(c, b.Shr(half, 1)), t[c].Get()))
			}
		}
	})
	sums := make([]kernel.Value, m.Columns)
	for c := range sums {
		if m.X.Whole {
			sums[c] = b.Mul(b.Mul(d, m.X.Scale(c, b.U32(0))), number(b, t[c].Get()))
		} else {
			sums[c] = b.Mul(d, t[c].Get())
		}
	}
	return sums
}

// plusProduct returns x*y + sum, which may be none.
func plusProduct(b *kernel.Builder, sum, x, y kernel.Value) kernel.Value {
	if sum == (kernel.Value{}) {
		return b.Mul(x, y)
	}
	return b.FMA(x, y, sum)
}

// rowsPair is the product of two blocks of 32 elements, whose codes may have a bias.
func rowsPair(biased bool, codes func(b *kernel.Builder, m RowsImage, run int) []kernel.Value) func(b *kernel.Builder, m RowsImage) []kernel.Value {
	return func(b *kernel.Builder, m RowsImage) []kernel.Value {
		scales := b.UnpackHalf(m.Word(b.U32(0)))
		sums := make([]kernel.Value, m.Columns)
		for run := range 2 {
			list := codes(b, m, run)
			for c := range m.Columns {
				var start kernel.Value
				if biased {
					start = b.Add(m.X.Sum(c, b.U32(uint32(2*run))), m.X.Sum(c, b.U32(uint32(2*run+1))))
				}
				p := b.Convert(kernel.F32, m.X.Dot(c, b.U32(uint32(8*run)), list, start))
				sums[c] = plusProduct(b, sums[c], b.Mul(b.Elem(scales, run), m.X.Scale(c, b.U32(uint32(run)))), p)
			}
		}
		return sums
	}
}

// The decoders read one element, for tables of embeddings: value = scale*code + offset, rounded as
// ggml rounds.

func byteOf(b *kernel.Builder, w, i kernel.Value) kernel.Value {
	return b.And(b.Shr(w, b.Mul(b.And(i, 3), 8)), 0xff)
}

func decodeRowsMins(codes int, fifth bool) func(b *kernel.Builder, word func(k kernel.Value) kernel.Value, i kernel.Value) kernel.Value {
	return func(b *kernel.Builder, word func(k kernel.Value) kernel.Value, i kernel.Value) kernel.Value {
		run, in := b.Shr(i, 5), b.And(i, 31)
		nibble := b.And(b.Shr(byteOf(b, word(b.Add(b.Mul(b.Shr(run, 1), 8), b.Shr(in, 2), codes)), in), b.Mul(b.And(run, 1), 4)), 15)
		if fifth {
			bit := b.And(b.Shr(byteOf(b, word(b.Add(b.Shr(in, 2), 4)), in), run), 1)
			nibble = b.Or(nibble, b.Shl(bit, 4))
		}
		at := b.And(run, 3)
		s, n, low := byteOf(b, word(b.U32(1)), at), byteOf(b, word(b.U32(2)), at), byteOf(b, word(b.U32(3)), at)
		late := b.Ge(run, 4)
		scale := b.Select(late, b.Or(b.And(low, 15), b.Shl(b.Shr(s, 6), 4)), b.And(s, 63))
		minimum := b.Select(late, b.Or(b.Shr(low, 4), b.Shl(b.Shr(n, 6), 4)), b.And(n, 63))
		header := b.UnpackHalf(word(b.U32(0)))
		d, m := b.Mul(b.Elem(header, 0), b.Convert(kernel.F32, scale)), b.Mul(b.Elem(header, 1), b.Convert(kernel.F32, minimum))
		return b.Sub(b.Mul(d, b.Convert(kernel.F32, nibble)), m)
	}
}

func decodeRowsQ6K(b *kernel.Builder, word func(k kernel.Value) kernel.Value, i kernel.Value) kernel.Value {
	h, q, in := b.Shr(i, 7), b.And(b.Shr(i, 5), 3), b.And(i, 31)
	part := b.Add(b.Mul(h, 2), b.Shr(in, 4))
	at := b.Add(b.Mul(part, 13), 1)
	three := b.Add(at, b.Mul(b.And(b.Shr(in, 2), 3), 3))
	nibble := b.And(b.Shr(byteOf(b, word(b.Add(three, 1, b.And(q, 1))), in), b.Mul(b.Shr(q, 1), 4)), 15)
	two := b.And(b.Shr(byteOf(b, word(b.Add(three, 3)), in), b.Mul(q, 2)), 3)
	code := b.Sub(b.Bitcast(kernel.I32, b.Or(nibble, b.Shl(two, 4))), 32)
	scale := b.BitExtract(b.Bitcast(kernel.I32, word(at)), b.Mul(q, 8), 8)
	d := b.Mul(b.Bitcast(kernel.F32, word(b.U32(0))), b.Convert(kernel.F32, scale))
	return b.Mul(d, b.Convert(kernel.F32, code))
}

func pairScale(b *kernel.Builder, word func(k kernel.Value) kernel.Value, run kernel.Value) kernel.Value {
	return LowHalf(b, b.Shr(word(b.U32(0)), b.Mul(run, 16)))
}

func decodeRowsQ8_0(b *kernel.Builder, word func(k kernel.Value) kernel.Value, i kernel.Value) kernel.Value {
	code := b.BitExtract(b.Bitcast(kernel.I32, word(b.Add(b.Shr(i, 2), 1))), b.Mul(b.And(i, 3), 8), 8)
	return b.Mul(pairScale(b, word, b.Shr(i, 5)), b.Convert(kernel.F32, code))
}

func decodeRowsQ4_0(b *kernel.Builder, word func(k kernel.Value) kernel.Value, i kernel.Value) kernel.Value {
	run, in := b.Shr(i, 5), b.And(i, 31)
	w := word(b.Add(b.Mul(run, 4), b.And(b.Shr(in, 2), 3), 1))
	code := b.And(b.Shr(byteOf(b, w, in), b.Mul(b.Shr(in, 4), 4)), 15)
	return b.Mul(pairScale(b, word, run), b.Convert(kernel.F32, b.Sub(b.Bitcast(kernel.I32, code), 8)))
}
