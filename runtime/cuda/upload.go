package cuda

import (
	"context"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sync/errgroup"
)

// pieceBytes is how much of a tensor is filled by one processor and copied at a time.
const pieceBytes = 2 << 20

// uploader fills pieces of host memory on all processors while the device copies from others. No piece waits
// for another: a thread alone fills less than the bus takes, and reads less than the disk gives of a file that
// the system does not hold.
type uploader struct {
	dev      *Device
	stream   uintptr // beside the device's: work there does not wait for copies
	staging  *allocation
	pieces   []*piece
	free     chan *piece
	work     *errgroup.Group
	ctx      context.Context // ends with the first error
	progress func(bytes int64)
	reports  sync.Mutex
}

// piece is a part of the staging memory.
type piece struct {
	memory []byte
	copied uintptr // event: the copy from it has ended
	busy   bool    // there is such a copy
}

func (d *Device) newUploader(ctx context.Context, progress func(bytes int64)) (*uploader, error) {
	threads := runtime.GOMAXPROCS(0)
	u := &uploader{dev: d, progress: progress, free: make(chan *piece, 2*threads)}
	u.work, u.ctx = errgroup.WithContext(ctx)
	u.work.SetLimit(threads)
	if err := u.open(); err != nil {
		u.close()
		return nil, err
	}
	return u, nil
}

func (u *uploader) open() (err error) {
	const nonBlocking = 1
	if err := u.dev.call(cuStreamCreate, uintptr(unsafe.Pointer(&u.stream)), nonBlocking); err != nil {
		return u.dev.errorf("stream: %w", err)
	}
	if u.staging, err = u.dev.allocHost(int64(cap(u.free)) * pieceBytes); err != nil {
		return err
	}
	for i := range cap(u.free) {
		p := &piece{memory: u.staging.mapped[i*pieceBytes : (i+1)*pieceBytes]}
		const blocking, noTime = 1, 2 // who waits leaves the processor to who fills
		if err := u.dev.call(cuEventCreate, uintptr(unsafe.Pointer(&p.copied)), blocking|noTime); err != nil {
			return u.dev.errorf("event: %w", err)
		}
		u.pieces = append(u.pieces, p)
		u.free <- p
	}
	return nil
}

// write begins to put bytes at an address. fill is called with pieces of them, several at once, until finish
// returns.
func (u *uploader) write(to uint64, bytes int64, fill func(p []byte, at int64) error) error {
	for at := int64(0); at < bytes; at += pieceBytes {
		if u.ctx.Err() != nil {
			return context.Cause(u.ctx)
		}
		n := min(bytes-at, pieceBytes)
		u.work.Go(func() error { return u.one(to+uint64(at), n, func(p []byte) error { return fill(p, at) }) })
	}
	return nil
}

// one fills a piece and has it copied.
func (u *uploader) one(to uint64, bytes int64, fill func(p []byte) error) error {
	p := <-u.free // there are more than threads
	defer func() { u.free <- p }()
	if p.busy {
		p.busy = false
		if err := u.dev.call(cuEventSynchronize, p.copied); err != nil {
			return u.dev.errorf("upload: %w", err)
		}
	}
	if err := fill(p.memory[:bytes]); err != nil {
		return err
	}
	if err := u.dev.call(cuMemcpyHtoDAsync, uintptr(to), uintptr(unsafe.Pointer(&p.memory[0])), uintptr(bytes), u.stream); err != nil {
		return u.dev.errorf("upload: %w", err)
	}
	p.busy = true
	if err := u.dev.call(cuEventRecord, p.copied, u.stream); err != nil {
		return u.dev.errorf("upload: %w", err)
	}
	if u.progress != nil {
		u.reports.Lock()
		u.progress(bytes)
		u.reports.Unlock()
	}
	return nil
}

// finish waits for all copies and frees the buffers.
func (u *uploader) finish() error {
	err := u.work.Wait()
	if end := u.dev.call(cuStreamSynchronize, u.stream); err == nil && end != nil {
		err = u.dev.errorf("upload: %w", end)
	}
	u.close()
	return err
}

func (u *uploader) close() {
	if u.staging != nil {
		u.staging.free()
	}
	for _, p := range u.pieces {
		_ = u.dev.call(cuEventDestroy, p.copied)
	}
	if u.stream != 0 {
		_ = u.dev.call(cuStreamDestroy, u.stream)
	}
}
