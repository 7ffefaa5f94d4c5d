package vulkan

import (
	"time"
	"unsafe"

	"github.com/zincc-dev/zincc/runtime/vulkan/vk"
)

// Timestamps is a number of slots for device times.
type Timestamps struct {
	dev   *Device
	pool  vk.QueryPool
	count uint32
}

// NewTimestamps makes n slots.
func (d *Device) NewTimestamps(n int) (*Timestamps, error) {
	if d.Info.Limits.TimestampBits == 0 {
		return nil, d.errorf("has no timestamps")
	}
	t := &Timestamps{dev: d, count: uint32(n)}
	info := vk.QueryPoolCreateInfo{
		SType:      vk.StructureTypeQueryPoolCreateInfo,
		QueryType:  vk.QueryTypeTimestamp,
		QueryCount: t.count,
	}
	if err := d.cmd.CreateQueryPool(d.handle, &info, &t.pool).Err(); err != nil {
		return nil, d.errorf("create %d timestamps: %w", n, err)
	}
	d.owned.Own(t)
	return t, nil
}

// Read waits for all slots to be written and returns the times since the first.
func (t *Timestamps) Read() ([]time.Duration, error) {
	d := t.dev
	ticks := make([]uint64, t.count)
	err := d.cmd.GetQueryPoolResults(d.handle, t.pool, 0, t.count, uintptr(len(ticks)*8),
		unsafe.Pointer(unsafe.SliceData(ticks)), 8, vk.QueryResult64Bit|vk.QueryResultWaitBit).Err()
	if err != nil {
		return nil, d.errorf("read timestamps: %w", err)
	}
	mask := ^uint64(0) >> (64 - d.Info.Limits.TimestampBits) // higher bits are undefined and the rest may wrap
	times := make([]time.Duration, t.count)
	for i, v := range ticks {
		times[i] = time.Duration(float64((v-ticks[0])&mask) * float64(d.Info.Limits.TimestampPeriod))
	}
	return times, nil
}

// Free frees the slots once the submissions that were made before have ended.
func (t *Timestamps) Free() { t.dev.free(t) }

func (t *Timestamps) release() { t.dev.cmd.DestroyQueryPool(t.dev.handle, t.pool) }
