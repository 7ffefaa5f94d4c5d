package cuda

import (
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

// TestErrors checks the names of errors where no driver can say them.
func TestErrors(t *testing.T) {
	if _, err := load(); err == nil {
		t.Skip("a driver names them")
	}
	for e, want := range map[Error]string{outOfMemory: "CUDA_ERROR_OUT_OF_MEMORY", 12345: "CUDA error 12345"} {
		if e.Error() != want {
			t.Errorf("%d: %q, want %q", int32(e), e.Error(), want)
		}
	}
}

// TestNoDriver checks what people see on a computer without one.
func TestNoDriver(t *testing.T) {
	if _, err := load(); err == nil {
		t.Skip("there is a driver")
	}
	need := plans.Requirements{Backend: plans.CUDA, CUDA: &plans.CUDARequirements{Arch: 90}}
	for _, index := range []int{-1, 0} {
		_, err := NewExecutor(t.Context(), index, &plans.Plan{Require: need}, nil, nil)
		if err == nil || !strings.HasPrefix(err.Error(), "no CUDA driver: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v", err)
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

// TestCache checks that machine code is kept, and not taken from a file that is damaged.
func TestCache(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	d := &Device{Info: Info{Arch: 90, Driver: 13000}}
	path, err := d.cached([]byte("ptx"))
	if err != nil {
		t.Fatal(err)
	}
	if readCached(path) != nil {
		t.Error("code of nothing")
	}
	writeCached(path, []byte("code"))
	if got := string(readCached(path)); got != "code" {
		t.Errorf("%q", got)
	}
	for _, other := range []*Device{{Info: Info{Arch: 89, Driver: 13000}}, {Info: Info{Arch: 90, Driver: 12080}}} {
		if again, _ := other.cached([]byte("ptx")); again == path {
			t.Errorf("%+v has the same file", other.Info)
		}
	}
	data, _ := os.ReadFile(path)
	for _, damaged := range [][]byte{nil, data[:10], data[:len(data)-1], append([]byte{data[0] ^ 1}, data[1:]...)} {
		other := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(other, damaged, 0o666); err != nil {
			t.Fatal(err)
		}
		if readCached(other) != nil {
			t.Errorf("%d bytes are taken", len(damaged))
		}
	}
}
