package matmul_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/ir"
)

// TestGemmWide holds that products of four subgroups give 16, 32 and 64 rows the bits that gemv gives one. What groups
// have in common is tried by turns.
func TestGemmWide(t *testing.T) {
	on := matrixTarget
	on.CUDA, on.Groups = 90, true
	groups := map[string]func(w *work, d ir.DType, k int) []*ir.Value{
		"gate and up": fixedGroups["gate and up"], "residual": fixedGroups["residual"],
		"two": func(w *work, d ir.DType, k int) []*ir.Value {
			one, bias, other := w.matrix(d, 75, k), w.vector("bias", 75), w.matrix(ir.Q6_K, 16, k)
			x := w.op("fixed12", nil, w.zeros(k))
			return []*ir.Value{w.op("linear", nil, x, one, bias), w.op("linear", nil, x, other)}
		},
	}
	groups["many"] = func(w *work, d ir.DType, k int) []*ir.Value {
		m, few, gain := w.matrix(d, 300, k), w.matrix(d, 200, k), w.vector("gain", k)
		x := w.op("rmsnorm", ir.Attrs{{Name: "eps", Value: 1e-5}, {Name: "group", Value: int64(k)}}, w.zeros(k), gain)
		x = w.op("fixed12", nil, x)
		return []*ir.Value{w.op("linear", nil, x, m), w.op("linear", nil, x, few)}
	}
	names := []string{"gate and up", "residual", "two"}
	formats := []ir.DType{ir.Q4_K, ir.Q5_K, ir.Q6_K, ir.Q8_0}
	for i, d := range formats {
		for j, blocks := range []int{2, 5, 9} { // a pair; a chunk, and one of less; more tiles than a workgroup has at once
			name := names[(i+j)%len(names)]
			rows := []int{16, 32, 64}[(i+2*j)%3]
			if blocks == 9 {
				name = "many"
			}
			if d == ir.Q8_0 {
				blocks = max(blocks, 4) // gemm_fixed has rows of fewer
			}
			t.Run(fmt.Sprint(d, " ", blocks, " ", rows, " ", name), func(t *testing.T) {
				t.Parallel()
				var want [][]byte
				for turn, cols := range []int{rows, rows, 1} {
					on := on
					on.Groups = turn == 0
					w := newWork(t, cols, cols)
					w.f.Class, w.f.Sequences, w.f.Run = ir.ExactStep, ir.ManySequences, min(cols, 8)
					out := groups[name](w, d, 256*blocks)
					family := "gemv "
					var counts *ir.Value
					if cols > 1 {
						family = []string{"gemm_wide ", "gemm_fixed "}[turn]
						counts = w.makeWorkspace(&on, out...)
					}
					found := false
					for _, c := range w.candidates(&on, out...) {
						if !strings.HasPrefix(c.Kernel, family) {
							continue
						}
						found = true
						got := kerneltest.InterpretOnly(w.t, c, w.sizes, w.data)
						if turn == 0 && c.Grid[1] != max(1, (blocks+3)/4) {
							t.Errorf("%s: %d workgroups share a row", c.Kernel, c.Grid[1])
						}
						if c.Grid[1] > 1 && !bytes.Equal(got[counts], w.data[counts]) {
							t.Errorf("the counters are %v at the end", got[counts])
						}
						for n, y := range out {
							if turn == 0 {
								want = append(want, got[y])
							} else if size := len(got[y]); !bytes.Equal(got[y], want[n][:size]) {
								t.Errorf("%s: output %d has other bits than with %d rows", c.Kernel, n, rows)
							}
						}
						break
					}
					if !found {
						t.Fatalf("%d rows: no %s", cols, family)
					}
				}
			})
		}
	}
}

// TestGemmWideLargest holds that sums of the largest codes and integers of x stay within the mantissa of a window.
func TestGemmWideLargest(t *testing.T) {
	on := matrixTarget
	on.CUDA, on.Groups = 90, true
	for d, codes := range map[ir.DType]struct {
		first, size, block int
		all                byte
	}{
		ir.Q4_K: {16, 128, 144, 0xff}, ir.Q5_K: {16, 160, 176, 0xff}, ir.Q6_K: {0, 192, 210, 0},
	} {
		for _, rows := range []int{16, 32, 64} { // with one set of accumulators, and two
			t.Run(fmt.Sprint(d, " ", rows), func(t *testing.T) {
				t.Parallel()
				var want []byte
				for _, cols := range []int{1, rows} {
					w := newWork(t, cols, cols)
					w.f.Class, w.f.Sequences, w.f.Run = ir.ExactStep, ir.ManySequences, min(cols, 8)
					m, x := w.matrix(d, 16, 1024), w.zeros(1024)
					for i := range w.want[m] {
						if at := i % codes.block; at >= codes.first && at < codes.first+codes.size {
							w.want[m][i] = codes.all
						}
					}
					w.lay(m)
					w.give(x, kerneltest.F32Bytes(slices.Repeat([]float32{1}, cols*1024)))
					out := w.op("linear", nil, w.op("fixed12", nil, x), m)
					family := "gemv "
					if cols > 1 {
						family = "gemm_wide "
						w.makeWorkspace(&on, out)
					}
					all := w.candidates(&on, out)
					i := slices.IndexFunc(all, func(c kernels.Candidate) bool { return strings.HasPrefix(c.Kernel, family) })
					if i < 0 {
						t.Fatalf("%d rows: no %s", cols, family)
					}
					got := kerneltest.InterpretOnly(w.t, all[i], w.sizes, w.data)[out]
					if cols == 1 {
						want = got
					}
					for row := range cols {
						if !bytes.Equal(got[row*len(want):][:len(want)], want) {
							t.Fatalf("row %d: %v, not %v", row, got[row*len(want):][:len(want)], want)
						}
					}
				}
			})
		}
	}
}
