package objects

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/zincc-dev/zincc/codegen/kernel/llvm"
)

// window is how far back the packing sees: objects of a family are alike.
const window = 8 << 20

// shared is the entry of objects that several machines have.
const shared = "shared"

// Archive is a ZIP file with objects of the machines of an architecture. It has an entry for each machine, packed by Zstandard, so that a plan
// unpacks what is for its own, and one for what several have, so that machines which differ in a few
// instructions take little more than one. An entry is a list of objects: how many keys there are, the 32
// bytes of each, the length, and the object; numbers have 32 bits, little endian. Those of kernels with
// similar names lie beside each other, since they are alike, which packs them to half the size.
type Archive struct {
	entries map[string]func() (map[string][]byte, error) // objects by their keys, unpacked when one is asked for
}

// Open reads an archive; one without a byte has no objects.
func Open(data []byte) (*Archive, error) {
	a := &Archive{map[string]func() (map[string][]byte, error){}}
	if len(data) == 0 {
		return a, nil
	}
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("archive of objects: %w", err)
	}
	r.RegisterDecompressor(zstd.ZipMethodWinZip, zstd.ZipDecompressor(zstd.WithDecoderConcurrency(1)))
	for _, f := range r.File {
		a.entries[f.Name] = sync.OnceValues(func() (map[string][]byte, error) { return unpack(f) })
	}
	return a, nil
}

// unpack returns the objects of an entry by their keys.
func unpack(f *zip.File) (map[string][]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("archive of objects: %w", err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("archive of objects: %w", err)
	}
	next := func(n uint64) (b []byte) {
		if n > uint64(len(data)) {
			err = errors.New("archive of objects: an object ends too early")
			return nil
		}
		b, data = data[:n:n], data[n:]
		return b
	}
	number := func() uint64 {
		if b := next(4); b != nil {
			return uint64(binary.LittleEndian.Uint32(b))
		}
		return 0
	}
	list := map[string][]byte{}
	for len(data) > 0 && err == nil {
		keys := next(32 * number())
		code := next(number())
		for k := range slices.Chunk(keys, sha256.Size) {
			list[hex.EncodeToString(k)] = code
		}
	}
	return list, err
}

// Find returns the object of a machine and key, nil if the archive does not have it.
func (a *Archive) Find(m *llvm.Machine, key string) ([]byte, error) {
	for _, name := range []string{m.Name, shared} {
		if a.entries[name] == nil {
			continue
		}
		list, err := a.entries[name]()
		if err != nil || list[key] != nil {
			return list[key], err
		}
	}
	return nil, nil
}

// embedded is what this program holds.
var embedded = sync.OnceValues(func() (*Archive, error) { return Open(archive) })

// Held returns an object that this program holds, nil if it does not: it holds those of its own architecture.
func Held(m *llvm.Machine, key string) ([]byte, error) {
	a, err := embedded()
	if err != nil {
		return nil, err
	}
	return a.Find(m, key)
}

// Object is what LLVM made of a kernel for a machine.
type Object struct {
	Kernel, Machine, Key string
	Code                 []byte
}

// Write writes the archive of an architecture. The same objects give the same bytes, in whatever order they come.
func Write(w io.Writer, list []Object) error {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Key, b.Key))
	})
	type item struct {
		entry, kernel string
		keys, code    []byte
	}
	var items []*item
	byCode := map[[32]byte]*item{}
	for _, o := range list {
		key, err := hex.DecodeString(o.Key)
		if err != nil || len(key) != sha256.Size {
			return fmt.Errorf("kernel %q: %q is no key", o.Kernel, o.Key)
		}
		sum := sha256.Sum256(o.Code)
		it := byCode[sum]
		switch {
		case it == nil:
			it = &item{entry: o.Machine, kernel: o.Kernel, code: o.Code}
			byCode[sum], items = it, append(items, it)
		case it.entry != o.Machine:
			it.entry = shared
		}
		it.keys = append(it.keys, key...)
	}
	slices.SortStableFunc(items, func(a, b *item) int { return cmp.Or(cmp.Compare(a.entry, b.entry), cmp.Compare(a.kernel, b.kernel)) })
	z := zip.NewWriter(w)
	z.RegisterCompressor(zstd.ZipMethodWinZip, zstd.ZipCompressor(zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1)))
	var entry io.Writer
	for i, it := range items {
		if i == 0 || it.entry != items[i-1].entry {
			var err error
			if entry, err = z.CreateHeader(&zip.FileHeader{Name: it.entry, Method: zstd.ZipMethodWinZip}); err != nil {
				return err
			}
		}
		b := binary.LittleEndian.AppendUint32(nil, uint32(len(it.keys)/sha256.Size))
		b = binary.LittleEndian.AppendUint32(append(b, it.keys...), uint32(len(it.code)))
		if _, err := entry.Write(append(b, it.code...)); err != nil {
			return err
		}
	}
	return z.Close()
}
