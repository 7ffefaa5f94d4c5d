package target

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/target/hopper"

	"github.com/zincc-dev/zincc/plans"
)

// h200 is a probe with what a target is made of.
const h200 = `[{"name":"other","type":"cpu"},{"name":"NVIDIA H200","type":"discrete","vendor_id":4318,"device_id":9013,"units":132,"integer_dot":true,
	"heaps":[{"size":150000000000,"device_local":true},{"size":500000000000,"device_local":false}],
	"subgroup":{"default":32,"min":32,"max":32,"operations":["basic","arithmetic","shuffle"]},
	"limits":{"workgroup_size":[1024,1024,64],"workgroup_invocations":1024,"shared_memory":49152,"push_constants":256},
	"features":{"subgroupSizeControl":true,"cooperativeMatrix":true,"shaderInt8":true,"shaderIntegerDotProduct":true,"shaderFloat16":false},
	"cooperative_matrix":[{"m":16,"n":8,"k":16,"a":"f16","b":"f16","c":"f32","result":"f32"},
		{"m":16,"n":16,"k":16,"a":"f16","b":"f16","c":"f32","result":"f32"}],
	"extensions":["VK_KHR_cooperative_matrix"],
	"probe":{"read_bandwidth":4.5e12,"dispatches":[{"workgroups":1,"alone":1e-7,"barrier":1.7e-6},
		{"workgroups":128,"alone":2e-7,"barrier":1.9e-6},{"workgroups":1024,"alone":9e-7,"barrier":2.5e-6}]}}]`

func TestProbeTargets(t *testing.T) {
	lavapipe, err := os.ReadFile("testdata/llvmpipe.json")
	if err != nil {
		t.Fatal(err)
	}
	replace := func(pairs ...string) string {
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(h200, pairs[i]) {
				t.Fatalf("no %s in the probe", pairs[i])
			}
		}
		return strings.NewReplacer(pairs...).Replace(h200)
	}
	for _, c := range []struct {
		name, probe string
		want        string // wave, workgroup, shared, units, matrix, dot, memory, bandwidth, stage, knows FLOPs, AMD family
	}{
		{"lavapipe", string(lavapipe), "8 1024 32768 2 {0 0 0} false 0 5e+09 1e-05 true "},
		{"H200", h200, "32 1024 49152 132 {16 16 16} true 150000000000 4e+12 2e-06 true "},
		{"unknown NVIDIA", replace("NVIDIA H200", "NVIDIA Z1", "9013", "1"), "32 1024 49152 132 {16 16 16} true 150000000000 4e+12 2e-06 false "},
		{"no units", replace(`"units":132,`, ""), "32 1024 49152 132 {16 16 16} true 150000000000 4e+12 2e-06 true "},
		{"few units", replace(`"units":132`, `"units":2`), "32 1024 49152 2 {16 16 16} true 150000000000 4e+12 2e-06 true "},
		{"no matrices", replace(`"cooperativeMatrix":true`, `"cooperativeMatrix":false`), "32 1024 49152 132 {0 0 0} true 150000000000 4e+12 2e-06 true "},
		{"other matrices", replace(`"m":16,"n":16`, `"m":8,"n":16`), "32 1024 49152 132 {0 0 0} true 150000000000 4e+12 2e-06 true "},
		{"narrow workgroups", replace("[1024,1024,64]", "[512,1024,64]"), "32 512 49152 132 {16 16 16} true 150000000000 4e+12 2e-06 true "},
		{"slow dot products", replace(`"integer_dot":true`, `"integer_dot":false`), "32 1024 49152 132 {16 16 16} false 150000000000 4e+12 2e-06 true "},
		{"no dot products", replace(`"shaderIntegerDotProduct":true`, `"shaderIntegerDotProduct":false`), "32 1024 49152 132 {16 16 16} false 150000000000 4e+12 2e-06 true "},
		{"integrated", replace(`"discrete"`, `"integrated"`), "32 1024 49152 132 {16 16 16} true 0 4e+12 2e-06 true "},
		{"AMD", replace("NVIDIA H200", "AMD Radeon RX 7900 XTX (RADV NAVI31)", "4318", "4098", "9013", "29772", `"default":32,"min":32,"max":32`, `"default":64,"min":32,"max":64`, `"units":132`, `"units":96`),
			"32 1024 49152 96 {16 16 16} true 150000000000 4e+12 2e-06 true NAVI31"},
		{"unknown AMD", replace("NVIDIA H200", "AMD Radeon Z1", "4318", "4098", "9013", "1"), "32 1024 49152 132 {16 16 16} true 150000000000 4e+12 2e-06 false "},
		{"no choice of subgroups", replace("NVIDIA H200", "AMD Radeon Z1", "4318", "4098", "9013", "1", `"default":32,"min":32,"max":32`, `"default":64,"min":32,"max":64`, `"subgroupSizeControl":true`, `"subgroupSizeControl":false`),
			"64 1024 49152 132 {16 16 16} true 150000000000 4e+12 2e-06 false "},
		{"unknown vendor", replace("NVIDIA H200", "Z1", "4318", "7"), "32 1024 49152 132 {16 16 16} true 150000000000 4e+12 2e-06 false "},
	} {
		p, err := ParseProbe([]byte(c.probe))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		g := p.Target()
		family := ""
		if g.AMD != nil {
			family = g.AMD.Family
		}
		have := fmt.Sprint(g.Wave, g.Workgroup, g.Shared, g.Units, g.Matrix, g.Dot, g.Memory, fmt.Sprintf(" %.0e %.0e ", g.Bandwidth, g.Stage), g.FLOPs > 0, " ", family)
		if have = strings.Join(strings.Fields(have), " "); have != strings.TrimSpace(c.want) {
			t.Errorf("%s: target %s, want %s", c.name, have, c.want)
		}
		if !strings.HasPrefix(g.Name, ProbePrefix) {
			t.Errorf("%s: name %q", c.name, g.Name)
		}
	}
	if llvmpipe.Name != "llvmpipe" || hopper.Vulkan.Stage != 2.0e-6 {
		t.Error("a published target was changed")
	}
}

func TestProbeErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{h200, "", "the text ends too early"},
		{h200, h200[:200], "the text ends too early"},
		{h200, "{}", "not what `zincrun probe --json` prints"},
		{h200, h200 + "x", "text after the list"},
		{h200, strings.Repeat("[", 1<<16), "not what `zincrun probe --json` prints"},
		{h200, strings.Repeat(" ", MaxProbe+1), "not a probe: more than"},
		{h200, "[]", "0 devices were measured, want one"},
		{`"type":"cpu"`, `"type":"cpu","probe":{}`, "2 devices were measured, want one"},
		{`"NVIDIA H200"`, `"a\nb"`, "field name"},
		{`"NVIDIA H200"`, `""`, "field name"},
		{`"units":132`, `"units":-1`, "field units is missing or out of range: -1"},
		{`"units":132`, `"units":1e99`, "cannot unmarshal"},
		{`"default":32,`, "", "field subgroup.default is missing"},
		{`"default":32,"min":32,"max":32`, `"default":48,"min":32,"max":64`, "48 is not a power of two"},
		{`"min":32`, `"min":64`, "field subgroup.min"},
		{`"max":32`, `"max":1024`, "field subgroup.max"},
		{`[1024,1024,64]`, `[0,1,1]`, "field limits.workgroup_size"},
		{`"workgroup_invocations":1024`, `"workgroup_invocations":16`, "field limits.workgroup_invocations"},
		{`"shared_memory":49152`, `"shared_memory":0`, "field limits.shared_memory"},
		{`"read_bandwidth":4.5e12`, `"read_bandwidth":1e300`, "field probe.read_bandwidth"},
		{`"read_bandwidth":4.5e12,`, "", "field probe.read_bandwidth is missing"},
		{`"dispatches":`, `"x":`, "field probe.dispatches is missing"},
		{`"workgroups":128`, `"workgroups":0`, "field probe.dispatches[1]"},
		{`"barrier":2.5e-6`, `"barrier":-1`, "field probe.dispatches[2]"},
		{`"size":150000000000`, `"size":-5`, "field heaps[0].size"},
		{`"features":`, `"x":`, "field features is missing"},
	} {
		if !strings.Contains(h200, c.old) {
			t.Fatalf("no %s in the probe", c.old)
		}
		_, err := ParseProbe([]byte(strings.Replace(h200, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 300 {
			t.Errorf("%.40s: error %v, want %q", c.new, err, c.want)
		}
	}
}

func TestProbeCheck(t *testing.T) {
	p, err := ParseProbe([]byte(h200))
	if err != nil {
		t.Fatal(err)
	}
	have := plans.VulkanRequirements{Features: []string{"shaderInt8"}, Extensions: []string{"VK_KHR_cooperative_matrix"}, SubgroupOps: []string{"shuffle"}}
	if err := p.Check(plans.Requirements{Vulkan: &have}); err != nil {
		t.Error(err)
	}
	for want, r := range map[string]plans.VulkanRequirements{
		"lacks the feature shaderFloat16":              {Features: []string{"shaderFloat16"}},
		"lacks the extension VK_X":                     {Extensions: []string{"VK_X"}},
		"lacks subgroup operations of class clustered": {SubgroupOps: []string{"clustered"}},
		"has 256 bytes of push constants, 264 are":     {PushConstants: 264},
		"has 49152 bytes of shared memory, 65536 are":  {Shared: 65536},
	} {
		if err := p.Check(plans.Requirements{Vulkan: &r}); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// FuzzParseProbe checks that what is taken makes a target that is within bounds.
func FuzzParseProbe(f *testing.F) {
	f.Add([]byte(h200))
	if data, err := os.ReadFile("testdata/llvmpipe.json"); err == nil {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParseProbe(data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of several lines: %q", err)
			}
			return
		}
		g := p.Target()
		if g.Wave < 1 || g.Wave > g.Workgroup || g.Units < 1 || !(g.Bandwidth > 0) || !(g.Stage > 0) || g.Memory < 0 || !(g.FLOPs >= 0) || strings.Contains(g.Name, "\n") {
			t.Errorf("target %+v", g)
		}
	})
}
