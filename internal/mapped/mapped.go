// Package mapped reads files through memory. A page of a file that was cut, or that the disk does not give, is a fault
// of whoever reads it, and a fault ends a program. So whoever reads bytes of a mapped file does it in Read, which makes
// an error of the fault.
package mapped

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/edsrzf/mmap-go"
)

// File is a mapped file, whose bytes cannot be written.
type File struct {
	Bytes []byte
	mmap  mmap.MMap
}

// Map maps a file that is not empty.
func Map(f *os.File) (*File, error) {
	m, err := mmap.Map(f, mmap.RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	return &File{m, m}, nil
}

// Close unmaps the file. Its bytes must not be read after it.
func (f *File) Close() error {
	f.Bytes = nil
	return f.mmap.Unmap()
}

// ErrCut is the error of Read.
var ErrCut = errors.New("the file was cut, or cannot be read any more, while it was in use")

// Read calls do, which reads mapped bytes in this goroutine, in Go. The error is ErrCut where they are not there. Where
// do has others read for it, each in a Read of its own, it may panic with their ErrCut.
func Read(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		fault := recover()
		if fault == nil {
			return
		}
		if passed, ok := fault.(error); ok && errors.Is(passed, ErrCut) {
			err = passed
			return
		}
		if _, ok := fault.(interface {
			runtime.Error
			Addr() uintptr
		}); !ok {
			panic(fault)
		}
		err = ErrCut
	}()
	return do()
}
