package kernel_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernel/ptx"
)

// assemble holds that NVIDIA's assembler takes a module. Debian's package of it knows
// architectures up to sm_90a.
func assemble(t *testing.T, arch, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "module.ptx")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ptxas", "-arch="+arch, "-o", os.DevNull, path).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s%s", arch, err, out, text)
	}
}

// TestPTX compares modules with testdata and has them assembled, for the oldest architecture,
// the newest that the assembler knows, and one between.
func TestPTX(t *testing.T) {
	cases := append(allCases(), kernelCase{"matrices", true, matrices}, kernelCase{"pairs", true, pairs})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, err := kernel.Build(c.name, c.build)
			if err != nil {
				t.Fatal(err)
			}
			for _, arch := range []int{75, 80, 90} {
				text, err := ptx.Lower(f, ptx.Options{Arch: arch})
				if err != nil {
					t.Fatal(err)
				}
				assemble(t, fmt.Sprint("sm_", arch), text)
				if again, _ := ptx.Lower(f, ptx.Options{Arch: arch}); again != text {
					t.Error("the same kernel gave another text")
				}
				if arch == 90 && c.golden {
					golden(t, filepath.Join("ptx", c.name), f, "ptx", text)
				}
			}
		})
	}
}

// TestOverlap checks where kernels wait for the one before: behind the loads of constants, before
// anything else is touched, on all paths.
func TestOverlap(t *testing.T) {
	constant := func(arg int) bool { return arg < 2 }
	for _, c := range []struct {
		name string
		body func(b *kernel.Builder, w, v, x, y *kernel.Buffer)
		want string // early loads, loads through the read-only cache, loads and stores of others, and waits, in order
		// first is want if the kernel waits first of all: without a branch behind the wait only constants take the
		// read-only cache.
		first string
	}{
		{"early", func(b *kernel.Builder, w, v, x, y *kernel.Buffer) {
			a := w.Load(kernel.U32, b.LocalID())
			y.Store(b.LocalID(), b.Add(a, x.Load(kernel.U32, b.LocalID()), v.Load(kernel.U32, 1)))
		}, "e wait l c s", "wait c l c s"},
		{"asks", func(b *kernel.Builder, w, v, x, y *kernel.Buffer) { // for what the one before may write: it changes no value
			x.Prefetch(b.LocalID())
			y.Store(b.LocalID(), w.Load(kernel.U32, b.LocalID()))
		}, "p e wait s", "wait p c s"},
		{"nothing", func(b *kernel.Builder, w, v, x, y *kernel.Buffer) { w.Load(kernel.U32, 0) }, "e wait", "wait c"},
		{"among", func(b *kernel.Builder, w, v, x, y *kernel.Buffer) {
			a := b.Among([]*kernel.Buffer{w, v}, b.WorkgroupID(0)).Load(kernel.U32, 0)
			y.Store(0, b.Add(a, b.Among([]*kernel.Buffer{v, x}, b.WorkgroupID(0)).Load(kernel.U32, 0)))
		}, "e wait l s", "wait c l s"},
		{"branches", func(b *kernel.Builder, w, v, x, y *kernel.Buffer) {
			b.IfElse(b.Eq(b.WorkgroupID(0), 0), func() { y.Store(0, w.Load(kernel.U32, 0)) }, func() { y.Store(0, v.Load(kernel.U32, 0)) })
			y.Store(1, x.Load(kernel.U32, 0))
		}, "e wait s e wait s l s", "wait c s c s c s"},
		{"one branch", func(b *kernel.Builder, w, v, x, y *kernel.Buffer) {
			b.If(b.Eq(b.WorkgroupID(0), 0), func() { y.Store(0, w.Load(kernel.U32, 0)) })
		}, "e wait s wait", "wait c s"},
		{"loop", func(b *kernel.Builder, w, v, x, y *kernel.Buffer) {
			n := w.Load(kernel.U32, 0)
			b.For(0, n, 1, func(i kernel.Value) {
				b.If(b.Eq(i, 3), func() { y.Store(i, v.Load(kernel.U32, i)) })
			})
		}, "e wait c s", "wait c c s"},
		{"return", func(b *kernel.Builder, w, v, x, y *kernel.Buffer) {
			b.ReturnIf(b.Eq(w.Load(kernel.U32, 0), 7))
			y.Store(0, v.Load(kernel.U32, 0))
		}, "e wait b c s", "wait c c s"}, // loads before it are asked for before it is known who returns
		{"return of some", func(b *kernel.Builder, w, v, x, y *kernel.Buffer) {
			b.ReturnIf(b.Eq(b.LocalID(), 7))
			b.ReturnIf(b.Eq(w.Load(kernel.U32, 0), 7))
			y.Store(0, v.Load(kernel.U32, 0))
		}, "wait c c s", "wait c c s"},
		{"subgroups", func(b *kernel.Builder, w, v, x, y *kernel.Buffer) { y.Store(0, w.Load(kernel.U32, b.SubgroupID())) }, "i e wait s", "wait c s"},
	} {
		f, err := kernel.Build(c.name, func(b *kernel.Builder) {
			w, v := b.Arg("w", kernel.Read), b.Arg("v", kernel.Read)
			x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
			b.Workgroup(64)
			c.body(b, w, v, x, y)
		})
		if err != nil {
			t.Fatal(err)
		}
		text, err := ptx.Lower(f, ptx.Options{Arch: 90, Constant: constant, Overlap: true, Common: true})
		if err != nil {
			t.Fatal(err)
		}
		assemble(t, "sm_90", text)
		if got := accesses(text); got != c.want {
			t.Errorf("%s: %s, want %s\n%s", c.name, got, c.want, text)
		}
		if strings.Count(text, "griddepcontrol.launch_dependents") != 1 {
			t.Errorf("%s does not let the next begin", c.name)
		}
		alone, _ := ptx.Lower(f, ptx.Options{Arch: 90, Constant: constant})
		if strings.Contains(alone, "griddepcontrol") {
			t.Errorf("%s waits where nothing overlaps", c.name)
		}
		first, _ := ptx.Lower(f, ptx.Options{Arch: 90, Constant: constant, Overlap: true, WaitFirst: true})
		if got := accesses(first); got != c.first {
			t.Errorf("%s, waiting first: %s, want %s\n%s", c.name, got, c.first, first)
		}
		rest := strings.Replace(first, "\tgriddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;\n", "", 1)
		if cached := strings.NewReplacer("global.nc", "global"); rest == first || cached.Replace(rest) != cached.Replace(alone) {
			t.Errorf("%s, waiting first, differs from what it is alone by more than the wait and caches:\n%s", c.name, first)
		}
	}
}

// TestEarlyLoads: a kernel loads what the dispatch before does not write before it waits, from the L2 cache, who
// returns before has waited, and one with LateTrigger lets the next begin behind its own wait.
func TestEarlyLoads(t *testing.T) {
	for _, c := range []struct {
		name string
		body func(b *kernel.Builder, w, s, x, y *kernel.Buffer)
		want string // r is a load that is early
	}{
		{"loads", func(b *kernel.Builder, w, s, x, y *kernel.Buffer) {
			i := s.Load(kernel.U32, 0)
			y.Store(i, b.Add(w.Load(kernel.U32, i), x.Load(kernel.U32, i)))
		}, "r e wait l s"},
		{"behind the wait", func(b *kernel.Builder, w, s, x, y *kernel.Buffer) {
			y.Store(0, b.Add(x.Load(kernel.U32, 0), s.Load(kernel.U32, 0)))
		}, "wait l l s"},
		{"stores", func(b *kernel.Builder, w, s, x, y *kernel.Buffer) {
			s.Store(0, b.Add(s.Load(kernel.U32, 0), 1))
		}, "r wait s"},
		{"returns", func(b *kernel.Builder, w, s, x, y *kernel.Buffer) {
			b.ReturnIf(b.Eq(s.Load(kernel.U32, 0), 7))
			y.Store(0, s.Load(kernel.U32, b.LocalID()))
		}, "r b wait r wait s"},
		{"awaits", func(b *kernel.Builder, w, s, x, y *kernel.Buffer) {
			v := b.Var(kernel.U32, 0)
			b.Await()
			b.If(b.Eq(b.SubgroupID(), 0), func() { v.Set(x.Load(kernel.U32, b.LocalID())) })
			y.Store(b.LocalID(), v.Get())
		}, "i wait l s"},
	} {
		f, err := kernel.Build(c.name, func(b *kernel.Builder) {
			w, s := b.Arg("w", kernel.Read), b.Arg("s", kernel.ReadWrite)
			x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
			b.Workgroup(64)
			c.body(b, w, s, x, y)
		})
		if err != nil {
			t.Fatal(err)
		}
		o := ptx.Options{Arch: 90, Overlap: true, Common: true, LateTrigger: true, Constant: func(arg int) bool { return arg == 0 }, EarlyLoads: func(arg int) bool { return arg == 1 }}
		text, err := ptx.Lower(f, o)
		if err != nil {
			t.Fatal(err)
		}
		assemble(t, "sm_90", text)
		if got := accesses(text); got != c.want {
			t.Errorf("%s: %s, want %s\n%s", c.name, got, c.want, text)
		}
		o.Ahead, o.Grid = []ptx.Ahead{{Arg: 0, Parts: 1, Lines: 4, Stride: 512}}, 1
		if asks, _ := ptx.Lower(f, o); strings.Count(asks, "prefetch.global.L2") != strings.Count(text, "griddepcontrol.wait") {
			t.Errorf("%s does not ask ahead before each wait:\n%s", c.name, asks)
		}
		o.Ahead[0].After = true
		if _, err := ptx.Lower(f, o); err == nil || !strings.Contains(err.Error(), "does not say where they end") {
			t.Errorf("%s: no weights end, and it prefetches behind them: %v", c.name, err)
		}
		waits, behind := strings.Count(text, "griddepcontrol.wait"), strings.Count(text, "griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;")
		if waits != behind || strings.Count(text, "launch_dependents") != waits {
			t.Errorf("%s lets the next begin elsewhere than behind its waits:\n%s", c.name, text)
		}
	}
}

// accesses lists, in order, waits and what touches memory.
func accesses(text string) string {
	var have []string
	for _, line := range strings.Split(text, "\n") {
		for _, k := range []struct{ in, out string }{
			{"griddepcontrol.wait", "wait"}, {"prefetch.global", "p"}, {"ld.weak.global", "e"}, {"ld.relaxed.gpu.global", "r"}, {"ld.global.nc", "c"}, {"ld.global.b32", "l"}, {"st.global", "s"},
			{"bar.warp.sync", "b"}, {"shfl.sync.idx", "i"},
		} {
			if strings.Contains(line, k.in) {
				have = append(have, k.out)
			}
		}
	}
	return strings.Join(have, " ")
}

// TestBytesOf checks what becomes a permutation of bytes, and that numbers in the index of a shared array are in the
// address.
func TestBytesOf(t *testing.T) {
	f, err := kernel.Build("bytes", func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(32)
		shared := b.Shared(kernel.U32, 64)
		v := x.Load(kernel.U32, b.LocalID())
		signed := b.Bitcast(kernel.I32, v)
		for i, n := range []kernel.Value{
			b.And(b.Shr(v, 8), 0x00ff00ff), b.And(b.Shr(v, 16), 0xff), b.And(b.Shr(v, 4), 0x00ff00ff), b.And(b.Shr(v, 8), 0x00f0000f),
			b.Bitcast(kernel.U32, b.BitExtract(signed, 16, 8)), b.Bitcast(kernel.U32, b.BitExtract(signed, 4, 8)), b.BitExtract(v, 8, 8),
		} {
			y.Store(i, n)
		}
		shared.Store(b.Add(b.LocalID(), 32), v)
		b.Barrier()
		y.Store(8, shared.Load(b.Add(b.LocalID(), 16)))
	})
	counts(t, f, err, map[string]int{
		"prmt.b32 %r3, %r1, 0, 29521": 1, // bytes 1 and 3, zeros between
		", 0, 30290":                  1, // byte 2 alone
		", 0, 43682":                  1, // byte 2 with its sign
		"prmt.b32":                    3, "bfe.s32": 1, "bfe.u32": 1, "+128], %": 1, "+64];": 1,
	})
}

// TestReadOnce checks which loads say that what they bring is not read again: those of weights by 8 bytes and more, in
// kernels that overlap and read them once.
func TestReadOnce(t *testing.T) {
	f, err := kernel.Build("once", func(b *kernel.Builder) {
		w, x, y := b.Arg("w", kernel.Read), b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(32)
		pair, quad := kernel.U32.Vec(2), kernel.U32.Vec(4)
		early := w.Load(quad, b.LocalID())
		v := b.Add(early, x.Load(quad, b.LocalID()), w.Load(quad, 7))
		y.Store(b.LocalID(), b.Add(b.Elem(v, 0), b.Elem(w.Load(pair, 3), 1), w.Load(kernel.U32, 5)))
	})
	if err != nil {
		t.Fatal(err)
	}
	weights := func(arg int) bool { return arg == 0 }
	for _, c := range []struct {
		o    ptx.Options
		want map[string]int
	}{
		{ptx.Options{Arch: 90, Constant: weights, Overlap: true, EvictFirst: true}, map[string]int{
			"ld.weak.global.L1::evict_first.L2::128B.v4": 1, "ld.global.nc.L1::evict_first.L2::128B.v4": 1, "ld.global.nc.L1::evict_first.L2::128B.v2": 1,
			"ld.global.nc.b32": 1, "ld.global.v4": 1, "evict_first": 3,
		}},
		{ptx.Options{Arch: 90, Constant: weights, EvictFirst: true}, map[string]int{"evict_first": 0}},
		{ptx.Options{Arch: 90, Constant: weights, Overlap: true}, map[string]int{"evict_first": 0}},
	} {
		text, err := ptx.Lower(f, c.o)
		if err != nil {
			t.Fatal(err)
		}
		assemble(t, "sm_90", text)
		for part, n := range c.want {
			if got := strings.Count(text, part); got != n {
				t.Errorf("%d times %s, want %d\n%s", got, part, n, text)
			}
		}
	}
}

// counts lowers a kernel for sm_80, assembles it, and wants parts of the text so many times.
func counts(t *testing.T, f *kernel.Func, err error, want map[string]int) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	text, err := ptx.Lower(f, ptx.Options{Arch: 80})
	if err != nil {
		t.Fatal(err)
	}
	assemble(t, "sm_80", text)
	for part, n := range want {
		if got := strings.Count(text, part); got != n {
			t.Errorf("%d times %q, want %d\n%s", got, part, n, text)
		}
	}
}

// TestDotInSum checks that a sum with a dot product is one instruction.
func TestDotInSum(t *testing.T) {
	f, err := kernel.Build("dots", func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(32)
		v := x.Load(kernel.U32, b.LocalID())
		twice := b.DotI8(v, 5)
		y.Store(0, b.Add(b.Add(b.DotI8(v, 1), b.DotU8(v, 2)), twice))
		y.Store(1, twice)
	})
	counts(t, f, err, map[string]int{"dp4a": 3, ", 0;": 2, "add.s32": 1})
}

// TestMerged checks that a mask and what is filled in beside it are one instruction, of bytes a permutation, which
// shifts, too.
func TestMerged(t *testing.T) {
	f, err := kernel.Build("merged", func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(32)
		v := x.Load(kernel.U32, b.LocalID())
		y.Store(0, b.Or(b.And(v, 0x00ff00ff), 0x64006400))
		y.Store(1, b.Or(b.And(b.Shr(v, 8), 0x00ff00ff), 0x64006400))
		y.Store(2, b.Or(b.And(v, 0x000f000f), 0x64006400))
		y.Store(3, b.Or(b.And(b.Shr(v, 4), 0x00ff00ff), 0x64006400))
		y.Store(4, b.Or(b.And(b.Shr(v, 24), 0x00ff00ff), 0x64006400)) // a byte of zeros that no operand has
		y.Store(5, b.Or(b.And(v, 0x00ff00ff), 0x64006401))
	})
	counts(t, f, err, map[string]int{"prmt.b32": 4 /* and what is merged, which nothing reads */, "1677747200, 29264;": 2, "1677747200, 29521;": 1, "lop3.b32": 3, ", 0xEA;": 3, "or.b32": 0})
}

// TestNearNumbers checks that accesses whose indices differ in a small number have one address.
func TestNearNumbers(t *testing.T) {
	f, err := kernel.Build("near", func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(32)
		row, unit := b.Mul(b.LocalID(), 64), b.Shr(b.LocalID(), 2)
		for i := range 4 {
			y.Store(b.Add(b.LocalID(), 32*i), x.Load(kernel.U32, b.Add(row, b.Add(unit, 4*i))))
		}
		y.Store(1, x.Load(kernel.U32, b.Add(row, kernel.NearNumbers)))
	})
	counts(t, f, err, map[string]int{"+16];": 1, "+32];": 1, "+48];": 1, "+128]": 1, "+256]": 1, "+384]": 1})
}

// TestAskedArrays checks that each shared array lies at a multiple of 16 bytes where they are too many to be declared:
// what copies 16 bytes at a time and what loads matrices needs it of arrays of words, too. With matrices in lines it is
// 1024, declared or not, but for arrays of narrow elements that are asked for.
func TestAskedArrays(t *testing.T) {
	build := func(lines bool, lengths ...int) (text string, err error) {
		f, err := kernel.Build("arrays", func(b *kernel.Builder) {
			x := b.Arg("x", kernel.Read)
			b.Workgroup(32)
			for _, n := range lengths {
				a := b.Shared(kernel.U32, n)
				x.Copy(kernel.U32.Vec(4), a, b.Mul(b.LocalID(), 4), b.LocalID())
			}
			b.CopyGroup()
			b.CopyWait(0)
		})
		if err != nil {
			t.Fatal(err)
		}
		f.Lines = lines
		return ptx.Lower(f, ptx.Options{Arch: 90})
	}
	for _, c := range []struct {
		lines   bool
		lengths []int
		want    []string // none: it is refused
	}{
		{false, []int{129, 8192, 8192}, []string{".align 128 .b8 asked[]; // 66052\n", "asked+0", "asked+32768", "asked+65536"}},
		{false, []int{129, 8192, 8193}, nil},
		{false, []int{132, 8192, 8196}, []string{"asked+0", "asked+528", "asked+33296"}},
		{true, []int{132, 8192, 8192}, []string{".align 1024 .b8 asked[]; // 66064\n", "asked+0", "asked+32768", "asked+65536"}},
		{true, []int{132, 8192, 8196}, []string{"asked+0", "asked+32768", "asked+33296"}},
		{true, []int{129, 8192, 8193}, nil},
		{true, []int{256, 256}, []string{".shared .align 1024 .b8 s0[1024];", ".shared .align 1024 .b8 s1[1024];"}},
	} {
		text, err := build(c.lines, c.lengths...)
		if c.want == nil {
			if err == nil || !strings.Contains(err.Error(), "more than one is no multiple") {
				t.Errorf("arrays of %d words, in lines %v: %v", c.lengths, c.lines, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		assemble(t, "sm_90", text)
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("no %q\n%s", want, text)
			}
		}
	}
}
