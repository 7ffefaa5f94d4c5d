package matmul_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

func TestExpertDown(t *testing.T) {
	for i, m := range moes {
		if !kerneltest.Takes(i+2, 3) {
			continue
		}
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			checkWidths(t, kerneltest.Llvmpipe(t), "expert_down", func(w *work) []*ir.Value { return []*ir.Value{m.downGroup(w)} })
		})
	}
}

// TestExpertDownFixed is TestExpertDown with x in fixed point, which groups of few long rows read so: with scales of 32
// elements, though all slots together are a multiple of 256, and with super-blocks; lanes with and without a last unit.
func TestExpertDownFixed(t *testing.T) {
	for _, m := range kerneltest.Some([]moe{
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
			w := newWork(t, 8, 8)
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
			checkWidths(t, on, "expert_down", func(w *work) []*ir.Value { return []*ir.Value{m.downGroup(w)} })
		})
	}
}

// TestExpertDownAtOnce has rows of a unit a lane: loaded all at once they have the same bits as one after the other, of
// any number of rows, in tiles of any size, and in subgroups of any. Strategy leaves them, and an x in fixed point for
// such rows, to CUDA.
func TestExpertDownAtOnce(t *testing.T) {
	for i, on := range []*target.Target{kerneltest.Lookup(t, "sm_90-cuda"), subgroupsOf(t, 8), subgroupsOf(t, 32), subgroupsOf(t, 64)} {
		for j, m := range []moe{
			{dtype: ir.Q5_K, embd: 64, ff: 512, experts: 5, slots: 3, shared: 512, sharedType: ir.Q8_0, gating: "softmax", adds: 1},
			{dtype: ir.Q6_K, embd: 32, ff: 1024, experts: 3, slots: 2, gating: "sigmoid"},
			{dtype: ir.Q4_0, embd: 48, ff: 256, experts: 3, slots: 2, shared: 512, sharedType: ir.Q4_K, gating: "softmax"},
		} {
			if !kerneltest.Takes(i+j, 3) {
				continue
			}
			if on.Wave == 8 { // lanes have a unit of no longer ones
				m.ff, m.shared = 256, m.shared/2
			}
			t.Run(fmt.Sprintf("%s/w%d/%s", on.Name, on.Wave, m.String()), func(t *testing.T) {
				t.Parallel()
				w := newWork(t, 8, 8)
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
					w := newWork(t, rows, n)
					out := m.downGroup(w)
					atOnce := false
					for _, c := range kerneltest.Different(kernels.Candidates(w.site(on, out))) {
						if c.Room != 0 || c.Form != (ir.Form{}) {
							continue
						}
						atOnce = atOnce || c.AtOnce
						got := w.checkAll(kerneltest.InterpretOnly, c, n, []*ir.Value{out})[out]
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

// TestExpertDownFixedFits has workgroups without room for parts of the shared expert's rows: those are one member, not
// in fixed point, and there are no fewer candidates than without fixed point.
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
			w := newWork(t, 8, 8)
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
