package radv

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	kernelspirv "github.com/zincc-dev/zincc/codegen/kernel/spirv"
)

func TestMain(m *testing.M) {
	Main()
	dir, err := os.MkdirTemp("", "zincc-radv-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// sums is a kernel of n vectors a lane that are all alive at once.
func sums(t *testing.T, n, wave int) Kernel {
	t.Helper()
	f, err := kernel.Build("sums", func(b *kernel.Builder) {
		x := b.Arg("x", kernel.Read)
		y := b.Arg("y", kernel.Write)
		b.Workgroup(b.SpecU32("workgroup", 64))
		at := b.Mul(b.LocalID(), n)
		var loaded []kernel.Value
		total := b.Splat(b.F32(0), 4)
		for i := range n {
			v := x.Load(kernel.F32.Vec(4), b.Add(at, i))
			loaded = append(loaded, v)
			total = b.Add(total, v)
		}
		for i, v := range loaded {
			y.Store(b.Add(at, i), b.Mul(v, total))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	words, err := kernelspirv.Lower(f)
	if err != nil {
		t.Fatal(err)
	}
	return Kernel{Name: "sums", Words: words, Wave: wave, Full: true}
}

func open(t *testing.T, family string) *Compiler {
	t.Helper()
	c, err := Open(t.Context(), family, "", nil)
	if err != nil {
		t.Fatalf("RADV of mesa-vulkan-drivers 25 is needed: %v", err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestFigures(t *testing.T) {
	for _, family := range []string{"GFX1201", "NAVI31"} {
		c := open(t, family)
		r, err := c.Compile(t.Context(), []Kernel{
			sums(t, 2, 32), sums(t, 8, 32), sums(t, 8, 64), sums(t, 100, 64), sums(t, 2, 32),
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range r {
			if r.Refused != "" || r.VGPRs == 0 || r.SGPRs == 0 || r.Code == 0 || r.VALU == 0 || r.VMEM == 0 || r.Latency == 0 || r.InverseThroughput == 0 {
				t.Errorf("%s: kernel %d: %+v", family, i, r)
			}
			if spills := i == 3; spills != (r.VGPRSpills > 0) || spills != (r.Scratch > 0) {
				t.Errorf("%s: kernel %d: spills %+v", family, i, r)
			}
		}
		if r[0] != r[4] || r[0].Pressure >= r[1].Pressure {
			t.Errorf("%s: registers of 2, 8 and 2 vectors: %+v", family, r)
		}
	}
}

// TestEarlyEnd holds what kernel.Func.Weigh knows of the compiler: it takes what is behind an early end to be executed
// half, or by three quarters where lanes part; and its cycles are of 64 lanes, whatever the subgroup.
func TestEarlyEnd(t *testing.T) {
	body := func(wave int, end func(b *kernel.Builder, n kernel.Value)) Kernel {
		f, err := kernel.Build("body", func(b *kernel.Builder) {
			x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
			b.Workgroup(b.SpecU32("workgroup", 64))
			end(b, x.Load(kernel.U32, 0))
			v := b.Var(kernel.F32, x.Load(kernel.F32, b.Add(b.LocalID(), 4)))
			b.ForRolled(0, 64, 1, func(kernel.Value) {
				for range 100 {
					v.Set(b.FMA(v.Get(), v.Get(), v.Get()))
				}
			})
			y.Store(b.LocalID(), v.Get())
		})
		if err != nil {
			t.Fatal(err)
		}
		words, err := kernelspirv.Lower(f)
		if err != nil {
			t.Fatal(err)
		}
		return Kernel{Name: "body", Words: words, Wave: wave, Full: true}
	}
	group := func(b *kernel.Builder, n kernel.Value) { b.ReturnIf(b.Ge(b.WorkgroupID(0), n)) }
	lanes := func(b *kernel.Builder, n kernel.Value) { b.ReturnIf(b.Ge(b.LocalID(), n)) }
	for _, family := range []string{"GFX1201", "NAVI31"} {
		r, err := open(t, family).Compile(t.Context(), []Kernel{body(32, func(*kernel.Builder, kernel.Value) {}), body(32, group), body(32, lanes),
			body(64, func(*kernel.Builder, kernel.Value) {})})
		if err != nil {
			t.Fatal(err)
		}
		whole := r[0].Busy(32)
		for i, want := range []float64{800, 400, 600, 800} { // eight rounds; a wave of 64 issues both halves of these at once
			if have := r[i].Busy([]int{32, 32, 32, 64}[i]); have < 0.95*want || have > 1.1*want {
				t.Errorf("%s: kernel %d keeps a SIMD busy for %g cycles of %g, want %g", family, i, have, whole, want)
			}
		}
	}
}

// withMatrices makes a kernel that says that it multiplies cooperative matrices.
func withMatrices(k Kernel) Kernel {
	const opCapability, cooperativeMatrix = 17, 6022
	k.Words = slices.Insert(slices.Clone(k.Words), 5, 2<<16|opCapability, cooperativeMatrix)
	return k
}

func TestRefused(t *testing.T) {
	c := open(t, "GFX1201")
	good, bad, lacking := sums(t, 2, 32), sums(t, 2, 32), withMatrices(sums(t, 3, 32))
	bad.Wave = 7
	r, err := c.Compile(t.Context(), []Kernel{bad, good, lacking})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r[0].Refused, "subgroups of 7") || r[1].Refused != "" || !strings.Contains(r[2].Refused, "no cooperative matrices") {
		t.Errorf("%+v", r)
	}
}

// TestFault sends what is no SPIR-V: whatever the driver does, the compiler goes on.
// TestAssembly reads the instructions of a kernel, for a family that the driver's
// disassembler knows and for one that it does not.
func TestAssembly(t *testing.T) {
	k := sums(t, 4, 32)
	for _, family := range []string{"NAVI31", "GFX1201"} {
		texts, err := open(t, family).Assembly(t.Context(), []Kernel{k, withMatrices(k)})
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(texts[0]), "\n")
		if lines[0] != "BB0:" && lines[0] != "BB0" {
			t.Errorf("%s: begins with %q", family, lines[0])
		}
		for _, want := range []string{" v_add_", "  s_endpgm", "global_store"} {
			if !strings.Contains(texts[0], want) {
				t.Errorf("%s: no %q in\n%s", family, want, texts[0])
			}
		}
		if strings.ContainsAny(texts[0], "%;\t") {
			t.Errorf("%s: not tidy:\n%s", family, texts[0])
		}
		if matrices := family == "NAVI31"; (texts[1] != "") != matrices {
			t.Errorf("%s: a kernel with matrices is %q", family, texts[1])
		}
	}
}

func TestFault(t *testing.T) {
	c := open(t, "NAVI31")
	bad := Kernel{Name: "bad", Words: []uint32{1, 2, 3, 4, 5, 6}, Wave: 32}
	r, err := c.Compile(t.Context(), []Kernel{bad, sums(t, 2, 32)})
	if err != nil {
		t.Fatal(err)
	}
	if r[0].Refused == "" || strings.Contains(r[0].Refused, "\n") || r[1].Refused != "" {
		t.Errorf("%+v", r)
	}
}

func TestCacheOnDisk(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	k := []Kernel{sums(t, 4, 32)}
	first, err := open(t, "GFX1200").Compile(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	c := open(t, "GFX1200")
	c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no child is started any more
	second, err := c.Compile(ctx, k)
	if err != nil || second[0] != first[0] {
		t.Errorf("%+v, want %+v: %v", second, first, err)
	}
	if _, err := c.Compile(ctx, []Kernel{sums(t, 5, 32)}); err == nil {
		t.Error("compiles with a context that is over")
	}
}

// FuzzDecodeResult: whatever lies in the cache, what is taken of it is a result that is
// written and read as it is.
func FuzzDecodeResult(f *testing.F) {
	whole, err := json.Marshal(Result{Figures: Figures{VGPRs: 24, Latency: 900}, Driver: "radv Mesa 25.0", Known: true})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{string(whole), `{"Known":true,"VGPRs":-1}`, `{"Known":true,"Code":9e99}`, `{"Known":false}`, `{"Known":true,"Refused":"\u001b"}`, "null", ""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, ok := decodeResult(data)
		if !ok {
			if r != (Result{}) {
				t.Errorf("%+v of what is none", r)
			}
			return
		}
		for _, figure := range r.fields() {
			if *figure < 0 {
				t.Errorf("negative figure in %+v", r)
			}
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if same, ok := decodeResult(again); !ok || same != r {
			t.Errorf("%+v is read as %+v", r, same)
		}
	})
}

func TestNoDriver(t *testing.T) {
	if _, err := Open(t.Context(), "NOSUCHGPU", "", nil); !errors.Is(err, ErrNoDriver) {
		t.Errorf("unknown family: %v", err)
	}
	old := manifestDirs
	manifestDirs = []string{t.TempDir()}
	defer func() { manifestDirs = old }()
	if _, err := Open(t.Context(), "GFX1201", "NAVI31", nil); !errors.Is(err, ErrNoDriver) {
		t.Errorf("no manifest: %v", err)
	}
	if _, err := Open(t.Context(), "NOSUCHGPU", "", nil); !errors.Is(err, ErrNoDriver) {
		t.Errorf("no manifest and nothing known: %v", err)
	}
}

// TestKnown writes down what the driver says and reads it back.
func TestKnown(t *testing.T) {
	c, err := Open(t.Context(), "GFX1201", "NAVI31", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	asked := []Kernel{sums(t, 2, 32), sums(t, 8, 64), withMatrices(sums(t, 3, 32))}
	said, err := c.Compile(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	known := Known{}
	for i := range asked {
		if err := known.Add(Line(&asked[i], &said[i]), said[i].Driver); err != nil {
			t.Fatal(err)
		}
	}
	silent := &Compiler{known: known}
	got, err := silent.Compile(t.Context(), append(asked, sums(t, 4, 32)))
	if err != nil || !slices.Equal(got[:3], said[:3]) || got[3].Known || got[1].StandIn != "" || got[2].StandIn != "NAVI31" {
		t.Errorf("%+v, want %+v: %v", got, said, err)
	}
}

func TestBadLines(t *testing.T) {
	for _, bad := range []string{"", "AAAA 1 2", strings.Repeat("A", 22) + strings.Repeat(" x", 15), "AAAA" + strings.Repeat(" 1", 15)} {
		if err := (Known{}).Add(bad, "driver"); err == nil {
			t.Errorf("%q parses", bad)
		}
	}
}

// TestMachines reads machine code and where a launch puts addresses, of kernels whose addresses fit into registers, do
// not fit, and have gaps. It pins Mesa: the driver's cache has the form that Mesa 25.0 gives it.
func TestMachines(t *testing.T) {
	for _, family := range []string{"GFX1201", "GFX1200", "NAVI31", "GFX1151"} {
		c := open(t, family)
		if !strings.Contains(c.Driver(), "Mesa 25.0.") {
			t.Errorf("%s: the tests read machine code of Mesa 25.0, the driver is %q", family, c.Driver())
		}
		list, err := c.Machines(t.Context(), []Kernel{sums(t, 2, 32), adds(t, 6, true, 32), adds(t, 7, false, 64), adds(t, 14, true, 32)})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []Machine{
			{Wave: 32, Inline: 0xf, InlineAt: 2, PushAt: -1, GridAt: -1, SetAt: -1},
			{Wave: 32, Inline: 0x33f, InlineAt: 3, PushAt: 2, GridAt: 11, SetAt: -1},
			{Wave: 64, Inline: 0xcf3f, InlineAt: 2, PushAt: -1, GridAt: -1, SetAt: -1},
			{Wave: 32, Inline: 0x33f, InlineAt: 3, PushAt: 2, GridAt: 11, SetAt: -1},
		} {
			got := *list[i]
			const endpgm = 0xbfb00000
			if got.Rsrc1 == 0 || got.Rsrc2 == 0 || !slices.Contains(got.Code, endpgm) {
				t.Errorf("%s: kernel %d: %+v", family, i, got)
			}
			got.Code, got.Rsrc1, got.Rsrc2 = nil, 0, 0
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: kernel %d: %+v, want %+v", family, i, got, want)
			}
		}
	}
}

// adds is a kernel of n buffers, two of which it does not read, and a result; it asks for the grid, or not.
func adds(t *testing.T, n int, grid bool, wave int) Kernel {
	t.Helper()
	f, err := kernel.Build("adds", func(b *kernel.Builder) {
		var x []*kernel.Buffer
		for i := range n {
			x = append(x, b.Arg(fmt.Sprint("x", i), kernel.Read))
		}
		y := b.Arg("y", kernel.Write)
		b.Workgroup(b.SpecU32("workgroup", 64))
		at, total := b.LocalID(), b.F32(0)
		for i := range n {
			if i != 3 && i != 6 {
				total = b.Add(total, x[i].Load(kernel.F32, at))
			}
		}
		if grid {
			at = b.Add(b.Add(at, b.NumWorkgroups(1)), b.WorkgroupID(1))
		}
		y.Store(at, total)
	})
	if err != nil {
		t.Fatal(err)
	}
	words, err := kernelspirv.Lower(f)
	if err != nil {
		t.Fatal(err)
	}
	return Kernel{Name: "adds", Words: words, Wave: wave, Full: true}
}

// FuzzMachineOf: whatever a driver's cache holds is code with its registers, or an error.
func FuzzMachineOf(f *testing.F) {
	for _, seed := range [][]byte{nil, make([]byte, 36), cacheOf(recordBytes + 64), cacheOf(recordBytes)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := machineOf(data)
		if (m == nil) != (err != nil) {
			t.Fatalf("%+v, %v", m, err)
		}
		if m != nil && (len(m.Code) < paddingOfCode || m.PushAt >= maxPairRegs || m.InlineAt >= maxPairRegs || m.GridAt >= maxPairRegs) {
			t.Errorf("%+v", m)
		}
	})
}

// cacheOf is a cache's data with one binary of so many bytes, whose code is all padding.
func cacheOf(size int) []byte {
	const body = 80
	data := make([]byte, body+size)
	put := func(at, v int) { binary.LittleEndian.PutUint32(data[at:], uint32(v)) }
	put(objectsAt+4, binaryKey)
	put(objectsAt+8, size)
	put(body+sizeAt, size)
	put(body+codeAt, size-recordBytes)
	put(body+instructionAt, size-recordBytes-4*paddingOfCode)
	put(body+waveAt, 32)
	for at := recordBytes; at < size; at += 4 {
		put(body+at, endOfCode)
	}
	return data
}
