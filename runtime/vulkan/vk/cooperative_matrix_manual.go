package vk

import "unsafe"

// This file is VK_KHR_cooperative_matrix, which is younger than the registry
// of Debian 12 that the rest is generated from.

// Values of StructureType for the structs of this file.
const (
	StructureTypePhysicalDeviceCooperativeMatrixFeaturesKHR StructureType = 1000506000
	StructureTypeCooperativeMatrixPropertiesKHR             StructureType = 1000506001
)

// ComponentTypeKHR is VkComponentTypeKHR.
type ComponentTypeKHR int32

// Values of ComponentTypeKHR.
const (
	ComponentTypeFloat16KHR ComponentTypeKHR = 0
	ComponentTypeFloat32KHR ComponentTypeKHR = 1
	ComponentTypeFloat64KHR ComponentTypeKHR = 2
	ComponentTypeSint8KHR   ComponentTypeKHR = 3
	ComponentTypeSint16KHR  ComponentTypeKHR = 4
	ComponentTypeSint32KHR  ComponentTypeKHR = 5
	ComponentTypeSint64KHR  ComponentTypeKHR = 6
	ComponentTypeUint8KHR   ComponentTypeKHR = 7
	ComponentTypeUint16KHR  ComponentTypeKHR = 8
	ComponentTypeUint32KHR  ComponentTypeKHR = 9
	ComponentTypeUint64KHR  ComponentTypeKHR = 10
)

// ScopeSubgroupKHR is VK_SCOPE_SUBGROUP_KHR, a SPIR-V scope.
const ScopeSubgroupKHR int32 = 3

// PhysicalDeviceCooperativeMatrixFeaturesKHR is VkPhysicalDeviceCooperativeMatrixFeaturesKHR.
type PhysicalDeviceCooperativeMatrixFeaturesKHR struct {
	SType                               StructureType
	PNext                               unsafe.Pointer
	CooperativeMatrix                   Bool32
	CooperativeMatrixRobustBufferAccess Bool32
}

// CooperativeMatrixPropertiesKHR is VkCooperativeMatrixPropertiesKHR: one
// combination D[MxN] = A[MxK] x B[KxN] + C[MxN] of shapes and types.
type CooperativeMatrixPropertiesKHR struct {
	SType                  StructureType
	PNext                  unsafe.Pointer
	MSize                  uint32
	NSize                  uint32
	KSize                  uint32
	AType                  ComponentTypeKHR
	BType                  ComponentTypeKHR
	CType                  ComponentTypeKHR
	ResultType             ComponentTypeKHR
	SaturatingAccumulation Bool32
	Scope                  int32
}

// GetPhysicalDeviceCooperativeMatrixPropertiesKHR calls the command of that
// name. Only for a device that lists VK_KHR_cooperative_matrix.
func (c *InstanceCommands) GetPhysicalDeviceCooperativeMatrixPropertiesKHR(physicalDevice PhysicalDevice, pPropertyCount *uint32, pProperties *CooperativeMatrixPropertiesKHR) Result {
	return Result(call(address(c.fn[iGetPhysicalDeviceCooperativeMatrixPropertiesKHR], &instanceTable[iGetPhysicalDeviceCooperativeMatrixPropertiesKHR]), uintptr(physicalDevice), uintptr(unsafe.Pointer(pPropertyCount)), uintptr(unsafe.Pointer(pProperties))))
}
