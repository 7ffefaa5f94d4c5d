package kernel_test

import (
	"encoding/binary"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// TestRunFindsRaces: each body as it is, and without each entry of Barriers that it needs.
func TestRunFindsRaces(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *kernel.Builder, x, y *kernel.Buffer, s *kernel.Array)
		race  string         // of the whole body; empty for none
		drop  map[int]string // races of the body without an entry of Barriers
	}{
		{"a neighbour's word", func(b *kernel.Builder, _, y *kernel.Buffer, s *kernel.Array) {
			s.Store(b.LocalID(), b.LocalID())
			b.Barrier()
			y.Store(group(b), s.Load(b.Xor(b.LocalID(), 1)))
		}, "", map[int]string{0: "word 1 of shared array 0: lane 1 (shared_store at kernel/race_test.go:L < kernel/race_test.go:L) and lane 0 (shared_load at kernel/race_test.go:L"}},
		{"an own word", func(b *kernel.Builder, _, y *kernel.Buffer, s *kernel.Array) {
			s.Store(b.LocalID(), b.LocalID())
			y.Store(group(b), s.Load(b.LocalID()))
		}, "", nil},
		{"the next round of a loop", func(b *kernel.Builder, _, y *kernel.Buffer, s *kernel.Array) {
			b.For(0, 2, 1, func(i kernel.Value) {
				s.Store(b.LocalID(), i)
				b.Barrier()
				y.Store(group(b), s.Load(b.Xor(b.LocalID(), 1)))
				b.Barrier()
			})
		}, "", map[int]string{0: "shared_store", 1: "(shared_load"}},
		{"one word for all", func(b *kernel.Builder, _, y *kernel.Buffer, s *kernel.Array) { s.Store(0, b.U32(1)) }, "word 0 of shared array 0: lane 0 (shared_store", nil},
		{"a word of the subgroup", func(b *kernel.Builder, _, y *kernel.Buffer, s *kernel.Array) {
			s.Store(b.LocalID(), b.LocalID())
			b.SubgroupBarrier()
			y.Store(group(b), s.Load(b.Xor(b.LocalID(), 3)))
		}, "", map[int]string{0: "shared_load"}},
		{"a word of another subgroup", func(b *kernel.Builder, _, y *kernel.Buffer, s *kernel.Array) {
			s.Store(b.LocalID(), b.LocalID())
			b.SubgroupBarrier()
			y.Store(group(b), s.Load(b.Xor(b.LocalID(), 4)))
		}, "lane 4 (shared_store", map[int]string{0: "lane 4 (shared_store"}},
		{"a word that two subgroups have read", func(b *kernel.Builder, _, y *kernel.Buffer, s *kernel.Array) {
			y.Store(group(b), s.Load(0))
			b.SubgroupBarrier()
			b.If(b.Eq(b.LocalID(), 4), func() { s.Store(0, b.U32(1)) })
		}, "lane 3 (shared_load", map[int]string{0: "(shared_load"}},
		{"a buffer after a barrier of shared memory", func(b *kernel.Builder, _, y *kernel.Buffer, s *kernel.Array) {
			y.Store(group(b), b.U32(1))
			b.Barrier()
			y.Store(b.Xor(group(b), 1), y.Load(kernel.U32, b.Xor(group(b), 1)))
		}, `argument "y": lane`, map[int]string{0: `argument "y": lane`}},
		{"a buffer after a barrier of buffers", func(b *kernel.Builder, _, y *kernel.Buffer, s *kernel.Array) {
			y.Store(group(b), b.U32(1))
			b.BarrierBuffers()
			y.Store(b.Xor(group(b), 1), y.Load(kernel.U32, b.Xor(group(b), 1)))
		}, "", map[int]string{0: "(store"}},
		{"a word of another workgroup", func(b *kernel.Builder, _, y *kernel.Buffer, s *kernel.Array) {
			b.If(b.Eq(b.LocalID(), 0), func() { y.Store(b.WorkgroupID(0), y.Load(kernel.U32, 0)) })
		}, "workgroup 0, lane 0 (store", nil},
		{"a word that another workgroup has read", func(b *kernel.Builder, _, y *kernel.Buffer, s *kernel.Array) {
			b.If(b.Eq(b.LocalID(), 0), func() { y.Store(b.Add(b.WorkgroupID(0), 1), y.Load(kernel.U32, b.Add(b.WorkgroupID(0), 2))) })
		}, "workgroup 0, lane 0 (load", nil},
		{"what an argument declared read reads", func(b *kernel.Builder, x, y *kernel.Buffer, s *kernel.Array) {
			b.If(b.Eq(group(b), 0), func() { y.Store(32, x.Load(kernel.U32, 32)) })
		}, "word 32 of argument \"y\": lane 0 (load", nil},
		{"a counter read as it is", func(b *kernel.Builder, x, y *kernel.Buffer, s *kernel.Array) {
			y.AtomicAdd(0, 1)
			y.Load(kernel.U32, 0)
		}, "(atomic_add", nil},
		{"atomics only", func(b *kernel.Builder, x, y *kernel.Buffer, s *kernel.Array) {
			y.AtomicAdd(0, 1)
			y.AtomicAdd(0, b.LocalID())
			s.AtomicAdd(0, 1)
		}, "", nil},
		{"the last workgroup", func(b *kernel.Builder, x, y *kernel.Buffer, s *kernel.Array) {
			y.Store(b.Add(group(b), 8), b.U32(3))
			b.BarrierBuffers()
			b.If(b.Eq(b.LocalID(), 1), func() {
				b.Fence()
				now := y.AtomicAdd(0, 1)
				b.Fence()
				s.Store(0, now)
			})
			b.BarrierBuffers()
			b.If(b.Eq(s.Load(0), 1), func() {
				sum := b.Var(kernel.U32, 0)
				b.For(8, 24, 1, func(i kernel.Value) { sum.Set(b.Add(sum.Get(), y.Load(kernel.U32, i))) })
				b.If(b.Eq(b.LocalID(), 0), func() { y.Store(1, sum.Get()) })
			})
		}, "", map[int]string{0: "(store", 1: "(store", 2: "(store", 3: "shared_store"}},
	} {
		f := racing(t, c.build)
		if got := runRacing(f); !matches(got, c.race) {
			t.Errorf("%s: %v, want %q", c.name, got, c.race)
		}
		for i := range f.Barriers() {
			if got := runRacing(f.Without(i)); !matches(got, c.drop[i]) {
				t.Errorf("%s without %s: %v, want %q", c.name, f.Barriers()[i], got, c.drop[i])
			}
		}
	}
}

// group is the lane's index among those of all workgroups.
func group(b *kernel.Builder) kernel.Value {
	return b.Add(b.Mul(b.WorkgroupID(0), 8), b.LocalID())
}

func racing(t *testing.T, build func(b *kernel.Builder, x, y *kernel.Buffer, s *kernel.Array)) *kernel.Func {
	t.Helper()
	f, err := kernel.Build("test", func(b *kernel.Builder) {
		b.Workgroup(8)
		build(b, b.Arg("x", kernel.Read), b.Arg("y", kernel.ReadWrite), b.Shared(kernel.U32, 8))
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// runRacing runs two workgroups, of subgroups of 4; x and y are one buffer.
func runRacing(f *kernel.Func) error {
	y := make([]byte, 4*64)
	return f.Run(nil, 4, [3]int{2, 1, 1}, [][]byte{y, y})
}

var lineNumber = regexp.MustCompile(`race_test\.go:\d+`)

func matches(err error, want string) bool {
	if err == nil || want == "" {
		return err == nil && want == ""
	}
	return strings.Contains(err.Error(), "race on ") && strings.Contains(lineNumber.ReplaceAllString(err.Error(), "race_test.go:L"), want)
}

// TestRunMatrices multiplies matrices in subgroups of several sizes, of which each has a column
// of tiles, and finds what nothing orders.
func TestRunMatrices(t *testing.T) {
	const side, depth = 16, 8
	f, err := kernel.Build("test", func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(64)
		p, sums := b.Shared(kernel.U32, side*depth/2), b.Shared(kernel.F32, side*side*8)
		p.Store(b.LocalID(), x.Load(kernel.U32, b.LocalID()))
		b.Barrier()
		acc := kernel.F32.Matrix(side, side, kernel.Accumulator)
		sum := b.Var(acc, b.MatFill(acc, 1.5))
		b.For(0, 2, 1, func(kernel.Value) {
			sum.Set(b.MatMulAdd(p.LoadMatrix(kernel.F16.Matrix(side, depth, kernel.MatrixA), 0, depth/2, kernel.RowMajor),
				p.LoadMatrix(kernel.F16.Matrix(depth, side, kernel.MatrixB), 0, depth/2, kernel.ColumnMajor), sum.Get()))
		})
		b.ForUnroll(0, b.MatLength(acc), 1, func(i kernel.Value) { sum.SetElem(i, b.Mul(sum.Elem(i), 2)) })
		at := b.Mul(b.SubgroupID(), side*side)
		sums.StoreMatrix(at, side, kernel.ColumnMajor, b.MatConvert(kernel.F32, b.MatConvert(kernel.F16, sum.Get())))
		b.SubgroupBarrier()
		b.If(b.Eq(b.SubgroupID(), 0), func() {
			b.For(b.LocalID(), side*side, b.Div(64, b.NumSubgroups()), func(i kernel.Value) { y.Store(i, sums.Load(b.Add(at, i))) })
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	x, want := make([]byte, 2*side*depth), make([]float32, side*side)
	for i := range side * depth {
		binary.LittleEndian.PutUint16(x[2*i:], gguf.F32ToF16(float32(i%7)-2))
	}
	for i := range want {
		want[i] = 1.5
		for k := range depth {
			want[i] += 2 * float32((i/side*depth+k)%7-2) * float32((i%side*depth+k)%7-2)
		}
		want[i] *= 2
	}
	for _, wave := range []int{8, 16, 32, 64} {
		y := make([]byte, 4*side*side)
		if err := f.Run(nil, wave, [3]int{1, 1, 1}, [][]byte{x, y}); err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			if got := math.Float32frombits(binary.LittleEndian.Uint32(y[4*i:])); got != w {
				t.Fatalf("subgroups of %d: element %d is %g, want %g", wave, i, got, w)
			}
		}
		for i, name := range f.Barriers() {
			if err := f.Without(i).Run(nil, wave, [3]int{1, 1, 1}, [][]byte{x, y}); !matches(err, "subgroup 0 (mat_") && !matches(err, "(mat_load") {
				t.Errorf("subgroups of %d, without %s: %v", wave, name, err)
			}
		}
	}
}
