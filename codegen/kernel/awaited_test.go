package kernel_test

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

// waits is a kernel of four subgroups with two copies of 32 vectors each on their way, by slot.
type waits struct {
	*kernel.Builder
	y        *kernel.Buffer
	vectors  *kernel.Array
	arrivals *kernel.Arrivals
	copy     func(slot int)
}

// by does something in subgroup i alone.
func (w *waits) by(i int, do func()) { w.If(w.Eq(w.SubgroupID(), i), do) }

// load has all active lanes load what a slot brings.
func (w *waits) load(slot int) {
	w.y.Store(w.LocalID(), w.vectors.LoadElem(w.Add(w.SubgroupLane(), 32*slot), 0))
}

// multiply has all subgroups multiply with what slot 0 brings.
func (w *waits) multiply() {
	var sums []*kernel.Var
	for range 2 {
		sums = append(sums, w.Var(kernel.F32.Matrix(16, 8, kernel.Accumulator), w.MatFill(kernel.F32.Matrix(16, 8, kernel.Accumulator), 0)))
	}
	zero := w.U32(0)
	w.MatGroupAdd(sums, w.vectors, 16, kernel.GroupProduct{A: w.MatPairs(kernel.F16.Matrix(16, 16, kernel.MatrixA), zero, zero, zero, zero), At: zero})
	w.MatGroupWait(0)
}

// TestWaits holds that subgroups wait for themselves, and what of that is found missing.
func TestWaits(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(w *waits)
		want string
	}{
		{"some wait", func(w *waits) {
			w.by(1, func() { w.arrivals.Wait(w.U32(0), w.U32(0)); w.load(0) })
			w.by(2, func() { w.arrivals.Wait(w.U32(1), w.U32(0)); w.load(1) })
		}, ""},
		{"in another order", func(w *waits) {
			w.arrivals.Wait(w.And(w.SubgroupID(), 1), w.U32(0))
			w.arrivals.Wait(w.Xor(w.And(w.SubgroupID(), 1), 1), w.U32(0))
			w.load(0)
			w.load(1)
		}, ""},
		{"in several rounds", func(w *waits) {
			w.For(0, w.SubgroupID(), 1, func(kernel.Value) {
				for slot := range 2 {
					w.arrivals.Wait(w.U32(uint32(slot)), w.U32(0))
					w.load(slot)
				}
			})
		}, ""},
		{"another loads", func(w *waits) {
			w.by(1, func() { w.arrivals.Wait(w.U32(0), w.U32(0)) })
			w.by(2, func() { w.load(0) })
		}, "lane 64 (shared_load_elem"},
		{"another loads behind a barrier", func(w *waits) {
			w.by(1, func() { w.arrivals.Wait(w.U32(0), w.U32(0)) })
			w.Barrier()
			w.by(2, func() { w.load(0) })
		}, "has not waited for the copy"},
		{"another stores", func(w *waits) {
			w.by(1, func() { w.arrivals.Wait(w.U32(0), w.U32(0)) })
			w.by(2, func() { w.vectors.Store(w.SubgroupLane(), w.Vec(w.U32(0), w.U32(0), w.U32(0), w.U32(0))) })
		}, "lane 64 (shared_store"},
		{"for another slot", func(w *waits) {
			w.arrivals.Wait(w.U32(0), w.U32(0))
			w.by(0, func() { w.arrivals.Wait(w.U32(1), w.U32(0)); w.load(1) })
			w.by(1, func() { w.load(1) })
		}, "lane 32 (shared_load_elem"},
		{"all multiply", func(w *waits) {
			w.arrivals.Wait(w.U32(0), w.U32(0))
			w.multiply()
		}, ""},
		{"one of four multiplies too early", func(w *waits) {
			w.If(w.Ne(w.SubgroupID(), 2), func() { w.arrivals.Wait(w.U32(0), w.U32(0)) })
			w.multiply()
		}, "subgroup 2 (mat_group_add"},
		{"half a subgroup", func(w *waits) {
			w.If(w.Lt(w.SubgroupLane(), 16), func() { w.arrivals.Wait(w.U32(0), w.U32(0)) })
		}, "lane 16 does not come to it"},
		{"lanes differ", func(w *waits) { w.arrivals.Wait(w.And(w.LocalID(), 1), w.U32(0)) }, "lane 0: slot 0, turn 0; lane 1: slot 1, turn 0"},
		{"the next turn", func(w *waits) {
			w.by(0, func() { w.arrivals.Wait(w.U32(0), w.U32(0)) })
			w.copy(0)
			w.by(0, func() { w.arrivals.Wait(w.U32(0), w.U32(1)); w.load(0) })
		}, ""},
		{"the next turn alone", func(w *waits) {
			w.by(0, func() { w.arrivals.Wait(w.U32(0), w.U32(0)) })
			w.copy(0)
			w.arrivals.Wait(w.U32(0), w.U32(1))
		}, "subgroup 1: slot 0 has had a turn that it has not waited for"},
		{"the next turn by who has not waited", func(w *waits) {
			w.by(1, func() { w.arrivals.Wait(w.U32(0), w.U32(0)) })
			w.copy(0)
		}, "slot 0 has a copy that was not waited for"},
		{"done with what one has not waited for", func(w *waits) {
			w.by(1, func() { w.arrivals.Wait(w.U32(0), w.U32(0)) })
			w.by(2, func() { w.arrivals.Done(w.U32(0)) })
		}, "subgroup 2: nothing of slot 0 to be done with"},
		{"nobody waits", func(w *waits) { w.by(3, func() { w.arrivals.Wait(w.U32(0), w.U32(0)) }) }, "nobody waits for the last copy of slot 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := kernel.Build("waits", func(b *kernel.Builder) {
				x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
				b.Workgroup(128)
				w := &waits{b, y, b.Shared(kernel.U32.Vec(4), 64), b.Arrivals(2), nil}
				w.copy = func(slot int) {
					b.If(b.Eq(b.LocalID(), 0), func() {
						w.arrivals.Copy(b.U32(uint32(slot)), w.vectors, kernel.Piece{Buffer: x, From: b.U32(0), To: b.U32(uint32(32 * slot)), N: 32})
					})
				}
				w.copy(0)
				w.copy(1)
				c.do(w)
				if c.want == "" {
					w.by(3, func() { w.arrivals.Wait(w.U32(1), w.U32(0)) })
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := f.Run(nil, 32, [3]int{1, 1, 1}, [][]byte{make([]byte, 16*32), make([]byte, 4*128)}); err != nil {
				got = err.Error()
			}
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
