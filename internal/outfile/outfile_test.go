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
	plain := filepath.Join(filepath.Dir(path), "plain")
	if err := os.WriteFile(plain, nil, 0o666); err != nil { // as the umask has it
		t.Fatal(err)
	}
	if have, want := mode(t, path), mode(t, plain); have != want {
		t.Errorf("a new file is %v, want %v", have, want)
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

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func TestKeepsPermissions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	for _, want := range []os.FileMode{0o600, 0o640, 0o755} {
		if err := errors.Join(os.WriteFile(path, nil, 0o666), os.Chmod(path, want), Write(path, text("new"))); err != nil {
			t.Fatal(err)
		}
		if have := mode(t, path); have != want {
			t.Errorf("%v, was %v", have, want)
		}
	}
}

// TestKeepsLinks holds that what a link points to is written, be it there or not.
func TestKeepsLinks(t *testing.T) {
	dir := t.TempDir()
	name := func(s string) string { return filepath.Join(dir, s) }
	for _, err := range []error{
		os.MkdirAll(name("a/b"), 0o777), os.Symlink("a/b", name("folder")), // folder/.. is a
		os.WriteFile(name("a/there"), nil, 0o600),
		os.Symlink("../there", name("a/b/link")), os.Symlink("folder/link", name("first")), os.Symlink("a/new", name("dangling")),
		os.Symlink(name("a/new2"), name("absolute")), os.Symlink("loop", name("loop")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for link, file := range map[string]string{"first": "a/there", "dangling": "a/new", "absolute": "a/new2"} {
		if err := Write(name(link), text(link)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(name(file)); err != nil || string(b) != link {
			t.Errorf("%s: %q, %v", link, b, err)
		}
		if mode(t, name(link))&os.ModeSymlink == 0 {
			t.Errorf("%s is no link any more", link)
		}
	}
	if have := mode(t, name("a/there")); have != 0o600 {
		t.Errorf("a/there is %v", have)
	}
	if err := Write(name("loop"), text("x")); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("error %v", err)
	}
}
