package vulkan

import (
	"errors"
	"time"
	"unsafe"

	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/vulkan/vk"
)

// createTimeline makes the semaphore that counts submissions, with the first
// of them: drivers without hardware behind them compile pipelines but have no
// semaphores.
func (d *Device) createTimeline() error {
	info := vk.SemaphoreCreateInfo{
		SType: vk.StructureTypeSemaphoreCreateInfo,
		PNext: unsafe.Pointer(&vk.SemaphoreTypeCreateInfo{
			SType:         vk.StructureTypeSemaphoreTypeCreateInfo,
			SemaphoreType: vk.SemaphoreTypeTimeline,
		}),
	}
	return d.cmd.CreateSemaphore(d.handle, &info, &d.timeline).Err()
}

// Submit hands recorded command buffers to the device, to run in this order,
// and returns the number of the submission, for Wait. Submissions count from 1.
//
// They begin in order of submission but overlap like the commands within one:
// a Barrier at the beginning of a command buffer orders it after what was
// submitted before. With after not 0, the device waits until submission after
// and all before it have ended, and sees all that they wrote.
func (d *Device) Submit(after uint64, cmds ...*Commands) (uint64, error) {
	handles := make([]vk.CommandBuffer, len(cmds))
	for i, c := range cmds {
		handles[i] = c.handle
	}
	d.queueMu.Lock()
	defer d.queueMu.Unlock()
	if after > d.submitted {
		return 0, d.errorf("submit: waits for submission %d of %d", after, d.submitted)
	}
	next := d.submitted + 1
	if d.timeline == 0 {
		if err := d.createTimeline(); err != nil {
			return 0, d.errorf("create timeline semaphore: %w", err)
		}
	}
	timeline := vk.TimelineSemaphoreSubmitInfo{
		SType:                     vk.StructureTypeTimelineSemaphoreSubmitInfo,
		SignalSemaphoreValueCount: 1,
		PSignalSemaphoreValues:    &next,
	}
	semaphore := d.timeline
	info := vk.SubmitInfo{
		SType:                vk.StructureTypeSubmitInfo,
		PNext:                unsafe.Pointer(&timeline),
		CommandBufferCount:   uint32(len(handles)),
		PCommandBuffers:      unsafe.SliceData(handles),
		SignalSemaphoreCount: 1,
		PSignalSemaphores:    &semaphore,
	}
	if after != 0 {
		stage := vk.PipelineStageAllCommandsBit
		timeline.WaitSemaphoreValueCount, timeline.PWaitSemaphoreValues = 1, &after
		info.WaitSemaphoreCount, info.PWaitSemaphores, info.PWaitDstStageMask = 1, &semaphore, &stage
	}
	if err := d.cmd.QueueSubmit(d.queue, 1, &info, 0).Err(); err != nil {
		return 0, d.queueError(err, "submit", next)
	}
	d.submitted = next
	return next, nil
}

// Wait waits until a submission that was made and all before it have ended.
// When that takes longer than the timeout, the error is vk.Timeout. Polling
// Completed sees the end sooner, at the price of a busy processor: 18 us after
// an empty submission to an H100, where Wait took 60 on average.
func (d *Device) Wait(submission uint64, timeout time.Duration) error {
	d.queueMu.Lock()
	semaphore, submitted := d.timeline, d.submitted
	d.queueMu.Unlock()
	if submission > submitted {
		return d.errorf("wait for submission %d of %d", submission, submitted)
	}
	if submission == 0 {
		return nil
	}
	r := d.cmd.WaitSemaphores(d.handle, &vk.SemaphoreWaitInfo{
		SType:          vk.StructureTypeSemaphoreWaitInfo,
		SemaphoreCount: 1,
		PSemaphores:    &semaphore,
		PValues:        &submission,
	}, uint64(max(timeout, 0)))
	if r == vk.Timeout {
		return d.errorf("submission %d did not end within %v: %w", submission, timeout, r)
	}
	if err := r.Err(); err != nil {
		return d.queueError(err, "wait for", submission)
	}
	return nil
}

// Completed is the number of the last submission that has ended, 0 before the
// first.
func (d *Device) Completed() (uint64, error) {
	d.queueMu.Lock()
	semaphore, submitted := d.timeline, d.submitted
	d.queueMu.Unlock()
	if submitted == 0 {
		return 0, nil
	}
	var n uint64
	if err := d.cmd.GetSemaphoreCounterValue(d.handle, semaphore, &n).Err(); err != nil {
		return 0, d.queueError(err, "look at", submitted)
	}
	return n, nil
}

// queueError explains a lost device: every later call fails with it as well.
func (d *Device) queueError(err error, what string, submission uint64) error {
	if errors.Is(err, vk.ErrorDeviceLost) {
		return d.errorf("%s submission %d: %w: %w: a kernel failed or ran into the driver's time limit; the device must be opened again", what, submission, err, driver.ErrLost)
	}
	return d.errorf("%s submission %d: %w", what, submission, err)
}
