package mapped

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// TestRead reads a mapped file, whole and cut, in the ways that programs read one.
func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	want := bytes.Repeat([]byte("abcd"), 1<<18)
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := Map(f)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	to := make([]byte, len(want))
	sum := byte(0)
	ways := map[string]func() error{
		"copy":    func() error { copy(to, m.Bytes); return nil },
		"loop":    func() error { sum += m.Bytes[len(want)-1]; return nil },
		"crc":     func() error { crc32.ChecksumIEEE(m.Bytes); return nil },
		"sha256":  func() error { sha256.Sum256(m.Bytes); return nil },
		"compare": func() error { bytes.Equal(m.Bytes, want); return nil },
	}
	if err := Read(func() error { panic(ErrCut) }); err != ErrCut {
		t.Errorf("what another goroutine saw: %v", err)
	}
	mine := errors.New("mine")
	if err := Read(func() error { return mine }); err != mine {
		t.Errorf("an error of the reader: %v", err)
	}
	for name, way := range ways {
		if err := Read(way); err != nil {
			t.Errorf("%s of a whole file: %v", name, err)
		}
	}
	if err := os.Truncate(path, 1<<16); err != nil {
		t.Fatal(err)
	}
	for name, way := range ways {
		if err := Read(way); !errors.Is(err, ErrCut) {
			t.Errorf("%s of a file that was cut: %v", name, err)
		}
	}
	if debug.SetPanicOnFault(false) {
		t.Error("faults of others are panics now")
	}
}

// TestReadPanics checks that a panic of another kind goes on.
func TestReadPanics(t *testing.T) {
	for name, do := range map[string]func() error{
		"mine":  func() error { panic("mine") },
		"index": func() error { return []error{}[len(os.Args)] },
		"nil":   func() error { var f *File; f.Bytes = nil; return nil },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("panic %s is lost", name)
				}
			}()
			_ = Read(do)
		}()
	}
}
