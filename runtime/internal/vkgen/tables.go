package main

// The tables below are all that decides what is generated. Types follow from
// the commands; what is only chained through pNext is listed in chained.

// commandRow allows one command. A row with an extension is of a command that
// the registry of Debian 12 does not know: only its place in the command table
// is generated, and its method is written by hand.
type commandRow struct {
	name      string
	extension string
}

var commandRows = []commandRow{
	// Before there is an instance.
	{name: "vkEnumerateInstanceVersion"},
	{name: "vkEnumerateInstanceExtensionProperties"},
	{name: "vkEnumerateInstanceLayerProperties"},
	{name: "vkCreateInstance"},

	// Instance and physical device.
	{name: "vkEnumeratePhysicalDevices"},
	{name: "vkEnumerateDeviceExtensionProperties"},
	{name: "vkGetPhysicalDeviceFeatures2"},
	{name: "vkGetPhysicalDeviceProperties2"},
	{name: "vkGetPhysicalDeviceMemoryProperties2"},
	{name: "vkGetPhysicalDeviceQueueFamilyProperties"},
	{name: "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR", extension: "VK_KHR_cooperative_matrix"},
	{name: "vkCreateDevice"},
	{name: "vkGetDeviceProcAddr"},
	{name: "vkCreateDebugUtilsMessengerEXT"},

	// Device and queue.
	{name: "vkDestroyDevice"},
	{name: "vkGetDeviceQueue"},
	{name: "vkQueueSubmit"},

	// Memory and buffers.
	{name: "vkAllocateMemory"},
	{name: "vkFreeMemory"},
	{name: "vkMapMemory"},
	{name: "vkCreateBuffer"},
	{name: "vkDestroyBuffer"},
	{name: "vkGetBufferMemoryRequirements2"},
	{name: "vkBindBufferMemory"},
	{name: "vkGetBufferDeviceAddress"},

	// Pipelines.
	{name: "vkCreateShaderModule"},
	{name: "vkDestroyShaderModule"},
	{name: "vkCreateDescriptorSetLayout"},
	{name: "vkDestroyDescriptorSetLayout"},
	{name: "vkCreatePipelineLayout"},
	{name: "vkDestroyPipelineLayout"},
	{name: "vkCreatePipelineCache"},
	{name: "vkDestroyPipelineCache"},
	{name: "vkGetPipelineCacheData"},
	{name: "vkCreateComputePipelines"},
	{name: "vkDestroyPipeline"},
	{name: "vkGetPipelineExecutablePropertiesKHR"},
	{name: "vkGetPipelineExecutableStatisticsKHR"},
	{name: "vkGetPipelineExecutableInternalRepresentationsKHR"},

	// Command buffers.
	{name: "vkCreateCommandPool"},
	{name: "vkDestroyCommandPool"},
	{name: "vkAllocateCommandBuffers"},
	{name: "vkBeginCommandBuffer"},
	{name: "vkEndCommandBuffer"},
	{name: "vkCmdBindPipeline"},
	{name: "vkCmdPushConstants"},
	{name: "vkCmdDispatch"},
	{name: "vkCmdDispatchIndirect"},
	{name: "vkCmdPipelineBarrier"},
	{name: "vkCmdCopyBuffer"},
	{name: "vkCmdFillBuffer"},
	{name: "vkCmdResetQueryPool"},
	{name: "vkCmdWriteTimestamp"},

	// Queries and synchronization.
	{name: "vkCreateQueryPool"},
	{name: "vkDestroyQueryPool"},
	{name: "vkGetQueryPoolResults"},
	{name: "vkCreateSemaphore"},
	{name: "vkDestroySemaphore"},
	{name: "vkGetSemaphoreCounterValue"},
	{name: "vkWaitSemaphores"},
}

// chained are the structs that reach a command only through a pNext chain or
// a callback.
var chained = []string{
	"VkDebugUtilsMessengerCallbackDataEXT",
	"VkValidationFeaturesEXT",
	"VkPhysicalDeviceVulkan11Features",
	"VkPhysicalDeviceVulkan12Features",
	"VkPhysicalDeviceSubgroupSizeControlFeatures",
	"VkPhysicalDeviceShaderIntegerDotProductFeatures",
	"VkPhysicalDeviceMaintenance4Features",
	"VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR",
	"VkPhysicalDeviceVulkan11Properties",
	"VkPhysicalDeviceVulkan12Properties",
	"VkPhysicalDeviceSubgroupSizeControlProperties",
	"VkPhysicalDeviceMaintenance4Properties",
	"VkPhysicalDeviceShaderIntegerDotProductProperties",
	"VkPhysicalDeviceShaderSMBuiltinsPropertiesNV",
	"VkPhysicalDeviceShaderCorePropertiesAMD",
	"VkPhysicalDeviceMemoryBudgetPropertiesEXT",
	"VkMemoryAllocateFlagsInfo",
	"VkMemoryDedicatedAllocateInfo",
	"VkPipelineShaderStageRequiredSubgroupSizeCreateInfo",
	"VkSemaphoreTypeCreateInfo",
	"VkTimelineSemaphoreSubmitInfo",
}

// extensions are those whose enumerants are generated; the enumerants of core
// versions always are.
var extensions = map[string]bool{
	"VK_AMD_shader_core_properties":         true,
	"VK_EXT_debug_utils":                    true,
	"VK_EXT_memory_budget":                  true,
	"VK_EXT_validation_features":            true,
	"VK_KHR_pipeline_executable_properties": true,
	"VK_NV_shader_sm_builtins":              true,
}

// wholeEnums are generated with the enumerants of every extension: drivers
// return them whether or not the extension was asked for.
var wholeEnums = map[string]bool{
	"VkResult": true,
}

// named are the enums that get a method giving an enumerant's C name.
var named = map[string]bool{
	"VkResult": true,
}

// baseTypes are the Go types of C types that the registry does not define.
var baseTypes = map[string]string{
	"void":            "",
	"char":            "byte",
	"float":           "float32",
	"double":          "float64",
	"int8_t":          "int8",
	"uint8_t":         "uint8",
	"uint16_t":        "uint16",
	"int32_t":         "int32",
	"uint32_t":        "uint32",
	"int64_t":         "int64",
	"uint64_t":        "uint64",
	"size_t":          "uintptr",
	"VkBool32":        "Bool32",
	"VkFlags":         "uint32",
	"VkFlags64":       "uint64",
	"VkDeviceSize":    "uint64",
	"VkDeviceAddress": "uint64",
	"VkSampleMask":    "uint32",
}

// unions are given as the Go type of their largest member.
var unions = map[string]string{
	"VkPipelineExecutableStatisticValueKHR": "uint64",
}

// notInPeer are names of Vulkan 1.0 that entered the registry after the peer
// binding of the cross check was made.
var notInPeer = map[string]bool{
	"VK_ERROR_UNKNOWN": true,
}
