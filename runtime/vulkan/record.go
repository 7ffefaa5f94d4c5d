package vulkan

import (
	"unsafe"

	"github.com/zincc-dev/zincc/runtime/vulkan/vk"
)

// addressSize is the size of an address in the push constants.
const addressSize = 8

// Access is a set of ways in which work touches memory.
type Access int

// Ways to touch memory. Host is reading and writing mapped memory.
const (
	Compute Access = 1 << iota
	Transfer
	Host
	Indirect // the grid of an indirect dispatch
)

// accesses are the Vulkan terms of each way.
var accesses = []struct {
	way         Access
	stage       vk.PipelineStageFlags
	read, write vk.AccessFlags
}{
	{Compute, vk.PipelineStageComputeShaderBit, vk.AccessShaderReadBit, vk.AccessShaderWriteBit},
	{Transfer, vk.PipelineStageTransferBit, vk.AccessTransferReadBit, vk.AccessTransferWriteBit},
	{Host, vk.PipelineStageHostBit, vk.AccessHostReadBit, vk.AccessHostWriteBit},
	{Indirect, vk.PipelineStageDrawIndirectBit, vk.AccessIndirectCommandReadBit, 0},
}

func (a Access) flags() (stage vk.PipelineStageFlags, read, write vk.AccessFlags) {
	for _, row := range accesses {
		if a&row.way != 0 {
			stage |= row.stage
			read |= row.read
			write |= row.write
		}
	}
	return stage, read, write
}

// Commands is a command buffer: recorded once, ended, then submitted any
// number of times, also while an earlier submission of it is pending.
type Commands struct {
	dev    *Device
	pool   vk.CommandPool
	handle vk.CommandBuffer
}

// NewCommands begins the recording of a command buffer.
func (d *Device) NewCommands() (*Commands, error) {
	c := &Commands{dev: d}
	// A pool of its own: pools may not be used by two goroutines at once.
	pool := vk.CommandPoolCreateInfo{
		SType:            vk.StructureTypeCommandPoolCreateInfo,
		QueueFamilyIndex: d.Info.family,
	}
	if err := d.cmd.CreateCommandPool(d.handle, &pool, &c.pool).Err(); err != nil {
		return nil, d.errorf("create command pool: %w", err)
	}
	d.owned.Own(c)
	alloc := vk.CommandBufferAllocateInfo{
		SType:              vk.StructureTypeCommandBufferAllocateInfo,
		CommandPool:        c.pool,
		Level:              vk.CommandBufferLevelPrimary,
		CommandBufferCount: 1,
	}
	err := d.cmd.AllocateCommandBuffers(d.handle, &alloc, &c.handle).Err()
	if err == nil {
		err = d.cmd.BeginCommandBuffer(c.handle, &vk.CommandBufferBeginInfo{
			SType: vk.StructureTypeCommandBufferBeginInfo,
			Flags: vk.CommandBufferUsageSimultaneousUseBit,
		}).Err()
	}
	if err != nil {
		c.Free()
		return nil, d.errorf("begin command buffer: %w", err)
	}
	return c, nil
}

// Bind makes p the pipeline of the dispatches that follow.
func (c *Commands) Bind(p *Pipeline) {
	c.dev.cmd.CmdBindPipeline(c.handle, vk.PipelineBindPointCompute, p.handle)
}

// Push sets the addresses that the dispatches that follow get as push constants: one
// or more, no more than the device's limit allows.
func (c *Commands) Push(addresses ...uint64) {
	c.dev.cmd.CmdPushConstants(c.handle, c.dev.layout, vk.ShaderStageComputeBit, 0,
		uint32(addressSize*len(addresses)), unsafe.Pointer(unsafe.SliceData(addresses)))
}

// Dispatch runs the bound pipeline on a grid of x*y*z workgroups.
func (c *Commands) Dispatch(x, y, z uint32) {
	c.dev.cmd.CmdDispatch(c.handle, x, y, z)
}

// DispatchIndirect is Dispatch with a grid of three uint32 that the device
// reads from the buffer at the offset, a multiple of 4.
func (c *Commands) DispatchIndirect(b *Buffer, offset int64) {
	c.dev.cmd.CmdDispatchIndirect(c.handle, b.handle, uint64(offset))
}

// Barrier completes the accesses of kinds from before it and makes them
// visible to accesses of kinds to after it.
func (c *Commands) Barrier(from, to Access) {
	fromStage, _, written := from.flags()
	toStage, read, write := to.flags()
	c.dev.cmd.CmdPipelineBarrier(c.handle, fromStage, toStage, 0, 1, &vk.MemoryBarrier{
		SType:         vk.StructureTypeMemoryBarrier,
		SrcAccessMask: written,
		DstAccessMask: read | write,
	}, 0, nil, 0, nil)
}

// Copy copies size bytes between buffers.
func (c *Commands) Copy(dst *Buffer, dstOffset int64, src *Buffer, srcOffset, size int64) {
	c.dev.cmd.CmdCopyBuffer(c.handle, src.handle, dst.handle, 1, &vk.BufferCopy{
		SrcOffset: uint64(srcOffset), DstOffset: uint64(dstOffset), Size: uint64(size),
	})
}

// Fill writes value to size bytes. Offset and size are multiples of 4.
func (c *Commands) Fill(dst *Buffer, offset, size int64, value uint32) {
	c.dev.cmd.CmdFillBuffer(c.handle, dst.handle, uint64(offset), uint64(size), value)
}

// ResetTimestamps forgets slots of t. It comes before the first Timestamp of each in every submission.
func (c *Commands) ResetTimestamps(t *Timestamps, first, count uint32) {
	c.dev.cmd.CmdResetQueryPool(c.handle, t.pool, first, count)
}

// Timestamp writes into slot i of t the time at which all before it is done.
func (c *Commands) Timestamp(t *Timestamps, i int) {
	c.dev.cmd.CmdWriteTimestamp(c.handle, vk.PipelineStageBottomOfPipeBit, t.pool, uint32(i))
}

// End ends the recording. Errors of all recorded commands show here.
func (c *Commands) End() error {
	if err := c.dev.cmd.EndCommandBuffer(c.handle).Err(); err != nil {
		return c.dev.errorf("record commands: %w", err)
	}
	return nil
}

// Free frees the command buffer once the submissions that were made before have ended.
func (c *Commands) Free() { c.dev.free(c) }

func (c *Commands) release() { c.dev.cmd.DestroyCommandPool(c.dev.handle, c.pool) }
