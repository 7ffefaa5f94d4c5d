package private

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const keySize = 32

// userKey is the key of this user: zincc/key of the configuration folder, made when it is first wanted.
func userKey() ([]byte, error) {
	root, err := os.UserConfigDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(root, "zincc")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := Check(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "key")
	key, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := writeKey(dir, path); err != nil {
		return nil, err
	}
	return readKey(path)
}

func readKey(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if err := owned(path, info); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() != keySize || info.Mode()&0o077 != 0 && checksModes {
		return nil, fmt.Errorf("%s: not a file of %d bytes that only you can read: remove it", path, keySize)
	}
	return os.ReadFile(path)
}

// writeKey puts a new key at path, unless another process was faster.
func writeKey(dir, path string) (err error) {
	f, err := os.CreateTemp(dir, ".key.*") // that only the user reads
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	_, err = f.Write(key)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err = os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil { // a file system without links
		return os.Rename(f.Name(), path)
	}
	return nil
}
