//go:build unix

package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestWritable looks at a folder as a user who may not write there; the superuser always may, so it is nobody
// meanwhile.
func TestWritable(t *testing.T) {
	dir := t.TempDir()
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := syscall.Seteuid(65534); err != nil {
			t.Fatal(err)
		}
		defer syscall.Seteuid(0)
	}
	if err := Writable(filepath.Join(dir, "a", "b")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("below a folder of mode 555: %v", err)
	}
}
