package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// Bounds of the JSON of a request.
const (
	maxDepth  = 128     // brackets within brackets
	maxValues = 1 << 20 // values: a prompt's tokens are most of them
	maxItems  = 4096    // of an array, but for one of numbers, and of an object whose names are the client's
)

// decode reads a JSON object into v, a pointer to a struct. A known field of the wrong type
// is an error that names it; unknown fields are told to ignored, if not nil.
func decode(raw []byte, v any, ignored func(field string)) error {
	if !utf8.Valid(raw) {
		return badParam("", "the body is not UTF-8")
	}
	if err := checkJSON(raw); err != nil {
		return err
	}
	if ignored == nil {
		ignored = func(string) {}
	}
	d := decoder{ignored: ignored}
	return d.into(raw, v, "")
}

// checkJSON says whether raw is one JSON value within the bounds. It takes no memory.
func checkJSON(raw []byte) error {
	depth, values := 0, 1
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			i = stringEnd(raw, i) - 1
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return badParam("", "the body is nested deeper than %d", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		case c == ',':
			if values++; values > maxValues {
				return badParam("", "the body has more than %d values", maxValues)
			}
		}
	}
	if json.Valid(raw) {
		return nil
	}
	var v json.RawMessage
	return badParam("", "the body is not JSON: %s", json.Unmarshal(raw, &v))
}

// A decoder fills values from valid JSON as encoding/json does, but takes names by
// their exact case and says where a value of the wrong type stands.
type decoder struct {
	ignored func(field string)
}

var rawType = reflect.TypeFor[json.RawMessage]()

// into decodes raw, which stands at path, into what v points to.
func (d *decoder) into(raw []byte, v any, path string) error {
	return d.value(raw, reflect.ValueOf(v).Elem(), path)
}

// value decodes raw into v, which stands at path. null leaves v as it is.
func (d *decoder) value(raw []byte, v reflect.Value, path string) error {
	raw = bytes.TrimSpace(raw)
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	if v.CanAddr() {
		if u, ok := v.Addr().Interface().(union); ok {
			return u.decode(d, raw, path)
		}
	}
	if v.Type() == rawType {
		v.SetBytes(bytes.Clone(raw))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		if raw[0] != '"' {
			return wrongType(path, want(v.Type()), raw)
		}
		v.SetString(unquote(raw))
		return nil
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		if err := d.value(raw, p.Elem(), path); err != nil {
			return err
		}
		v.Set(p)
		return nil
	case reflect.Struct:
		return d.object(raw, v, path)
	case reflect.Slice:
		if raw[0] != '[' {
			return wrongType(path, "an array", raw)
		}
		if v.Type().Elem().Kind() == reflect.Int32 {
			return d.ids(raw, v, path)
		}
		return d.array(raw, v, path)
	case reflect.Map:
		if raw[0] != '{' {
			return wrongType(path, "an object", raw)
		}
		return d.members(raw, v, path)
	case reflect.Int, reflect.Int32, reflect.Int64:
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 || v.OverflowInt(int64(f)) {
			return wrongType(path, want(v.Type()), raw)
		}
		v.SetInt(int64(f))
		return nil
	}
	if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
		return wrongType(path, want(v.Type()), raw)
	}
	return nil
}

// array decodes an array into a slice.
func (d *decoder) array(raw []byte, v reflect.Value, path string) error {
	of := v.Type().Elem()
	s := reflect.MakeSlice(v.Type(), 0, 0)
	for i, r := range elements(raw) {
		at := fmt.Sprintf("%s[%d]", path, i)
		if i == maxItems {
			return badParam(path, "%s: more than %d", path, maxItems)
		}
		if bytes.Equal(r, []byte("null")) && of != rawType {
			return wrongType(at, want(of), r)
		}
		s = reflect.Append(s, reflect.Zero(of))
		if err := d.value(r, s.Index(i), at); err != nil {
			return err
		}
	}
	v.Set(s)
	return nil
}

// members decodes an object into a map.
func (d *decoder) members(raw []byte, v reflect.Value, path string) error {
	m := reflect.MakeMap(v.Type())
	for k, r := range members(raw) {
		if m.Len() == maxItems {
			return badParam(path, "%s: more than %d", path, maxItems)
		}
		e := reflect.New(v.Type().Elem()).Elem()
		if err := d.value(r, e, join(path, k)); err != nil {
			return err
		}
		m.SetMapIndex(reflect.ValueOf(k), e)
	}
	v.Set(m)
	return nil
}

// ids decodes token ids, of which there may be many.
func (d *decoder) ids(raw []byte, v reflect.Value, path string) error {
	all := []int32{}
	for i, r := range elements(raw) {
		id, err := strconv.ParseInt(string(r), 10, 32)
		if err != nil {
			one := reflect.New(v.Type().Elem()).Elem()
			at := fmt.Sprintf("%s[%d]", path, i)
			if bytes.Equal(r, []byte("null")) {
				return wrongType(at, want(one.Type()), r)
			}
			if err := d.value(r, one, at); err != nil { // 1e3 is an integer, too
				return err
			}
			id = one.Int()
		}
		all = append(all, int32(id))
	}
	v.Set(reflect.ValueOf(all))
	return nil
}

// A union is a value that has several forms in JSON.
type union interface {
	decode(d *decoder, raw []byte, path string) error
}

func (d *decoder) object(raw []byte, v reflect.Value, path string) error {
	if raw[0] != '{' {
		return wrongType(path, "an object", raw)
	}
	fields := fieldsOf(v.Type())
	for name, r := range members(raw) {
		index, known := fields[name]
		if !known {
			d.ignored(join(path, name))
			continue
		}
		if err := d.value(r, v.FieldByIndex(index), join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

var fieldCache sync.Map // reflect.Type -> map[string][]int

// fieldsOf returns where the fields of a struct are, by their names in JSON.
func fieldsOf(t reflect.Type) map[string][]int {
	if m, ok := fieldCache.Load(t); ok {
		return m.(map[string][]int)
	}
	m := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && !f.Anonymous && name != "" && name != "-" {
			m[name] = f.Index
		}
	}
	fieldCache.Store(t, m)
	return m
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func wrongType(path, want string, raw []byte) error {
	have := string(raw)
	if len(have) > 40 {
		have = strings.ToValidUTF8(have[:40], "") + "..."
	}
	if path == "" {
		return badParam("", "want %s, have %s", want, have)
	}
	return badParam(path, "%s: want %s, have %s", path, want, have)
}

// want names what JSON a type is read from.
func want(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return want(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Float64, reflect.Float32:
		return "a number"
	case reflect.Slice:
		return "an array"
	}
	return "an object"
}
