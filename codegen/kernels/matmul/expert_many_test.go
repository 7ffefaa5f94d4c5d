package matmul_test

import (
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/ir"
)

func TestExpertSum(t *testing.T) {
	for _, width := range []ir.Dim{512, 33} {
		w := newWork(t, 20, 19)
		y := w.op("expert_sum", nil, w.input(3*width), w.input(3))
		y = w.op("add", nil, y, w.op("gate_rows", nil, w.input(width), w.input(1)))
		y = w.op("add", nil, w.input(width), y)
		w.check(first(t, w.candidates(kerneltest.Llvmpipe(t), y), "expert_sum"), 19, y)
		w.on = kerneltest.Processor(t)
		w.check(first(t, w.candidates(w.on, y), "expert_sum"), 19, y)
		w.on = kerneltest.Llvmpipe(t)
		w.build(y)

		w = newWork(t, 20, 19)
		y = w.op("gate_rows", nil, w.input(width), w.input(1))
		w.check(first(t, w.candidates(kerneltest.Llvmpipe(t), y), "expert_sum"), 19, y)
		w.build(y)
	}
}

func TestExpertSort(t *testing.T) {
	for i, m := range moes {
		if !kerneltest.Takes(i, 3) {
			continue
		}
		m.all, m.none = 3, 5
		for _, rows := range []int{9, 300} {
			w := newWork(t, rows, rows-1)
			ids := w.chosen(w.scores(&m), m.slots)
			order := w.op("expert_order", nil, ids)
			offsets := w.op("expert_offsets", ir.Attrs{{Name: "experts", Value: int64(m.experts)}}, ids)
			c := first(t, w.candidates(kerneltest.Llvmpipe(t), order, offsets), "expert_sort")
			got := kerneltest.Launch(t, c, w.sizes, w.data)
			w.compare(c, got[order], rows-1, order)
			w.compare(c, got[offsets], 1, offsets)
			w.build(order, offsets)
		}
	}
}

func TestExpertGemm(t *testing.T) {
	for i, m := range moes {
		if !kerneltest.Takes(i+1, 3) {
			continue
		}
		m.all, m.none, m.shared = 3, 5, 0
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			const rows, n = 70, 67
			w := newWork(t, rows, n)
			ids := func(scores *ir.Value) *ir.Value {
				return w.chosen(scores, m.slots)
			}
			out := m.upGroup(w, true, ids)[1:]
			for _, c := range w.candidates(kerneltest.Llvmpipe(t), out...) {
				first(t, []kernels.Candidate{c}, "expert_gemm")
				w.checkAll(kerneltest.Launch, c, n, out)
			}
			w.build(out...)

			w = newWork(t, rows, n)
			down := w.stack(m.dtype, m.experts, m.embd, m.ff)
			chosen := ids(w.scores(&m))
			y := w.experts(w.input(ir.Dim(m.slots*m.ff)), down, chosen, 0, m.embd, w.sorted(&m, chosen)...)
			for _, c := range w.candidates(kerneltest.Llvmpipe(t), y) {
				first(t, []kernels.Candidate{c}, "expert_gemm")
				w.checkAll(kerneltest.Launch, c, n, []*ir.Value{y})
			}
			w.build(y)
		})
	}
}

// TestExpertDot is TestExpertGemm with x in 8-bit fixed point: behind a norm, of a row and of
// a slot.
func TestExpertDot(t *testing.T) {
	for _, m := range kerneltest.Some([]moe{moes[0], moes[4]}) {
		m.all, m.none, m.shared = 3, 5, 0
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			const rows, n = 70, 67
			on := dotTarget(t)
			w := newWork(t, rows, n)
			out := m.upGroup(w, true, func(scores *ir.Value) *ir.Value {
				return w.chosen(scores, m.slots)
			})[1:]
			if readers := w.byteReaders(on, out...); len(readers) != 2 {
				t.Fatalf("%d readers in 8 bits", len(readers))
			}

			w = newWork(t, rows, n)
			down := w.stack(m.dtype, m.experts, m.embd, m.ff)
			chosen := w.chosen(w.scores(&m), m.slots)
			x := w.input(ir.Dim(m.slots * m.ff))
			y := w.experts(w.fixed8(x), down, chosen, 0, m.embd, w.sorted(&m, chosen)...)
			c := first(t, w.candidates(on, y), "expert_dot")
			w.checkAll(kerneltest.Launch, c, n, []*ir.Value{y})

			w = newWork(t, rows, n)
			gate, up := w.stack(m.dtype, m.experts, m.ff, m.embd), w.stack(m.dtype, m.experts, m.ff, m.embd)
			x = w.input(ir.Dim(m.embd))
			if m.norm {
				x = w.norm(x)
			}
			chosen = w.chosen(w.scores(&m), m.slots)
			order := w.sorted(&m, chosen)
			x = w.fixed8(x)
			y = w.glu("silu", w.experts(x, gate, chosen, 0, m.ff, order...), w.experts(x, up, chosen, 0, m.ff, order...))
			c = first(t, w.candidates(on, y), "expert_dot")
			w.checkAll(kerneltest.Launch, c, n, []*ir.Value{y})
		})
	}
}

// Without a sorted list, projections are computed row by row.
func TestExpertRows(t *testing.T) {
	m := moe{dtype: ir.Q4_K, embd: 40, ff: 256, experts: 12, slots: 3, gating: "softmax"}
	w := newWork(t, 20, 19)
	down := w.stack(m.dtype, m.experts, m.embd, m.ff)
	ids := w.chosen(w.scores(&m), m.slots)
	y := w.experts(w.input(ir.Dim(m.slots*m.ff)), down, ids, 0, m.embd)
	w.check(first(t, w.candidates(kerneltest.Llvmpipe(t), y), "expert_gemv"), 19, y)
	w.build(y)
}
