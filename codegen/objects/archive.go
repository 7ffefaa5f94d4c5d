package objects

import (
	"archive/zip"
	"bytes"
	"cmp"
	_ "embed"
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

// archive is a ZIP file with an entry for each machine, packed by Zstandard, so that a plan unpacks what is for its own. An entry is a list of
// objects: the 32 bytes of a key, the length as a 32-bit number, little endian, and the object. Those of kernels with
// similar names lie beside each other, since they are alike, which packs them to half the size.
//
//go:embed objects.zip
var archive []byte

// Object is what LLVM made of a kernel for a machine.
type Object struct {
	Kernel, Machine, Key string
	Code                 []byte
}

// machines has the objects of each machine by their keys, unpacked when one is asked for.
var machines = sync.OnceValues(func() (map[string]func() (map[string][]byte, error), error) {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, fmt.Errorf("objects.zip: %w", err)
	}
	r.RegisterDecompressor(zstd.ZipMethodWinZip, zstd.ZipDecompressor(zstd.WithDecoderConcurrency(1)))
	list := map[string]func() (map[string][]byte, error){}
	for _, f := range r.File {
		list[f.Name] = sync.OnceValues(func() (map[string][]byte, error) { return unpack(f) })
	}
	return list, nil
})

func unpack(f *zip.File) (map[string][]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("objects.zip: %w", err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("objects.zip: %w", err)
	}
	list := map[string][]byte{}
	for len(data) > 0 {
		if len(data) < 36 || uint64(len(data)-36) < uint64(binary.LittleEndian.Uint32(data[32:])) {
			return nil, errors.New("objects.zip: an object ends too early")
		}
		end := 36 + int(binary.LittleEndian.Uint32(data[32:]))
		list[hex.EncodeToString(data[:32])] = data[36:end:end]
		data = data[end:]
	}
	return list, nil
}

// Held returns an object that this program holds, nil if it does not.
func Held(m *llvm.Machine, key string) ([]byte, error) {
	all, err := machines()
	if err != nil || all[m.Name] == nil {
		return nil, err
	}
	list, err := all[m.Name]()
	return list[key], err
}

// Write writes objects.zip. The same objects give the same bytes, in whatever order they come.
func Write(w io.Writer, list []Object) error {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Key, b.Key))
	})
	z := zip.NewWriter(w)
	z.RegisterCompressor(zstd.ZipMethodWinZip, zstd.ZipCompressor(zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1)))
	var entry io.Writer
	for i, o := range list {
		if i == 0 || o.Machine != list[i-1].Machine {
			var err error
			if entry, err = z.CreateHeader(&zip.FileHeader{Name: o.Machine, Method: zstd.ZipMethodWinZip}); err != nil {
				return err
			}
		}
		key, err := hex.DecodeString(o.Key)
		if err != nil || len(key) != 32 {
			return fmt.Errorf("kernel %q: %q is no key", o.Kernel, o.Key)
		}
		if _, err := entry.Write(append(binary.LittleEndian.AppendUint32(key, uint32(len(o.Code))), o.Code...)); err != nil {
			return err
		}
	}
	return z.Close()
}
