package kernels

import "github.com/zincc-dev/zincc/codegen/kernel"

//go:generate go run ./probegen ../../runtime/vulkan/zprobe.go

// The kernels that a runtime measures devices with, and proves one thing. It has them as
// words, since it does not import this package.

// probeLanes is the workgroup of those that measure.
const probeLanes = 256

// ProbeEmpty does nothing: what is left is the cost of a dispatch.
func ProbeEmpty() (*kernel.Func, error) {
	return kernel.Build("probe_empty", func(b *kernel.Builder) {
		b.Arg("unused", kernel.Read) // no kernel is without
		b.Workgroup(probeLanes)
	})
}

// ProbeDeal multiplies two matrices that lanes make of what they hold by mma.m16n8k16 of
// PTX, and two of bytes by mma.m16n8k32, and writes the products, of which lanes hold what that
// says, too: y has 16 rows of 8, twice. Element (i, k) of a first factor is (i*i + 3*k) mod 17 - 8, (k, j) of
// a second (k*k + 5*j) mod 13 - 6.
func ProbeDeal() (*kernel.Func, error) {
	return kernel.Build("probe_deal", func(b *kernel.Builder) {
		y := b.Arg("y", kernel.Write)
		b.Workgroup(dealtLanes)
		place, quad := b.Shr(b.SubgroupLane(), 2), b.And(b.SubgroupLane(), 3)
		first := func(i kernel.Value) func(k kernel.Value) kernel.Value {
			return func(k kernel.Value) kernel.Value { return b.Sub(b.Mod(b.Add(b.Mul(i, i), b.Mul(k, 3)), 17), 8) }
		}
		second := func(k kernel.Value) kernel.Value { return b.Sub(b.Mod(b.Add(b.Mul(k, k), b.Mul(place, 5)), 13), 6) }
		for n, t := range []struct {
			elem, sum kernel.Type
			zero      kernel.Operand
			depth     int
			word      func(element func(i int) kernel.Value) kernel.Value // of depth/8 elements
		}{
			{kernel.F16, kernel.F32, 0.0, dealtSide, func(element func(i int) kernel.Value) kernel.Value {
				of := func(i int) kernel.Value { return b.Convert(kernel.F32, b.Bitcast(kernel.I32, element(i))) }
				return b.PackHalf(b.Vec(of(0), of(1)))
			}},
			{kernel.I8, kernel.I32, 0, 2 * dealtSide, func(element func(i int) kernel.Value) kernel.Value {
				w := b.U32(0)
				for i := range 4 {
					w = b.Or(w, b.Shl(b.And(element(i), 0xff), 8*i))
				}
				return w
			}},
		} {
			word := func(element func(k kernel.Value) kernel.Value, half int) kernel.Operand {
				from := b.Add(b.Mul(quad, t.depth/8), half*t.depth/2)
				return t.word(func(i int) kernel.Value { return element(b.Add(from, i)) })
			}
			upper, lower := first(place), first(b.Add(place, dealtSide/2))
			ws := b.MatWords(t.elem.Matrix(dealtSide, t.depth, kernel.MatrixA), word(upper, 0), word(upper, 1), word(lower, 0), word(lower, 1))
			xs := b.MatWords(t.elem.Matrix(t.depth, dealtRows, kernel.MatrixB), word(second, 0), word(second, 1))
			sums := t.sum.Matrix(dealtSide, dealtRows, kernel.Accumulator)
			sum := b.Var(sums, b.MatMulAdd(ws, xs, b.MatFill(sums, t.zero)))
			for i := range dealtSums {
				row := b.Add(place, n*dealtSide+i/2*8)
				y.Store(b.Add(b.Mul(row, dealtRows), b.Mul(quad, 2), i%2), sum.Elem(i))
			}
		}
	})
}

// ProbeRead reads `vectors` vectors of 16 bytes at source, each once; vectors is a
// multiple of 1024 times the workgroups. It writes nothing, which the source must
// be such that only the device can find out: no two of its words may differ.
func ProbeRead() (*kernel.Func, error) {
	return kernel.Build("probe_read", func(b *kernel.Builder) {
		source, sink := b.Arg("source", kernel.Read), b.Arg("sink", kernel.Write)
		vectors := b.SpecU32("vectors", 1<<20)
		b.Workgroup(probeLanes)

		const flight = 4 // loads of a lane that wait for nothing
		lane := b.Add(b.Mul(b.WorkgroupID(0), probeLanes), b.LocalID())
		lanes := b.Mul(b.NumWorkgroups(0), probeLanes)
		fold := b.Var(u32x4, 0)
		b.For(lane, vectors, b.Mul(lanes, flight), func(i kernel.Value) {
			var loaded [flight]kernel.Value
			for j := range flight {
				loaded[j] = source.Load(u32x4, b.Add(i, b.Mul(lanes, j)))
			}
			for _, v := range loaded {
				fold.Set(b.Xor(fold.Get(), v))
			}
		})
		v := fold.Get()
		// Words that are all the same cancel each other, element by element.
		odd := b.Ne(b.Or(b.Elem(v, 0), b.Elem(v, 1), b.Elem(v, 2), b.Elem(v, 3)), b.U32(0))
		b.If(odd, func() { sink.Store(lane, b.Elem(v, 0)) })
	})
}
