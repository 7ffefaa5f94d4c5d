package cuda

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/zincc-dev/zincc/runtime/internal/contents"
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

// stagingBytes is the size of each of an uploader's two buffers.
const stagingBytes = 16 << 20

// uploader fills one buffer while the device copies from the other.
type uploader struct {
	dev      *Device
	staging  [2]*allocation
	done     [2]uintptr // events: the copies from a buffer have ended
	busy     [2]bool
	used     int64 // of the current buffer
	current  int
	progress func(bytes int64)
}

func (d *Device) newUploader(progress func(bytes int64)) (*uploader, error) {
	u := &uploader{dev: d, progress: progress}
	for i := range u.staging {
		var err error
		if u.staging[i], err = d.allocHost(stagingBytes); err == nil {
			u.done[i], err = d.event()
		}
		if err != nil {
			u.free()
			return nil, err
		}
	}
	return u, nil
}

// write puts bytes at an address. fill is called with pieces of them, several at once.
func (u *uploader) write(to uint64, bytes int64, fill func(p []byte, at int64) error) error {
	const align = 256
	for at := int64(0); at < bytes; {
		if u.used == stagingBytes {
			if err := u.turn(); err != nil {
				return err
			}
		}
		if u.used == 0 && u.busy[u.current] {
			if err := u.dev.call(cuEventSynchronize, u.done[u.current]); err != nil {
				return u.dev.errorf("upload: %w", err)
			}
			u.busy[u.current] = false
		}
		n := min(bytes-at, stagingBytes-u.used)
		p := u.staging[u.current].mapped[u.used : u.used+n]
		if err := contents.Fill(p, at, fill); err != nil {
			return err
		}
		if err := u.dev.upload(to+uint64(at), p); err != nil {
			return u.dev.errorf("upload: %w", err)
		}
		if u.progress != nil {
			u.progress(n)
		}
		at += n
		u.used = min((u.used+n+align-1)/align*align, stagingBytes)
	}
	return nil
}

// turn goes on to the other buffer.
func (u *uploader) turn() error {
	if err := u.dev.call(cuEventRecord, u.done[u.current], u.dev.stream); err != nil {
		return u.dev.errorf("upload: %w", err)
	}
	u.busy[u.current] = true
	u.current, u.used = 1-u.current, 0
	return nil
}

// finish waits for all copies and frees the buffers.
func (u *uploader) finish() error {
	err := u.dev.call(cuStreamSynchronize, u.dev.stream)
	u.free()
	if err != nil {
		return u.dev.errorf("upload: %w", err)
	}
	return nil
}

func (u *uploader) free() {
	for i, a := range u.staging {
		if a != nil {
			a.free()
		}
		if u.done[i] != 0 {
			_ = u.dev.call(cuEventDestroy, u.done[i])
		}
	}
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
