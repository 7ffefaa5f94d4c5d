package target

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/gpu"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// card is a device as its driver shows it, with the figures that its maker publishes.
type card struct {
	name           string
	kind           string // as Vulkan has it
	vendor, device uint32
	units          int
	gb, bandwidth  float64 // GB, GB/s
	waves          [3]int  // smallest, default, largest
	matrix         bool    // 16x16x16 of f16
}

// json is what `zincrun probe --json` prints of the card.
func (c card) json() string {
	matrices := ""
	if c.matrix {
		matrices = `"cooperative_matrix":[{"m":16,"n":16,"k":16,"a":"f16","b":"f16","c":"f32","result":"f32"},{"m":16,"n":8,"k":16,"a":"f16","b":"f16","c":"f32","result":"f32"}],`
	}
	return fmt.Sprintf(`[{"name":%q,"type":%q,"vendor_id":%d,"device_id":%d,"units":%d,"integer_dot":true,
	"heaps":[{"size":%.0f,"device_local":true},{"size":64000000000,"device_local":false}],
	"subgroup":{"default":%d,"min":%d,"max":%d,"operations":["basic","arithmetic","shuffle"]},
	"limits":{"workgroup_size":[1024,1024,64],"workgroup_invocations":1024,"shared_memory":49152},
	"features":{"subgroupSizeControl":true,"cooperativeMatrix":%v,"shaderIntegerDotProduct":true},%s
	"probe":{"read_bandwidth":%g,"fragments":%v,"dispatches":[{"workgroups":1,"barrier":2e-6}]}}]`,
		c.name, c.kind, c.vendor, c.device, c.units, c.gb*1e9, c.waves[1], c.waves[0], c.waves[2], c.matrix, matrices, c.bandwidth*1e9, c.matrix && c.vendor == gpu.NVIDIA)
}

// TestCards checks what is made of devices that people have: that none is taken for another.
func TestCards(t *testing.T) {
	nvidia, rdna, intel := [3]int{32, 32, 32}, [3]int{32, 64, 64}, [3]int{8, 32, 32}
	gcn := [3]int{64, 64, 64}
	for _, c := range []struct {
		card
		want string // architecture, wave, matrices, fragments, GB, TFLOP/s
	}{
		{card{"NVIDIA H200", "discrete", gpu.NVIDIA, 0x2335, 132, 141, 4800, nvidia, true}, "sm_90 32 true true 141 67.0"},
		{card{"NVIDIA H100 80GB HBM3", "discrete", gpu.NVIDIA, 0x2330, 132, 80, 3350, nvidia, true}, "sm_90 32 true true 80 67.0"},
		{card{"NVIDIA A100-SXM4-40GB", "discrete", gpu.NVIDIA, 0x20b0, 108, 40, 1555, nvidia, true}, "sm_80 32 true true 40 19.5"},
		{card{"NVIDIA GeForce RTX 2060", "discrete", gpu.NVIDIA, 0x1f08, 30, 6, 336, nvidia, true}, "sm_75 32 true true 6 5.9"},
		{card{"NVIDIA GeForce RTX 3060", "discrete", gpu.NVIDIA, 0x2503, 28, 12, 360, nvidia, true}, "sm_86 32 true true 12 12.2"},
		{card{"NVIDIA GeForce RTX 4090", "discrete", gpu.NVIDIA, 0x2684, 128, 24, 1008, nvidia, true}, "sm_89 32 true true 24 82.6"},
		{card{"NVIDIA GeForce RTX 5090", "discrete", gpu.NVIDIA, 0x2b85, 170, 32, 1792, nvidia, true}, "sm_120 32 true true 32 104.8"},
		{card{"NVIDIA GeForce GTX 1080", "discrete", gpu.NVIDIA, 0x1b80, 20, 8, 320, nvidia, false}, " 32 false false 8 0.0"},
		{card{"AMD Radeon RX 9070 XT (RADV GFX1201)", "discrete", gpu.AMD, 0x7550, 64, 16, 640, rdna, true}, "gfx1201 32 true false 16 47.8"},
		{card{"AMD Radeon RX 7900 XTX (RADV NAVI31)", "discrete", gpu.AMD, 0x744c, 96, 24, 960, rdna, true}, "gfx1100 32 true false 24 61.4"},
		{card{"AMD Radeon RX 7800 XT (RADV NAVI32)", "discrete", gpu.AMD, 0x747e, 60, 16, 624, rdna, true}, "gfx1101 32 true false 16 37.3"},
		{card{"AMD Radeon 780M (RADV GFX1103_R1)", "integrated", gpu.AMD, 0x15bf, 12, 16, 90, rdna, true}, "gfx1103 32 true false 0 8.3"},
		{card{"Radeon 8060S Graphics (RADV GFX1151)", "integrated", gpu.AMD, 0x1586, 40, 64, 256, rdna, true}, "gfx1151 32 true false 0 29.7"},
		{card{"AMD Radeon RX 6700 XT (RADV NAVI22)", "discrete", gpu.AMD, 0x73df, 40, 12, 384, rdna, false}, "gfx1031 32 false false 12 13.2"},
		{card{"AMD Radeon RX 580 Series (RADV POLARIS10)", "discrete", gpu.AMD, 0x67df, 36, 8, 256, gcn, false}, " 64 false false 8 0.0"},
		{card{"AMD Radeon VII (RADV VEGA20)", "discrete", gpu.AMD, 0x66af, 60, 16, 1024, gcn, false}, "gfx906 64 false false 16 13.4"},
		{card{"Intel(R) UHD Graphics 770 (ADL-S GT1)", "integrated", gpu.Intel, 0x4680, 0, 32, 60, intel, false}, "xe 16 false false 0 0.8"},
		{card{"Intel(R) Arc(tm) A770 Graphics (DG2)", "discrete", gpu.Intel, 0x56a0, 0, 16, 560, intel, false}, "xe-hpg 16 false false 16 19.7"},
		{card{"Intel(R) Arc(tm) B580 Graphics (BMG G21)", "discrete", gpu.Intel, 0xe20b, 0, 12, 456, intel, false}, "xe2 16 false false 12 0.0"},
		{card{"Apple M2", "integrated", gpu.Apple, 0xf0802ff, 0, 16, 100, nvidia, false}, " 32 false false 0 0.0"},
		{card{"llvmpipe (LLVM 15.0.6, 256 bits)", "cpu", gpu.Mesa, 0, 0, 16, 10, [3]int{8, 8, 8}, false}, "llvmpipe 8 false false 0 0.0"},
	} {
		p, err := ParseProbe([]byte(c.json()))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		g := p.Target()
		have := fmt.Sprintf("%s %d %v %v %d %.1f", g.Arch, g.Wave, g.Matrix != MatrixShape{}, g.Fragments, g.Memory/1e9, g.FLOPs/1e12)
		if have != c.want {
			t.Errorf("%s: %s, want %s", c.name, have, c.want)
		}
		if g.Bandwidth != c.bandwidth*1e9 || g.Name != ProbePrefix+c.name || g.Vendor != c.vendor {
			t.Errorf("%s: target %+v", c.name, g)
		}
		rows, err := Tuned(g)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, r := range rows {
			if own := strings.Contains(r.Device, "H200"); own != (g.Arch == "sm_90") {
				t.Errorf("%s: takes the tuning of %s", c.name, r.Device)
				break
			}
		}
	}
}

// TestCUDACards is the same through CUDA: what is made of a card has its own figures, not those of the published
// target of its architecture.
func TestCUDACards(t *testing.T) {
	const h100 = "NVIDIA H100 80GB HBM3"
	ofH100, err := os.ReadFile("hopper/sm_90-cuda.h100.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, kind                 string
		arch, units, clock, shared int
		gb, bandwidth              float64
		want                       string // code for, tuning of, units, GB, f32 and f16 TFLOP/s
	}{
		{"Tesla T4", "discrete", 75, 40, 1590000, 48 << 10, 16, 320, "sm_75 sm_75-cuda 40 16 8.1 33.8"},
		{"NVIDIA A100-SXM4-40GB", "discrete", 80, 108, 1410000, 48 << 10, 40, 1555, "sm_80 sm_80-cuda 108 40 19.5 320.1"},
		{"NVIDIA GeForce RTX 3060", "discrete", 86, 28, 1777000, 48 << 10, 12, 360, "sm_86 sm_86-cuda 28 12 12.7 25.1"},
		{"Orin", "integrated", 87, 16, 1300000, 48 << 10, 32, 204, "sm_86 sm_87-cuda 16 0 5.3 10.5"},
		{"NVIDIA GeForce RTX 4090", "discrete", 89, 128, 2520000, 48 << 10, 24, 1008, "sm_89 sm_89-cuda 128 24 82.6 164.2"},
		{"NVIDIA GeForce RTX 4090 Laptop GPU", "discrete", 89, 76, 2040000, 48 << 10, 16, 576, "sm_89 sm_89-cuda 76 16 39.7 78.9"},
		{"NVIDIA H100 80GB HBM3", "discrete", 90, 132, 1980000, 48 << 10, 80, 3350, "sm_90 sm_90-cuda 132 80 66.9 788.9"},
		{"NVIDIA H200", "discrete", 90, 132, 0, 48 << 10, 141, 4800, "sm_90 sm_90-cuda 132 141 67.0 790.0"},
		{"NVIDIA B200", "discrete", 100, 148, 1965000, 48 << 10, 180, 8000, "sm_100 sm_100-cuda 148 180 74.4 2233.5"},
		{"NVIDIA GeForce RTX 5090", "discrete", 120, 170, 2407000, 48 << 10, 32, 1792, "sm_120 sm_120-cuda 170 32 104.8 208.5"},
		{"NVIDIA GB10", "integrated", 121, 48, 2500000, 48 << 10, 120, 273, "sm_120 sm_121-cuda 48 0 30.7 61.1"},
		{"Z1", "discrete", 140, 200, 0, 48 << 10, 64, 3000, "sm_120 sm_140-cuda 200 64 123.5 245.9"},
	} {
		text := fmt.Sprintf(`[{"name":"llvmpipe","type":"cpu"},{"index":0,"backend":"cuda","name":%q,"type":%q,"vendor_id":4318,"uuid":"a1","arch":%d,"driver":13000,
			"units":%d,"clock":%d,"memory":%.0f,"free":%.0f,"shared":%d,"shared_optin":%d,"probe":{"read_bandwidth":%g,"dispatches":[{"workgroups":1,"barrier":1.1e-6},{"workgroups":128,"barrier":1.4e-6}]}}]`,
			c.name, c.kind, c.arch, c.units, c.clock, c.gb*1e9, c.gb*9e8, c.shared, 2*c.shared, c.bandwidth*1e9)
		p, err := ParseProbe([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		g := p.Target()
		have := fmt.Sprintf("sm_%d %s %d %d %.1f %.1f", g.CUDA, g.Arch, g.Units, g.Memory/1e9, g.FLOPs/1e12, g.MatrixFLOPs/1e12)
		if have != c.want {
			t.Errorf("%s: %s, want %s", c.name, have, c.want)
		}
		if g.Name != ProbePrefix+c.name+WithCUDA || g.Bandwidth != c.bandwidth*1e9 || g.Stage != 1.4e-6 || g.Backend != plans.CUDA || !g.Fragments || p.Free() != int64(c.gb*9e8) {
			t.Errorf("%s: %+v", c.name, g)
		}
		rows, err := Tuned(g)
		if err != nil || len(rows) > 0 != (c.arch == 90) {
			t.Errorf("%s: %d tuned rows, %v", c.name, len(rows), err)
		}
		// Of the two that were measured, an H100 has its own rows where there are some. All have an H200's otherwise,
		// and an H100's for sites that no H200 has measured.
		own := map[string]bool{}
		for _, r := range rows {
			if own[r.Site] || r.Device != c.name && r.Device != "NVIDIA H200" && (r.Device != h100 || bytes.Contains(ofH100, []byte(fmt.Sprintf("%q", r.Site)))) {
				t.Errorf("%s: a row of %s, second %t: %s", c.name, r.Device, own[r.Site], r.Site)
			}
			own[r.Site] = true
		}
		if strings.Contains(c.name, "H100") && !slices.ContainsFunc(rows, func(r tuning.Row) bool { return r.Device == c.name }) {
			t.Errorf("%s has no rows of its own", c.name)
		}
		need := plans.Requirements{Backend: plans.CUDA, CUDA: &plans.CUDARequirements{Arch: g.CUDA, Workgroup: 1024, Shared: 96 << 10}} // of that, half must be asked for
		if err := p.Check(need); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if again, err := OfPlan(&plans.Header{Target: g.Name, Probe: g.Probe}); err != nil || !reflect.DeepEqual(again, g) {
			t.Errorf("%s: the plan's target is %+v, %v", c.name, again, err)
		}
		if g.Groups {
			t.Errorf("%s: multiplies with four subgroups in %d bytes of shared memory", c.name, 2*c.shared)
		}
		need.CUDA.Arch = c.arch + 1
		if err := p.Check(need); err == nil {
			t.Errorf("%s: takes code of a later architecture", c.name)
		}
	}
}

// TestBadCUDAProbes checks that figures that no device has are refused by their names.
func TestBadCUDAProbes(t *testing.T) {
	const good = `[{"backend":"cuda","name":"Z1","type":"discrete","arch":86,"units":28,"memory":12000000000,"shared":49152,"probe":{"read_bandwidth":3e11,"dispatches":[{"workgroups":1,"barrier":1e-6}]}}]`
	if _, err := ParseProbe([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{`"arch":86`, `"arch":61`, "device Z1 is sm_61: plans through CUDA need sm_75"},
		{`"arch":86,`, ``, "device Z1: field arch is missing or out of range"},
		{`"units":28`, `"units":0`, "device Z1: field units"},
		{`"memory":12000000000`, `"memory":-1`, "device Z1: field memory"},
		{`"shared":49152`, `"shared":5`, "device Z1: field shared"},
		{`"shared":49152`, `"shared":49152,"clock":-1`, "device Z1: field clock"},
		{`"shared":49152`, `"shared":49152,"free":-1`, "device Z1: field free"},
		{`"backend":"cuda"`, `"backend":"metal"`, `device Z1: field backend: devices are not probed through "metal"`},
		{`"backend":"cuda",`, ``, "device Z1: field subgroup.default is missing"},
		{`3e11`, `0`, "device Z1: field probe.read_bandwidth"},
	} {
		if _, err := ParseProbe([]byte(strings.Replace(good, c.old, c.new, 1))); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.new, err, c.want)
		}
	}
}
