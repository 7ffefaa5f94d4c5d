package plans

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/internal/table"
)

// VulkanRequirements are what a Vulkan device must offer. Names are Vulkan's.
type VulkanRequirements struct {
	Features    []string // such as "bufferDeviceAddress"; also properties that a device has or not: "shaderRoundingModeRTEFloat16"
	Extensions  []string
	SubgroupOps []string // classes of subgroup operations: "arithmetic", "basic", "shuffle", "vote"
	// Fragments: in cooperative matrices of f16, 16x16 and 16x8, and in their products in f32, the lanes of a subgroup
	// of 32 hold the elements that PTX defines for mma.m16n8k16; and products of integers, also subnormal ones, are
	// summed exactly in 24 bits. Vulkan does not say whether that holds; a runtime tests it.
	Fragments     bool
	Subgroup      [2]int // smallest and largest subgroup size that every pipeline runs with
	Workgroup     int    // invocations of the largest workgroup
	Shared        int    // bytes of shared memory of the hungriest workgroup
	PushConstants int    // bytes: an address for each argument of the dispatch that has most
}

// VulkanCapabilities are what a Vulkan device offers.
type VulkanCapabilities struct {
	Features      map[string]bool
	Extensions    []string
	SubgroupOps   []string
	Subgroup      [2]int // smallest and largest
	PushConstants int64  // bytes
	Workgroup     int64  // invocations
	Shared        int64  // bytes
}

// AddressBytes is the size of an argument in the push constants.
const AddressBytes = 8

func (r *VulkanRequirements) valid() error {
	if r.Subgroup[0] < 0 || r.Subgroup[0] > r.Subgroup[1] || r.Workgroup < 0 || r.Shared < 0 {
		return fmt.Errorf("subgroup %d, workgroup %d or shared %d out of range", r.Subgroup, r.Workgroup, r.Shared)
	}
	return nil
}

func (r *VulkanRequirements) missing(c *Capabilities) string {
	has := &c.Vulkan
	for _, name := range r.Features {
		switch {
		case has.Features[name]:
		case name == "cooperativeMatrix":
			return fmt.Sprintf("lacks the feature %s; zincc compiles for such drivers with --target NAME-nomatrix", name)
		default:
			return fmt.Sprintf("lacks the feature %s", name)
		}
	}
	for _, name := range r.Extensions {
		if !slices.Contains(has.Extensions, name) {
			return fmt.Sprintf("lacks the extension %s", name)
		}
	}
	if s := has.Subgroup; r.Subgroup[0] != 0 && s[1] != 0 && (r.Subgroup[0] < s[0] || r.Subgroup[1] > s[1]) {
		return fmt.Sprintf("has subgroups of %d to %d, %d to %d are needed", s[0], s[1], r.Subgroup[0], r.Subgroup[1])
	}
	for _, name := range r.SubgroupOps {
		if !slices.Contains(has.SubgroupOps, name) {
			return fmt.Sprintf("lacks subgroup operations of class %s", name)
		}
	}
	return exceeded(
		limit{"bytes of push constants", int64(r.PushConstants), has.PushConstants},
		limit{"invocations of a workgroup", int64(r.Workgroup), has.Workgroup},
		limit{"bytes of shared memory", int64(r.Shared), has.Shared})
}

func (r *VulkanRequirements) check(c *checker) {
	for i := range c.sites {
		if n := AddressBytes * len(c.sites[i].Args); n > r.PushConstants {
			c.addAt("requirements", &c.sites[i], "%d bytes of push constants, plan requires %d", n, r.PushConstants)
		}
	}
	for i, pl := range c.plan.Pipelines {
		name := fmt.Sprintf("pipeline %d", i)
		if pl.Workgroup > r.Workgroup || pl.Shared > r.Shared {
			c.add("requirements", "", name, "workgroup of %d and %d bytes of shared memory, plan requires %d and %d",
				pl.Workgroup, pl.Shared, r.Workgroup, r.Shared)
		}
		if pl.Wave != 0 && (pl.Wave < r.Subgroup[0] || pl.Wave > r.Subgroup[1]) {
			c.add("requirements", "", name, "subgroup size %d, plan requires %d", pl.Wave, r.Subgroup)
		}
	}
}

func (r *VulkanRequirements) describe(t *table.Table) {
	t.Add("features", strings.Join(r.Features, " "))
	t.Add("extensions", strings.Join(r.Extensions, " "))
	t.Add("subgroup operations", strings.Join(r.SubgroupOps, " "))
	fragments := "any"
	if r.Fragments {
		fragments = "those of mma.m16n8k16"
	}
	t.Add("fragments of matrices", fragments)
	t.Add("subgroup size", fmt.Sprintf("%d to %d", r.Subgroup[0], r.Subgroup[1]))
	t.Add("workgroup", r.Workgroup)
	t.Add("shared memory", table.Bytes(r.Shared))
	t.Add("push constants", table.Bytes(r.PushConstants))
}
