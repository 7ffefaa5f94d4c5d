package modules

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/spirv"
)

func readSPIRV(code []byte, constants map[uint32]uint32) (*Code, error) {
	words, err := spirv.Words(code)
	if err != nil {
		return nil, err
	}
	info, err := spirv.ReadInterface(words, constants)
	if err != nil {
		return nil, err
	}
	open, err := spirv.SpecConstants(words)
	if err != nil {
		return nil, err
	}
	c := &Code{
		Interface: plans.Interface{Entry: info.EntryPoint, Args: info.Args, Workgroup: int(info.LocalSize[0]), Shared: int(info.Shared)},
		Loads:     info.Loads, Stores: info.Stores, Stray: info.Stray,
		lacks: func(r *plans.Requirements) []string { return lackedBySPIRV(info, r.Vulkan) },
	}
	for _, k := range open {
		c.Open = append(c.Open, plans.OpenConst{ID: k.SpecID, Name: k.Name})
	}
	if s := info.LocalSize; s[1] != 1 || s[2] != 1 {
		c.Faults = append(c.Faults, fmt.Sprintf("a workgroup of %d, want one dimension", s))
	}
	if info.Descriptors {
		c.Faults = append(c.Faults, "has descriptors; kernels reach memory through the addresses in the push constants")
	}
	if info.PushMembers > 1 {
		c.Faults = append(c.Faults, fmt.Sprintf("push constants have %d members, want the addresses of the arguments alone", info.PushMembers))
	}
	return c, nil
}

func disassembleSPIRV(code []byte, constants map[uint32]uint32) (string, error) {
	words, err := spirv.Words(code)
	if err == nil && constants != nil {
		words, err = spirv.Specialize(words, constants)
	}
	if err != nil {
		return "", err
	}
	return spirv.Disassemble(words)
}

// capability is what a plan must require for a capability of SPIR-V; nothing for a zero.
type capability struct {
	feature  string // of Vulkan
	subgroup string // class of subgroup operations
}

// capabilities are those that modules of plans may have.
var capabilities = map[spirv.Capability]capability{
	spirv.CapabilityShader:                         {},
	spirv.CapabilityGroupNonUniform:                {}, // in every other class
	spirv.CapabilityPhysicalStorageBufferAddresses: {feature: "bufferDeviceAddress"},
	spirv.CapabilityVulkanMemoryModel:              {feature: "vulkanMemoryModel"},
	spirv.CapabilityInt16:                          {feature: "shaderInt16"},
	spirv.CapabilityStorageBuffer16BitAccess:       {feature: "storageBuffer16BitAccess"},
	spirv.CapabilityFloat16:                        {feature: "shaderFloat16"},
	spirv.CapabilityRoundingModeRTE:                {feature: "shaderRoundingModeRTEFloat16"},
	spirv.CapabilityDotProduct:                     {feature: "shaderIntegerDotProduct"},
	spirv.CapabilityDotProductInput4x8BitPacked:    {feature: "shaderIntegerDotProduct"},
	spirv.CapabilityCooperativeMatrixKHR:           {feature: "cooperativeMatrix"},
	spirv.CapabilityGroupNonUniformVote:            {subgroup: "vote"},
	spirv.CapabilityGroupNonUniformArithmetic:      {subgroup: "arithmetic"},
	spirv.CapabilityGroupNonUniformShuffle:         {subgroup: "shuffle"},
}

// extensions are Vulkan's for those of SPIR-V; empty for those that a feature stands for.
var extensions = map[string]string{
	"SPV_KHR_cooperative_matrix":  "VK_KHR_cooperative_matrix",
	"SPV_KHR_integer_dot_product": "",
}

// lackedBySPIRV lists what a module needs that r does not have; nil requires nothing.
func lackedBySPIRV(info *spirv.Interface, r *plans.VulkanRequirements) (list []string) {
	if r == nil {
		r = &plans.VulkanRequirements{}
	}
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	lacks := func(list []string, name string) bool { return name != "" && !slices.Contains(list, name) }
	groups := false
	for _, c := range info.Capabilities {
		need, ok := capabilities[c]
		groups = groups || c == spirv.CapabilityGroupNonUniform
		switch {
		case !ok:
			add("capability %d is none that plans may use", c)
		case lacks(r.Features, need.feature):
			add("needs feature %s, which the plan does not require", need.feature)
		case lacks(r.SubgroupOps, need.subgroup):
			add("needs subgroup operations of class %s, which the plan does not require", need.subgroup)
		}
	}
	if groups && len(r.SubgroupOps) == 0 {
		add("needs subgroup operations, of which the plan requires none")
	}
	for _, x := range info.Extensions {
		need, ok := extensions[x]
		if !ok {
			add("extension %s is none that plans may use", x)
		} else if lacks(r.Extensions, need) {
			add("needs extension %s, which the plan does not require", need)
		}
	}
	for _, bits := range info.Rounded {
		if bits != 16 {
			add("states how floats of %d bits are rounded, which plans may not", bits)
		}
	}
	if info.Fragments && !r.Fragments {
		add("relies on which elements of a matrix a lane holds, which the plan does not require")
	}
	return list
}
