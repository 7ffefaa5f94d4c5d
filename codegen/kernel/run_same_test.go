package kernel_test

import (
	"encoding/binary"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

// TestRunOfSameValues has values that are the same for all lanes where lane 0 is not, and where no lane is left.
func TestRunOfSameValues(t *testing.T) {
	f, err := kernel.Build("same", func(b *kernel.Builder) {
		b.Workgroup(8)
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		sum := b.Var(kernel.U32, 0)
		b.If(b.Gt(b.LocalID(), 2), func() {
			b.For(b.WorkgroupID(0), 3, 1, func(i kernel.Value) {
				b.If(b.Ne(i, 1), func() { sum.Set(b.Add(sum.Get(), x.Load(kernel.U32, i))) })
				b.BreakIf(b.Eq(b.LocalID(), 4))
			})
		})
		y.Store(b.Add(b.LocalID(), b.Mul(b.WorkgroupID(0), 8)), sum.Get())
		b.ReturnIf(b.Lt(b.LocalID(), 8))
		y.Store(b.LocalID(), x.Load(kernel.U32, 1<<20)) // behind the end
	})
	if err != nil {
		t.Fatal(err)
	}
	x, y := make([]byte, 12), make([]byte, 4*16)
	for i, v := range []uint32{1, 10, 100} {
		binary.LittleEndian.PutUint32(x[4*i:], v)
	}
	if err := f.Run(nil, 4, [3]int{2, 1, 1}, [][]byte{x, y}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint32{0, 0, 0, 101, 1, 101, 101, 101, 0, 0, 0, 100, 0, 100, 100, 100} {
		if got := binary.LittleEndian.Uint32(y[4*i:]); got != want {
			t.Errorf("lane %d of workgroup %d has %d, want %d", i%8, i/8, got, want)
		}
	}
}
