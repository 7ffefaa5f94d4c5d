package keep

import (
	"bytes"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullDisk: a disk that is full, at once or in the middle of a file, leaves nothing of that file and ends the
// writing with one line that names it. What was written before is read, and goes on to be used.
func TestFullDisk(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for _, c := range []struct {
		name, want string
		fill       func(t *testing.T, path string)
	}{
		{"at once", "no space left on device", func(t *testing.T, path string) {
			if err := os.Symlink("/dev/full", path); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Remove(path) })
		}},
		{"in the middle", "file too large", func(t *testing.T, path string) {
			signal.Ignore(unix.SIGXFSZ)
			t.Cleanup(func() { signal.Reset(unix.SIGXFSZ) })
			var before unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
				t.Fatal(err)
			}
			if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 300_000, Max: before.Max}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { unix.Setrlimit(unix.RLIMIT_FSIZE, &before) })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s, lines := open(t, dir, 1<<30)
			small, large := bytes.Repeat([]byte("rows"), 50_000), bytes.Repeat([]byte("rows"), 250_000)
			s.Write("small", small)
			path := filepath.Join(dir, "large")
			c.fill(t, path)
			s.Write("large", large)
			s.Write("later", []byte("b"))
			if len(*lines) != 1 || !strings.Contains((*lines)[0], "not kept from now on: "+path) || !strings.Contains((*lines)[0], c.want) {
				t.Errorf("%q", *lines)
			}
			if s.Has("large") || s.Read("large", int64(len(large))) != nil || s.Has("later") {
				t.Error("something is there behind the failure")
			}
			if have := s.Read("small", int64(len(small))); !bytes.Equal(have, small) {
				t.Errorf("%d bytes of what was written before are read", len(have))
			}
			os.Remove(path)
			if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "small" {
				t.Errorf("%v are left, %v", left, err)
			}
		})
	}
}
