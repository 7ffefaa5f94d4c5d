package vulkan

import (
	"unsafe"

	"github.com/zincc-dev/zincc/runtime/vulkan/vk"
)

// features are the feature structs that the runtime knows, to be chained for a
// query or for device creation.
type features struct {
	base     vk.PhysicalDeviceFeatures2
	v11      vk.PhysicalDeviceVulkan11Features
	v12      vk.PhysicalDeviceVulkan12Features
	subgroup vk.PhysicalDeviceSubgroupSizeControlFeatures
	dot      vk.PhysicalDeviceShaderIntegerDotProductFeatures
	maint4   vk.PhysicalDeviceMaintenance4Features
	exec     vk.PhysicalDevicePipelineExecutablePropertiesFeaturesKHR
	coop     vk.PhysicalDeviceCooperativeMatrixFeaturesKHR
}

// feature is one boolean of a feature struct.
type feature struct {
	name  string // Vulkan's
	part  int    // the struct it is in, a row of featureParts
	field func(*features) *vk.Bool32
}

// featurePart is a struct in the chain and what a device needs to know it:
// either the core version or, below that, the extension.
type featurePart struct {
	core      uint32 // 0: in no core version that the runtime knows of
	extension string
	sType     vk.StructureType
	at        func(*features) unsafe.Pointer
}

// chainHead is how every struct of a pNext chain begins.
type chainHead struct {
	sType vk.StructureType
	pNext unsafe.Pointer
}

// Rows of featureParts.
const (
	partBase = iota
	partV11
	partV12
	partSubgroup
	partDot
	partMaint4
	partExec
	partCoop
)

var featureParts = [...]featurePart{
	partBase:     {vk.MakeVersion(1, 0, 0), "", vk.StructureTypePhysicalDeviceFeatures2, func(f *features) unsafe.Pointer { return unsafe.Pointer(&f.base) }},
	partV11:      {vk.Version12, "", vk.StructureTypePhysicalDeviceVulkan11Features, func(f *features) unsafe.Pointer { return unsafe.Pointer(&f.v11) }},
	partV12:      {vk.Version12, "", vk.StructureTypePhysicalDeviceVulkan12Features, func(f *features) unsafe.Pointer { return unsafe.Pointer(&f.v12) }},
	partSubgroup: {vk.Version13, "VK_EXT_subgroup_size_control", vk.StructureTypePhysicalDeviceSubgroupSizeControlFeatures, func(f *features) unsafe.Pointer { return unsafe.Pointer(&f.subgroup) }},
	partDot:      {vk.Version13, "VK_KHR_shader_integer_dot_product", vk.StructureTypePhysicalDeviceShaderIntegerDotProductFeatures, func(f *features) unsafe.Pointer { return unsafe.Pointer(&f.dot) }},
	partMaint4:   {vk.Version13, "VK_KHR_maintenance4", vk.StructureTypePhysicalDeviceMaintenance4Features, func(f *features) unsafe.Pointer { return unsafe.Pointer(&f.maint4) }},
	partExec:     {0, "VK_KHR_pipeline_executable_properties", vk.StructureTypePhysicalDevicePipelineExecutablePropertiesFeaturesKHR, func(f *features) unsafe.Pointer { return unsafe.Pointer(&f.exec) }},
	partCoop:     {0, "VK_KHR_cooperative_matrix", vk.StructureTypePhysicalDeviceCooperativeMatrixFeaturesKHR, func(f *features) unsafe.Pointer { return unsafe.Pointer(&f.coop) }},
}

// featureTable lists the features that can be asked for by name.
var featureTable = []feature{
	{"shaderFloat64", partBase, func(f *features) *vk.Bool32 { return &f.base.Features.ShaderFloat64 }},
	{"shaderInt64", partBase, func(f *features) *vk.Bool32 { return &f.base.Features.ShaderInt64 }},
	{"shaderInt16", partBase, func(f *features) *vk.Bool32 { return &f.base.Features.ShaderInt16 }},
	{"storageBuffer16BitAccess", partV11, func(f *features) *vk.Bool32 { return &f.v11.StorageBuffer16BitAccess }},
	{"uniformAndStorageBuffer16BitAccess", partV11, func(f *features) *vk.Bool32 { return &f.v11.UniformAndStorageBuffer16BitAccess }},
	{"storageBuffer8BitAccess", partV12, func(f *features) *vk.Bool32 { return &f.v12.StorageBuffer8BitAccess }},
	{"uniformAndStorageBuffer8BitAccess", partV12, func(f *features) *vk.Bool32 { return &f.v12.UniformAndStorageBuffer8BitAccess }},
	{"shaderBufferInt64Atomics", partV12, func(f *features) *vk.Bool32 { return &f.v12.ShaderBufferInt64Atomics }},
	{"shaderFloat16", partV12, func(f *features) *vk.Bool32 { return &f.v12.ShaderFloat16 }},
	{"shaderInt8", partV12, func(f *features) *vk.Bool32 { return &f.v12.ShaderInt8 }},
	{"scalarBlockLayout", partV12, func(f *features) *vk.Bool32 { return &f.v12.ScalarBlockLayout }},
	{"shaderSubgroupExtendedTypes", partV12, func(f *features) *vk.Bool32 { return &f.v12.ShaderSubgroupExtendedTypes }},
	{"subgroupBroadcastDynamicId", partV12, func(f *features) *vk.Bool32 { return &f.v12.SubgroupBroadcastDynamicId }},
	{"timelineSemaphore", partV12, func(f *features) *vk.Bool32 { return &f.v12.TimelineSemaphore }},
	{"bufferDeviceAddress", partV12, func(f *features) *vk.Bool32 { return &f.v12.BufferDeviceAddress }},
	{"vulkanMemoryModel", partV12, func(f *features) *vk.Bool32 { return &f.v12.VulkanMemoryModel }},
	{"vulkanMemoryModelDeviceScope", partV12, func(f *features) *vk.Bool32 { return &f.v12.VulkanMemoryModelDeviceScope }},
	{"subgroupSizeControl", partSubgroup, func(f *features) *vk.Bool32 { return &f.subgroup.SubgroupSizeControl }},
	{"computeFullSubgroups", partSubgroup, func(f *features) *vk.Bool32 { return &f.subgroup.ComputeFullSubgroups }},
	{"shaderIntegerDotProduct", partDot, func(f *features) *vk.Bool32 { return &f.dot.ShaderIntegerDotProduct }},
	{"maintenance4", partMaint4, func(f *features) *vk.Bool32 { return &f.maint4.Maintenance4 }},
	{"pipelineExecutableInfo", partExec, func(f *features) *vk.Bool32 { return &f.exec.PipelineExecutableInfo }},
	{"cooperativeMatrix", partCoop, func(f *features) *vk.Bool32 { return &f.coop.CooperativeMatrix }},
}

// propertyTable lists what is asked for like a feature, and no device has to be told of.
var propertyTable = []struct {
	name string // Vulkan's
	of   func(*vk.PhysicalDeviceVulkan12Properties) vk.Bool32
}{
	{"shaderRoundingModeRTEFloat16", func(p *vk.PhysicalDeviceVulkan12Properties) vk.Bool32 { return p.ShaderRoundingModeRTEFloat16 }},
}

// alwaysRequired are the features that the runtime itself is built on.
var alwaysRequired = []string{"bufferDeviceAddress", "timelineSemaphore"}

// usedIfPresent are features that the runtime makes use of where a device has
// them, without being asked.
var usedIfPresent = []string{"subgroupSizeControl", "computeFullSubgroups"}

// inCore says whether the part is known to a device of that version without an
// extension.
func (p *featurePart) inCore(api uint32) bool { return p.core != 0 && api >= p.core }

// link chains the structs of the parts that known accepts behind the base
// struct.
func (f *features) link(known func(*featurePart) bool) {
	tail := &f.base.PNext
	for i := range featureParts {
		p := &featureParts[i]
		head := (*chainHead)(p.at(f))
		head.sType = p.sType
		if i != partBase && known(p) {
			*tail, tail = unsafe.Pointer(head), &head.pNext
		}
	}
}

// queryFeatures asks a device for all features of the table.
func queryFeatures(in *instance, dev vk.PhysicalDevice, api uint32, extensions map[string]bool) map[string]bool {
	f := &features{}
	f.link(func(p *featurePart) bool { return p.inCore(api) || extensions[p.extension] })
	in.cmd.GetPhysicalDeviceFeatures2(dev, &f.base)
	have := map[string]bool{}
	for _, row := range featureTable {
		have[row.name] = *row.field(f) != vk.False
	}
	return have
}
