package exec

import (
	"cmp"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/driver/fake"
)

// uploadTo makes an uploader of pieces of that size, and device memory with what reads it back.
func uploadTo(t *testing.T, piece, bytes int64, progress func(int64)) (u *uploader, b driver.Memory, read func() []byte) {
	t.Helper()
	d := fake.New(nil)
	t.Cleanup(d.Close)
	alloc := func(kind driver.Kind) driver.Memory {
		m, err := d.Alloc(bytes, kind)
		check(t, err)
		return m
	}
	b, back := alloc(driver.Local), alloc(driver.Readback)
	u = newUploader(d, piece, progress)
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
}

// TestUploaderFails: who writes gets the error of a piece that could not be filled, at the end at the latest. Nothing
// is filled once the uploader is closed.
func TestUploaderFails(t *testing.T) {
	u, b, _ := uploadTo(t, 1000, 10_000, nil)
	broken, began, ended := errors.New("file is gone"), atomic.Int32{}, atomic.Int32{}
	err := u.write(b, 0, b.Size(), func(_ []byte, at int64) error {
		began.Add(1)
		defer ended.Add(1)
		if at == 3000 {
			return broken
		}
		time.Sleep(time.Millisecond)
		return nil
	})
	if err = cmp.Or(err, u.flush()); !errors.Is(err, broken) {
		t.Errorf("error of one piece: %v", err)
	}
	if err := u.write(b, 0, 4, func([]byte, int64) error { return nil }); !errors.Is(err, broken) {
		t.Errorf("a later write: %v", err)
	}
	if u.close(); began.Load() != ended.Load() {
		t.Errorf("%d pieces of %d are filled", ended.Load(), began.Load())
	}
}
