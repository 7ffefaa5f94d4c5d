package site

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/ir"
)

// Arrivals returns the step value whose elements count the workgroups of a last-block reduction, if
// it has as many; else nil. All are 0 when a dispatch begins and when it ends.
func Arrivals(s *Site, count int) *ir.Value {
	v := s.Program.Global(ir.Arrivals)
	if v == nil || int(v.Type.Shape[0]) < count {
		return nil
	}
	return v
}

// LastBlock counts the workgroup in at element i of arrivals and returns whether it is the
// last of n. The last one then sees everything that the others wrote to buffers before.
// Nobody waits. All lanes of the n workgroups must reach it, outside loops and ifs.
func LastBlock(b *kernel.Builder, arrivals *kernel.Buffer, i, n kernel.Value) kernel.Value {
	return LastBlockBy(b, b.Shared(kernel.U32, 1), arrivals, i, n)
}

// LastBlockBy is LastBlock with a given array in shared memory, of which it takes the first word. A kernel that counts
// twice uses one twice.
func LastBlockBy(b *kernel.Builder, arrived *kernel.Array, arrivals *kernel.Buffer, i, n kernel.Value) kernel.Value {
	b.BarrierBuffers()
	Arrive(b, arrived, b.U32(0), arrivals, i, n)
	b.BarrierBuffers()
	return b.Eq(arrived.Load(0), n)
}

// LastOf is LastBlockBy of work in n parts, of which the workgroup has done k: it returns whether these were the last.
// A workgroup may come to it for several works, one behind the other.
func LastOf(b *kernel.Builder, arrived *kernel.Array, arrivals *kernel.Buffer, i kernel.Value, k kernel.Operand, n kernel.Value) kernel.Value {
	b.BarrierBuffers()
	arrive(b, arrived, b.U32(0), arrivals, i, k, n)
	b.BarrierBuffers()
	return b.Eq(arrived.Load(0), n)
}

// Arrive counts the workgroup, all lanes of which have come to a BarrierBuffers, and stores how many have come in
// element to of arrived: n in the last one. Others may see that, and what all workgroups wrote, behind one more.
func Arrive(b *kernel.Builder, arrived *kernel.Array, to kernel.Value, arrivals *kernel.Buffer, i, n kernel.Value) {
	arrive(b, arrived, to, arrivals, i, 1, n)
}

func arrive(b *kernel.Builder, arrived *kernel.Array, to kernel.Value, arrivals *kernel.Buffer, i kernel.Value, k kernel.Operand, n kernel.Value) {
	b.If(b.Eq(b.LocalID(), 0), func() {
		now := b.Var(kernel.U32, k) // alone it need not count, which takes a microsecond
		b.If(b.Gt(n, k), func() {
			b.Fence()
			now.Set(b.Add(arrivals.AtomicAdd(i, k), k))
			b.Fence()
			b.If(b.Eq(now.Get(), n), func() { arrivals.AtomicAdd(i, b.Sub(b.U32(0), n)) })
		})
		arrived.Store(to, now.Get())
	})
}
