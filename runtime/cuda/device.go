// Package cuda runs plans on NVIDIA's GPUs through the driver alone: libcuda.so.1 is part of it,
// no toolkit is needed.
package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/internal/owned"
)

// Device is an open device. It is a driver.Device: one stream has all that is submitted.
type Device struct {
	info      Info
	lib       *library
	context   uintptr
	stream    uintptr
	functions []*function // of the plan, by pipeline

	begun, submitted, done driver.Fence // submissions that were begun, made, and seen to have ended
	pending                []pending    // those that were made and not seen to have ended, in order
	spare                  []uintptr    // events that nothing waits for
	lost                   error        // why the device does nothing more

	owned owned.Set[resource]
}

// pending is a submission and the event at its end.
type pending struct {
	fence driver.Fence
	event uintptr
}

// resource is something that was made on the device.
type resource interface{ release() }

// Open opens the device of that index and checks that it meets the requirements of a plan.
func Open(index int, need plans.Requirements) (*Device, error) {
	all, err := Enumerate()
	if err != nil {
		return nil, ir.Unsupported("%s", err)
	}
	if index < 0 || index >= len(all) {
		return nil, ir.Unsupported("there is no device cuda:%d: CUDA lists %d", index, len(all))
	}
	if err := all[index].Check(need); err != nil {
		return nil, err
	}
	d := &Device{info: all[index], owned: owned.Set[resource]{Release: resource.release}}
	if d.lib, err = load(); err != nil {
		return nil, err
	}
	if err := d.open(); err != nil {
		d.Close()
		return nil, d.errorf("%w", err)
	}
	return d, nil
}

func (d *Device) open() error {
	if err := d.lib.call(cuDevicePrimaryCtxRetain, uintptr(unsafe.Pointer(&d.context)), uintptr(d.info.handle)); err != nil {
		return err
	}
	const nonBlocking = 1
	return d.call(cuStreamCreate, uintptr(unsafe.Pointer(&d.stream)), nonBlocking)
}

// call calls the driver with the device's context, which belongs to a thread.
//
//go:uintptrescapes
func (d *Device) call(function int, args ...uintptr) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.lib.call(cuCtxSetCurrent, d.context); err != nil {
		return err
	}
	return d.lib.call(function, args...)
}

func (d *Device) errorf(format string, args ...any) error {
	return fmt.Errorf("device %s: %w", d.info.Name, explained(fmt.Errorf(format, args...)))
}

// Info is what the executor tells of the device.
func (d *Device) Info() driver.Info {
	return driver.Info{Backend: "CUDA", Name: d.info.Name, Driver: d.info.DriverText()}
}

// free releases a resource once what was submitted before has ended, also of a submission that failed.
func (d *Device) free(r resource) {
	d.owned.Free(r, d.begun)
	d.owned.Sweep(d.look)
}

// closeTimeout bounds the wait of Close: who gave up a wait for the device does not want another one.
const closeTimeout = time.Second

// Close frees everything on the device. What runs longer keeps what it uses until the process ends.
func (d *Device) Close() {
	if d.context == 0 {
		return
	}
	if d.stream != 0 {
		if d.drain() != nil {
			return
		}
		_ = d.call(cuStreamDestroy, d.stream)
	}
	for _, p := range d.pending {
		d.spare = append(d.spare, p.event)
	}
	for _, e := range d.spare {
		_ = d.call(cuEventDestroy, e)
	}
	d.owned.Close()
	_ = d.lib.call(cuDevicePrimaryCtxRelease, uintptr(d.info.handle))
	d.context = 0
}

// drain waits for all that is on the stream, also of a submission that failed. It returns driver.ErrTimeout where that
// takes too long; of a device that failed nothing can be said here.
func (d *Device) drain() error {
	for began := time.Now(); errors.Is(d.call(cuStreamQuery, d.stream), notReady); time.Sleep(time.Millisecond) {
		if time.Since(began) > closeTimeout {
			return driver.ErrTimeout
		}
	}
	return nil
}
