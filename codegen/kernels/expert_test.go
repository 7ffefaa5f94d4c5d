package kernels_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
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
			at := slot / slots * runs * k
			if runs > 1 {
				at = slot * k
			}
			y[i], mag[i] = w.product(op.Args[0], at, a[1][(int(a[2][slot])*height+attrs.Int("first")+i%n)*k:][:k])
		}
	case "expert_order":
		for i := range y {
			y[i] = float64(i)
		}
		live := w.live() * width
		sort.SliceStable(y[:live], func(i, j int) bool { return a[0][int(y[i])] < a[0][int(y[j])] })
	case "expert_offsets":
		for _, e := range a[0][:w.live()*int(op.Args[0].Type.Last())] {
			for i := int(e) + 1; i < len(y); i++ {
				y[i]++
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

// live is the rows of the step.
func (w *world) live() int { return int(binary.LittleEndian.Uint32(w.data[w.n])) }

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
	dtype          ir.DType
	embd, ff       int
	experts, slots int
	shared         int // width of the shared expert, 0 for none
	merged, norm   bool
	gating         string
	ties           bool
	adds           int
	fixed          bool     // x is read in 12-bit fixed point
	square         bool     // up has no gate
	sharedType     ir.DType // of the shared expert's down projection, instead of Q6_K
	sharedFixed    bool     // which reads x in fixed point, too, in parts
	all, none      int      // experts that all rows choose, and that none does, if they differ
}

func (m moe) String() string {
	return fmt.Sprintf("%s %d of %d ff=%d shared=%d", m.dtype, m.slots, m.experts, m.ff, m.shared)
}

// input is rows of T, whose content does not depend on how many there are.
func (w *world) input(width ir.Dim) *ir.Value {
	w.rng = rand.New(rand.NewPCG(uint64(len(w.data)), 3))
	return w.rows(ir.T, width)
}

func (w *world) scores(m *moe) *ir.Value {
	v := w.input(ir.Dim(m.experts))
	x := toF32(w.data[v])
	for i := range x {
		if m.ties {
			x[i] = float32(math.Round(float64(x[i])))
		}
		if e := i % m.experts; m.all != m.none && e == m.all {
			x[i] += 100
		} else if m.all != m.none && e == m.none {
			x[i] -= 100
		}
	}
	w.data[v], w.vals[v] = f32Bytes(x), wide(x)
	return v
}

// stack is a matrix for each of the experts.
func (w *world) stack(d ir.DType, experts, rows, cols int) *ir.Value {
	return w.weight(fmt.Sprintf("m%d_exps.weight", len(w.p.Globals)), d, ir.Dim(experts), ir.Dim(rows), ir.Dim(cols))
}

func (w *world) topk(scores *ir.Value, k int) *ir.Value {
	return w.op("topk", ir.Attrs{{Name: "k", Value: int64(k)}}, scores)
}

// experts is an expert_linear, over sorted slots if order and offsets are given.
func (w *world) experts(x, weight, ids *ir.Value, first, rows int, sorted ...*ir.Value) *ir.Value {
	return w.op("expert_linear", ir.Attrs{{Name: "first", Value: int64(first)}, {Name: "rows", Value: int64(rows)}}, append([]*ir.Value{x, weight, ids}, sorted...)...)
}

func (w *world) route(m *moe, scores, ids *ir.Value) *ir.Value {
	norm := int64(1)
	if m.gating == "sigmoid" {
		norm = 0
	}
	return w.op("route", ir.Attrs{{Name: "gating", Value: m.gating}, {Name: "norm", Value: norm}, {Name: "scale", Value: 1.5}}, scores, ids)
}

// upGroup builds the group of gate, up and GLU, or of up and its square, with what choose adds to it.
func (m *moe) upGroup(w *world, sorted bool, choose func(scores *ir.Value) *ir.Value) []*ir.Value {
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
	plain := x
	if m.fixed {
		x = w.op("fixed12", nil, x)
	}
	routed := x
	if m.dtype == ir.F16 {
		routed = plain
	}
	ids := choose(scores)
	first := 0
	if m.merged {
		first = m.ff
	}
	var order []*ir.Value
	if sorted {
		order = w.sorted(m, ids)
	}
	if m.square {
		out := []*ir.Value{ids, w.op("relu2", nil, w.experts(routed, up, ids, first, m.ff, order...))}
		if m.shared > 0 {
			out = append(out, w.op("relu2", nil, w.op("linear", nil, x, sharedUp)))
		}
		return out
	}
	a, b := w.experts(routed, gate, ids, 0, m.ff, order...), w.experts(routed, up, ids, first, m.ff, order...)
	out := []*ir.Value{ids, w.glu("silu", a, b)}
	if m.shared > 0 {
		a, b := w.op("linear", nil, x, sharedGate), w.op("linear", nil, x, sharedUp)
		out = append(out, w.glu("silu", a, b))
	}
	return out
}

// downGroup builds the group of route, down, sum, shared expert and residuals.
func (m *moe) downGroup(w *world) *ir.Value {
	down := w.stack(m.dtype, m.experts, m.embd, m.ff)
	var shared *ir.Value
	if m.shared > 0 {
		d := ir.Q6_K
		if m.sharedType != 0 {
			d = m.sharedType
		}
		shared = w.matrix(d, m.embd, m.shared)
	}
	scores, act := w.scores(m), w.input(ir.Dim(m.slots*m.ff))
	if m.fixed {
		act = w.op("fixed12", ir.Attrs{{Name: "row", Value: int64(m.ff)}}, act)
	}
	ids := w.given("topk", ir.Attrs{{Name: "k", Value: int64(m.slots)}}, scores)
	weights := w.route(m, scores, ids)
	y := w.op("expert_sum", nil, w.experts(act, down, ids, 0, m.embd), weights)
	if m.shared > 0 {
		x := w.input(ir.Dim(m.shared))
		if m.sharedFixed {
			x = w.op("fixed12", nil, x)
		}
		s := w.op("linear", nil, x, shared)
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
	for i, x := range w.vals[v][:rows*int(v.Type.Last())] {
		if have := int32(binary.LittleEndian.Uint32(got[v][4*i:])); have != int32(x) {
			w.t.Fatalf("%s: element %d of %s is %d, want %g", c.Kernel, i, v, have, x)
		}
	}
	w.covered(c, v)
}

// build builds the group's kernels for every target, and for subgroups of 64, and
// validates each once.
func (w *world) build(outputs ...*ir.Value) {
	w.t.Helper()
	for _, on := range target.All() {
		if on.IsHost() || on.Backend == plans.CPU { // whose families are tested by themselves
			continue
		}
		w.buildFor(on, outputs)
		if on.Wave == 32 {
			wide := *on
			wide.Wave, wide.Waves = 64, nil
			w.buildFor(&wide, outputs)
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
		builds(w.t, on, on.Shared, c)
		for _, v := range outputs {
			w.covered(c, v)
		}
	}
}

var moes = []moe{
	{dtype: ir.Q4_K, embd: 512, ff: 256, experts: 12, slots: 8, shared: 256, norm: true, gating: "softmax", adds: 1},
	{dtype: ir.Q8_0, embd: 96, ff: 32, experts: 256, slots: 8, merged: true, gating: "softmax", ties: true},
	{dtype: ir.Q5_K, embd: 256, ff: 256, experts: 9, slots: 4, gating: "topk_softmax", adds: 2},
	{dtype: ir.Q6_K, embd: 256, ff: 256, experts: 7, slots: 1, shared: 512, gating: "sigmoid", adds: 1},
	{dtype: ir.Q8_0, embd: 192, ff: 192, experts: 20, slots: 4, norm: true, gating: "softmax", ties: true, adds: 1},
	{dtype: ir.MXFP4, embd: 256, ff: 96, experts: 32, slots: 4, merged: true, gating: "topk_softmax"},
	{dtype: ir.F16, embd: 100, ff: 36, experts: 17, slots: 2, gating: "sigmoid", adds: 1},
	{dtype: ir.F32, embd: 100, ff: 36, experts: 10, slots: 10, gating: "softmax", ties: true},
}

// squareMoe has no gate.
var squareMoe = moe{dtype: ir.Q5_0, embd: 320, ff: 96, experts: 6, slots: 3, shared: 160, norm: true, gating: "softmax", square: true}

func TestExpertUp(t *testing.T) {
	for _, m := range some(append(slices.Clone(moes), squareMoe)) {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			checkWidths(t, llvmpipe(t), "expert_gemv", func(w *world) []*ir.Value {
				return m.upGroup(w, false, func(scores *ir.Value) *ir.Value { return w.topk(scores, m.slots) })
			})
		})
	}
}

// TestExpertUpFixed is TestExpertUp with x in fixed point, with and without top-k, and holds
// that groups of few rows read it so.
func TestExpertUpFixed(t *testing.T) {
	for i, m := range []moe{
		moes[0], moes[2], moes[3], moes[5],
		{dtype: ir.Q5_K, embd: 1280, ff: 96, experts: 5, slots: 3, shared: 40, norm: true, gating: "softmax"},
		{dtype: ir.F16, embd: 256, ff: 32, experts: 4, slots: 2, shared: 96, norm: true, gating: "softmax"},
		{dtype: ir.MXFP4, embd: 21 * 64, ff: 32, experts: 4, slots: 2, norm: true, gating: "topk_softmax"}, // no whole groups of 128, with subgroups of 32
		squareMoe,
	} {
		if !takes(i+1, 3) {
			continue
		}
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			choose := func(w *world) func(scores *ir.Value) *ir.Value {
				return func(scores *ir.Value) *ir.Value { return w.topk(scores, m.slots) }
			}
			w := newWorld(t, 8, 8)
			out := m.upGroup(w, false, choose(w))
			linears := 2 + 2*min(1, m.shared)
			if m.square {
				linears /= 2
			}
			if m.dtype == ir.F16 {
				linears -= 2
			}
			on := dotTarget(t)
			if m.embd == 21*64 {
				on.Wave, on.Workgroup = 32, 1024
			}
			site := &kernels.Site{Program: w.p, Func: w.f, Group: &ir.Group{Ops: w.ops}, Outputs: out, Target: on}
			if got := roundedFor(site, "fixed12"); len(got) != linears {
				t.Errorf("%d ops read x in fixed point, want %d", len(got), linears)
			}
			m.fixed = true
			checkWidths(t, on, "expert_gemv", func(w *world) []*ir.Value { return m.upGroup(w, false, choose(w)) })
		})
	}
}

func TestExpertDown(t *testing.T) {
	for i, m := range moes {
		if !takes(i+2, 3) {
			continue
		}
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			checkWidths(t, llvmpipe(t), "expert_down", func(w *world) []*ir.Value { return []*ir.Value{m.downGroup(w)} })
		})
	}
}

// TestExpertDownFixed is TestExpertDown with x in fixed point, which groups of few long rows read so: with scales of
// 32 elements, though all slots together are a multiple of 256, and with super-blocks; lanes with and without a last unit.
func TestExpertDownFixed(t *testing.T) {
	for _, m := range some([]moe{
		{dtype: ir.MXFP4, embd: 37, ff: 45 * 64, experts: 4, slots: 4, gating: "topk_softmax", adds: 1, fixed: true},
		{dtype: ir.Q4_0, embd: 21, ff: 33 * 64, experts: 3, slots: 2, gating: "softmax", fixed: true},
		{dtype: ir.Q4_K, embd: 37, ff: 7 * 256, experts: 3, slots: 2, shared: 512, gating: "sigmoid", fixed: true},
		{dtype: ir.Q6_K, embd: 21, ff: 8 * 256, experts: 3, slots: 3, gating: "softmax", adds: 2, fixed: true},
		{dtype: ir.IQ2_XS, embd: 21, ff: 5 * 256, experts: 3, slots: 2, gating: "softmax", fixed: true},
		{dtype: ir.Q4_K, embd: 21, ff: 5 * 256, experts: 3, slots: 2, shared: 15 * 256, sharedFixed: true, gating: "softmax", adds: 1, fixed: true},
		{dtype: ir.Q8_0, embd: 21, ff: 33 * 64, experts: 3, slots: 2, shared: 66 * 64, sharedType: ir.Q5_0, sharedFixed: true, gating: "sigmoid", fixed: true},
	}) {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			on := dotTarget(t)
			on.Wave, on.Workgroup = 32, 1024
			plain := m
			plain.fixed, plain.sharedFixed = false, false
			w := newWorld(t, 8, 8)
			out := plain.downGroup(w)
			s := &kernels.Site{Program: w.p, Func: w.f, Group: &ir.Group{Ops: w.ops}, Outputs: []*ir.Value{out}, Target: on}
			rounded := []string{}
			for _, w := range kernels.Wants(s) {
				for _, op := range w.Readers {
					rounded = append(rounded, op.Kind.Name)
				}
			}
			want := []string{"expert_linear"}
			if m.sharedFixed {
				want = append(want, "linear")
			}
			if !slices.Equal(rounded, want) {
				t.Errorf("%v read x in fixed point, want %v", rounded, want)
			}
			checkWidths(t, on, "expert_down", func(w *world) []*ir.Value { return []*ir.Value{m.downGroup(w)} })
		})
	}
}

// TestExpertDownAtOnce has rows of a unit a lane: loaded all at once they have the same bits as one after the other, of any number of rows, in
// tiles of any size, and in subgroups of any. Strategy leaves them, and an x in fixed point for such rows, to CUDA.
func TestExpertDownAtOnce(t *testing.T) {
	for i, on := range []*target.Target{lookup(t, "sm_90-cuda"), subgroupsOf(t, 8), subgroupsOf(t, 32), subgroupsOf(t, 64)} {
		for j, m := range []moe{
			{dtype: ir.Q5_K, embd: 64, ff: 512, experts: 5, slots: 3, shared: 512, sharedType: ir.Q8_0, gating: "softmax", adds: 1},
			{dtype: ir.Q6_K, embd: 32, ff: 1024, experts: 3, slots: 2, gating: "sigmoid"},
			{dtype: ir.Q4_0, embd: 48, ff: 256, experts: 3, slots: 2, shared: 512, sharedType: ir.Q4_K, gating: "softmax"},
		} {
			if !takes(i+j, 3) {
				continue
			}
			if on.Wave == 8 { // lanes have a unit of no longer ones
				m.ff, m.shared = 256, m.shared/2
			}
			t.Run(fmt.Sprintf("%s/w%d/%s", on.Name, on.Wave, m.String()), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, 8, 8)
				plain := w.site(on, m.downGroup(w))
				for _, r := range kernels.Wants(plain) {
					m.fixed, m.sharedFixed = true, m.sharedFixed || r.Readers[0].Kind.Name == "linear"
				}
				if !m.fixed || m.sharedFixed != (m.shared > 0) {
					t.Error("not in fixed point")
				}
				if wants := strategy.Wants(plain); (len(wants) > 0) != (on.CUDA > 0) {
					t.Errorf("%d ops are to read x in fixed point", len(wants))
				}
				var bits []byte
				for _, n := range []int{7, 1} {
					rows := n + n%2
					if n == 1 {
						rows = 1
					}
					w := newWorld(t, rows, n)
					out := m.downGroup(w)
					atOnce := false
					for _, c := range different(kernels.Candidates(w.site(on, out))) {
						if c.Room != 0 || len(c.Ahead) > 0 {
							continue
						}
						atOnce = atOnce || c.AtOnce
						got := w.checkAll(interpretOnly, c, n, []*ir.Value{out})[out]
						if bits == nil {
							bits = got
						}
						if live := 4 * n * m.embd; !bytes.Equal(got[:live], bits[:live]) {
							t.Errorf("%s: %d rows differ", c.Kernel, n)
						}
					}
					if !atOnce {
						t.Error("no candidate loads rows at once")
					}
					if on.CUDA == 0 && slices.ContainsFunc(strategy.Candidates(w.site(on, out)), func(c kernels.Candidate) bool { return c.AtOnce }) {
						t.Error("rows are loaded at once where that was not measured")
					}
				}
			})
		}
	}
}

// subgroupsOf is a target with dot products of bytes and subgroups of so many lanes.
func subgroupsOf(t testing.TB, wave int) *target.Target {
	on := *dotTarget(t)
	on.Wave, on.Workgroup = wave, 1024
	return &on
}

// TestExpertDownFixedFits has workgroups without room for parts of the shared expert's rows: those are one member, not in fixed point,
// and there are no fewer candidates than without fixed point.
func TestExpertDownFixedFits(t *testing.T) {
	for _, c := range []struct {
		wave, workgroup, slots int
		shared                 bool // is in fixed point
	}{
		{32, 256, 5, true},
		{32, 256, 6, false},
		{64, 1024, 12, true},
		{64, 1024, 13, false},
		{64, 1024, 14, false},
		{32, 32, 6, true},
	} {
		m := moe{dtype: ir.Q8_0, embd: 21, ff: 33 * c.wave * 2, experts: 16, slots: c.slots, shared: 66 * c.wave * 2, sharedType: ir.Q5_0, gating: "sigmoid"}
		on := dotTarget(t)
		on.Wave, on.Workgroup = c.wave, c.workgroup
		find := func(m moe) *kernels.Site {
			w := newWorld(t, 8, 8)
			return &kernels.Site{Program: w.p, Func: w.f, Outputs: []*ir.Value{m.downGroup(w)}, Group: &ir.Group{Ops: w.ops}, Target: on}
		}
		plain := find(m)
		shared := slices.ContainsFunc(kernels.Wants(plain), func(r kernels.Rewrite) bool { return r.Readers[0].Kind.Name == "linear" })
		if shared != c.shared {
			t.Errorf("%+v: in fixed point %t", c, shared)
		}
		m.fixed, m.sharedFixed = true, true
		if want, have := len(kernels.Candidates(plain)), len(kernels.Candidates(find(m))); want == 0 || have < want {
			t.Errorf("%+v: %d candidates, %d without fixed point", c, have, want)
		}
	}
}

// checkWidths runs a group in steps of 7, 2 and 1 rows: each row must come out the
// same, in the interpreter, and rows of no step must stay as they are.
func checkWidths(t *testing.T, on *target.Target, family string, group func(w *world) []*ir.Value) {
	t.Helper()
	var widest [][]byte
	for _, n := range []int{7, 2, 1} {
		rows := n + n%2
		w := newWorld(t, rows, n)
		out := group(w)
		list := w.candidates(on, out...)
		if n < 7 {
			list = list[:1]
		}
		for i, c := range list {
			first(t, list[i:], family)
			if i > 0 {
				w.checkAll(launch, c, n, out)
				continue
			}
			if showing(t, c) {
				w.checkAll(launch, c, n, out)
			}
			got := w.checkAll(interpretOnly, c, n, out)
			if widest == nil {
				for _, v := range out {
					widest = append(widest, got[v])
				}
			}
			for j, v := range out {
				if live := 4 * n * int(v.Type.Last()); !bytes.Equal(got[v][:live], widest[j][:live]) {
					t.Errorf("%s: %d rows of %s differ from the same of 7", c.Kernel, n, v)
				}
			}
		}
		if n == 7 {
			w.build(out...)
		}
		if n == 1 && on.Workgroup > on.Wave {
			wide := *on
			wide.Wave = 64
			w.checkAll(launch, w.candidates(&wide, out...)[0], n, out)
		}
	}
}

// checkAll runs a candidate and compares n rows of its outputs; of the others,
// nothing may be written.
func (w *world) checkAll(launch launcher, c kernels.Candidate, n int, outputs []*ir.Value) map[*ir.Value][]byte {
	w.t.Helper()
	got := launch(w.t, c, w.sizes, w.data)
	for _, v := range outputs {
		if v.Type.DType == ir.I32 {
			w.checkIDs(c, got, n, v)
		} else {
			w.compare(c, got, n, v)
		}
		if rest := got[v][4*n*int(v.Type.Last()):]; bytes.Count(rest, []byte{0xff}) != len(rest) {
			w.t.Errorf("%s: %s has rows that are not of the step", c.Kernel, v)
		}
	}
	return got
}

func TestRouter(t *testing.T) {
	for i, m := range moes {
		if !takes(i, 2) {
			continue
		}
		for family, on := range map[string]*target.Target{"router": llvmpipe(t), "router_lanes": processor(t)} {
			t.Run(m.String()+"/"+family, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, 20, 19)
				w.on = on
				ids := w.topk(w.scores(&m), m.slots)
				c := first(t, w.candidates(on, ids), family)
				w.checkIDs(c, launch(t, c, w.sizes, w.data), 19, ids)
				w.build(ids)

				w = newWorld(t, 20, 19)
				w.on = on
				scores := w.scores(&m)
				weights := w.route(&m, scores, w.given("topk", ir.Attrs{{Name: "k", Value: int64(m.slots)}}, scores))
				w.check(first(t, w.candidates(on, weights), family), 19, weights)
				w.build(weights)
			})
		}
	}
}

func TestExpertSum(t *testing.T) {
	for _, width := range []ir.Dim{512, 33} {
		w := newWorld(t, 20, 19)
		y := w.op("expert_sum", nil, w.input(3*width), w.input(3))
		y = w.op("add", nil, y, w.op("gate_rows", nil, w.input(width), w.input(1)))
		y = w.op("add", nil, w.input(width), y)
		w.check(first(t, w.candidates(llvmpipe(t), y), "expert_sum"), 19, y)
		w.on = processor(t)
		w.check(first(t, w.candidates(w.on, y), "expert_sum"), 19, y)
		w.on = llvmpipe(t)
		w.build(y)

		w = newWorld(t, 20, 19)
		y = w.op("gate_rows", nil, w.input(width), w.input(1))
		w.check(first(t, w.candidates(llvmpipe(t), y), "expert_sum"), 19, y)
		w.build(y)
	}
}

func TestExpertSort(t *testing.T) {
	for i, m := range moes {
		if !takes(i, 3) {
			continue
		}
		m.all, m.none = 3, 5
		for _, rows := range []int{9, 300} {
			w := newWorld(t, rows, rows-1)
			ids := w.given("topk", ir.Attrs{{Name: "k", Value: int64(m.slots)}}, w.scores(&m))
			order := w.op("expert_order", nil, ids)
			offsets := w.op("expert_offsets", ir.Attrs{{Name: "experts", Value: int64(m.experts)}}, ids)
			c := first(t, w.candidates(llvmpipe(t), order, offsets), "expert_sort")
			got := launch(t, c, w.sizes, w.data)
			w.checkIDs(c, got, rows-1, order)
			w.checkIDs(c, got, 1, offsets)
			w.build(order, offsets)
		}
	}
}

// sorted returns the order and the offsets of ids.
func (w *world) sorted(m *moe, ids *ir.Value) []*ir.Value {
	return []*ir.Value{w.given("expert_order", nil, ids), w.given("expert_offsets", ir.Attrs{{Name: "experts", Value: int64(m.experts)}}, ids)}
}

func TestExpertGemm(t *testing.T) {
	for i, m := range moes {
		if !takes(i+1, 3) {
			continue
		}
		m.all, m.none, m.shared = 3, 5, 0
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			const rows, n = 70, 67
			w := newWorld(t, rows, n)
			ids := func(scores *ir.Value) *ir.Value {
				return w.given("topk", ir.Attrs{{Name: "k", Value: int64(m.slots)}}, scores)
			}
			out := m.upGroup(w, true, ids)[1:]
			for _, c := range w.candidates(llvmpipe(t), out...) {
				first(t, []kernels.Candidate{c}, "expert_gemm")
				w.checkAll(launch, c, n, out)
			}
			w.build(out...)

			w = newWorld(t, rows, n)
			down := w.stack(m.dtype, m.experts, m.embd, m.ff)
			chosen := ids(w.scores(&m))
			y := w.experts(w.input(ir.Dim(m.slots*m.ff)), down, chosen, 0, m.embd, w.sorted(&m, chosen)...)
			for _, c := range w.candidates(llvmpipe(t), y) {
				first(t, []kernels.Candidate{c}, "expert_gemm")
				w.checkAll(launch, c, n, []*ir.Value{y})
			}
			w.build(y)
		})
	}
}

// TestExpertDot is TestExpertGemm with x in 8-bit fixed point: behind a norm, of a row and of
// a slot.
func TestExpertDot(t *testing.T) {
	for _, m := range some([]moe{moes[0], moes[4]}) {
		m.all, m.none, m.shared = 3, 5, 0
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			const rows, n = 70, 67
			on := dotTarget(t)
			w := newWorld(t, rows, n)
			out := m.upGroup(w, true, func(scores *ir.Value) *ir.Value {
				return w.given("topk", ir.Attrs{{Name: "k", Value: int64(m.slots)}}, scores)
			})[1:]
			if readers := w.byteReaders(on, out...); len(readers) != 2 {
				t.Fatalf("%d readers in 8 bits", len(readers))
			}

			w = newWorld(t, rows, n)
			down := w.stack(m.dtype, m.experts, m.embd, m.ff)
			chosen := w.given("topk", ir.Attrs{{Name: "k", Value: int64(m.slots)}}, w.scores(&m))
			x := w.input(ir.Dim(m.slots * m.ff))
			y := w.experts(w.fixed8(x), down, chosen, 0, m.embd, w.sorted(&m, chosen)...)
			c := first(t, w.candidates(on, y), "expert_dot")
			w.checkAll(launch, c, n, []*ir.Value{y})

			w = newWorld(t, rows, n)
			gate, up := w.stack(m.dtype, m.experts, m.ff, m.embd), w.stack(m.dtype, m.experts, m.ff, m.embd)
			x = w.input(ir.Dim(m.embd))
			if m.norm {
				x = w.norm(x)
			}
			chosen = w.given("topk", ir.Attrs{{Name: "k", Value: int64(m.slots)}}, w.scores(&m))
			order := w.sorted(&m, chosen)
			x = w.fixed8(x)
			y = w.glu("silu", w.experts(x, gate, chosen, 0, m.ff, order...), w.experts(x, up, chosen, 0, m.ff, order...))
			c = first(t, w.candidates(on, y), "expert_dot")
			w.checkAll(launch, c, n, []*ir.Value{y})
		})
	}
}

// Without a sorted list, projections are computed row by row.
func TestExpertRows(t *testing.T) {
	m := moe{dtype: ir.Q4_K, embd: 40, ff: 256, experts: 12, slots: 3, gating: "softmax"}
	w := newWorld(t, 20, 19)
	down := w.stack(m.dtype, m.experts, m.embd, m.ff)
	ids := w.given("topk", ir.Attrs{{Name: "k", Value: int64(m.slots)}}, w.scores(&m))
	y := w.experts(w.input(ir.Dim(m.slots*m.ff)), down, ids, 0, m.embd)
	w.check(first(t, w.candidates(llvmpipe(t), y), "expert_gemv"), 19, y)
	w.build(y)
}

func TestExpertsRefused(t *testing.T) {
	m := moes[6]
	chosen := func(w *world) *ir.Value {
		return w.given("topk", ir.Attrs{{Name: "k", Value: int64(m.slots)}}, w.scores(&m))
	}
	stack := func(w *world) *ir.Value { return w.stack(m.dtype, m.experts, m.ff, m.embd) }
	for name, build := range map[string]func(w *world) []*ir.Value{
		"a gate that others read": func(w *world) []*ir.Value {
			ids, x := chosen(w), w.input(ir.Dim(m.embd))
			gate := w.experts(x, stack(w), ids, 0, m.ff)
			return []*ir.Value{gate, w.glu("silu", gate, w.experts(x, stack(w), ids, 0, m.ff))}
		},
		"experts of two choices": func(w *world) []*ir.Value {
			x := w.input(ir.Dim(m.embd))
			return []*ir.Value{w.experts(x, stack(w), chosen(w), 0, m.ff), w.experts(x, stack(w), chosen(w), 0, m.ff)}
		},
		"a choice for nobody": func(w *world) []*ir.Value {
			y := w.experts(w.input(ir.Dim(m.embd)), stack(w), chosen(w), 0, m.ff)
			return []*ir.Value{w.topk(w.scores(&m), m.slots), y}
		},
		"a sum of other weights": func(w *world) []*ir.Value {
			scores, ids := w.scores(&m), chosen(w)
			w.route(&m, scores, ids)
			y := w.experts(w.input(ir.Dim(m.slots*m.embd)), stack(w), ids, 0, m.ff)
			return []*ir.Value{w.op("expert_sum", nil, y, w.input(ir.Dim(m.slots)))}
		},
		"a shared expert that is not added": func(w *world) []*ir.Value {
			y := w.experts(w.input(ir.Dim(m.slots*m.embd)), stack(w), chosen(w), 0, m.ff)
			y = w.op("expert_sum", nil, y, w.input(ir.Dim(m.slots)))
			w.op("linear", nil, w.input(64), w.matrix(ir.F16, m.ff, 64))
			return []*ir.Value{y}
		},
		"offsets that nobody reads": func(w *world) []*ir.Value {
			ids := chosen(w)
			w.op("expert_offsets", ir.Attrs{{Name: "experts", Value: int64(m.experts)}}, ids)
			return []*ir.Value{w.op("expert_order", nil, ids)}
		},
		"a gate on nothing": func(w *world) []*ir.Value {
			w.op("gate_rows", nil, w.input(64), w.input(1))
			return []*ir.Value{w.op("expert_sum", nil, w.input(128), w.input(2))}
		},
	} {
		w := newWorld(t, 4, 4)
		if list := w.candidates(llvmpipe(t), build(w)...); len(list) > 0 {
			t.Errorf("%s: %s", name, list[0].Kernel)
		}
	}
}
