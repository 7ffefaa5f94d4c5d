package exec

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/zincc-dev/zincc/runtime/driver"
)

const (
	// pieceBytes is how much one processor fills and the device copies at a time.
	pieceBytes = 2 << 20
	// mostFillers is enough processors to fill what a bus takes.
	mostFillers = 16
	// uploadTimeout is for the copies of what was filled: far longer than any bus needs, so it only ends the wait for a
	// device that hangs.
	uploadTimeout = time.Minute
)

// uploader writes to memory that the host cannot reach, piece by piece: processors fill some pieces of staging memory
// while the device copies from others. No piece waits for another: a thread alone fills less than the bus takes, and
// reads less than the disk gives of a file that the system does not hold. It is for one goroutine, which alone talks to
// the device.
type uploader struct {
	dev      driver.Device
	piece    int64 // bytes
	fillers  int
	progress func(bytes int64)

	staging driver.Memory // taken at the first write
	free    []int64       // pieces that nobody has, by where they begin
	filled  chan piece
	filling int       // pieces that will come through filled
	copying []copying // in order of submission
	err     error     // the first of filling
}

// piece is a part of the staging memory, which a copy takes from there.
type piece struct {
	driver.Copy
	err error // of filling it
}

// copying is pieces that the device copies.
type copying struct {
	pieces []piece
	work   driver.Work
	fence  driver.Fence
}

// newUploader makes an uploader of pieces of that many bytes. progress, if not nil, is called with the number of bytes
// that have arrived.
func newUploader(dev driver.Device, bytes int64, progress func(bytes int64)) *uploader {
	n := min(runtime.GOMAXPROCS(0), mostFillers)
	return &uploader{dev: dev, piece: bytes, fillers: n, progress: progress, filled: make(chan piece, n)}
}

// report tells of bytes that have arrived.
func (u *uploader) report(bytes int64) {
	if u.progress != nil {
		u.progress(bytes)
	}
}

// write begins to write size bytes to memory at the offset. fill is called with pieces of them, several at once, until
// flush or close returns, and writes each: p is what the bytes from at on, counted from offset, shall be. The memory of
// p may be slow to read. Writes before one flush must not overlap. The error may be of a write before.
func (u *uploader) write(to driver.Memory, offset, size int64, fill func(p []byte, at int64) error) error {
	for at := int64(0); at < size; at += u.piece {
		from, err := u.take()
		if err != nil {
			return err
		}
		p := piece{Copy: driver.Copy{To: to, ToAt: offset + at, From: u.staging, FromAt: from, Bytes: min(size-at, u.piece)}}
		memory := u.staging.Bytes()[from : from+p.Bytes : from+p.Bytes]
		u.filling++
		go func() {
			p.err = fill(memory, at)
			u.filled <- p
		}()
	}
	return u.err
}

// take returns a piece that is free, as soon as a processor is.
func (u *uploader) take() (at int64, err error) {
	if u.staging == nil {
		n := int64(2 * u.fillers)
		if u.staging, err = u.dev.Alloc(n*u.piece, driver.Upload); err != nil {
			return 0, err
		}
		for i := range n {
			u.free = append(u.free, i*u.piece)
		}
	}
	for u.filling == u.fillers || len(u.free) == 0 {
		if err := u.advance(); err != nil {
			return 0, err
		}
	}
	at, u.free = u.free[0], u.free[1:]
	return at, u.err
}

// advance waits until a piece is filled, and has it copied with all that are, or until one is copied.
func (u *uploader) advance() error {
	if u.filling == 0 {
		return u.reclaim(uploadTimeout)
	}
	var c copying
	var copies []driver.Copy
	for u.filling > 0 && (len(c.pieces) == 0 || len(u.filled) > 0) {
		p := <-u.filled
		u.filling--
		if u.err == nil {
			u.err = p.err
		}
		c.pieces, copies = append(c.pieces, p), append(copies, p.Copy)
	}
	if u.err != nil {
		return u.err
	}
	var err error
	if c.work, err = u.dev.Record(driver.Stage{Copies: copies}); err != nil {
		return err
	}
	if c.fence, err = u.dev.Submit(c.work); err != nil {
		c.work.Free()
		return err
	}
	u.copying = append(u.copying, c)
	return u.reclaim(0)
}

// reclaim frees the pieces whose copies have ended, and waits for the oldest copy if there is a timeout.
func (u *uploader) reclaim(timeout time.Duration) error {
	for len(u.copying) > 0 {
		c := u.copying[0]
		switch err := u.dev.Wait(c.fence, timeout); {
		case err == nil:
		case timeout == 0 && errors.Is(err, driver.ErrTimeout):
			return nil
		default:
			return fmt.Errorf("upload: %w", err)
		}
		u.copying, timeout = u.copying[1:], 0
		c.work.Free()
		for _, p := range c.pieces {
			u.free = append(u.free, p.FromAt)
			u.report(p.Bytes)
		}
	}
	return nil
}

// flush waits until everything written is in its place.
func (u *uploader) flush() error {
	for u.err == nil && u.filling+len(u.copying) > 0 {
		if err := u.advance(); err != nil {
			return err
		}
	}
	return u.err
}

// close frees the staging memory once the copies from it have ended; what was not flushed may be lost.
func (u *uploader) close() {
	for ; u.filling > 0; u.filling-- {
		<-u.filled
	}
	for _, c := range u.copying {
		c.work.Free()
	}
	u.copying = nil
	if u.staging != nil {
		u.staging.Free()
	}
}
