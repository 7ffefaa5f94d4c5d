// Package kernel is the language that kernels are written in: typed, structured
// and SPMD (one program, many lanes). A kernel is a Go function over a Builder.
//
// Go values are compile-time: a Go for unrolls, a Go if selects code. Values are
// run-time, one for each lane, made by the methods of the Builder. In between are
// specialization constants: Values that are fixed when a pipeline is made, so
// that one module serves many call sites; arithmetic on them is done then, and
// they may size workgroups and shared arrays. All operations are methods of the
// Builder; an operand is a Value or a Go number, which takes the other operand's
// type.
//
// This kernel normalizes rows of k floats, one workgroup a row:
//
//	func RMSNorm(name string) (*kernel.Func, error) {
//		return kernel.Build(name, func(b *kernel.Builder) {
//			x := b.Arg("x", kernel.Read)       // rows x k floats
//			gain := b.Arg("gain", kernel.Read) // k floats
//			y := b.Arg("y", kernel.Write)      // rows x k floats
//			k := b.SpecU32("k", 4096)          // a multiple of 4
//			eps := b.SpecF32("eps", 1e-6)
//			size := b.SpecU32("workgroup", 256)
//			b.Workgroup(size)
//
//			v4 := kernel.F32.Vec(4)
//			n := b.Div(k, 4) // known at specialization time, as k is
//			row := b.Mul(b.WorkgroupID(0), n)
//			lane := b.LocalID()
//
//			sum := b.Var(kernel.F32, 0)
//			b.For(lane, n, size, func(i kernel.Value) {
//				v := x.Load(v4, b.Add(row, i)) // one access of 16 bytes
//				for e := range 4 {             // unrolls
//					s := b.Elem(v, e)
//					sum.Set(b.FMA(s, s, sum.Get()))
//				}
//			})
//			total := WorkgroupAdd(b, size, sum.Get())
//			scale := b.InverseSqrt(b.Add(b.Div(total, b.Convert(kernel.F32, k)), eps))
//			b.For(lane, n, size, func(i kernel.Value) {
//				at := b.Add(row, i)
//				v := b.Mul(x.Load(v4, at), b.Splat(scale, 4))
//				y.Store(at, b.Mul(v, gain.Load(v4, i)))
//			})
//		})
//	}
//
//	// WorkgroupAdd returns the sum of v over the workgroup, in all lanes.
//	func WorkgroupAdd(b *kernel.Builder, size, v kernel.Value) kernel.Value {
//		part := b.Shared(kernel.F32, size) // enough for subgroups of any size
//		v = b.SubgroupAdd(v)
//		b.If(b.SubgroupElect(), func() { part.Store(b.SubgroupID(), v) })
//		b.Barrier()
//		sum := b.Var(kernel.F32, 0)
//		b.For(0, b.NumSubgroups(), 1, func(i kernel.Value) {
//			sum.Set(b.Add(sum.Get(), part.Load(i)))
//		})
//		return sum.Get()
//	}
//
// A function called by kernels, such as WorkgroupAdd, adds its shared arrays to
// those of its caller. Build returns the first mistake as an error with the file
// and line of the call.
//
// The result, a Func, says what a call site provides (buffers, constants, device
// features, shared memory) and holds the kernel's own structured form; String
// prints it, and the packages below lower it. The names of spec constants and
// arguments are how call sites find them.
//
// A Table is an array of constants, for formats whose codes point into one: a workgroup copies it to
// shared memory before it does anything else.
//
// # Numerics
//
// Adds and multiplies of floats are never contracted: only FMA fuses, so the same
// expression gives the same bits in every module on one device. Nothing is
// reassociated.
package kernel
