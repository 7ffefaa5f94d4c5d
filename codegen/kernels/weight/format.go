// Package weight reads weights in kernels. table.go has one row a layout, with a view for each kind of
// kernel: products in f32, dot products of bytes, matrices loaded from shared
// memory, and fragments that the lanes fill.
package weight

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
)

// Format is the view of a layout as floats: how a kernel reads a weight matrix in that
// layout. A lane takes a unit at a time: runs of consecutive
// elements, a stride apart. The units of a row cover its elements in another order,
// so that neighbours in a subgroup take neighbours in the row, and together load contiguous
// elements of x.
type Format struct {
	*Layout
	Name string // in kernel keys: the layout's, or a variant's for other row lengths
	// cols divides the row length.
	cols   int
	Unit   int // elements of a unit, at most 32
	Run    int // consecutive elements, a multiple of 4, that share a scale
	Stride int // from one run of a unit to the next
	// Scaled and offset say which terms Run has.
	Scaled, offset bool
	// bias is subtracted from every code.
	bias float64
	// Fetch emits the loads of unit u of a row. A kernel may keep the words in
	// variables before it decodes them.
	Fetch func(b *kernel.Builder, m Matrix, row, u kernel.Value) []kernel.Value
	// Decode returns the runs of unit u from the words that Fetch has loaded.
	Decode func(b *kernel.Builder, words []kernel.Value, u kernel.Value) []Run
	// DecodeOne is like Decode for a run whose number is known only at run time; nil
	// where units have few runs.
	DecodeOne func(b *kernel.Builder, words []kernel.Value, u kernel.Value) func(i kernel.Value) Run
}

// Run is a part of a unit: value = scale*(code-bias) + offset.
type Run struct {
	Codes         func(i int) kernel.Value // F32x4: elements 4i to 4i+3 of the run
	Scale, offset kernel.Value             // f32, if the format has them
}

// Matrix is a weight matrix in a kernel: rows x cols elements, row-major.
type Matrix struct {
	Format     *Format
	Buf        *kernel.Buffer
	Rows, Cols kernel.Value // known at specialization time, but for the rows of one of several
	// Halves: an f16 is loaded by itself. Otherwise lanes shift it out of the word around it, and wait for the load
	// right there.
	Halves bool
}

// halfAt is halfAt of the matrix.
func (m Matrix) halfAt(b *kernel.Builder, word, i kernel.Value) kernel.Value {
	if m.Halves {
		return m.Buf.Load16(b.Add(b.Mul(word, 2), i))
	}
	return halfAt(b, m.Buf, word, i)
}

// Load emits the loads of unit u of a row and returns its runs.
func (f *Format) Load(b *kernel.Builder, m Matrix, row, u kernel.Value) []Run {
	return f.Decode(b, f.Fetch(b, m, row, u), u)
}

// Runs returns how many runs a unit has.
func (f *Format) Runs() int { return f.Unit / f.Run }

// Begin returns the first element of unit u in its row: units are numbered
// through the gaps between the runs.
func (f *Format) Begin(b *kernel.Builder, u kernel.Value) kernel.Value {
	return beginOf(b, u, f.Unit, f.Run, f.Stride)
}

func beginOf(b *kernel.Builder, u kernel.Value, unit, run, stride int) kernel.Value {
	if unit == run {
		return b.Mul(u, unit)
	}
	gap := stride / run // units that lie in each other's gaps
	return b.Add(b.Mul(b.Div(u, gap), gap*unit), b.Mul(b.Mod(u, gap), run))
}

// At returns the offset of the i-th vec4 of a unit, in elements from the unit's first.
func (f *Format) At(i int) int { return 4*i/f.Run*f.Stride + 4*i%f.Run }

// Value returns elements 4i to 4i+3 of the run, rounded as ggml rounds them.
func (r Run) Value(b *kernel.Builder, f *Format, i int) kernel.Value {
	v := r.Codes(i)
	if f.bias != 0 {
		v = b.Sub(v, f.bias) // exact
	}
	if f.Scaled {
		v = b.Mul(v, b.Splat(r.Scale, 4))
	}
	if f.offset {
		v = b.Add(v, b.Splat(r.offset, 4))
	}
	return v
}

// Sums reports whether a run's product with x needs the sum of x.
func (f *Format) Sums() bool { return f.offset || f.bias != 0 }

// Shift returns the factor of the sum of x in a run's product.
func (r Run) Shift(b *kernel.Builder, f *Format) kernel.Value {
	if f.bias != 0 {
		return b.Mul(r.Scale, -f.bias)
	}
	return r.offset
}

// fieldUnit is what fields count in. Who scales a code or a sum of codes puts the
// power of two into the scale.
const fieldUnit = 1.0 / (1 << 24)

// fields returns the unsigned fields of some bits, from bit base up, of each of the
// four bytes of a U32, as F32x4 and in units of fieldUnit<<base. As a number of
// less than 11 bits such a field is a subnormal f16, so two of them cost an "and"
// and two conversions: less than any way to f32 through integers, on NVIDIA.
func fields(b *kernel.Builder, w kernel.Value, base, bits int) kernel.Value {
	mask := uint32(1<<bits-1) << base * 0x10001
	even := b.UnpackHalf(b.And(w, mask))
	odd := b.UnpackHalf(b.And(b.Shr(w, 8), mask))
	return b.Vec(b.Elem(even, 0), b.Elem(odd, 0), b.Elem(even, 1), b.Elem(odd, 1))
}

// nibbleToF32 returns the four nibbles from bit base up, less bias, as F32x4.
func nibbleToF32(b *kernel.Builder, w kernel.Value, base int, bias float64) kernel.Value {
	return b.FMA(fields(b, w, base, 4), 1/(fieldUnit*float64(uint32(1)<<base)), -bias)
}

// bytesToF32 returns the four unsigned bytes of a U32, less bias, as F32x4.
func bytesToF32(b *kernel.Builder, w kernel.Value, bias float64) kernel.Value {
	return b.FMA(fields(b, w, 0, 8), 1/fieldUnit, -bias)
}

// int8sToF32 returns the four signed bytes of a U32 as F32x4.
func int8sToF32(b *kernel.Builder, w kernel.Value) kernel.Value {
	return bytesToF32(b, b.Xor(w, uint32(0x80808080)), 128)
}

// halfAt returns the i-th f16 of a plane that starts at a word of the buffer, in
// the low half of a word.
func halfAt(b *kernel.Builder, buf *kernel.Buffer, word, i kernel.Value) kernel.Value {
	return b.Shr(buf.Load(kernel.U32, b.Add(word, b.Shr(i, 1))), b.Mul(b.And(i, 1), 16))
}

// LowHalf returns the f16 in the low half of a word.
func LowHalf(b *kernel.Builder, w kernel.Value) kernel.Value { return b.Elem(b.UnpackHalf(w), 0) }

// lowNibbles and highNibbles return the nibbles of each byte in bytes.
func lowNibbles(b *kernel.Builder, w kernel.Value) kernel.Value { return b.And(w, 0x0f0f0f0f) }

func highNibbles(b *kernel.Builder, w kernel.Value) kernel.Value {
	return b.And(b.Shr(w, 4), 0x0f0f0f0f)
}
