package gguf

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// Limits for reading. Everything allocated while parsing is proportional
// to bytes that are really in the header, and the header is bounded.
const (
	maxHeader    = 256 << 20
	maxKey       = 1<<16 - 1 // the format's own limit
	maxName      = 63        // ggml keeps names in 64 bytes with a final 0
	maxDims      = 4
	maxAlignment = 1 << 20

	minKeyBytes    = 8 + 1 + 4 + 1     // length, name, value type, smallest value
	minTensorBytes = 8 + 1 + 4 + 4 + 8 // length, name, dimensions, type, offset

	defaultAlignment = 32
	keyAlignment     = "general.alignment"
)

const magic = "GGUF"

var errNoGGUF = errors.New("not a GGUF file")

// header is the checked content of one file up to the tensor data.
type header struct {
	metadata
	version uint32
	tensors []Tensor
	end     int64 // bytes of header, without the padding before the data
}

// parser reads the header of the file that begins with data.
type parser func(data []byte) (*header, error)

// parse reads the header of a whole GGUF file held in data. The tensors it
// returns lie inside data, aligned, and do not overlap.
func parse(data []byte) (*header, error) { return parseSized(data, int64(len(data))) }

// parseHeader is parse for a file that may end anywhere after its header.
func parseHeader(data []byte) (*header, error) { return parseSized(data, math.MaxInt64) }

// parseSized reads the header of a GGUF file of size bytes.
//
// Source: the GGUF specification, versions 2 and 3, little endian.
func parseSized(data []byte, size int64) (*header, error) {
	r := &reader{data: data[:min(len(data), maxHeader)], cut: len(data) > maxHeader}
	h := &header{metadata: metadata{values: map[string]any{}}}
	if m := r.bytes(uint64(len(magic))); r.err == nil && string(m) != magic {
		return nil, errNoGGUF
	}
	h.version = r.u32()
	switch {
	case r.err != nil:
		return nil, r.err
	case h.version&0xffff == 0:
		return nil, ir.Unsupported("big-endian GGUF files are not supported")
	case h.version != 2 && h.version != 3:
		return nil, ir.Unsupported("GGUF version %d is not supported, only 2 and 3", h.version)
	}
	tensors := r.count("tensors", minTensorBytes)
	keys := r.count("keys", minKeyBytes)
	for i := uint64(0); i < keys && r.err == nil; i++ {
		h.readKey(r)
	}
	if r.err != nil {
		return nil, r.err
	}
	alignment, err := h.alignment()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i := uint64(0); i < tensors && r.err == nil; i++ {
		t := readTensor(r)
		if r.err == nil && seen[t.Name] {
			return nil, fmt.Errorf("tensor %q appears twice", t.Name)
		}
		seen[t.Name] = true
		h.tensors = append(h.tensors, t)
	}
	if r.err != nil {
		return nil, r.err
	}
	h.end = int64(r.pos)
	return h, place(h.tensors, h.end, alignment, size)
}

func (h *header) readKey(r *reader) {
	n := r.u64()
	if r.err == nil && (n == 0 || n > maxKey) {
		r.fail("key %d has a name of %d bytes", len(h.keys), n)
	}
	key := string(r.bytes(n))
	if _, dup := h.values[key]; dup && r.err == nil {
		r.fail("key %.80q appears twice", key)
	}
	value := r.value()
	if r.err != nil {
		if key != "" {
			r.err = fmt.Errorf("key %.80q: %w", key, r.err)
		}
		return
	}
	h.keys = append(h.keys, key)
	h.values[key] = value
}

// alignment is that of tensor data in bytes, a power of two.
func (h *header) alignment() (int64, error) {
	v, ok := h.values[keyAlignment]
	if !ok {
		return defaultAlignment, nil
	}
	a, ok := v.(uint32)
	if !ok {
		return 0, typeError(keyAlignment, v, "a uint32")
	}
	if bits.OnesCount32(a) != 1 || a > maxAlignment {
		return 0, fmt.Errorf("key %q is %d, not a power of two up to %d", keyAlignment, a, maxAlignment)
	}
	return int64(a), nil
}

// readTensor reads one row of the tensor table. Offset is still relative to
// the start of the data, and may be as large as the file says.
func readTensor(r *reader) Tensor {
	n := r.u64()
	if r.err == nil && (n == 0 || n > maxName) {
		r.fail("tensor has a name of %d bytes, not 1 to %d", n, maxName)
	}
	t := Tensor{Name: string(r.bytes(n))}
	dims := r.u32()
	if r.err == nil && dims > maxDims {
		r.fail("tensor %q has %d dimensions, more than %d", t.Name, dims, maxDims)
	}
	for i := uint32(0); i < dims && r.err == nil; i++ {
		t.Shape = append(t.Shape, int64(r.u64()))
	}
	number := r.u32()
	offset := r.u64()
	if r.err != nil {
		return t
	}
	typ, ok := formats[number]
	if !ok {
		r.fail("tensor %q has the unknown type number %d", t.Name, number)
		return t
	}
	if offset > math.MaxInt64 {
		r.fail("tensor %q: offset %d is too large", t.Name, offset)
		return t
	}
	t.Type, t.TypeName, t.Offset = typ.dtype, typ.name, int64(offset)
	var err error
	if t.Size, err = tensorSize(t.Shape, typ); err != nil {
		r.fail("tensor %q: %w", t.Name, err)
	}
	return t
}

// tensorSize returns the bytes of a tensor whose rows (the first dimension)
// are whole blocks.
func tensorSize(shape []int64, typ format) (int64, error) {
	n := int64(1)
	for _, d := range shape {
		if d <= 0 {
			return 0, fmt.Errorf("shape %v has a dimension below 1", shape)
		}
		if n > math.MaxInt64/d {
			return 0, fmt.Errorf("shape %v has too many elements", shape)
		}
		n *= d
	}
	if typ.block > 1 && (len(shape) == 0 || shape[0]%typ.block != 0) {
		return 0, fmt.Errorf("rows of shape %v are not whole %s blocks of %d", shape, typ.name, typ.block)
	}
	if n/typ.block > math.MaxInt64/typ.bytes {
		return 0, fmt.Errorf("shape %v has too many bytes", shape)
	}
	return n / typ.block * typ.bytes, nil
}

// place makes offsets absolute and checks that every tensor is aligned, lies
// between the header and the end of the file, and shares no byte with another.
func place(tensors []Tensor, headerEnd, alignment, fileSize int64) error {
	start := (headerEnd + alignment - 1) &^ (alignment - 1)
	order := make([]*Tensor, len(tensors))
	for i := range tensors {
		t := &tensors[i]
		order[i] = t
		if t.Offset%alignment != 0 {
			return fmt.Errorf("tensor %q: offset %d is not a multiple of the alignment %d", t.Name, t.Offset, alignment)
		}
		// uint64, because two non-negative int64 cannot overflow it
		if end := uint64(t.Offset) + uint64(t.Size); end > uint64(max(fileSize-start, 0)) {
			return fmt.Errorf("tensor %q: data ends at %d, file has %d bytes: the download or copy did not end", t.Name, end+uint64(start), fileSize)
		}
		t.Offset += start
	}
	slices.SortStableFunc(order, func(a, b *Tensor) int {
		switch {
		case a.Offset < b.Offset:
			return -1
		case a.Offset > b.Offset:
			return 1
		}
		return 0
	})
	for i := 1; i < len(order); i++ {
		if a, b := order[i-1], order[i]; a.Offset+a.Size > b.Offset {
			return fmt.Errorf("tensors %q and %q overlap", a.Name, b.Name)
		}
	}
	return nil
}

// Is reports whether the file at path begins as GGUF files do. It is false for one that cannot be
// read.
func Is(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(magic))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == magic
}
