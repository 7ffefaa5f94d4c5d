package matmul_test

import (
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

func TestExpertUp(t *testing.T) {
	for _, m := range kerneltest.Some(append(slices.Clone(moes), squareMoe)) {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			checkWidths(t, kerneltest.Llvmpipe(t), "expert_gemv", func(w *work) []*ir.Value {
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
		if !kerneltest.Takes(i+1, 3) {
			continue
		}
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			choose := func(w *work) func(scores *ir.Value) *ir.Value {
				return func(scores *ir.Value) *ir.Value { return w.topk(scores, m.slots) }
			}
			w := newWork(t, 8, 8)
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
			if got := kerneltest.RoundedFor(site, "fixed12"); len(got) != linears {
				t.Errorf("%d ops read x in fixed point, want %d", len(got), linears)
			}
			m.fixed = true
			checkWidths(t, on, "expert_gemv", func(w *work) []*ir.Value { return m.upGroup(w, false, choose(w)) })
		})
	}
}

func TestRouter(t *testing.T) {
	for i, m := range moes {
		if !kerneltest.Takes(i, 2) {
			continue
		}
		for family, on := range map[string]*target.Target{"router": kerneltest.Llvmpipe(t), "router_lanes": kerneltest.Processor(t)} {
			t.Run(m.String()+"/"+family, func(t *testing.T) {
				t.Parallel()
				w := newWork(t, 20, 19)
				w.on = on
				ids := w.topk(w.scores(&m), m.slots)
				c := first(t, w.candidates(on, ids), family)
				w.check(c, 19, ids)
				w.build(ids)

				w = newWork(t, 20, 19)
				w.on = on
				scores := w.scores(&m)
				weights := w.route(&m, scores, w.chosen(scores, m.slots))
				w.check(first(t, w.candidates(on, weights), family), 19, weights)
				w.build(weights)
			})
		}
	}
}

func TestExpertsRefused(t *testing.T) {
	m := moes[6]
	chosen := func(w *work) *ir.Value {
		return w.chosen(w.scores(&m), m.slots)
	}
	stack := func(w *work) *ir.Value { return w.stack(m.dtype, m.experts, m.ff, m.embd) }
	for name, build := range map[string]func(w *work) []*ir.Value{
		"a gate that others read": func(w *work) []*ir.Value {
			ids, x := chosen(w), w.input(ir.Dim(m.embd))
			gate := w.experts(x, stack(w), ids, 0, m.ff)
			return []*ir.Value{gate, w.glu("silu", gate, w.experts(x, stack(w), ids, 0, m.ff))}
		},
		"experts of two choices": func(w *work) []*ir.Value {
			x := w.input(ir.Dim(m.embd))
			return []*ir.Value{w.experts(x, stack(w), chosen(w), 0, m.ff), w.experts(x, stack(w), chosen(w), 0, m.ff)}
		},
		"a choice for nobody": func(w *work) []*ir.Value {
			y := w.experts(w.input(ir.Dim(m.embd)), stack(w), chosen(w), 0, m.ff)
			return []*ir.Value{w.topk(w.scores(&m), m.slots), y}
		},
		"a sum of other weights": func(w *work) []*ir.Value {
			scores, ids := w.scores(&m), chosen(w)
			w.route(&m, scores, ids)
			y := w.experts(w.input(ir.Dim(m.slots*m.embd)), stack(w), ids, 0, m.ff)
			return []*ir.Value{w.op("expert_sum", nil, y, w.input(ir.Dim(m.slots)))}
		},
		"a shared expert that is not added": func(w *work) []*ir.Value {
			y := w.experts(w.input(ir.Dim(m.slots*m.embd)), stack(w), chosen(w), 0, m.ff)
			y = w.op("expert_sum", nil, y, w.input(ir.Dim(m.slots)))
			w.op("linear", nil, w.input(64), w.matrix(ir.F16, m.ff, 64))
			return []*ir.Value{y}
		},
		"offsets that nobody reads": func(w *work) []*ir.Value {
			ids := chosen(w)
			w.op("expert_offsets", ir.Attrs{{Name: "experts", Value: int64(m.experts)}}, ids)
			return []*ir.Value{w.op("expert_order", nil, ids)}
		},
		"a gate on nothing": func(w *work) []*ir.Value {
			w.op("gate_rows", nil, w.input(64), w.input(1))
			return []*ir.Value{w.op("expert_sum", nil, w.input(128), w.input(2))}
		},
	} {
		w := newWork(t, 4, 4)
		if list := w.candidates(kerneltest.Llvmpipe(t), build(w)...); len(list) > 0 {
			t.Errorf("%s: %s", name, list[0].Kernel)
		}
	}
}
