package kernel_test

import (
	"math"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// inputs are the operands of one lane: three U32, whose bits are the I32 too,
// and three F32.
type inputs struct {
	u [3]uint32
	f [3]float32
}

func (in inputs) i(k int) int32 { return int32(in.u[k]) }

// operands are the same as Values.
type operands struct{ u, i, f [3]kernel.Value }

func word(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// semantics says of every operation on scalars what it computes. Words are
// compared as such; with rel, as floats within that relative error.
var semantics = []struct {
	name string
	make func(b *kernel.Builder, v operands) kernel.Value
	want func(in inputs) uint32
	rel  float64
}{
	{"add u32", func(b *kernel.Builder, v operands) kernel.Value { return b.Add(v.u[0], v.u[1], 7) }, func(in inputs) uint32 { return in.u[0] + in.u[1] + 7 }, 0},
	{"sub i32", func(b *kernel.Builder, v operands) kernel.Value { return b.Sub(v.i[0], v.i[1]) }, func(in inputs) uint32 { return in.u[0] - in.u[1] }, 0},
	{"mul u32", func(b *kernel.Builder, v operands) kernel.Value { return b.Mul(v.u[0], v.u[1]) }, func(in inputs) uint32 { return in.u[0] * in.u[1] }, 0},
	{"div u32", func(b *kernel.Builder, v operands) kernel.Value { return b.Div(v.u[0], v.u[1]) }, func(in inputs) uint32 { return in.u[0] / in.u[1] }, 0},
	{"div i32", func(b *kernel.Builder, v operands) kernel.Value { return b.Div(v.i[0], v.i[1]) }, func(in inputs) uint32 { return uint32(in.i(0) / in.i(1)) }, 0},
	{"mod u32", func(b *kernel.Builder, v operands) kernel.Value { return b.Mod(v.u[0], v.u[1]) }, func(in inputs) uint32 { return in.u[0] % in.u[1] }, 0},
	{"mod i32", func(b *kernel.Builder, v operands) kernel.Value { return b.Mod(v.i[0], v.i[1]) }, func(in inputs) uint32 { return uint32(in.i(0) % in.i(1)) }, 0},
	{"shl", func(b *kernel.Builder, v operands) kernel.Value { return b.Shl(v.u[0], b.And(v.u[1], 31)) }, func(in inputs) uint32 { return in.u[0] << (in.u[1] & 31) }, 0},
	{"shr u32", func(b *kernel.Builder, v operands) kernel.Value { return b.Shr(v.u[0], 3) }, func(in inputs) uint32 { return in.u[0] >> 3 }, 0},
	{"shr i32", func(b *kernel.Builder, v operands) kernel.Value { return b.Shr(v.i[0], 3) }, func(in inputs) uint32 { return uint32(in.i(0) >> 3) }, 0},
	{"logic", func(b *kernel.Builder, v operands) kernel.Value {
		return b.Xor(b.And(v.u[0], v.u[1]), b.Or(b.Not(v.u[0]), v.u[2]))
	}, func(in inputs) uint32 { return in.u[0]&in.u[1] ^ (^in.u[0] | in.u[2]) }, 0},
	{"min u32", func(b *kernel.Builder, v operands) kernel.Value { return b.Min(v.u[0], v.u[1]) }, func(in inputs) uint32 { return min(in.u[0], in.u[1]) }, 0},
	{"max i32", func(b *kernel.Builder, v operands) kernel.Value { return b.Max(v.i[0], v.i[1]) }, func(in inputs) uint32 { return uint32(max(in.i(0), in.i(1))) }, 0},
	{"abs i32", func(b *kernel.Builder, v operands) kernel.Value { return b.Abs(b.Shr(v.i[0], 1)) }, func(in inputs) uint32 { return uint32(max(in.i(0)>>1, -(in.i(0) >> 1))) }, 0},
	{"neg i32", func(b *kernel.Builder, v operands) kernel.Value { return b.Neg(v.i[0]) }, func(in inputs) uint32 { return -in.u[0] }, 0},
	{"bit_extract u32", func(b *kernel.Builder, v operands) kernel.Value { return b.BitExtract(v.u[0], 4, 6) }, func(in inputs) uint32 { return in.u[0] >> 4 & 63 }, 0},
	{"bit_extract i32", func(b *kernel.Builder, v operands) kernel.Value { return b.BitExtract(v.i[0], 8, 8) }, func(in inputs) uint32 { return uint32(int8(in.u[0] >> 8)) }, 0},
	{"lt u32", func(b *kernel.Builder, v operands) kernel.Value { return b.Lt(v.u[0], v.u[1]) }, func(in inputs) uint32 { return word(in.u[0] < in.u[1]) }, 0},
	{"ge i32", func(b *kernel.Builder, v operands) kernel.Value { return b.Ge(v.i[0], v.i[1]) }, func(in inputs) uint32 { return word(in.i(0) >= in.i(1)) }, 0},
	{"le f32", func(b *kernel.Builder, v operands) kernel.Value { return b.Le(v.f[0], v.f[1]) }, func(in inputs) uint32 { return word(in.f[0] <= in.f[1]) }, 0},
	{"ne bool", func(b *kernel.Builder, v operands) kernel.Value {
		return b.Ne(b.Gt(v.u[0], v.u[1]), b.Eq(v.u[0], v.u[0]))
	}, func(in inputs) uint32 { return word((in.u[0] > in.u[1]) != true) }, 0},
	{"select", func(b *kernel.Builder, v operands) kernel.Value {
		return b.Select(b.Lt(v.f[0], v.f[1]), v.u[0], v.u[1])
	}, func(in inputs) uint32 {
		if in.f[0] < in.f[1] {
			return in.u[0]
		}
		return in.u[1]
	}, 0},
	{"table", func(b *kernel.Builder, v operands) kernel.Value {
		return b.Table(kernel.U32, 4, []uint32{9, 4, 1, 0xfffffff0}, nil).Load(b.And(v.u[0], 3))
	}, func(in inputs) uint32 { return []uint32{9, 4, 1, 0xfffffff0}[in.u[0]&3] }, 0},
	{"table of pairs", func(b *kernel.Builder, v operands) kernel.Value {
		pair := b.Table(kernel.U32.Vec(2), 60, tableOfPairs(), pairsOf(b)).Load(b.Mod(v.u[0], 60))
		return b.Sub(b.Elem(pair, 0), b.Elem(pair, 1))
	}, func(in inputs) uint32 {
		words := tableOfPairs()
		return words[in.u[0]%60*2] - words[in.u[0]%60*2+1]
	}, 0},
	{"add f32", func(b *kernel.Builder, v operands) kernel.Value { return b.Add(v.f[0], v.f[1]) }, func(in inputs) uint32 { return math.Float32bits(in.f[0] + in.f[1]) }, 0},
	{"no contraction", func(b *kernel.Builder, v operands) kernel.Value { return b.Add(b.Mul(v.f[0], v.f[1]), v.f[2]) }, func(in inputs) uint32 {
		return math.Float32bits(float32(in.f[0]*in.f[1]) + in.f[2])
	}, 0},
	{"fma", func(b *kernel.Builder, v operands) kernel.Value { return b.FMA(v.f[0], v.f[1], v.f[2]) }, func(in inputs) uint32 {
		return math.Float32bits(float32(math.FMA(float64(in.f[0]), float64(in.f[1]), float64(in.f[2]))))
	}, 1e-5},
	{"div f32", func(b *kernel.Builder, v operands) kernel.Value { return b.Div(v.f[0], v.f[1]) }, func(in inputs) uint32 { return math.Float32bits(in.f[0] / in.f[1]) }, 1e-6},
	{"min f32", func(b *kernel.Builder, v operands) kernel.Value { return b.Min(v.f[0], v.f[1]) }, func(in inputs) uint32 { return math.Float32bits(min(in.f[0], in.f[1])) }, 0},
	{"clamp", func(b *kernel.Builder, v operands) kernel.Value { return b.Clamp(v.f[0], -1, 1.5) }, func(in inputs) uint32 { return math.Float32bits(min(max(in.f[0], -1), 1.5)) }, 0},
	{"neg abs", func(b *kernel.Builder, v operands) kernel.Value { return b.Neg(b.Abs(v.f[0])) }, func(in inputs) uint32 { return math.Float32bits(in.f[0]) | 1<<31 }, 0},
	floatOp("sqrt", func(b *kernel.Builder, x kernel.Value) kernel.Value { return b.Sqrt(b.Abs(x)) }, func(x float64) float64 { return math.Sqrt(math.Abs(x)) }, 1e-6),
	floatOp("inverse_sqrt", func(b *kernel.Builder, x kernel.Value) kernel.Value { return b.InverseSqrt(b.Abs(x)) }, func(x float64) float64 { return 1 / math.Sqrt(math.Abs(x)) }, 1e-6),
	floatOp("exp", func(b *kernel.Builder, x kernel.Value) kernel.Value { return b.Exp(x) }, math.Exp, 1e-4),
	floatOp("exp2", func(b *kernel.Builder, x kernel.Value) kernel.Value { return b.Exp2(x) }, math.Exp2, 1e-4),
	{"is_nan", func(b *kernel.Builder, v operands) kernel.Value {
		return b.IsNaN(b.Bitcast(kernel.F32, b.Or(v.u[0], 0x7fc00000)))
	}, func(inputs) uint32 { return 1 }, 0},
	{"convert u32 f32", func(b *kernel.Builder, v operands) kernel.Value { return b.Convert(kernel.F32, v.u[0]) }, func(in inputs) uint32 { return math.Float32bits(float32(in.u[0])) }, 1e-7},
	{"convert i32 f32", func(b *kernel.Builder, v operands) kernel.Value { return b.Convert(kernel.F32, v.i[0]) }, func(in inputs) uint32 { return math.Float32bits(float32(in.i(0))) }, 0},
	{"convert f32 i32", func(b *kernel.Builder, v operands) kernel.Value { return b.Convert(kernel.I32, v.f[0]) }, func(in inputs) uint32 { return uint32(int32(in.f[0])) }, 0},
	{"convert f32 u32", func(b *kernel.Builder, v operands) kernel.Value { return b.Convert(kernel.U32, b.Abs(v.f[0])) }, func(in inputs) uint32 { return uint32(max(in.f[0], -in.f[0])) }, 0},
	{"half", func(b *kernel.Builder, v operands) kernel.Value {
		return b.PackHalf(b.UnpackHalf(b.And(v.u[0], 0xbbffbbff)))
	}, func(in inputs) uint32 { return in.u[0] & 0xbbffbbff }, 0},
	{"fma_half", func(b *kernel.Builder, v operands) kernel.Value {
		const one, less = 0x3c003c00, uint32(0xe420e420) // 1 and -1056
		return b.FMAHalf(b.Or(b.And(v.u[0], 0x00ff00ff), 0x64006400), one, less)
	}, func(in inputs) uint32 {
		less := func(x uint32) uint32 { return uint32(gguf.F32ToF16(float32(x&0xff) - 32)) }
		return less(in.u[0]) | less(in.u[0]>>16)<<16
	}, 0},
	{"pair_halves", func(b *kernel.Builder, v operands) kernel.Value {
		lower, upper := b.PairHalves(b.And(v.u[0], 0xbbffbbff), b.And(v.u[1], 0xbbffbbff)) // no NaN, whose bits may change
		return b.Xor(lower, b.Shl(upper, 1))
	}, func(in inputs) uint32 {
		x, y := in.u[0]&0xbbffbbff, in.u[1]&0xbbffbbff
		return (x&0xffff | y<<16) ^ (x>>16|y&0xffff0000)<<1
	}, 0},
	{"permute", func(b *kernel.Builder, v operands) kernel.Value { return b.Permute(v.u[0], v.u[1], v.u[2]) }, func(in inputs) (bytes uint32) {
		for i := range 4 {
			nibble := in.u[2] >> (4 * i) & 15
			chosen := int8(in.u[nibble&7/4] >> (nibble & 3 * 8))
			if nibble > 7 {
				chosen >>= 7
			}
			bytes |= uint32(uint8(chosen)) << (8 * i)
		}
		return bytes
	}, 0},
	{"dot_i8", func(b *kernel.Builder, v operands) kernel.Value { return b.DotI8(v.u[0], v.u[1]) }, func(in inputs) uint32 {
		sum := int32(0)
		for s := 0; s < 32; s += 8 {
			sum += int32(int8(in.u[0]>>s)) * int32(int8(in.u[1]>>s))
		}
		return uint32(sum)
	}, 0},
	{"dot_u8", func(b *kernel.Builder, v operands) kernel.Value { return b.DotU8(v.u[0], v.u[1]) }, func(in inputs) uint32 {
		sum := int32(0)
		for s := 0; s < 32; s += 8 {
			sum += int32(int8(in.u[0]>>s)) * int32(uint8(in.u[1]>>s))
		}
		return uint32(sum)
	}, 0},
	{"elem", func(b *kernel.Builder, v operands) kernel.Value {
		return b.Elem(b.Vec(v.u[0], v.u[1], v.u[2], 5), b.And(v.u[0], 3))
	}, func(in inputs) uint32 { return []uint32{in.u[0], in.u[1], in.u[2], 5}[in.u[0]&3] }, 0},
}

func floatOp(name string, op func(b *kernel.Builder, x kernel.Value) kernel.Value, want func(float64) float64, rel float64) (row struct {
	name string
	make func(b *kernel.Builder, v operands) kernel.Value
	want func(in inputs) uint32
	rel  float64
}) {
	row.name, row.rel = name, rel
	row.make = func(b *kernel.Builder, v operands) kernel.Value { return op(b, v.f[0]) }
	row.want = func(in inputs) uint32 { return math.Float32bits(float32(want(float64(in.f[0])))) }
	return row
}

// TestSemantics runs every operation on 64 lanes of operands.
func TestSemantics(t *testing.T) {
	const lanes = 64
	build := func(b *kernel.Builder) {
		u, f, y := b.Arg("u", kernel.Read), b.Arg("f", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(lanes)
		lane := b.LocalID()
		var v operands
		for k := range 3 {
			at := b.Add(lane, lanes*k)
			v.u[k], v.i[k], v.f[k] = u.Load(kernel.U32, at), u.Load(kernel.I32, at), f.Load(kernel.F32, at)
		}
		for n, s := range semantics {
			r := s.make(b, v)
			if r.Type() == kernel.Bool {
				r = b.Convert(kernel.U32, r)
			}
			y.Store(b.Add(lane, lanes*n), r)
		}
	}
	u, f := make([]uint32, 3*lanes), make([]uint32, 3*lanes)
	state := uint32(12345)
	for i := range u {
		state = state*1664525 + 1013904223
		u[i] = state>>(i%24) | 1 // no divisor is 0
		f[i] = math.Float32bits(float32(int32(state)>>8) / 1000003)
	}
	y := make([]uint32, len(semantics)*lanes)
	run(t, device(t), build, nil, 1, u, f, y)
	for n, s := range semantics {
		want := make([]uint32, lanes)
		for lane := range want {
			var in inputs
			for k := range 3 {
				in.u[k], in.f[k] = u[lanes*k+lane], math.Float32frombits(f[lanes*k+lane])
			}
			want[lane] = s.want(in)
		}
		t.Run(s.name, func(t *testing.T) { same(t, "lane", y[n*lanes:], want, s.rel) })
	}
}

// TestSubgroupsRun runs the operations between lanes, on subgroups of at most 32.
func TestSubgroupsRun(t *testing.T) {
	d := device(t)
	size := d.Info.Subgroup.Default
	lanes := 4 * size
	value := func(lane int) uint32 { return uint32(lane*lane%13 + 1) }
	first := func(lane int) int { return lane / size * size }
	over := func(from, to int, f func(a, b uint32) uint32) uint32 {
		r := uint32(0)
		for l := from; l < to; l++ {
			r = f(r, value(l))
		}
		return r
	}
	add := func(a, b uint32) uint32 { return a + b }
	rows := []struct {
		name string
		make func(b *kernel.Builder, x kernel.Value) kernel.Value
		want func(lane int) uint32
	}{
		{"add", func(b *kernel.Builder, x kernel.Value) kernel.Value { return b.SubgroupAdd(x) }, func(l int) uint32 { return over(first(l), first(l)+size, add) }},
		{"max", func(b *kernel.Builder, x kernel.Value) kernel.Value { return b.SubgroupMax(x) }, func(l int) uint32 {
			return over(first(l), first(l)+size, func(a, b uint32) uint32 { return max(a, b) })
		}},
		{"min", func(b *kernel.Builder, x kernel.Value) kernel.Value { return b.SubgroupMin(b.Sub(100, x)) }, func(l int) uint32 {
			return 100 - over(first(l), first(l)+size, func(a, b uint32) uint32 { return max(a, b) })
		}},
		{"exclusive", func(b *kernel.Builder, x kernel.Value) kernel.Value { return b.SubgroupExclusiveAdd(x) }, func(l int) uint32 { return over(first(l), l, add) }},
		{"shuffle", func(b *kernel.Builder, x kernel.Value) kernel.Value {
			return b.SubgroupShuffle(x, b.Sub(size-1, b.SubgroupLane()))
		}, func(l int) uint32 { return value(first(l) + size - 1 - l%size) }},
		{"shuffle xor", func(b *kernel.Builder, x kernel.Value) kernel.Value { return b.SubgroupShuffleXor(x, 3) }, func(l int) uint32 { return value(l ^ 3) }},
		{"elect", func(b *kernel.Builder, _ kernel.Value) kernel.Value {
			return b.Convert(kernel.U32, b.SubgroupElect())
		}, func(l int) uint32 { return word(l%size == 0) }},
		{"any", func(b *kernel.Builder, x kernel.Value) kernel.Value {
			return b.Convert(kernel.U32, b.SubgroupAny(b.Gt(x, 12)))
		}, func(l int) uint32 {
			return word(over(first(l), first(l)+size, func(a, b uint32) uint32 { return a | word(b > 12) }) != 0)
		}},
	}
	x, y := make([]uint32, lanes), make([]uint32, len(rows)*lanes)
	for l := range x {
		x[l] = value(l)
	}
	run(t, d, func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(lanes)
		v := x.Load(kernel.U32, b.LocalID())
		for n, r := range rows {
			y.Store(b.Add(b.LocalID(), lanes*n), r.make(b, v))
		}
	}, nil, 1, x, y)
	for n, r := range rows {
		want := make([]uint32, lanes)
		for l := range want {
			want[l] = r.want(l)
		}
		t.Run(r.name, func(t *testing.T) { same(t, "lane", y[n*lanes:], want, 0) })
	}
}
