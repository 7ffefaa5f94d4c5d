package cuda

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFirstLibrary checks that a library that is not there is told from one that is broken, and that the first of
// several names counts.
func TestFirstLibrary(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "libbroken.so.1")
	if err := os.WriteFile(broken, []byte("nothing"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		names  []string
		absent bool
		want   string
	}{
		{[]string{"libnone.so.1", "/none/libother.so.1"}, true, "libnone.so.1"},
		{[]string{"libnone.so.1", broken}, false, broken},
		{[]string{broken, "libc.so.6"}, false, broken},
	} {
		if _, err := firstLibrary(c.names...); err == nil || isAbsent(err) != c.absent || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.names, err)
		}
	}
	if lib, err := firstLibrary("libnone.so.1", "libc.so.6"); lib == 0 || err != nil {
		t.Error(err)
	}
}
