package matmul_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// matrixTarget is a small GPU of which it is known how it deals elements of matrices to lanes, and which copies to
// shared memory while lanes go on.
var matrixTarget = target.Target{Wave: 32, Workgroup: 1024, Shared: 48 << 10, SharedOptIn: 227 << 10, Units: 2, Dot: true, Fragments: true, CUDA: 80}

// fixedGroups are groups over an x in fixed point. They make the weights before x: the same
// for any number of columns.
var fixedGroups = map[string]func(w *work, d ir.DType, k int) []*ir.Value{
	"gate and up": func(w *work, d ir.DType, k int) []*ir.Value {
		gate, up, gain := w.matrix(d, 37, k), w.matrix(d, 37, k), w.vector("gain", k)
		x := w.op("rmsnorm", ir.Attrs{{Name: "eps", Value: 1e-5}, {Name: "group", Value: int64(k)}}, w.zeros(k), gain)
		x = w.op("fixed12", nil, x)
		return []*ir.Value{w.glu("silu", w.op("linear", nil, x, gate), w.op("linear", nil, x, up))}
	},
	"two": func(w *work, d ir.DType, k int) []*ir.Value {
		one, bias, other := w.matrix(d, 75, k), w.vector("bias", 75), w.matrix(ir.Q8_0, 16, k)
		x := w.op("fixed12", nil, w.zeros(k))
		return []*ir.Value{w.op("linear", nil, x, one, bias), w.op("linear", nil, x, other)}
	},
	"residual": func(w *work, d ir.DType, k int) []*ir.Value {
		m := w.matrix(d, 41, k)
		y := w.op("linear", nil, w.op("fixed12", nil, w.zeros(k)), m)
		w.rng = rand.New(rand.NewPCG(3, 4))
		return []*ir.Value{w.op("add", nil, y, w.rows(ir.T, 41))}
	},
}

// zeros returns rows of k elements that begin with runs of zeros.
func (w *work) zeros(k int) *ir.Value {
	x := w.rows(ir.T, ir.Dim(k))
	clear(w.data[x][:4*64])
	return x
}

// TestGemmFixed holds that matrices give the bits that gemv gives one column. What groups have in common is tried with
// three formats; the others have one group each, by turns.
func TestGemmFixed(t *testing.T) {
	names := slices.Sorted(maps.Keys(fixedGroups))
	for i, d := range byteFormats {
		thorough := d == ir.Q4_K || d == ir.Q6_K || d == ir.Q2_K
		for k, blocks := range []int{1, 6, 19} { // less than a chunk, not whole ones, and more than lanes keep
			if blocks != 6 && !thorough {
				continue
			}
			for j, name := range names {
				if thorough && !kerneltest.Takes(i+j+k, 3) || !thorough && (j != i%len(names) || !kerneltest.Takes(i, 2)) {
					continue
				}
				build := fixedGroups[name]
				t.Run(fmt.Sprint(d, " ", blocks, " ", name), func(t *testing.T) {
					t.Parallel()
					var widest [][]byte
					all := []int{8, 3, 1}
					if d == ir.Q4_K { // two tiles of columns, of which the last is not full
						all = slices.Insert(all, 0, 16)
					}
					for _, cols := range all {
						w := newWork(t, cols, min(cols, 13))
						w.f.Class, w.f.Sequences, w.f.Run = ir.ExactStep, ir.ManySequences, min(cols, 8)
						out := build(w, d, 256*blocks)
						var counts *ir.Value
						if cols > 1 {
							counts = w.makeWorkspace(&matrixTarget, out...)
						}
						for _, c := range kerneltest.Different(w.candidates(&matrixTarget, out...)) {
							if (cols > 1) != strings.HasPrefix(c.Kernel, "gemm_fixed ") {
								continue
							}
							got := w.check(c, min(cols, 13), out...)
							if tiles := max(1, cols/8); cols > 1 && c.Grid[2] != tiles {
								t.Errorf("%s: %d tiles of columns", c.Kernel, c.Grid[2])
							}
							if split := c.Grid[1] > 1; cols > 1 && split != (blocks > 16) {
								t.Errorf("%s: %d workgroups share a row", c.Kernel, c.Grid[1])
							} else if split && !bytes.Equal(got[counts], w.data[counts]) {
								t.Errorf("the counters are %v at the end", got[counts])
							}
							for i, y := range out {
								if cols == all[0] {
									widest = append(widest, got[y])
								} else if n := len(got[y]); !bytes.Equal(got[y], widest[i][:n]) {
									t.Errorf("%s: output %d has other bits than %d columns", c.Kernel, i, all[0])
								}
							}
						}
					}
					if len(widest) == 0 {
						t.Error("no gemm_fixed among the candidates")
					}
				})
			}
		}
	}
}

// TestGemmFixedDirect holds that gains that shared memory has no room for give the same bits.
func TestGemmFixedDirect(t *testing.T) {
	little := matrixTarget
	little.Shared, little.SharedOptIn = 1<<10, 48<<10
	for _, d := range []ir.DType{ir.Q4_0, ir.Q6_K} {
		t.Run(d.String(), func(t *testing.T) {
			const cols = 5
			w := newWork(t, cols, cols)
			out := fixedGroups["gate and up"](w, d, 256*6)
			w.makeWorkspace(&matrixTarget, out...)
			var want []byte
			for _, on := range []*target.Target{&matrixTarget, &little} {
				found := false
				for _, c := range w.candidates(on, out...) {
					if !strings.HasPrefix(c.Kernel, "gemm_fixed ") || strings.HasSuffix(c.Kernel, " gains=direct") != (on == &little) {
						continue
					}
					found = true
					got := w.check(c, cols, out...)[out[0]]
					if want == nil {
						want = got
					} else if !bytes.Equal(got, want) {
						t.Errorf("%s: other bits", c.Kernel)
					}
				}
				if !found {
					t.Errorf("no gemm_fixed with %d bytes of shared memory", on.Shared)
				}
			}
		})
	}
}

// TestGemmFixedAddsUp holds that workgroups that share rows, and have so many outputs that a lane adds up several after
// each other, give the bits that gemv gives one column, where registers can be bounded and where they cannot.
func TestGemmFixedAddsUp(t *testing.T) {
	const k, outputs = 256 * 17, 150
	few := matrixTarget
	few.Units = 1
	few.Thresholds.FixedRows = 3 // also of a step of three rows
	unbound := few
	unbound.CUDA = 0
	build := func(w *work) []*ir.Value {
		m, gain := w.matrix(ir.Q4_K, outputs, k), w.vector("gain", k)
		x := w.op("rmsnorm", ir.Attrs{{Name: "eps", Value: 1e-5}, {Name: "group", Value: int64(k)}}, w.zeros(k), gain)
		return []*ir.Value{w.op("linear", nil, w.op("fixed12", nil, x), m)}
	}
	one := newWork(t, 1, 1)
	out := build(one)
	want := one.bits(one.candidates(&few, out...)[0], 1, out...)[out[0]]
	for _, on := range []*target.Target{&few, &unbound} {
		for _, cols := range []int{8, 3} {
			w := newWork(t, cols, cols)
			out := build(w)
			w.makeWorkspace(on, out...)
			found := false
			for _, c := range w.candidates(on, out...) {
				if !strings.HasPrefix(c.Kernel, "gemm_fixed ") || c.Staging != nil {
					continue
				}
				found = true
				if bounded := c.Room > 0; bounded != on.BoundsRegisters() || c.Grid[1] < 2 {
					t.Errorf("%s: room for %d lanes, %d workgroups share a row", c.Kernel, c.Room, c.Grid[1])
				}
				if got := w.check(c, cols, out...)[out[0]]; !bytes.Equal(got[:len(want)], want) {
					t.Errorf("%d columns: %s has other bits than gemv", cols, c.Kernel)
				}
			}
			if !found {
				t.Errorf("%d columns: no gemm_fixed", cols)
			}
		}
	}
}
