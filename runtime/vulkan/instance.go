// Package vulkan runs compute work on a Vulkan device: it lists and opens
// devices, allocates buffers with addresses, creates pipelines, records command
// buffers once and submits them many times.
//
// A dispatch is a pipeline, the 64-bit addresses of its arguments as push constants,
// and a grid; there are no descriptors. A Device has one queue; its
// methods may be called from several goroutines, those of a Commands may not.
package vulkan

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/runtime/vulkan/vk"
)

// apiVersion is the version that instances ask for: newer than the required
// 1.2, so that what 1.3 made core is used without an extension where it is.
var apiVersion = vk.Version13

const validationLayer = "VK_LAYER_KHRONOS_validation"

// instance is a VkInstance with its commands.
type instance struct {
	handle   vk.Instance
	cmd      *vk.InstanceCommands
	messages *messages // nil unless validating
}

// theInstance is the one of the process, made when first needed and never
// destroyed: making one loads the drivers, which takes 0.1 s with NVIDIA's, and
// after some twenty times of loading and unloading that driver fails.
var theInstance = sync.OnceValues(newInstance)

// noDriver says that this computer cannot run plans through Vulkan, and why.
func noDriver(err error) error {
	return ir.Unsupported("no Vulkan driver: %s (--device host needs none)", err)
}

// newInstance creates an instance, with the validation layer and its
// synchronization checks when ZINC_VALIDATE=1.
func newInstance() (*instance, error) {
	global, err := vk.LoadGlobal()
	if err != nil {
		return nil, noDriver(err)
	}
	var version uint32
	if err := global.EnumerateInstanceVersion(&version).Err(); err != nil {
		return nil, fmt.Errorf("ask for the version of the Vulkan loader: %w", err)
	}
	if version < vk.Version11 {
		return nil, fmt.Errorf("the Vulkan loader is of version %s, 1.1 is needed", vk.VersionString(version))
	}
	in := &instance{}
	info := vk.InstanceCreateInfo{
		SType: vk.StructureTypeInstanceCreateInfo,
		PApplicationInfo: &vk.ApplicationInfo{
			SType:            vk.StructureTypeApplicationInfo,
			PApplicationName: vk.CString("zincrun"),
			ApiVersion:       apiVersion,
		},
	}
	enabled := map[string]bool{}
	if os.Getenv("ZINC_VALIDATE") == "1" {
		if err := checkLayer(global); err != nil {
			return nil, err
		}
		in.messages = &messages{}
		extensions := []string{"VK_EXT_debug_utils", "VK_EXT_validation_features"}
		for _, e := range extensions {
			enabled[e] = true
		}
		info.EnabledLayerCount = 1
		info.PpEnabledLayerNames = vk.CStrings([]string{validationLayer})
		info.EnabledExtensionCount = uint32(len(extensions))
		info.PpEnabledExtensionNames = vk.CStrings(extensions)
		enable := vk.ValidationFeatureEnableSynchronizationValidationEXT
		info.PNext = unsafe.Pointer(&vk.ValidationFeaturesEXT{
			SType:                         vk.StructureTypeValidationFeaturesEXT,
			PNext:                         unsafe.Pointer(messengerInfo(in.messages)),
			EnabledValidationFeatureCount: 1,
			PEnabledValidationFeatures:    &enable,
		})
	}
	if err := global.CreateInstance(&info, &in.handle).Err(); err != nil {
		return nil, noDriver(fmt.Errorf("create Vulkan instance: %w", err))
	}
	in.cmd, err = vk.LoadInstance(in.handle, func(e string) bool { return enabled[e] })
	if err != nil {
		return nil, err
	}
	if in.messages != nil {
		var messenger vk.DebugUtilsMessengerEXT
		if err := in.cmd.CreateDebugUtilsMessengerEXT(in.handle, messengerInfo(in.messages), &messenger).Err(); err != nil {
			return nil, fmt.Errorf("create debug messenger: %w", err)
		}
	}
	return in, nil
}

// checkLayer says whether the validation layer is installed.
func checkLayer(global *vk.GlobalCommands) error {
	layers, err := list(func(n *uint32, p *vk.LayerProperties) vk.Result {
		return global.EnumerateInstanceLayerProperties(n, p)
	})
	if err != nil {
		return fmt.Errorf("list Vulkan layers: %w", err)
	}
	for _, l := range layers {
		if vk.String(l.LayerName[:]) == validationLayer {
			return nil
		}
	}
	return fmt.Errorf("ZINC_VALIDATE=1 needs the layer %s, which is not installed", validationLayer)
}

// physicalDevices are the devices of the instance in the loader's order.
func (in *instance) physicalDevices() ([]vk.PhysicalDevice, error) {
	devices, err := list(func(n *uint32, p *vk.PhysicalDevice) vk.Result {
		return in.cmd.EnumeratePhysicalDevices(in.handle, n, p)
	})
	if err != nil {
		return nil, fmt.Errorf("list Vulkan devices: %w", err)
	}
	return devices, nil
}

// list calls an enumerating command, first for the count and then for the
// items, again if there came to be more in between. The first item's content,
// such as its SType, is not set; see listOf.
func list[T any](get func(n *uint32, p *T) vk.Result) ([]T, error) {
	var zero T
	return listOf(zero, get)
}

// listOf is list for items that must be initialized before the call.
func listOf[T any](initial T, get func(n *uint32, p *T) vk.Result) ([]T, error) {
	for {
		var n uint32
		if err := get(&n, nil).Err(); err != nil || n == 0 {
			return nil, err
		}
		items := make([]T, n)
		for i := range items {
			items[i] = initial
		}
		switch r := get(&n, unsafe.SliceData(items)); {
		case r == vk.Incomplete:
		case r < 0:
			return nil, r
		default:
			return items[:n], nil
		}
	}
}
