package gguf

import (
	"math"
	"reflect"
)

// valueType is a row of the table of metadata value types.
type valueType struct {
	goType reflect.Type
	size   uint64 // smallest size of one value in bytes
	scalar func(r *reader) any
	array  func(r *reader, n uint64) any // n values, known to fit in what is left
}

// numArray is the value type number of arrays. It is not a row of valueTypes:
// an array holds values of any row, but, as in ggml, no arrays.
const numArray = 9

// valueTypes is indexed by the value type number of the format.
var valueTypes = [...]valueType{
	0:  kind(1, (*reader).u8),
	1:  kind(1, func(r *reader) int8 { return int8(r.u8()) }),
	2:  kind(2, (*reader).u16),
	3:  kind(2, func(r *reader) int16 { return int16(r.u16()) }),
	4:  kind(4, (*reader).u32),
	5:  kind(4, func(r *reader) int32 { return int32(r.u32()) }),
	6:  kind(4, func(r *reader) float32 { return math.Float32frombits(r.u32()) }),
	7:  kind(1, (*reader).boolean),
	8:  kind(8, (*reader).str),
	10: kind(8, (*reader).u64),
	11: kind(8, func(r *reader) int64 { return int64(r.u64()) }),
	12: kind(8, func(r *reader) float64 { return math.Float64frombits(r.u64()) }),
}

func kind[T any](size uint64, read func(*reader) T) valueType {
	return valueType{
		goType: reflect.TypeFor[T](),
		size:   size,
		scalar: func(r *reader) any { return read(r) },
		array: func(r *reader, n uint64) any {
			s := make([]T, 0, n)
			for ; n > 0 && r.err == nil; n-- {
				s = append(s, read(r))
			}
			return s
		},
	}
}

func (r *reader) boolean() bool {
	b := r.u8()
	if b > 1 {
		r.fail("bool has the value %d", b)
	}
	return b == 1
}

func (r *reader) str() string { return string(r.bytes(r.u64())) }

// value reads a value type number and the value: a scalar or a slice.
func (r *reader) value() any {
	number := r.u32()
	isArray := number == numArray
	if isArray {
		number = r.u32()
	}
	if r.err != nil {
		return nil
	}
	if uint64(number) >= uint64(len(valueTypes)) || valueTypes[number].goType == nil {
		if isArray {
			r.fail("arrays of value type %d are not supported", number)
		} else {
			r.fail("unknown value type %d", number)
		}
		return nil
	}
	t := &valueTypes[number]
	if !isArray {
		return t.scalar(r)
	}
	n := r.count("array elements", t.size)
	if r.err != nil {
		return nil
	}
	return t.array(r, n)
}
