package gguf

import (
	"fmt"
	"math"
	"reflect"
	"slices"
)

// metadata is the ordered key-value part of a file.
type metadata struct {
	keys   []string
	values map[string]any
}

// Keys returns all keys in file order.
func (m *metadata) Keys() []string { return slices.Clone(m.keys) }

// Value returns the value of key as the Go type of its stored type: uint8 to
// int64, float32, float64, bool, string, or a slice of one of them, which the
// caller must not change.
func (m *metadata) Value(key string) (any, bool) {
	v, ok := m.values[key]
	return v, ok
}

// Uint returns the value of key, stored as any integer type; false if the file
// has no such key. It fails on other types and on negative values.
func (m *metadata) Uint(key string) (uint64, bool, error) {
	return scalar(m, key, "an unsigned integer", toUint)
}

// Float returns the value of key, stored as any number; false if there is none.
func (m *metadata) Float(key string) (float64, bool, error) {
	return scalar(m, key, "a number", toFloat)
}

// Bool returns the value of key, false and false if the file has no such key.
func (m *metadata) Bool(key string) (bool, bool, error) {
	return scalar(m, key, "a bool", asBool)
}

// String returns the value of key; false if the file has no such key.
func (m *metadata) String(key string) (string, bool, error) {
	return scalar(m, key, "a string", asString)
}

// Strings returns the array of strings at key, which the caller must not
// change; false if the file has no such key.
func (m *metadata) Strings(key string) ([]string, bool, error) {
	v, ok := m.values[key]
	if !ok {
		return nil, false, nil
	}
	s, ok := v.([]string)
	if !ok {
		return nil, false, typeError(key, v, "an array of strings")
	}
	return s, true, nil
}

// Ints returns the value of key as a new slice: an array of any integer type,
// or one integer as a slice of length 1; false if the file has no such key.
func (m *metadata) Ints(key string) ([]int64, bool, error) {
	return list(m, key, "an integer or an array of integers", toInt)
}

// Floats is Ints for numbers.
func (m *metadata) Floats(key string) ([]float64, bool, error) {
	return list(m, key, "a number or an array of numbers", toFloat)
}

func scalar[T any](m *metadata, key, want string, convert func(reflect.Value) (T, bool)) (T, bool, error) {
	var none T
	v, ok := m.values[key]
	if !ok {
		return none, false, nil
	}
	x, ok := convert(reflect.ValueOf(v))
	if !ok {
		return none, false, typeError(key, v, want)
	}
	return x, true, nil
}

func list[T any](m *metadata, key, want string, convert func(reflect.Value) (T, bool)) ([]T, bool, error) {
	v, ok := m.values[key]
	if !ok {
		return nil, false, nil
	}
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice {
		x, ok := convert(r)
		if !ok {
			return nil, false, typeError(key, v, want)
		}
		return []T{x}, true, nil
	}
	s := make([]T, r.Len())
	for i := range s {
		if s[i], ok = convert(r.Index(i)); !ok {
			return nil, false, typeError(key, v, want)
		}
	}
	return s, true, nil
}

func toInt(v reflect.Value) (int64, bool) {
	switch {
	case v.CanInt():
		return v.Int(), true
	case v.CanUint() && v.Uint() <= math.MaxInt64:
		return int64(v.Uint()), true
	}
	return 0, false
}

func toUint(v reflect.Value) (uint64, bool) {
	switch {
	case v.CanUint():
		return v.Uint(), true
	case v.CanInt() && v.Int() >= 0:
		return uint64(v.Int()), true
	}
	return 0, false
}

func toFloat(v reflect.Value) (float64, bool) {
	switch {
	case v.CanFloat():
		return v.Float(), true
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	}
	return 0, false
}

func asBool(v reflect.Value) (bool, bool) {
	if v.Kind() != reflect.Bool {
		return false, false
	}
	return v.Bool(), true
}

func asString(v reflect.Value) (string, bool) {
	if v.Kind() != reflect.String {
		return "", false
	}
	return v.String(), true
}

// typeError says what v, the value of key, should have been. It shows only the type of an
// array.
func typeError(key string, v any, want string) error {
	if reflect.TypeOf(v).Kind() == reflect.Slice {
		return fmt.Errorf("key %.80q is a %T, not %s", key, v, want)
	}
	return fmt.Errorf("key %.80q is the %T %.80q, not %s", key, v, fmt.Sprint(v), want)
}
