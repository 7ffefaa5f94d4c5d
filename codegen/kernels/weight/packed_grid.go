package weight

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/ir/gguf/codebook"
)

// The formats whose codes are indices of vectors in a grid. An octet is one vector of eight elements, or
// two of four.

// nibblesFrom returns the nibbles of a byte.
func nibblesFrom(bit int) func(b *kernel.Builder, w kernel.Value) []kernel.Value {
	return func(b *kernel.Builder, w kernel.Value) []kernel.Value {
		return []kernel.Value{b.BitExtract(w, bit, 4), b.BitExtract(w, bit+4, 4)}
	}
}

// oddTerms are d*(2s+1) over a power of two, of scales s that are found in the first word.
func oddTerms(shift int, scales func(b *kernel.Builder, w kernel.Value) []kernel.Value) termsFunc {
	return func(b *kernel.Builder, w []kernel.Value, _ kernel.Value) (list []DotScale) {
		d := b.Mul(LowHalf(b, w[1]), 1/float64(int(1)<<shift))
		for _, s := range scales(b, w[0]) {
			list = append(list, DotScale{Scale: b.Mul(d, number(b, b.Or(b.Shl(s, 1), 1)))})
		}
		return
	}
}

// grid is a codebook as kernels have it in a table: constants of 16 bits a vector, which the table has
// expanded.
type grid struct {
	book  *codebook.Grid
	words []uint32
	// value makes values of four codes, in the four bytes of a word.
	value func(b *kernel.Builder, codes kernel.Value) kernel.Value
	// nibbles: the codes themselves are kept, the first four in the low nibbles of a word, the others in the high.
	nibbles bool
}

func newGrid(book *codebook.Grid, value func(b *kernel.Builder, codes kernel.Value) kernel.Value) *grid {
	g := &grid{book: book, words: make([]uint32, book.Count/2), value: value, nibbles: value == nil}
	for i := range book.Count {
		for j, c := range book.Codes(i) {
			g.words[i/2] |= uint32(c) << (i%2*16 + j*g.bits())
		}
	}
	return g
}

// bits is the number of bits of a code in the constants.
func (g *grid) bits() int {
	if g.book.Size == 8 {
		return 2
	}
	return 3
}

// elem is the type of the table's elements.
func (g *grid) elem() kernel.Type {
	if g.book.Size == 8 && !g.nibbles {
		return lane.U32x2
	}
	return kernel.U32
}

// bytes is the size of the table.
func (g *grid) bytes() int { return g.book.Count * g.elem().Size() }

func (g *grid) table(b *kernel.Builder) *kernel.Table {
	return b.Table(g.elem(), g.book.Count, g.words, func(word func(i kernel.Operand) kernel.Value, i kernel.Value) kernel.Value {
		w := b.Shr(word(b.Shr(i, 1)), b.Mul(b.And(i, 1), 16))
		if g.book.Size == 4 {
			return g.value(b, apart(b, w, 3))
		}
		first, second := apart(b, w, 2), apart(b, b.Shr(w, 8), 2)
		if g.nibbles {
			return b.Or(first, b.Shl(second, 4))
		}
		return b.Vec(g.value(b, first), g.value(b, second))
	})
}

// apart returns four codes of some bits each in bytes.
func apart(b *kernel.Builder, w kernel.Value, bits int) kernel.Value {
	mask := uint32(1)<<bits - 1
	codes := b.And(w, mask)
	for i := 1; i < 4; i++ {
		codes = b.Or(codes, b.Shl(b.And(w, mask<<(i*bits)), i*(8-bits)))
	}
	return codes
}

var (
	gridIQ2XXS = newGrid(codebook.IQ2XXS, valuesIQ2)
	gridIQ2XS  = newGrid(codebook.IQ2XS, valuesIQ2)
	gridIQ2S   = newGrid(codebook.IQ2S, valuesIQ2)
	gridIQ1S   = newGrid(codebook.IQ1S, nil)
	gridIQ3XXS = newGrid(codebook.IQ3XXS, valuesIQ3XXS)
	gridIQ3S   = newGrid(codebook.IQ3S, valuesIQ3S)
)

// valuesIQ2 are 8, 25 and 43.
func valuesIQ2(b *kernel.Builder, c kernel.Value) kernel.Value {
	return b.Add(b.Or(c, b.Shl(c, 4)), b.And(b.Shr(c, 1), ones), 8*ones)
}

// valuesIQ3XXS are 4 and so on to 52, eight apart, and 62.
func valuesIQ3XXS(b *kernel.Builder, c kernel.Value) kernel.Value {
	last := b.And(b.And(c, b.Shr(c, 1)), b.And(b.Shr(c, 2), ones))
	return b.Add(b.Shl(c, 3), b.Shl(last, 1), 4*ones)
}

// valuesIQ3S are the odd numbers to 15.
func valuesIQ3S(b *kernel.Builder, c kernel.Value) kernel.Value { return b.Or(b.Shl(c, 1), ones) }

// signed makes bytes negative where the bits of a number below 256, first to fourth and fifth to eighth, are set.
func signed(b *kernel.Builder, bytes [2]kernel.Value, signs kernel.Value) [2]kernel.Value {
	for i, w := range bytes {
		bits := b.BitExtract(signs, 4*i, 4)
		set := b.And(b.Mul(bits, 0x00204081), ones)
		mask := b.Sub(b.Shl(set, 8), set)
		bytes[i] = b.Add(b.Xor(w, mask), set) // no carries: no byte is 0
	}
	return bytes
}

// signs7 completes seven sign bits with the eighth, which makes their number even.
func signs7(b *kernel.Builder, bits kernel.Value) kernel.Value {
	bits = b.And(bits, 127)
	odd := b.Shr(b.U32(0x6996), b.And(b.Xor(bits, b.Shr(bits, 4)), 15))
	return b.Or(bits, b.Shl(b.And(odd, 1), 7))
}

// pair is a vector of a grid of eight.
func pair(b *kernel.Builder, g *grid, i kernel.Value) [2]kernel.Value {
	v := g.table(b).Load(i)
	return [2]kernel.Value{b.Elem(v, 0), b.Elem(v, 1)}
}

// byteAt returns byte j of a word.
func byteAt(b *kernel.Builder, w kernel.Value, j kernel.Operand) kernel.Value {
	return b.And(b.Shr(w, times(b, j, 8, 1)), 255)
}

func octetIQ2XXS(g *grid) codesFunc {
	return func(b *kernel.Builder, w []kernel.Value, j kernel.Operand) [2]kernel.Value {
		return signed(b, pair(b, g, byteAt(b, b.Elem(w[0], 0), j)), signs7(b, b.Shr(b.Elem(w[0], 1), times(b, j, 7, 1))))
	}
}

func octetIQ2XS(g *grid) codesFunc {
	return func(b *kernel.Builder, w []kernel.Value, j kernel.Operand) [2]kernel.Value {
		half := b.Shr(w[0], rest(b, j, 2, 16))
		return signed(b, pair(b, g, b.And(half, 511)), signs7(b, b.Shr(half, 9)))
	}
}

func octetIQ2S(g *grid) codesFunc {
	return func(b *kernel.Builder, w []kernel.Value, j kernel.Operand) [2]kernel.Value {
		high := b.And(b.Shr(w[1], times(b, j, 2, 1)), 3)
		i := b.Or(byteAt(b, b.Elem(w[0], 0), j), b.Shl(high, 8))
		return signed(b, pair(b, g, i), byteAt(b, b.Elem(w[0], 1), j))
	}
}

func octetIQ3XXS(g *grid) codesFunc {
	return func(b *kernel.Builder, w []kernel.Value, j kernel.Operand) [2]kernel.Value {
		t := g.table(b)
		half := b.Shr(w[0], rest(b, j, 2, 16))
		bytes := [2]kernel.Value{t.Load(b.And(half, 255)), t.Load(b.BitExtract(half, 8, 8))}
		return signed(b, bytes, signs7(b, b.Shr(w[1], times(b, j, 7, 1))))
	}
}

func octetIQ3S(g *grid) codesFunc {
	return func(b *kernel.Builder, w []kernel.Value, j kernel.Operand) [2]kernel.Value {
		t := g.table(b)
		half, high := b.Shr(w[0], rest(b, j, 2, 16)), b.Shr(w[2], times(b, j, 2, 1))
		first := b.Or(b.And(half, 255), b.Shl(b.And(high, 1), 8))
		second := b.Or(b.BitExtract(half, 8, 8), b.Shl(b.And(high, 2), 7))
		return signed(b, [2]kernel.Value{t.Load(first), t.Load(second)}, byteAt(b, w[1], j))
	}
}

// shifted are eight times the elements of a ternary vector, one more or, where down holds, one less.
func shifted(b *kernel.Builder, g *grid, i, down kernel.Value) [2]kernel.Value {
	w := g.table(b).Load(i)
	by := b.Select(down, b.U32((128-9)*ones), b.U32((128-7)*ones))
	return [2]kernel.Value{less(b, b.Shl(lowNibbles(b, w), 3), by), less(b, b.Shl(highNibbles(b, w), 3), by)}
}

func octetIQ1S(g *grid) codesFunc {
	return func(b *kernel.Builder, w []kernel.Value, j kernel.Operand) [2]kernel.Value {
		high := b.And(b.Shr(w[1], times(b, j, 3, 1)), 7)
		return shifted(b, g, b.Or(byteAt(b, w[0], j), b.Shl(high, 8)), b.Ne(b.And(w[1], 0x8000), 0))
	}
}

func octetIQ1M(g *grid) codesFunc {
	return func(b *kernel.Builder, w []kernel.Value, j kernel.Operand) [2]kernel.Value {
		nibble := b.Shr(w[1], times(b, j, 4, 1))
		return shifted(b, g, b.Or(byteAt(b, w[0], j), b.Shl(b.And(nibble, 7), 8)), b.Ne(b.And(nibble, 8), 0))
	}
}

// termsIQ1M finds d in the highest nibbles of the four halves of the scales, and a run's two scales of 3 bits below.
func termsIQ1M(b *kernel.Builder, w []kernel.Value, sub kernel.Value) (list []DotScale) {
	low, high := b.Elem(w[0], 0), b.Elem(w[0], 1)
	nibbles := func(w kernel.Value) kernel.Value { return b.Or(b.BitExtract(w, 12, 4), b.Shl(b.Shr(w, 28), 4)) }
	d := b.Mul(LowHalf(b, b.Or(nibbles(low), b.Shl(nibbles(high), 8))), 1.0/8)
	own := b.Shr(b.Select(b.Ge(sub, 4), high, low), b.Add(b.Mul(b.And(b.Shr(sub, 1), 1), 16), b.Mul(b.And(sub, 1), 6)))
	for h := range 2 {
		list = append(list, DotScale{Scale: b.Mul(d, number(b, b.Or(b.Shl(b.BitExtract(own, 3*h, 3), 1), 1)))})
	}
	return
}
