package vulkan

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"unsafe"

	"github.com/zincc-dev/zincc/runtime/vulkan/vk"
)

// DeviceInfo is a device's description of itself.
type DeviceInfo struct {
	Index         int    `json:"index"` // for Open
	Name          string `json:"name"`
	Type          string `json:"type"` // discrete, integrated, virtual, cpu or other
	VendorID      uint32 `json:"vendor_id"`
	DeviceID      uint32 `json:"device_id"`
	UUID          string `json:"uuid"`
	Driver        string `json:"driver"`
	DriverInfo    string `json:"driver_info"`
	DriverVersion uint32 `json:"driver_version"` // in the vendor's own form
	API           string `json:"api"`            // Vulkan version, 1.3.239

	Units             int                 `json:"units,omitempty"` // SMs or compute units; 0 where the driver does not tell
	IntegerDot        bool                `json:"integer_dot"`     // dot products of four packed signed bytes are instructions
	Heaps             []Heap              `json:"heaps"`
	Subgroup          SubgroupInfo        `json:"subgroup"`
	Limits            Limits              `json:"limits"`
	Features          map[string]bool     `json:"features"` // and properties that are yes or no, by Vulkan's names
	CooperativeMatrix []CooperativeMatrix `json:"cooperative_matrix,omitempty"`
	Extensions        []string            `json:"extensions"` // sorted

	api    uint32
	family uint32 // the queue family that is used
}

// UnmarshalJSON reads a device from the output of `zincrun probe --json`.
func (info *DeviceInfo) UnmarshalJSON(data []byte) error {
	type plain DeviceInfo
	if err := json.Unmarshal(data, (*plain)(info)); err != nil {
		return err
	}
	var major, minor, patch uint32
	if _, err := fmt.Sscanf(info.API, "%d.%d.%d", &major, &minor, &patch); err != nil {
		return fmt.Errorf("api: %q is not a version of Vulkan", info.API)
	}
	info.api = vk.MakeVersion(major, minor, patch)
	return nil
}

// Heap is a pool of memory. Sizes are in bytes.
type Heap struct {
	Size        uint64 `json:"size"`
	Free        uint64 `json:"free,omitempty"` // what this process may still take of it; 0 where the driver does not tell
	DeviceLocal bool   `json:"device_local"`
}

// SubgroupInfo has the subgroup sizes of compute shaders: Default where none
// is asked for, Min to Max where the feature subgroupSizeControl is there.
type SubgroupInfo struct {
	Default int `json:"default"`
	Min     int `json:"min"`
	Max     int `json:"max"`
	// Operations are the classes of operations within a subgroup.
	Operations []string `json:"operations"`
}

var subgroupClasses = []struct {
	name string
	bit  vk.SubgroupFeatureFlags
}{
	{"basic", vk.SubgroupFeatureBasicBit},
	{"vote", vk.SubgroupFeatureVoteBit},
	{"arithmetic", vk.SubgroupFeatureArithmeticBit},
	{"ballot", vk.SubgroupFeatureBallotBit},
	{"shuffle", vk.SubgroupFeatureShuffleBit},
}

// Limits are the limits that matter to compute work. Sizes are in bytes.
type Limits struct {
	WorkgroupCount       [3]uint32 `json:"workgroup_count"`
	WorkgroupSize        [3]uint32 `json:"workgroup_size"`
	WorkgroupInvocations uint32    `json:"workgroup_invocations"`
	SharedMemory         uint32    `json:"shared_memory"`
	PushConstants        uint32    `json:"push_constants"`
	StorageBufferRange   uint32    `json:"storage_buffer_range"`
	AllocationSize       uint64    `json:"allocation_size"`
	AllocationCount      uint32    `json:"allocation_count"`
	BufferSize           uint64    `json:"buffer_size"`      // 0 where the device does not tell
	TimestampPeriod      float32   `json:"timestamp_period"` // nanoseconds a tick
	TimestampBits        uint32    `json:"timestamp_bits"`   // 0 where there are no timestamps
}

// CooperativeMatrix is a shape and type combination of D = A x B + C that
// subgroups can compute; A is MxK, B is KxN.
type CooperativeMatrix struct {
	M          uint32 `json:"m"`
	N          uint32 `json:"n"`
	K          uint32 `json:"k"`
	A          string `json:"a"`
	B          string `json:"b"`
	C          string `json:"c"`
	Result     string `json:"result"`
	Saturating bool   `json:"saturating,omitempty"`
}

var deviceTypes = map[vk.PhysicalDeviceType]string{
	vk.PhysicalDeviceTypeOther:         "other",
	vk.PhysicalDeviceTypeIntegratedGpu: "integrated",
	vk.PhysicalDeviceTypeDiscreteGpu:   "discrete",
	vk.PhysicalDeviceTypeVirtualGpu:    "virtual",
	vk.PhysicalDeviceTypeCpu:           "cpu",
}

var componentTypes = map[vk.ComponentTypeKHR]string{
	vk.ComponentTypeFloat16KHR: "f16", vk.ComponentTypeFloat32KHR: "f32", vk.ComponentTypeFloat64KHR: "f64",
	vk.ComponentTypeSint8KHR: "i8", vk.ComponentTypeSint16KHR: "i16", vk.ComponentTypeSint32KHR: "i32", vk.ComponentTypeSint64KHR: "i64",
	vk.ComponentTypeUint8KHR: "u8", vk.ComponentTypeUint16KHR: "u16", vk.ComponentTypeUint32KHR: "u32", vk.ComponentTypeUint64KHR: "u64",
}

// Enumerate lists the Vulkan devices of this computer, also those that Open
// would refuse.
func Enumerate() ([]DeviceInfo, error) {
	in, err := theInstance()
	if err != nil {
		return nil, err
	}
	devices, err := in.physicalDevices()
	if err != nil {
		return nil, err
	}
	infos := make([]DeviceInfo, len(devices))
	for i, d := range devices {
		if infos[i], err = describe(in, d, i); err != nil {
			return nil, err
		}
	}
	return infos, nil
}

// describe asks a device for all that DeviceInfo holds.
func describe(in *instance, dev vk.PhysicalDevice, index int) (DeviceInfo, error) {
	info := DeviceInfo{Index: index}
	exts, err := list(func(n *uint32, p *vk.ExtensionProperties) vk.Result {
		return in.cmd.EnumerateDeviceExtensionProperties(dev, nil, n, p)
	})
	if err != nil {
		return info, fmt.Errorf("device %d: list extensions: %w", index, err)
	}
	have := map[string]bool{}
	for _, e := range exts {
		have[vk.String(e.ExtensionName[:])] = true
	}
	for e := range have {
		info.Extensions = append(info.Extensions, e)
	}
	slices.Sort(info.Extensions)

	base := vk.PhysicalDeviceProperties2{SType: vk.StructureTypePhysicalDeviceProperties2}
	in.cmd.GetPhysicalDeviceProperties2(dev, &base)
	info.api = base.Properties.ApiVersion
	info.Features = queryFeatures(in, dev, info.api, have)
	info.setProperties(in, dev, have)

	info.setHeaps(in, dev, have["VK_EXT_memory_budget"])
	info.setQueueFamily(in, dev)
	if info.Features["cooperativeMatrix"] {
		if err := info.setCooperativeMatrix(in, dev); err != nil {
			return info, fmt.Errorf("device %s: %w", info.Name, err)
		}
	}
	return info, nil
}

// setHeaps lists the heaps, with what is free in them if the device knows budgets. A device
// without memory, as drivers without hardware have, is not asked for them: RADV crashes.
func (info *DeviceInfo) setHeaps(in *instance, dev vk.PhysicalDevice, budgets bool) {
	mem := vk.PhysicalDeviceMemoryProperties2{SType: vk.StructureTypePhysicalDeviceMemoryProperties2}
	in.cmd.GetPhysicalDeviceMemoryProperties2(dev, &mem)
	heaps := mem.MemoryProperties.MemoryHeaps[:mem.MemoryProperties.MemoryHeapCount]
	budget := vk.PhysicalDeviceMemoryBudgetPropertiesEXT{SType: vk.StructureTypePhysicalDeviceMemoryBudgetPropertiesEXT}
	if budgets && mem.MemoryProperties.MemoryTypeCount > 0 {
		mem.PNext = unsafe.Pointer(&budget)
		in.cmd.GetPhysicalDeviceMemoryProperties2(dev, &mem)
	}
	for i, h := range heaps {
		free := budget.HeapBudget[i] - min(budget.HeapUsage[i], budget.HeapBudget[i])
		info.Heaps = append(info.Heaps, Heap{h.Size, free, h.Flags&vk.MemoryHeapDeviceLocalBit != 0})
	}
}

func (info *DeviceInfo) setProperties(in *instance, dev vk.PhysicalDevice, have map[string]bool) {
	maint4 := vk.PhysicalDeviceMaintenance4Properties{SType: vk.StructureTypePhysicalDeviceMaintenance4Properties}
	subgroup := vk.PhysicalDeviceSubgroupSizeControlProperties{SType: vk.StructureTypePhysicalDeviceSubgroupSizeControlProperties}
	v12 := vk.PhysicalDeviceVulkan12Properties{SType: vk.StructureTypePhysicalDeviceVulkan12Properties}
	v11 := vk.PhysicalDeviceVulkan11Properties{SType: vk.StructureTypePhysicalDeviceVulkan11Properties}
	all := vk.PhysicalDeviceProperties2{SType: vk.StructureTypePhysicalDeviceProperties2}
	sms := vk.PhysicalDeviceShaderSMBuiltinsPropertiesNV{SType: vk.StructureTypePhysicalDeviceShaderSmBuiltinsPropertiesNV}
	cores := vk.PhysicalDeviceShaderCorePropertiesAMD{SType: vk.StructureTypePhysicalDeviceShaderCorePropertiesAMD}
	dot := vk.PhysicalDeviceShaderIntegerDotProductProperties{SType: vk.StructureTypePhysicalDeviceShaderIntegerDotProductProperties}
	var chain unsafe.Pointer
	if featureParts[partDot].inCore(info.api) || have[featureParts[partDot].extension] {
		dot.PNext, chain = chain, unsafe.Pointer(&dot)
	}
	if have["VK_NV_shader_sm_builtins"] {
		sms.PNext, chain = chain, unsafe.Pointer(&sms)
	}
	if have["VK_AMD_shader_core_properties"] {
		cores.PNext, chain = chain, unsafe.Pointer(&cores)
	}
	if featureParts[partMaint4].inCore(info.api) || have[featureParts[partMaint4].extension] {
		maint4.PNext, chain = chain, unsafe.Pointer(&maint4)
	}
	if featureParts[partSubgroup].inCore(info.api) || have[featureParts[partSubgroup].extension] {
		subgroup.PNext, chain = chain, unsafe.Pointer(&subgroup)
	}
	if info.api >= vk.Version12 {
		v12.PNext, chain = chain, unsafe.Pointer(&v12)
		v11.PNext, chain = chain, unsafe.Pointer(&v11)
	}
	all.PNext = chain
	in.cmd.GetPhysicalDeviceProperties2(dev, &all)

	p, l := &all.Properties, &all.Properties.Limits
	info.Name = vk.String(p.DeviceName[:])
	info.Type = deviceTypes[p.DeviceType]
	info.VendorID, info.DeviceID, info.DriverVersion = p.VendorID, p.DeviceID, p.DriverVersion
	info.UUID = hex.EncodeToString(v11.DeviceUUID[:])
	info.Driver, info.DriverInfo = vk.String(v12.DriverName[:]), vk.String(v12.DriverInfo[:])
	info.API = vk.VersionString(p.ApiVersion)
	info.IntegerDot = dot.IntegerDotProduct4x8BitPackedSignedAccelerated != vk.False
	for _, row := range propertyTable {
		info.Features[row.name] = row.of(&v12) != vk.False
	}
	info.Units = int(sms.ShaderSMCount + cores.ShaderEngineCount*cores.ShaderArraysPerEngineCount*cores.ComputeUnitsPerShaderArray)
	info.Subgroup = SubgroupInfo{Default: int(v11.SubgroupSize), Min: int(subgroup.MinSubgroupSize), Max: int(subgroup.MaxSubgroupSize)}
	if v11.SubgroupSupportedStages&vk.ShaderStageComputeBit != 0 {
		for _, c := range subgroupClasses {
			if v11.SubgroupSupportedOperations&c.bit != 0 {
				info.Subgroup.Operations = append(info.Subgroup.Operations, c.name)
			}
		}
	}
	if info.Subgroup.Min == 0 {
		info.Subgroup.Min, info.Subgroup.Max = info.Subgroup.Default, info.Subgroup.Default
	}
	info.Limits = Limits{
		WorkgroupCount:       l.MaxComputeWorkGroupCount,
		WorkgroupSize:        l.MaxComputeWorkGroupSize,
		WorkgroupInvocations: l.MaxComputeWorkGroupInvocations,
		SharedMemory:         l.MaxComputeSharedMemorySize,
		PushConstants:        l.MaxPushConstantsSize,
		StorageBufferRange:   l.MaxStorageBufferRange,
		AllocationSize:       v11.MaxMemoryAllocationSize,
		AllocationCount:      l.MaxMemoryAllocationCount,
		BufferSize:           maint4.MaxBufferSize,
		TimestampPeriod:      l.TimestampPeriod,
	}
}

// vendorNVIDIA is NVIDIA's PCI vendor id.
const vendorNVIDIA = 0x10de

// setQueueFamily picks the first family with compute, on NVIDIA the first without
// graphics if there is one: there a dispatch with its barrier takes 0.2 us less on an
// H200, a token 2 to 3 %. On AMD the one with graphics ran a model 5 % faster than the
// other (llama.cpp pull request 20551).
func (info *DeviceInfo) setQueueFamily(in *instance, dev vk.PhysicalDevice) {
	families, _ := list(func(n *uint32, p *vk.QueueFamilyProperties) vk.Result {
		in.cmd.GetPhysicalDeviceQueueFamilyProperties(dev, n, p)
		return vk.Success
	})
	use := slices.IndexFunc(families, func(f vk.QueueFamilyProperties) bool { return f.QueueFlags&vk.QueueComputeBit != 0 })
	alone := slices.IndexFunc(families, func(f vk.QueueFamilyProperties) bool {
		return f.QueueFlags&(vk.QueueComputeBit|vk.QueueGraphicsBit) == vk.QueueComputeBit
	})
	if info.VendorID == vendorNVIDIA && alone >= 0 {
		use = alone
	}
	if use >= 0 {
		info.family, info.Limits.TimestampBits = uint32(use), families[use].TimestampValidBits
	}
}

func (info *DeviceInfo) setCooperativeMatrix(in *instance, dev vk.PhysicalDevice) error {
	initial := vk.CooperativeMatrixPropertiesKHR{SType: vk.StructureTypeCooperativeMatrixPropertiesKHR}
	shapes, err := listOf(initial, func(n *uint32, p *vk.CooperativeMatrixPropertiesKHR) vk.Result {
		return in.cmd.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(dev, n, p)
	})
	if err != nil {
		return fmt.Errorf("list cooperative matrices: %w", err)
	}
	for _, s := range shapes {
		if s.Scope != vk.ScopeSubgroupKHR {
			continue
		}
		info.CooperativeMatrix = append(info.CooperativeMatrix, CooperativeMatrix{
			M: s.MSize, N: s.NSize, K: s.KSize,
			A: componentName(s.AType), B: componentName(s.BType), C: componentName(s.CType), Result: componentName(s.ResultType),
			Saturating: s.SaturatingAccumulation != vk.False,
		})
	}
	return nil
}

func componentName(t vk.ComponentTypeKHR) string {
	if name, ok := componentTypes[t]; ok {
		return name
	}
	return fmt.Sprintf("type%d", t)
}
