package cuda

import (
	"fmt"
	"unsafe"

	"github.com/zincc-dev/zincc/runtime/driver"
)

// allocation is memory of the device, or of the host where the device reaches it.
type allocation struct {
	dev     *Device
	address uint64
	bytes   int64
	host    bool
}

// Alloc takes memory.
func (d *Device) Alloc(bytes int64, kind driver.Kind) (driver.Memory, error) {
	a := &allocation{dev: d, bytes: bytes, host: kind != driver.Local}
	if bytes <= 0 {
		return nil, d.errorf("allocate %d bytes", bytes)
	}
	d.owned.Sweep(d.look) // there may be no room for both
	if a.host {
		if err := d.call(cuMemHostAlloc, uintptr(unsafe.Pointer(&a.address)), uintptr(bytes), 0); err != nil {
			return nil, d.errorf("allocate %d bytes of the host's memory: %w", bytes, err)
		}
	} else if err := d.call(cuMemAlloc, uintptr(unsafe.Pointer(&a.address)), uintptr(bytes)); err != nil {
		if free, total, e := d.memory(); e == nil {
			err = fmt.Errorf("%w; %d of %d are free", err, free, total)
		}
		return nil, d.errorf("allocate %d bytes: %w", bytes, err)
	}
	d.owned.Own(a)
	return a, nil
}

// Address is the memory's for kernels, and for the host, whose addresses are the device's, too.
func (a *allocation) Address() uint64 { return a.address }

// Size is the bytes that were asked for.
func (a *allocation) Size() int64 { return a.bytes }

// Bytes is the host's memory, nil for the device's.
func (a *allocation) Bytes() []byte {
	if !a.host {
		return nil
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&a.address)), a.bytes)
}

// Free gives the memory back once nothing uses it.
func (a *allocation) Free() { a.dev.free(a) }

func (a *allocation) release() {
	free := cuMemFree
	if a.host {
		free = cuMemFreeHost
	}
	_ = a.dev.call(free, uintptr(a.address))
}

// memory returns the bytes of the device that are free, and all.
func (d *Device) memory() (free, total uint64, err error) {
	if err := d.call(cuMemGetInfo, uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total))); err != nil {
		return 0, 0, d.errorf("%w", err)
	}
	return free, total, nil
}
