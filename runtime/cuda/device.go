// Package cuda runs plans on NVIDIA's GPUs through the driver alone: libcuda.so.1 is part of it,
// no toolkit is needed.
package cuda

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// Device is an open device. Its methods may be called by several goroutines, but one stream has
// all the work.
type Device struct {
	Info    Info
	driver  *driver
	context uintptr
	stream  uintptr

	mu    sync.Mutex
	owned map[*allocation]bool
}

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
	d := &Device{Info: all[index], owned: map[*allocation]bool{}}
	if d.driver, err = load(); err != nil {
		return nil, err
	}
	if err := d.open(); err != nil {
		d.Close()
		return nil, d.errorf("%w", err)
	}
	return d, nil
}

func (d *Device) open() error {
	if err := d.driver.call(cuDevicePrimaryCtxRetain, uintptr(unsafe.Pointer(&d.context)), uintptr(d.Info.handle)); err != nil {
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
	if err := d.driver.call(cuCtxSetCurrent, d.context); err != nil {
		return err
	}
	return d.driver.call(function, args...)
}

func (d *Device) errorf(format string, args ...any) error {
	return fmt.Errorf("device %s: %w", d.Info.Name, explained(fmt.Errorf(format, args...)))
}

// Close frees everything on the device. What is still running ends first.
func (d *Device) Close() {
	if d.context == 0 {
		return
	}
	if d.stream != 0 {
		_ = d.call(cuStreamSynchronize, d.stream) // of a device that failed nothing can be said here
		_ = d.call(cuStreamDestroy, d.stream)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for a := range d.owned {
		a.release()
	}
	clear(d.owned)
	_ = d.driver.call(cuDevicePrimaryCtxRelease, uintptr(d.Info.handle))
	d.context = 0
}
