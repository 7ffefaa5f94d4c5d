package api

import "reflect"

// held is how many bytes a value has behind it, such as those of its strings and of what its slices hold. What it has
// twice counts twice; it has no cycles.
func held(v reflect.Value) (n int64) {
	size := func(t reflect.Type) int64 { return int64(t.Size()) }
	switch v.Kind() {
	case reflect.String:
		return int64(v.Len())
	case reflect.Slice:
		n = int64(v.Cap()) * size(v.Type().Elem())
		fallthrough
	case reflect.Array:
		if k := v.Type().Elem().Kind(); k <= reflect.Complex128 {
			return n // numbers
		}
		for i := range v.Len() {
			n += held(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += held(v.Field(i))
		}
	case reflect.Map:
		const slot = 16 // beside key and value
		for key, value := range v.Seq2() {
			n += slot + size(key.Type()) + held(key) + size(v.Type().Elem()) + held(value)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			n = size(v.Elem().Type()) + held(v.Elem())
		}
	}
	return n
}
