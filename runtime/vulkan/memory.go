package vulkan

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/zincc-dev/zincc/runtime/vulkan/vk"
)

// MemoryKind says who uses a buffer and how.
type MemoryKind int

// Memory kinds.
const (
	DeviceLocal MemoryKind = iota // the device's own memory
	Upload                        // mapped: the host writes, the device reads
	Readback                      // mapped, cached: the device writes, the host reads
)

// memoryKinds tells for each kind the memory properties that it cannot do
// without and then, best first, sets of wanted and unwanted ones.
var memoryKinds = [...]struct {
	name   string
	need   vk.MemoryPropertyFlags
	wishes []wish
}{
	DeviceLocal: {"device-local", 0, []wish{
		{vk.MemoryPropertyDeviceLocalBit, vk.MemoryPropertyHostVisibleBit}, // not the window that the host sees
		{vk.MemoryPropertyDeviceLocalBit, 0},
	}},
	Upload: {"upload", hostCoherent, []wish{
		{0, vk.MemoryPropertyDeviceLocalBit | vk.MemoryPropertyHostCachedBit},
		{0, vk.MemoryPropertyDeviceLocalBit},
		{0, 0},
	}},
	Readback: {"readback", hostCoherent, []wish{
		{vk.MemoryPropertyHostCachedBit, vk.MemoryPropertyDeviceLocalBit},
		{vk.MemoryPropertyHostCachedBit, 0},
		{0, 0},
	}},
}

type wish struct{ with, without vk.MemoryPropertyFlags }

const hostCoherent = vk.MemoryPropertyHostVisibleBit | vk.MemoryPropertyHostCoherentBit

// Buffer is device memory with an address. Its allocation is its own.
type Buffer struct {
	dev    *Device
	handle vk.Buffer
	memory vk.DeviceMemory
	size   int64
	addr   uint64
	mapped []byte
}

// Alloc allocates a buffer of size bytes. The contents are undefined.
func (d *Device) Alloc(size int64, kind MemoryKind) (*Buffer, error) {
	what := fmt.Sprintf("allocate %s of %s memory", bytesText(uint64(size)), memoryKinds[kind].name)
	if size <= 0 {
		return nil, d.errorf("allocate %d bytes", size)
	}
	for _, limit := range []uint64{d.Info.Limits.AllocationSize, d.Info.Limits.BufferSize} {
		if limit != 0 && uint64(size) > limit {
			return nil, d.errorf("%s: one allocation is limited to %s", what, bytesText(limit))
		}
	}
	d.owned.Sweep(d.ended) // there may be no room for both
	b := &Buffer{dev: d, size: size}
	heap, err := b.allocate(kind)
	if err != nil {
		b.release()
		if errors.Is(err, vk.ErrorOutOfDeviceMemory) || errors.Is(err, vk.ErrorOutOfHostMemory) {
			return nil, d.errorf("%s: %w: %s", what, err, d.heapText(heap))
		}
		return nil, d.errorf("%s: %w", what, err)
	}
	d.owned.Own(b)
	return b, nil
}

// allocate fills in b and returns the heap that it used or tried.
func (b *Buffer) allocate(kind MemoryKind) (heap uint32, err error) {
	d := b.dev
	info := vk.BufferCreateInfo{
		SType: vk.StructureTypeBufferCreateInfo,
		Size:  uint64(b.size),
		Usage: vk.BufferUsageStorageBufferBit | vk.BufferUsageShaderDeviceAddressBit | vk.BufferUsageIndirectBufferBit |
			vk.BufferUsageTransferSrcBit | vk.BufferUsageTransferDstBit,
		SharingMode: vk.SharingModeExclusive,
	}
	if err := d.cmd.CreateBuffer(d.handle, &info, &b.handle).Err(); err != nil {
		return 0, fmt.Errorf("create buffer: %w", err)
	}
	req := vk.MemoryRequirements2{SType: vk.StructureTypeMemoryRequirements2}
	d.cmd.GetBufferMemoryRequirements2(d.handle, &vk.BufferMemoryRequirementsInfo2{
		SType: vk.StructureTypeBufferMemoryRequirementsInfo2, Buffer: b.handle,
	}, &req)
	index, ok := d.memoryType(kind, req.MemoryRequirements.MemoryTypeBits)
	if !ok {
		return 0, errors.New("the device has no such memory")
	}
	heap = d.memory.MemoryTypes[index].HeapIndex
	alloc := vk.MemoryAllocateInfo{
		SType: vk.StructureTypeMemoryAllocateInfo,
		PNext: unsafe.Pointer(&vk.MemoryAllocateFlagsInfo{
			SType: vk.StructureTypeMemoryAllocateFlagsInfo,
			PNext: unsafe.Pointer(&vk.MemoryDedicatedAllocateInfo{
				SType:  vk.StructureTypeMemoryDedicatedAllocateInfo,
				Buffer: b.handle,
			}),
			Flags: vk.MemoryAllocateDeviceAddressBit,
		}),
		AllocationSize:  req.MemoryRequirements.Size,
		MemoryTypeIndex: index,
	}
	if err := d.cmd.AllocateMemory(d.handle, &alloc, &b.memory).Err(); err != nil {
		return heap, err
	}
	if err := d.cmd.BindBufferMemory(d.handle, b.handle, b.memory, 0).Err(); err != nil {
		return heap, fmt.Errorf("bind: %w", err)
	}
	b.addr = d.cmd.GetBufferDeviceAddress(d.handle, &vk.BufferDeviceAddressInfo{
		SType: vk.StructureTypeBufferDeviceAddressInfo, Buffer: b.handle,
	})
	if memoryKinds[kind].need&vk.MemoryPropertyHostVisibleBit != 0 {
		var p unsafe.Pointer
		if err := d.cmd.MapMemory(d.handle, b.memory, 0, vk.WholeSize, 0, &p).Err(); err != nil {
			return heap, fmt.Errorf("map: %w", err)
		}
		b.mapped = unsafe.Slice((*byte)(p), b.size)
	}
	return heap, nil
}

// memoryType is the best memory type of those allowed, bit i being type i.
func (d *Device) memoryType(kind MemoryKind, allowed uint32) (uint32, bool) {
	k := memoryKinds[kind]
	types := d.memory.MemoryTypes[:d.memory.MemoryTypeCount]
	for _, w := range k.wishes {
		for i, t := range types {
			if allowed>>i&1 != 0 && t.PropertyFlags&(k.need|w.with) == k.need|w.with && t.PropertyFlags&w.without == 0 {
				return uint32(i), true
			}
		}
	}
	return 0, false
}

// Address is the buffer's address for kernels.
func (b *Buffer) Address() uint64 { return b.addr }

// Size is the number of bytes that were asked for.
func (b *Buffer) Size() int64 { return b.size }

// Bytes is the mapped memory of an Upload or Readback buffer, else nil. It is
// gone after Free.
func (b *Buffer) Bytes() []byte { return b.mapped }

// Free frees the buffer once the submissions that were made before have ended.
func (b *Buffer) Free() { b.dev.free(b) }

func (b *Buffer) release() {
	d := b.dev
	b.mapped = nil
	if b.handle != 0 {
		d.cmd.DestroyBuffer(d.handle, b.handle)
	}
	if b.memory != 0 {
		d.cmd.FreeMemory(d.handle, b.memory)
	}
}

// heapText says what a heap holds and, where the driver tells, what of it is
// left to this program.
func (d *Device) heapText(heap uint32) string {
	text := fmt.Sprintf("heap %d has %s", heap, bytesText(d.memory.MemoryHeaps[heap].Size))
	if _, ok := slices.BinarySearch(d.Info.Extensions, "VK_EXT_memory_budget"); !ok {
		return text
	}
	budget := vk.PhysicalDeviceMemoryBudgetPropertiesEXT{SType: vk.StructureTypePhysicalDeviceMemoryBudgetPropertiesEXT}
	mem := vk.PhysicalDeviceMemoryProperties2{
		SType: vk.StructureTypePhysicalDeviceMemoryProperties2,
		PNext: unsafe.Pointer(&budget),
	}
	d.inst.cmd.GetPhysicalDeviceMemoryProperties2(d.phys, &mem)
	left := uint64(0)
	if budget.HeapBudget[heap] > budget.HeapUsage[heap] {
		left = budget.HeapBudget[heap] - budget.HeapUsage[heap]
	}
	return fmt.Sprintf("%s, %s in use by this program, %s left", text, bytesText(budget.HeapUsage[heap]), bytesText(left))
}

// bytesText writes a size for people.
func bytesText(n uint64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.2f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}
