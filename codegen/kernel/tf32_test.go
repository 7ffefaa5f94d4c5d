package kernel_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernel/ptx"
	"github.com/zincc-dev/zincc/codegen/kernel/spirv"
)

// tf32x3 multiplies 16x8 by 8x8 numbers, each in two parts; whole leaves them as they are.
func tf32x3(whole bool) (*kernel.Func, error) {
	return kernel.Build("tf32x3", func(b *kernel.Builder) {
		x, w, y := b.Arg("x", kernel.Read), b.Arg("w", kernel.Read), b.Arg("y", kernel.Write) // w by columns
		b.Workgroup(32)
		g, t := b.Div(b.SubgroupLane(), 4), b.Mod(b.SubgroupLane(), 4)
		two := func(typ kernel.Type, list ...kernel.Value) [2]kernel.Value {
			var high, low []kernel.Operand
			for _, v := range list {
				h, l := b.SplitTF32(v)
				if whole {
					h = v
				}
				high, low = append(high, h), append(low, l)
			}
			return [2]kernel.Value{b.MatElems(typ, high...), b.MatElems(typ, low...)}
		}
		at := func(buf *kernel.Buffer, row, col int) kernel.Value {
			return buf.Load(kernel.F32, b.Add(b.Mul(b.Add(g, row), 8), t, col))
		}
		p := two(kernel.F32.Matrix(16, 8, kernel.MatrixA), at(x, 0, 0), at(x, 8, 0), at(x, 0, 4), at(x, 8, 4))
		q := two(kernel.F32.Matrix(8, 8, kernel.MatrixB), at(w, 0, 0), at(w, 0, 4))
		acc := kernel.F32.Matrix(16, 8, kernel.Accumulator)
		sum := b.Var(acc, b.MatMulAdd(p[0], q[0], b.MatMulAdd(p[0], q[1], b.MatMulAdd(p[1], q[0], b.MatFill(acc, 0)))))
		for e := range 4 {
			y.Store(b.Add(b.Mul(b.Add(g, e/2*8), 8), b.Mul(t, 2), e%2), sum.Elem(e))
		}
	})
}

// TestTF32 holds how exact products of split numbers are, that numbers with more bits are refused, and who has no such
// matrices.
func TestTF32(t *testing.T) {
	f, err := tf32x3(false)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	numbers := func(n int) (list []float64, b []byte) {
		for range n {
			x := float32(rng.NormFloat64())
			list, b = append(list, float64(x)), binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		return list, b
	}
	x, xs := numbers(128)
	w, ws := numbers(64)
	y := make([]byte, 4*128)
	if err := f.Run(nil, 32, [3]int{1, 1, 1}, [][]byte{xs, ws, y}); err != nil {
		t.Fatal(err)
	}
	for r := range 16 {
		for c := range 8 {
			var want, size float64
			for k := range 8 {
				want += x[8*r+k] * w[8*c+k]
				size += math.Abs(x[8*r+k] * w[8*c+k])
			}
			got := float64(math.Float32frombits(binary.LittleEndian.Uint32(y[4*(8*r+c):])))
			if math.Abs(got-want) > size*0x1p-20 {
				t.Errorf("row %d, column %d: %v, want %v", r, c, got, want)
			}
		}
	}
	wrong, err := tf32x3(true)
	if err != nil {
		t.Fatal(err)
	}
	if err := wrong.Run(nil, 32, [3]int{1, 1, 1}, [][]byte{xs, ws, y}); err == nil || !strings.Contains(err.Error(), "more bits than TF32") {
		t.Errorf("whole numbers: %v", err)
	}
	for _, arch := range []int{80, 90} {
		text, err := ptx.Lower(f, ptx.Options{Arch: arch})
		if err != nil {
			t.Fatal(err)
		}
		assemble(t, map[int]string{80: "sm_80", 90: "sm_90"}[arch], text)
		if arch == 90 {
			golden(t, filepath.Join("ptx", "tf32x3"), f, "ptx", text)
		}
	}
	if _, err := ptx.Lower(f, ptx.Options{Arch: 75}); err == nil || !strings.Contains(err.Error(), "no matrix f32[16x8 a]") {
		t.Errorf("sm_75: %v", err)
	}
	if _, err := spirv.Lower(f); err == nil || !strings.Contains(err.Error(), "SPIR-V has no matrices of TF32") {
		t.Errorf("SPIR-V: %v", err)
	}
}

// TestSplitTF32 holds by how much the two parts of a number may differ from it: by its last bit.
func TestSplitTF32(t *testing.T) {
	const n = 32
	f, err := kernel.Build("split", func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(n)
		high, low := b.SplitTF32(x.Load(kernel.F32, b.LocalID()))
		y.Store(b.LocalID(), high)
		y.Store(b.Add(b.LocalID(), n), low)
	})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		x, y := make([]byte, 4*n), make([]byte, 8*n)
		for i := range n { // not of the largest exponent, which rounding may leave, nor so small that parts are denormal
			exponent := rapid.Uint32Range(32, 253).Draw(t, "exponent")
			mantissa := rapid.OneOf(rapid.Uint32Range(0, 1<<23-1), rapid.SampledFrom([]uint32{0, 0xfff, 0x1000, 0x1001, 0x1fff, 0x7fefff, 0x7ff000, 0x7fffff})).Draw(t, "mantissa")
			binary.LittleEndian.PutUint32(x[4*i:], rapid.Uint32Range(0, 1).Draw(t, "sign")<<31|exponent<<23|mantissa)
		}
		if err := f.Run(nil, n, [3]int{1, 1, 1}, [][]byte{x, y}); err != nil {
			t.Fatal(err)
		}
		at := func(b []byte, i int) float64 {
			return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
		}
		for i := range n {
			x, high, low := at(x, i), at(y, i), at(y, n+i)
			if math.Abs(x-high-low) > 0x1p-23*math.Abs(x) || math.Abs(low) > 0x1p-11*math.Abs(x) {
				t.Errorf("%b is %b and %b", x, high, low)
			}
		}
	})
}
