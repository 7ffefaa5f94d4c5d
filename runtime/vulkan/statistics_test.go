package vulkan

import (
	"os"
	"os/exec"
	"testing"

	"github.com/zincc-dev/zincc/plans"
)

// childVariable marks the process that TestCompileOnlyDevice starts.
const childVariable = "ZINC_TEST_COMPILE_ONLY"

// TestCompileOnlyDevice runs compileOnly on Mesa's RADV without hardware: a
// device with no memory and no semaphores that compiles pipelines. The
// environment that asks for it stays in a child process.
func TestCompileOnlyDevice(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		compileOnly(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestCompileOnlyDevice$", "-test.v")
	cmd.Env = append(os.Environ(),
		childVariable+"=1",
		"VK_DRIVER_FILES=/usr/share/vulkan/icd.d/radeon_icd.json",
		"RADV_FORCE_FAMILY=NAVI31",
		"MESA_SHADER_CACHE_DISABLE=true",
	)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("RADV of mesa-vulkan-drivers is needed: %v\n%s", err, out)
	}
}

func compileOnly(t *testing.T) {
	info := must[[]DeviceInfo](t)(Enumerate())[0]
	if len(info.CooperativeMatrix) == 0 {
		t.Error("no cooperative matrices")
	}
	d := must[*Device](t)(Open(0, plans.VulkanRequirements{
		Features: []string{"cooperativeMatrix", "pipelineExecutableInfo"},
		Subgroup: [2]int{32, 64},
	}))
	defer d.Close()
	words := assemble(t, "affine")
	pipelines := must[[]*Pipeline](t)(d.CreatePipelines([]PipelineInfo{
		{Name: "wave32", Words: words, SubgroupSize: 32},
		{Name: "wave64", Words: words, SubgroupSize: 64, FullSubgroups: true},
		{Name: "bindings", Words: words, Bindings: []uint32{0, 2}}, // which it has not: a layout of its own
	}))
	for _, p := range pipelines {
		have := map[string]float64{}
		for _, s := range must[[]Statistic](t)(p.Statistics()) {
			have[s.Name] = s.Value
		}
		if have["VGPRs"] <= 0 || have["Code size"] <= 0 || have["Scratch size"] != 0 {
			t.Errorf("statistics %v", have)
		}
	}
	if _, err := d.Alloc(100, DeviceLocal); err == nil {
		t.Error("a device without memory allocates")
	}
	for _, m := range d.ValidationMessages() {
		t.Errorf("validation: %s", m)
	}
}
