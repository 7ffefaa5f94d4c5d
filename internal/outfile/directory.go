package outfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Directory writes the directory path through the function, which fills the one whose
// path it gets, completely or not at all: what was there before stays until all of the
// new one is on disk. keep is asked about every entry of a directory that is there: it
// says whether the file goes into the new one as it is, and fails if the directory is
// not to be replaced. Errors name the path.
func Directory(path string, keep func(dir string, e fs.DirEntry) (bool, error), write func(dir string) error) error {
	if err := replaceDirectory(filepath.Clean(path), keep, write); err != nil {
		return fmt.Errorf("%s: %w", path, reason(err))
	}
	return nil
}

func replaceDirectory(path string, keep func(dir string, e fs.DirEntry) (bool, error), write func(dir string) error) (err error) {
	var kept []string
	old, err := os.ReadDir(path)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range old {
		stays, err := keep(path, e)
		if err != nil {
			return err
		}
		if stays {
			kept = append(kept, e.Name())
		}
	}
	if path, err = filepath.Abs(path); err != nil { // "." cannot be renamed
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	fresh, before := filepath.Join(work, "new"), filepath.Join(work, "old")
	if err := os.Mkdir(fresh, 0o777); err != nil {
		return err
	}
	if err := write(fresh); err != nil {
		return err
	}
	for _, name := range kept {
		if err := copyFile(filepath.Join(fresh, name), filepath.Join(path, name)); err != nil {
			return err
		}
	}
	if !there {
		return os.Rename(fresh, path)
	}
	if err := os.Rename(path, before); err != nil {
		return err
	}
	if err := os.Rename(fresh, path); err != nil {
		return errors.Join(err, os.Rename(before, path))
	}
	return nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return Write(to, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}
