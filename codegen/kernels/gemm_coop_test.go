package kernels_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
)

// TestOctets holds what gemm_coop and gemm_fragment multiply of weights of every format
// against their exact values: within the rounding of scale, offset and result.
func TestOctets(t *testing.T) {
	const rows, cols = 3, 512
	type build struct {
		name string
		make func(w *weight.Format, rows, cols int) (*kernel.Func, error)
		of   *weight.Format
	}
	for d := range allFormats() {
		if d == ir.F32 {
			continue // is not rounded
		}
		tables, permuting := weight.FormatOf(lookup(t, "sm_90"), d, cols), weight.FormatOf(lookup(t, "sm_90-cuda"), d, cols)
		builds := []build{{"gemm_coop", coopOctets, tables}, {"gemm_fragment", fragmentOctets, tables}}
		if permuting != tables {
			builds = append(builds, build{"gemm_coop by permutes", coopOctets, permuting}, build{"gemm_fragment by permutes", fragmentOctets, permuting})
		}
		for _, build := range builds {
			t.Run(build.name+" "+d.String(), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, 1, 1)
				m := w.matrix(d, rows, cols)
				y := &ir.Value{ID: 1, Type: ir.MakeType(ir.F16, rows, cols), Offset: -1}
				c := kernels.Candidate{
					Kernel:   fmt.Sprintf("octets %s %s", build.name, d),
					Build:    func() (*kernel.Func, error) { return build.make(build.of, rows, cols) },
					Consts:   []ir.Const{{Name: "rows", Value: rows}, {Name: "cols", Value: cols}},
					Grid:     [3]int{rows, 1, 1},
					Operands: []kernels.Operand{{Name: "w", Value: m, Access: kernel.Read}, {Name: "y", Value: y, Access: kernel.Write}},
				}
				got := halves(launch(t, c, w.sizes, w.data)[y])
				for r := range rows {
					row := w.vals[m][r*cols:][:cols]
					largest := 0.0
					for _, x := range row {
						largest = max(largest, math.Abs(x))
					}
					for i := range cols {
						at := coopElement(i)
						if diff := math.Abs(float64(got[r*cols+i]) - row[at]); !(diff <= 3*largest/2048) {
							t.Fatalf("row %d element %d is %g, want %g", r, at, got[r*cols+i], row[at])
						}
					}
				}
			})
		}
	}
}

// coopGroups are dispatch groups over rows of k elements.
var coopGroups = []struct {
	name      string
	k         ir.Dim
	coop      bool // gemm_coop computes it
	fragments bool // gemm_fragment computes it for 9 to 16 rows
	build     func(w *world, x *ir.Value) []*ir.Value
}{
	{"qkv", 512, true, true, func(w *world, x *ir.Value) []*ir.Value {
		q := w.op("linear", nil, x, w.matrix(ir.Q4_K, 36, 512), w.vector("bias", 36))
		return []*ir.Value{q, w.linear(x, ir.Q8_0, 200), w.linear(x, ir.Q6_K, 64)}
	}},
	{"silu", 192, true, false, func(w *world, x *ir.Value) []*ir.Value {
		return []*ir.Value{w.glu("silu", w.linear(x, ir.Q4_0, 72), w.linear(x, ir.Q4_0, 72))}
	}},
	{"gelu of two formats", 512, true, false, func(w *world, x *ir.Value) []*ir.Value {
		up := w.linear(x, ir.Q4_K, 72)
		return []*ir.Value{w.glu("gelu", w.linear(x, ir.Q6_K, 72), up)}
	}},
	{"residuals", 512, true, true, func(w *world, x *ir.Value) []*ir.Value {
		y := w.op("add", nil, w.rows(ir.T, 512), w.linear(x, ir.Q5_K, 512))
		return []*ir.Value{w.op("add", nil, y, w.rows(ir.T, 512))}
	}},
	{"a rounded result", 512, true, true, func(w *world, x *ir.Value) []*ir.Value {
		y := w.glu("silu", w.linear(x, ir.F16, 72), w.linear(x, ir.F16, 72))
		return []*ir.Value{w.op("half", nil, y)}
	}},
	{"a router", 512, false, false, func(w *world, x *ir.Value) []*ir.Value {
		return []*ir.Value{w.linear(x, ir.F32, 64)}
	}},
	{"half a step", 96, false, false, func(w *world, x *ir.Value) []*ir.Value {
		return []*ir.Value{w.linear(x, ir.F16, 64)}
	}},
	{"long rows", 5120, true, true, func(w *world, x *ir.Value) []*ir.Value {
		return []*ir.Value{w.op("add", nil, w.linear(x, ir.Q6_K, 20), w.rows(ir.T, 20))}
	}},
	{"rows of the result that are no vec4", 512, false, false, func(w *world, x *ir.Value) []*ir.Value {
		return []*ir.Value{w.linear(x, ir.F16, 33)}
	}},
}

// TestCoopGroups builds what a target with cooperative matrices gets.
func TestCoopGroups(t *testing.T) {
	for _, g := range coopGroups {
		for _, rows := range []int{8, 9, 16, 20, 70, 512} {
			low := rows <= 48 // more rows have candidates of either, or of both
			family, is := "gemm_coop", g.coop
			if low {
				family, is = "gemm_fragment", g.fragments && rows > 8
			}
			w := newWorld(t, rows, rows)
			out := g.build(w, w.half(w.rows(ir.T, g.k)))
			small := *lookup(t, "sm_90")
			small.Units = 1 // so that workgroups take several tiles
			list := w.candidates(lookup(t, "sm_90"), out...)
			if low {
				list = append(list, w.candidates(&small, out...)...)
			}
			if len(list) == 0 {
				if is {
					t.Errorf("%s, %d rows: no candidate", g.name, rows)
				}
				continue
			}
			of := func(c kernels.Candidate) bool {
				return strings.HasPrefix(c.Kernel, family+" ") || !low && strings.HasPrefix(c.Kernel, "gemm_fragment ")
			}
			if low && of(list[0]) != is || slices.ContainsFunc(list, of) != is {
				t.Errorf("%s, %d rows: %s", g.name, rows, list[0].Kernel)
			}
			for _, c := range list {
				f, _, _ := lowered(t, c)
				if f.Fragments != strings.HasPrefix(c.Kernel, "gemm_fragment ") {
					t.Errorf("%s: relies on which elements lanes hold: %t", c.Kernel, f.Fragments)
				}
				for _, v := range out {
					w.covered(c, v)
				}
			}
		}
	}
}

// TestGemmCoop computes projections with the cooperative matrices of an interpreter, on a target of which nobody
// knows what lanes hold. The last tile of rows is not full.
func TestGemmCoop(t *testing.T) {
	for i, g := range coopGroups {
		for j, rows := range []int{20, 150} {
			if !g.coop || rows > 20 && g.k > 512 || !takes(i+j, 2) {
				continue
			}
			t.Run(fmt.Sprint(g.name, " ", rows), func(t *testing.T) {
				t.Parallel()
				n := rows - 3
				w := newWorld(t, rows, n)
				out := g.build(w, w.rounded(w.rows(ir.T, g.k)))
				for _, c := range w.candidates(lookup(t, "gfx1100"), out...) {
					if strings.HasPrefix(c.Kernel, "gemm_coop ") {
						w.near(c, launch(t, c, w.sizes, w.data), n, int(g.k), out)
						return
					}
				}
				t.Error("gemm_coop offers nothing")
			})
		}
	}
}

// half returns x rounded to f16.
func (w *world) half(x *ir.Value) *ir.Value {
	half, err := w.make.Make("half", nil, x)
	if err != nil {
		w.t.Fatal(err)
	}
	w.vals[half.Result] = w.vals[x]
	return half.Result
}

// TestCoopKeys holds that rows of a length that is no multiple of 256, whose code is
// another, have kernels of other names.
func TestCoopKeys(t *testing.T) {
	names := map[string]bool{}
	for _, k := range []ir.Dim{192, 256} {
		w := newWorld(t, 20, 20)
		half, err := w.make.Make("half", nil, w.rows(ir.T, k))
		if err != nil {
			t.Fatal(err)
		}
		w.vals[half.Result] = make([]float64, 20*k)
		names[w.candidates(lookup(t, "sm_90"), w.linear(half.Result, ir.F16, 64))[0].Kernel] = true
	}
	if len(names) != 2 {
		t.Errorf("%d names: %v", len(names), names)
	}
}

// coopOctets returns a kernel that writes the octets of a weight as
// gemm_coop puts them into shared memory: one workgroup a row.
func coopOctets(w *weight.Format, rows, cols int) (*kernel.Func, error) {
	f := w.Copy
	return kernel.Build("octets", func(b *kernel.Builder) {
		m := weight.Matrix{Format: w, Buf: b.Arg("w", kernel.Read), Rows: b.SpecU32("rows", uint32(rows)), Cols: b.SpecU32("cols", uint32(cols))}
		y := b.Arg("y", kernel.Write)
		b.Workgroup(cols / weight.CoopDepth * f.Items)
		step, item := b.Div(b.LocalID(), f.Items), b.Mod(b.LocalID(), f.Items)
		at := b.Add(b.Mul(b.WorkgroupID(0), cols/8), b.Mul(step, weight.CoopDepth/8), b.Mul(item, f.Run))
		row := f.Open(weight.NewCoopDecoder(b, b.LocalID()), m, b.WorkgroupID(0), item)
		for p := range f.Span {
			b.If(b.Eq(b.Mod(step, f.Span), p), func() {
				block := b.Div(step, f.Span)
				var head []kernel.Value
				if row.Head != nil {
					head = row.Head(block)
				}
				for i, v := range row.Octets(head, row.Load(block, p), p) {
					y.Store(b.Add(at, i/f.Run*f.Stride+i%f.Run), v)
				}
			})
		}
	})
}

// fragmentOctets returns a kernel that writes the octets of a weight as lanes of
// gemm_fragment make them, each where it is in its row: one workgroup a row, four lanes a block.
func fragmentOctets(w *weight.Format, rows, cols int) (*kernel.Func, error) {
	f := w.Fragment
	return kernel.Build("octets", func(b *kernel.Builder) {
		m := weight.Matrix{Format: w, Buf: b.Arg("w", kernel.Read), Rows: b.SpecU32("rows", uint32(rows)), Cols: b.SpecU32("cols", uint32(cols))}
		y := b.Arg("y", kernel.Write)
		b.Workgroup(cols / weight.FragmentBlock * 4)
		block, quad := b.Div(b.LocalID(), 4), b.Mod(b.LocalID(), 4)
		row := b.WorkgroupID(0)
		item := f.Open(weight.NewCoopDecoder(b, b.LocalID()), m, row, quad)
		for p := range weight.FragmentSteps {
			loaded := item.Load(block, p)
			var scales []kernel.Value
			if item.Scales != nil {
				scales = item.Scales(item.Head(block), p)
			}
			for i := range 4 {
				v := item.Octet(scales, loaded, i)
				at := weight.Sharings[f.Sharing].Octet(b, quad, b.U32(uint32(i)), p)
				y.Store(b.Add(b.Mul(row, cols/8), b.Mul(block, weight.FragmentBlock/8), at), v)
			}
		}
	})
}

// coopElement returns which element of the row is half i of its octets.
func coopElement(i int) int { return i&^7 | []int{0, 2, 1, 3, 4, 6, 5, 7}[i%8] }
