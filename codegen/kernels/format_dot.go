package kernels

import "github.com/zincc-dev/zincc/codegen/kernel"

// dotFormat is one row of the table of layouts whose codes are bytes, to be multiplied
// with an x in fixed point by dot products of four bytes. The elements of a row are runs
// of 32, each of two halves. A lane takes a unit at a time, which is two halves, as that
// is what one load of 16 bytes of nibbles has: the first halves of two runs or, in the
// next unit, their second halves. So two neighbours have two runs between them, of which
// unit u, if its number is even, ends with the first: see dotUnit.product. What a format
// shares with type format means the same there.
type dotFormat struct {
	layout string
	// stride is from one half of a unit to the other, in elements: that from run to run, or
	// 16 where a unit is a run.
	stride int
	offset bool
	// bias, if not 0, is what to take from every code; then there are no other offsets.
	bias  int
	fine  bool          // each half has a scale of its own
	bytes bool          // codes are bytes in a plane
	super bool          // see dotUnit.super
	words []kernel.Type // that fetch returns
	fetch func(b *kernel.Builder, m matrix, row kernel.Value, u dotPlace) []kernel.Value
	// decode returns unit u from what fetch has loaded.
	decode func(b *kernel.Builder, words []kernel.Value, u kernel.Value) dotUnit
}

// dotUnit is a unit of a row: value = scale*code + offset, with the codes as signed bytes.
type dotUnit struct {
	codes   [2][]kernel.Value // of the halves, four U32 each
	times16 bool              // the second half's are 16 times as large, in unsigned bytes
	// scales returns those of both halves if they are fine, else that of the run that the unit
	// ends with.
	scales func() []dotScale
	// super returns what the halves are multiplied by in the sum over a super-block; nil for
	// formats that have none.
	super func() superUnit
}

// superUnit is what the halves of a unit have of the scales of its super-block.
type superUnit struct {
	scales [2]kernel.Value // integers, as U32
	mins   [2]kernel.Value // if the format has them
	header kernel.Value    // of the super-block, two f16: what scales are multiplied by, and minimums
}

type dotScale struct{ scale, offset kernel.Value }

const (
	fixedRun  = 32
	fixedHalf = fixedRun / 2
	// dotUnitElements is the elements of a unit. A row has an even number of units.
	dotUnitElements = 32
)

// fitsDot reports whether rows of cols elements can be taken by the units of a dotFormat.
func fitsDot(cols int) bool { return cols%(2*dotUnitElements) == 0 }

var dotFormats = []*dotFormat{
	{layout: "q4_k", super: true, stride: 32, offset: true, words: []kernel.Type{u32x4, u32x4}, fetch: fetchDotQ4K, decode: decodeDotQ4K},
	{layout: "q5_k", super: true, stride: 32, offset: true, words: []kernel.Type{u32x4, u32x4, u32x4}, fetch: fetchDotQ5K, decode: decodeDotQ5K},
	{layout: "q6_k", super: true, stride: 64, offset: true, bias: 32, fine: true, words: []kernel.Type{u32x4, u32x4, u32x2, kernel.U32}, fetch: fetchDotQ6K, decode: decodeDotQ6K},
	{layout: "q4_0", stride: 16, offset: true, bias: 8, words: []kernel.Type{u32x4, kernel.U32}, fetch: fetchDotQ4_0, decode: decodeDotQ4_0},
	{layout: "q8_0", stride: 32, bytes: true, words: []kernel.Type{u32x4, u32x4, kernel.U32}, fetch: fetchDotQ8_0, decode: decodeDotQ8_0},
	{layout: "affine16", stride: 32, bytes: true, fine: true, words: floatsBehind(2), fetch: fetchDotAffine(16, false), decode: decodeDotAffine(2, false)},
	{layout: "affine16m", stride: 32, bytes: true, offset: true, fine: true, words: floatsBehind(4), fetch: fetchDotAffine(16, true), decode: decodeDotAffine(2, true)},
	{layout: "affine32", stride: 32, bytes: true, words: floatsBehind(1), fetch: fetchDotAffine(32, false), decode: decodeDotAffine(1, false)},
	{layout: "affine32m", stride: 32, bytes: true, offset: true, words: floatsBehind(2), fetch: fetchDotAffine(32, true), decode: decodeDotAffine(1, true)},
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

// whole reports whether a unit is a run.
func (f *dotFormat) whole() bool { return f.stride == fixedHalf }

// dotPlace is where a unit is in its row.
type dotPlace struct {
	unit   kernel.Value
	half   kernel.Value // the number of its first half, and
	stride int          // how many halves on the other is
	run    kernel.Value // the run that it ends with, if its scales are not fine
}

// place returns where unit u is.
func (f *dotFormat) place(b *kernel.Builder, u kernel.Value) dotPlace {
	return dotPlace{u, b.Div(beginOf(b, u, dotUnitElements, fixedHalf, f.stride), fixedHalf), f.stride / fixedHalf, u}
}

// wide reports whether lanes may take halves as far apart as a subgroup has lanes, as those
// of bytes may: neighbours load what lies together in both loads.
func (f *dotFormat) wide() bool { return f.bytes && !f.fine }

// placeWide returns where unit u of a wide format is. The lanes' runs are not those of place:
// of a chunk of as many runs as a subgroup has lanes, the first half are those of even lanes.
func (f *dotFormat) placeWide(b *kernel.Builder, u kernel.Value, wave int) dotPlace {
	chunk, lane := b.Mul(b.Div(u, wave), wave), b.Mod(u, wave)
	return dotPlace{u, b.Add(b.Mul(chunk, 2), lane), wave, b.Add(chunk, b.Shr(lane, 1), b.Mul(b.And(lane, 1), wave/2))}
}

// Of the 8 units of a super-block of q4_k and q5_k, unit j takes 16 elements each of
// the sub-blocks 2i and 2i+1, i = j/2, which are the low and the high nibbles of a
// vec4 of the block. It ends with sub-block j.

func fetchDotQ4K(b *kernel.Builder, m matrix, row kernel.Value, at dotPlace) []kernel.Value {
	u := at.unit
	block := b.Mul(b.Add(b.Mul(row, b.Div(m.cols, 256)), b.Shr(u, 3)), 9)
	return []kernel.Value{m.buf.Load(u32x4, block), m.buf.Load(u32x4, b.Add(block, 1, b.And(u, 7)))}
}

func decodeDotQ4K(b *kernel.Builder, words []kernel.Value, u kernel.Value) dotUnit {
	unit := minUnit(b, words[0], u)
	unit.times16 = true
	for _, w := range elements(b, words[1]) {
		unit.codes[0], unit.codes[1] = append(unit.codes[0], lowNibbles(b, w)), append(unit.codes[1], b.And(w, uint32(0xf0f0f0f0)))
	}
	return unit
}

// minUnit has the scales of unit u of a super-block of q4_k or q5_k with that header.
func minUnit(b *kernel.Builder, header, u kernel.Value) dotUnit {
	return dotUnit{
		scales: func() []dotScale { return []dotScale{subScale(b, header, b.And(u, 7))} },
		super: func() superUnit {
			words := subWords(b, header, b.And(b.Shr(u, 1), 1))
			w := b.Select(b.Ge(b.And(u, 7), 4), words[1], words[0])
			of := func(i int) kernel.Value { return b.BitExtract(w, 8*i, 8) }
			return superUnit{[2]kernel.Value{of(0), of(1)}, [2]kernel.Value{of(2), of(3)}, b.Elem(header, 0)}
		},
	}
}

// nibbleHalves returns the low and the high nibbles of a vec4 as bytes.
func nibbleHalves(b *kernel.Builder, v kernel.Value) (codes [2][]kernel.Value) {
	for _, w := range elements(b, v) {
		codes[0], codes[1] = append(codes[0], lowNibbles(b, w)), append(codes[1], highNibbles(b, w))
	}
	return codes
}

func fetchDotQ5K(b *kernel.Builder, m matrix, row kernel.Value, at dotPlace) []kernel.Value {
	u := at.unit
	block := b.Mul(b.Add(b.Mul(row, b.Div(m.cols, 256)), b.Shr(u, 3)), 11)
	return []kernel.Value{m.buf.Load(u32x4, block), m.buf.Load(u32x4, b.Add(block, 1, b.And(u, 1))),
		m.buf.Load(u32x4, b.Add(block, 3, b.And(u, 7)))}
}

func decodeDotQ5K(b *kernel.Builder, words []kernel.Value, u kernel.Value) dotUnit {
	unit := minUnit(b, words[0], u)
	unit.codes = nibbleHalves(b, words[2])
	at := b.And(u, 6) // bits 0 and 1 of each byte from here on are ours
	for i, w := range elements(b, words[1]) {
		fifth := b.Shr(w, at)
		unit.codes[0][i] = b.Or(unit.codes[0][i], b.Shl(b.And(fifth, 0x01010101), 4))
		unit.codes[1][i] = b.Or(unit.codes[1][i], b.Shl(b.And(fifth, 0x02020202), 3))
	}
	return unit
}

// subScale returns the scale of sub-block i of a super-block of q4_k or q5_k, from its
// header: see minRuns.
func subScale(b *kernel.Builder, header, i kernel.Value) dotScale {
	shift := b.Mul(b.And(i, 3), 8)
	s, m, low := b.Shr(b.Elem(header, 1), shift), b.Shr(b.Elem(header, 2), shift), b.Shr(b.Elem(header, 3), shift)
	both := b.Or(b.And(s, 0xff), b.Shl(b.And(m, 0xff), 16)) // scale and minimum
	lows := b.Or(b.And(low, 0x0f), b.Shl(b.And(low, 0xf0), 12))
	of := b.UnpackHalf(b.Select(b.Ge(i, 4), b.Or(lows, b.And(b.Shr(both, 2), 0x300030)), b.And(both, 0x3f003f)))
	d := b.UnpackHalf(b.Elem(header, 0))
	return dotScale{b.Mul(b.Mul(b.Elem(d, 0), 1/fieldUnit), b.Elem(of, 0)), b.Mul(b.Mul(b.Elem(d, 1), -1/fieldUnit), b.Elem(of, 1))}
}

// Of the 8 units of a super-block of q6_k, unit j takes of half j/4 the vec4 j%4 of
// nibbles: 16 elements in the low ones and, 64 elements later, 16 in the high ones.

func fetchDotQ6K(b *kernel.Builder, m matrix, row kernel.Value, at dotPlace) []kernel.Value {
	u := at.unit
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

func decodeDotQ6K(b *kernel.Builder, words []kernel.Value, u kernel.Value) dotUnit {
	unit := dotUnit{codes: nibbleHalves(b, words[0])}
	second := b.And(u, 2) // the row of nibbles, times 2: bit pairs 0 and 2, or 1 and 3, are ours
	for i := range 4 {
		w, pairs := b.Elem(words[0], i), b.Shr(b.Elem(words[1], i), second)
		unit.codes[0][i] = b.Or(unit.codes[0][i], b.Shl(b.And(pairs, 0x03030303), 4))
		unit.codes[1][i] = b.Or(highNibbles(b, w), b.And(pairs, 0x30303030))
	}
	at := b.Mul(b.And(u, 3), 8)
	scale := func(j int) kernel.Value { return b.BitExtract(b.Bitcast(kernel.I32, b.Elem(words[2], j)), at, 8) }
	unit.scales = func() (list []dotScale) {
		for j := range 2 {
			list = append(list, dotScale{scale: b.Mul(lowHalf(b, words[3]), b.Convert(kernel.F32, scale(j)))})
		}
		return
	}
	unit.super = func() superUnit {
		of := func(j int) kernel.Value { return b.Bitcast(kernel.U32, scale(j)) }
		return superUnit{scales: [2]kernel.Value{of(0), of(1)}, header: words[3]}
	}
	return unit
}

// A unit of q4_0 is a block: the 16 elements in the low nibbles and those in the high ones.

func fetchDotQ4_0(b *kernel.Builder, m matrix, row kernel.Value, u dotPlace) []kernel.Value {
	at := b.Add(b.Mul(row, b.Div(m.cols, fixedRun)), u.run)
	return []kernel.Value{m.buf.Load(u32x4, at), halfAt(b, m.buf, b.Div(b.Mul(m.rows, m.cols), 8), at)}
}

func decodeDotQ4_0(b *kernel.Builder, words []kernel.Value, _ kernel.Value) dotUnit {
	return dotUnit{codes: nibbleHalves(b, words[0]), scales: func() []dotScale { return []dotScale{{scale: lowHalf(b, words[1])}} }}
}

// byteHalves loads of a plane of bytes, 16 to a vec4, the halves of a unit. at is the number
// of the first of the two in the matrix.
func byteHalves(b *kernel.Builder, m matrix, row kernel.Value, u dotPlace) (words []kernel.Value, at kernel.Value) {
	at = b.Add(b.Mul(row, b.Div(m.cols, fixedHalf)), u.half)
	return []kernel.Value{m.buf.Load(u32x4, at), m.buf.Load(u32x4, b.Add(at, u.stride))}, at
}

func byteCodes(b *kernel.Builder, words []kernel.Value) [2][]kernel.Value {
	return [2][]kernel.Value{elements(b, words[0]), elements(b, words[1])}
}

func fetchDotQ8_0(b *kernel.Builder, m matrix, row kernel.Value, u dotPlace) []kernel.Value {
	words, _ := byteHalves(b, m, row, u)
	run := b.Add(b.Mul(row, b.Div(m.cols, fixedRun)), u.run)
	return append(words, halfAt(b, m.buf, b.Div(b.Mul(m.rows, m.cols), 4), run))
}

func decodeDotQ8_0(b *kernel.Builder, words []kernel.Value, _ kernel.Value) dotUnit {
	return dotUnit{codes: byteCodes(b, words), scales: func() []dotScale { return []dotScale{{scale: lowHalf(b, words[2])}} }}
}

// floatsBehind is the words of two vec4 of bytes and some scales and offsets.
func floatsBehind(floats int) []kernel.Type {
	types := []kernel.Type{u32x4, u32x4}
	for range floats {
		types = append(types, kernel.F32)
	}
	return types
}

// fetchDotAffine loads what fetchAffine does: behind the bytes a scale and maybe an offset
// of the run that the unit ends with or, in groups of 16, of both halves.
func fetchDotAffine(group int, offset bool) func(b *kernel.Builder, m matrix, row kernel.Value, u dotPlace) []kernel.Value {
	return func(b *kernel.Builder, m matrix, row kernel.Value, u dotPlace) []kernel.Value {
		words, at := byteHalves(b, m, row, u)
		groups := []kernel.Value{at, b.Add(at, u.stride)}
		if group == fixedRun {
			groups = []kernel.Value{b.Add(b.Mul(row, b.Div(m.cols, fixedRun)), u.run)}
		}
		p := affinePlanes(b, m, group)
		for _, i := range groups {
			words = append(words, m.buf.Load(kernel.F32, b.Add(p.scales, i)))
			if offset {
				words = append(words, m.buf.Load(kernel.F32, b.Add(p.offsets, i)))
			}
		}
		return words
	}
}

func decodeDotAffine(scales int, offset bool) func(b *kernel.Builder, words []kernel.Value, _ kernel.Value) dotUnit {
	return func(b *kernel.Builder, words []kernel.Value, _ kernel.Value) dotUnit {
		return dotUnit{codes: byteCodes(b, words), scales: func() (list []dotScale) {
			floats := words[2:]
			for range scales {
				s := dotScale{scale: floats[0]}
				if floats = floats[1:]; offset {
					s.offset, floats = floats[0], floats[1:]
				}
				list = append(list, s)
			}
			return
		}}
	}
}
