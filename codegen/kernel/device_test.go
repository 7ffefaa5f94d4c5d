package kernel_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/codegen/kernel"
	kernelspirv "github.com/zincc-dev/zincc/codegen/kernel/spirv"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/vulkan"
	"github.com/zincc-dev/zincc/spirv"
)

// device opens the CPU's Vulkan device, or the first of those that
// VK_DRIVER_FILES leaves when it leaves out the CPU's.
func device(t *testing.T) *vulkan.Device {
	t.Helper()
	list, err := vulkan.Enumerate()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Fatal("no Vulkan device, not even llvmpipe")
	}
	chosen := list[0]
	for _, info := range list {
		if strings.Contains(info.Name, "llvmpipe") {
			chosen = info
		}
	}
	d, err := vulkan.Open(chosen.Index, plans.VulkanRequirements{
		Features: []string{"bufferDeviceAddress", "vulkanMemoryModel", "shaderIntegerDotProduct", "shaderFloat16", kernel.RoundsHalf, "shaderInt16", "storageBuffer16BitAccess"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, m := range d.ValidationMessages() {
			t.Error(m)
		}
		d.Close()
	})
	return d
}

// run dispatches one kernel with the given buffers of words, which it changes,
// and the specialization by name, and again on this computer's processor.
func run(t *testing.T, d *vulkan.Device, build func(*kernel.Builder), byName map[string]uint32, groups uint32, words ...[]uint32) {
	t.Helper()
	var before [][]uint32
	for _, w := range words {
		before = append(before, slices.Clone(w))
	}
	f, spec := runAt(t, d, build, byName, groups, func([]uint64) {}, words...)
	interpreted(t, f, spec, groups, before, words)
}

// runAt is run with words that may depend on the addresses of the buffers.
func runAt(t *testing.T, d *vulkan.Device, build func(*kernel.Builder), byName map[string]uint32, groups uint32, at func(addresses []uint64), words ...[]uint32) (*kernel.Func, map[uint32]uint32) {
	t.Helper()
	f, err := kernel.Build("test", build)
	if err != nil {
		t.Fatal(err)
	}
	module, err := kernelspirv.Lower(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := spirv.Validate(module, spirv.Vulkan12); err != nil {
		t.Fatal(err)
	}
	spec, err := f.SpecValues(byName)
	if err != nil {
		t.Fatal(err)
	}
	pipelines, err := d.CreatePipelines([]vulkan.PipelineInfo{{Name: "test", Words: module, Constants: spec}})
	if err != nil {
		t.Fatal(err)
	}
	var args []uint64
	buffers := make([]*vulkan.Buffer, len(words))
	for i, w := range words {
		buffers[i] = alloc(t, d, 4*len(w))
		args = append(args, buffers[i].Address())
	}
	at(args)
	for i, w := range words {
		copy(buffers[i].Bytes(), spirv.Bytes(w))
	}
	cmds, err := d.NewCommands()
	if err != nil {
		t.Fatal(err)
	}
	cmds.Bind(pipelines[0])
	cmds.Push(args...)
	cmds.Dispatch(groups, 1, 1)
	cmds.Barrier(vulkan.Compute, vulkan.Host)
	if err := cmds.End(); err != nil {
		t.Fatal(err)
	}
	n, err := d.Submit(0, cmds)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Wait(n, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	for i, w := range words {
		got, err := spirv.Words(buffers[i].Bytes()[:4*len(w)])
		if err != nil {
			t.Fatal(err)
		}
		copy(w, got)
	}
	return f, spec
}

func alloc(t *testing.T, d *vulkan.Device, size int) *vulkan.Buffer {
	t.Helper()
	b, err := d.Alloc(int64(size), vulkan.Upload)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func floats(n int, f func(i int) float32) []uint32 {
	w := make([]uint32, n)
	for i := range w {
		w[i] = math.Float32bits(f(i))
	}
	return w
}

// same compares words, or floats within an error of rel of the wanted.
func same(t *testing.T, what string, got, want []uint32, rel float64) {
	t.Helper()
	for i := range want {
		if got[i] == want[i] {
			continue
		}
		g, w := float64(math.Float32frombits(got[i])), float64(math.Float32frombits(want[i]))
		if rel == 0 || !(math.Abs(g-w) <= rel*math.Abs(w)) {
			t.Fatalf("%s[%d] = %#x (%g), want %#x (%g)", what, i, got[i], g, want[i], w)
		}
	}
}

func TestReduceRuns(t *testing.T) {
	d := device(t)
	lanes := d.Info.Subgroup.Default
	size := 4 * lanes
	x := floats(size, func(i int) float32 { return float32(i) })
	y := make([]uint32, 8+size)
	run(t, d, reduce, map[string]uint32{"size": uint32(size)}, 1, x, y)
	sum := func(n int) float32 { return float32(n * (n - 1) / 2) } // of 0 ... n-1
	same(t, "subgroup", y, floats(4, func(s int) float32 { return sum((s+1)*lanes) - sum(s*lanes) }), 0)
	same(t, "workgroup", y[8:], floats(size, func(int) float32 { return sum(size) }), 0)
}

func TestTransposeRuns(t *testing.T) {
	const n = 24
	x, y := floats(n*n, func(i int) float32 { return float32(i) }), make([]uint32, n*n)
	run(t, device(t), transpose, map[string]uint32{"n": n}, 1, x, y)
	same(t, "y", y, floats(n*n, func(i int) float32 { return float32(i%n*n + i/n) }), 0)
}

func TestNestedRuns(t *testing.T) {
	const n = 23
	got := make([]uint32, 8)
	want := make([]uint32, 8)
	run(t, device(t), nested, map[string]uint32{"n": n}, 1, got)
	for lane := range want {
		for i := range n {
			found := uint32(0)
			for j := 0; j <= i && found < 5; j++ {
				if (i+j)%3 == lane%3 {
					found++
				}
			}
			want[lane] += found
		}
	}
	same(t, "y", got, want, 0)
}

func TestHalfRuns(t *testing.T) {
	x, want := make([]uint32, 64), make([]uint32, 64)
	for i := range x {
		// Exponents 1 to 29 in the lower half, 1 in the negative upper: to double a
		// normal number is to add 1 to its exponent.
		lo := uint32(1+i%29)<<10 | uint32(i*37)&0x3ff
		x[i] = lo | 1<<26 | 5<<16 | 1<<31
		want[i] = x[i] + 1<<10 + 1<<26
	}
	run(t, device(t), half, nil, 1, x)
	same(t, "x", x, want, 0)
}

// TestHalfRounds rounds what lies between two f16 to the nearest, halfway to the even one, also below the smallest
// normal f16; no compiler may undo it when it is taken apart again.
func TestHalfRounds(t *testing.T) {
	const ulp = 1.0 / 1024
	x := []float32{1 + ulp/2, 1 + 3*ulp/2, 1 + ulp*0.75, -1 - ulp*0.75, -1 - ulp*0.25, 1.5 / (1 << 24), 2.5 / (1 << 24), 65503}
	want := []float32{1, 1 + 2*ulp, 1 + ulp, -1 - ulp, -1, 2.0 / (1 << 24), 2.0 / (1 << 24), 65504}
	from, got := make([]uint32, len(x)), make([]uint32, len(x))
	for i := range x {
		from[i] = math.Float32bits(x[i])
	}
	run(t, device(t), func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(4)
		y.Store(b.LocalID(), b.UnpackHalf(b.PackHalf(x.Load(kernel.F32.Vec(2), b.LocalID()))))
	}, nil, 1, from, got)
	for i := range want {
		if y := math.Float32frombits(got[i]); y != want[i] {
			t.Errorf("%v becomes %v, want %v", x[i], y, want[i])
		}
	}
}

func TestRMSNormRuns(t *testing.T) {
	const k, rows = 256, 3
	x := floats(k*rows, func(i int) float32 { return float32(math.Sin(float64(i))) })
	gain := floats(k, func(i int) float32 { return 1 + float32(i)/k })
	y := make([]uint32, k*rows)
	run(t, device(t), rmsNorm, map[string]uint32{"k": k, "workgroup": 32}, rows, x, gain, y)
	want := floats(k*rows, func(i int) float32 {
		sum := 0.0
		for _, v := range x[i/k*k : i/k*k+k] {
			f := float64(math.Float32frombits(v))
			sum += f * f
		}
		return float32(float64(math.Float32frombits(x[i])) / math.Sqrt(sum/k+1e-6) * float64(math.Float32frombits(gain[i%k])))
	})
	same(t, "y", y, want, 1e-5)
}

func TestAtomicsAndDotRun(t *testing.T) {
	build := func(b *kernel.Builder) {
		y := b.Arg("y", kernel.ReadWrite)
		b.Workgroup(32)
		lane := b.LocalID()
		counts := b.Shared(kernel.U32, 2)
		b.If(b.Eq(lane, 0), func() {
			counts.Store(0, b.U32(0))
			counts.Store(1, b.U32(0))
		})
		b.Barrier()
		counts.AtomicAdd(0, lane)
		counts.AtomicAdd(1, b.Mul(lane, 3))
		y.AtomicAdd(0, 2)
		y.AtomicAdd(1, b.Add(b.Mul(b.WorkgroupID(0), 100), lane))
		b.Barrier()
		b.If(b.And(b.Eq(lane, 0), b.Eq(b.WorkgroupID(0), 0)), func() {
			y.Store(2, counts.Load(0))
			y.Store(3, counts.Load(1))
			y.Store(4, b.DotI8(b.U32(0x01ff0280), b.U32(0x7f7f80ff)))
			y.Store(5, b.DotU8(b.U32(0x01ff0280), b.U32(0x7f7f80ff)))
		})
	}
	y := make([]uint32, 6)
	run(t, device(t), build, nil, 4, y)
	dot, unsigned := int32(1*127+-1*127+2*-128+-128*-1), int32(1*127+-1*127+2*128+-128*255)
	same(t, "y", y, []uint32{4 * 32 * 2, 32*600 + 4*496, 496, 3 * 496, uint32(dot), uint32(unsigned)}, 0)
}

// TestHalfWords moves 16 bits to the other half of their words, and no others.
func TestHalfWords(t *testing.T) {
	x, y := []uint32{0x00020001, 0xfffe8000}, []uint32{7, 7, 7}
	run(t, device(t), func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(4)
		i := b.LocalID()
		y.Store16(b.Add(b.Xor(i, 1), 1), b.Or(x.Load16(i), 0x50000))
	}, nil, 1, x, y)
	if want := []uint32{0x00020007, 0xfffe0001, 0x00008000}; !slices.Equal(y, want) {
		t.Errorf("%#x, want %#x", y, want)
	}
}

// TestAmong reads and writes one of several arguments.
func TestAmong(t *testing.T) {
	build := func(b *kernel.Builder) {
		one, two, three := b.Arg("one", kernel.Read), b.Arg("two", kernel.Read), b.Arg("three", kernel.Read)
		y, z := b.Arg("y", kernel.Write), b.Arg("z", kernel.Write)
		b.Workgroup(4)
		x := b.Among([]*kernel.Buffer{one, two, three}, b.WorkgroupID(0))
		to := b.Among([]*kernel.Buffer{y, z}, b.Mod(b.WorkgroupID(0), 2))
		v := x.Load(kernel.U32.Vec(2), b.And(b.LocalID(), 1))
		b.If(b.Lt(b.LocalID(), 2), func() {
			to.Store(b.Add(b.LocalID(), b.And(b.WorkgroupID(0), 2)), b.Add(b.Elem(v, 0), b.Elem(v, 1)))
		})
	}
	y, z := make([]uint32, 4), make([]uint32, 4)
	run(t, device(t), build, nil, 3, []uint32{1, 2, 3, 4}, []uint32{10, 20, 30, 40}, []uint32{100, 200, 300, 400}, y, z)
	same(t, "y", y, []uint32{3, 7, 300, 700}, 0)
	same(t, "z", z, []uint32{30, 70, 0, 0}, 0)
}
