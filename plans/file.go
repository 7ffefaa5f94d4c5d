package plans

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/edsrzf/mmap-go"

	"github.com/zincc-dev/zincc/internal/outfile"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// Read reads the plan at path. Embedded weights are not copied but mapped: the
// file must not be truncated before Close. Errors begin with the path.
func Read(path string) (*Plan, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() < headSize {
		return nil, fmt.Errorf("%s: not a zincc plan%s", path, butIs(path))
	}
	data, err := mmap.Map(f, mmap.RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: map: %w", path, err)
	}
	p, err := Decode(data)
	if err != nil {
		if is := butIs(path); is != "" && !bytes.HasPrefix(data, []byte(magic)) {
			err = errors.New("not a zincc plan" + is)
		}
		err = fmt.Errorf("%s: %w", path, err)
	}
	if err != nil || p.Embedded == nil {
		if unmapErr := data.Unmap(); err == nil {
			err = unmapErr
		}
		return p, err
	}
	p.mapped, p.info = data, info
	return p, nil
}

// Close unmaps the embedded weights of a plan that was read from a file.
func (p *Plan) Close() error {
	if p.mapped == nil {
		return nil
	}
	p.Embedded = nil
	return p.mapped.Unmap()
}

// WriteFile writes p to path, completely or not at all: what was there before
// stays until the new file is on disk.
func WriteFile(path string, p *Plan) error {
	return outfile.Write(path, func(w io.Writer) error { return Write(w, p) })
}

// butIs says what lies at path where it is no plan, if that is known.
func butIs(path string) string {
	is := gguf.What(path)
	if is != "" {
		is = ", but " + is
	}
	return is
}
