package kernels

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
)

//go:generate go run ./probegen vulkan ../../runtime/vulkan/zprobe.go
//go:generate go run ./probegen cuda ../../runtime/cuda/zprobe.go

// The kernels that a runtime measures devices with, and proves one thing. It has them as
// words, since it does not import this package.

// probeLanes is the workgroup of those that measure.
const probeLanes = 256

// ProbeEmpty is a kernel that does nothing, to measure the cost of a dispatch.
func ProbeEmpty() (*kernel.Func, error) {
	return kernel.Build("probe_empty", func(b *kernel.Builder) {
		b.Arg("unused", kernel.Read) // no kernel is without
		b.Workgroup(probeLanes)
	})
}

// ProbeFragments tests fragments and exact sums. Each lane fills the elements of two matrices that it holds according
// to mma.m16n8k16 of PTX, adds up their product four times, and writes its elements of the sum, by the same definition:
// y has 16 rows of 8. Element (i, k) of the first factor is a subnormal f16, 2^-24 times 110 + (i*i + 3*k) mod 17;
// element (k, j) of the second is 2030 + (k*k + 5*j) mod 13. The sums take all 24 bits of an f32, and are exact.
func ProbeFragments() (*kernel.Func, error) {
	return kernel.Build("probe_fragments", func(b *kernel.Builder) {
		y := b.Arg("y", kernel.Write)
		b.Workgroup(fragment.Lanes)
		place, quad := b.Shr(b.SubgroupLane(), 2), b.And(b.SubgroupLane(), 3)
		codes := func(add, from int) kernel.Operand {
			i, k := b.Add(place, add), b.Add(b.Mul(quad, 2), from)
			code := func(k kernel.Value) kernel.Value {
				return b.Add(b.Mod(b.Add(b.Mul(i, i), b.Mul(k, 3)), 17), 110)
			}
			return b.Or(code(k), b.Shl(code(b.Add(k, 1)), 16))
		}
		integers := func(from int) kernel.Operand {
			k := b.Add(b.Mul(quad, 2), from)
			integer := func(k kernel.Value) kernel.Value {
				return b.Convert(kernel.F32, b.Add(b.Mod(b.Add(b.Mul(k, k), b.Mul(place, 5)), 13), 2030))
			}
			return b.PackHalf(b.Vec(integer(k), integer(b.Add(k, 1))))
		}
		ws := b.MatPairs(kernel.F16.Matrix(fragment.Side, fragment.Side, kernel.MatrixA), codes(0, 0), codes(0, 8), codes(8, 0), codes(8, 8))
		xs := b.MatPairs(kernel.F16.Matrix(fragment.Side, fragment.Columns, kernel.MatrixB), integers(0), integers(8))
		sums := kernel.F32.Matrix(fragment.Side, fragment.Columns, kernel.Accumulator)
		sum := b.Var(sums, b.MatFill(sums, 0))
		for range 4 {
			sum.Set(b.MatMulAdd(ws, xs, sum.Get()))
		}
		for i := range fragment.Sums {
			row := b.Add(place, i/2*8)
			y.Store(b.Add(b.Mul(row, fragment.Columns), b.Mul(quad, 2), i%2), sum.Elem(i))
		}
	})
}

// ProbeRead reads `vectors` vectors of 16 bytes at source, each once; vectors is a
// multiple of 1024 times the workgroups. It writes nothing if all words of the source are equal, as they must be,
// but only the device can find that out, so the loads stay.
func ProbeRead() (*kernel.Func, error) {
	return kernel.Build("probe_read", func(b *kernel.Builder) {
		source, sink := b.Arg("source", kernel.Read), b.Arg("sink", kernel.Write)
		vectors := b.SpecU32("vectors", 1<<20)
		b.Workgroup(probeLanes)

		const flight = 4 // loads of a lane that wait for nothing
		laneID := b.Add(b.Mul(b.WorkgroupID(0), probeLanes), b.LocalID())
		lanes := b.Mul(b.NumWorkgroups(0), probeLanes)
		fold := b.Var(lane.U32x4, 0)
		b.For(laneID, vectors, b.Mul(lanes, flight), func(i kernel.Value) {
			var loaded [flight]kernel.Value
			for j := range flight {
				loaded[j] = source.Load(lane.U32x4, b.Add(i, b.Mul(lanes, j)))
			}
			for _, v := range loaded {
				fold.Set(b.Xor(fold.Get(), v))
			}
		})
		v := fold.Get()
		// Words that are all the same cancel each other, element by element.
		odd := b.Ne(b.Or(b.Elem(v, 0), b.Elem(v, 1), b.Elem(v, 2), b.Elem(v, 3)), b.U32(0))
		b.If(odd, func() { sink.Store(laneID, b.Elem(v, 0)) })
	})
}
