package plans

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/zincc-dev/zincc/ir"
)

// Structs are encoded field by field in declaration order, without names: ints
// as zigzag varints, unsigned ints as varints, floats as four bytes, bools as one,
// strings, slices and pointers behind their length, dtypes by name. There is one
// encoding of each value, and the decoder takes no other.

var le = binary.LittleEndian

var bytesType = reflect.TypeFor[[]byte]()

var dtypeType = reflect.TypeFor[ir.DType]()

// appendValue appends the encoding of v.
func appendValue(b []byte, v reflect.Value) []byte {
	if v.Type() == dtypeType {
		return appendString(b, ir.DType(v.Uint()).String())
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			b = appendValue(b, v.Field(i))
		}
	case reflect.Slice:
		if v.Type() == bytesType {
			return append(binary.AppendUvarint(b, uint64(v.Len())), v.Bytes()...)
		}
		b = binary.AppendUvarint(b, uint64(v.Len()))
		for i := range v.Len() {
			b = appendValue(b, v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			b = appendValue(b, v.Index(i))
		}
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, 0)
		}
		b = appendValue(append(b, 1), v.Elem())
	case reflect.String:
		b = appendString(b, v.String())
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		b = append(b, 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		b = binary.AppendVarint(b, v.Int())
	case reflect.Uint32:
		b = le.AppendUint32(b, uint32(v.Uint()))
	case reflect.Float32:
		b = le.AppendUint32(b, math.Float32bits(float32(v.Float())))
	default:
		panic(fmt.Sprintf("plans: no encoding of %s", v.Type()))
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// schema describes the encoding of t, to tell whether two programs agree on it.
func schema(t reflect.Type) string {
	switch {
	case t == dtypeType:
		return "dtype"
	case t.Kind() == reflect.Struct:
		var b strings.Builder
		for f := range t.Fields() {
			fmt.Fprintf(&b, "%s %s;", f.Name, schema(f.Type))
		}
		return "{" + b.String() + "}"
	case t.Kind() == reflect.Slice:
		return "[]" + schema(t.Elem())
	case t.Kind() == reflect.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), schema(t.Elem()))
	case t.Kind() == reflect.Pointer:
		return "*" + schema(t.Elem())
	}
	return t.Kind().String()
}

// minSize is the least number of bytes that a value of type t takes.
func minSize(t reflect.Type) int {
	switch {
	case t == dtypeType:
		return 1
	case t.Kind() == reflect.Struct:
		n := 0
		for f := range t.Fields() {
			n += minSize(f.Type)
		}
		return n
	case t.Kind() == reflect.Array:
		return t.Len() * minSize(t.Elem())
	case t.Kind() == reflect.Uint32, t.Kind() == reflect.Float32:
		return 4
	}
	return 1
}

// decoder reads one section. Decoded strings share its memory.
type decoder struct {
	rest string
	path []step // down to the value being read
}

// step is a field of a struct or, if of is nil, an element.
type step struct {
	of    reflect.Type
	index int
}

// decodeSection fills v from all of data.
func decodeSection(data string, v reflect.Value) error {
	d := &decoder{rest: data}
	err := d.value(v)
	if err == nil && d.rest != "" {
		err = fmt.Errorf("%d bytes too many", len(d.rest))
	}
	if err == nil || len(d.path) == 0 {
		return err
	}
	var where strings.Builder
	for _, p := range d.path {
		if p.of != nil {
			where.WriteString("." + p.of.Field(p.index).Name)
		} else {
			fmt.Fprintf(&where, "[%d]", p.index)
		}
	}
	return fmt.Errorf("field %s: %w", strings.TrimPrefix(where.String(), "."), err)
}

func (d *decoder) value(v reflect.Value) error {
	if v.Type() == dtypeType {
		return d.dtype(v)
	}
	switch v.Kind() {
	case reflect.Struct:
		d.path = append(d.path, step{of: v.Type()})
		last := len(d.path) - 1
		for i := range v.NumField() {
			d.path[last].index = i
			if err := d.value(v.Field(i)); err != nil {
				return err
			}
		}
		d.path = d.path[:last]
	case reflect.Slice:
		return d.slice(v)
	case reflect.Array:
		return d.elements(v)
	case reflect.Pointer:
		some, err := d.bool()
		if err != nil || !some {
			return err
		}
		v.Set(reflect.New(v.Type().Elem()))
		return d.value(v.Elem())
	case reflect.String:
		s, err := d.string()
		v.SetString(s)
		return err
	case reflect.Bool:
		x, err := d.bool()
		v.SetBool(x)
		return err
	case reflect.Int, reflect.Int32, reflect.Int64:
		u, err := d.uvarint()
		n := int64(u>>1) ^ -int64(u&1)
		if err == nil && v.OverflowInt(n) {
			return fmt.Errorf("number %d is too large", n)
		}
		v.SetInt(n)
		return err
	case reflect.Uint32:
		u, err := d.uint32()
		v.SetUint(uint64(u))
		return err
	case reflect.Float32:
		u, err := d.uint32()
		v.SetFloat(float64(math.Float32frombits(u)))
		return err
	default:
		panic(fmt.Sprintf("plans: no encoding of %s", v.Type()))
	}
	return nil
}

func (d *decoder) slice(v reflect.Value) error {
	n, err := d.uvarint()
	if err != nil || n == 0 {
		return err
	}
	if least := minSize(v.Type().Elem()); n > uint64(len(d.rest)/least) {
		return fmt.Errorf("%d elements cannot fit in the %d bytes left", n, len(d.rest))
	}
	// The long lists of a plan, code and the vocabulary, do without reflection.
	switch list := v.Addr().Interface().(type) {
	case *[]byte:
		s, err := d.take(n)
		*list = []byte(s)
		return err
	case *[]string:
		*list = make([]string, n)
		return decodeList(d, *list, (*decoder).string)
	}
	v.Set(reflect.MakeSlice(v.Type(), int(n), int(n)))
	return d.elements(v)
}

func decodeList[T any](d *decoder, list []T, read func(*decoder) (T, error)) error {
	for i := range list {
		x, err := read(d)
		if err != nil {
			d.path = append(d.path, step{index: i})
			return err
		}
		list[i] = x
	}
	return nil
}

func (d *decoder) elements(v reflect.Value) error {
	d.path = append(d.path, step{})
	last := len(d.path) - 1
	for i := range v.Len() {
		d.path[last].index = i
		if err := d.value(v.Index(i)); err != nil {
			return err
		}
	}
	d.path = d.path[:last]
	return nil
}

func (d *decoder) dtype(v reflect.Value) error {
	s, err := d.string()
	if err != nil {
		return err
	}
	t, ok := ir.ParseDType(s)
	if !ok {
		return fmt.Errorf("unknown dtype %q", s)
	}
	v.SetUint(uint64(t))
	return nil
}

func (d *decoder) take(n uint64) (string, error) {
	if n > uint64(len(d.rest)) {
		return "", fmt.Errorf("%d bytes wanted, %d left", n, len(d.rest))
	}
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s, nil
}

func (d *decoder) string() (string, error) {
	n, err := d.uvarint()
	if err != nil {
		return "", err
	}
	return d.take(n)
}

func (d *decoder) bool() (bool, error) {
	s, err := d.take(1)
	if err != nil {
		return false, err
	}
	if s[0] > 1 {
		return false, fmt.Errorf("%d is not a bool", s[0])
	}
	return s[0] == 1, nil
}

func (d *decoder) uint32() (uint32, error) {
	s, err := d.take(4)
	if err != nil {
		return 0, err
	}
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24, nil
}

func (d *decoder) uvarint() (uint64, error) {
	if len(d.rest) > 0 && d.rest[0] < 0x80 { // most are short
		u := uint64(d.rest[0])
		d.rest = d.rest[1:]
		return u, nil
	}
	var u uint64
	for i := range min(len(d.rest), binary.MaxVarintLen64) {
		b := d.rest[i]
		if b < 0x80 {
			if i == 9 && b > 1 || i > 0 && b == 0 {
				return 0, fmt.Errorf("bad number")
			}
			d.rest = d.rest[i+1:]
			return u | uint64(b)<<(7*i), nil
		}
		u |= uint64(b&0x7f) << (7 * i)
	}
	return 0, fmt.Errorf("number has no end")
}
