//go:build !windows

package llvm

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/zincc-dev/zincc/codegen/kernel"
)

// machines are those that this processor is, at least one.
func machines(t *testing.T) []*Machine {
	t.Helper()
	var list []*Machine
	for _, m := range Machines {
		if m.Here() {
			list = append(list, m)
		}
	}
	if len(list) == 0 {
		t.Fatal("this processor is none of the machines that there is code for")
	}
	return list
}

// native compiles a kernel and loads it.
func native(t *testing.T, f *kernel.Func, spec map[uint32]uint32, m *Machine) func(spec map[uint32]uint32, grid [3]int, args [][]byte) {
	t.Helper()
	run := nativePart(t, f, spec, m)
	return func(spec map[uint32]uint32, grid [3]int, args [][]byte) {
		run(spec, grid, 0, grid[0]*grid[1]*grid[2], args)
	}
}

// nativePart is native for workgroups [first, end) of the grid.
func nativePart(t *testing.T, f *kernel.Func, spec map[uint32]uint32, m *Machine) func(spec map[uint32]uint32, grid [3]int, first, end int, args [][]byte) {
	t.Helper()
	text, err := Lower(f, spec, m)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	object, err := m.Compile(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "k.o"), object, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-shared", "-nostdlib", "-o", filepath.Join(dir, "k.so"), filepath.Join(dir, "k.o")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	fn := load(t, filepath.Join(dir, "k.so"))
	return func(spec map[uint32]uint32, grid [3]int, first, end int, args [][]byte) {
		t.Helper()
		consts := make([]uint32, len(f.Spec)+1)
		for i, s := range f.Spec {
			consts[i] = s.Default
			if v, ok := spec[s.ID]; ok {
				consts[i] = v
			}
		}
		addresses := make([]unsafe.Pointer, len(args)+1)
		for i, a := range args {
			addresses[i] = unsafe.Pointer(unsafe.SliceData(a))
		}
		bytes, err := f.SharedBytes(spec)
		if err != nil {
			t.Fatal(err)
		}
		at := guarded(t, int(bytes))
		dims := [3]uint32{uint32(grid[0]), uint32(grid[1]), uint32(grid[2])}
		purego.SyscallN(fn, uintptr(unsafe.Pointer(&addresses[0])), uintptr(unsafe.Pointer(&consts[0])), uintptr(unsafe.Pointer(&dims)),
			uintptr(first), uintptr(end), uintptr(at))
	}
}

// guarded returns memory for shared arrays of so many bytes, filled and aligned as kernels may count on, behind which a
// page faults.
func guarded(t *testing.T, bytes int) unsafe.Pointer {
	t.Helper()
	page := os.Getpagesize()
	size := (bytes + page - 1) / page * page
	m, err := syscall.Mmap(-1, 0, size+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err == nil {
		err = syscall.Mprotect(m[size:], syscall.PROT_NONE)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(m) })
	for i := range m[:size] {
		m[i] = 0xff
	}
	return unsafe.Pointer(&m[size-(bytes+63)&^63])
}

// agree runs a kernel on this processor and through the interpreter and compares all buffers; with rel,
// words may be close floats.
func agree(t *testing.T, f *kernel.Func, spec map[uint32]uint32, grid [3]int, args [][]byte, rel float64) {
	t.Helper()
	before := func() [][]byte {
		var list [][]byte
		for _, a := range args {
			list = append(list, append([]byte(nil), a...))
		}
		return list
	}
	want := before()
	if err := f.Run(spec, Lanes, grid, want); err != nil {
		t.Fatal(err)
	}
	for _, m := range machines(t) {
		if f.Tiles && !m.Tiles {
			continue
		}
		for _, fixed := range variants(f, spec) {
			got := before()
			native(t, f, fixed, m)(spec, grid, got)
			for i := range want {
				for at := 0; at+4 <= len(want[i]); at += 4 {
					x, y := binary.LittleEndian.Uint32(got[i][at:]), binary.LittleEndian.Uint32(want[i][at:])
					if x != y && !near(x, y, rel) {
						t.Fatalf("%s: argument %s, word %d: %#x (%g), want %#x (%g)", m.Name, f.Args[i].Name, at/4,
							x, math.Float32frombits(x), y, math.Float32frombits(y))
					}
				}
			}
		}
	}
}

// variants are as few constants fixed as may be, and all.
func variants(f *kernel.Func, spec map[uint32]uint32) []map[uint32]uint32 {
	if len(spec) == 0 {
		return []map[uint32]uint32{nil}
	}
	return []map[uint32]uint32{Fixed(f, spec), spec}
}

func near(x, y uint32, rel float64) bool {
	a, b := float64(math.Float32frombits(x)), float64(math.Float32frombits(y))
	if math.IsNaN(a) && math.IsNaN(b) {
		return true
	}
	return math.Abs(a-b) <= rel*max(math.Abs(a), math.Abs(b), 2e-38) // of denormals, an absolute error
}

func words(r *rand.Rand, n int, f func() uint32) []byte {
	b := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(b[4*i:], f())
	}
	return b
}

func floats(r *rand.Rand, n int) []byte {
	return words(r, n, func() uint32 { return math.Float32bits(float32(r.NormFloat64())) })
}

func build(t *testing.T, body func(b *kernel.Builder)) *kernel.Func {
	t.Helper()
	f, err := kernel.Build(t.Name(), body)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFirst(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	f := build(t, func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		n := b.SpecU32("n", 100)
		b.Workgroup(16)
		sum := b.Var(kernel.F32, 0)
		b.For(b.LocalID(), n, 16, func(i kernel.Value) {
			v := x.Load(kernel.F32, i)
			sum.Set(b.FMA(v, v, sum.Get()))
		})
		total := b.SubgroupAdd(sum.Get())
		b.For(b.LocalID(), n, 16, func(i kernel.Value) {
			y.Store(i, b.Mul(x.Load(kernel.F32, i), b.InverseSqrt(total)))
		})
	})
	agree(t, f, map[uint32]uint32{0: 100}, [3]int{1, 1, 1}, [][]byte{floats(r, 100), make([]byte, 400)}, 1e-6)
}
