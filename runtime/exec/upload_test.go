package exec

import (
	"errors"
	"testing"

	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/driver/fake"
	"github.com/zincc-dev/zincc/runtime/internal/contents"
)

// uploadTo makes an uploader of that chunk, and device memory with what reads it back.
func uploadTo(t *testing.T, chunk, bytes int64, progress func(int64)) (u *uploader, b driver.Memory, read func() []byte) {
	t.Helper()
	d := fake.New(nil)
	t.Cleanup(d.Close)
	alloc := func(kind driver.Kind) driver.Memory {
		m, err := d.Alloc(bytes, kind)
		check(t, err)
		return m
	}
	b, back := alloc(driver.Local), alloc(driver.Readback)
	u = newUploader(d, chunk, progress)
	t.Cleanup(u.close)
	return u, b, func() []byte {
		w, err := d.Record(driver.Stage{Copies: []driver.Copy{{To: back, From: b, Bytes: bytes}}})
		check(t, err)
		f, err := d.Submit(w)
		check(t, err)
		check(t, d.Wait(f, uploadTimeout))
		return back.Bytes()
	}
}

func TestUploader(t *testing.T) {
	var progress int64
	u, b, read := uploadTo(t, 1024, 10_000, func(n int64) { progress += n })
	write := func(offset, size int64) {
		check(t, u.write(b, offset, size, func(p []byte, at int64) error {
			if size <= 1024 && int64(len(p)) != size {
				t.Errorf("a write of %d bytes came in a piece of %d", size, len(p))
			}
			for i := range p {
				p[i] = byte((offset + at + int64(i)) % 251)
			}
			return nil
		}))
	}
	write(0, 5000)
	for at := int64(5000); at < 10_000; at += 40 {
		write(at, 40)
	}
	check(t, u.flush())
	check(t, u.flush())
	if progress != 10_000 {
		t.Errorf("progress tells of %d bytes, want 10000", progress)
	}
	for i, have := range read() {
		if have != byte(i%251) {
			t.Fatalf("byte %d is %d, want %d", i, have, i%251)
		}
	}
	broken := errors.New("file is gone")
	if err := u.write(b, 0, 4, func([]byte, int64) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error of fill: %v", err)
	}
}

// TestUploaderFillsInParts writes more than a staging buffer, whose parts are filled at once.
func TestUploaderFillsInParts(t *testing.T) {
	u, b, read := uploadTo(t, 3<<20, 7<<20, nil)
	fill := func(p []byte, at int64) error {
		for i := range p {
			p[i] = byte((at + int64(i)) / 4 % 253)
		}
		return nil
	}
	check(t, u.write(b, 0, b.Size(), fill))
	check(t, u.flush())
	for i, have := range read() {
		if have != byte(i/4%253) {
			t.Fatalf("byte %d is %d, want %d", i, have, i/4%253)
		}
	}
	broken := errors.New("file is gone")
	err := u.write(b, 0, b.Size(), func(p []byte, at int64) error {
		if at == contents.Part {
			return broken
		}
		return fill(p, at)
	})
	if !errors.Is(err, broken) {
		t.Errorf("error of one part: %v", err)
	}
}
