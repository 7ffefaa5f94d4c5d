// Package gguf reads GGUF model files: metadata, tensor table, tensor data and
// the block formats of the data.
//
// Source: the GGUF specification (versions 2 and 3) and the block structs of
// ggml, whose dequantization is reproduced bit for bit.
package gguf

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/zincc-dev/zincc/internal/mapped"
	"github.com/zincc-dev/zincc/ir"
)

// Tensor is a row of the tensor table.
type Tensor struct {
	Name     string
	Type     ir.DType // ir.Invalid for a type that cannot be computed with
	TypeName string   // ggml's name of the type, such as "Q4_K" or "IQ2_XXS"
	Shape    []int64  // GGUF order: Shape[0] is contiguous in memory
	Shard    int      // index into File.Shards
	Offset   int64    // bytes from the start of its shard
	Size     int64    // bytes

	runs []run // where rows are gathered: these, of the matrix at Offset
}

// Elements is the number of elements, the product of Shape.
func (t *Tensor) Elements() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// File is an open model: one GGUF file, or all parts of a split one. Its
// metadata is that of the first part. It may be used by several goroutines.
type File struct {
	Path    string
	Version uint32
	Tensors []Tensor // in file order, over all shards
	metadata
	shards      []*shard
	index       map[string]int
	fingerprint [sha256.Size]byte
}

// shard is one memory-mapped file with its checked header.
type shard struct {
	path string
	info os.FileInfo // when it was opened
	file *mapped.File
	data []byte // of file
	*header
}

// Open maps the model at path and checks its header and the bounds of all
// tensors. Of a split model, path is the first part and the others are found
// beside it. Errors are one line that begins with the path.
func Open(path string) (*File, error) { return open(path, parse) }

// OpenHeader is Open for files whose tensor data is missing or incomplete. Data must
// not be called.
func OpenHeader(path string) (*File, error) { return open(path, parseHeader) }

func open(path string, parse parser) (*File, error) {
	first, err := openShard(path, parse)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path, Version: first.version, metadata: first.metadata, shards: []*shard{first}, index: map[string]int{}}
	err = f.openParts(parse)
	if err == nil {
		err = f.collect()
	}
	if err == nil {
		err = f.hash()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	f.splitLegacy()
	f.splitFused()
	return f, nil
}

func openShard(path string, parse parser) (*shard, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return nil, fmt.Errorf("%s: %w, but %s", path, errNoGGUF, What(path))
	}
	m, err := mapped.Map(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var h *header
	if err := mapped.Read(func() (err error) { h, err = parse(m.Bytes); return err }); err != nil {
		m.Close()
		if is := What(path); errors.Is(err, errNoGGUF) && is != "" {
			err = fmt.Errorf("%w, but %s", err, is)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &shard{path: path, info: info, file: m, data: m.Bytes, header: h}, nil
}

// partSuffix is what llama.cpp puts at the end of the name of part i, from 0.
func partSuffix(i, count uint64) string { return fmt.Sprintf("-%05d-of-%05d.gguf", i+1, count) }

// openParts opens the parts of a split model after the first and checks that
// they belong together. Source: the split.* keys that llama-gguf-split writes.
func (f *File) openParts(parse parser) error {
	no, count, err := f.shards[0].split()
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if count <= 1 {
		return nil
	}
	stem, ok := strings.CutSuffix(f.Path, partSuffix(no, count))
	if !ok {
		return fmt.Errorf("%s: part %d of %d of a split model, but the name does not end in %s", f.Path, no+1, count, partSuffix(no, count))
	}
	if no != 0 {
		return fmt.Errorf("%s: part %d of %d of a split model: open the first, %s", f.Path, no+1, count, stem+partSuffix(0, count))
	}
	tensors := uint64(len(f.shards[0].tensors))
	for i := uint64(1); i < count; i++ {
		name := stem + partSuffix(i, count)
		s, err := openShard(name, parse)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: part %d of %d of the model is missing: %s", f.Path, i+1, count, name)
		}
		if err != nil {
			return err
		}
		f.shards = append(f.shards, s)
		gotNo, gotCount, err := s.split()
		if err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
		if gotCount <= 1 {
			return fmt.Errorf("%s: not a part of a split model by its metadata", s.path)
		}
		if gotNo != i || gotCount != count {
			return fmt.Errorf("%s: part %d of %d by its metadata, part %d of %d by its name", s.path, gotNo+1, gotCount, i+1, count)
		}
		tensors += uint64(len(s.tensors))
	}
	if want, ok, err := f.Uint("split.tensors.count"); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	} else if ok && want != tensors {
		return fmt.Errorf("%s: split.tensors.count is %d, the %d parts have %d tensors", f.Path, want, count, tensors)
	}
	return nil
}

// collect joins the tensor tables of all shards.
func (f *File) collect() error {
	for i, s := range f.shards {
		for _, t := range s.tensors {
			if _, dup := f.index[t.Name]; dup {
				return fmt.Errorf("%s: tensor %q is in an earlier part too", s.path, t.Name)
			}
			t.Shard = i
			f.index[t.Name] = len(f.Tensors)
			f.Tensors = append(f.Tensors, t)
		}
	}
	return nil
}

// split returns which part (from 0) of how many the file is; 0 of 0 if it is
// whole.
func (h *header) split() (no, count uint64, err error) {
	if count, _, err = h.Uint("split.count"); err != nil {
		return 0, 0, err
	}
	no, ok, err := h.Uint("split.no")
	switch {
	case err != nil:
		return 0, 0, err
	case count > 1 && !ok:
		return 0, 0, errors.New(`key "split.no" is missing`)
	case count > 1 && no >= count:
		return 0, 0, fmt.Errorf("split.no is %d, split.count %d", no, count)
	}
	return no, count, nil
}

// Close unmaps the files. Data and slices from Data must not be used after it.
func (f *File) Close() error {
	var errs []error
	for _, s := range f.shards {
		errs = append(errs, s.file.Close())
	}
	f.shards = nil
	return errors.Join(errs...)
}

// Tensor finds a tensor by name.
func (f *File) Tensor(name string) (*Tensor, bool) {
	i, ok := f.index[name]
	if !ok {
		return nil, false
	}
	return &f.Tensors[i], true
}

// Data returns the bytes of t, a tensor of f, without copying, unless they do not lie next to each other. They are
// read-only and valid until Close. Whoever must not fault when the file is cut meanwhile calls Data, and reads its
// bytes, in mapped.Read.
func (f *File) Data(t *Tensor) []byte {
	if t.runs != nil {
		return t.gathered(f.shards[t.Shard].data)
	}
	return f.shards[t.Shard].data[t.Offset:][:t.Size:t.Size]
}

// Holds reports whether the file has the data of t. A file that ends behind its header has none.
func (f *File) Holds(t *Tensor) bool {
	return t.Offset+t.Size <= int64(len(f.shards[t.Shard].data))
}

// Shards returns the paths of the files in order.
func (f *File) Shards() []string {
	paths := make([]string, len(f.shards))
	for i, s := range f.shards {
		paths[i] = s.path
	}
	return paths
}

// Infos describe the files as they were when they were opened, in order.
func (f *File) Infos() []os.FileInfo {
	infos := make([]os.FileInfo, len(f.shards))
	for i, s := range f.shards {
		infos[i] = s.info
	}
	return infos
}

// Fingerprint is the SHA-256 of the headers (metadata and tensor table) of all
// shards. It does not read tensor data: it tells models apart, not two
// trainings of a model with the same metadata.
func (f *File) Fingerprint() [32]byte { return f.fingerprint }

// hash makes the fingerprint.
func (f *File) hash() error {
	sum := sha256.New()
	for _, s := range f.shards {
		if err := mapped.Read(func() error { sum.Write(s.data[:s.end]); return nil }); err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
	}
	f.fingerprint = [32]byte(sum.Sum(nil))
	return nil
}
