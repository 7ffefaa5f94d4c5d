package vulkan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/internal/owned"
	"github.com/zincc-dev/zincc/runtime/vulkan/vk"
)

// Device is an open device with one queue. Close frees everything created on it
// that was not freed before.
type Device struct {
	Info DeviceInfo

	firstMessage int // of the validation layer that is about this device

	inst    *instance
	phys    vk.PhysicalDevice
	handle  vk.Device
	cmd     *vk.DeviceCommands
	enabled map[string]bool // features
	memory  vk.PhysicalDeviceMemoryProperties
	layout  vk.PipelineLayout
	cache   pipelineCache

	queueMu   sync.Mutex // the queue and what follows
	queue     vk.Queue
	timeline  vk.Semaphore
	submitted uint64 // timeline value of the last submission

	owned owned.Set[resource]
}

// resource is something created on a device.
type resource interface{ release() }

// Open opens the device of that index in Enumerate's order and enables what
// need lists. The error names the device and the first thing that it lacks.
func Open(index int, need plans.VulkanRequirements) (*Device, error) {
	in, err := theInstance()
	if err != nil {
		return nil, err
	}
	d := &Device{inst: in, owned: owned.Set[resource]{Release: resource.release}}
	if in.messages != nil {
		d.firstMessage = len(in.messages.all())
	}
	if err := d.open(index, need); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Device) open(index int, need plans.VulkanRequirements) error {
	devices, err := d.inst.physicalDevices()
	if err != nil {
		return err
	}
	if index < 0 || index >= len(devices) {
		return fmt.Errorf("device %d: there are %d Vulkan devices", index, len(devices))
	}
	d.phys = devices[index]
	if d.Info, err = describe(d.inst, d.phys, index); err != nil {
		return err
	}
	if err := d.Info.Check(need); err != nil {
		return err
	}
	mem := vk.PhysicalDeviceMemoryProperties2{SType: vk.StructureTypePhysicalDeviceMemoryProperties2}
	d.inst.cmd.GetPhysicalDeviceMemoryProperties2(d.phys, &mem)
	d.memory = mem.MemoryProperties
	if err := d.create(need); err != nil {
		return d.errorf("open: %w", err)
	}
	if err := d.createPipelineLayout(); err != nil {
		return d.errorf("open: %w", err)
	}
	return nil
}

// Check says which feature of need, or of the runtime's own needs, the device lacks,
// if any.
func (info *DeviceInfo) Check(need plans.VulkanRequirements) error {
	return info.Meets(&plans.Requirements{Backend: plans.Vulkan, Vulkan: &need})
}

// Meets says which requirement of a plan, or of the runtime itself, the device does not meet,
// if any.
func (info *DeviceInfo) Meets(r *plans.Requirements) error {
	need := *r.Vulkan
	if info.api < vk.Version12 {
		return ir.Unsupported("device %s: its driver is for Vulkan %s, 1.2 is needed", info.Name, info.API)
	}
	need.Features = slices.Concat(alwaysRequired, need.Features)
	for _, name := range need.Features {
		if _, known := info.Features[name]; !known {
			return ir.Unsupported("device %s: feature %s is not known to this runtime", info.Name, name)
		}
	}
	has := info.Capabilities()
	all := plans.Requirements{Memory: r.Memory, Vulkan: &need}
	if what := all.Missing(&has); what != "" {
		return ir.Unsupported("device %s: %s", info.Name, what)
	}
	return nil
}

// Capabilities are what plans may require of the device.
func (info *DeviceInfo) Capabilities() plans.Capabilities {
	has := plans.Capabilities{Vulkan: plans.VulkanCapabilities{
		Features: info.Features, Extensions: info.Extensions, SubgroupOps: info.Subgroup.Operations, Subgroup: [2]int{info.Subgroup.Min, info.Subgroup.Max},
		PushConstants: int64(info.Limits.PushConstants), Workgroup: int64(info.Limits.WorkgroupInvocations), Shared: int64(info.Limits.SharedMemory),
	}}
	for _, h := range info.Heaps {
		if h.DeviceLocal {
			has.Memory = max(has.Memory, int64(h.Size))
		}
	}
	return has
}

// create makes the VkDevice with the features that are needed or used.
func (d *Device) create(need plans.VulkanRequirements) error {
	d.enabled = map[string]bool{}
	for _, name := range slices.Concat(alwaysRequired, need.Features) {
		d.enabled[name] = true
	}
	for _, name := range usedIfPresent {
		if d.Info.Features[name] {
			d.enabled[name] = true
		}
	}
	extensions := slices.Clone(need.Extensions)
	f := &features{}
	for _, row := range featureTable {
		if !d.enabled[row.name] {
			continue
		}
		*row.field(f) = vk.True
		if p := &featureParts[row.part]; !p.inCore(d.Info.api) {
			extensions = append(extensions, p.extension)
		}
	}
	slices.Sort(extensions)
	extensions = slices.Compact(extensions)
	has := func(e string) bool { return slices.Contains(extensions, e) }
	f.link(func(p *featurePart) bool { return p.inCore(d.Info.api) || has(p.extension) })

	priority := float32(1)
	info := vk.DeviceCreateInfo{
		SType:                vk.StructureTypeDeviceCreateInfo,
		PNext:                unsafe.Pointer(&f.base),
		QueueCreateInfoCount: 1,
		PQueueCreateInfos: &vk.DeviceQueueCreateInfo{
			SType:            vk.StructureTypeDeviceQueueCreateInfo,
			QueueFamilyIndex: d.Info.family,
			QueueCount:       1,
			PQueuePriorities: &priority,
		},
		EnabledExtensionCount:   uint32(len(extensions)),
		PpEnabledExtensionNames: vk.CStrings(extensions),
	}
	if err := d.inst.cmd.CreateDevice(d.phys, &info, &d.handle).Err(); err != nil {
		if len(extensions) > 0 {
			return fmt.Errorf("with %s: %w", strings.Join(extensions, ", "), err)
		}
		return err
	}
	cmd, err := vk.LoadDevice(d.inst.cmd, d.handle, has)
	if err != nil {
		return err
	}
	d.cmd = cmd
	d.cmd.GetDeviceQueue(d.handle, d.Info.family, 0, &d.queue)
	return nil
}

// createPipelineLayout makes the one layout of all pipelines: as many push constants
// as there can be.
func (d *Device) createPipelineLayout() error {
	info := d.layoutInfo()
	return d.cmd.CreatePipelineLayout(d.handle, &info, &d.layout).Err()
}

// layoutInfo is a layout with all push constants that the device has.
func (d *Device) layoutInfo() vk.PipelineLayoutCreateInfo {
	return vk.PipelineLayoutCreateInfo{
		SType:                  vk.StructureTypePipelineLayoutCreateInfo,
		PushConstantRangeCount: 1,
		PPushConstantRanges:    &vk.PushConstantRange{StageFlags: vk.ShaderStageComputeBit, Size: d.Info.Limits.PushConstants},
	}
}

// closeTimeout bounds the wait of Close: who gave up a wait for the device does not want
// another one.
const closeTimeout = time.Second

// Close frees the device and everything created on it. It waits a moment for pending
// submissions. If the device still works then, it keeps everything until the process ends. Once is enough.
func (d *Device) Close() {
	if d.cmd == nil {
		return
	}
	if err := d.Wait(d.submitted, closeTimeout); errors.Is(err, vk.Timeout) {
		return
	}
	d.owned.Close()
	d.cache.close(d)
	if d.layout != 0 {
		d.cmd.DestroyPipelineLayout(d.handle, d.layout)
	}
	if d.timeline != 0 {
		d.cmd.DestroySemaphore(d.handle, d.timeline)
	}
	d.cmd.DestroyDevice(d.handle)
	d.cmd = nil
}

// free releases a resource before Close, as soon as all that was submitted before has ended.
func (d *Device) free(r resource) {
	d.queueMu.Lock()
	submitted := d.submitted
	d.queueMu.Unlock()
	d.owned.Free(r, driver.Fence(submitted))
	d.owned.Sweep(d.ended)
}

// ended is the last submission that has.
func (d *Device) ended() (driver.Fence, error) {
	n, err := d.Completed()
	return driver.Fence(n), err
}

// errorf is an error that names the device.
func (d *Device) errorf(format string, args ...any) error {
	return fmt.Errorf("device %s: "+format, append([]any{d.Info.Name}, args...)...)
}
