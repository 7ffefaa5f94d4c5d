package weight

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
)

// DotFormat is one row of the table of layouts whose codes are bytes, to be multiplied
// with an x in fixed point by dot products of four bytes. The elements of a row are runs
// of 32, each of two halves. A lane takes a unit at a time. A unit is two halves, because one load
// of 16 bytes of nibbles has two: the first halves of two runs or, in the
// next unit, their second halves. So two neighbours share two runs; the unit
// of even number ends with the first: see dotUnit.product. Fields that type Format
// also has mean the same there.
type DotFormat struct {
	// Stride is the distance between the halves of a unit, in elements: that from run to run, or
	// 16 if a unit is a run.
	Stride int
	Offset bool
	// bias, if not 0, is subtracted from every code; then there are no other offsets.
	Bias  int
	Fine  bool // each half has a scale of its own
	bytes bool // codes are bytes in a plane
	Super bool // see dotUnit.super
	// Halves: scales are a plane with an f16 for each run.
	Halves bool
	Words  []kernel.Type // that fetch returns
	Fetch  func(b *kernel.Builder, m Matrix, row kernel.Value, u DotPlace) []kernel.Value
	// Decode returns unit u from the words that fetch has loaded.
	Decode func(b *kernel.Builder, words []kernel.Value, u kernel.Value) DotUnit
}

// dotUnit is a unit of a row: value = scale*code + offset, with the codes as signed bytes.
type DotUnit struct {
	Codes   [2][]kernel.Value // of the halves, four U32 each
	Times16 bool              // the second half's are 16 times as large, in unsigned bytes
	// Scales returns the scales of both halves if scales are fine, else the scale of the run with which the unit
	// ends.
	Scales func() []DotScale
	// super returns the factors of the halves in the sum over a super-block; nil for
	// formats without super-blocks.
	super func() superUnit
}

// superUnit is what the halves of a unit have of the scales of its super-block.
type superUnit struct {
	scales [2]kernel.Value // integers, as U32
	mins   [2]kernel.Value // if the format has them
	header kernel.Value    // of the super-block, two f16: what scales are multiplied by, and minimums
}

type DotScale struct{ Scale, Offset kernel.Value }

const (
	FixedRun  = 32
	FixedHalf = FixedRun / 2
	// DotUnitElements is the number of elements of a unit. A row has an even number of units.
	DotUnitElements = 32
)

// FitsDot reports whether rows of cols elements can be taken by the units of a DotFormat.
func FitsDot(cols int) bool { return cols%(2*DotUnitElements) == 0 }

// Whole reports whether a unit is a run.
func (f *DotFormat) Whole() bool { return f.Stride == FixedHalf }

// DotPlace is where a unit is in its row.
type DotPlace struct {
	unit   kernel.Value
	Half   kernel.Value // the number of its first half, and
	Stride int          // how many halves on the other is
	Run    kernel.Value // the run that it ends with, if its scales are not fine
}

// Place returns where unit u is.
func (f *DotFormat) Place(b *kernel.Builder, u kernel.Value) DotPlace {
	return DotPlace{u, b.Div(beginOf(b, u, DotUnitElements, FixedHalf, f.Stride), FixedHalf), f.Stride / FixedHalf, u}
}

// Wide reports whether lanes may take halves that are as far apart as a subgroup has lanes, as lanes of
// byte codes may: then neighbours load contiguous words in both loads.
func (f *DotFormat) Wide() bool { return f.bytes && !f.Fine }

// PlaceWide returns where unit u of a wide format is. The lanes' runs differ from those of Place:
// in a chunk of as many runs as a subgroup has lanes, the first half belongs to even lanes.
func (f *DotFormat) PlaceWide(b *kernel.Builder, u kernel.Value, wave int) DotPlace {
	chunk, laneID := b.Mul(b.Div(u, wave), wave), b.Mod(u, wave)
	return DotPlace{u, b.Add(b.Mul(chunk, 2), laneID), wave, b.Add(chunk, b.Shr(laneID, 1), b.Mul(b.And(laneID, 1), wave/2))}
}

// A super-block of q4_k and q5_k has 8 units. Unit j takes 16 elements each of
// the sub-blocks 2i and 2i+1, i = j/2, which are the low and the high nibbles of a
// vec4 of the block. It ends with sub-block j.

func fetchDotQ4K(b *kernel.Builder, m Matrix, row kernel.Value, at DotPlace) []kernel.Value {
	u := at.unit
	block := b.Mul(b.Add(b.Mul(row, b.Div(m.Cols, 256)), b.Shr(u, 3)), 9)
	return []kernel.Value{m.Buf.Load(lane.U32x4, block), m.Buf.Load(lane.U32x4, b.Add(block, 1, b.And(u, 7)))}
}

func decodeDotQ4K(b *kernel.Builder, words []kernel.Value, u kernel.Value) DotUnit {
	unit := minUnit(b, words[0], u)
	unit.Times16 = true
	for _, w := range lane.Elements(b, words[1]) {
		unit.Codes[0], unit.Codes[1] = append(unit.Codes[0], lowNibbles(b, w)), append(unit.Codes[1], b.And(w, uint32(0xf0f0f0f0)))
	}
	return unit
}

// minUnit has the scales of unit u of a super-block of q4_k or q5_k with that header.
func minUnit(b *kernel.Builder, header, u kernel.Value) DotUnit {
	return DotUnit{
		Scales: func() []DotScale { return []DotScale{subScale(b, header, b.And(u, 7))} },
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
	for _, w := range lane.Elements(b, v) {
		codes[0], codes[1] = append(codes[0], lowNibbles(b, w)), append(codes[1], highNibbles(b, w))
	}
	return codes
}

func fetchDotQ5K(b *kernel.Builder, m Matrix, row kernel.Value, at DotPlace) []kernel.Value {
	u := at.unit
	block := b.Mul(b.Add(b.Mul(row, b.Div(m.Cols, 256)), b.Shr(u, 3)), 11)
	return []kernel.Value{m.Buf.Load(lane.U32x4, block), m.Buf.Load(lane.U32x4, b.Add(block, 1, b.And(u, 1))),
		m.Buf.Load(lane.U32x4, b.Add(block, 3, b.And(u, 7)))}
}

func decodeDotQ5K(b *kernel.Builder, words []kernel.Value, u kernel.Value) DotUnit {
	unit := minUnit(b, words[0], u)
	unit.Codes = nibbleHalves(b, words[2])
	at := b.And(u, 6) // bits 0 and 1 of each byte from here on are ours
	for i, w := range lane.Elements(b, words[1]) {
		fifth := b.Shr(w, at)
		unit.Codes[0][i] = b.Or(unit.Codes[0][i], b.Shl(b.And(fifth, 0x01010101), 4))
		unit.Codes[1][i] = b.Or(unit.Codes[1][i], b.Shl(b.And(fifth, 0x02020202), 3))
	}
	return unit
}

// subScale returns the scale of sub-block i of a super-block of q4_k or q5_k, from its
// header: see minRuns.
func subScale(b *kernel.Builder, header, i kernel.Value) DotScale {
	shift := b.Mul(b.And(i, 3), 8)
	s, m, low := b.Shr(b.Elem(header, 1), shift), b.Shr(b.Elem(header, 2), shift), b.Shr(b.Elem(header, 3), shift)
	both := b.Or(b.And(s, 0xff), b.Shl(b.And(m, 0xff), 16)) // scale and minimum
	lows := b.Or(b.And(low, 0x0f), b.Shl(b.And(low, 0xf0), 12))
	of := b.UnpackHalf(b.Select(b.Ge(i, 4), b.Or(lows, b.And(b.Shr(both, 2), 0x300030)), b.And(both, 0x3f003f)))
	d := b.UnpackHalf(b.Elem(header, 0))
	return DotScale{b.Mul(b.Mul(b.Elem(d, 0), 1/fieldUnit), b.Elem(of, 0)), b.Mul(b.Mul(b.Elem(d, 1), -1/fieldUnit), b.Elem(of, 1))}
}

// A super-block of q6_k has 8 units. Unit j takes vec4 j%4 of the nibbles of half j/4: 16
// elements in the low ones and, 64 elements later, 16 in the high ones.

func fetchDotQ6K(b *kernel.Builder, m Matrix, row kernel.Value, at DotPlace) []kernel.Value {
	u := at.unit
	block := b.Add(b.Mul(row, b.Div(m.Cols, 256)), b.Shr(u, 3))
	half := b.And(b.Shr(u, 2), 1)
	blocks := b.Div(b.Mul(m.Rows, m.Cols), 256) // planes of 32, 16 and 4 words a block
	return []kernel.Value{
		m.Buf.Load(lane.U32x4, b.Add(b.Mul(block, 8), b.And(u, 7))),
		m.Buf.Load(lane.U32x4, b.Add(b.Mul(blocks, 8), b.Mul(block, 4), b.Mul(half, 2), b.And(u, 1))),
		m.Buf.Load(lane.U32x2, b.Add(b.Mul(blocks, 24), b.Mul(block, 2), half)),
		halfAt(b, m.Buf, b.Mul(blocks, 52), block),
	}
}

func decodeDotQ6K(b *kernel.Builder, words []kernel.Value, u kernel.Value) DotUnit {
	unit := DotUnit{Codes: nibbleHalves(b, words[0])}
	second := b.And(u, 2) // the row of nibbles, times 2: bit pairs 0 and 2, or 1 and 3, are ours
	for i := range 4 {
		w, pairs := b.Elem(words[0], i), b.Shr(b.Elem(words[1], i), second)
		unit.Codes[0][i] = b.Or(unit.Codes[0][i], b.Shl(b.And(pairs, 0x03030303), 4))
		unit.Codes[1][i] = b.Or(highNibbles(b, w), b.And(pairs, 0x30303030))
	}
	at := b.Mul(b.And(u, 3), 8)
	scale := func(j int) kernel.Value { return b.BitExtract(b.Bitcast(kernel.I32, b.Elem(words[2], j)), at, 8) }
	unit.Scales = func() (list []DotScale) {
		for j := range 2 {
			list = append(list, DotScale{Scale: b.Mul(LowHalf(b, words[3]), b.Convert(kernel.F32, scale(j)))})
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

func fetchDotQ4_0(b *kernel.Builder, m Matrix, row kernel.Value, u DotPlace) []kernel.Value {
	at := b.Add(b.Mul(row, b.Div(m.Cols, FixedRun)), u.Run)
	return []kernel.Value{m.Buf.Load(lane.U32x4, at), m.halfAt(b, b.Div(b.Mul(m.Rows, m.Cols), 8), at)}
}

func decodeDotQ4_0(b *kernel.Builder, words []kernel.Value, _ kernel.Value) DotUnit {
	return DotUnit{Codes: nibbleHalves(b, words[0]), Scales: func() []DotScale { return []DotScale{{Scale: LowHalf(b, words[1])}} }}
}

// byteHalves loads of a plane of bytes, 16 to a vec4, the halves of a unit. at is the number
// of the first of the two in the matrix.
func byteHalves(b *kernel.Builder, m Matrix, row kernel.Value, u DotPlace) (words []kernel.Value, at kernel.Value) {
	at = b.Add(b.Mul(row, b.Div(m.Cols, FixedHalf)), u.Half)
	return []kernel.Value{m.Buf.Load(lane.U32x4, at), m.Buf.Load(lane.U32x4, b.Add(at, u.Stride))}, at
}

func byteCodes(b *kernel.Builder, words []kernel.Value) [2][]kernel.Value {
	return [2][]kernel.Value{lane.Elements(b, words[0]), lane.Elements(b, words[1])}
}

func fetchDotQ8_0(b *kernel.Builder, m Matrix, row kernel.Value, u DotPlace) []kernel.Value {
	words, _ := byteHalves(b, m, row, u)
	run := b.Add(b.Mul(row, b.Div(m.Cols, FixedRun)), u.Run)
	return append(words, m.halfAt(b, b.Div(b.Mul(m.Rows, m.Cols), 4), run))
}

func decodeDotQ8_0(b *kernel.Builder, words []kernel.Value, _ kernel.Value) DotUnit {
	return DotUnit{Codes: byteCodes(b, words), Scales: func() []DotScale { return []DotScale{{Scale: LowHalf(b, words[2])}} }}
}
