package objects

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/zincc-dev/zincc/codegen/kernel/llvm"
)

// Archive is a folder with the objects of an architecture. A file of it has some kernels of neighbouring names, each
// for all machines: such objects are alike, so they pack well together, and a kernel that changes changes one small
// file. A file is a head and a frame of Zstandard, which is unpacked when one of its objects is asked for. The head has
// how many objects there are; how many keys and how many bytes each has; and the keys, 32 bytes each. Numbers have 32
// bits, little endian. The frame holds the objects one behind the other.
type Archive struct {
	files map[string]*file // by key of an object
}

// extension ends the names of an archive's files.
const extension = ".objects"

// What Open takes of a file: no archive comes near.
const (
	maxObjects = 1 << 16
	maxBytes   = 1 << 28
)

// file is a file of an archive.
type file struct {
	sizes  []int          // of the objects
	at     map[string]int // objects, by key
	unpack func() ([][]byte, error)
}

// Open reads the heads of an archive's files; a folder without any has no objects.
func Open(folder fs.FS) (*Archive, error) {
	a := &Archive{map[string]*file{}}
	names, err := fs.Glob(folder, "*"+extension)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		f, err := openFile(folder, name)
		if err != nil {
			return nil, fmt.Errorf("archive of objects: %s: %w", name, err)
		}
		for key := range f.at {
			a.files[key] = f
		}
	}
	return a, nil
}

func openFile(folder fs.FS, name string) (*file, error) {
	r, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	head, total := 4, 0
	number := func() int {
		var b [4]byte
		if err == nil {
			_, err = io.ReadFull(r, b[:])
		}
		return int(binary.LittleEndian.Uint32(b[:]))
	}
	n := number()
	if err != nil || n > maxObjects {
		return nil, cmp.Or(err, errors.New("too many objects"))
	}
	f := &file{sizes: make([]int, n), at: map[string]int{}}
	keys := make([]int, n)
	for i := range n {
		keys[i], f.sizes[i] = number(), number()
		head += 8 + sha256.Size*keys[i]
		if total += f.sizes[i]; err != nil || keys[i] > maxObjects || total > maxBytes {
			return nil, cmp.Or(err, errors.New("objects are too large"))
		}
	}
	for i, k := range keys {
		for range k {
			var key [sha256.Size]byte
			if _, err := io.ReadFull(r, key[:]); err != nil {
				return nil, err
			}
			f.at[hex.EncodeToString(key[:])] = i
		}
	}
	f.unpack = sync.OnceValues(func() ([][]byte, error) {
		codes, err := unpack(folder, name, head, total, f.sizes)
		if err != nil {
			return nil, fmt.Errorf("archive of objects: %s: %w", name, err)
		}
		return codes, nil
	})
	return f, nil
}

// unpack returns the objects of a file.
func unpack(folder fs.FS, name string, head, total int, sizes []int) ([][]byte, error) {
	data, err := fs.ReadFile(folder, name)
	if err != nil {
		return nil, err
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(max(total, 1<<20))))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	all, err := d.DecodeAll(data[min(head, len(data)):], make([]byte, 0, total))
	if err == nil && len(all) != total {
		err = fmt.Errorf("%d bytes of objects, want %d", len(all), total)
	}
	if err != nil {
		return nil, err
	}
	codes := make([][]byte, len(sizes))
	for i, n := range sizes {
		codes[i], all = all[:n:n], all[n:]
	}
	return codes, nil
}

// Find returns the object of a key, nil if the archive does not have it.
func (a *Archive) Find(key string) ([]byte, error) {
	f := a.files[key]
	if f == nil {
		return nil, nil
	}
	codes, err := f.unpack()
	if err != nil {
		return nil, err
	}
	return codes[f.at[key]], nil
}

// embedded is what this program holds.
var embedded = sync.OnceValues(func() (*Archive, error) {
	folder, err := fs.Sub(held, runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	return Open(folder)
})

// Held returns an object of a machine that this program holds, nil if it does not: it holds those of its own
// architecture.
func Held(m *llvm.Machine, key string) ([]byte, error) {
	if m.Arch != runtime.GOARCH {
		return nil, nil
	}
	a, err := embedded()
	if err != nil {
		return nil, err
	}
	return a.Find(key)
}

// Object is what LLVM made of a kernel for a machine.
type Object struct {
	Kernel, Machine, Key string
	Code                 []byte
}

// Files returns the files of an archive by their names. The same objects give the same bytes, in whatever order they
// come.
func Files(list []Object) (map[string][]byte, error) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.Key, b.Key))
	})
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer pack.Close()
	files := map[string][]byte{}
	for len(list) > 0 {
		n := together(list)
		data, err := encode(list[:n], pack)
		if err != nil {
			return nil, err
		}
		family, _, _ := strings.Cut(list[0].Kernel, " ")
		name := fmt.Sprintf("%s-%08x%s", family, crc32.ChecksumIEEE([]byte(list[0].Kernel)), extension)
		if files[name] != nil {
			return nil, fmt.Errorf("kernel %q: there is a file %s already", list[0].Kernel, name)
		}
		files[name], list = data, list[n:]
	}
	return files, nil
}

// Where a file ends: at a kernel that its name chooses, about one in every so many, so that a kernel which comes or
// goes leaves the files of most others alone; and where the objects have this many bytes.
const (
	kernelsOfFile = 16
	bytesOfFile   = 800_000
)

// together is how many of the first objects of a list are in one file: whole kernels of one family.
func together(list []Object) int {
	family := func(o *Object) string { before, _, _ := strings.Cut(o.Kernel, " "); return before }
	bytes := 0
	for i := range list {
		if o := &list[i]; i > 0 && o.Kernel != list[i-1].Kernel &&
			(bytes >= bytesOfFile || family(o) != family(&list[0]) || crc32.ChecksumIEEE([]byte(o.Kernel))%kernelsOfFile == 0) {
			return i
		}
		bytes += len(list[i].Code)
	}
	return len(list)
}

// encode returns a file of objects.
func encode(list []Object, pack *zstd.Encoder) ([]byte, error) {
	var codes [][]byte
	var keys [][]byte // of each
	at := map[string]int{}
	for _, o := range list {
		key, err := hex.DecodeString(o.Key)
		if err != nil || len(key) != sha256.Size {
			return nil, fmt.Errorf("kernel %q: %q is no key", o.Kernel, o.Key)
		}
		i, ok := at[string(o.Code)]
		if !ok {
			i = len(codes)
			at[string(o.Code)], codes, keys = i, append(codes, o.Code), append(keys, nil)
		}
		keys[i] = append(keys[i], key...)
	}
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(codes)))
	for i := range codes {
		head = binary.LittleEndian.AppendUint32(head, uint32(len(keys[i])/sha256.Size))
		head = binary.LittleEndian.AppendUint32(head, uint32(len(codes[i])))
	}
	return pack.EncodeAll(bytes.Join(codes, nil), append(head, bytes.Join(keys, nil)...)), nil
}
