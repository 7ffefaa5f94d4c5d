package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"reflect"

	"github.com/zincc-dev/zincc/ir"
)

// KV is a metadata entry; Value has one of the types that File.Value returns.
type KV struct {
	Key   string
	Value any
}

// TensorData is a tensor to be written. Data holds whole rows of Type.
type TensorData struct {
	Name  string
	Type  ir.DType
	Shape []int64 // GGUF order
	Data  []byte
}

// Write writes a GGUF file, version 3, with entries and tensors in the order
// given; the same arguments give the same bytes. The alignment is the value of
// general.alignment in meta, or 32.
func Write(w io.Writer, meta []KV, tensors []TensorData) error {
	b, alignment, sizes, err := writeHeader(meta, tensors)
	if err != nil {
		return err
	}
	padding := func(n int64) int64 { return -n & (alignment - 1) }
	for i, t := range tensors {
		if size := sizes[i]; size != int64(len(t.Data)) {
			return fmt.Errorf("tensor %q: shape %v of %s takes %d bytes, not %d", t.Name, t.Shape, t.Type, size, len(t.Data))
		}
	}
	// bufio keeps the first error for Flush
	out := bufio.NewWriter(w)
	out.Write(b)
	out.Write(make([]byte, padding(int64(len(b)))))
	for _, t := range tensors {
		out.Write(t.Data)
		out.Write(make([]byte, padding(int64(len(t.Data)))))
	}
	return out.Flush()
}

// WriteHeader writes what comes before the data of the tensors, whose Data is not
// looked at: enough for OpenHeader.
func WriteHeader(w io.Writer, meta []KV, tensors []TensorData) error {
	b, _, _, err := writeHeader(meta, tensors)
	if err == nil {
		_, err = w.Write(b)
	}
	return err
}

// writeHeader also returns the alignment of the data and the size of every tensor.
func writeHeader(meta []KV, tensors []TensorData) (b []byte, alignment int64, sizes []int64, err error) {
	h := header{metadata: metadata{values: map[string]any{}}}
	b = []byte(magic)
	b = le.AppendUint32(b, 3)
	b = le.AppendUint64(b, uint64(len(tensors)))
	b = le.AppendUint64(b, uint64(len(meta)))
	for _, e := range meta {
		h.values[e.Key] = e.Value
		if b, err = appendValue(appendString(b, e.Key), e.Value); err != nil {
			return nil, 0, nil, fmt.Errorf("key %q: %w", e.Key, err)
		}
	}
	if alignment, err = h.alignment(); err != nil {
		return nil, 0, nil, err
	}
	padding := func(n int64) int64 { return -n & (alignment - 1) }
	offset := int64(0)
	for _, t := range tensors {
		number, ok := numberOf(t.Type)
		if !ok {
			return nil, 0, nil, fmt.Errorf("tensor %q: GGUF has no type %s", t.Name, t.Type)
		}
		size, err := tensorSize(t.Shape, formats[number])
		if err != nil {
			return nil, 0, nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		b = appendString(b, t.Name)
		b = le.AppendUint32(b, uint32(len(t.Shape)))
		for _, d := range t.Shape {
			b = le.AppendUint64(b, uint64(d))
		}
		b = le.AppendUint32(b, number)
		b = le.AppendUint64(b, uint64(offset))
		offset += size + padding(size)
		sizes = append(sizes, size)
	}
	return b, alignment, sizes, nil
}

func appendString(b []byte, s string) []byte {
	return append(le.AppendUint64(b, uint64(len(s))), s...)
}

// appendValue appends a value type number and the value.
func appendValue(b []byte, v any) ([]byte, error) {
	t := reflect.TypeOf(v)
	elem := t
	if t != nil && t.Kind() == reflect.Slice {
		elem = t.Elem()
		b = le.AppendUint32(b, numArray)
	}
	for number, row := range valueTypes {
		if elem == nil || row.goType != elem {
			continue
		}
		b = le.AppendUint32(b, uint32(number))
		if elem != t {
			b = le.AppendUint64(b, uint64(reflect.ValueOf(v).Len()))
		}
		switch v := v.(type) {
		case string:
			return appendString(b, v), nil
		case []string:
			for _, s := range v {
				b = appendString(b, s)
			}
			return b, nil
		}
		return binary.Append(b, le, v)
	}
	return nil, fmt.Errorf("GGUF has no value type for %T", v)
}
