package vulkan

import (
	"time"

	"github.com/zincc-dev/zincc/runtime/internal/contents"
)

// uploadTimeout is for one copy of a staging buffer: far longer than any bus
// needs, so it only ends the wait for a device that hangs.
const uploadTimeout = time.Minute

// Uploader writes to buffers that the host cannot reach, through two staging
// buffers: the host fills one while the device copies from the other. It is
// for one goroutine.
type Uploader struct {
	dev      *Device
	slots    [2]slot
	current  int
	progress func(bytes int64)
}

// slot is a staging buffer and the copies from it.
type slot struct {
	staging *Buffer
	used    int64
	regions []region
	cmds    *Commands
	pending uint64 // the submission that reads it, 0 when there is none
}

type region struct {
	dst      *Buffer
	dstAt    int64
	srcAt, n int64
}

// stagingAlign is the alignment of every piece in a staging buffer.
const stagingAlign = 256

// NewUploader makes an uploader with staging buffers of chunk bytes each.
// Progress, if not nil, is called with the number of bytes of each finished
// staging buffer.
func (d *Device) NewUploader(chunk int64, progress func(bytes int64)) (*Uploader, error) {
	u := &Uploader{dev: d, progress: progress}
	for i := range u.slots {
		var err error
		if u.slots[i].staging, err = d.Alloc(chunk, Upload); err != nil {
			u.Close()
			return nil, err
		}
	}
	return u, nil
}

// Write writes size bytes to dst at the offset. Fill is called with pieces of
// them, several at once, and writes each: p is what the bytes from at on, counted from
// offset, shall be. The memory of p may be slow to read. The write is done after Flush;
// writes before one Flush must not overlap.
func (u *Uploader) Write(dst *Buffer, offset, size int64, fill func(p []byte, at int64) error) error {
	if offset < 0 || size < 0 || offset > dst.size-size {
		return u.dev.errorf("upload of %d bytes at %d into a buffer of %d", size, offset, dst.size)
	}
	chunk := u.slots[0].staging.size
	for at := int64(0); at < size; {
		n := min(size-at, chunk)
		s := &u.slots[u.current]
		if err := u.settle(s); err != nil {
			return err
		}
		if s.used+n > chunk {
			if err := u.submit(); err != nil {
				return err
			}
			continue
		}
		if err := contents.Fill(s.staging.mapped[s.used:s.used+n:s.used+n], at, fill); err != nil {
			return err
		}
		s.regions = append(s.regions, region{dst, offset + at, s.used, n})
		s.used = (s.used + n + stagingAlign - 1) / stagingAlign * stagingAlign
		at += n
	}
	return nil
}

// submit starts the copies of the current slot and goes on to the other one.
func (u *Uploader) submit() error {
	s := &u.slots[u.current]
	u.current = (u.current + 1) % len(u.slots)
	if len(s.regions) == 0 {
		return nil
	}
	cmds, err := u.dev.NewCommands()
	if err != nil {
		return err
	}
	s.cmds = cmds
	for _, r := range s.regions {
		cmds.Copy(r.dst, r.dstAt, s.staging, r.srcAt, r.n)
	}
	cmds.Barrier(Transfer, Compute|Transfer) // for later submissions
	if err := cmds.End(); err != nil {
		return err
	}
	s.pending, err = u.dev.Submit(0, cmds)
	return err
}

// settle waits for the copies from a slot, so that it can be filled anew.
func (u *Uploader) settle(s *slot) error {
	if s.pending == 0 {
		return nil
	}
	if err := u.dev.Wait(s.pending, uploadTimeout); err != nil {
		return err
	}
	var done int64
	for _, r := range s.regions {
		done += r.n
	}
	s.cmds.Free()
	s.pending, s.cmds, s.used, s.regions = 0, nil, 0, s.regions[:0]
	if u.progress != nil {
		u.progress(done)
	}
	return nil
}

// Flush waits until everything written is in its place.
func (u *Uploader) Flush() error {
	if err := u.submit(); err != nil {
		return err
	}
	for range u.slots {
		if err := u.settle(&u.slots[u.current]); err != nil {
			return err
		}
		u.current = (u.current + 1) % len(u.slots)
	}
	return nil
}

// Close frees the staging buffers; what was not flushed may be lost.
func (u *Uploader) Close() {
	for i := range u.slots {
		s := &u.slots[i]
		if s.pending != 0 {
			_ = u.dev.Wait(s.pending, uploadTimeout) // nothing is left to report to
		}
		if s.cmds != nil {
			s.cmds.Free()
		}
		if s.staging != nil {
			s.staging.Free()
		}
	}
}
