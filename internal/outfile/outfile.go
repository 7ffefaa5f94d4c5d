// Package outfile writes the files that commands are asked for.
package outfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
)

// Write writes path through the function, completely or not at all: what was
// there before stays until the new file is on disk. The new one gets its permissions,
// or, where nothing was, those that the process's umask leaves; a symbolic link goes on
// to point to it. A pipe, or whatever else is no regular file, is written in place. Errors
// name the path.
func Write(path string, write func(w io.Writer) error) error {
	if err := writeFile(path, write); err != nil {
		return fmt.Errorf("%s: %w", path, reason(err))
	}
	return nil
}

func writeFile(path string, write func(w io.Writer) error) error {
	at, err := follow(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(at)
	switch {
	case err != nil:
		return replace(at, nil, write)
	case info.Mode().IsRegular():
		return replace(at, info, write)
	}
	return inPlace(at, write)
}

// follow returns what path names in the end; it need not be there.
func follow(path string) (string, error) {
	for range 40 {
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil // not a link
		}
		if !filepath.IsAbs(to) {
			// Not filepath.Join: what is above a linked folder is not what its name says.
			dir, _ := filepath.Split(path)
			to = dir + to
		}
		path = to
	}
	return "", syscall.ELOOP
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

// replace puts a new file at path; old is the one that is there, or nil.
func replace(path string, old fs.FileInfo, write func(w io.Writer) error) (err error) {
	f, err := create(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	err = buffered(f, write)
	if err == nil && old != nil {
		err = f.Chmod(old.Mode().Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}

// create makes a file beside path as the process's umask has it, which os.CreateTemp
// does not ask.
func create(path string) (*os.File, error) {
	dir, base := filepath.Split(path)
	for {
		name := fmt.Sprintf("%s.%s.%d", dir, base, rand.Uint32())
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

func buffered(f *os.File, write func(w io.Writer) error) error {
	w := bufio.NewWriterSize(f, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}
