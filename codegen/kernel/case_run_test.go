package kernel_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

const caseWave = 8 // of llvmpipe

func caseKernel(t *testing.T, build func(b *kernel.Builder)) *kernel.Func {
	t.Helper()
	f, err := kernel.Build("case", build)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// turned writes x from back to front within each workgroup, plus what a value from
// before the barrier and the workgroup's place say. It returns early for workgroups
// past the limit.
func turned(b *kernel.Builder) {
	x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
	size, limit := b.SpecU32("size", 16), b.SpecU32("limit", 100)
	b.Workgroup(size)
	s := b.Shared(kernel.U32, size)
	group := b.Add(b.WorkgroupID(0), b.Mul(b.WorkgroupID(1), b.NumWorkgroups(0)))
	at := b.Add(b.Mul(group, size), b.LocalID())
	own := x.Load(kernel.U32, at)
	b.ReturnIf(b.Ge(group, limit))
	s.Store(b.LocalID(), own)
	b.Barrier()
	other := s.Load(b.Sub(b.Sub(size, 1), b.LocalID()))
	y.Store(at, b.Add(b.Mul(own, 1000), other, b.Mul(b.SubgroupID(), 1000000)))
}

// counted adds up x of the workgroup in a loop with barriers inside.
func counted(b *kernel.Builder) {
	x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
	b.Workgroup(64)
	s := b.Shared(kernel.U32, 64)
	s.Store(b.LocalID(), x.Load(kernel.U32, b.Add(b.Mul(b.WorkgroupID(0), 64), b.LocalID())))
	half := b.Var(kernel.U32, 32)
	b.While(func() kernel.Value { return b.Gt(half.Get(), 0) }, func() {
		b.Barrier()
		b.If(b.Lt(b.LocalID(), half.Get()), func() {
			s.Store(b.LocalID(), b.Add(s.Load(b.LocalID()), s.Load(b.Add(b.LocalID(), half.Get()))))
		})
		half.Set(b.Shr(half.Get(), 1))
	})
	b.If(b.Eq(b.LocalID(), 0), func() { y.Store(b.WorkgroupID(0), s.Load(0)) })
}

// TestRunCase runs kernels inside another, on one and on three workgroups: some as
// several teams, one with lanes left over.
func TestRunCase(t *testing.T) {
	d := device(t)
	turn, count := caseKernel(t, turned), caseKernel(t, counted)
	spec := func(size, limit uint32) map[uint32]uint32 { return map[uint32]uint32{0: size, 1: limit} }
	both := []bool{true, false}
	cases := []kernel.Case{
		{Kernel: turn, Spec: spec(16, 5), Grid: [3]int{3, 2, 1}, Constant: both},
		{Kernel: turn, Spec: spec(24, 100), Grid: [3]int{1, 4, 1}, Constant: both},
		{Kernel: turn, Spec: spec(16, 100), Grid: [3]int{6, 1, 1}, Constant: both, Teams: 2},
		{Kernel: count, Grid: [3]int{2, 1, 1}, Constant: both},
	}
	x := make([]uint32, 128)
	for i := range x {
		x[i] = uint32(i*i%97 + 1)
	}
	for which, c := range cases {
		want := make([]uint32, len(x))
		size := 64
		if c.Kernel == turn {
			size = int(c.Spec[0])
		}
		for g := range c.Grid[0] * c.Grid[1] {
			for i := range size {
				at := g*size + i
				switch {
				case c.Kernel == count:
					want[g] += x[at]
				case g < int(c.Spec[1]):
					want[at] = x[at]*1000 + x[g*size+size-1-i] + uint32(i/caseWave)*1000000
				}
			}
		}
		for _, groups := range []uint32{1, 3} {
			y, block := make([]uint32, len(x)), make([]uint32, 4)
			outer := func(b *kernel.Builder) {
				where := b.Arg("block", kernel.Read)
				b.Arg("x", kernel.Read)
				b.Arg("y", kernel.Write)
				b.Workgroup(64)
				b.Cases(caseWave, cases)
				low, high := where.Load(kernel.U32, 4), where.Load(kernel.U32, 5)
				b.RunCase(b.U32(uint32(which)), low, high)
			}
			block = append(block, 0, 0)
			runAt(t, d, outer, nil, groups, func(at []uint64) {
				for i, a := range []uint64{at[1], at[2], at[0]} {
					block[2*i], block[2*i+1] = uint32(a), uint32(a>>32)
				}
			}, block, x, y)
			if !slices.Equal(y, want) {
				t.Errorf("case %d on %d workgroups:\n%d, want\n%d", which, groups, y, want)
			}
		}
	}
}

func TestCaseErrors(t *testing.T) {
	ends := func(b *kernel.Builder) {
		x := b.Arg("x", kernel.Read)
		b.Workgroup(16)
		b.If(b.Eq(b.LocalID(), 0), func() { b.ReturnIf(b.Eq(x.Load(kernel.U32, 0), 0)) })
	}
	for _, c := range []struct {
		name  string
		build func(b *kernel.Builder)
		spec  map[uint32]uint32
		args  int
		want  string
	}{
		{"too large", turned, map[uint32]uint32{0: 128}, 2, "workgroup of 128 in one of 64"},
		{"no whole subgroups", turned, map[uint32]uint32{0: 12}, 2, "workgroup of 12 in one of 64 with subgroups of 8"},
		{"arguments", turned, nil, 1, "2 arguments, 1 are described"},
		{"end inside", ends, nil, 1, "ends inside of a loop or if"},
		{"barrier inside", func(b *kernel.Builder) {
			b.Arg("x", kernel.Read)
			b.Workgroup(16)
			b.For(0, 2, 1, func(kernel.Value) { b.Barrier() })
		}, nil, 1, "a barrier inside of a loop or if"},
	} {
		inner := caseKernel(t, c.build)
		_, err := kernel.Build("outer", func(b *kernel.Builder) {
			b.Arg("x", kernel.Read)
			b.Workgroup(64)
			b.Cases(caseWave, []kernel.Case{{Kernel: inner, Spec: c.spec, Grid: [3]int{1, 1, 1}, Constant: make([]bool, c.args)}})
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
