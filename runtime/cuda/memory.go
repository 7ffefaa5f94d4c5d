package cuda

import (
	"fmt"
	"time"
	"unsafe"
)

// allocation is memory of the device, or of the host where the device reaches it.
type allocation struct {
	dev     *Device
	address uint64
	bytes   int64
	mapped  []byte // nil for the device's own
}

// alloc takes memory of the device. Its content is undefined.
func (d *Device) alloc(bytes int64) (*allocation, error) {
	a := &allocation{dev: d, bytes: bytes}
	if err := d.call(cuMemAlloc, uintptr(unsafe.Pointer(&a.address)), uintptr(max(bytes, 1))); err != nil {
		if free, total, e := d.memory(); e == nil {
			err = fmt.Errorf("%w; %d of %d are free", err, free, total)
		}
		return nil, d.errorf("allocate %d bytes: %w", bytes, err)
	}
	d.own(a)
	return a, nil
}

// allocHost takes memory of the host that copies may use while the host goes on.
func (d *Device) allocHost(bytes int64) (*allocation, error) {
	a := &allocation{dev: d, bytes: bytes}
	var p unsafe.Pointer
	if err := d.call(cuMemHostAlloc, uintptr(unsafe.Pointer(&p)), uintptr(bytes), 0); err != nil {
		return nil, d.errorf("allocate %d bytes of the host's memory: %w", bytes, err)
	}
	a.mapped = unsafe.Slice((*byte)(p), bytes)
	d.own(a)
	return a, nil
}

func (d *Device) own(a *allocation) {
	d.mu.Lock()
	d.owned[a] = true
	d.mu.Unlock()
}

// free gives the memory back. Nothing that uses it may be running.
func (a *allocation) free() {
	d := a.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.owned[a] {
		delete(d.owned, a)
		a.release()
	}
}

func (a *allocation) release() {
	if a.mapped != nil {
		_ = a.dev.call(cuMemFreeHost, uintptr(unsafe.Pointer(&a.mapped[0])))
		a.mapped = nil
		return
	}
	_ = a.dev.call(cuMemFree, uintptr(a.address))
}

// memory returns the bytes of the device that are free, and all.
func (d *Device) memory() (free, total uint64, err error) {
	if err := d.call(cuMemGetInfo, uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total))); err != nil {
		return 0, 0, d.errorf("%w", err)
	}
	return free, total, nil
}

// The copies are done in the order of the stream; host memory must be of allocHost.

func (d *Device) upload(to uint64, from []byte) error {
	if len(from) == 0 {
		return nil
	}
	return d.call(cuMemcpyHtoDAsync, uintptr(to), uintptr(unsafe.Pointer(&from[0])), uintptr(len(from)), d.stream)
}

func (d *Device) download(to []byte, from uint64) error {
	if len(to) == 0 {
		return nil
	}
	return d.call(cuMemcpyDtoHAsync, uintptr(unsafe.Pointer(&to[0])), uintptr(from), uintptr(len(to)), d.stream)
}

func (d *Device) copy(to, from uint64, bytes int64) error {
	return d.call(cuMemcpyDtoDAsync, uintptr(to), uintptr(from), uintptr(bytes), d.stream)
}

// event makes an event that keeps the time.
func (d *Device) event() (e uintptr, err error) {
	if err := d.call(cuEventCreate, uintptr(unsafe.Pointer(&e)), 0); err != nil {
		return 0, d.errorf("event: %w", err)
	}
	return e, nil
}

// between returns the time from one event to another.
func (d *Device) between(first, second uintptr) (time.Duration, error) {
	var ms float32
	if err := d.call(cuEventElapsedTime, uintptr(unsafe.Pointer(&ms)), first, second); err != nil {
		return 0, fmt.Errorf("event: %w", err)
	}
	return time.Duration(float64(ms) * 1e6), nil
}
