package kernel_test

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

// RMSNorm is the kernel of the package documentation.
func RMSNorm(name string) (*kernel.Func, error) { return kernel.Build(name, rmsNorm) }

func rmsNorm(b *kernel.Builder) {
	x := b.Arg("x", kernel.Read)       // rows x k floats
	gain := b.Arg("gain", kernel.Read) // k floats
	y := b.Arg("y", kernel.Write)      // rows x k floats
	k := b.SpecU32("k", 4096)          // a multiple of 4
	eps := b.SpecF32("eps", 1e-6)
	size := b.SpecU32("workgroup", 256)
	b.Workgroup(size)

	v4 := kernel.F32.Vec(4)
	n := b.Div(k, 4) // known at specialization time, as k is
	row := b.Mul(b.WorkgroupID(0), n)
	lane := b.LocalID()

	sum := b.Var(kernel.F32, 0)
	b.For(lane, n, size, func(i kernel.Value) {
		v := x.Load(v4, b.Add(row, i)) // one access of 16 bytes
		for e := range 4 {             // unrolls
			s := b.Elem(v, e)
			sum.Set(b.FMA(s, s, sum.Get()))
		}
	})
	total := WorkgroupAdd(b, size, sum.Get())
	scale := b.InverseSqrt(b.Add(b.Div(total, b.Convert(kernel.F32, k)), eps))
	b.For(lane, n, size, func(i kernel.Value) {
		at := b.Add(row, i)
		v := b.Mul(x.Load(v4, at), b.Splat(scale, 4))
		y.Store(at, b.Mul(v, gain.Load(v4, i)))
	})
}

// WorkgroupAdd returns the sum of v over the workgroup, in all lanes.
func WorkgroupAdd(b *kernel.Builder, size, v kernel.Value) kernel.Value {
	part := b.Shared(kernel.F32, size) // enough for subgroups of any size
	v = b.SubgroupAdd(v)
	b.If(b.SubgroupElect(), func() { part.Store(b.SubgroupID(), v) })
	b.Barrier()
	sum := b.Var(kernel.F32, 0)
	b.For(0, b.NumSubgroups(), 1, func(i kernel.Value) {
		sum.Set(b.Add(sum.Get(), part.Load(i)))
	})
	return sum.Get()
}

func ExampleBuild() {
	f, err := RMSNorm("rms_norm")
	if err != nil {
		fmt.Println(err)
		return
	}
	shared, _ := f.SharedBytes(map[uint32]uint32{2: 64})
	fmt.Println(f.Args, shared)
	// Output: [{x read} {gain read} {y write}] 256
}
