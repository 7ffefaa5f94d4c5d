package matmul_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/kernels/matmul"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

func TestGemvFormats(t *testing.T) {
	for d, k := range kerneltest.AllFormats() {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			for _, on := range []*target.Target{kerneltest.Llvmpipe(t), kerneltest.WithWave(t, 64)} {
				var widest []byte
				for _, cols := range kerneltest.Some([]int{8, 4, 2, 1}) {
					w := newWork(t, cols, cols)
					m := w.matrix(d, 77, k) // before x: the same for all cols
					y := w.op("linear", nil, w.rows(ir.T, ir.Dim(k)), m)
					c := first(t, w.candidates(on, y), "gemv")
					got := w.bits(c, cols, y)[y]
					if widest == nil {
						widest = got
					}
					if !bytes.Equal(got, widest[:len(got)]) {
						t.Errorf("subgroups of %d: %d columns give other bits than 8", on.Wave, cols)
					}
				}
			}
		})
	}
}

// byteFormats have codes that are multiplied as bytes: one of each layout that is not packed, and of those some
// with and without offsets, with scales of halves, of a table of nibbles, of digits and of grids.
var byteFormats = []ir.DType{ir.Q4_0, ir.Q4_1, ir.Q8_0, ir.Q2_K, ir.Q3_K, ir.Q4_K, ir.Q5_K, ir.Q6_K, ir.IQ4_NL, ir.NVFP4, ir.TQ1_0, ir.IQ2_XXS, ir.IQ3_S, ir.IQ1_M}

// TestGemvFixed runs projections of an x in fixed point, beside one that is not, over
// lanes that all have a unit and over some that have none. All shapes of all widths have to
// give the same bits with subgroups of one size, also where codes are chosen by byte permutes.
func TestGemvFixed(t *testing.T) {
	const (
		uneven = 21 * 64  // no whole number of the groups of 128 whose squares are added up
		long   = 17 * 256 // with subgroups of 8: 9 subgroups, of which all but one have two turns, or 17, or 6
		twice  = 8192     // two teams round twice as many elements as they have lanes
	)
	for i, d := range byteFormats {
		lengths := []int{5 * 256}
		switch d {
		case ir.Q4_K, ir.Q6_K:
			lengths = []int{256, 5 * 256, long}
			if d == ir.Q4_K {
				lengths = append(lengths, twice)
			}
		case ir.Q8_0:
			lengths = []int{256, 5 * 256, long, uneven}
		}
		for j, k := range lengths {
			if !kerneltest.Takes(i+j, 3) {
				continue
			}
			t.Run(fmt.Sprint(d, " ", k), func(t *testing.T) {
				t.Parallel()
				thorough := len(lengths) > 1 && (k == 5*256 || k == uneven || k == long && d == ir.Q6_K)
				widths, waves := []int{8, 1}, []int{8}
				if thorough && k != long {
					waves = []int{8, 32, 64}
				}
				if thorough && d == ir.Q4_K {
					widths = []int{8, 4, 2, 1}
				}
				if k == twice {
					widths, waves = []int{1}, []int{32}
				}
				for _, wave := range waves {
					on := kerneltest.Llvmpipe(t)
					if wave != on.Wave {
						on = kerneltest.WithWave(t, wave)
					}
					dot := *on
					dot.Dot = true
					if thorough && d == ir.Q4_K {
						dot.AMD = &target.AMD{} // whose lanes keep more columns
					}
					var widest [][]byte
					for i, cols := range append(widths, widths[0]) {
						if i == len(widths) { // as through CUDA: the same bits in other ways
							dot.Permute, dot.Brief = true, true
						}
						w := newWork(t, cols, cols)
						out := w.fixedGroup(d, k)
						tries := map[string]bool{} // one candidate of each kind is enough
						for _, c := range kerneltest.Different(w.candidates(&dot, out...)) {
							if !strings.HasPrefix(c.Kernel, "gemv ") || !strings.Contains(c.Kernel, "*fixed") || c.Order != fmt.Sprint("fixed w", wave) {
								t.Fatalf("%s of order %q", c.Kernel, c.Order)
							}
							subgroups, _, _ := strings.Cut(c.Shape, ",")
							kind := fmt.Sprint(subgroups, strings.Contains(c.Shape, "teams"), strings.Contains(c.Shape, "columns"))
							if tries[kind] || !thorough && len(tries) > 0 {
								continue
							}
							tries[kind] = true
							got := w.bits(c, cols, out...)
							for i, y := range out {
								if len(widest) == i {
									widest = append(widest, got[y])
								}
								if !bytes.Equal(got[y], widest[i][:len(got[y])]) {
									t.Errorf("%s: output %d of %d columns has other bits than that of 8", c.Kernel, i, cols)
								}
							}
						}
					}
				}
			})
		}
	}
}

// TestGemvChunks holds that projections in float32 alone have, in several rows, the bits that they have in one row
// beside projections in fixed point: in a step of one row they share a dispatch.
func TestGemvChunks(t *testing.T) {
	for _, k := range []int{5 * 256, 2048, 5 * 1024, 21 * 64} {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			t.Parallel()
			on := *kerneltest.WithWave(t, 32)
			on.Dot, on.Fragments = true, true
			d := ir.Q4_K
			if k%256 != 0 {
				d = ir.Q8_0
			}
			one := newWork(t, 1, 1)
			out := one.fixedGroup(d, k)
			best := one.candidates(&on, out...)[0]
			want := one.bits(best, 1, out...)[out[0]]
			for _, rows := range []int{2, 4, 8, 16} {
				w := newWork(t, rows, rows)
				w.f.Class = ir.ExactStep
				y := w.fixedGroup(d, k)[0]
				candidates := func() []kernels.Candidate { return kerneltest.Different(w.candidates(&on, y)) }
				all := w.ops
				w.ops = all[:2] // the norm and the projection in float32
				if slices.ContainsFunc(candidates(), func(c kernels.Candidate) bool { return strings.Contains(c.Kernel, "chunks") }) {
					t.Errorf("%d rows: chunks, though no step of one row has the projection beside one in fixed point", rows)
				}
				w.p.Funcs = append(w.p.Funcs, &ir.Func{Name: "one", Rows: 1, Groups: []*ir.Group{{Ops: all}}})
				found := 0
				for _, c := range candidates() {
					if !strings.Contains(c.Kernel, "chunks") {
						continue
					}
					found++
					if c.Order != best.Order {
						t.Errorf("%s adds in order %q", c.Kernel, c.Order)
					}
					if have := w.bits(c, rows, y)[y]; !bytes.Equal(have[:len(want)], want) {
						t.Errorf("%d rows: %s has other bits than beside projections in fixed point", rows, c.Kernel)
					}
				}
				if (found > 0) != (rows > 2) {
					t.Errorf("%d rows: %d candidates in chunks", rows, found)
				}
			}
		})
	}
}

// TestGemvTimed has the shapes that are offered to be timed, of short and long rows: the same bits as the first one's.
func TestGemvTimed(t *testing.T) {
	for _, c := range []struct {
		d       ir.DType
		wave, k int
		want    string // what a shape among them is called
	}{{ir.Q4_K, 8, 5 * 256, "16 teams"}, {ir.Q6_K, 8, 17 * 256, "4 of 64 rows, 8 teams"}, {ir.Q8_0, 32, 17 * 1024, "6x32, 4 of 24 rows"}} {
		t.Run(fmt.Sprint(c.d, " ", c.k), func(t *testing.T) {
			t.Parallel()
			on := kerneltest.WithWave(t, c.wave)
			on.Dot, on.Units = true, 1
			w := newWork(t, 1, 1)
			y := w.op("linear", nil, w.op("fixed12", nil, w.rows(ir.T, ir.Dim(c.k))), w.matrix(c.d, 70, c.k))
			var first []byte
			shapes := ""
			for i, candidate := range kerneltest.Different(kernels.Candidates(w.site(on, y), "gemv")) {
				if i > 0 && !candidate.Timed {
					continue
				}
				got := w.checkWith(kerneltest.InterpretOnly, candidate, 1, y)[y]
				if first == nil {
					first = got
				} else if shapes += candidate.Shape + "; "; !bytes.Equal(got, first) {
					t.Errorf("%s has other bits than the first", candidate.Shape)
				}
			}
			if !strings.Contains(shapes, c.want) {
				t.Errorf("no %q among %s", c.want, shapes)
			}
		})
	}
}

// fixedGroup builds projections of an x in fixed point and one that is not, behind a norm.
func (w *work) fixedGroup(d ir.DType, k int) []*ir.Value {
	gate, up, down, plain := w.matrix(d, 37, k), w.matrix(d, 37, k), w.matrix(d, 77, k), w.matrix(ir.F32, 11, k)
	gain := w.vector("gain", k)
	x := w.rows(ir.T, ir.Dim(k))
	clear(w.data[x][:4*32]) // a run of zeros
	x = w.op("rmsnorm", ir.Attrs{{Name: "eps", Value: 1e-5}, {Name: "group", Value: int64(k)}}, x, gain)
	exact := w.op("linear", nil, x, plain)
	x = w.op("fixed12", nil, x)
	return []*ir.Value{exact, w.glu("silu", w.op("linear", nil, x, gate), w.op("linear", nil, x, up)), w.op("linear", nil, x, down)}
}

// TestGemvNormedRuns has a norm of runs of x, in fixed point, with weights whose scales are of super-blocks, of halves
// and of runs: candidates have teams, and all widths give the same bits, those of one format on the device, too.
func TestGemvNormedRuns(t *testing.T) {
	for _, d := range []ir.DType{ir.Q4_K, ir.Q2_K, ir.Q8_0, ir.Q4_1} {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			const k, run, n = 512, 256, 9
			on := *kerneltest.Llvmpipe(t)
			on.Dot = true
			launchers, widths := []kerneltest.Launcher{kerneltest.InterpretOnly}, []int{8, 1}
			if d == ir.Q4_K && !testing.Short() {
				launchers, widths = append(launchers, kerneltest.OnDevice), []int{8, 4, 2, 1}
			}
			widest := make([][]byte, len(launchers))
			for _, cols := range widths {
				w := newWork(t, cols, cols)
				m, gain := w.matrix(d, n, k), w.vector("gain", k)
				x := w.op("rmsnorm", ir.Attrs{{Name: "eps", Value: 1e-5}, {Name: "group", Value: int64(run)}}, w.rows(ir.T, k), gain)
				y := w.op("linear", nil, w.op("fixed12", nil, x), m)
				y = w.op("add", nil, y, w.input(n))
				list := w.candidates(&on, y)
				for _, c := range list {
					if !strings.HasPrefix(c.Kernel, "gemv norm/2 ") || !strings.Contains(c.Shape, "teams") {
						t.Fatal(c.Kernel)
					}
				}
				c := first(t, list, "gemv")
				if kerneltest.Showing(t, c) {
					w.check(c, cols, y)
				}
				for i, launch := range launchers {
					got := w.checkWith(launch, c, cols, y)[y]
					if widest[i] == nil {
						widest[i] = got
					}
					if !bytes.Equal(got, widest[i][:len(got)]) {
						t.Errorf("%s: %d columns give other bits than 8", c.Kernel, cols)
					}
				}
			}
		})
	}
}

// TestNormsRuns has norms of runs that no projection takes in.
func TestNormsRuns(t *testing.T) {
	on := *kerneltest.Llvmpipe(t)
	on.Dot = true
	for _, c := range []struct {
		of     string
		d      ir.DType
		k, run int
		change func(t *target.Target)
		want   bool
	}{
		{of: "runs of two blocks", d: ir.Q4_K, k: 1024, run: 512, want: true},
		{of: "half a block", d: ir.Q4_K, k: 1024, run: 128},
		{of: "rows without blocks", d: ir.Q8_0, k: 32 * 20, run: 32 * 5, want: true},
		{of: "weights that are not multiplied as bytes", d: ir.F16, k: 1024, run: 512},
		{of: "no dot products", d: ir.Q4_K, k: 1024, run: 512, change: func(t *target.Target) { t.Dot = false }},
		{of: "a processor", d: ir.Q4_K, k: 1024, run: 512, change: func(t *target.Target) { t.FewKernels = true }},
		{of: "rows too long for teams", d: ir.Q4_K, k: 1 << 15, run: 512},
	} {
		w, on := newWork(t, 1, 1), on
		if c.change != nil {
			c.change(&on)
		}
		x := w.op("rmsnorm", ir.Attrs{{Name: "eps", Value: 1e-5}, {Name: "group", Value: int64(c.run)}}, w.rows(ir.T, ir.Dim(c.k)), w.vector("gain", c.k))
		y := w.op("linear", nil, x, w.matrix(c.d, 8, c.k))
		if got := matmul.NormsRuns(&on, x.Def, y.Def, 1); got != c.want {
			t.Errorf("%s: %t", c.of, got)
		}
	}
}

// TestGemvSquare has the activation of a projection without a gate.
func TestGemvSquare(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		on := *kerneltest.Llvmpipe(t)
		on.Dot = fixed
		var widest []byte
		for _, cols := range []int{8, 1} {
			w := newWork(t, cols, cols)
			m := w.matrix(ir.Q5_0, 9, 512)
			x := w.rows(ir.T, 512)
			if fixed {
				x = w.op("fixed12", nil, x)
			}
			y := w.op("relu2", nil, w.op("linear", nil, x, m))
			c := first(t, w.candidates(&on, y), "gemv")
			got := w.bits(c, cols, y)[y]
			if widest == nil {
				widest = got
			}
			if !bytes.Equal(got, widest[:len(got)]) {
				t.Errorf("%s: %d columns give other bits than 8", c.Kernel, cols)
			}
		}
	}
}

// TestGemvScaled has a factor behind a projection, of the file or not, and what is added to that.
func TestGemvScaled(t *testing.T) {
	for _, c := range []kerneltest.Case{
		{Rows: 3, Terms: 96, Globals: "step @a : f32[T, 96]\nstep @b : f32[T, 24]\nweight @w : f16[24, 96]\n",
			Group: "%0 = linear @a, @w : f32[T, 24]\n%1 = scale %0 {factor=0.375} : f32[T, 24]\n%2 = add %1, @b : io f32[T, 24]"},
		{Rows: 1, Terms: 96, Globals: "step @a : f32[T, 96]\nweight @g : f32[96]\nweight @w : f32[24, 96]\nweight @s : f32[1]\n",
			Group: "%0 = rmsnorm @a, @g {eps=1e-05, group=96} : f32[T, 96]\n%1 = linear %0, @w : f32[T, 24]\n%2 = scale %1, @s {factor=0.375} : io f32[T, 24]"},
	} {
		c.Family, c.Ctx, c.Slots = "gemv", 64, 1
		c.Run(t)
		c.RunOn(t, kerneltest.Lookup(t, "sm_90-cuda"))
		c.CheckBuild(t)
	}
}

// TestGemvAhead has wide steps of projections in float32, of which lanes load the first weights before x: each row has
// the bits that it has in a step of few rows, with as many subgroups.
func TestGemvAhead(t *testing.T) {
	on := kerneltest.WithWave(t, 32)
	on.Thresholds.LoadsEarly = true
	for _, normed := range []bool{false, true} {
		make := func(rows int) (*work, *ir.Value) {
			w := newWork(t, rows, rows)
			w.f.Class = ir.ExactStep
			weights, gain := w.matrix(ir.F32, 7, 2048), w.weight("gain", ir.F32, 2048)
			x := w.rows(ir.T, 2048)
			if normed {
				x = w.op("rmsnorm", ir.Attrs{{Name: "eps", Value: 1e-6}, {Name: "group", Value: int64(2048)}}, x, gain)
			}
			return w, w.op("linear", nil, x, weights)
		}
		want := map[string][]byte{}
		few, y := make(8)
		for _, c := range kerneltest.Different(few.candidates(on, y)) {
			if _, ok := want[c.Order]; !ok {
				want[c.Order] = few.bits(c, 8, y)[y]
			}
		}
		found := 0
		many, y := make(16)
		for _, c := range kerneltest.Different(many.candidates(on, y)) {
			if !strings.Contains(c.Kernel, "tiled ahead 4") {
				continue
			}
			found++
			if have := many.bits(c, 16, y)[y]; want[c.Order] == nil || !bytes.Equal(have[:len(want[c.Order])], want[c.Order]) {
				t.Errorf("norm %t: %s has other bits than 8 rows", normed, c.Kernel)
			}
		}
		if found == 0 {
			t.Errorf("norm %t: no candidate loads weights ahead", normed)
		}
	}
}
