package matmul_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
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
	for d := range kerneltest.AllFormats() {
		if d == ir.F32 {
			continue // is not rounded
		}
		tables, permuting := weight.FormatOf(kerneltest.Lookup(t, "sm_90"), d, cols), weight.FormatOf(kerneltest.Lookup(t, "sm_90-cuda"), d, cols)
		builds := []build{{"gemm_coop", coopOctets, tables}, {"gemm_fragment", fragmentOctets, tables}}
		if permuting != tables {
			builds = append(builds, build{"gemm_coop by permutes", coopOctets, permuting}, build{"gemm_fragment by permutes", fragmentOctets, permuting})
		}
		for _, build := range builds {
			t.Run(build.name+" "+d.String(), func(t *testing.T) {
				t.Parallel()
				w := newWork(t, 1, 1)
				m := w.matrix(d, rows, cols)
				y := &ir.Value{ID: 1, Type: ir.MakeType(ir.F16, rows, cols), Offset: -1}
				c := kernels.Candidate{
					Kernel:   fmt.Sprintf("octets %s %s", build.name, d),
					Build:    func() (*kernel.Func, error) { return build.make(build.of, rows, cols) },
					Consts:   []ir.Const{{Name: "rows", Value: rows}, {Name: "cols", Value: cols}},
					Grid:     [3]int{rows, 1, 1},
					Operands: []kernels.Operand{{Name: "w", Value: m, Access: kernel.Read}, {Name: "y", Value: y, Access: kernel.Write}},
				}
				got := kerneltest.Halves(kerneltest.Launch(t, c, w.sizes, w.data)[y])
				weights := make([]float32, rows*cols)
				if err := gguf.Dequantize(weights, w.want[m], d); err != nil {
					t.Fatal(err)
				}
				for r := range rows {
					row := weights[r*cols:][:cols]
					largest := 0.0
					for _, x := range row {
						largest = max(largest, math.Abs(float64(x)))
					}
					for i := range cols {
						at := coopElement(i)
						if diff := math.Abs(float64(got[r*cols+i]) - float64(row[at])); !(diff <= 3*largest/2048) {
							t.Fatalf("row %d element %d is %g, want %g", r, at, got[r*cols+i], row[at])
						}
					}
				}
			})
		}
	}
}

// TestOctetsAgree: gemm_coop, which multiplies scales in f32 and rounds them, and gemm_fragment have the same f16 of
// weights.
func TestOctetsAgree(t *testing.T) {
	const rows, cols = 3, 512
	for _, d := range []ir.DType{ir.Q4_K, ir.Q5_K, ir.Q6_K, ir.Q8_0, ir.Q4_0} {
		w := newWork(t, 1, 1)
		m, of := w.matrix(d, rows, cols), weight.FormatOf(kerneltest.Lookup(t, "sm_90-cuda"), d, cols)
		var got [2][]byte
		for i, build := range []func(w *weight.Format, rows, cols int) (*kernel.Func, error){coopOctets, fragmentOctets} {
			y := &ir.Value{ID: 1, Type: ir.MakeType(ir.F16, rows, cols), Offset: -1}
			c := kernels.Candidate{
				Kernel:   fmt.Sprintf("octets %d %s", i, d),
				Build:    func() (*kernel.Func, error) { return build(of, rows, cols) },
				Consts:   []ir.Const{{Name: "rows", Value: rows}, {Name: "cols", Value: cols}},
				Grid:     [3]int{rows, 1, 1},
				Operands: []kernels.Operand{{Name: "w", Value: m, Access: kernel.Read}, {Name: "y", Value: y, Access: kernel.Write}},
			}
			got[i] = kerneltest.Launch(t, c, w.sizes, w.data)[y]
		}
		if !bytes.Equal(got[0], got[1]) {
			t.Errorf("%s: octets differ", d)
		}
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
		for p := range weight.FragmentIterations {
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
