// Package kept keeps what the weights of plans became in files. Whoever wants them again maps the file.
//
// A file has a header of 64 bytes (magic, key, bytes of data, CRC), a CRC-32C for each MiB of the data, and from a
// multiple of 4096 on the data: parts, each from a multiple of 64 on. Numbers are little endian. What the parts are,
// the key tells who knows it; so a file that is read is checked in every byte against its sums, and never interpreted.
// Sums find damage, not forgery: a folder is one that only its user writes.
package kept

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/internal/mapped"
	"github.com/zincc-dev/zincc/internal/outfile"
)

// Key names what is in a file: whatever changes the bytes of a part has another.
type Key [32]byte

// Part is one piece of what is kept.
type Part struct {
	Name  string
	Bytes int64
}

const (
	magic     = "zincc weights 1\n"
	header    = 64
	pageAlign = 4096
	partAlign = 64
	piece     = 1 << 20 // that has a sum of its own
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// place says where the parts are, how many bytes they take and where they begin.
func place(parts []Part) (at []int64, bytes, from int64) {
	for _, p := range parts {
		at = append(at, bytes)
		bytes += (p.Bytes + partAlign - 1) / partAlign * partAlign
	}
	pieces := (bytes + piece - 1) / piece
	return at, bytes, (header + 4*pieces + pageAlign - 1) / pageAlign * pageAlign
}

// path is where the file of a key lies in a folder.
func path(dir string, key Key) string {
	return filepath.Join(dir, hex.EncodeToString(key[:16])+".weights")
}

// head is all that lies before the data, but for the header's CRC.
func head(key Key, bytes, from int64, sums []uint32) []byte {
	h := make([]byte, from)
	copy(h, magic)
	copy(h[len(magic):], key[:])
	binary.LittleEndian.PutUint64(h[48:], uint64(bytes))
	for i, s := range sums {
		binary.LittleEndian.PutUint32(h[header+4*i:], s)
	}
	return h
}

// File is a mapped file, whose bytes cannot be written.
type File struct {
	file  *mapped.File
	parts map[string][]byte
}

// Open maps the file of a key in a folder; parts are those that it was written with. Every byte is checked, on all
// processors. The error is fs.ErrNotExist where there is none, else one line that says why it is refused.
func Open(ctx context.Context, dir string, key Key, parts []Part) (*File, error) {
	name := path(dir, key)
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	at, bytes, from := place(parts)
	if !info.Mode().IsRegular() || info.Size() != from+bytes {
		return nil, fmt.Errorf("%s: not the kept weights of this plan: %d bytes, want %d", name, info.Size(), from+bytes)
	}
	m, err := mapped.Map(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	data := m.Bytes
	if err := mapped.Read(func() error { return check(ctx, data, key, bytes, from) }); err != nil {
		_ = m.Close() // the error is why
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	k := &File{m, map[string][]byte{}}
	for i, p := range parts {
		first := from + at[i]
		k.parts[p.Name] = data[first : first+p.Bytes : first+p.Bytes]
	}
	return k, nil
}

var errDamaged = errors.New("the kept weights are damaged")

func check(ctx context.Context, data []byte, key Key, bytes, from int64) error {
	want := head(key, bytes, from, nil)
	if string(data[:header-4]) != string(want[:header-4]) {
		return errors.New("not the kept weights of this plan")
	}
	if crc32.Checksum(data[header:from], castagnoli) != binary.LittleEndian.Uint32(data[header-4:]) {
		return errDamaged
	}
	return pieces(ctx, data[from:], func(i int, p []byte) error {
		if crc32.Checksum(p, castagnoli) != binary.LittleEndian.Uint32(data[header+4*i:]) {
			return errDamaged
		}
		return nil
	})
}

// pieces does something with each piece, on all processors, until ctx is done.
func pieces(ctx context.Context, data []byte, do func(i int, p []byte) error) error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := 0; i*piece < len(data); i++ {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return mapped.Read(func() error { return do(i, data[i*piece:min(len(data), (i+1)*piece)]) })
		})
	}
	return g.Wait()
}

// Part returns the bytes of a part, which are valid until Close.
func (f *File) Part(name string) []byte { return f.parts[name] }

// Close unmaps the file.
func (f *File) Close() error { return f.file.Close() }

// Write keeps parts in a folder, which is made if it is not there: the whole file or none. data is where the parts lie
// as they do in the file, each from a multiple of 64 on, one behind the other. It returns the file's path.
func Write(ctx context.Context, dir string, key Key, parts []Part, data []byte) (string, error) {
	_, bytes, from := place(parts)
	if int64(len(data)) != bytes {
		return "", fmt.Errorf("%d bytes of weights, want %d", len(data), bytes)
	}
	sums := make([]uint32, (bytes+piece-1)/piece)
	err := pieces(ctx, data, func(i int, p []byte) error { sums[i] = crc32.Checksum(p, castagnoli); return nil })
	if err != nil {
		return "", err
	}
	h := head(key, bytes, from, sums)
	binary.LittleEndian.PutUint32(h[header-4:], crc32.Checksum(h[header:], castagnoli))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	name := path(dir, key)
	sweep(dir, filepath.Base(name))
	return name, outfile.Write(name, func(w io.Writer) error {
		if _, err := w.Write(h); err != nil {
			return err
		}
		for p := range slices.Chunk(data, piece) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if _, err := w.Write(p); err != nil {
				return err
			}
		}
		return nil
	})
}

// sweep removes what writers of a file that ended at once have left, as far as that works: temporary files of package
// outfile that nobody has written to for a day.
func sweep(dir, name string) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, f := range files {
		info, err := f.Info()
		if err == nil && strings.HasPrefix(f.Name(), "."+name+".") && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.Remove(filepath.Join(dir, f.Name()))
		}
	}
}
