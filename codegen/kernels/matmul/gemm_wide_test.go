package matmul_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// TestGemmWide holds that products of four subgroups give 16, 32 and 64 rows the bits that gemv gives one. What groups
// have in common is tried by turns.
func TestGemmWide(t *testing.T) {
	on := matrixTarget
	on.CUDA, on.Groups, on.Thresholds.Parts = 90, true, 1<<20
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
				var wide [][]byte
				for turn, cols := range []int{rows, rows, rows, 1} { // in parts, in one dispatch, by others
					on := on
					on.Groups = turn < 2
					if turn == 1 {
						on.Thresholds.Parts = 0
					}
					w := newWork(t, cols, max(1, cols-3))
					w.f.Class, w.f.Sequences, w.f.Run = ir.ExactStep, ir.ManySequences, min(cols, 8)
					out := groups[name](w, d, 256*blocks)
					var got map[*ir.Value][]byte
					switch turn {
					case 0:
						got = w.runWide(&on, out...)
						for _, y := range out {
							wide = append(wide, got[y])
						}
						continue
					case 1:
						got = w.runWide(&on, out...)
					case 2:
						w.makeWorkspace(&on, out...)
						got = w.runFamily(&on, "gemm_fixed", "", out...)
					default:
						got = w.runFamily(&on, "gemv", "", out...)
					}
					for n, y := range out {
						size := len(got[y]) / cols * w.live()
						if !bytes.Equal(got[y][:size], wide[n][:size]) {
							t.Errorf("output %d has other bits than with %d rows by %d", n, cols, rows)
						}
					}
				}
			})
		}
	}
}

// runWide returns what gemm_wide makes of the group: in one dispatch, or in one that packs x, one of products of parts,
// and one that adds these up.
func (w *work) runWide(on *target.Target, out ...*ir.Value) map[*ir.Value][]byte {
	w.t.Helper()
	s := w.site(on, out...)
	wants := strategy.Wants(s)
	i := slices.IndexFunc(wants, func(r kernels.Rewrite) bool { return r.Pack != "" })
	if i < 0 { // one dispatch does it all
		counts := w.makeWorkspace(on, out...)
		got := w.runFamily(on, "gemm_wide", "", out...)
		if b := got[counts]; b != nil && !bytes.Equal(b, w.data[counts]) {
			w.t.Errorf("the counters are %v at the end", b)
		}
		return got
	}
	packing, products, err := kernels.Parts(w.make, s.Group, wants[i])
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range []struct {
		family string
		ops    []*ir.Op
	}{{"pack12", packing}, {"gemm_wide", products}} {
		w.ops = d.ops
		var results []*ir.Value
		for _, op := range d.ops {
			if op.Kind.Name != "unpack12" {
				results = append(results, op.Result)
			}
		}
		for v, b := range w.runFamily(on, d.family, "", results...) {
			if slices.Contains(results, v) {
				w.give(v, b)
			}
		}
	}
	w.ops = s.Group.Ops
	return w.runFamily(on, "add_parts", "", out...)
}

// TestGemmWidePacked holds that gemm_wide reads packed rows of as many tiles as the step has, and no other part or
// layout, and that add_parts packs a result if it is the only one.
func TestGemmWidePacked(t *testing.T) {
	on := matrixTarget
	on.CUDA, on.Groups, on.Thresholds.Parts = 90, true, 1<<20
	const k = 1024
	for name, c := range map[string]struct {
		rows, each int
		lanes      string
		want       bool
	}{
		"fits": {32, 1024, "now", true}, "fewer tiles": {16, 1024, "now", false}, "other parts": {32, 512, "now", false}, "other layout": {32, 1024, "a--", false},
	} {
		w := newWork(t, 32, 16)
		w.f.Class, w.f.Sequences, w.f.Run = ir.ExactStep, ir.ManySequences, 8
		attrs := ir.Attrs{{Name: "rows", Value: int64(c.rows)}, {Name: "columns", Value: int64(16)}, {Name: "lanes", Value: c.lanes}}
		packed := w.given(16, "pack12", attrs, w.rows(ir.T, k))
		out := w.op("linear_parts", ir.Attrs{{Name: "each", Value: int64(c.each)}}, w.op("unpack12", attrs, packed), w.matrix(ir.Q4_K, 64, k))
		if got := w.candidates(&on, out); len(got) > 0 != c.want {
			t.Errorf("%s: %d candidates", name, len(got))
		}
	}
	w := newWork(t, 32, 32)
	w.f.Class, w.f.Sequences, w.f.Run = ir.ExactStep, ir.ManySequences, 8
	count := ir.Attrs{{Name: "count", Value: int64(2)}}
	x, other := w.op("add_parts", count, w.rows(ir.T, 2*k)), w.op("add_parts", count, w.rows(ir.T, 2*k))
	if got := w.candidates(&on, x, other); len(got) == 0 {
		t.Error("no candidate for two sums")
	}
	packed := w.op("pack12", ir.Attrs{{Name: "rows", Value: int64(32)}, {Name: "columns", Value: int64(16)}, {Name: "lanes", Value: "n-w"}}, other)
	if got := w.candidates(&on, x, other, packed); len(got) > 0 {
		t.Errorf("%d candidates for two sums of which one is packed", len(got))
	}
}

// TestGemmWideLargest holds that sums of the largest codes and integers of x stay within the mantissa of a window.
func TestGemmWideLargest(t *testing.T) {
	on := matrixTarget
	on.CUDA, on.Groups, on.Thresholds.Parts = 90, true, 1<<20
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
					if cols == 1 {
						want = w.runFamily(&on, "gemv", "", out)[out]
						continue
					}
					got := w.runWide(&on, out)[out]
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

// TestAddPartsPacks holds that op pack12 leaves the oracle's bits in a dispatch of its own, and that they are the same
// where what adds up parts packs its result.
func TestAddPartsPacks(t *testing.T) {
	on := matrixTarget
	on.CUDA, on.Groups = 90, true
	for i, lanes := range []string{"now a--", "n-w", "a-h", "n-- a-- now"} {
		t.Run(lanes, func(t *testing.T) {
			t.Parallel()
			const k = 768
			w := newWork(t, 32, 29)
			w.f.Class, w.f.Sequences, w.f.Run = ir.ExactStep, ir.ManySequences, 8
			attrs := ir.Attrs{{Name: "rows", Value: int64(32)}, {Name: "columns", Value: int64([]int{16, 32}[i%2])}, {Name: "lanes", Value: lanes}}
			sum := w.op("add_parts", ir.Attrs{{Name: "count", Value: int64(3)}}, w.rows(ir.T, 3*k))
			x := w.op("add", nil, sum, w.rows(ir.T, k))
			args := []*ir.Value{x}
			if i%2 == 0 {
				args = append(args, w.vector("gain", k))
			}
			packed, squares := w.op("pack12", attrs, args...), w.op("squares", nil, x)
			joined := w.runFamily(&on, "add_parts", "", x, packed, squares)
			w.give(x, joined[x])
			w.ops = w.ops[2:]
			alone := w.runFamily(&on, "pack12", "", packed, squares)
			for _, v := range []*ir.Value{packed, squares} {
				if !bytes.Equal(joined[v], alone[v]) {
					t.Errorf("%s: %s has other bits where parts are added up", v.Def.Kind.Name, v)
				}
			}
			if want := w.meaning(packed.Def, w.live()); !bytes.Equal(alone[packed], want) {
				t.Error("packed rows have other bits than the oracle's")
			}
		})
	}
}
