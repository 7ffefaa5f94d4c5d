package weight

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf/codebook"
)

// The formats of recipe packed: see package layout for their planes.

var packedFormats = []*packed{
	{dtype: ir.Q4_1, offset: true, codes: []source{nibblePlane}, scales: []source{{1, 32, 1, 0}}, octet: nibbleCodes, terms: scaleAndOffset},
	{dtype: ir.Q5_0, codes: []source{nibblePlane, bitPlane(1)}, scales: []source{{2, 16, 1, 0}}, octet: biased(16, withBits(nibbleCodes, 4)), terms: scaleAlone},
	{dtype: ir.Q5_1, offset: true, codes: []source{nibblePlane, bitPlane(1)}, scales: []source{{2, 32, 1, 0}}, octet: withBits(nibbleCodes, 4), terms: scaleAndOffset},
	{dtype: ir.Q2_K, fine: true, offset: true, codes: []source{quarterPlane}, scales: []source{{1, 16, 1, 0}, {2, 32, 8, 0}}, octet: quarterCodes, terms: termsQ2K},
	{dtype: ir.Q3_K, fine: true, codes: []source{quarterPlane, bitPlane(1)}, scales: []source{{2, 16, 1, 0}, {3, 16, 8, 0}},
		octet: biased(4, withBits(quarterCodes, 2)), terms: signedTerms(2)},
	{dtype: ir.IQ4_NL, codes: []source{nibblePlane}, scales: []source{{1, 16, 1, 0}}, values: &codebook.IQ4, terms: scaleAlone},
	{dtype: ir.IQ4_XS, codes: []source{nibblePlane}, scales: []source{{1, 8, 1, 0}, {2, 16, 8, 0}}, values: &codebook.IQ4, terms: signedTerms(1)},
	{dtype: ir.MXFP4, codes: []source{nibblePlane}, scales: []source{{1, 8, 1, 0}}, values: &codebook.E2M1, terms: termsE8M0},
	{dtype: ir.NVFP4, fine: true, codes: []source{nibblePlane}, scales: []source{{1, 16, 1, 0}}, values: &codebook.E2M1, terms: termsE4M3},
	{dtype: ir.Q1_0, codes: []source{bitPlane(0)}, scales: []source{{1, 16, 4, 0}}, octet: signCodes, terms: scaleAlone},
	{dtype: ir.Q2_0, codes: []source{quarterPlane}, scales: []source{{1, 16, 2, 0}}, octet: biased(1, quarterCodes), terms: scaleAlone},
	{dtype: ir.TQ2_0, codes: []source{quarterPlane}, scales: []source{{1, 16, 8, 0}}, octet: biased(1, quarterCodes), terms: scaleAlone},
	{dtype: ir.TQ1_0, codes: []source{{0, 32, 1, 0}, {1, 16, 1, 0}, {2, 4, 1, 0}}, scales: []source{{3, 16, 8, 0}}, octet: octetTQ1, terms: scaleAlone},
	{dtype: ir.IQ2_XXS, table: gridIQ2XXS.bytes(), codes: []source{wholeRun}, scales: []source{wholeRun, blockD(1)}, octet: octetIQ2XXS(gridIQ2XXS),
		terms: oddTerms(3, func(b *kernel.Builder, w kernel.Value) []kernel.Value { return []kernel.Value{b.Shr(b.Elem(w, 1), 28)} })},
	{dtype: ir.IQ2_XS, table: gridIQ2XS.bytes(), fine: true, codes: []source{{0, 64, 1, 2}}, scales: []source{{1, 8, 1, 0}, blockD(2)}, octet: octetIQ2XS(gridIQ2XS),
		terms: oddTerms(3, nibblesFrom(0))},
	{dtype: ir.IQ2_S, table: gridIQ2S.bytes(), fine: true, codes: []source{wholeRun, {1, 16, 1, 0}}, scales: []source{{1, 16, 1, 0}, blockD(2)}, octet: octetIQ2S(gridIQ2S),
		terms: oddTerms(3, nibblesFrom(8))},
	{dtype: ir.IQ3_XXS, table: gridIQ3XXS.bytes(), codes: []source{{0, 64, 1, 2}, {1, 32, 1, 0}}, scales: []source{{1, 32, 1, 0}, blockD(2)}, octet: octetIQ3XXS(gridIQ3XXS),
		terms: oddTerms(2, func(b *kernel.Builder, w kernel.Value) []kernel.Value { return []kernel.Value{b.Shr(w, 28)} })},
	{dtype: ir.IQ3_S, table: gridIQ3S.bytes(), codes: []source{{0, 64, 1, 2}, {1, 32, 1, 0}, {2, 8, 1, 0}}, scales: []source{{3, 4, 1, 0}, blockD(4)}, octet: octetIQ3S(gridIQ3S),
		terms: oddTerms(0, func(b *kernel.Builder, w kernel.Value) []kernel.Value { return []kernel.Value{b.And(w, 15)} })},
	{dtype: ir.IQ1_S, table: gridIQ1S.bytes(), codes: []source{{0, 32, 1, 0}, {1, 16, 1, 0}}, scales: []source{{1, 16, 1, 0}, blockD(2)}, octet: octetIQ1S(gridIQ1S),
		terms: oddTerms(3, func(b *kernel.Builder, w kernel.Value) []kernel.Value { return []kernel.Value{b.BitExtract(w, 12, 3)} })},
	{dtype: ir.IQ1_M, table: gridIQ1S.bytes(), fine: true, codes: []source{{0, 32, 1, 0}, {1, 16, 1, 0}}, scales: []source{{2, 64, 8, 0}}, octet: octetIQ1M(gridIQ1S),
		terms: termsIQ1M},
}

// nibblePlane has an octet of a run in each of four words, quarterPlane two in each of two, and bitPlane all
// in one: see layout.spread.
// wholeRun has 8 bytes of a run, none of which an octet alone needs; blockD is a block's f16.
var (
	wholeRun = source{0, 64, 1, 0}

	nibblePlane  = source{0, 128, 1, 1}
	quarterPlane = source{0, 64, 1, 2}
)

func blockD(plane int) source { return source{plane, 16, 8, 0} }

func bitPlane(plane int) source { return source{plane, 32, 1, 4} }

const (
	ones        = 0x01010101
	nibbleTable = 256 * 4
)

// codesFunc is packed.octet.
type codesFunc func(b *kernel.Builder, w []kernel.Value, j kernel.Operand) [2]kernel.Value

func nibbleCodes(b *kernel.Builder, w []kernel.Value, _ kernel.Operand) [2]kernel.Value {
	return [2]kernel.Value{lowNibbles(b, w[0]), highNibbles(b, w[0])}
}

func quarterCodes(b *kernel.Builder, w []kernel.Value, j kernel.Operand) [2]kernel.Value {
	at := b.Shr(w[0], rest(b, j, 2, 4))
	return [2]kernel.Value{b.And(at, 3*ones), b.And(b.Shr(at, 2), 3*ones)}
}

func bitCodes(b *kernel.Builder, w kernel.Value, j kernel.Operand) [2]kernel.Value {
	at := b.Shr(w, times(b, j, 2, 1))
	return [2]kernel.Value{b.And(at, ones), b.And(b.Shr(at, 1), ones)}
}

// withBits adds a high bit, the last word's, to codes.
func withBits(codes codesFunc, at int) codesFunc {
	return func(b *kernel.Builder, w []kernel.Value, j kernel.Operand) [2]kernel.Value {
		low, high := codes(b, w, j), bitCodes(b, w[1], j)
		for i := range low {
			low[i] = b.Or(low[i], b.Shl(high[i], at))
		}
		return low
	}
}

// biased takes a bias from codes below 128.
func biased(bias int, codes codesFunc) codesFunc {
	return func(b *kernel.Builder, w []kernel.Value, j kernel.Operand) [2]kernel.Value {
		list := codes(b, w, j)
		for i, c := range list {
			list[i] = less(b, c, b.U32(uint32(128-bias)*ones))
		}
		return list
	}
}

// less returns bytes of unsigned codes plus by, less 128 each; no sum exceeds a byte.
func less(b *kernel.Builder, codes, by kernel.Value) kernel.Value {
	return b.Xor(b.Add(codes, by), uint32(128*ones))
}

// signCodes are 1 where a bit is set, else -1.
func signCodes(b *kernel.Builder, w []kernel.Value, j kernel.Operand) [2]kernel.Value {
	list := bitCodes(b, b.Not(w[0]), j)
	for i, c := range list {
		list[i] = b.Add(b.Mul(c, 0xfe), ones)
	}
	return list
}

// ofTable looks nibbles up, two at a time: a word of the table has the low nibble's value in byte 0 and the
// high one's in byte 2.
func ofTable(values *[16]int8) codesFunc {
	table := make([]uint32, 256)
	for i := range table {
		table[i] = uint32(uint8(values[i&15])) | uint32(uint8(values[i>>4]))<<16
	}
	return func(b *kernel.Builder, w []kernel.Value, _ kernel.Operand) [2]kernel.Value {
		t := b.Table(kernel.U32, 256, table, nil)
		at := func(i int) kernel.Value { return t.Load(b.BitExtract(w[0], 8*i, 8)) }
		x, y := b.Or(at(0), b.Shl(at(1), 8)), b.Or(at(2), b.Shl(at(3), 8))
		return [2]kernel.Value{b.Or(b.And(x, 0xffff), b.Shl(y, 16)), b.Or(b.Shr(x, 16), b.And(y, uint32(0xffff0000)))}
	}
}

// chosen is ofTable for targets that choose bytes of two words by an instruction: the values are the bytes of four
// words. The lowest three bits of a code choose a byte of the first two words and one of the last two, and its highest
// bit chooses between these.
func chosen(values *[16]int8) codesFunc {
	var table [4]uint32
	for i, v := range values {
		table[i/4] |= uint32(uint8(v)) << (i % 4 * 8)
	}
	return func(b *kernel.Builder, w []kernel.Value, _ kernel.Operand) [2]kernel.Value {
		low := b.And(w[0], 0x77777777)
		upper := b.Or(b.And(b.Shr(w[0], 1), 0x44444444), 0x32103210)
		four := func(shift int) kernel.Value {
			l, u := b.Shr(low, shift), b.Shr(upper, shift)
			return b.Permute(b.Permute(table[0], table[1], l), b.Permute(table[2], table[3], l), u)
		}
		x, y := four(0), four(16) // low and high nibbles in turn
		return [2]kernel.Value{b.Permute(x, y, 0x6420), b.Permute(x, y, 0x7531)}
	}
}

// termsFunc is packed.terms.
type termsFunc func(b *kernel.Builder, w []kernel.Value, sub kernel.Value) []DotScale

// scaleAlone is an f16.
func scaleAlone(b *kernel.Builder, w []kernel.Value, _ kernel.Value) []DotScale {
	return []DotScale{{Scale: LowHalf(b, w[0])}}
}

// scaleAndOffset are two f16.
func scaleAndOffset(b *kernel.Builder, w []kernel.Value, _ kernel.Value) []DotScale {
	pair := b.UnpackHalf(w[0])
	return []DotScale{{b.Elem(pair, 0), b.Elem(pair, 1)}}
}

// termsQ2K are d*scale and -dmin*minimum, of a byte of two nibbles for each half.
func termsQ2K(b *kernel.Builder, w []kernel.Value, _ kernel.Value) (list []DotScale) {
	pair := b.UnpackHalf(w[1])
	d, low := b.Elem(pair, 0), b.Neg(b.Elem(pair, 1))
	for h := range 2 {
		list = append(list, DotScale{b.Mul(d, number(b, b.BitExtract(w[0], 8*h, 4))), b.Mul(low, number(b, b.BitExtract(w[0], 8*h+4, 4)))})
	}
	return
}

// signedTerms are d*(scale-32), of some bytes with a scale each.
func signedTerms(count int) termsFunc {
	return func(b *kernel.Builder, w []kernel.Value, _ kernel.Value) (list []DotScale) {
		for h := range count {
			list = append(list, DotScale{Scale: b.Mul(LowHalf(b, w[1]), number(b, b.Sub(b.BitExtract(w[0], 8*h, 8), 32)))})
		}
		return
	}
}

// termsE8M0 are 2^(e-128): half of what the exponent means, as the table's values are twice what they mean.
// The two smallest are subnormal.
func termsE8M0(b *kernel.Builder, w []kernel.Value, _ kernel.Value) []DotScale {
	e := b.And(w[0], 255)
	bits := b.Select(b.Lt(e, 2), b.Shl(b.U32(0x00200000), e), b.Shl(b.Sub(e, 1), 23))
	return []DotScale{{Scale: b.Bitcast(kernel.F32, bits)}}
}

// termsE4M3 are half of a float of 4 exponent and 3 mantissa bits for each half, which as the high bits of an
// f16 is 2^-8 times what it means. 0x7f is 0.
func termsE4M3(b *kernel.Builder, w []kernel.Value, _ kernel.Value) (list []DotScale) {
	for h := range 2 {
		bits := b.BitExtract(w[0], 8*h, 8)
		scale := b.Mul(LowHalf(b, b.Shl(b.And(bits, 127), 7)), 128)
		list = append(list, DotScale{Scale: b.Select(b.Eq(bits, 127), 0, scale)})
	}
	return
}
