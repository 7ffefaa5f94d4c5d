package kernels

import "github.com/zincc-dev/zincc/codegen/kernel"

// dotFormat is one row of the table of layouts whose codes are bytes, to be multiplied
// with an x in fixed point by dot products of four bytes. What it shares with
// format means the same there; all runs are of 16 elements.
type dotFormat struct {
	layout string
	unit   int // elements of a unit: 16 or 32
	stride int // from one run of a unit to the next
	offset bool
	// bias, if not 0, is what to take from every code: offset is -bias*scale.
	bias   int
	fine   bool          // scales are of 16 elements, not of 32
	words  []kernel.Type // that fetch returns
	fetch  func(b *kernel.Builder, m matrix, row, u kernel.Value) []kernel.Value
	decode func(b *kernel.Builder, words []kernel.Value, u kernel.Value) []dotRun
}

// dotRun is a run: value = scale*code + offset, with the codes as signed bytes.
type dotRun struct {
	codes         []kernel.Value // four U32
	scale, offset kernel.Value
}

// fixedRun is the elements of x that share a scale: those of op fixed16.
const fixedRun = 16

var dotFormats = []*dotFormat{
	{layout: "q4_k", unit: 32, stride: 32, offset: true, words: []kernel.Type{u32x4, u32x4}, fetch: fetchDotQ4K, decode: decodeDotQ4K},
	{layout: "q5_k", unit: 32, stride: 32, offset: true, words: []kernel.Type{u32x4, u32x4, u32x4}, fetch: fetchDotQ5K, decode: decodeDotQ5K},
	{layout: "q6_k", unit: 32, stride: 64, offset: true, bias: 32, fine: true, words: []kernel.Type{u32x4, u32x4, u32x2, kernel.U32}, fetch: fetchDotQ6K, decode: decodeDotQ6K},
	{layout: "q4_0", unit: 32, stride: 16, offset: true, bias: 8, words: []kernel.Type{u32x4, kernel.U32}, fetch: fetchDotQ4_0, decode: decodeDotQ4_0},
	{layout: "q8_0", unit: 16, words: []kernel.Type{u32x4, kernel.U32}, fetch: fetchQ8_0, decode: decodeDotQ8_0},
	{layout: "affine16", unit: 16, fine: true, words: []kernel.Type{u32x4, kernel.F32}, fetch: fetchAffine(16, false), decode: decodeDotAffine},
	{layout: "affine16m", unit: 16, offset: true, fine: true, words: []kernel.Type{u32x4, kernel.F32, kernel.F32}, fetch: fetchAffine(16, true), decode: decodeDotAffine},
	{layout: "affine32", unit: 16, words: []kernel.Type{u32x4, kernel.F32}, fetch: fetchAffine(32, false), decode: decodeDotAffine},
	{layout: "affine32m", unit: 16, offset: true, words: []kernel.Type{u32x4, kernel.F32, kernel.F32}, fetch: fetchAffine(32, true), decode: decodeDotAffine},
}

// dotFormatOf returns the row for a layout, nil if there is none.
func dotFormatOf(layout string) *dotFormat {
	for _, f := range dotFormats {
		if f.layout == layout {
			return f
		}
	}
	return nil
}

func (f *dotFormat) runs() int { return f.unit / fixedRun }

// begin returns the first element of unit u in its row.
func (f *dotFormat) begin(b *kernel.Builder, u kernel.Value) kernel.Value {
	return beginOf(b, u, f.unit, fixedRun, f.stride)
}

// Of the 8 units of a super-block of q4_k and q5_k, unit j takes 16 elements each of
// the sub-blocks 2i and 2i+1, i = j/2, which are the low and the high nibbles of a
// vec4 of the block.

func fetchDotQ4K(b *kernel.Builder, m matrix, row, u kernel.Value) []kernel.Value {
	block := b.Mul(b.Add(b.Mul(row, b.Div(m.cols, 256)), b.Shr(u, 3)), 9)
	return []kernel.Value{m.buf.Load(u32x4, block), m.buf.Load(u32x4, b.Add(block, 1, b.And(u, 7)))}
}

func decodeDotQ4K(b *kernel.Builder, words []kernel.Value, u kernel.Value) []dotRun {
	runs := pairRuns(b, words[0], b.And(b.Shr(u, 1), 3))
	for i := range 4 {
		w := b.Elem(words[1], i)
		runs[0].codes = append(runs[0].codes, lowNibbles(b, w))
		runs[1].codes = append(runs[1].codes, highNibbles(b, w))
	}
	return runs
}

func fetchDotQ5K(b *kernel.Builder, m matrix, row, u kernel.Value) []kernel.Value {
	block := b.Mul(b.Add(b.Mul(row, b.Div(m.cols, 256)), b.Shr(u, 3)), 11)
	return []kernel.Value{m.buf.Load(u32x4, block), m.buf.Load(u32x4, b.Add(block, 1, b.And(u, 1))),
		m.buf.Load(u32x4, b.Add(block, 3, b.And(u, 7)))}
}

func decodeDotQ5K(b *kernel.Builder, words []kernel.Value, u kernel.Value) []dotRun {
	pair := b.And(b.Shr(u, 1), 3)
	runs := pairRuns(b, words[0], pair)
	for i := range 4 {
		w := b.Elem(words[2], i)
		fifth := b.Shr(b.Elem(words[1], i), b.Mul(pair, 2)) // bits 0 and 1 of each byte are ours
		runs[0].codes = append(runs[0].codes, b.Or(lowNibbles(b, w), b.Shl(b.And(fifth, 0x01010101), 4)))
		runs[1].codes = append(runs[1].codes, b.Or(highNibbles(b, w), b.Shl(b.And(fifth, 0x02020202), 3)))
	}
	return runs
}

// pairRuns returns scale and offset of the sub-blocks 2i and 2i+1 of a super-block,
// from its header: see minRuns.
func pairRuns(b *kernel.Builder, header, i kernel.Value) []dotRun {
	shift, upper := b.Mul(b.And(i, 1), 16), b.Ge(i, 2)
	s, m, low := b.Shr(b.Elem(header, 1), shift), b.Shr(b.Elem(header, 2), shift), b.Shr(b.Elem(header, 3), shift)
	scales := b.Select(upper, b.Or(b.And(low, 0x0f0f), b.And(b.Shr(s, 2), 0x3030)), b.And(s, 0x3f3f))
	mins := b.Select(upper, b.Or(b.And(b.Shr(low, 4), 0x0f0f), b.And(b.Shr(m, 2), 0x3030)), b.And(m, 0x3f3f))
	of := fields(b, b.Or(scales, b.Shl(mins, 16)), 0, 8)
	d := b.UnpackHalf(b.Elem(header, 0))
	scale, negMin := b.Mul(b.Elem(d, 0), 1/fieldUnit), b.Mul(b.Elem(d, 1), -1/fieldUnit)
	runs := make([]dotRun, 2)
	for j := range runs {
		runs[j].scale, runs[j].offset = b.Mul(scale, b.Elem(of, j)), b.Mul(negMin, b.Elem(of, 2+j))
	}
	return runs
}

// Of the 8 units of a super-block of q6_k, unit j takes of half j/4 the vec4 j%4 of
// nibbles: 16 elements in the low ones and, 64 elements later, 16 in the high ones.

func fetchDotQ6K(b *kernel.Builder, m matrix, row, u kernel.Value) []kernel.Value {
	block := b.Add(b.Mul(row, b.Div(m.cols, 256)), b.Shr(u, 3))
	half := b.And(b.Shr(u, 2), 1)
	blocks := b.Div(b.Mul(m.rows, m.cols), 256) // planes of 32, 16 and 4 words a block
	return []kernel.Value{
		m.buf.Load(u32x4, b.Add(b.Mul(block, 8), b.And(u, 7))),
		m.buf.Load(u32x4, b.Add(b.Mul(blocks, 8), b.Mul(block, 4), b.Mul(half, 2), b.And(u, 1))),
		m.buf.Load(u32x2, b.Add(b.Mul(blocks, 24), b.Mul(block, 2), half)),
		halfAt(b, m.buf, b.Mul(blocks, 52), block),
	}
}

func decodeDotQ6K(b *kernel.Builder, words []kernel.Value, u kernel.Value) []dotRun {
	runs := make([]dotRun, 2)
	second := b.And(u, 2) // the row of nibbles, times 2: bit pairs 0 and 2, or 1 and 3, are ours
	for i := range 4 {
		w, pairs := b.Elem(words[0], i), b.Shr(b.Elem(words[1], i), second)
		runs[0].codes = append(runs[0].codes, b.Or(lowNibbles(b, w), b.Shl(b.And(pairs, 0x03030303), 4)))
		runs[1].codes = append(runs[1].codes, b.Or(highNibbles(b, w), b.And(pairs, 0x30303030)))
	}
	d := lowHalf(b, words[3])
	at := b.Mul(b.And(u, 3), 8)
	for j := range runs {
		s := b.BitExtract(b.Bitcast(kernel.I32, b.Elem(words[2], j)), at, 8)
		runs[j].scale = b.Mul(d, b.Convert(kernel.F32, s))
		runs[j].offset = b.Mul(runs[j].scale, -32.0)
	}
	return runs
}

// A unit of q4_0 is a block: the 16 elements in the low nibbles and those in the high ones.

func fetchDotQ4_0(b *kernel.Builder, m matrix, row, u kernel.Value) []kernel.Value {
	at := b.Add(b.Mul(row, b.Div(m.cols, 32)), u)
	return []kernel.Value{m.buf.Load(u32x4, at), halfAt(b, m.buf, b.Div(b.Mul(m.rows, m.cols), 8), at)}
}

func decodeDotQ4_0(b *kernel.Builder, words []kernel.Value, _ kernel.Value) []dotRun {
	runs := make([]dotRun, 2)
	d := lowHalf(b, words[1])
	for j := range runs {
		runs[j].scale, runs[j].offset = d, b.Mul(d, -8.0)
	}
	for i := range 4 {
		w := b.Elem(words[0], i)
		runs[0].codes = append(runs[0].codes, lowNibbles(b, w))
		runs[1].codes = append(runs[1].codes, highNibbles(b, w))
	}
	return runs
}

func decodeDotAffine(b *kernel.Builder, words []kernel.Value, _ kernel.Value) []dotRun {
	r := dotRun{scale: words[1]}
	if len(words) > 2 {
		r.offset = words[2]
	}
	for i := range 4 {
		r.codes = append(r.codes, b.Elem(words[0], i))
	}
	return []dotRun{r}
}

func decodeDotQ8_0(b *kernel.Builder, words []kernel.Value, _ kernel.Value) []dotRun {
	r := dotRun{scale: lowHalf(b, words[1])}
	for i := range 4 {
		r.codes = append(r.codes, b.Elem(words[0], i))
	}
	return []dotRun{r}
}

// fixed is a run of x in 16-bit fixed point: x = scale*(256*high + low), four signed
// bytes a word.
type fixed struct {
	high, low []kernel.Value
	scale     kernel.Value
	total     kernel.Value // the sum of x, if it is asked for
}

// fixedMost is the largest magnitude of 256*high + low.
const fixedMost = 127*256 + 127

// toFixed rounds a run of x, four vec4, as op fixed16 does.
func toFixed(b *kernel.Builder, x []kernel.Value, sum bool) fixed {
	most := b.Abs(b.Elem(x[0], 0))
	for i, v := range x {
		for e := range 4 {
			if i+e > 0 {
				most = b.Max(most, b.Abs(b.Elem(v, e)))
			}
		}
	}
	inverse := inverseScale(b, most)
	f := fixed{scale: b.Mul(most, 1.0/fixedMost)}
	for _, v := range x {
		high, low := fixedWords(b, v, inverse)
		f.high, f.low = append(f.high, high), append(f.low, low)
	}
	if sum {
		ones := b.U32(0x01010101)
		f.total = b.Mul(f.scale, f.dot(b, []kernel.Value{ones, ones, ones, ones}))
	}
	return f
}

// inverseScale returns what brings the largest magnitude of a run to fixedMost. Below
// 1e-30 x counts as 0: the quotient would leave the range of f32.
func inverseScale(b *kernel.Builder, most kernel.Value) kernel.Value {
	return b.Select(b.Gt(most, 1e-30), b.Div(b.F32(fixedMost), b.Max(most, 1e-30)), 0)
}

// fixedWords returns the high and the low bytes of a vec4 of x.
func fixedWords(b *kernel.Builder, v, inverse kernel.Value) (high, low kernel.Value) {
	// In the low 16 bits of 3*2^22 + n is n: here that of 256*high + low + 128, whose
	// low byte is low + 128.
	n := b.Bitcast(u32x4, b.FMA(v, b.Splat(inverse, 4), b.Splat(b.F32(3<<22+128), 4)))
	even := b.Or(b.And(b.Elem(n, 0), 0xffff), b.Shl(b.Elem(n, 2), 16))
	odd := b.Or(b.And(b.Elem(n, 1), 0xffff), b.Shl(b.Elem(n, 3), 16))
	low = b.Or(b.And(even, 0x00ff00ff), b.Shl(b.And(odd, 0x00ff00ff), 8))
	return b.Or(b.And(b.Shr(even, 8), 0x00ff00ff), b.And(odd, uint32(0xff00ff00))), b.Xor(low, uint32(0x80808080))
}

// dot returns the sum of the products with signed bytes, without the scale.
func (f *fixed) dot(b *kernel.Builder, codes []kernel.Value) kernel.Value {
	var high, low kernel.Value
	for i, c := range codes {
		h, l := b.DotI8(c, f.high[i]), b.DotI8(c, f.low[i])
		if i > 0 {
			h, l = b.Add(h, high), b.Add(l, low)
		}
		high, low = h, l
	}
	return b.Convert(kernel.F32, b.Add(b.Shl(high, 8), low))
}

// fixedQuarter is a quarter of a run, with the run's scale and the sum of its x.
type fixedQuarter struct{ high, low, scale, total kernel.Value }

// quarterFixed is toFixed by four neighbouring lanes, of which each has a vec4.
func quarterFixed(b *kernel.Builder, v kernel.Value) fixedQuarter {
	most := b.Max(b.Max(b.Abs(b.Elem(v, 0)), b.Abs(b.Elem(v, 1))), b.Max(b.Abs(b.Elem(v, 2)), b.Abs(b.Elem(v, 3))))
	for mask := range 2 {
		most = b.Max(most, b.SubgroupShuffleXor(most, 1<<mask))
	}
	inverse := inverseScale(b, most)
	q := fixedQuarter{scale: b.Mul(most, 1.0/fixedMost)}
	q.high, q.low = fixedWords(b, v, inverse)
	ones := b.U32(0x01010101)
	sum := b.Add(b.Shl(b.DotI8(ones, q.high), 8), b.DotI8(ones, q.low))
	for mask := range 2 {
		sum = b.Add(sum, b.SubgroupShuffleXor(sum, 1<<mask))
	}
	q.total = b.Mul(q.scale, b.Convert(kernel.F32, sum))
	return q
}
