package matmul_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// interleaved have views with a row in each lane, and rows of no whole number of 16.
var interleaved = []ir.DType{ir.Q4_K, ir.Q5_K, ir.Q6_K, ir.Q8_0, ir.Q4_0}

// TestRowsFormats: few rows of x in 12 bits, of which entries of every width have the same bits, and many in 8.
func TestRowsFormats(t *testing.T) {
	for _, d := range interleaved {
		names := []string{"x86-64-v4"}
		if d == ir.Q8_0 || d == ir.Q4_K { // whose codes are signed there, or not left where they are
			names = append(names, "x86-64-v3")
		}
		for _, k := range []int{3 * 256, 5 * 64} {
			if k%d.Block() != 0 {
				continue
			}
			for _, name := range names {
				t.Run(d.String()+"/"+name, func(t *testing.T) {
					t.Parallel()
					everyWidth(t, name, d, k, func(w *work, x *ir.Value) *ir.Value { return w.op("fixed12", nil, x) })
					w := newWork(t, 40, 37)
					w.on = kerneltest.Machine(t, name)
					y := w.linear(w.fixed8(w.dotInput(k)), d, 37)
					w.check(first(t, w.candidates(w.on, y), "rows"), 37, y)
				})
			}
		}
	}
}

// tiled is a target with tiles of bf16.
func tiled(t testing.TB) *target.Target { return kerneltest.Machine(t, "x86-64-amx") }

// TestTilesFormats: many rows of x in bf16, of which the last columns are fewer than 16, or more.
func TestTilesFormats(t *testing.T) {
	for i, d := range interleaved {
		for _, k := range []int{3 * 256, 5 * 64} {
			if k%d.Block() != 0 {
				continue
			}
			for j, rows := range []int{37, 60} {
				if !kerneltest.Takes(i+j, 2) {
					continue
				}
				t.Run(fmt.Sprint(d, "/", k, "/", rows), func(t *testing.T) {
					t.Parallel()
					w := newWork(t, 64, rows)
					w.on = tiled(t)
					y := w.linear(w.op("bfloat16", nil, w.rows(ir.T, ir.Dim(k))), d, 70)
					w.checkWith(kerneltest.InterpretOnly, first(t, w.candidates(w.on, y), "rows"), rows, y)
				})
			}
		}
	}
}

// TestRowsOfFloats: lanes have elements of one row, and entries of every width the same bits; rows of no whole number
// of 16 elements are read otherwise.
func TestRowsOfFloats(t *testing.T) {
	for _, d := range []ir.DType{ir.F32, ir.F16, ir.BF16} {
		for _, k := range []int{336, 40} {
			for _, name := range []string{"x86-64-v4", "x86-64-v3"} {
				t.Run(fmt.Sprint(d, "/", k, "/", name), func(t *testing.T) {
					t.Parallel()
					key := everyWidth(t, name, d, k, func(_ *work, x *ir.Value) *ir.Value { return x })
					if along := strings.Contains(key, " along"); along != (k%16 == 0) {
						t.Errorf("%s for rows of %d elements", key, k)
					}
				})
			}
		}
	}
}

// everyWidth checks the product of 8, 4, 2 and 1 rows with a matrix, whose bits have to be the same, and returns the
// last kernel's name.
func everyWidth(t *testing.T, on string, d ir.DType, k int, rounded func(w *work, x *ir.Value) *ir.Value) (key string) {
	t.Helper()
	var widest []byte
	for _, rows := range []int{8, 4, 2, 1} {
		w := newWork(t, rows, rows)
		w.on = kerneltest.Machine(t, on)
		m := w.matrix(d, 37, k) // before x: the same for all widths
		y := w.op("linear", nil, rounded(w, w.rows(ir.T, ir.Dim(k))), m)
		c := first(t, w.candidates(w.on, y), "rows")
		got := w.check(c, rows, y)[y]
		if widest == nil {
			widest = got
		}
		if !bytes.Equal(got, widest[:len(got)]) {
			t.Errorf("%d rows give other bits than 8", rows)
		}
		key = c.Kernel
	}
	return key
}

// TestRowsGroups: with and without a norm, bias, GLU, residuals, of weights that are interleaved and others.
func TestRowsGroups(t *testing.T) {
	for name, build := range map[string]func(w *work, round string, x *ir.Value) *ir.Value{
		"bias": func(w *work, round string, x *ir.Value) *ir.Value {
			return w.op("linear", nil, w.op(round, nil, w.norm(x)), w.matrix(ir.Q4_K, 33, 512), w.vector("bias", 33))
		},
		"silu": func(w *work, round string, x *ir.Value) *ir.Value {
			x = w.op(round, nil, w.norm(x))
			return w.glu("silu", w.linear(x, ir.Q6_K, 35), w.linear(x, ir.Q6_K, 35))
		},
		"gelu": func(w *work, round string, x *ir.Value) *ir.Value {
			x = w.op(round, nil, x)
			return w.glu("gelu", w.linear(x, ir.Q8_0, 35), w.linear(x, ir.Q8_0, 35))
		},
		"residuals": func(w *work, round string, x *ir.Value) *ir.Value {
			y := w.linear(w.op(round, nil, x), ir.Q5_K, 50)
			for range 3 {
				y = w.op("add", nil, y, w.rows(ir.T, 50))
			}
			return y
		},
		"floats": func(w *work, _ string, x *ir.Value) *ir.Value {
			return w.op("add", nil, w.op("linear", nil, w.norm(x), w.matrix(ir.F16, 33, 512), w.vector("bias", 33)), w.rows(ir.T, 33))
		},
		"floats glu": func(w *work, _ string, x *ir.Value) *ir.Value {
			return w.glu("gelu", w.linear(x, ir.Q4_1, 35), w.linear(x, ir.Q4_1, 35))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWork(t, 20, 13)
			w.on = kerneltest.Processor(t)
			y := build(w, "fixed8", w.rows(ir.T, 512))
			w.check(first(t, w.candidates(w.on, y), "rows"), 13, y)
			w = newWork(t, 20, 19)
			w.on = tiled(t)
			y = build(w, "bfloat16", w.rows(ir.T, 512))
			w.checkWith(kerneltest.InterpretOnly, first(t, w.candidates(w.on, y), "rows"), 19, y)
		})
	}
}

// TestRowsExperts: of few rows, each with experts of its own, and of many, sorted by expert; gate and up with GLU, of
// one weight and of two, and down, of which each expert has a run of x.
func TestRowsExperts(t *testing.T) {
	for i, m := range []moe{
		{dtype: ir.Q4_K, embd: 512, ff: 256, experts: 5, slots: 2, all: 3, none: 4, gating: "softmax"},
		{dtype: ir.Q6_K, embd: 256, ff: 256, experts: 20, slots: 3, norm: true, gating: "softmax"},
		{dtype: ir.Q8_0, embd: 256, ff: 512, experts: 4, slots: 2, merged: true, gating: "softmax"},
		{dtype: ir.F16, embd: 96, ff: 64, experts: 5, slots: 2, norm: true, gating: "softmax"},
		{dtype: ir.Q4_1, embd: 96, ff: 64, experts: 5, slots: 2, merged: true, gating: "softmax"},
	} {
		for j, c := range []struct {
			rows   int
			target string
		}{{8, "x86-64-v4"}, {20, "x86-64-v4"}, {20, "x86-64-amx"}} {
			if !kerneltest.Takes(i+j, 3) {
				continue
			}
			rows := c.rows
			t.Run(fmt.Sprintf("%v/%d/%s", m, rows, c.target), func(t *testing.T) {
				t.Parallel()
				n, sorted, round, run := rows-1, rows > target.DecodeRows, "fixed12", kerneltest.Launch
				if sorted {
					round = "fixed8"
				}
				if c.target == "x86-64-amx" {
					round, run = "bfloat16", kerneltest.InterpretOnly
				}
				begin := func() (w *work, chosen *ir.Value, order []*ir.Value) {
					w = newWork(t, rows, n)
					w.on = kerneltest.Machine(t, c.target)
					chosen = w.chosen(w.scores(&m), m.slots)
					if sorted {
						order = w.sorted(&m, chosen)
					}
					return w, chosen, order
				}
				fixed := func(w *work, x *ir.Value) *ir.Value {
					if slices.Contains(interleaved, m.dtype) {
						x = w.op(round, nil, x)
					}
					return x
				}

				w, chosen, order := begin()
				var gate, up *ir.Value
				from := 0
				if m.merged {
					gate = w.stack(m.dtype, m.experts, 2*m.ff, m.embd)
					up, from = gate, m.ff
				} else {
					gate, up = w.stack(m.dtype, m.experts, m.ff, m.embd), w.stack(m.dtype, m.experts, m.ff, m.embd)
				}
				x := w.input(ir.Dim(m.embd))
				if m.norm {
					x = w.norm(x)
				}
				x = fixed(w, x)
				y := w.glu("silu", w.experts(x, gate, chosen, 0, m.ff, order...), w.experts(x, up, chosen, from, m.ff, order...))
				w.checkAll(run, first(t, w.candidates(w.on, y), "rows"), n, []*ir.Value{y})

				w, chosen, order = begin()
				down := w.stack(m.dtype, m.experts, m.embd, m.ff)
				y = w.experts(fixed(w, w.input(ir.Dim(m.slots*m.ff))), down, chosen, 0, m.embd, order...)
				w.checkAll(run, first(t, w.candidates(w.on, y), "rows"), n, []*ir.Value{y})
			})
		}
	}
}
