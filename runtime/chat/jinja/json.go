package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FromJSON reads JSON. Objects keep the order of their keys; strings are data.
func FromJSON(raw []byte) (Value, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := readJSON(d, 0)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("text follows the JSON value")
	}
	return v, nil
}

func readJSON(d *json.Decoder, depth int) (Value, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("JSON is nested deeper than %d", maxDepth)
	}
	tok, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch tok := tok.(type) {
	case json.Number:
		return readNumber(tok.String())
	case string:
		return data(tok), nil
	case bool:
		return tok, nil
	case json.Delim:
		if tok == '[' {
			return readArray(d, depth)
		}
		return readObject(d, depth)
	}
	return nil, nil
}

func readArray(d *json.Decoder, depth int) (Value, error) {
	l := NewList()
	for d.More() {
		v, err := readJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		l.items = append(l.items, v)
	}
	_, err := d.Token()
	return l, err
}

func readObject(d *json.Decoder, depth int) (Value, error) {
	dict := NewDict()
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := readJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		k := data(key.(string))
		dict.set(dictKey{kind: 's', text: k.s}, k, v)
	}
	_, err := d.Token()
	return dict, err
}

func readNumber(s string) (Value, error) {
	if !strings.ContainsAny(s, ".eE") {
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return i, nil
		}
		if len(s) > 400 {
			return nil, errors.New("a number has more than 400 digits")
		}
		i, _ := new(big.Int).SetString(s, 10)
		return i, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return nil, err
	}
	return f, nil
}

// jsonStyle is how tojson writes.
type jsonStyle struct {
	ascii, sorted bool
	indented      bool
	indent        Str // of one level
	item, key     Str // separators
}

func (st *state) writeJSON(b *builder, v Value, how *jsonStyle, depth int) {
	st.deep(depth)
	st.step()
	switch v := v.(type) {
	case nil:
		b.own("null")
	case bool:
		b.own(strconv.FormatBool(v))
	case int64, *big.Int:
		st.writeRepr(b, v, 0)
	case float64:
		b.own(jsonFloat(v))
	case Str:
		jsonStr(b, v, how.ascii)
	case *List:
		if !v.indexed() {
			st.fail("TypeError: Object of type %s is not JSON serializable", typeName(v))
		}
		st.jsonItems(b, "[", "]", len(v.items), how, depth, func(i int) {
			st.writeJSON(b, v.items[i], how, depth+1)
		})
	case *Dict:
		order := make([]int, v.Len())
		for i := range order {
			order[i] = i
		}
		if how.sorted {
			slices.SortStableFunc(order, func(i, j int) int { return st.compare("<", v.keys[i], v.keys[j]) })
		}
		st.jsonItems(b, "{", "}", v.Len(), how, depth, func(i int) {
			jsonStr(b, st.jsonKey(v.keys[order[i]]), how.ascii)
			b.add(how.key)
			st.writeJSON(b, v.values[order[i]], how, depth+1)
		})
	default:
		st.fail("TypeError: Object of type %s is not JSON serializable", typeName(v))
	}
}

// jsonItems writes n items between brackets, one a line if that is the style.
func (st *state) jsonItems(b *builder, open, end string, n int, how *jsonStyle, depth int, item func(int)) {
	line := func(depth int) {
		if how.indented {
			b.own("\n")
			b.add(st.repeat(how.indent, int64(depth)))
		}
	}
	b.own(open)
	for i := range n {
		if i > 0 {
			b.add(how.item)
		}
		line(depth + 1)
		item(i)
	}
	if n > 0 {
		line(depth)
	}
	b.own(end)
}

func (st *state) jsonKey(k Value) Str {
	switch k := k.(type) {
	case Str:
		return k
	case nil:
		return own("null")
	case bool:
		return own(strconv.FormatBool(k))
	case float64:
		return own(jsonFloat(k))
	case int64, *big.Int:
		return st.repr(k)
	}
	st.fail("TypeError: keys must be str, int, float, bool or None, not %s", typeName(k))
	return Str{}
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return floatRepr(f)
}

var jsonEscapes = map[rune]string{
	'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\f': `\f`, '\b': `\b`,
}

func jsonStr(b *builder, s Str, ascii bool) {
	b.own(`"`)
	for part, user := range s.runs() {
		start := 0
		for i, r := range part {
			esc, ok := jsonEscapes[r]
			switch {
			case ok:
			case r < ' ' || ascii && r >= 0x7F && r <= 0xFFFF:
				esc = fmt.Sprintf(`\u%04x`, r)
			case ascii && r > 0xFFFF:
				esc = fmt.Sprintf(`\u%04x\u%04x`, 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF)
			default:
				continue
			}
			b.write(part[start:i], user)
			b.write(esc, user)
			start = i + utf8.RuneLen(r)
		}
		b.write(part[start:], user)
	}
	b.own(`"`)
}
