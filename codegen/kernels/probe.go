package kernels

import "github.com/zincc-dev/zincc/codegen/kernel"

//go:generate go run ./probegen ../../runtime/vulkan/zprobe.go

// The kernels that a runtime measures devices with. It has them as words, since
// it does not import this package.

// probeLanes is the workgroup of both.
const probeLanes = 256

// ProbeEmpty does nothing: what is left is the cost of a dispatch.
func ProbeEmpty() (*kernel.Func, error) {
	return kernel.Build("probe_empty", func(b *kernel.Builder) {
		b.Arg("unused", kernel.Read) // no kernel is without
		b.Workgroup(probeLanes)
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
