package disk

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
)

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	if n, err := Free(dir); n <= 0 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := Free(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	deep := filepath.Join(dir, "a", "b")
	if at := Existing(deep); at != dir {
		t.Errorf("%s is there, above %s", at, deep)
	}
	if err := Writable(deep); err != nil {
		t.Error(err)
	}
	if err := Writable("/dev/null/none"); err == nil {
		t.Error("a device can be written like a folder")
	}
}
