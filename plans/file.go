package plans

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/zincc-dev/zincc/internal/mapped"
	"github.com/zincc-dev/zincc/internal/outfile"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// maxFront bounds what stands before the embedded weights: deflate makes bytes that it cannot pack less than a
// thousandth longer.
const maxFront = maxSections + maxSections/1000 + 1<<16

// Read reads the plan at path. Embedded weights are not copied but mapped: they are valid until Close, and whoever
// reads them does so in mapped.Read. All else was read into memory, so that it is what its digest says, whatever
// happens to the file. Errors begin with the path.
func Read(path string) (*Plan, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := read(f)
	if errors.Is(err, errNoPlan) {
		err = fmt.Errorf("%w%s", errNoPlan, butIs(path))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

func read(f *os.File) (*Plan, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	if !info.Mode().IsRegular() || size < headSize {
		return nil, errNoPlan
	}
	front := make([]byte, min(size, int64(tocEnd)))
	if _, err := io.ReadFull(f, front); err != nil {
		return nil, err
	}
	if err := checkHead(front); err != nil {
		return nil, err
	}
	at := max(int64(tocEnd), int64(min(frontEnd(front), uint64(size))))
	if at > maxFront {
		return nil, fmt.Errorf("head: %d bytes before the embedded weights, the limit is %d", at, maxFront)
	}
	front = append(front, make([]byte, at-int64(len(front)))...)
	if _, err := io.ReadFull(f, front[tocEnd:]); err != nil {
		return nil, err
	}
	if at == size {
		return decode(front, nil)
	}
	all, err := mapped.Map(f)
	if err != nil {
		return nil, err
	}
	if int64(len(all.Bytes)) != size {
		return nil, errors.Join(mapped.ErrCut, all.Close())
	}
	var p *Plan
	err = mapped.Read(func() (err error) { p, err = decode(front, all.Bytes[at:]); return err })
	if err == nil && p.Embedded != nil {
		p.mapped, p.info = all, info
		return p, nil
	}
	return p, errors.Join(err, all.Close())
}

// Close unmaps the embedded weights of a plan that was read from a file.
func (p *Plan) Close() error {
	if p.mapped == nil {
		return nil
	}
	p.Embedded = nil
	return p.mapped.Close()
}

// WriteFile writes p to path, completely or not at all: what was there before stays until the new file is on disk. The
// digest is that of the bytes which were written, whatever lies at path by now.
func WriteFile(path string, p *Plan) (Digest, error) {
	front, err := encode(p)
	if err != nil {
		return Digest{}, err
	}
	if err := outfile.Write(path, func(w io.Writer) error { return writeFile(w, front, p.Embedded) }); err != nil {
		return Digest{}, err
	}
	return digestOf(front, p.Embedded)
}

// butIs says what lies at path where it is no plan, if that is known.
func butIs(path string) string {
	switch is := gguf.What(path); is {
	case "":
		return ""
	case "a GGUF file":
		return ", but a GGUF file, which is to be compiled first"
	default:
		return ", nor a GGUF file, but " + is
	}
}
