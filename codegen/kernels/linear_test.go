package kernels_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel/racetest"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/matmul"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/layout"
)

// world is a program under construction, its data, and what it means.
type world struct {
	t    testing.TB
	p    *ir.Program
	f    *ir.Func
	n    *ir.Value
	make *ir.Builder
	ops  []*ir.Op
	rng  *rand.Rand
	data map[*ir.Value][]byte    // as on the device
	vals map[*ir.Value][]float64 // exact, of inputs and results
	mags map[*ir.Value][]float64 // what an error is relative to
	on   *target.Target          // whose layouts weights have
}

// newWorld has a function of rows rows, of which a step has n.
func newWorld(t testing.TB, rows, n int) *world {
	f := &ir.Func{Name: "f", Rows: rows}
	w := &world{t: t, p: &ir.Program{Ctx: 16, Slots: 1, Funcs: []*ir.Func{f}}, f: f, make: ir.NewBuilder(f),
		rng: rand.New(rand.NewPCG(1, 2)), data: map[*ir.Value][]byte{}, vals: map[*ir.Value][]float64{}, mags: map[*ir.Value][]float64{}, on: llvmpipe(t)}
	w.n = w.p.AddGlobal("n", ir.Step, ir.MakeType(ir.I32, 1))
	w.data[w.n] = i32Bytes(int32(n))
	return w
}

func (w *world) sizes(v *ir.Value) int {
	if d, ok := w.data[v]; ok {
		return len(d)
	}
	n, err := v.Type.Bytes(w.f.Rows, w.p.Ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return int(n)
}

// rows returns an arena value of random rows.
func (w *world) rows(rows, width ir.Dim) *ir.Value {
	v := &ir.Value{ID: 1000 + len(w.data), Type: ir.MakeType(ir.F32, rows, width), Offset: -1}
	n := int(width)
	if rows == ir.T {
		n *= w.f.Rows
	} else {
		n *= int(rows)
	}
	w.floats(v, n)
	return v
}

func (w *world) floats(v *ir.Value, n int) {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(w.rng.NormFloat64())
	}
	w.data[v] = f32Bytes(x)
	w.vals[v] = wide(x)
}

func (w *world) vector(name string, n int) *ir.Value {
	v := w.p.AddGlobal(name, ir.Weight, ir.MakeType(ir.F32, ir.Dim(n)))
	w.floats(v, n)
	return v
}

// matrix adds a weight of random blocks.
func (w *world) matrix(d ir.DType, rows, cols int) *ir.Value {
	return w.weight(fmt.Sprintf("m%d", len(w.p.Globals)), d, ir.Dim(rows), ir.Dim(cols))
}

func (w *world) weight(name string, d ir.DType, shape ...ir.Dim) *ir.Value {
	v := w.p.AddGlobal(name, ir.Weight, ir.MakeType(d, shape...))
	l, err := weight.LayoutOf(w.on, v)
	if err != nil {
		w.t.Fatal(err)
	}
	elements := 1
	for _, n := range shape {
		elements *= int(n)
	}
	src := synth.Blocks(w.rng, d, int64(elements), 0)
	exact := make([]float32, elements)
	if err := gguf.Dequantize(exact, src, d); err != nil {
		w.t.Fatal(err)
	}
	w.data[v], w.vals[v] = make([]byte, l.Bytes), wide(exact)
	if err := l.Fill(w.data[v], 0, src); err != nil {
		w.t.Fatal(err)
	}
	return v
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// op appends an op to the group and computes what it means.
func (w *world) op(kind string, attrs ir.Attrs, args ...*ir.Value) *ir.Value {
	op, err := w.make.Make(kind, attrs, args...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.ops = append(w.ops, op)
	r := op.Result
	a := make([][]float64, len(args))
	for i, v := range args {
		a[i] = w.vals[v]
	}
	width := int(r.Type.Last())
	y := make([]float64, w.count(r))
	mag := make([]float64, len(y))
	switch kind {
	case "last_row":
		n := int(w.data[args[1]][0])
		copy(y, a[0][(n-1)*width:])
	case "rmsnorm":
		group := attrs.Int("group")
		for r := 0; r < len(y); r += group {
			sum := 0.0
			for _, x := range a[0][r : r+group] {
				sum += x * x
			}
			for i := range group {
				y[r+i] = a[0][r+i] / math.Sqrt(sum/float64(group)+attrs.Float("eps")) * a[1][(r+i)%len(a[1])]
			}
		}
	case "fixed12":
		run, row := 32, width
		if n := attrs.Int("row"); n > 0 {
			row = n
		}
		if row%256 == 0 {
			run = 256
		}
		toFixed(y, mag, a[0], 2047, run)
	case "fixed8":
		toFixed(y, mag, a[0], 127, 32)
	case "bfloat16":
		w.toBF16(y, mag, args[0])
	case "linear":
		k := int(args[0].Type.Last())
		for i := range y {
			y[i], mag[i] = w.product(args[0], i/width*k, a[1][i%width*k:][:k])
			if len(a) == 3 {
				y[i] += a[2][i%width]
			}
		}
	case "relu2":
		for i, x := range a[0] {
			y[i] = max(x, 0) * max(x, 0)
			mag[i] = 2 * math.Abs(x) * w.mags[args[0]][i]
		}
	case "half":
		copy(y, a[0])
		copy(mag, w.mags[args[0]])
	case "glu":
		for i := range y {
			x := a[0][i]
			act := x / (1 + math.Exp(-x))
			if attrs.Str("act") == "gelu" {
				act = x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+.044715*x*x*x)))
			}
			y[i] = act * a[1][i]
			mag[i] = math.Abs(x)*w.mags[args[1]][i] + math.Abs(a[1][i])*w.mags[args[0]][i]
		}
	case "add":
		for i := range y {
			y[i] = a[0][i] + a[1][i]
			mag[i] = math.Abs(a[0][i]) + math.Abs(a[1][i])
			for _, v := range args {
				if m := w.mags[v]; m != nil {
					mag[i] += m[i]
				}
			}
		}
	default:
		w.expertOp(op, a, y, mag)
	}
	w.vals[r], w.mags[r] = y, mag
	return r
}

// toFixed rounds runs of x to multiples of their largest magnitude over most. What lies
// between two of them may become either: mag says how far it may be off.
func toFixed(y, mag, x []float64, most float64, run int) {
	for at := 0; at < len(y); at += run {
		largest := 0.0
		for _, v := range x[at : at+run] {
			largest = math.Max(largest, math.Abs(v))
		}
		for i, v := range x[at : at+run] {
			if largest == 0 {
				continue
			}
			n := v / largest * most
			y[at+i] = math.RoundToEven(n) / most * largest
			if math.Abs(math.Abs(n-math.Trunc(n))-.5) < 1e-6*most {
				mag[at+i] = largest / most
			}
		}
	}
}

// bf16 rounds to bf16, and returns what the result may be off as it lies near the middle of two, or else 0.
func bf16(x float64) (rounded, off float64) {
	_, e := math.Frexp(x)
	last := math.Ldexp(1, e-8)
	n := x / last
	if math.Abs(math.Abs(n-math.Trunc(n))-.5) < 1e-3 {
		off = last
	}
	return math.Round(n) * last, off
}

// toBF16 rounds x. Kernels round what is normed before they know the norm's scale.
func (w *world) toBF16(y, mag []float64, x *ir.Value) {
	before := w.vals[x]
	if op := x.Def; op != nil && op.Kind.Name == "rmsnorm" {
		in, gain := w.vals[op.Args[0]], w.vals[op.Args[1]]
		before = make([]float64, len(in))
		for i, v := range in {
			before[i] = v * gain[i%len(gain)]
		}
	}
	for i, v := range before {
		scale := 1.0
		if v != 0 {
			scale = w.vals[x][i] / v
		}
		r, off := bf16(v)
		y[i], mag[i] = r*scale, off*math.Abs(scale)
	}
}

// product is the sum of products of a row of weights, as kernels take them for x, with the elements of x from at on, and its
// magnitude. What rounded elements may be off counts as a magnitude of errors.
func (w *world) product(x *ir.Value, at int, row []float64) (sum, mag float64) {
	var off []float64
	halves := x.Def != nil && x.Def.Kind.Name == "bfloat16"
	if halves || x.Def != nil && strings.HasPrefix(x.Def.Kind.Name, "fixed") {
		off = w.mags[x]
	}
	for j, v := range w.vals[x][at:][:len(row)] {
		weight := row[j]
		if halves {
			var off float64
			weight, off = bf16(weight)
			mag += math.Abs(v) * off / magnitudes
		}
		p := v * weight
		sum += p
		mag += math.Abs(p)
		if off != nil {
			mag += off[at+j] * math.Abs(weight) / magnitudes
		}
	}
	return sum, mag
}

// orders is what sums in other orders may be off more: behind a silu 1.05 was seen with subgroups
// of 32 and 64, which add in another order than those of 8.
const orders = 1.1

// magnitudes is what a sum may be off of the magnitude of its terms.
const magnitudes = 4e-6

func (w *world) count(v *ir.Value) int {
	n, err := v.Type.Elements(w.f.Rows, w.p.Ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return int(n)
}

func (w *world) norm(x *ir.Value) *ir.Value {
	k := int(x.Type.Last())
	attrs := ir.Attrs{{Name: "eps", Value: 1e-5}, {Name: "group", Value: int64(k)}}
	return w.op("rmsnorm", attrs, x, w.vector(fmt.Sprintf("gain%d", len(w.p.Globals)), k))
}

func (w *world) linear(x *ir.Value, d ir.DType, n int) *ir.Value {
	return w.op("linear", nil, x, w.matrix(d, n, int(x.Type.Last())))
}

func (w *world) glu(act string, gate, up *ir.Value) *ir.Value {
	return w.op("glu", ir.Attrs{{Name: "act", Value: act}}, gate, up)
}

// candidates returns those of the group that w has built and that are worth a look; others read outputs.
func (w *world) candidates(t *target.Target, outputs ...*ir.Value) []kernels.Candidate {
	w.t.Helper()
	return strategy.Candidates(w.site(t, outputs...))
}

func (w *world) site(t *target.Target, outputs ...*ir.Value) *kernels.Site {
	return &kernels.Site{Program: w.p, Func: w.f, Group: &ir.Group{Name: "g", Ops: w.ops}, Outputs: outputs, Target: t}
}

// different returns candidates without those that share a module with an earlier one.
func different(list []kernels.Candidate) []kernels.Candidate {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(c kernels.Candidate) bool {
		had := seen[c.Kernel]
		seen[c.Kernel] = true
		return had
	})
}

// check runs a candidate and compares the first rows rows of its outputs.
func (w *world) check(c kernels.Candidate, rows int, outputs ...*ir.Value) map[*ir.Value][]byte {
	w.t.Helper()
	return w.checkWith(launch, c, rows, outputs...)
}

// bits is check in the interpreter, which gives all widths the same bits, and on the device, too, if that shows something.
func (w *world) bits(c kernels.Candidate, rows int, outputs ...*ir.Value) map[*ir.Value][]byte {
	w.t.Helper()
	if showing(w.t, c) {
		w.check(c, rows, outputs...)
	}
	return w.checkWith(interpretOnly, c, rows, outputs...)
}

// checkWith is check with another way to run it: by onDevice or interpretOnly all widths give the same bits.
func (w *world) checkWith(launch launcher, c kernels.Candidate, rows int, outputs ...*ir.Value) map[*ir.Value][]byte {
	w.t.Helper()
	return w.compared(c, launch(w.t, c, w.sizes, w.data), rows, outputs)
}

func (w *world) compared(c kernels.Candidate, got map[*ir.Value][]byte, rows int, outputs []*ir.Value) map[*ir.Value][]byte {
	w.t.Helper()
	for _, v := range outputs {
		w.compare(c, got, rows, v)
	}
	if w.on.Backend != llvmpipe(w.t).Backend { // weights lie otherwise for other targets
		return got
	}
	for _, wave := range otherWaves {
		for _, c := range w.candidates(withWave(w.t, wave), outputs...) {
			if racetest.First(c.Kernel, wave) {
				got := launch(w.t, c, w.sizes, w.data)
				for _, v := range outputs {
					w.compare(c, got, rows, v)
				}
			}
		}
	}
	return got
}

// otherWaves are sizes of subgroups that the device has not, but other devices.
var otherWaves = []int{32, 64}

// compare compares the first rows rows of an output.
func (w *world) compare(c kernels.Candidate, got map[*ir.Value][]byte, rows int, v *ir.Value) {
	w.t.Helper()
	y, want, mag := toF32(got[v]), w.vals[v], w.mags[v]
	width := int(v.Type.Last())
	for i := range min(rows*width, len(want)) {
		if bound := orders*magnitudes*mag[i] + 1e-5*math.Abs(want[i]) + 1e-6; !(math.Abs(float64(y[i])-want[i]) <= bound) {
			w.t.Fatalf("%s: %s row %d element %d is %g, want %g", c.Kernel, v, i/width, i%width, y[i], want[i])
		}
	}
	w.covered(c, v)
}

// covered holds the candidate's statement of who writes an output against its
// extent.
func (w *world) covered(c kernels.Candidate, v *ir.Value) {
	w.t.Helper()
	name := ""
	for _, o := range c.Operands {
		if o.Value == v {
			name = o.Name
		}
	}
	for _, cover := range c.Cover {
		if cover.Arg != name {
			continue
		}
		elements := 1
		for d, dim := range cover.Dims {
			elements *= dim
			groups, first := 1, 0
			if cover.First != nil {
				first = cover.First[d]
			}
			if a := cover.Axis[d]; a >= 0 {
				groups = c.Grid[a] - first
			}
			if cover.Tile[d] > 0 && groups*cover.Tile[d] < dim {
				w.t.Fatalf("%s: %s: %d workgroups of %d do not cover dim %d of %d", c.Kernel, name, groups, cover.Tile[d], d, dim)
			}
		}
		if elements != w.count(v) {
			w.t.Fatalf("%s: %s has %d elements, %d are covered", c.Kernel, name, w.count(v), elements)
		}
		return
	}
	w.t.Fatalf("%s: nothing covers %s", c.Kernel, name)
}

func llvmpipe(t testing.TB) *target.Target {
	d, err := target.Lookup("llvmpipe")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// withWave is llvmpipe with other subgroups than it has, as launch interprets.
func withWave(t testing.TB, wave int) *target.Target {
	on := *llvmpipe(t)
	on.Wave, on.Workgroup = wave, 1024
	return &on
}

// first returns the first candidate, which is of the family.
func first(t testing.TB, list []kernels.Candidate, family string) kernels.Candidate {
	t.Helper()
	if len(list) == 0 || !strings.HasPrefix(list[0].Kernel, family+" ") {
		t.Fatalf("no %s among %d candidates", family, len(list))
	}
	return list[0]
}

// allFormats are the dtypes that kernels read, with a row length that is no
// multiple of what they like best.
func allFormats() map[ir.DType]int {
	m := map[ir.DType]int{}
	for _, d := range ir.DTypes() {
		switch {
		case layout.Format(d) == "":
		case d.Block() == 1:
			m[d] = 1060
		default:
			m[d] = 5 * 256
		}
	}
	return m
}

func TestGemvFormats(t *testing.T) {
	for d, k := range allFormats() {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			for _, on := range []*target.Target{llvmpipe(t), withWave(t, 64)} {
				var widest []byte
				for _, cols := range some([]int{8, 4, 2, 1}) {
					w := newWorld(t, cols, cols)
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
			if !takes(i+j, 3) {
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
					on := llvmpipe(t)
					if wave != on.Wave {
						on = withWave(t, wave)
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
						w := newWorld(t, cols, cols)
						out := w.fixedGroup(d, k)
						tries := map[string]bool{} // one candidate of each kind is enough
						for _, c := range different(w.candidates(&dot, out...)) {
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

// TestGemvTimed has the shapes that are offered to be timed, of short and long rows: the same bits as the first one's.
func TestGemvTimed(t *testing.T) {
	for _, c := range []struct {
		d       ir.DType
		wave, k int
		want    string // what a shape among them is called
	}{{ir.Q4_K, 8, 5 * 256, "16 teams"}, {ir.Q6_K, 8, 17 * 256, "4 of 64 rows, 8 teams"}, {ir.Q8_0, 32, 17 * 1024, "6x32, 4 of 24 rows"}} {
		t.Run(fmt.Sprint(c.d, " ", c.k), func(t *testing.T) {
			t.Parallel()
			on := withWave(t, c.wave)
			on.Dot, on.Units = true, 1
			w := newWorld(t, 1, 1)
			y := w.op("linear", nil, w.op("fixed12", nil, w.rows(ir.T, ir.Dim(c.k))), w.matrix(c.d, 70, c.k))
			var first []byte
			shapes := ""
			for i, candidate := range different(kernels.Candidates(w.site(on, y), "gemv")) {
				if i > 0 && !candidate.Timed {
					continue
				}
				got := w.checkWith(interpretOnly, candidate, 1, y)[y]
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
func (w *world) fixedGroup(d ir.DType, k int) []*ir.Value {
	gate, up, down, plain := w.matrix(d, 37, k), w.matrix(d, 37, k), w.matrix(d, 77, k), w.matrix(ir.F32, 11, k)
	gain := w.vector("gain", k)
	x := w.rows(ir.T, ir.Dim(k))
	clear(w.data[x][:4*32]) // a run of zeros
	clear(w.vals[x][:32])
	x = w.op("rmsnorm", ir.Attrs{{Name: "eps", Value: 1e-5}, {Name: "group", Value: int64(k)}}, x, gain)
	exact := w.op("linear", nil, x, plain)
	x = w.op("fixed12", nil, x)
	return []*ir.Value{exact, w.glu("silu", w.op("linear", nil, x, gate), w.op("linear", nil, x, up)), w.op("linear", nil, x, down)}
}

// TestGemvNormedRuns has a norm of runs of x, in fixed point, with weights whose scales are of super-blocks, of halves and of
// runs: candidates have teams, and all widths give the same bits, those of one format on the device, too.
func TestGemvNormedRuns(t *testing.T) {
	for _, d := range []ir.DType{ir.Q4_K, ir.Q2_K, ir.Q8_0, ir.Q4_1} {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			const k, run, n = 512, 256, 9
			on := *llvmpipe(t)
			on.Dot = true
			launchers, widths := []launcher{interpretOnly}, []int{8, 1}
			if d == ir.Q4_K && !testing.Short() {
				launchers, widths = append(launchers, onDevice), []int{8, 4, 2, 1}
			}
			widest := make([][]byte, len(launchers))
			for _, cols := range widths {
				w := newWorld(t, cols, cols)
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
				if showing(t, c) {
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
	on := *llvmpipe(t)
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
		{of: "a processor", d: ir.Q4_K, k: 1024, run: 512, change: func(t *target.Target) { t.Backend = plans.CPU }},
		{of: "rows too long for teams", d: ir.Q4_K, k: 1 << 15, run: 512},
	} {
		w, on := newWorld(t, 1, 1), on
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
		on := *llvmpipe(t)
		on.Dot = fixed
		var widest []byte
		for _, cols := range []int{8, 1} {
			w := newWorld(t, cols, cols)
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
	for _, c := range []siteTest{
		{rows: 3, terms: 96, globals: "step @a : f32[T, 96]\nstep @b : f32[T, 24]\nweight @w : f16[24, 96]\n",
			group: "%0 = linear @a, @w : f32[T, 24]\n%1 = scale %0 {factor=0.375} : f32[T, 24]\n%2 = add %1, @b : io f32[T, 24]"},
		{rows: 1, terms: 96, globals: "step @a : f32[T, 96]\nweight @g : f32[96]\nweight @w : f32[24, 96]\nweight @s : f32[1]\n",
			group: "%0 = rmsnorm @a, @g {eps=1e-05, group=96} : f32[T, 96]\n%1 = linear %0, @w : f32[T, 24]\n%2 = scale %1, @s {factor=0.375} : io f32[T, 24]"},
	} {
		c.family, c.ctx, c.slots = "gemv", 64, 1
		c.run(t)
		c.runOn(t, lookup(t, "sm_90-cuda"))
		c.checkBuild(t)
	}
}

func TestEmbedFormats(t *testing.T) {
	for d, k := range allFormats() {
		for _, on := range []*target.Target{llvmpipe(t), processor(t)} {
			t.Run(d.String()+" "+on.Backend, func(t *testing.T) { testEmbed(t, on, d, k) })
		}
	}
}

func testEmbed(t *testing.T, on *target.Target, d ir.DType, k int) {
	t.Parallel()
	const vocab, rows, n = 9, 5, 3
	w := newWorld(t, rows, n)
	w.on = on
	ids := w.p.AddGlobal("token", ir.Step, ir.MakeType(ir.I32, ir.T))
	w.data[ids] = i32Bytes(8, 0, 5, -7, 1<<30)
	table := w.matrix(d, vocab, k)
	op, err := w.make.Make("embed", ir.Attrs{{Name: "scale", Value: 1.0}}, ids, table)
	if err != nil {
		t.Fatal(err)
	}
	w.ops = []*ir.Op{op}
	c := first(t, w.candidates(on, op.Result), "embed")
	w.covered(c, op.Result)
	got := toF32(launch(t, c, w.sizes, w.data)[op.Result])
	for r, id := range []int{8, 0, 5} {
		for i, x := range got[r*k:][:k] {
			if want := w.vals[table][id*k+i]; float64(x) != want {
				t.Fatalf("row %d element %d is %g, want %g", r, i, x, want)
			}
		}
	}
	if rest := f32Bytes(got[n*k:]); !bytes.Equal(rest, make([]byte, len(rest))) {
		t.Error("rows without a token are not zero")
	}
}

func TestGemmFormats(t *testing.T) {
	for d, k := range allFormats() {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 16, 13)
			y := w.linear(w.rows(ir.T, ir.Dim(k)), d, 70)
			w.check(first(t, w.candidates(llvmpipe(t), y), "gemm"), 13, y)
		})
	}
}

// groups are dispatch groups of every form.
var groups = []struct {
	name  string
	last  bool
	build func(w *world, x *ir.Value) []*ir.Value
}{
	{"qkv", false, func(w *world, x *ir.Value) []*ir.Value {
		x = w.norm(x)
		m := w.matrix(ir.Q4_K, 33, 512)
		q := w.op("linear", nil, x, m, w.vector("bias", 33))
		return []*ir.Value{q, w.linear(x, ir.Q8_0, 200), w.linear(x, ir.Q6_K, 65)}
	}},
	{"plain qkv", false, func(w *world, x *ir.Value) []*ir.Value {
		return []*ir.Value{w.linear(x, ir.F16, 8), w.linear(x, ir.F16, 8)}
	}},
	{"silu", false, func(w *world, x *ir.Value) []*ir.Value {
		x = w.norm(x)
		return []*ir.Value{w.glu("silu", w.linear(x, ir.Q4_0, 70), w.linear(x, ir.Q4_0, 70))}
	}},
	{"gelu of two formats", false, func(w *world, x *ir.Value) []*ir.Value {
		x = w.norm(x)
		up := w.linear(x, ir.Q5_0, 70)
		return []*ir.Value{w.glu("gelu", w.linear(x, ir.Q6_K, 70), up)}
	}},
	{"residuals", false, func(w *world, x *ir.Value) []*ir.Value {
		y := w.op("add", nil, w.rows(ir.T, 512), w.linear(x, ir.Q5_K, 512))
		return []*ir.Value{w.op("add", nil, y, x)}
	}},
	{"last row", true, func(w *world, x *ir.Value) []*ir.Value {
		x = w.norm(w.op("last_row", nil, x, w.n))
		return []*ir.Value{w.linear(x, ir.BF16, 300)}
	}},
}

func TestGroups(t *testing.T) {
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for _, rows := range []int{1, 3, 70} {
				n := rows - rows/4
				w := newWorld(t, rows, n)
				out := g.build(w, w.rows(ir.T, 512))
				family := "gemv"
				if rows > 8 && !g.last {
					family = "gemm"
				}
				list := w.candidates(llvmpipe(t), out...)
				first(t, list, family)
				for _, c := range list {
					if g.last {
						w.check(c, 1, out...)
					} else {
						w.check(c, n, out...)
					}
				}
			}
		})
	}
}

// TestGemmTiles runs the tiles that other targets get.
func TestGemmTiles(t *testing.T) {
	gpu := target.Target{Wave: 32, Workgroup: 1024, Shared: 32 << 10, Units: 1}
	tiles := ""
	for _, rows := range []int{16, 70} {
		w := newWorld(t, rows, rows)
		y := w.linear(w.norm(w.rows(ir.T, 256)), ir.F16, 70)
		for _, c := range w.candidates(&gpu, y) {
			tiles += c.Kernel[strings.LastIndex(c.Kernel, "=")+1:] + " "
			w.check(c, rows, y)
		}
	}
	if tiles != "16x64 64x64 32x64 " {
		t.Errorf("tiles %s", tiles)
	}
}

// TestRefuses holds that families leave groups alone that their kernels cannot do.
func TestRefuses(t *testing.T) {
	for name, build := range map[string]func(w *world) []*ir.Value{
		"rows that are no vec4": func(w *world) []*ir.Value {
			return []*ir.Value{w.linear(w.rows(ir.T, 6), ir.F32, 8)}
		},
		"an intermediate result that others read": func(w *world) []*ir.Value {
			x := w.rows(ir.T, 64)
			y := w.linear(x, ir.F32, 64)
			return []*ir.Value{y, w.op("add", nil, y, x)}
		},
		"projections of different inputs": func(w *world) []*ir.Value {
			return []*ir.Value{w.linear(w.rows(ir.T, 64), ir.F32, 64), w.linear(w.rows(ir.T, 64), ir.F32, 64)}
		},
		"a sum of projections": func(w *world) []*ir.Value {
			x := w.rows(ir.T, 64)
			return []*ir.Value{w.op("add", nil, w.linear(x, ir.F32, 8), w.linear(x, ir.F32, 8))}
		},
	} {
		for _, rows := range []int{1, 20} {
			w := newWorld(t, rows, rows)
			out := build(w)
			if list := w.candidates(llvmpipe(t), out...); len(list) > 0 {
				t.Errorf("%s: %s", name, list[0].Kernel)
			}
		}
	}
}

// TestShapesOfTargets holds the grids of a large matrix against the limits of the
// targets, and how many candidates there are.
func TestShapesOfTargets(t *testing.T) {
	seen := map[string]bool{}
	for _, dev := range target.All() {
		if dev.IsHost() || dev.Backend == plans.CPU { // where rows of weights lie interleaved
			continue
		}
		for d := range allFormats() {
			for _, rows := range []int{1, 8, 256} {
				w := newWorld(t, rows, rows)
				k, n := 4096, 151936
				m := w.p.AddGlobal("w", ir.Weight, ir.MakeType(d, ir.Dim(n), ir.Dim(k)))
				x := &ir.Value{ID: 1, Type: ir.MakeType(ir.F32, ir.T, ir.Dim(k))}
				op, err := w.make.Make("linear", nil, x, m)
				if err != nil {
					t.Fatal(err)
				}
				w.ops = []*ir.Op{op}
				list := w.candidates(dev, op.Result)
				timed := 0
				for _, c := range list {
					if c.Timed {
						timed++
					}
				}
				if list := len(list) - timed; list == 0 || list > 40 || timed > 16 {
					t.Fatalf("%s: %s: %d candidates, and %d to be timed", dev.Name, d, list, timed)
				}
				for _, c := range list {
					if c.Grid[0] > 65535 || c.Grid[1] > 65535 {
						t.Errorf("%s: grid %d", c.Kernel, c.Grid)
					}
					if !seen[c.Kernel] {
						seen[c.Kernel] = true
						if _, err := c.Build(); err != nil {
							t.Error(err)
						}
					}
					w.covered(c, op.Result)
				}
			}
		}
	}
}

// TestRooms: no form of a projection bounds registers as another one does, or as none.
func TestRooms(t *testing.T) {
	on, err := target.Lookup("sm_90-cuda")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []int{2048, 5120, 17408} {
		w := newWorld(t, 1, 1)
		m := w.p.AddGlobal("w", ir.Weight, ir.MakeType(ir.Q8_0, ir.Dim(4096), ir.Dim(k)))
		x := &ir.Value{ID: 1, Type: ir.MakeType(ir.F32, ir.T, ir.Dim(k))}
		rounded, err := w.make.Make("fixed12", nil, x)
		if err != nil {
			t.Fatal(err)
		}
		op, err := w.make.Make("linear", nil, rounded.Result, m)
		if err != nil {
			t.Fatal(err)
		}
		w.ops = []*ir.Op{rounded, op}
		bounds, rooms := map[string]string{}, 0
		for _, c := range w.candidates(on, op.Result) {
			base, _, bounded := strings.Cut(c.Shape, ", room for")
			if bounded {
				rooms++
			}
			key := fmt.Sprint(base, " ", max(1, c.Room/c.Lanes))
			if other := bounds[key]; other != "" {
				t.Errorf("%d: %q is %q", k, c.Shape, other)
			}
			bounds[key] = c.Shape
		}
		if rooms == 0 {
			t.Errorf("%d: no form bounds registers", k)
		}
	}
}

// TestLinearTwice: a result added to itself is no residual.
func TestLinearTwice(t *testing.T) {
	for _, rows := range []int{1, 20} {
		w := newWorld(t, rows, rows)
		y := w.linear(w.rows(ir.T, 256), ir.F16, 64)
		twice := w.op("add", nil, y, y)
		if list := w.candidates(llvmpipe(t), twice); len(list) > 0 {
			t.Errorf("%d rows: %s", rows, list[0].Kernel)
		}
	}
}

// TestOwnResults refuses a residual that is a result of the group itself, before a factor, a residual or an activation: no kernel writes it.
func TestOwnResults(t *testing.T) {
	for _, op := range []string{"scale %0 {factor=0.375}", "add %0, @b", "relu2 %0"} {
		c := siteTest{rows: 3, terms: 96, ctx: 64, slots: 1, globals: "step @a : f32[T, 96]\nstep @b : f32[T, 24]\nweight @w : f16[24, 96]\n",
			group: "%0 = linear @a, @w : f32[T, 24]\n%1 = " + op + " : f32[T, 24]\n%2 = add %1, %0 : io f32[T, 24]"}
		if found := kernels.Candidates(c.site(t, lookup(t, "sm_90-cuda"))); len(found) > 0 {
			t.Errorf("%s: %s reads what it does not write", op, found[0].Name())
		}
	}
}
