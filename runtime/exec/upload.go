package exec

import (
	"fmt"
	"time"

	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/internal/contents"
)

// uploadTimeout is for one copy of a staging buffer: far longer than any bus
// needs, so it only ends the wait for a device that hangs.
const uploadTimeout = time.Minute

// uploader writes to memory that the host cannot reach, through two staging
// buffers: the host fills one while the device copies from the other. It is
// for one goroutine.
type uploader struct {
	dev      driver.Device
	chunk    int64 // bytes of a staging buffer
	stages   [2]staging
	current  int
	progress func(bytes int64)
}

// staging is a staging buffer and the copies from it.
type staging struct {
	memory  driver.Memory
	used    int64
	copies  []driver.Copy
	work    driver.Work
	pending driver.Fence // the submission that reads it, 0 when there is none
}

// newUploader makes an uploader with staging buffers of chunk bytes each, once something is written.
// progress, if not nil, is called with the number of bytes of each finished
// staging buffer.
func newUploader(dev driver.Device, chunk int64, progress func(bytes int64)) *uploader {
	return &uploader{dev: dev, chunk: chunk, progress: progress}
}

// report says that so many bytes have arrived.
func (u *uploader) report(bytes int64) {
	if u.progress != nil {
		u.progress(bytes)
	}
}

// write writes size bytes to memory at the offset. fill is called with pieces of
// them, several at once, and writes each: p is what the bytes from at on, counted from
// offset, shall be. The memory of p may be slow to read. The write is done after flush;
// writes before one flush must not overlap.
func (u *uploader) write(to driver.Memory, offset, size int64, fill func(p []byte, at int64) error) error {
	for at := int64(0); at < size; {
		n := min(size-at, u.chunk)
		s := &u.stages[u.current]
		if err := u.settle(s); err != nil {
			return err
		}
		if s.memory == nil {
			var err error
			if s.memory, err = u.dev.Alloc(u.chunk, driver.Upload); err != nil {
				return err
			}
		}
		if s.used+n > u.chunk {
			if err := u.submit(); err != nil {
				return err
			}
			continue
		}
		if err := contents.Fill(s.memory.Bytes()[s.used:s.used+n:s.used+n], at, fill); err != nil {
			return err
		}
		s.copies = append(s.copies, driver.Copy{To: to, ToAt: offset + at, From: s.memory, FromAt: s.used, Bytes: n})
		s.used = (s.used + n + placeAlign - 1) / placeAlign * placeAlign
		at += n
	}
	return nil
}

// submit starts the copies of the current staging buffer and goes on to the other one.
func (u *uploader) submit() error {
	s := &u.stages[u.current]
	u.current = (u.current + 1) % len(u.stages)
	if len(s.copies) == 0 {
		return nil
	}
	var err error
	if s.work, err = u.dev.Record(driver.Stage{Copies: s.copies}); err != nil {
		return err
	}
	s.pending, err = u.dev.Submit(s.work)
	return err
}

// settle waits for the copies from a staging buffer, so that it can be filled anew.
func (u *uploader) settle(s *staging) error {
	if s.pending == 0 {
		return nil
	}
	if err := u.dev.Wait(s.pending, uploadTimeout); err != nil {
		return fmt.Errorf("upload: %w", err)
	}
	var done int64
	for _, c := range s.copies {
		done += c.Bytes
	}
	s.work.Free()
	s.pending, s.work, s.used, s.copies = 0, nil, 0, s.copies[:0]
	u.report(done)
	return nil
}

// flush waits until everything written is in its place.
func (u *uploader) flush() error {
	if err := u.submit(); err != nil {
		return err
	}
	for range u.stages {
		if err := u.settle(&u.stages[u.current]); err != nil {
			return err
		}
		u.current = (u.current + 1) % len(u.stages)
	}
	return nil
}

// close frees the staging buffers once the copies from them have ended; what was not flushed may be lost.
func (u *uploader) close() {
	for i := range u.stages {
		s := &u.stages[i]
		if s.work != nil {
			s.work.Free()
		}
		if s.memory != nil {
			s.memory.Free()
		}
	}
}
