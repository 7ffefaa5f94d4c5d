package matmul_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// TestCut: rows of prompts have the same bits wherever their step begins, at whatever place of a tile they are, and
// however many rows of an expert there are.
func TestCut(t *testing.T) {
	cuda, vulkan, mesa, processor := kerneltest.Lookup(t, "sm_90-cuda"), kerneltest.Lookup(t, "sm_90"), kerneltest.Llvmpipe(t), kerneltest.Processor(t)
	tiles := *processor
	tiles.Tiles = true
	floats := func(w *work) []*ir.Value { return []*ir.Value{w.linear(w.rows(ir.T, 512), ir.F32, 40)} }
	halves := func(d ir.DType) func(w *work) []*ir.Value {
		return func(w *work) []*ir.Value {
			return []*ir.Value{w.op("add", nil, w.linear(w.rounded(w.rows(ir.T, 512)), d, 72), w.rows(ir.T, 72))}
		}
	}
	fixed := func(kind string) func(w *work) []*ir.Value {
		return func(w *work) []*ir.Value {
			return []*ir.Value{w.linear(w.op(kind, nil, w.rows(ir.T, 512)), ir.Q4_K, 48)}
		}
	}
	of := &moe{dtype: ir.Q4_K, experts: 8, slots: 2, all: 3, none: 5, norm: true, gating: "softmax"}
	few := &moe{dtype: ir.Q5_K, experts: 16, slots: 2, all: 3, none: 5}
	experts := func(rounded bool) func(w *work) []*ir.Value {
		return func(w *work) []*ir.Value {
			if rounded {
				return []*ir.Value{w.fragmentExperts(of, 512, 40, false)}
			}
			ids := w.chosen(w.scores(of), of.slots)
			order := w.sorted(of, ids)
			return []*ir.Value{w.experts(w.input(512), w.stack(of.dtype, of.experts, 40, 512), ids, 0, 40, order...)}
		}
	}
	choice := func(w *work) []*ir.Value { return []*ir.Value{w.topk(w.scores(of), of.slots)} }
	for i, test := range []struct {
		family  string
		on      *target.Target
		rows, n int
		build   func(w *work) []*ir.Value
	}{
		{"gemm_wgmma", cuda, 256, 150, func(w *work) []*ir.Value {
			return []*ir.Value{w.op("add", nil, w.linear(w.tiled(w.rounded(w.rows(ir.T, 512)), "23 12 13"), ir.Q6_K, 68), w.rows(ir.T, 68))}
		}},
		{"gemm_wgmma", cuda, 256, 150, func(w *work) []*ir.Value { // workgroups share the elements of a row
			out := []*ir.Value{w.linear(w.tiled(w.rounded(w.rows(ir.T, 2048)), "23 13"), ir.Q8_0, 40)}
			w.makeWorkspace(cuda, out...)
			return out
		}},
		{"gemm_fragment", vulkan, 64, 59, halves(ir.Q4_K)},
		{"gemm_coop", vulkan, 64, 59, halves(ir.Q4_0)},
		{"gemm_float", cuda, 64, 59, floats},
		{"gemm_float", vulkan, 64, 59, floats},
		{"gemm_lanes", vulkan, 64, 59, floats},
		{"gemm", mesa, 64, 59, func(w *work) []*ir.Value { return []*ir.Value{w.linear(w.norm(w.rows(ir.T, 512)), ir.Q4_K, 40)} }},
		{"gemm_dot", mesa, 64, 59, fixed("fixed8")},
		{"rows", processor, 64, 59, floats},
		{"rows", processor, 64, 59, fixed("fixed8")},
		{"rows", processor, 64, 59, fixed("fixed12")},
		{"rows", &tiles, 64, 59, fixed("bfloat16")},
		{"expert_fragment", vulkan, 100, 98, experts(true)},
		{"expert_fragment", vulkan, 60, 55, func(w *work) []*ir.Value { return []*ir.Value{w.fragmentExperts(few, 512, 40, true)} }},
		{"expert_coop", vulkan, 100, 98, experts(true)},
		{"expert_gemm", mesa, 60, 55, experts(false)},
		{"expert_dot", mesa, 60, 55, func(w *work) []*ir.Value {
			ids := w.chosen(w.scores(of), of.slots)
			order := w.sorted(of, ids)
			return []*ir.Value{w.experts(w.fixed8(w.input(512)), w.stack(of.dtype, of.experts, 40, 512), ids, 0, 40, order...)}
		}},
		{"rows", processor, 60, 55, experts(false)},
		{"router", cuda, 60, 55, choice},
		{"router_lanes", processor, 60, 55, choice},
		{"expert_sum", cuda, 60, 55, func(w *work) []*ir.Value {
			return []*ir.Value{w.op("expert_sum", nil, w.input(ir.Dim(of.slots*64)), w.input(ir.Dim(of.slots)))}
		}},
	} {
		t.Run(fmt.Sprint(i, " ", test.family), func(t *testing.T) {
			t.Parallel()
			run := func(from, n int) (left [][][]byte) {
				w := newWork(t, test.rows, n)
				w.from = from
				if test.on.Processor() {
					w.on = test.on
				}
				out := test.build(w)
				list := slices.DeleteFunc(kernels.Candidates(w.site(test.on, out...)), func(c kernels.Candidate) bool { return c.Family != test.family })
				if len(list) == 0 {
					t.Fatal("no candidate")
				}
				for _, c := range kerneltest.Some(list) {
					if c.Grain != 1 {
						t.Fatalf("%s: a grain of %d", c.Kernel, c.Grain)
					}
					got := kerneltest.InterpretOnly(t, c, w.sizes, w.data)
					var rows [][]byte
					for _, v := range out {
						rows = append(rows, got[v][:n*len(got[v])/test.rows])
					}
					left = append(left, rows)
				}
				return left
			}
			at := test.n * 2 / 5 // no multiple of a tile
			whole, first, rest := run(0, test.n), run(0, at), run(at, test.n-at)
			for c := range whole {
				for v := range whole[c] {
					if !bytes.Equal(whole[c][v], slices.Concat(first[c][v], rest[c][v])) {
						t.Errorf("candidate %d: output %d has other bits with a cut at row %d", c, v, at)
					}
				}
			}
		})
	}
}
