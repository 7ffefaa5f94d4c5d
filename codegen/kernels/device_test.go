package kernels_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernel/racetest"
	kernelspirv "github.com/zincc-dev/zincc/codegen/kernel/spirv"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/vulkan"
	"github.com/zincc-dev/zincc/spirv"
)

// spare are the barriers that order nothing which others do not order.
var spare = []racetest.Spare{
	{Kernel: "gemv", File: "matmul/gemv_fixed.go", Why: "keeps compilers from moving the first loads of weights behind x"},
	{Kernel: "attention_lanes", File: "attention/attention_lanes.go", Why: onProcessors},
	{Kernel: "attention_split", File: "attention/attention_split_lanes.go", Why: onProcessors},
	{Kernel: "delta", File: "recurrent/delta_lanes.go", Why: onProcessors},
	{Kernel: "rows", File: "matmul/panels.go", Why: onProcessors},
	{Kernel: "rows", File: "matmul/rows_run.go", Why: onProcessors},
	{Kernel: "expert_coop", Why: "x is staged behind a barrier of its own before the first weight is taken apart"},
	{Kernel: "expert_fragment", Why: "as in expert_coop"},
}

const onProcessors = "barriers are nothing on processors, for which the kernel is"

// device is the CPU's Vulkan device, shared by all tests.
var device *vulkan.Device

func TestMain(m *testing.M) {
	code, err := withDevice(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withDevice(run func() int) (int, error) {
	list, err := vulkan.Enumerate()
	if err != nil {
		return 0, err
	}
	for _, info := range list {
		if !strings.Contains(info.Name, "llvmpipe") {
			continue
		}
		device, err = vulkan.Open(info.Index, plans.VulkanRequirements{Features: []string{"bufferDeviceAddress", "vulkanMemoryModel", "shaderFloat16", "shaderInt16", "storageBuffer16BitAccess"}})
		if err != nil {
			return 0, err
		}
		defer device.Close()
		code, err := racetest.Main(run, spare...)
		if err == nil && code == 0 && racetest.All() && !testing.Short() {
			err = unseen()
		}
		if err != nil {
			return code, err
		}
		if m := device.ValidationMessages(); len(m) > 0 {
			return code, fmt.Errorf("%d messages of the validation layer, such as: %s", len(m), m[0])
		}
		return code, nil
	}
	return 0, fmt.Errorf("no llvmpipe among the Vulkan devices")
}

// takes reports whether a sweep has its case i: of -short one of n, by turns.
func takes(i, n int) bool { return !testing.Short() || i%n == 0 }

// some returns the cases that a sweep has: of -short each fourth.
func some[T any](cases []T) (list []T) {
	for i, c := range cases {
		if takes(i, 4) {
			list = append(list, c)
		}
	}
	return list
}

// launcher is launch, onDevice or interpretOnly.
type launcher func(t testing.TB, c kernels.Candidate, sizes func(v *ir.Value) int, data map[*ir.Value][]byte) map[*ir.Value][]byte

// shown is what the device has run: modules by key and constants, and the paths that they take through the lowering; and the paths of modules
// that are too large for it.
var shown = struct {
	sync.Mutex
	modules map[string]bool
	paths   paths
	large   map[string]paths // by kernel
}{modules: map[string]bool{}, paths: paths{}, large: map[string]paths{}}

// largest is how many operations a module has at most that the device runs: six that had more took Mesa 51 of its 87 s. -short has smaller ones.
func largest() int {
	if testing.Short() {
		return 800
	}
	return 2000
}

// shows reports whether the device runs a module: one that it has run, or that takes a path that none before it took. Mesa takes fifty times
// as long to compile a module as the interpreter takes to run it. What large modules do, smaller ones have to show: see unseen.
func shows(c kernels.Candidate, f *kernel.Func) bool {
	shown.Lock()
	defer shown.Unlock()
	module := fmt.Sprint(c.Kernel, c.Consts)
	operations := 0
	f.Body().Walk(func(*kernel.Node) { operations++ })
	if operations > largest() {
		shown.large[c.Kernel] = paths{}
		shown.large[c.Kernel].add(f)
		return false
	}
	shown.modules[module] = shown.modules[module] || shown.paths.add(f)
	return shown.modules[module]
}

// unseen returns an error if large modules take paths that no module on the device took.
func unseen() error {
	list := map[string]string{}
	for kernel, paths := range shown.large {
		for path, op := range paths {
			if _, is := shown.paths[path]; !is {
				list[path] = fmt.Sprintf("%s of %s", op, kernel)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	return fmt.Errorf("no module of at most %d operations has these: %q", largest(), slices.Sorted(maps.Values(list)))
}

// interpretOnly is launch in the interpreter, whatever the candidate.
func interpretOnly(t testing.TB, c kernels.Candidate, sizes func(v *ir.Value) int, data map[*ir.Value][]byte) map[*ir.Value][]byte {
	t.Helper()
	f, spec := build(t, c)
	return interpret(t, c, f, spec, sizes, data)
}

// build builds a candidate and returns its constants by id.
func build(t testing.TB, c kernels.Candidate) (f *kernel.Func, spec map[uint32]uint32) {
	t.Helper()
	f, err := c.Build()
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Args) != len(c.Operands) {
		t.Fatalf("%s: %d operands, the kernel has %d", c.Kernel, len(c.Operands), len(f.Args))
	}
	return f, specOf(t, c, f)
}

// lowered builds a candidate and returns its constants by id and a module that is valid, where there is one.
func lowered(t testing.TB, c kernels.Candidate) (f *kernel.Func, spec map[uint32]uint32, module []uint32) {
	t.Helper()
	f, spec = build(t, c)
	if !f.Groups && !f.TF32 && !f.Tiles { // which only PTX has, or processors
		module = lower(t, c, f)
	}
	return f, spec, module
}

// valid are the paths through the lowering that spirv-val has seen.
var valid = struct {
	sync.Mutex
	paths
}{paths: paths{}}

// lower returns the kernel's module. spirv-val, which takes longer than all else here, looks at those that show it something.
func lower(t testing.TB, c kernels.Candidate, f *kernel.Func) []uint32 {
	t.Helper()
	module, err := kernelspirv.Lower(f)
	if err != nil {
		t.Fatalf("%s: %v", c.Kernel, err)
	}
	valid.Lock()
	shows := valid.add(f)
	valid.Unlock()
	if !shows {
		return module
	}
	if err := spirv.Validate(module, spirv.Vulkan12); err != nil {
		t.Fatalf("%s: %v", c.Kernel, err)
	}
	return module
}

// built are the digests of the modules that targets of the table have, by name.
var built sync.Map

// builds builds a candidate for a target: its module is that of all candidates of its name, and its sizes, with its constants, are within the
// limits of the target, of whose shared memory it may have some.
func builds(t testing.TB, on *target.Target, some int, c kernels.Candidate) {
	t.Helper()
	f, spec, module := lowered(t, c)
	digest := sha256.Sum256(spirv.Bytes(module))
	if other, again := built.LoadOrStore(c.Kernel, digest); again && other != digest {
		t.Fatalf("%s: %s: the name of two modules", on.Name, c.Kernel)
	}
	if size, err := f.WorkgroupSize(spec); err != nil || int(size)%c.Wave != 0 || int(size) > on.Workgroup {
		t.Fatalf("%s: %s: workgroup of %d, %v", on.Name, c.Kernel, size, err)
	}
	if shared, err := f.SharedBytes(spec); err != nil || int(shared) > some {
		t.Fatalf("%s: %s: %d bytes of shared memory, %v", on.Name, c.Kernel, shared, err)
	}
}

// specOf returns the kernel's constants by id, which the candidate has by name.
func specOf(t testing.TB, c kernels.Candidate, f *kernel.Func) map[uint32]uint32 {
	t.Helper()
	byName := map[string]uint32{}
	for _, k := range c.Consts {
		byName[k.Name] = k.Value
	}
	spec, err := f.SpecValues(byName)
	if err != nil {
		t.Fatal(err)
	}
	if len(spec) != len(f.Spec) {
		t.Fatalf("%s: %d constants, the kernel has %d", c.Kernel, len(spec), len(f.Spec))
	}
	return spec
}

// launch runs a candidate, on the device if shows says so, else in the interpreter. data has the bytes of the operands that
// are read, in the device's layout; results come back for those that are written,
// over NaNs where there is no data. Bits may differ between the two.
func launch(t testing.TB, c kernels.Candidate, sizes func(v *ir.Value) int, data map[*ir.Value][]byte) map[*ir.Value][]byte {
	t.Helper()
	f, spec, module := lowered(t, c)
	if !forDevice(t, c, f) || !shows(c, f) {
		return interpret(t, c, f, spec, sizes, data)
	}
	return compute(t, c, f, spec, module, sizes, data)
}

// showing reports whether launch runs a candidate on the device: for tests that otherwise want the interpreter's bits.
func showing(t testing.TB, c kernels.Candidate) bool {
	t.Helper()
	f, _, _ := lowered(t, c)
	return forDevice(t, c, f) && shows(c, f)
}

// onDevice is launch on the device wherever it has subgroups as the candidate has.
func onDevice(t testing.TB, c kernels.Candidate, sizes func(v *ir.Value) int, data map[*ir.Value][]byte) map[*ir.Value][]byte {
	t.Helper()
	f, spec, module := lowered(t, c)
	if !forDevice(t, c, f) {
		return interpret(t, c, f, spec, sizes, data)
	}
	shows(c, f)
	return compute(t, c, f, spec, module, sizes, data)
}

// forDevice reports whether the device has the kernel's subgroups and matrices.
func forDevice(t testing.TB, c kernels.Candidate, f *kernel.Func) bool {
	return (c.Wave == 0 || c.Wave == llvmpipe(t).Wave) && !f.Fragments
}

// compute is launch on the device.
func compute(t testing.TB, c kernels.Candidate, f *kernel.Func, spec map[uint32]uint32, module []uint32, sizes func(v *ir.Value) int, data map[*ir.Value][]byte) map[*ir.Value][]byte {
	t.Helper()
	shared, err := f.SharedBytes(spec)
	if err != nil || shared > 32<<10 {
		t.Fatalf("%s: %d bytes of shared memory, %v", c.Kernel, shared, err)
	}
	pipelines, err := device.CreatePipelines([]vulkan.PipelineInfo{{Name: c.Kernel, Words: module, Constants: spec, FullSubgroups: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer pipelines[0].Free()
	if racetest.First(c.Kernel, c.Wave) {
		interpret(t, c, f, spec, sizes, data)
	}
	var args []uint64
	bufs := map[*ir.Value]*vulkan.Buffer{}
	for i, o := range c.Operands {
		if o.Name != f.Args[i].Name || o.Access != f.Args[i].Access {
			t.Fatalf("%s: operand %d is %v, the kernel's argument %v", c.Kernel, i, o, f.Args[i])
		}
		if bufs[o.Value] == nil {
			b := alloc(t, sizes(o.Value))
			defer b.Free()
			for i := range b.Bytes() {
				b.Bytes()[i] = 0xff
			}
			copy(b.Bytes(), data[o.Value])
			bufs[o.Value] = b
		}
		args = append(args, bufs[o.Value].Address())
	}
	cmds, err := device.NewCommands()
	if err != nil {
		t.Fatal(err)
	}
	defer cmds.Free()
	cmds.Bind(pipelines[0])
	cmds.Push(args...)
	cmds.Dispatch(uint32(c.Grid[0]), uint32(c.Grid[1]), uint32(c.Grid[2]))
	cmds.Barrier(vulkan.Compute, vulkan.Host)
	if err := cmds.End(); err != nil {
		t.Fatal(err)
	}
	n, err := device.Submit(0, cmds)
	if err != nil {
		t.Fatal(err)
	}
	if err := device.Wait(n, 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	out := map[*ir.Value][]byte{}
	for _, o := range c.Operands {
		out[o.Value] = append([]byte(nil), bufs[o.Value].Bytes()...)
	}
	return out
}

// interpret is launch on this computer's processor, with subgroups of the candidate's size.
func interpret(t testing.TB, c kernels.Candidate, f *kernel.Func, spec map[uint32]uint32, sizes func(v *ir.Value) int, data map[*ir.Value][]byte) map[*ir.Value][]byte {
	t.Helper()
	out := map[*ir.Value][]byte{}
	var args [][]byte
	for i, o := range c.Operands {
		if o.Name != f.Args[i].Name || o.Access != f.Args[i].Access {
			t.Fatalf("%s: operand %d is %v, the kernel's argument %v", c.Kernel, i, o, f.Args[i])
		}
		if out[o.Value] == nil {
			out[o.Value] = bytes.Repeat([]byte{0xff}, sizes(o.Value))
			copy(out[o.Value], data[o.Value])
		}
		args = append(args, out[o.Value])
	}
	wave := c.Wave
	if wave == 0 {
		wave = llvmpipe(t).Wave
	}
	racetest.Run(t, f, spec, wave, c.Grid, args)
	return out
}

func alloc(t testing.TB, size int) *vulkan.Buffer {
	t.Helper()
	b, err := device.Alloc(int64(size), vulkan.Upload)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func f32Bytes(x []float32) []byte {
	b := make([]byte, 4*len(x))
	for i, v := range x {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
	}
	return b
}

func i32Bytes(x ...int32) []byte {
	b := make([]byte, 4*len(x))
	for i, v := range x {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
	}
	return b
}

func toF32(b []byte) []float32 {
	x := make([]float32, len(b)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return x
}
