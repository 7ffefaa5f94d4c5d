package cuda

import (
	"errors"
	"time"
	"unsafe"

	"github.com/zincc-dev/zincc/runtime/driver"
)

// Submit launches works on the stream, with an event behind them.
func (d *Device) Submit(works ...driver.Work) (driver.Fence, error) {
	if d.lost != nil {
		return 0, d.lost
	}
	d.begun = d.submitted + 1
	event, err := d.takeEvent()
	if err != nil {
		return 0, d.failed("submit", err)
	}
	for _, w := range works {
		if err := w.(*work).begin(d.stream); err != nil {
			d.spare = append(d.spare, event)
			return 0, d.failed("submit", err)
		}
	}
	if err := d.call(cuEventRecord, event, d.stream); err != nil {
		d.spare = append(d.spare, event)
		return 0, d.failed("submit", err)
	}
	d.submitted = d.begun
	d.pending = append(d.pending, pending{d.submitted, event})
	return d.submitted, nil
}

// takeEvent returns an event that nothing waits for.
func (d *Device) takeEvent() (uintptr, error) {
	if n := len(d.spare); n > 0 {
		e := d.spare[n-1]
		d.spare = d.spare[:n-1]
		return e, nil
	}
	var e uintptr
	err := d.call(cuEventCreate, uintptr(unsafe.Pointer(&e)), noTime)
	return e, err
}

// failed is the error of a verb. Those after which the device does nothing more are kept.
func (d *Device) failed(verb string, err error) error {
	err = d.errorf("%s: %w", verb, err)
	if errors.Is(err, driver.ErrLost) {
		d.lost = err
	}
	return err
}

// look sees which submissions have ended, and returns the last.
func (d *Device) look() (driver.Fence, error) {
	for d.lost == nil && len(d.pending) > 0 {
		err := d.call(cuEventQuery, d.pending[0].event)
		if errors.Is(err, notReady) {
			break
		}
		if err != nil {
			return d.done, d.failed("wait", err)
		}
		d.done = d.pending[0].fence
		d.spare = append(d.spare, d.pending[0].event)
		d.pending = d.pending[1:]
	}
	return d.done, d.lost
}

// spin is how long Wait looks all the time for the end: who sleeps wakes up to a millisecond late, which counts for
// small models.
const spin = 4 * time.Millisecond

// Wait looks for the end of a submission, behind spin in growing intervals, and never sleeps up to the end of the
// timeout.
func (d *Device) Wait(f driver.Fence, timeout time.Duration) error {
	if f > d.submitted {
		return d.errorf("wait for submission %d of %d", f, d.submitted)
	}
	for began := time.Now(); ; {
		done, err := d.look()
		if err != nil {
			return err
		}
		if done >= f {
			return nil
		}
		past := time.Since(began)
		if past >= timeout {
			return driver.ErrTimeout
		}
		if left := timeout - past; past > spin && left > spin {
			time.Sleep(min(past/64, left-spin/2))
		}
	}
}
