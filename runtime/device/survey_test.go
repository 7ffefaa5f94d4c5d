package device

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/internal/processor"
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

// TestSurvey checks which device is taken and why the others are not.
func TestSurvey(t *testing.T) {
	nvidia := recorded(t, 0, "NVIDIA GeForce RTX 4090", "discrete", 0x10de, 0x2684, 24, "1.3.280")
	small := recorded(t, 1, "NVIDIA GeForce RTX 3060", "discrete", 0x10de, 0x2503, 12, "1.3.280")
	integrated := recorded(t, 0, "Intel(R) UHD Graphics 770", "integrated", 0x8086, 0x4680, 32, "1.3.280")
	discrete := recorded(t, 1, "AMD Radeon RX 9070 XT", "discrete", 0x1002, 0x7550, 16, "1.3.280")
	old := recorded(t, 0, "AMD Radeon HD 7850", "discrete", 0x1002, 0x6819, 2, "1.1.0")
	lavapipe := recorded(t, 2, "llvmpipe", "cpu", 0x10005, 0, 16, "1.4.305")
	unknown := recorded(t, 0, "Z1", "discrete", 7, 7, 8, "1.3.0")
	for _, c := range []struct {
		name             string
		infos            []vulkan.DeviceInfo
		failed, unusable error
		want             string // a row of each: name, architecture, whether it is used, part of why
	}{
		{"one GPU", []vulkan.DeviceInfo{nvidia}, nil, nil, "vulkan:0 sm_89 true the best|cpu ARCH false vulkan:0 is a GPU|host  false vulkan:0 is a GPU"},
		{"integrated listed first", []vulkan.DeviceInfo{integrated, discrete}, nil, nil,
			"vulkan:1 gfx1201 true the best|vulkan:0 xe false vulkan:1 is discrete|cpu ARCH false vulkan:1 is a GPU|host  false vulkan:1 is a GPU"},
		{"two of a kind", []vulkan.DeviceInfo{small, nvidia}, nil, nil,
			"vulkan:0 sm_89 true the best|vulkan:1 sm_86 false vulkan:0 has as much|cpu ARCH false vulkan:0 is a GPU|host  false vulkan:0 is a GPU"},
		{"the best is too old", []vulkan.DeviceInfo{old, small}, nil, nil,
			"vulkan:1 sm_86 true the best|vulkan:0  false device AMD Radeon HD 7850: its driver is for Vulkan 1.1.0|cpu ARCH false vulkan:1 is a GPU|host  false vulkan:1 is a GPU"},
		{"only too old", []vulkan.DeviceInfo{old, lavapipe}, nil, nil,
			"vulkan:0  false device AMD Radeon HD 7850: its driver|vulkan:2 llvmpipe false the processor|cpu ARCH true device AMD Radeon HD 7850: its driver|host  false it is for"},
		{"only a processor", []vulkan.DeviceInfo{lavapipe}, nil, nil, "vulkan:2 llvmpipe false the processor|cpu ARCH true no GPU|host  false it is for"},
		{"not published", []vulkan.DeviceInfo{unknown}, nil, nil, "vulkan:0  true the best|cpu ARCH false vulkan:0 is a GPU|host  false vulkan:0 is a GPU"},
		{"no device", nil, nil, nil, "cpu ARCH true Vulkan lists no device|host  false it is for"},
		{"broken driver", nil, errors.New("no Vulkan driver: libvulkan.so.1: cannot open"), nil, "cpu ARCH true no Vulkan driver: libvulkan|host  false it is for"},
		{"no code for it", nil, nil, errors.New("this processor lacks avx2"), "cpu ARCH false this processor lacks avx2|host  true Vulkan lists no device, and this processor lacks avx2"},
	} {
		found := Survey(c.infos, c.failed, c.unusable)
		want := strings.Split(strings.ReplaceAll(c.want, "ARCH", processor.Arch), "|")
		if len(found) != len(want) {
			t.Errorf("%s: %+v, want %d rows", c.name, found, len(want))
			continue
		}
		for i, f := range found {
			if have := fmt.Sprintf("%s %s %v %s", f.Name, f.Arch, f.Use, f.Why); !strings.HasPrefix(have, want[i]) {
				t.Errorf("%s: row %d is %q, want %q", c.name, i, have, want[i])
			}
		}
	}
}

// TestProbeCache checks that a device is measured once, and again with another driver or where the
// file is damaged.
func TestProbeCache(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	info := recorded(t, 0, "Z1", "discrete", 7, 7, 8, "1.3.0")
	path, err := probePath(info)
	if err != nil {
		t.Fatal(err)
	}
	want := &vulkan.ProbeResult{ReadBandwidth: 1e11, Dispatches: []vulkan.DispatchProbe{{Workgroups: 1, Barrier: 1e-6}}, Fragments: true}
	writeProbe(path, want)
	got, err := Probe(t.Context(), info)
	if err != nil || got.Name != "Z1" || got.Probe.ReadBandwidth != 1e11 || !got.Probe.Fragments {
		t.Errorf("kept probe: %+v, %v", got, err)
	}
	other := info
	other.DriverVersion++
	if again, _ := probePath(other); again == path {
		t.Error("another driver has the same file")
	}
	for _, damaged := range []string{"", "{", "{}", `{"read_bandwidth":1e11}`} {
		if r := readProbe(writeFile(t, damaged)); r != nil {
			t.Errorf("%q is read as %+v", damaged, r)
		}
	}
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "probe.json")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}
