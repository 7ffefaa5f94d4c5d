package matmul_test

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/kernels/matmul"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// runFamily returns what the first candidate of a family with a word in its kernel's name leaves, in the interpreter.
func (w *work) runFamily(on *target.Target, family, word string, out ...*ir.Value) map[*ir.Value][]byte {
	w.t.Helper()
	for _, c := range w.candidates(on, out...) {
		if strings.HasPrefix(c.Kernel, family+" ") && strings.Contains(c.Kernel, word) {
			if _, err := exec.LookPath("ptxas"); err == nil && strings.Contains(c.Kernel, " bytes=") {
				kerneltest.Assembled(w.t, c)
			}
			return kerneltest.InterpretOnly(w.t, c, w.sizes, w.data)
		}
	}
	w.t.Fatalf("no %s%s", family, word)
	return nil
}

// hopper has copies of whole rows.
func hopper() *target.Target {
	on := matrixTarget
	on.CUDA = 90
	return &on
}

// TestExpertWide holds that expert_wide gives gate and up, and ids if it chooses, the bits of expert_gemv, whatever
// expert is chosen by how many rows.
func TestExpertWide(t *testing.T) {
	// What kernels have in their names that are given ids.
	apart := [][]string{{" workers"}, {" workers", " bulk"}, {" workers"}, nil, {" bulk"}, {" workers", " bulk"}, {" workers"}, {" room"}}
	for i, m := range []moe{
		{dtype: ir.Q4_K, embd: 512, ff: 72, experts: 12, slots: 8, shared: 40, norm: true, gating: "softmax"},
		{dtype: ir.Q5_K, embd: 1280, ff: 24, experts: 33, slots: 4, norm: true, gating: "softmax", ties: true, all: 3, none: 7},
		{dtype: ir.Q6_K, embd: 1536, ff: 20, experts: 64, slots: 2, norm: true, gating: "softmax"},
		{dtype: ir.Q8_0, embd: 768, ff: 16, experts: 9, slots: 3, merged: true, norm: true, gating: "softmax", nans: true},
		{dtype: ir.Q4_K, embd: 512, ff: 64, experts: 40, slots: 2, norm: true, gating: "softmax"},
		{dtype: ir.Q4_K, embd: 2048, ff: 136, experts: 12, slots: 2, shared: 88, norm: true, gating: "softmax"},
		{dtype: ir.Q5_K, embd: 1024, ff: 40, experts: 40, slots: 4, norm: true, gating: "softmax"},
		{dtype: ir.Q4_K, embd: 7168, ff: 8, experts: 3, slots: 1, shared: 8, gating: "softmax"}, // without a staging buffer
	} {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			m.fixed = true
			rows := []int{16, 32, 32, 16, 16, 16, 32, 16}[i]
			run := func(on *target.Target, family, word string, apart bool) (out []*ir.Value, got map[*ir.Value][]byte) {
				w := newWork(t, rows, rows-3)
				w.f.Class = ir.ExactStep
				out = m.upGroup(w, false, func(scores *ir.Value) *ir.Value {
					if ids := w.chosen(scores, m.slots); apart {
						return ids
					}
					return w.topk(scores, m.slots)
				})
				if apart { // ids are given
					out = slices.DeleteFunc(out, func(v *ir.Value) bool { return v.Type.DType == ir.I32 })
				}
				return out, w.runFamily(on, family, word, out...)
			}
			wantOut, want := run(&matrixTarget, "expert_gemv", "", false)
			for _, word := range append([]string{""}, apart[i]...) {
				on, apart := &matrixTarget, word != ""
				if word == " bulk" {
					on = hopper()
				}
				out, got := run(on, "expert_wide", word, apart)
				for j, v := range out {
					same := wantOut[len(wantOut)-len(out)+j]
					if live := 4 * (rows - 3) * int(v.Type.Last()); !bytes.Equal(got[v][:live], want[same][:live]) {
						t.Errorf("top-k apart %v: %s has other bits than row by row", apart, v)
					}
				}
			}
		})
	}
}

// TestExpertWideDown holds that expert_wide, a projection of the shared expert, in the same dispatch if its rows are as
// long, and expert_weigh give the bits of expert_down.
func TestExpertWideDown(t *testing.T) {
	for i, m := range []moe{
		{dtype: ir.Q5_K, embd: 64, ff: 512, experts: 12, slots: 8, shared: 256, gating: "softmax"},
		{dtype: ir.Q6_K, embd: 72, ff: 256, experts: 20, slots: 4, shared: 1024, gating: "sigmoid"},
		{dtype: ir.Q4_K, embd: 16, ff: 1024, experts: 7, slots: 2, shared: 512, gating: "topk_softmax"},
		{dtype: ir.Q5_K, embd: 328, ff: 512, experts: 12, slots: 4, shared: 512, gating: "softmax"},
		{dtype: ir.Q4_K, embd: 128, ff: 256, experts: 9, slots: 2, shared: 256, gating: "softmax"},
		{dtype: ir.Q8_0, embd: 72, ff: 256, experts: 5, slots: 2, shared: 256, gating: "softmax"},
	} {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			rows := []int{16, 64, 32, 32, 16, 16}[i]
			build := func() (w *work, parts [][]*ir.Op, down, shared, y *ir.Value) {
				w = newWork(t, rows, rows-3)
				w.f.Class = ir.ExactStep
				stack, matrix := w.stack(m.dtype, m.experts, m.embd, m.ff), w.matrix(ir.Q8_0, m.embd, m.shared)
				x, own := w.input(ir.Dim(m.slots*m.ff)), w.input(ir.Dim(m.shared))
				gate, residual, scores := w.input(1), w.input(ir.Dim(m.embd)), w.scores(&m)
				ids := w.chosen(scores, m.slots)
				weights := w.route(&m, scores, ids)
				down = w.experts(w.op("fixed12", ir.Attrs{{Name: "row", Value: int64(m.ff)}}, x), stack, ids, 0, m.embd)
				sum := w.op("expert_sum", nil, down, weights)
				shared = w.op("linear", nil, w.op("fixed12", nil, own), matrix)
				y = w.op("add", nil, sum, w.op("gate_rows", nil, shared, gate))
				y = w.op("add", nil, y, residual)
				return w, [][]*ir.Op{w.ops[1:3], w.ops[4:6], append(append([]*ir.Op{w.ops[0]}, w.ops[3]), w.ops[6:]...)}, down, shared, y
			}
			w, _, _, _, y := build()
			want := w.runFamily(&matrixTarget, "expert_down", "", y)[y]
			for _, word := range [][]string{{" workers", " bulk"}, {" workers"}, {" workers"}, {" workers"}, {" workers", " bulk"}, {""}}[i] {
				w, parts, down, shared, y := build()
				families, outs := []string{"expert_wide", "gemm_fixed", "expert_weigh"}, [][]*ir.Value{{down}, {shared}, {y}}
				if m.shared == m.ff {
					families, outs = []string{"expert_wide", "expert_weigh"}, [][]*ir.Value{{down, shared}, {y}}
					parts = [][]*ir.Op{slices.Concat(parts[0], parts[1]), parts[2]}
				}
				for j, family := range families {
					on, word := &matrixTarget, word
					switch {
					case j > 0:
						word = ""
					case word == " bulk":
						on = hopper()
					}
					w.ops = parts[j]
					got := w.runFamily(on, family, word, outs[j]...)
					for _, out := range outs[j] {
						w.data[out] = got[out]
					}
				}
				if live := 4 * (rows - 3) * m.embd; !bytes.Equal(w.data[y][:live], want[:live]) {
					t.Errorf("%q: the sums have other bits than row by row", word)
				}
			}
		})
	}
}

// TestUnites holds which down projections may be united.
func TestUnites(t *testing.T) {
	for k, want := range map[int]bool{256: true, 512: true, 768: false, 1024: true, 2048: false} {
		w := newWork(t, 16, 16)
		m := moe{dtype: ir.Q4_K, experts: 4, slots: 2}
		down := w.experts(w.input(ir.Dim(2*k)), w.stack(m.dtype, m.experts, 32, k), w.chosen(w.scores(&m), 2), 0, 32).Def
		for rows, want := range map[int]bool{8: false, 16: want} {
			if got := matmul.Unites(&matrixTarget, rows, down, nil); got != want {
				t.Errorf("%d elements, %d rows: %v", k, rows, got)
			}
		}
		s := &kernels.Site{Program: w.p, Func: w.f, Group: &ir.Group{Ops: []*ir.Op{down}}, Outputs: []*ir.Value{down.Result}, Target: &matrixTarget}
		w.f.Class = ir.ExactStep
		if got := len(kerneltest.RoundedFor(s, "fixed12")) > 0; got != want {
			t.Errorf("%d elements: x in fixed point: %v", k, got)
		}
	}
}
