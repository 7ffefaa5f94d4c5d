package matmul_test

import (
	"bytes"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// checkSplits computes a group with workgroups that share the elements of a row.
func (w *work) checkSplits(on *target.Target, family string, n int, out []*ir.Value) {
	t := w.t
	t.Helper()
	counts := w.makeWorkspace(on, out...)
	c := first(t, w.candidates(on, out...), family)
	if c.Grid[2] < 2 {
		t.Fatalf("%s: %d workgroups share a row", c.Kernel, c.Grid[2])
	}
	got := w.checkAll(kerneltest.Launch, c, n, out)
	if !bytes.Equal(got[counts], w.data[counts]) {
		t.Errorf("the counters are %v at the end", got[counts])
	}
}

// fragmentsOnly is sm_90 without gemm_coop.
func fragmentsOnly(t *testing.T) *target.Target {
	on := *kerneltest.Lookup(t, "sm_90")
	on.Matrix = target.MatrixShape{}
	return &on
}

// makeWorkspace gives the group of the outputs a workspace for sums of workgroups that end in a last-block reduction,
// if it wants any. It returns their counters.
func (w *work) makeWorkspace(on *target.Target, out ...*ir.Value) *ir.Value {
	w.t.Helper()
	counts := w.p.AddGlobal("arrivals", ir.Step, ir.MakeType(ir.I32, 64))
	w.give(counts, make([]byte, 4*64))
	for _, want := range strategy.Wants(w.site(on, out...)) {
		if want.Workspace == 0 {
			continue
		}
		x := w.ops[0].Args[0]
		if w.ops[0].Kind.Name == "untile" {
			x = w.ops[0].Result
		}
		w.ops = append(w.ops, w.alone("workspace", ir.Attrs{{Name: "width", Value: int64(want.Workspace)}}, x))
	}
	return counts
}

// wgmma returns the candidates of gemm_wgmma for a group, which are so many.
func (w *work) wgmma(count int, out ...*ir.Value) (list []kernels.Candidate) {
	w.t.Helper()
	for _, c := range kernels.Candidates(w.site(kerneltest.Lookup(w.t, "sm_90-cuda"), out...)) { // few outputs are not for it
		if c.Family == "gemm_wgmma" {
			list = append(list, c)
		}
	}
	if len(list) != count {
		w.t.Fatalf("%d candidates of gemm_wgmma", len(list))
	}
	return list
}
