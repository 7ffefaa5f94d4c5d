package kernel_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/spirv"
)

// matrices multiplies two matrices of f16 from shared memory, twice.
func matrices(b *kernel.Builder) {
	x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
	b.Workgroup(32)
	u32x4 := kernel.U32.Vec(4)
	s := b.Shared(u32x4, 64)
	for i := range 2 {
		at := b.Add(b.LocalID(), 32*i)
		s.Store(at, x.Load(u32x4, at))
	}
	b.Barrier()
	acc := kernel.F32.Matrix(16, 16, kernel.Accumulator)
	sum := b.Var(acc, b.MatFill(acc, 1.5))
	b.For(0, 2, 1, func(kernel.Value) {
		p := s.LoadMatrix(kernel.F16.Matrix(16, 16, kernel.MatrixA), 0, 2, kernel.RowMajor)
		q := s.LoadMatrix(kernel.F16.Matrix(16, 16, kernel.MatrixB), 32, 2, kernel.ColumnMajor)
		sum.Set(b.MatMulAdd(p, q, sum.Get()))
	})
	b.SubgroupBarrier()
	sum.Set(b.MatTimes(sum.Get(), s.LoadMatrix(acc, 0, 0, kernel.ColumnMajor)))
	b.ForUnroll(0, b.MatLength(acc), 1, func(i kernel.Value) { sum.SetElem(i, b.Exp2(sum.Elem(i))) })
	b.Barrier()
	s.StoreMatrix(0, 4, kernel.RowMajor, sum.Get())
	s.StoreMatrix(0, 2, kernel.RowMajor, b.MatConvert(kernel.F16, sum.Get()))
	b.Barrier()
	y.Store(b.LocalID(), s.Load(b.LocalID()))
}

func TestMatrices(t *testing.T) {
	f, words := lower(t, kernelCase{"matrices", true, matrices})
	if err := spirv.Validate(words, spirv.Vulkan12); err != nil {
		t.Error(err)
	}
	checkGolden(t, "matrices", f, words)
	if want := []string{"VK_KHR_cooperative_matrix"}; !slices.Equal(f.Extensions, want) {
		t.Errorf("extensions %v", f.Extensions)
	}
	for _, name := range []string{"cooperativeMatrix", "shaderFloat16"} {
		if !slices.Contains(f.Features, name) {
			t.Errorf("features %v lack %s", f.Features, name)
		}
	}
}

// pairs multiplies two matrices that lanes make of words, and puts the sums into memory.
func pairs(b *kernel.Builder) {
	x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
	b.Workgroup(32)
	s := b.Shared(kernel.F32, 128)
	w := x.Load(kernel.U32.Vec(4), b.LocalID())
	acc := kernel.F32.Matrix(16, 8, kernel.Accumulator)
	p := b.MatPairs(kernel.F16.Matrix(16, 16, kernel.MatrixA), b.Elem(w, 0), b.Elem(w, 1), b.Elem(w, 2), b.Elem(w, 3))
	q := b.MatPairs(kernel.F16.Matrix(16, 8, kernel.MatrixB), b.Elem(w, 3), 0)
	s.StoreMatrix(0, 16, kernel.ColumnMajor, b.MatMulAdd(p, q, b.MatFill(acc, 0)))
	b.Barrier()
	y.Store(b.LocalID(), s.Load(b.LocalID()))
}

func TestMatPairs(t *testing.T) {
	f, words := lower(t, kernelCase{"pairs", true, pairs})
	if err := spirv.Validate(words, spirv.Vulkan12); err != nil {
		t.Error(err)
	}
	checkGolden(t, "pairs", f, words)
	if !f.Fragments {
		t.Error("the kernel does not say that it relies on which elements lanes hold")
	}
	if f, _ := lower(t, kernelCase{"matrices", true, matrices}); f.Fragments {
		t.Error("a kernel that does not use it says so")
	}
}

func TestMatrixErrors(t *testing.T) {
	xs := kernel.F16.Matrix(16, 8, kernel.MatrixA)
	ws := kernel.F16.Matrix(8, 16, kernel.MatrixB)
	acc := kernel.F32.Matrix(16, 16, kernel.Accumulator)
	for _, c := range []struct {
		name string
		make func(b *kernel.Builder, s *kernel.Array, x, w, sum kernel.Value)
		want string
	}{
		{"no side", func(b *kernel.Builder, s *kernel.Array, _, _, _ kernel.Value) {
			s.LoadMatrix(kernel.F16.Matrix(0, 16, kernel.MatrixA), 0, 2, kernel.RowMajor)
		}, "mat_load of void"},
		{"wide", func(b *kernel.Builder, s *kernel.Array, _, _, _ kernel.Value) {
			s.LoadMatrix(kernel.F16.Matrix(16, 128, kernel.MatrixA), 0, 2, kernel.RowMajor)
		}, "mat_load of void"},
		{"integers", func(b *kernel.Builder, s *kernel.Array, _, _, _ kernel.Value) {
			s.LoadMatrix(kernel.U32.Matrix(16, 16, kernel.MatrixA), 0, 2, kernel.RowMajor)
		}, "mat_load of"},
		{"layout", func(b *kernel.Builder, s *kernel.Array, _, _, _ kernel.Value) { s.LoadMatrix(xs, 0, 2, 2) }, "mat_load: layout 2"},
		{"uses", func(b *kernel.Builder, _ *kernel.Array, x, w, sum kernel.Value) { b.MatMulAdd(w, x, sum) }, "mat_mul_add of f16[8x16 b]"},
		{"depth", func(b *kernel.Builder, s *kernel.Array, x, _, sum kernel.Value) {
			b.MatMulAdd(x, s.LoadMatrix(kernel.F16.Matrix(16, 16, kernel.MatrixB), 0, 2, kernel.RowMajor), sum)
		}, "mat_mul_add of f16[16x8 a], f16[16x16 b] and f32[16x16 acc]"},
		{"fill", func(b *kernel.Builder, _ *kernel.Array, _, _, _ kernel.Value) { b.MatFill(xs, 0) }, "mat_fill of f16[16x8 a]"},
		{"fill of f16", func(b *kernel.Builder, _ *kernel.Array, _, _, _ kernel.Value) {
			b.MatFill(kernel.F16.Matrix(16, 16, kernel.Accumulator), 0)
		}, "mat_fill of f16[16x16 acc]"},
		{"store of a number", func(b *kernel.Builder, s *kernel.Array, _, _, _ kernel.Value) {
			s.StoreMatrix(0, 2, kernel.RowMajor, b.LocalID())
		}, "mat_store of u32"},
		{"times", func(b *kernel.Builder, _ *kernel.Array, x, _, _ kernel.Value) { b.MatTimes(x, x) }, "mat_times of f16[16x8 a]"},
		{"times another", func(b *kernel.Builder, s *kernel.Array, _, _, sum kernel.Value) {
			b.MatTimes(sum, s.LoadMatrix(kernel.F32.Matrix(16, 8, kernel.Accumulator), 0, 2, kernel.RowMajor))
		}, "mat_times of f32[16x16 acc] and f32[16x8 acc]"},
		{"convert of a factor", func(b *kernel.Builder, _ *kernel.Array, x, _, _ kernel.Value) { b.MatConvert(kernel.F32, x) }, "mat_convert of f16[16x8 a]"},
		{"convert to the same", func(b *kernel.Builder, _ *kernel.Array, _, _, sum kernel.Value) { b.MatConvert(kernel.F32, sum) }, "mat_convert of f32[16x16 acc] to f32"},
		{"length", func(b *kernel.Builder, _ *kernel.Array, _, _, _ kernel.Value) { b.MatLength(kernel.F32) }, "mat_length of f32"},
		{"element of a number", func(b *kernel.Builder, _ *kernel.Array, _, _, _ kernel.Value) { b.Var(kernel.F32, 0).Elem(0) }, "get_elem of f32"},
		{"element of f16", func(b *kernel.Builder, _ *kernel.Array, x, _, _ kernel.Value) { b.Var(x.Type(), x).SetElem(0, 1) }, "set_elem of f16[16x8 a]"},
		{"pairs for a sum", func(b *kernel.Builder, _ *kernel.Array, _, _, _ kernel.Value) { b.MatPairs(acc, 1, 2, 3, 4) }, "mat_pairs of 4 words for f32[16x16 acc]"},
		{"too few pairs", func(b *kernel.Builder, _ *kernel.Array, _, _, _ kernel.Value) { b.MatPairs(xs, 1) }, "mat_pairs of 1 words for f16[16x8 a]"},
		{"elements for a sum", func(b *kernel.Builder, _ *kernel.Array, _, _, _ kernel.Value) {
			b.MatElems(kernel.F32.Matrix(16, 8, kernel.Accumulator), 1.0, 2.0, 3.0, 4.0)
		}, "mat_elems of 4 elements for f32[16x8 acc]"},
		{"too few elements", func(b *kernel.Builder, _ *kernel.Array, _, _, _ kernel.Value) {
			b.MatElems(kernel.F32.Matrix(8, 8, kernel.MatrixB), 1.0)
		}, "mat_elems of 1 elements for f32[8x8 b]"},
		{"elements of f16", func(b *kernel.Builder, _ *kernel.Array, _, _, _ kernel.Value) { b.MatElems(xs, 1.0, 2.0, 3.0, 4.0) }, "mat_elems of 4 elements for f16[16x8 a]"},
		{"pairs of numbers", func(b *kernel.Builder, _ *kernel.Array, _, _, _ kernel.Value) { b.MatPairs(xs, b.F32(1), 2) }, "mat_pairs"},
		{"add", func(b *kernel.Builder, _ *kernel.Array, x, _, _ kernel.Value) { b.Add(x, x) }, "add of f16[16x8 a]"},
		{"element", func(b *kernel.Builder, _ *kernel.Array, x, _, _ kernel.Value) { b.Elem(x, 0) }, "element of f16[16x8 a]"},
		{"array", func(b *kernel.Builder, _ *kernel.Array, _, _, _ kernel.Value) { b.Shared(xs, 4) }, "shared array of f16[16x8 a]"},
		{"array of f16", func(b *kernel.Builder, _ *kernel.Array, _, _, _ kernel.Value) { b.Shared(kernel.F16, 4) }, "shared array of f16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := kernel.Build("k", func(b *kernel.Builder) {
				b.Arg("x", kernel.Read)
				b.Workgroup(32)
				s := b.Shared(kernel.F32, 512)
				c.make(b, s, s.LoadMatrix(xs, 0, 2, kernel.RowMajor), s.LoadMatrix(ws, 0, 2, kernel.RowMajor), b.MatFill(acc, 0))
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
