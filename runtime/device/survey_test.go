package device

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/gpu"
	"github.com/zincc-dev/zincc/internal/private"
	"github.com/zincc-dev/zincc/internal/processor"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/cuda"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

// recorded is what `zincrun probe --json` prints of a device.
func recorded(t *testing.T, index int, name, kind string, vendor, id uint32, gb int, api string) vulkan.DeviceInfo {
	t.Helper()
	var info vulkan.DeviceInfo
	text := fmt.Sprintf(`{"index":%d,"name":%q,"type":%q,"vendor_id":%d,"device_id":%d,"api":%q,
		"heaps":[{"size":%d,"free":%d,"device_local":true}],"subgroup":{"default":32,"min":32,"max":32},
		"features":{"bufferDeviceAddress":true,"timelineSemaphore":true,"vulkanMemoryModel":true}}`,
		index, name, kind, vendor, id, api, gb<<30, (gb-1)<<30)
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		t.Fatal(err)
	}
	return info
}

// recordedCUDA is the same through CUDA; uuid is that of the same device through Vulkan, if it is there.
func recordedCUDA(index int, name, kind, uuid string, arch, units, gb int) cuda.Info {
	return cuda.Info{
		Index: index, Backend: plans.CUDA, Name: name, Type: kind, VendorID: gpu.NVIDIA, UUID: uuid, Arch: arch, Driver: 13000,
		Units: units, Memory: uint64(gb) << 30, Free: uint64(gb-1) << 30, Shared: 48 << 10,
	}
}

// same gives a device of Vulkan the UUID of one of CUDA.
func same(v vulkan.DeviceInfo, c cuda.Info) vulkan.DeviceInfo {
	v.UUID = c.UUID
	return v
}

// TestSurvey checks which device is taken, through what, and why the others are not.
func TestSurvey(t *testing.T) {
	nvidia := recorded(t, 0, "NVIDIA GeForce RTX 4090", "discrete", 0x10de, 0x2684, 24, "1.3.280")
	small := recorded(t, 1, "NVIDIA GeForce RTX 3060", "discrete", 0x10de, 0x2503, 12, "1.3.280")
	pascal := recorded(t, 0, "NVIDIA GeForce GTX 1080", "discrete", 0x10de, 0x1b80, 8, "1.3.280")
	integrated := recorded(t, 0, "Intel(R) UHD Graphics 770", "integrated", 0x8086, 0x4680, 32, "1.3.280")
	discrete := recorded(t, 1, "AMD Radeon RX 9070 XT", "discrete", 0x1002, 0x7550, 16, "1.3.280")
	old := recorded(t, 0, "AMD Radeon HD 7850", "discrete", 0x1002, 0x6819, 2, "1.1.0")
	lavapipe := recorded(t, 2, "llvmpipe", "cpu", 0x10005, 0, 16, "1.4.305")
	unknown := recorded(t, 0, "Z1", "discrete", 7, 7, 8, "1.3.0")

	rtx4090 := recordedCUDA(0, "NVIDIA GeForce RTX 4090", "discrete", "a1", 89, 128, 24)
	rtx3060 := recordedCUDA(1, "NVIDIA GeForce RTX 3060", "discrete", "a2", 86, 28, 12)
	a100 := recordedCUDA(0, "NVIDIA A100-SXM4-40GB", "discrete", "a3", 80, 108, 40)
	h100 := recordedCUDA(0, "NVIDIA H100 80GB HBM3", "discrete", "a4", 90, 132, 80)
	h200 := recordedCUDA(0, "NVIDIA H200", "discrete", "a5", 90, 132, 140)
	rtx5090 := recordedCUDA(0, "NVIDIA GeForce RTX 5090", "discrete", "a6", 120, 170, 32)
	t4 := recordedCUDA(0, "Tesla T4", "discrete", "a7", 75, 40, 15)
	orin := recordedCUDA(0, "Orin", "integrated", "a8", 87, 16, 30)
	gtx1080 := recordedCUDA(0, "NVIDIA GeForce GTX 1080", "discrete", "a9", 61, 20, 8)

	absent := fmt.Errorf("%w: libcuda.so.1: cannot open shared object file: No such file or directory", cuda.ErrNoDriver)
	broken := errors.New("the CUDA driver cannot be loaded: libcuda.so.1: file too short")
	mismatch := errors.New("the CUDA driver does not start: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: the driver's library")
	oldDriver := errors.New("the CUDA driver is too old: it has no cuLaunchKernelEx (CUDA 12 has)")
	noVulkan := errors.New("no Vulkan driver: libvulkan.so.1: cannot open")
	lacking := errors.New("this processor lacks avx2")
	type list = []vulkan.DeviceInfo
	type cudas = []cuda.Info

	const isGPU = "|cpu ARCH false N is a GPU|host  false N is a GPU"
	after := func(rows, used string) string { return rows + strings.ReplaceAll(isGPU, "N", used) }
	for _, c := range []struct {
		name   string
		system System
		want   string // a row of each: name, architecture, whether it is used, part of why; also: other names
		note   string // part of what people are told where nobody names a device
	}{
		{"one GPU", System{Vulkan: list{nvidia}, CUDAErr: absent},
			after("vulkan:0 sm_89 true the best device here; not through CUDA: no CUDA driver", "vulkan:0"), "NVIDIA GeForce RTX 4090 is used through Vulkan, which is slower there: no CUDA driver: "},
		{"integrated listed first", System{Vulkan: list{integrated, discrete}, CUDAErr: absent},
			after("vulkan:1 gfx1201 true the best|vulkan:0 xe false vulkan:1 is discrete", "vulkan:1"), ""},
		{"two of a kind", System{Vulkan: list{small, nvidia}, CUDAErr: absent},
			after("vulkan:0 sm_89 true the best|vulkan:1 sm_86 false vulkan:0 has as much", "vulkan:0"), "is used through Vulkan"},
		{"the best is too old", System{Vulkan: list{old, discrete}, CUDAErr: absent},
			after("vulkan:1 gfx1201 true the best|vulkan:0  false device AMD Radeon HD 7850: its driver is for Vulkan 1.1.0", "vulkan:1"), ""},
		{"only too old", System{Vulkan: list{old, lavapipe}, CUDAErr: absent},
			"vulkan:0  false device AMD Radeon HD 7850: its driver|vulkan:2 llvmpipe false the processor|cpu ARCH true device AMD Radeon HD 7850: its driver|host  false it is for", "its driver is for Vulkan 1.1.0"},
		{"only a processor", System{Vulkan: list{lavapipe}, CUDAErr: absent}, "vulkan:2 llvmpipe false the processor|cpu ARCH true no GPU|host  false it is for", "no GPU that can run plans"},
		{"not published", System{Vulkan: list{unknown}, CUDAErr: absent}, after("vulkan:0  true the best", "vulkan:0"), ""},
		{"no device", System{CUDAErr: absent}, "cpu ARCH true Vulkan lists no device|host  false it is for", "Vulkan lists no device"},
		{"broken driver", System{VulkanErr: noVulkan, CUDAErr: absent},
			"cpu ARCH true no Vulkan driver: libvulkan.so.1: cannot open, and no driver for CUDA|host  false it is for", "no Vulkan driver: "},
		{"no code for it", System{CUDAErr: absent, Processor: lacking},
			"cpu ARCH false this processor lacks avx2|host  true Vulkan lists no device, and this processor lacks avx2", "Vulkan lists no device, and this processor lacks avx2"},

		{"RTX 4090 through both", System{Vulkan: list{same(nvidia, rtx4090)}, CUDA: cudas{rtx4090}}, after("cuda:0 sm_89 true the best also vulkan:0", "cuda:0"), ""},
		{"RTX 3060 without Vulkan", System{VulkanErr: noVulkan, CUDA: cudas{rtx3060}}, after("cuda:1 sm_86 true the best", "cuda:1"), ""},
		{"A100", System{CUDA: cudas{a100}}, after("cuda:0 sm_80 true the best", "cuda:0"), ""},
		{"H100", System{CUDA: cudas{h100}}, after("cuda:0 sm_90 true the best", "cuda:0"), ""},
		{"H200", System{CUDA: cudas{h200}}, after("cuda:0 sm_90 true the best", "cuda:0"), ""},
		{"RTX 5090", System{CUDA: cudas{rtx5090}}, after("cuda:0 sm_120 true the best", "cuda:0"), ""},
		{"T4", System{CUDA: cudas{t4}}, after("cuda:0 sm_75 true the best", "cuda:0"), ""},
		{"integrated, of no published architecture", System{CUDA: cudas{orin}, Vulkan: list{lavapipe}}, after("cuda:0 sm_87 true the best|vulkan:2 llvmpipe false the processor", "cuda:0"), ""},
		{"WSL2", System{Vulkan: list{lavapipe}, CUDA: cudas{rtx3060}}, after("cuda:1 sm_86 true the best|vulkan:2 llvmpipe false the processor through Vulkan", "cuda:1"), ""},
		{"two of NVIDIA", System{Vulkan: list{same(small, rtx3060), same(nvidia, rtx4090)}, CUDA: cudas{rtx4090, rtx3060}},
			after("cuda:0 sm_89 true the best also vulkan:0|cuda:1 sm_86 false cuda:0 has as much memory or more also vulkan:1", "cuda:0"), ""},
		{"a larger one of AMD", System{Vulkan: list{same(small, rtx3060), discrete}, CUDA: cudas{rtx3060}},
			after("vulkan:1 gfx1201 true the best|cuda:1 sm_86 false vulkan:1 has as much memory or more also vulkan:1", "vulkan:1"), ""},
		{"a smaller one of AMD", System{Vulkan: list{discrete, same(nvidia, rtx4090)}, CUDA: cudas{rtx4090}},
			after("cuda:0 sm_89 true the best also vulkan:0|vulkan:1 gfx1201 false cuda:0 has", "cuda:0"), ""},
		{"integrated beside NVIDIA", System{Vulkan: list{integrated}, CUDA: cudas{rtx3060}}, after("cuda:1 sm_86 true the best|vulkan:0 xe false cuda:1 is discrete", "cuda:1"), ""},
		{"too old for CUDA", System{Vulkan: list{same(pascal, gtx1080)}, CUDA: cudas{gtx1080}},
			after("vulkan:0  true the best device here; not through CUDA: device cuda:0, NVIDIA GeForce GTX 1080, is sm_61, sm_75 is needed also cuda:0", "vulkan:0"), "is sm_61, sm_75 is needed"},
		{"too old for CUDA, no Vulkan", System{VulkanErr: noVulkan, CUDA: cudas{gtx1080}},
			"cuda:0 sm_61 false device cuda:0, NVIDIA GeForce GTX 1080, is sm_61, sm_75 is needed|cpu ARCH true device cuda:0, NVIDIA GeForce GTX 1080, is sm_61, sm_75 is needed; no Vulkan driver|host  false it is", "is sm_61"},
		{"old driver", System{Vulkan: list{nvidia}, CUDAErr: oldDriver}, after("vulkan:0 sm_89 true the best device here; not through CUDA: the CUDA driver is too old", "vulkan:0"), "which is slower there: the CUDA driver is too old"},
		{"old driver without Vulkan", System{VulkanErr: noVulkan, CUDAErr: oldDriver},
			"cpu ARCH true the CUDA driver is too old: it has no cuLaunchKernelEx (CUDA 12 has); no Vulkan driver|host  false it is", "the CUDA driver is too old"},
		{"a driver without devices", System{Vulkan: list{lavapipe}}, "vulkan:2 llvmpipe false the processor|cpu ARCH true no GPU|host  false it is for", "no GPU"},
		{"a driver without devices, nor Vulkan's", System{}, "cpu ARCH true neither CUDA nor Vulkan lists a device|host  false it is for", "neither CUDA nor Vulkan"},
		{"broken library", System{Vulkan: list{lavapipe}, CUDAErr: broken},
			"vulkan:2 llvmpipe false the processor|cpu ARCH true the CUDA driver cannot be loaded: libcuda.so.1: file too short|host  false it is for", "file too short"},
		{"versions that do not fit", System{Vulkan: list{nvidia}, CUDAErr: mismatch},
			after("vulkan:0 sm_89 true the best device here; not through CUDA: the CUDA driver does not start: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "vulkan:0"), "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
		{"hidden from CUDA", System{Vulkan: list{nvidia}}, after("vulkan:0 sm_89 true the best device here; not through CUDA: CUDA does not list it", "vulkan:0"), "CUDA does not list it"},
	} {
		found := c.system.Survey()
		want := strings.Split(strings.ReplaceAll(c.want, "ARCH", processor.Arch), "|")
		if len(found) != len(want) {
			t.Errorf("%s: %+v, want %d rows", c.name, found, len(want))
			continue
		}
		used := ""
		for i, f := range found {
			row, also, _ := strings.Cut(want[i], " also ")
			var names []string
			for _, a := range f.Also {
				names = append(names, a.Name)
			}
			if have := fmt.Sprintf("%s %s %v %s", f.Name, f.Arch, f.Use, f.Why); !strings.HasPrefix(have, row) || strings.Join(names, " ") != also {
				t.Errorf("%s: row %d is %q, also %q, want %q", c.name, i, have, names, want[i])
			}
			if f.Use {
				used += f.Name
			}
			if f.Why == "" || strings.Contains(f.Why, "\n") {
				t.Errorf("%s: %s: why is %q", c.name, f.Name, f.Why)
			}
		}
		choice, note, err := c.system.Select("auto")
		if err != nil || choice.Name() != used || !strings.Contains(note, c.note) || (note == "") != (c.note == "") {
			t.Errorf("%s: auto is %v, %q, %v, the survey takes %q, want a note %q", c.name, choice, note, err, used, c.note)
		}
	}
}

// TestSelect checks what devices' names stand for.
func TestSelect(t *testing.T) {
	nvidia := recordedCUDA(0, "NVIDIA GeForce RTX 4090", "discrete", "a1", 89, 128, 24)
	small := recordedCUDA(1, "NVIDIA GeForce RTX 3060", "discrete", "a2", 86, 28, 12)
	old := recordedCUDA(0, "NVIDIA GeForce GTX 1080", "discrete", "a9", 61, 20, 8)
	amd := recorded(t, 1, "AMD Radeon RX 9070 XT", "discrete", 0x1002, 0x7550, 16, "1.3.280")
	both := System{CUDA: []cuda.Info{nvidia, small}, Vulkan: []vulkan.DeviceInfo{same(recorded(t, 0, "NVIDIA GeForce RTX 4090", "discrete", 0x10de, 0x2684, 24, "1.3.280"), nvidia), amd}}
	failed := System{CUDAErr: errors.New("no CUDA driver: x"), VulkanErr: errors.New("no Vulkan driver: y")}
	for _, c := range []struct {
		system System
		name   string
		want   string // name, or part of the error
	}{
		{both, "auto", "cuda:0"},
		{both, "cuda", "cuda:0"},
		{both, "cuda:1", "cuda:1"},
		{both, "cuda:2", "cuda:2: there are 2 CUDA devices"},
		{both, "vulkan", "vulkan:0"},
		{both, "vulkan:1", "vulkan:1"},
		{both, "vulkan:7", "vulkan:7: there are 2 Vulkan devices"},
		{both, "cpu", "cpu"},
		{both, "host", "host"},
		{both, "metal", "unknown device"},
		{both, "cpu:0", "unknown device"},
		{System{CUDA: []cuda.Info{old}}, "cuda", "device cuda:0, NVIDIA GeForce GTX 1080, is sm_61, sm_75 is needed"},
		{System{CUDA: []cuda.Info{nvidia}}, "vulkan", "Vulkan lists no device"},
		{System{Vulkan: []vulkan.DeviceInfo{amd}}, "cuda", "CUDA lists no device"},
		{failed, "cuda", "no CUDA driver: x"},
		{failed, "cuda:0", "no CUDA driver: x"},
		{failed, "vulkan", "no Vulkan driver: y"},
		{failed, "auto", "cpu"},
	} {
		got := ""
		if choice, _, err := c.system.Select(c.name); err != nil {
			got = err.Error()
		} else if got = choice.Name(); choice.Identity() == "" || choice.IsGPU() != strings.Contains(got, ":") {
			t.Errorf("%s: %+v", c.name, choice)
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestName checks what --device and --backend stand for together.
func TestName(t *testing.T) {
	for _, c := range []struct{ device, backend, want string }{
		{"", "", "auto"}, {"auto", "cuda", "cuda"}, {"", "vulkan", "vulkan"}, {"auto", "cpu", "cpu"}, {"cuda:1", "cuda", "cuda:1"}, {"host", "", "host"},
		{"vulkan:0", "cuda", "--backend cuda does not run on device vulkan:0"},
		{"auto", "metal", `--backend: unknown backend "metal": want cuda, vulkan, cpu or host`},
		{"x", "", `--device: unknown device "x": want auto, cuda, cuda:I, vulkan, vulkan:I, cpu or host`},
	} {
		got, err := Name(c.device, c.backend)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q, %q: %q, want %q", c.device, c.backend, got, c.want)
		}
	}
}

// TestProbeCache checks that a device is measured once, and again with another driver or where the
// file is damaged.
func TestProbeCache(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	info := recorded(t, 0, "Z1", "discrete", 7, 7, 8, "1.3.0")
	choice := &Choice{Backend: plans.Vulkan, vulkan: &info}
	cache, err := private.Open("probes")
	if err != nil {
		t.Fatal(err)
	}
	file := choice.probeFile()
	want := &runtime.ProbeResult{ReadBandwidth: 1e11, Dispatches: []runtime.DispatchProbe{{Workgroups: 1, Barrier: 1e-6}}, Fragments: true}
	writeProbe(cache, file, want)
	got, err := choice.Probe(t.Context())
	if err != nil || got.Vulkan.Name != "Z1" || got.Probe.ReadBandwidth != 1e11 || !got.Probe.Fragments {
		t.Errorf("kept probe: %+v, %v", got, err)
	}
	other := info
	other.DriverVersion++
	if (&Choice{Backend: plans.Vulkan, vulkan: &other}).probeFile() == file {
		t.Error("another driver has the same file")
	}
	// The same device through CUDA is measured by itself.
	card := recordedCUDA(0, "Z1", "discrete", info.UUID, 90, 132, 8)
	if (&Choice{Backend: plans.CUDA, cuda: &card}).probeFile() == file {
		t.Error("another backend has the same file")
	}
	for _, damaged := range []string{"", "{", "{}", `{"read_bandwidth":1e11}`} {
		if err := cache.Write("damaged.json", []byte(damaged)); err != nil {
			t.Fatal(err)
		}
		if r := readProbe(cache, "damaged.json"); r != nil {
			t.Errorf("%q is read as %+v", damaged, r)
		}
	}
	whole, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cache.Path("planted.json"), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := readProbe(cache, "planted.json"); r != nil {
		t.Errorf("a file that zincrun has not written is read as %+v", r)
	}
}
