// Package disk says what may be written where.
package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Free is what this user may still write on the disk of dir, in bytes.
func Free(dir string) (int64, error) { return free(dir) }

// Writable returns why this user cannot make files in dir, or dir itself; nil: it can, as far as permissions tell.
func Writable(dir string) error { return writable(Existing(dir)) }

// Existing is dir, or the nearest folder above it that is there.
func Existing(dir string) string {
	for {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
