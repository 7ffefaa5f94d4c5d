// Package outfile writes the files that commands are asked for.
package outfile

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Write writes path through the function, completely or not at all: what was
// there before stays until the new file is on disk. What is no regular file, such
// as a pipe, is written in place. Errors name the path.
func Write(path string, write func(w io.Writer) error) error {
	put := replace
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		put = inPlace
	}
	if err := put(path, write); err != nil {
		return fmt.Errorf("%s: %w", path, reason(err))
	}
	return nil
}

// reason drops the name of the file from an error of package os: callers have
// asked for another than the temporary one.
func reason(err error) error {
	if e, ok := err.(*os.PathError); ok {
		return e.Err
	}
	return err
}

func inPlace(path string, write func(w io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = buffered(f, write)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

func replace(path string, write func(w io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	err = buffered(f, write)
	for _, step := range []func() error{func() error { return f.Chmod(0o644) }, f.Sync} {
		if err == nil {
			err = step()
		}
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}

func buffered(f *os.File, write func(w io.Writer) error) error {
	w := bufio.NewWriterSize(f, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}
