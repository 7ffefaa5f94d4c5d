package kernels_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/spirv"
)

// expertOp computes what an op of a mixture of experts means, from the values a of
// its operands: y and what its error is relative to.
func (w *world) expertOp(op *ir.Op, a [][]float64, y, mag []float64) {
	attrs, width := op.Attrs, int(op.Result.Type.Last())
	switch op.Kind.Name {
	case "topk":
		experts := int(op.Args[0].Type.Last())
		for i := range y {
			row, taken := a[0][i/width*experts:][:experts], y[i/width*width:i]
			best := -1
			for e, s := range row {
				if (best < 0 || s > row[best]) && !contains(taken, e) {
					best = e
				}
			}
			y[i] = float64(best)
		}
	case "route":
		experts := int(op.Args[0].Type.Last())
		for r := range len(y) / width {
			weigh(attrs, y[r*width:][:width], a[0][r*experts:][:experts], a[1][r*width:][:width])
		}
		copy(mag, y)
	case "expert_linear":
		k, slots, n := int(op.Args[1].Type.Shape[2]), int(op.Args[2].Type.Shape[1]), attrs.Int("rows")
		height, runs := int(op.Args[1].Type.Shape[1]), int(op.Args[0].Type.Last())/k
		for i := range y {
			slot := i / n
			x := a[0][slot/slots*runs*k:]
			if runs > 1 {
				x = a[0][slot*k:]
			}
			row := a[1][(int(a[2][slot])*height+attrs.Int("first")+i%n)*k:][:k]
			for j, v := range row {
				y[i] += v * x[j]
				mag[i] += math.Abs(v * x[j])
			}
		}
	case "expert_sum":
		slots := int(op.Args[1].Type.Last())
		for i := range y {
			for s := range slots {
				at, weight := (i/width*slots+s)*width+i%width, a[1][i/width*slots+s]
				y[i] += weight * a[0][at]
				mag[i] += math.Abs(weight * (a[0][at] + w.magnitude(op.Args[0], at)))
			}
		}
	case "gate_rows":
		for i := range y {
			g := 1 / (1 + math.Exp(-a[1][i/width]))
			y[i], mag[i] = g*a[0][i], g*w.magnitude(op.Args[0], i)
		}
	}
}

// magnitude is what the error of element i of v is relative to.
func (w *world) magnitude(v *ir.Value, i int) float64 {
	if m := w.mags[v]; m != nil {
		return m[i]
	}
	return 0
}

func contains(list []float64, e int) bool {
	for _, v := range list {
		if v == float64(e) {
			return true
		}
	}
	return false
}

// weigh fills y, the weights of the experts ids of a row.
func weigh(a ir.Attrs, y, scores, ids []float64) {
	all, sum := 0.0, 0.0
	for _, s := range scores {
		all += math.Exp(s)
	}
	for i, e := range ids {
		s := scores[int(e)]
		switch a.Str("gating") {
		case "softmax":
			y[i] = math.Exp(s) / all
		case "sigmoid":
			y[i] = 1 / (1 + math.Exp(-s))
		case "topk_softmax":
			chosen := 0.0
			for _, e := range ids {
				chosen += math.Exp(scores[int(e)])
			}
			y[i] = math.Exp(s) / chosen
		}
		sum += y[i]
	}
	for i := range y {
		if a.Int("norm") != 0 {
			y[i] /= max(sum, 6.103515625e-05)
		}
		y[i] *= a.Float("scale")
	}
}

// moe is the shape of an expert layer.
type moe struct {
	dtype           ir.DType
	rows, n         int // of the function and of the step
	embd, ff        int
	experts, slots  int
	shared          int // width of the shared expert, 0 for none
	merged, norm    bool
	gating          string
	ties            bool
	adds            int
	up, down, gates *ir.Value
}

func (m moe) String() string {
	return fmt.Sprintf("%s %d/%d rows %d of %d ff=%d shared=%d", m.dtype, m.n, m.rows, m.slots, m.experts, m.ff, m.shared)
}

// input is rows of T, whose content does not depend on how many there are.
func (w *world) input(width ir.Dim) *ir.Value {
	w.rng = rand.New(rand.NewPCG(uint64(len(w.data)), 3))
	return w.rows(ir.T, width)
}

func (w *world) scores(m *moe) *ir.Value {
	v := w.input(ir.Dim(m.experts))
	if m.ties {
		x := toF32(w.data[v])
		for i := range x {
			x[i] = float32(math.Round(float64(x[i])))
		}
		w.data[v], w.vals[v] = f32Bytes(x), wide(x)
	}
	return v
}

// stack is a matrix for each of the experts.
func (w *world) stack(d ir.DType, experts, rows, cols int) *ir.Value {
	v := w.matrix(d, experts*rows, cols)
	v.Type = ir.MakeType(d, ir.Dim(experts), ir.Dim(rows), ir.Dim(cols))
	return v
}

func (w *world) topk(scores *ir.Value, k int) *ir.Value {
	return w.op("topk", ir.Attrs{{Name: "k", Value: int64(k)}}, scores)
}

func (w *world) experts(x, weight, ids *ir.Value, first, rows int) *ir.Value {
	return w.op("expert_linear", ir.Attrs{{Name: "first", Value: int64(first)}, {Name: "rows", Value: int64(rows)}}, x, weight, ids)
}

func (w *world) route(m *moe, scores, ids *ir.Value) *ir.Value {
	norm := int64(1)
	if m.gating == "sigmoid" {
		norm = 0
	}
	return w.op("route", ir.Attrs{{Name: "gating", Value: m.gating}, {Name: "norm", Value: norm}, {Name: "scale", Value: 1.5}}, scores, ids)
}

// decodeUp builds the group of top-k, gate, up and GLU.
func (m *moe) decodeUp(w *world, choose func(scores *ir.Value) *ir.Value) []*ir.Value {
	var gate, up *ir.Value
	if m.merged {
		gate = w.stack(m.dtype, m.experts, 2*m.ff, m.embd)
		up = gate
	} else {
		gate, up = w.stack(m.dtype, m.experts, m.ff, m.embd), w.stack(m.dtype, m.experts, m.ff, m.embd)
	}
	var sharedGate, sharedUp *ir.Value
	if m.shared > 0 {
		sharedGate, sharedUp = w.matrix(ir.Q8_0, m.shared, m.embd), w.matrix(ir.Q8_0, m.shared, m.embd)
	}
	var gain *ir.Value
	if m.norm {
		gain = w.vector("gain", m.embd)
	}
	x := w.input(ir.Dim(m.embd))
	scores := w.scores(m)
	if m.norm {
		x = w.op("rmsnorm", ir.Attrs{{Name: "eps", Value: 1e-5}, {Name: "group", Value: int64(m.embd)}}, x, gain)
	}
	ids := choose(scores)
	first := 0
	if m.merged {
		first = m.ff
	}
	a, b := w.experts(x, gate, ids, 0, m.ff), w.experts(x, up, ids, first, m.ff)
	out := []*ir.Value{ids, w.glu("silu", a, b)}
	if m.shared > 0 {
		a, b := w.op("linear", nil, x, sharedGate), w.op("linear", nil, x, sharedUp)
		out = append(out, w.glu("silu", a, b))
	}
	return out
}

// decodeDown builds the group of route, down, sum, shared expert and residuals.
func (m *moe) decodeDown(w *world) *ir.Value {
	down := w.stack(m.dtype, m.experts, m.embd, m.ff)
	var shared *ir.Value
	if m.shared > 0 {
		shared = w.matrix(ir.Q6_K, m.embd, m.shared)
	}
	scores, act := w.scores(m), w.input(ir.Dim(m.slots*m.ff))
	ids := w.given("topk", ir.Attrs{{Name: "k", Value: int64(m.slots)}}, scores)
	weights := w.route(m, scores, ids)
	y := w.op("expert_sum", nil, w.experts(act, down, ids, 0, m.embd), weights)
	if m.shared > 0 {
		s := w.op("linear", nil, w.input(ir.Dim(m.shared)), shared)
		s = w.op("gate_rows", nil, s, w.input(1))
		y = w.op("add", nil, y, s)
	}
	for range m.adds {
		y = w.op("add", nil, w.input(ir.Dim(m.embd)), y)
	}
	return y
}

// given computes an op outside of the group: its result is an operand.
func (w *world) given(kind string, attrs ir.Attrs, args ...*ir.Value) *ir.Value {
	ops := w.ops
	v := w.op(kind, attrs, args...)
	w.ops = ops
	if v.Type.DType == ir.I32 {
		var b []byte
		for _, x := range w.vals[v] {
			b = append(b, i32Bytes(int32(x))...)
		}
		w.data[v] = b
		return v
	}
	x := make([]float32, len(w.vals[v]))
	for i := range x {
		x[i] = float32(w.vals[v][i])
	}
	w.data[v], w.vals[v], w.mags[v] = f32Bytes(x), wide(x), nil
	return v
}

// checkIDs compares rows of integers.
func (w *world) checkIDs(c kernels.Candidate, got map[*ir.Value][]byte, rows int, v *ir.Value) {
	w.t.Helper()
	var want []byte
	for _, x := range w.vals[v][:rows*int(v.Type.Last())] {
		want = append(want, i32Bytes(int32(x))...)
	}
	if !bytes.Equal(got[v][:len(want)], want) {
		w.t.Fatalf("%s: %s is %v, want %v", c.Kernel, v, got[v][:len(want)], want)
	}
	w.covered(c, v)
}

// build builds and validates the group's kernels for the targets that do not run
// here.
func (w *world) build(outputs ...*ir.Value) {
	w.t.Helper()
	for _, name := range []string{"sm_90", "gfx1201"} {
		on := lookup(w.t, name)
		for _, wave := range []int{32, 64} {
			t := *on
			t.Wave = wave
			w.buildFor(&t, outputs)
		}
	}
}

func (w *world) buildFor(on *target.Target, outputs []*ir.Value) {
	w.t.Helper()
	list := w.candidates(on, outputs...)
	if len(list) == 0 {
		w.t.Fatalf("%s: no candidate", on.Name)
	}
	for _, c := range list {
		f, err := c.Build()
		if err != nil {
			w.t.Fatalf("%s: %v", c.Kernel, err)
		}
		words, err := f.SPIRV()
		if err != nil {
			w.t.Fatalf("%s: %v", c.Kernel, err)
		}
		if err := spirv.Validate(words, spirv.Vulkan12); err != nil {
			w.t.Fatalf("%s: %v", c.Kernel, err)
		}
		for _, v := range outputs {
			w.covered(c, v)
		}
		byName := map[string]uint32{}
		for _, k := range c.Consts {
			byName[k.Name] = k.Value
		}
		spec, err := f.SpecValues(byName)
		if err != nil || len(spec) != len(f.Spec) {
			w.t.Fatalf("%s: constants %v for %v: %v", c.Kernel, c.Consts, f.Spec, err)
		}
		if size, err := f.WorkgroupSize(spec); err != nil || int(size)%on.Wave != 0 || int(size) > on.Workgroup {
			w.t.Fatalf("%s: workgroup of %d, %v", c.Kernel, size, err)
		}
		if shared, err := f.SharedBytes(spec); err != nil || int(shared) > on.Shared {
			w.t.Fatalf("%s: %d bytes of shared memory, %v", c.Kernel, shared, err)
		}
	}
}

var moes = []moe{
	{dtype: ir.Q4_K, embd: 512, ff: 256, experts: 64, slots: 8, shared: 256, norm: true, gating: "softmax", adds: 1},
	{dtype: ir.Q4_K, embd: 256, ff: 256, experts: 256, slots: 4, merged: true, gating: "softmax", ties: true},
	{dtype: ir.Q5_K, embd: 256, ff: 256, experts: 16, slots: 4, gating: "topk_softmax", adds: 2},
	{dtype: ir.Q6_K, embd: 256, ff: 256, experts: 16, slots: 1, shared: 512, gating: "sigmoid", adds: 1},
	{dtype: ir.Q8_0, embd: 160, ff: 96, experts: 20, slots: 4, norm: true, gating: "softmax", ties: true, adds: 1},
	{dtype: ir.MXFP4, embd: 256, ff: 96, experts: 32, slots: 4, merged: true, gating: "topk_softmax"},
	{dtype: ir.F16, embd: 100, ff: 36, experts: 17, slots: 2, gating: "sigmoid", adds: 1},
	{dtype: ir.F32, embd: 100, ff: 36, experts: 10, slots: 10, gating: "softmax", ties: true},
}

func TestExpertUp(t *testing.T) {
	for _, m := range moes {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			var all [][]byte
			for _, rows := range []int{8, 2, 1} {
				w := newWorld(t, rows, max(1, rows-1))
				out := m.decodeUp(w, func(scores *ir.Value) *ir.Value { return w.topk(scores, m.slots) })
				for i, c := range w.candidates(llvmpipe(t), out...) {
					first(t, []kernels.Candidate{c}, "expert_gemv")
					got := w.check(c, max(1, rows-1), out[1:]...)
					w.checkIDs(c, got, max(1, rows-1), out[0])
					if i == 0 {
						all = sameRows(t, c, all, max(1, rows-1), got, out)
					}
				}
				if rows == 1 {
					w.build(out...)
				}
			}
		})
	}
}

// sameRows holds the first rows of outputs against what more rows gave.
func sameRows(t testing.TB, c kernels.Candidate, all [][]byte, rows int, got map[*ir.Value][]byte, outputs []*ir.Value) [][]byte {
	t.Helper()
	for i, v := range outputs {
		have := got[v][:4*rows*int(v.Type.Last())]
		if len(all) == i {
			all = append(all, have)
		}
		if !bytes.Equal(have, all[i][:len(have)]) {
			t.Errorf("%s: %d rows differ from the same of more", c.Kernel, rows)
		}
	}
	return all
}

func TestExpertDown(t *testing.T) {
	for _, m := range moes {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			var all [][]byte
			for _, rows := range []int{8, 2, 1} {
				w := newWorld(t, rows, max(1, rows-1))
				y := m.decodeDown(w)
				for i, c := range w.candidates(llvmpipe(t), y) {
					first(t, []kernels.Candidate{c}, "expert_down")
					got := w.check(c, max(1, rows-1), y)
					if i == 0 {
						all = sameRows(t, c, all, max(1, rows-1), got, []*ir.Value{y})
					}
				}
				if rows == 1 {
					w.build(y)
				}
			}
		})
	}
}

func TestRouter(t *testing.T) {
	for _, m := range moes {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 20, 19)
			ids := w.topk(w.scores(&m), m.slots)
			c := first(t, w.candidates(llvmpipe(t), ids), "router")
			w.checkIDs(c, launch(t, c, w.sizes, w.data), 19, ids)
			w.build(ids)

			w = newWorld(t, 20, 19)
			scores := w.scores(&m)
			weights := w.route(&m, scores, w.given("topk", ir.Attrs{{Name: "k", Value: int64(m.slots)}}, scores))
			w.check(first(t, w.candidates(llvmpipe(t), weights), "router"), 19, weights)
			w.build(weights)
		})
	}
}

func TestExpertSum(t *testing.T) {
	for _, width := range []ir.Dim{512, 33} {
		w := newWorld(t, 20, 19)
		y := w.op("expert_sum", nil, w.input(3*width), w.input(3))
		y = w.op("add", nil, y, w.op("gate_rows", nil, w.input(width), w.input(1)))
		y = w.op("add", nil, w.input(width), y)
		w.check(first(t, w.candidates(llvmpipe(t), y), "expert_sum"), 19, y)
		w.build(y)

		w = newWorld(t, 20, 19)
		y = w.op("gate_rows", nil, w.input(width), w.input(1))
		w.check(first(t, w.candidates(llvmpipe(t), y), "expert_sum"), 19, y)
		w.build(y)
	}
}
