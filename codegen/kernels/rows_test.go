package kernels_test

import (
	"bytes"
	"testing"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// processor is a target whose weights lie in rows of 16. The interpreter computes its kernels.
func processor(t testing.TB) *target.Target { return machine(t, "x86-64-v4") }

func machine(t testing.TB, name string) *target.Target {
	on, err := target.Lookup("cpu:" + name)
	if err != nil {
		t.Fatal(err)
	}
	return on
}

// interleaved have views with a row in each lane, and rows of no whole number of 16.
var interleaved = []ir.DType{ir.Q4_K, ir.Q5_K, ir.Q6_K, ir.Q8_0, ir.Q4_0}

// TestRowsFormats: few rows of x in 12 bits, of which entries of every width have the same bits, and many in 8.
func TestRowsFormats(t *testing.T) {
	for _, d := range interleaved {
		names := []string{"x86-64-v4"}
		if d == ir.Q8_0 { // whose codes are signed
			names = append(names, "x86-64-v3")
		}
		for _, k := range []int{3 * 256, 5 * 64} {
			if k%d.Block() != 0 {
				continue
			}
			for _, name := range names {
				t.Run(d.String()+"/"+name, func(t *testing.T) {
					t.Parallel()
					var widest []byte
					for _, rows := range []int{8, 4, 2, 1} {
						w := newWorld(t, rows, rows)
						w.on = machine(t, name)
						m := w.matrix(d, 37, k) // before x: the same for all widths
						y := w.op("linear", nil, w.op("fixed12", nil, w.rows(ir.T, ir.Dim(k))), m)
						got := w.check(first(t, w.candidates(w.on, y), "rows"), rows, y)[y]
						if widest == nil {
							widest = got
						}
						if !bytes.Equal(got, widest[:len(got)]) {
							t.Errorf("%d rows give other bits than 8", rows)
						}
					}
					w := newWorld(t, 40, 37)
					w.on = machine(t, name)
					y := w.linear(w.fixed8(w.dotInput(k)), d, 37)
					w.check(first(t, w.candidates(w.on, y), "rows"), 37, y)
				})
			}
		}
	}
}

// TestRowsGroups: with and without a norm, bias, GLU, residuals, of weights that are interleaved and others.
func TestRowsGroups(t *testing.T) {
	for name, build := range map[string]func(w *world, x *ir.Value) *ir.Value{
		"bias": func(w *world, x *ir.Value) *ir.Value {
			return w.op("linear", nil, w.fixed8(w.norm(x)), w.matrix(ir.Q4_K, 33, 512), w.vector("bias", 33))
		},
		"silu": func(w *world, x *ir.Value) *ir.Value {
			x = w.fixed8(w.norm(x))
			return w.glu("silu", w.linear(x, ir.Q6_K, 35), w.linear(x, ir.Q6_K, 35))
		},
		"gelu": func(w *world, x *ir.Value) *ir.Value {
			x = w.fixed8(x)
			return w.glu("gelu", w.linear(x, ir.Q8_0, 35), w.linear(x, ir.Q8_0, 35))
		},
		"residuals": func(w *world, x *ir.Value) *ir.Value {
			y := w.linear(w.fixed8(x), ir.Q5_K, 50)
			for range 3 {
				y = w.op("add", nil, y, w.rows(ir.T, 50))
			}
			return y
		},
		"floats": func(w *world, x *ir.Value) *ir.Value {
			return w.op("add", nil, w.op("linear", nil, w.norm(x), w.matrix(ir.F16, 33, 512), w.vector("bias", 33)), w.rows(ir.T, 33))
		},
		"floats glu": func(w *world, x *ir.Value) *ir.Value {
			return w.glu("gelu", w.linear(x, ir.Q4_1, 35), w.linear(x, ir.Q4_1, 35))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 20, 13)
			w.on = processor(t)
			y := build(w, w.rows(ir.T, 512))
			w.check(first(t, w.candidates(w.on, y), "rows"), 13, y)
		})
	}
}
