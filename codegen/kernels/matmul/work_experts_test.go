package matmul_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// moe is the shape of an expert layer.
type moe struct {
	dtype          ir.DType
	embd, ff       int
	experts, slots int
	shared         int // width of the shared expert, 0 for none
	merged, norm   bool
	gating         string
	ties           bool
	nans           bool // among the scores, and infinities
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
func (w *work) input(width ir.Dim) *ir.Value {
	w.rng = rand.New(rand.NewPCG(uint64(len(w.data)), 3))
	return w.rows(ir.T, width)
}

func (w *work) scores(m *moe) *ir.Value {
	v := w.input(ir.Dim(m.experts))
	x := kerneltest.ToF32(w.data[v])
	for i := range x {
		if m.ties {
			x[i] = float32(math.Round(float64(x[i])))
		}
		if m.nans && (i%7 == 3 || i/m.experts == 1) {
			x[i] = float32(math.NaN())
		} else if m.nans && (i%11 == 5 || i/m.experts == 2) {
			x[i] = float32(math.Inf(-1))
		}
		if e := i % m.experts; m.all != m.none && e == m.all {
			x[i] += 100
		} else if m.all != m.none && e == m.none {
			x[i] -= 100
		}
	}
	w.give(v, kerneltest.F32Bytes(x))
	return v
}

// stack is a matrix for each of the experts.
func (w *work) stack(d ir.DType, experts, rows, cols int) *ir.Value {
	return w.weight(fmt.Sprintf("m%d_exps.weight", len(w.p.Globals)), d, ir.Dim(experts), ir.Dim(rows), ir.Dim(cols))
}

func (w *work) topk(scores *ir.Value, k int) *ir.Value {
	return w.op("topk", ir.Attrs{{Name: "k", Value: int64(k)}}, scores)
}

// chosen is what topk makes of scores, made elsewhere.
func (w *work) chosen(scores *ir.Value, k int) *ir.Value {
	return w.given(w.f.Rows, "topk", ir.Attrs{{Name: "k", Value: int64(k)}}, scores)
}

// experts is an expert_linear, over sorted slots if order and offsets are given.
func (w *work) experts(x, weight, ids *ir.Value, first, rows int, sorted ...*ir.Value) *ir.Value {
	return w.op("expert_linear", ir.Attrs{{Name: "first", Value: int64(first)}, {Name: "rows", Value: int64(rows)}}, append([]*ir.Value{x, weight, ids}, sorted...)...)
}

func (w *work) route(m *moe, scores, ids *ir.Value) *ir.Value {
	norm := int64(1)
	if m.gating == "sigmoid" {
		norm = 0
	}
	return w.op("route", ir.Attrs{{Name: "gating", Value: m.gating}, {Name: "norm", Value: norm}, {Name: "scale", Value: 1.5}}, scores, ids)
}

// upGroup builds the group of gate, up and GLU, or of up and its square, with what choose adds to it.
func (m *moe) upGroup(w *work, sorted bool, choose func(scores *ir.Value) *ir.Value) []*ir.Value {
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
func (m *moe) downGroup(w *work) *ir.Value {
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
	ids := w.chosen(scores, m.slots)
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

// build builds the group's kernels for every target, and for subgroups of 64, and
// validates each once.
func (w *work) build(outputs ...*ir.Value) {
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

func (w *work) buildFor(on *target.Target, outputs []*ir.Value) {
	w.t.Helper()
	list := w.candidates(on, outputs...)
	if len(list) == 0 {
		w.t.Fatalf("%s: no candidate", on.Name)
	}
	for _, c := range list {
		kerneltest.Builds(w.t, on, on.Shared, c)
		for _, v := range outputs {
			kerneltest.Covered(w.t, c, v, w.count(v))
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

// checkWidths runs a group in steps of 7, 2 and 1 rows: each row must come out the
// same, in the interpreter, and rows of no step must stay as they are.
func checkWidths(t *testing.T, on *target.Target, family string, group func(w *work) []*ir.Value) {
	t.Helper()
	var widest [][]byte
	for _, n := range []int{7, 2, 1} {
		rows := n + n%2
		w := newWork(t, rows, n)
		out := group(w)
		list := w.candidates(on, out...)
		if n < 7 {
			list = list[:1]
		}
		for i, c := range list {
			first(t, list[i:], family)
			if i > 0 {
				w.checkAll(kerneltest.Launch, c, n, out)
				continue
			}
			if kerneltest.Showing(t, c) {
				w.checkAll(kerneltest.Launch, c, n, out)
			}
			got := w.checkAll(kerneltest.InterpretOnly, c, n, out)
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
			w.checkAll(kerneltest.Launch, w.candidates(&wide, out...)[0], n, out)
		}
	}
}

// sorted returns the order and the offsets of ids.
func (w *work) sorted(m *moe, ids *ir.Value) []*ir.Value {
	return []*ir.Value{w.given(w.live(), "expert_order", nil, ids), w.given(w.live(), "expert_offsets", ir.Attrs{{Name: "experts", Value: int64(m.experts)}}, ids)}
}
