package kerneltest

import (
	"crypto/sha256"
	"sync"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	kernelspirv "github.com/zincc-dev/zincc/codegen/kernel/spirv"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/spirv"
)

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

// Lowered builds a candidate and returns its constants by id and a module that is valid, where there is one.
func Lowered(t testing.TB, c kernels.Candidate) (f *kernel.Func, spec map[uint32]uint32, module []uint32) {
	t.Helper()
	f, spec = build(t, c)
	if !f.Groups && !f.TF32 && !f.Bytes && !f.Tiles { // which only PTX has, or processors
		module = lower(t, c, f)
	}
	return f, spec, module
}

// valid are the paths through the lowering that spirv-val has seen.
var valid = struct {
	sync.Mutex
	paths
}{paths: paths{}}

// lower returns the kernel's module. spirv-val, which takes longer than all else here, looks at those that show it
// something.
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

// Builds builds a candidate for a target: its module is that of all candidates of its name, and its sizes, with its
// constants, are within the limits of the target, of whose shared memory it may have some.
func Builds(t testing.TB, on *target.Target, some int, c kernels.Candidate) {
	t.Helper()
	f, spec, module := Lowered(t, c)
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
