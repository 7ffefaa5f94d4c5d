//go:build unix

package private

import (
	"fmt"
	"os"
	"syscall"
)

// checksModes: modes say who may read and write a file.
const checksModes = true

// owned fails for a file of another user than that of this process and root.
func owned(path string, info os.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() && stat.Uid != 0 {
		return fmt.Errorf("%s: belongs to user %d, not to you", path, stat.Uid)
	}
	return nil
}
