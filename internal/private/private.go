// Package private keeps files that nobody but the user can have written. Caches of what is executed need that: machine
// code, and what drivers take for their own. A file carries a keyed sum, whose key only the user can read; its folder
// belongs to the user, and nobody else writes it.
package private

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/internal/outfile"
)

// Cache is a folder of the user's cache folder.
type Cache struct {
	name, dir string
	key       []byte
}

// maxFile bounds a file: no driver keeps more.
const maxFile = 1 << 30

// Added is how many bytes a file has beside its data.
const Added = sha256.Size

// Open returns the folder zincc/NAME of the user's cache folder, which it makes if it is not there; name may have
// several parts. What is in it was written by the user of this process. The error says in one line why nothing can be
// kept.
func Open(name string) (*Cache, error) {
	root, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	c := &Cache{name: name, dir: filepath.Join(root, "zincc")}
	if err := Make(c.dir); err != nil {
		return nil, err
	}
	for _, part := range strings.Split(name, "/") {
		c.dir = filepath.Join(c.dir, part)
		if err := Make(c.dir); err != nil {
			return nil, err
		}
	}
	c.key, err = userKey()
	return c, err
}

// OpenFolder returns a folder of the user's choice as a cache of a name. It is made if it is not there.
func OpenFolder(dir, name string) (*Cache, error) {
	if err := Make(dir); err != nil {
		return nil, err
	}
	key, err := userKey()
	return &Cache{name: name, dir: dir, key: key}, err
}

// Ready returns the error of Open for any folder in one line, nil where things are kept.
func Ready() error {
	_, err := Open("pipelines")
	return err
}

// Path is where a file lies.
func (c *Cache) Path(file string) string { return filepath.Join(c.dir, file) }

// Read returns the bytes of a file, nil if it is not there, or is not what Write has written under this name.
func (c *Cache) Read(file string) []byte {
	path := c.Path(file)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil || len(data) < sha256.Size {
		return nil
	}
	sum, data := data[:sha256.Size], data[sha256.Size:]
	if !hmac.Equal(sum, c.sum(file, data)) {
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // used: Bound goes by that
	return data
}

// Write keeps a file, whole or not at all. What is kept only saves time, so callers may pass over the error.
func (c *Cache) Write(file string, data []byte) error {
	return outfile.Write(c.Path(file), func(w io.Writer) error {
		if _, err := w.Write(c.sum(file, data)); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	})
}

// clockSlack is how far the clock of a file system may be before the process's.
const clockSlack = time.Minute

// Bound removes the files that were not used for longest, until those that are left have at most so many bytes. Where
// any has to go, the next ones go, too, while the others have no less than the bound without more. It returns how many
// bytes are left, or the bound if it cannot list them. The file used last stays, whatever it has. Where the clock has
// gone back, files of a time to come count as used before all others: else none that is written since would stay.
func (c *Cache) Bound(bytes, more int64) (left int64) {
	now := time.Now().Add(clockSlack)
	used := func(f fs.FileInfo) time.Time {
		if t := f.ModTime(); !t.After(now) {
			return t
		}
		return time.Time{}
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return bytes
	}
	var files []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
			left += info.Size()
		}
	}
	if left <= bytes {
		return left
	}
	// What was not used for longest is first.
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(used(a).Compare(used(b)), cmp.Compare(b.Name(), a.Name()))
	})
	for i, f := range files {
		if i == len(files)-1 || left <= bytes && left-f.Size() < bytes-more {
			break
		}
		if err := os.Remove(c.Path(f.Name())); err == nil || errors.Is(err, fs.ErrNotExist) { // another process may be faster
			left -= f.Size()
		}
	}
	return left
}

// sum is the HMAC-SHA256 of where a file lies and what it holds: a file that was moved is another.
func (c *Cache) sum(file string, data []byte) []byte {
	h := hmac.New(sha256.New, c.key)
	fmt.Fprintf(h, "%q %q\n", c.name, file)
	h.Write(data)
	return h.Sum(nil)
}

// Make makes a folder that only the user writes. One that is there must belong to the user or to root; others lose the
// right to write it.
func Make(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if err := owned(dir, info); err != nil {
		return err
	}
	if info.Mode()&0o022 != 0 && checksModes {
		return os.Chmod(dir, info.Mode().Perm()&^0o022)
	}
	return nil
}

// Check fails if somebody else than the user and root may have written to a folder or file.
func Check(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := owned(path, info); err != nil {
		return err
	}
	if info.Mode()&0o022 != 0 && checksModes {
		return fmt.Errorf("%s: others may write it: chmod go-w", path)
	}
	return nil
}
