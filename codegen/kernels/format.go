package kernels

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/layout"
)

// format is one row of the format table: how a kernel reads a weight matrix that
// package layout has laid out. A lane takes a unit at a time: runs of consecutive
// elements, a stride apart. The units of a row are its elements in another order,
// such that neighbours in a subgroup take neighbours in the row: what they load of
// x together lies together.
type format struct {
	layout string // what layout.Format names
	name   string // in kernel keys: layout, or a variant for other row lengths
	// cols: the row length is a multiple of it.
	cols   int
	unit   int // elements of a unit, at most 32
	run    int // consecutive elements, a multiple of 4, that share a scale
	stride int // from one run of a unit to the next
	// scaled and offset say which terms run has.
	scaled, offset bool
	// bias is what to take from every code.
	bias float64
	// fetch emits the loads of unit u of a row. A kernel may keep the words in
	// variables before it decodes them.
	fetch func(b *kernel.Builder, m matrix, row, u kernel.Value) []kernel.Value
	// decode returns the runs of unit u from what fetch has loaded.
	decode func(b *kernel.Builder, words []kernel.Value, u kernel.Value) []run
	// decodeOne is decode for runs whose number is not known to the compiler; nil
	// where units have few.
	decodeOne func(b *kernel.Builder, words []kernel.Value, u kernel.Value) func(i kernel.Value) run
	dot       *dotFormat // how to read it for an x in fixed point; nil if it is not read so
}

// run is a part of a unit: value = scale*(code-bias) + offset.
type run struct {
	codes         func(i int) kernel.Value // f32x4: elements 4i to 4i+3 of the run
	scale, offset kernel.Value             // f32, if the format has them
}

// matrix is a weight matrix in a kernel: rows x cols elements, row-major.
type matrix struct {
	format     *format
	buf        *kernel.Buffer
	rows, cols kernel.Value // known at specialization time, but for the rows of one of several
}

// formats is the format table. The first row that fits is taken.
var formats = []*format{
	{layout: "f32", name: "f32", cols: 4, unit: 4, run: 4, fetch: fetchF32, decode: decodeF32},
	{layout: "f16", name: "f16", cols: 8, unit: 8, run: 8, fetch: fetchWide16, decode: decode16(halves)},
	{layout: "f16", name: "f16x4", cols: 4, unit: 4, run: 4, fetch: fetchNarrow16, decode: decode16(halves)},
	{layout: "bf16", name: "bf16", cols: 8, unit: 8, run: 8, fetch: fetchWide16, decode: decode16(brains)},
	{layout: "bf16", name: "bf16x4", cols: 4, unit: 4, run: 4, fetch: fetchNarrow16, decode: decode16(brains)},
	{layout: "q4_k", name: "q4_k", cols: 256, unit: 32, run: 8, stride: 32, scaled: true, offset: true, fetch: fetchQ4K, decode: decodeQ4K, decodeOne: decodeOneQ4K},
	{layout: "q5_k", name: "q5_k", cols: 256, unit: 32, run: 8, stride: 32, scaled: true, offset: true, fetch: fetchQ5K, decode: decodeQ5K, decodeOne: decodeOneQ5K},
	{layout: "q6_k", name: "q6_k", cols: 256, unit: 32, run: 8, stride: 32, scaled: true, bias: 32 * fieldUnit, fetch: fetchQ6K, decode: decodeQ6K, decodeOne: decodeOneQ6K},
	{layout: "q4_0", name: "q4_0", cols: 32, unit: 8, run: 4, stride: 16, scaled: true, fetch: fetchQ4_0, decode: decodeQ4_0},
	{layout: "q8_0", name: "q8_0", cols: 32, unit: 16, run: 16, scaled: true, fetch: fetchQ8_0, decode: decodeQ8_0},
	{layout: "affine16", name: "affine16", cols: 16, unit: 16, run: 16, scaled: true, fetch: fetchAffine(16, false), decode: decodeAffine},
	{layout: "affine16m", name: "affine16m", cols: 16, unit: 16, run: 16, scaled: true, offset: true, fetch: fetchAffine(16, true), decode: decodeAffine},
	{layout: "affine32", name: "affine32", cols: 32, unit: 16, run: 16, scaled: true, fetch: fetchAffine(32, false), decode: decodeAffine},
	{layout: "affine32m", name: "affine32m", cols: 32, unit: 16, run: 16, scaled: true, offset: true, fetch: fetchAffine(32, true), decode: decodeAffine},
}

func init() {
	for _, f := range formats {
		f.dot = dotFormatOf(f.layout)
	}
}

// formatOf returns how to read a weight of dtype d with rows of cols elements,
// nil if no kernel can.
func formatOf(d ir.DType, cols int) *format {
	name := layout.Format(d)
	for _, f := range formats {
		if f.layout == name && cols%f.cols == 0 {
			return f
		}
	}
	return nil
}

// load emits the loads of unit u of a row and returns its runs.
func (f *format) load(b *kernel.Builder, m matrix, row, u kernel.Value) []run {
	return f.decode(b, f.fetch(b, m, row, u), u)
}

// runs returns how many runs a unit has.
func (f *format) runs() int { return f.unit / f.run }

// begin returns the first element of unit u in its row: units are numbered
// through the gaps between the runs.
func (f *format) begin(b *kernel.Builder, u kernel.Value) kernel.Value {
	return beginOf(b, u, f.unit, f.run, f.stride)
}

func beginOf(b *kernel.Builder, u kernel.Value, unit, run, stride int) kernel.Value {
	if unit == run {
		return b.Mul(u, unit)
	}
	gap := stride / run // units that lie in each other's gaps
	return b.Add(b.Mul(b.Div(u, gap), gap*unit), b.Mul(b.Mod(u, gap), run))
}

// at returns where the i-th vec4 of a unit is, in elements after the unit's first.
func (f *format) at(i int) int { return 4*i/f.run*f.stride + 4*i%f.run }

// value returns elements 4i to 4i+3 of the run, rounded as ggml rounds them.
func (r run) value(b *kernel.Builder, f *format, i int) kernel.Value {
	v := r.codes(i)
	if f.bias != 0 {
		v = b.Sub(v, f.bias) // exact
	}
	if f.scaled {
		v = b.Mul(v, b.Splat(r.scale, 4))
	}
	if f.offset {
		v = b.Add(v, b.Splat(r.offset, 4))
	}
	return v
}

// sums reports whether a run's product with x needs the sum of x.
func (f *format) sums() bool { return f.offset || f.bias != 0 }

// shift returns what the sum of x is multiplied with in a run's product.
func (r run) shift(b *kernel.Builder, f *format) kernel.Value {
	if f.bias != 0 {
		return b.Mul(r.scale, -f.bias)
	}
	return r.offset
}

// fieldUnit is what fields count in. Who scales a code or a sum of codes puts the
// power of two into the scale.
const fieldUnit = 1.0 / (1 << 24)

// fields returns the unsigned fields of some bits, from bit base up, of each of the
// four bytes of a U32, as f32x4 and in units of fieldUnit<<base. As a number of
// less than 11 bits such a field is a subnormal f16, so two of them cost an "and"
// and two conversions: less than any way to f32 through integers, on NVIDIA.
func fields(b *kernel.Builder, w kernel.Value, base, bits int) kernel.Value {
	mask := uint32(1<<bits-1) << base * 0x10001
	even := b.UnpackHalf(b.And(w, mask))
	odd := b.UnpackHalf(b.And(b.Shr(w, 8), mask))
	return b.Vec(b.Elem(even, 0), b.Elem(odd, 0), b.Elem(even, 1), b.Elem(odd, 1))
}

// nibbleToF32 returns the four nibbles from bit base up, less bias, as f32x4.
func nibbleToF32(b *kernel.Builder, w kernel.Value, base int, bias float64) kernel.Value {
	return b.FMA(fields(b, w, base, 4), 1/(fieldUnit*float64(uint32(1)<<base)), -bias)
}

// bytesToF32 returns the four unsigned bytes of a U32, less bias, as f32x4.
func bytesToF32(b *kernel.Builder, w kernel.Value, bias float64) kernel.Value {
	return b.FMA(fields(b, w, 0, 8), 1/fieldUnit, -bias)
}

// int8sToF32 returns the four signed bytes of a U32 as f32x4.
func int8sToF32(b *kernel.Builder, w kernel.Value) kernel.Value {
	return bytesToF32(b, b.Xor(w, uint32(0x80808080)), 128)
}

// halfAt returns the i-th f16 of a plane that starts at a word of the buffer, in
// the low half of a word.
func halfAt(b *kernel.Builder, buf *kernel.Buffer, word, i kernel.Value) kernel.Value {
	return b.Shr(buf.Load(kernel.U32, b.Add(word, b.Shr(i, 1))), b.Mul(b.And(i, 1), 16))
}

// lowHalf returns the f16 in the low half of a word.
func lowHalf(b *kernel.Builder, w kernel.Value) kernel.Value { return b.Elem(b.UnpackHalf(w), 0) }

// lowNibbles and highNibbles return the nibbles of each byte in bytes.
func lowNibbles(b *kernel.Builder, w kernel.Value) kernel.Value { return b.And(w, 0x0f0f0f0f) }
func highNibbles(b *kernel.Builder, w kernel.Value) kernel.Value {
	return b.And(b.Shr(w, 4), 0x0f0f0f0f)
}
