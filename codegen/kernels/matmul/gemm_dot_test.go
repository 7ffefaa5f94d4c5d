package matmul_test

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// dotTarget is llvmpipe with dot products of bytes.
func dotTarget(t testing.TB) *target.Target {
	on := *kerneltest.Llvmpipe(t)
	on.Dot = true
	return &on
}

func (w *work) fixed8(x *ir.Value) *ir.Value { return w.op("fixed8", nil, x) }

// dotInput is rows of which the first block of 32 is zero.
func (w *work) dotInput(k int) *ir.Value {
	x := w.rows(ir.T, ir.Dim(k))
	for at := 0; at < len(w.data[x]); at += 4 * k {
		clear(w.data[x][at:][:4*32])
	}
	return x
}

func TestGemmDotFormats(t *testing.T) {
	for _, d := range byteFormats {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			w := newWork(t, 40, 37)
			y := w.linear(w.fixed8(w.dotInput(5*max(64, d.Block()))), d, 70)
			w.check(first(t, w.candidates(dotTarget(t), y), "gemm_dot"), 37, y)
		})
	}
}

// TestGemmDotGroups runs groups of every form: with a norm, formats whose scales differ in
// their number, bias, GLU of one and of two formats, residuals.
func TestGemmDotGroups(t *testing.T) {
	for name, build := range map[string]func(w *work, x *ir.Value) []*ir.Value{
		"qkv": func(w *work, x *ir.Value) []*ir.Value {
			x = w.fixed8(w.norm(x))
			q := w.op("linear", nil, x, w.matrix(ir.Q4_K, 33, 512), w.vector("bias", 33))
			return []*ir.Value{q, w.linear(x, ir.Q8_0, 200), w.linear(x, ir.Q6_K, 65)}
		},
		"silu": func(w *work, x *ir.Value) []*ir.Value {
			x = w.fixed8(w.norm(x))
			return []*ir.Value{w.glu("silu", w.linear(x, ir.Q4_0, 70), w.linear(x, ir.Q4_0, 70))}
		},
		"gelu of two formats": func(w *work, x *ir.Value) []*ir.Value {
			x = w.fixed8(w.norm(x))
			up := w.linear(x, ir.Q5_0, 70)
			return []*ir.Value{w.glu("gelu", w.linear(x, ir.Q6_K, 70), up)}
		},
		"residual": func(w *work, x *ir.Value) []*ir.Value {
			return []*ir.Value{w.op("add", nil, w.rows(ir.T, 512), w.linear(w.fixed8(x), ir.Q5_K, 512))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, rows := range []int{9, 150} {
				if !kerneltest.Takes(i+len(name), 2) {
					continue
				}
				w := newWork(t, rows, rows-rows/4)
				out := build(w, w.dotInput(512))
				w.check(first(t, w.candidates(dotTarget(t), out...), "gemm_dot"), rows-rows/4, out...)
				if rows == 9 {
					w.buildFor(&target.Target{Name: "RDNA without matrices", Wave: 32, Workgroup: 1024, Shared: 32 << 10, Units: 1, Dot: true}, out)
				}
			}
		})
	}
}

// TestGemmDotTiles runs the tiles that other targets get.
func TestGemmDotTiles(t *testing.T) {
	gpu := target.Target{Wave: 32, Workgroup: 1024, Shared: 32 << 10, Units: 1, Dot: true}
	var tiles []string
	for _, c := range []struct {
		rows int
		glu  bool
		run  string
	}{{16, true, "16x64"}, {100, false, "32x128"}} {
		w := newWork(t, c.rows, c.rows-1)
		x := w.fixed8(w.norm(w.dotInput(192)))
		y := w.linear(x, ir.Q8_0, 140)
		if c.glu {
			y = w.glu("silu", y, w.linear(x, ir.Q8_0, 140))
		}
		for _, k := range w.candidates(&gpu, y) {
			tile := k.Kernel[strings.LastIndex(k.Kernel, "=")+1:]
			tiles = append(tiles, tile)
			if tile == c.run {
				w.check(k, c.rows-1, y)
			}
		}
	}
	if got := strings.Join(tiles, " "); got != "16x64 64x128 32x128 128x128" {
		t.Errorf("tiles %s", got)
	}
}

func (w *work) byteReaders(on *target.Target, outputs ...*ir.Value) []*ir.Op {
	return kerneltest.RoundedFor(&kernels.Site{Program: w.p, Func: w.f, Group: &ir.Group{Ops: w.ops}, Outputs: outputs, Target: on}, "fixed8")
}

// TestByteReaders holds who reads an x in 8-bit fixed point: projections of many rows of
// which all can, where there are dot products and no matrices.
func TestByteReaders(t *testing.T) {
	dot := dotTarget(t)
	matrices := *dot
	matrices.Matrix = target.MatrixShape{Rows: 16, Cols: 16, Depth: 16}
	for _, c := range []struct {
		name string
		on   *target.Target
		rows int
		with ir.DType
		want int
	}{
		{"many rows", dot, 9, ir.Q6_K, 2},
		{"few rows", dot, 8, ir.Q6_K, 0},
		{"weights in floats", dot, 9, ir.F16, 0},
		{"no dot products", kerneltest.Llvmpipe(t), 9, ir.Q6_K, 0},
		{"matrices", &matrices, 9, ir.Q6_K, 0},
	} {
		w := newWork(t, c.rows, c.rows)
		x := w.rows(ir.T, 256)
		out := []*ir.Value{w.linear(x, ir.Q4_K, 8), w.linear(x, c.with, 8)}
		if got := w.byteReaders(c.on, out...); len(got) != c.want {
			t.Errorf("%s: %d readers, want %d", c.name, len(got), c.want)
		}
		for _, k := range w.candidates(c.on, out...) {
			if strings.Contains(k.Kernel, "dot") {
				t.Errorf("%s: %s of an x in floats", c.name, k.Kernel)
			}
		}
	}
}
