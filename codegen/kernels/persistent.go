package kernels

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
)

// spinLimit bounds the polls of a wait. A poll takes about a microsecond, so that a
// device that does not run all workgroups at once is found out after some seconds.
const spinLimit = 4 << 20

// Persistent returns the kernel that runs all stages of an entry in one dispatch,
// with lanes of subgroups of wave in a workgroup. Every workgroup steps through the
// table of stages; where one must wait for those before it, no workgroup goes on
// until all have come. That needs all of them to be resident at once.
//
// Its arguments are stages, behind a first that is their number, of 4 words each: case, low and high half of the address
// of its argument block, and whether to wait before it; and sync, of 3 words that
// are 0 before the first launch: how many workgroups have arrived, how many have
// left, and if a wait ran into its limit, the stage behind it plus 1. The last to
// leave clears the first two.
func Persistent(lanes, wave int, cases []kernel.Case) (*kernel.Func, error) {
	return kernel.Build("persistent", func(b *kernel.Builder) {
		stages, sync := b.Arg("stages", kernel.Read), b.Arg("sync", kernel.ReadWrite)
		b.Workgroup(lanes)

		first, groups := b.Eq(b.LocalID(), 0), b.NumWorkgroups(0)
		late := b.Shared(kernel.U32, 1)
		b.If(first, func() { late.Store(0, 0) })
		b.Barrier()
		count := stages.Load(kernel.U32, 0)
		arrivals := b.Var(kernel.U32, 0) // of all workgroups, at the next wait
		stage := b.Var(lane.U32x4, stages.Load(lane.U32x4, 1))
		b.Cases(wave, cases)
		b.For(0, count, 1, func(i kernel.Value) {
			s := stage.Get()
			stage.Set(stages.Load(lane.U32x4, b.Min(b.Add(i, 2), count))) // before the wait
			b.If(b.Ne(b.Elem(s, 3), 0), func() {
				arrivals.Set(b.Add(arrivals.Get(), groups))
				b.BarrierBuffers()
				b.If(first, func() {
					b.Fence()
					sync.AtomicAdd(0, 1)
					seen, spins := b.Var(kernel.U32, 0), b.Var(kernel.U32, 0)
					b.While(func() kernel.Value {
						seen.Set(sync.AtomicLoad(0))
						spins.Set(b.Add(spins.Get(), 1))
						return b.And(b.Lt(seen.Get(), arrivals.Get()), b.Lt(spins.Get(), spinLimit))
					}, func() {})
					b.Fence()
					b.If(b.Lt(seen.Get(), arrivals.Get()), func() {
						sync.AtomicMax(2, b.Add(i, 1))
						late.Store(0, 1)
					})
				})
				b.BarrierBuffers()
			})
			b.BreakIf(b.Ne(late.Load(0), 0))
			b.RunCase(b.Elem(s, 0), b.Elem(s, 1), b.Elem(s, 2))
		})
		b.If(b.And(first, b.Eq(late.Load(0), 0)), func() {
			b.If(b.Eq(sync.AtomicAdd(1, 1), b.Sub(groups, 1)), func() {
				sync.Store(0, b.U32(0))
				sync.Store(1, b.U32(0))
			})
		})
	})
}
