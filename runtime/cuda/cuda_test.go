package cuda

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/zincc-dev/zincc/plans"
)

// TestLayout holds structures against cuda.h.
func TestLayout(t *testing.T) {
	var c launchConfig
	for _, f := range []struct {
		name       string
		have, want uintptr
	}{
		{"CUlaunchConfig", unsafe.Sizeof(c), 56},
		{"hStream", unsafe.Offsetof(c.stream), 32},
		{"attrs", unsafe.Offsetof(c.attributes), 40},
		{"numAttrs", unsafe.Offsetof(c.count), 48},
		{"CUlaunchAttribute", unsafe.Sizeof(launchAttribute{}), 72},
		{"value", unsafe.Offsetof(launchAttribute{}.value), 8},
	} {
		if f.have != f.want {
			t.Errorf("%s: %d, want %d", f.name, f.have, f.want)
		}
	}
}

// TestSymbols checks that each function has a name, and no two the same.
func TestSymbols(t *testing.T) {
	seen := map[string]bool{}
	for i, name := range symbols {
		if !strings.HasPrefix(name, "cu") || seen[name] {
			t.Errorf("function %d: name %q", i, name)
		}
		seen[name] = true
	}
}

// TestErrors checks the names of errors, and what is said of them, where no driver can say them.
func TestErrors(t *testing.T) {
	withoutDriver(t)
	for e, want := range map[Error]string{
		outOfMemory: "CUDA_ERROR_OUT_OF_MEMORY", 12345: "CUDA error 12345", 700: "CUDA error 700: the device is lost to this process",
		803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: the driver's library and its kernel module are of different versions: restart the computer",
	} {
		if got := explained(e).Error(); got != want {
			t.Errorf("%d: %q, want %q", int32(e), got, want)
		}
	}
}

// withoutDriver has the package find no library.
func withoutDriver(t *testing.T) {
	before := load
	load = func() (*library, error) {
		return newLibrary(func() (uintptr, error) { return 0, absent{errors.New("libcuda.so.1: not there")} }, librarySymbol)
	}
	t.Cleanup(func() { load = before })
}

// TestNoDriver checks what people see on a computer without one.
func TestNoDriver(t *testing.T) {
	withoutDriver(t)
	if _, err := Enumerate(); !errors.Is(err, ErrNoDriver) {
		t.Errorf("%v", err)
	}
	need := plans.Requirements{Backend: plans.CUDA, CUDA: &plans.CUDARequirements{Arch: 90}}
	for _, index := range []int{-1, 0} {
		_, err := NewExecutor(t.Context(), index, &plans.Plan{Require: need}, nil, nil)
		if err == nil || !strings.HasPrefix(err.Error(), "no CUDA driver: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v", err)
		}
	}
}

// TestDrivers checks what people see of drivers that cannot be used.
func TestDrivers(t *testing.T) {
	opens := func() (uintptr, error) { return 1, nil }
	for _, c := range []struct {
		open   func() (uintptr, error)
		lacks  string // a function
		absent bool
		want   string
	}{
		{func() (uintptr, error) { return 0, absent{errors.New("libcuda.so.1: not there")} }, "", true, "no CUDA driver: libcuda.so.1: not there"},
		{func() (uintptr, error) { return 0, errors.New("libcuda.so.1: file too short") }, "", false, "the CUDA driver cannot be loaded: libcuda.so.1: file too short"},
		{opens, "cuLaunchKernelEx", false, "the CUDA driver is too old: it has no cuLaunchKernelEx (CUDA 12 has)"},
		{opens, "", false, ""},
	} {
		_, err := newLibrary(c.open, func(_ uintptr, name string) (uintptr, error) {
			if name == c.lacks {
				return 0, errors.New("undefined symbol")
			}
			return 1, nil
		})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want || errors.Is(err, ErrNoDriver) != c.absent {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestEnumerate checks what is read of devices, which one is taken, and what happens without one.
func TestEnumerate(t *testing.T) {
	f := withFake(t, fakeInfo{name: "NVIDIA GeForce RTX 3060", arch: 86, memory: 12 << 30, free: 11 << 30}, fakeInfo{name: "NVIDIA GeForce RTX 4090", arch: 89, memory: 24 << 30, unsupported: []uintptr{139, 13}},
		fakeInfo{name: "Orin", arch: 87, memory: 64 << 30, integrated: true})
	all, err := Enumerate()
	if err != nil || len(all) != 3 {
		t.Fatalf("%v, %v", all, err)
	}
	want := Info{Backend: plans.CUDA, Name: "NVIDIA GeForce RTX 3060", Type: "discrete", VendorID: 0x10de, DeviceID: 0x2335, UUID: "01" + strings.Repeat("0", 30), Bus: "1b:00",
		Arch: 86, Driver: 13000, Units: 132, Clock: 1980000, Memory: 12 << 30, Cache: 50 << 20, Shared: 48 << 10, Optional: 227 << 10}
	if all[0] != want {
		t.Errorf("%+v, want %+v", all[0], want)
	}
	if all[1].DeviceID != 0 || all[1].Clock != 0 || all[1].Arch != 89 || all[2].Type != "integrated" {
		t.Errorf("%+v", all[1:])
	}
	if err := all[0].ReadFree(); err != nil || all[0].Free != 11<<30 {
		t.Errorf("%d free, %v", all[0].Free, err)
	}
	for arch, want := range map[int]int{80: 1, 87: 1, 89: 1} { // the discrete one with the most memory
		if got, err := choose(plans.Requirements{Backend: plans.CUDA, CUDA: &plans.CUDARequirements{Arch: arch}}); got != want || err != nil {
			t.Errorf("sm_%d: device %d, %v", arch, got, err)
		}
	}
	_, err = choose(plans.Requirements{Backend: plans.CUDA, CUDA: &plans.CUDARequirements{Arch: 90}})
	if err == nil || err.Error() != "device cuda:1, NVIDIA GeForce RTX 4090, is sm_89, sm_90 is needed" {
		t.Errorf("%v", err)
	}
	if _, err := Open(3, plans.Requirements{}); err == nil || err.Error() != "there is no device cuda:3: CUDA lists 3" {
		t.Errorf("%v", err)
	}
	if left := f.leaked(); left != nil {
		t.Errorf("left: %v", left)
	}
	withFake(t).infos = []fakeInfo{}
	if all, err := Enumerate(); len(all) != 0 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
	f = withFake(t)
	f.failAt, f.fails = 1, noDevice // as cuInit says it
	if all, err := Enumerate(); len(all) != 0 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
	f = withFake(t)
	f.failAt, f.fails = 1, 803
	if _, err := Enumerate(); err == nil || !strings.HasPrefix(err.Error(), "the CUDA driver does not start: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: ") {
		t.Errorf("%v", err)
	}
}

// TestTooLittleMemory checks that a plan is refused before anything is read.
func TestTooLittleMemory(t *testing.T) {
	f := withFake(t, fakeInfo{name: "Z1", arch: 90, memory: 8 << 30, free: 1 << 30})
	plan := counter()
	plan.Require.Memory = 3 << 30
	_, err := NewExecutor(t.Context(), -1, plan, nil, nil)
	if err == nil || err.Error() != "device Z1: the plan needs 3.00 GiB of device memory, of 8.00 GiB only 1.00 GiB are free" {
		t.Errorf("%v", err)
	}
	if left := f.leaked(); left != nil || f.live["memory"] != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestProbe checks that a probe measures what targets are made of, and leaves nothing.
func TestProbe(t *testing.T) {
	f := withFake(t)
	r, err := Probe(t.Context(), Info{})
	if err != nil || !(r.ReadBandwidth > 0) || r.ReadWorkgroups == 0 || len(r.Dispatches) != len(probeWorkgroups) || !(r.SubmitBest > 0) || r.SubmitMean < r.SubmitBest {
		t.Errorf("%+v, %v", r, err)
	}
	if left := f.leaked(); left != nil {
		t.Errorf("left: %v", left)
	}
	for n := 1; n <= f.calls; n += 17 {
		f := withFake(t)
		f.failAt, f.fails = n, outOfMemory
		if _, err := Probe(t.Context(), Info{}); err != nil && f.leaked() != nil {
			t.Errorf("call %d, %v: left %v", n, err, f.leaked())
		}
	}
}

// TestCheck holds a device against what plans need.
func TestCheck(t *testing.T) {
	device := Info{Index: 1, Name: "Z1", Arch: 86, Memory: 8 << 30, Shared: 48 << 10}
	for _, c := range []struct {
		need plans.CUDARequirements
		mem  int64
		want string
	}{
		{plans.CUDARequirements{Arch: 80, Workgroup: 1024, Shared: 48 << 10}, 1 << 30, ""},
		{plans.CUDARequirements{Arch: 90}, 1 << 30, "device cuda:1, Z1, is sm_86, sm_90 is needed"},
		{plans.CUDARequirements{Arch: 86, Exact: true}, 1 << 30, ""},
		{plans.CUDARequirements{Arch: 80, Exact: true}, 1 << 30, "device cuda:1, Z1, is sm_86, and the plan is for sm_80a alone: compile for sm_86"},
		{plans.CUDARequirements{Arch: 80, Shared: 64 << 10}, 1 << 30, "device cuda:1, Z1, has 49152 bytes of shared memory, 65536 are needed"},
		{plans.CUDARequirements{Arch: 80}, 9 << 30, "device cuda:1, Z1, has 8589934592 bytes of device memory, 9663676416 are needed"},
	} {
		got := ""
		if err := device.Check(plans.Requirements{Backend: plans.CUDA, Memory: c.mem, CUDA: &c.need}); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.need, got, c.want)
		}
	}
}

// TestSharedMemory holds that kernels ask for shared memory beyond what they declare, for all of it, and for none
// otherwise.
func TestSharedMemory(t *testing.T) {
	f := withFake(t)
	dr, err := load()
	if err != nil {
		t.Fatal(err)
	}
	d := &Device{lib: dr}
	for _, c := range []struct{ shared, want int }{{0, 0}, {mostDeclared - 4, 0}, {mostDeclared, 0}, {mostDeclared + 4, mostDeclared + 4}, {200 << 10, 200 << 10}} {
		clear(f.asked)
		k, err := d.function("k", "main", 32, c.shared, []byte("inc\n"))
		if err != nil {
			t.Fatal(err)
		}
		if k.shared != c.want || f.asked[k.handle] != c.want {
			t.Errorf("%d bytes: launches ask for %d, the function for %d, want %d", c.shared, k.shared, f.asked[k.handle], c.want)
		}
	}
}

// TestCache checks that machine code is kept for one architecture and driver, and made again where somebody else has
// written it.
func TestCache(t *testing.T) {
	f := withFake(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dr, err := load()
	if err != nil {
		t.Fatal(err)
	}
	compiled := func(info Info) bool {
		t.Helper()
		before := f.handles
		code, err := (&Device{lib: dr, info: info}).machineCode([]byte("ptx"))
		if err != nil || strings.TrimRight(string(code), "\x00") != "ptx" {
			t.Fatalf("%q, %v", code, err)
		}
		return f.handles != before // of a link
	}
	sm90 := Info{Arch: 90, Driver: 13000}
	for _, c := range []struct {
		info Info
		want bool
	}{{sm90, true}, {sm90, false}, {Info{Arch: 89, Driver: 13000}, true}, {Info{Arch: 90, Driver: 12080}, true}, {sm90, false}} {
		if have := compiled(c.info); have != c.want {
			t.Errorf("%+v: compiled %t, want %t", c.info, have, c.want)
		}
	}
	kept, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "zincc", "cubins", "sm_90-13000", "*.cubin"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%q, %v", kept, err)
	}
	sum := sha256.Sum256([]byte("evil"))
	for _, planted := range [][]byte{nil, []byte("evil"), append(sum[:], "evil"...)} {
		if err := os.WriteFile(kept[0], planted, 0o600); err != nil {
			t.Fatal(err)
		}
		if !compiled(sm90) || compiled(sm90) {
			t.Errorf("%d bytes that somebody has planted: not made again, once", len(planted))
		}
	}
}
