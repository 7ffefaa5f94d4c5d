package outfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	for _, s := range []string{"first", "second"} {
		if err := Write(path, text(s)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != s {
			t.Errorf("%q, %v", b, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestFailureLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	if err := Write(path, text("old")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := Write(path, func(w io.Writer) error {
		io.WriteString(w, "half")
		return broken
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "old" {
		t.Errorf("%q, %v", b, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
}

func TestFullDisk(t *testing.T) {
	if err := Write("/dev/full", text("x")); !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(err.Error(), "/dev/full: ") {
		t.Errorf("error %v", err)
	}
	if info, err := os.Stat("/dev/full"); err != nil || info.Mode()&os.ModeDevice == 0 {
		t.Errorf("/dev/full is now %v, %v", info, err)
	}
}

func TestNoFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "out")
	if err := Write(path, text("x")); !errors.Is(err, os.ErrNotExist) || strings.Count(err.Error(), "out") != 1 {
		t.Errorf("error %v", err)
	}
}
