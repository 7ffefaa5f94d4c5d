package cuda

import (
	"time"
	"unsafe"

	"github.com/zincc-dev/zincc/runtime/driver"
)

// clock is an event for each slot.
type clock struct {
	dev    *Device
	events []uintptr
}

// Clock makes slots for times.
func (d *Device) Clock(slots int) (driver.Clock, error) {
	k := &clock{dev: d}
	for range slots {
		e, err := d.event(0)
		if err != nil {
			k.release()
			return nil, err
		}
		k.events = append(k.events, e)
	}
	d.owned.Own(k)
	return k, nil
}

// Read returns the times since that of slot 0.
func (k *clock) Read() ([]time.Duration, error) {
	times := make([]time.Duration, len(k.events))
	for i, e := range k.events {
		var ms float32
		if err := k.dev.call(cuEventElapsedTime, uintptr(unsafe.Pointer(&ms)), k.events[0], e); err != nil {
			return nil, k.dev.errorf("event: %w", err)
		}
		times[i] = time.Duration(float64(ms) * 1e6)
	}
	return times, nil
}

// Free frees the events once nothing uses them.
func (k *clock) Free() { k.dev.free(k) }

func (k *clock) release() {
	for _, e := range k.events {
		_ = k.dev.call(cuEventDestroy, e)
	}
}

// noTime is a flag of events that only end.
const noTime = 2

// event makes an event.
func (d *Device) event(flags uintptr) (e uintptr, err error) {
	if err := d.call(cuEventCreate, uintptr(unsafe.Pointer(&e)), flags); err != nil {
		return 0, d.errorf("event: %w", err)
	}
	return e, nil
}
