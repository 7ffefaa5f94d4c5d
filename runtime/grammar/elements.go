package grammar

import (
	"bytes"
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
	"github.com/zincc-dev/zincc/runtime/grammar/machine"
)

// note keeps the text of arrays, and their elements.
func (k *keys) note(b byte) {
	if len(k.levels) > 0 && k.mode == between && b == ',' {
		if top := &k.levels[len(k.levels)-1]; !top.object {
			top.elements = append(top.elements, canonical(k.text[top.begin:]))
			top.begin = len(k.text) + 1
		}
	}
	if k.mode == between && b == '"' {
		k.quote = len(k.text) + 1
	}
	k.text = append(k.text, b)
}

// array returns the level of an array, numbered from the outermost one.
func (k *keys) array(n int) *level {
	for i := range k.levels {
		if !k.levels[i].object {
			if n == 0 {
				return &k.levels[i]
			}
			n--
		}
	}
	return nil
}

// behind says whether a lexeme may come behind the element that has just ended.
func (k *keys) behind(what lex.Behind) bool {
	top := &k.levels[len(k.levels)-1]
	if top.object {
		return true
	}
	last := canonical(k.text[top.begin:])
	if what != lex.Equals {
		return !slices.Contains(top.elements, last)
	}
	for i, e := range top.elements {
		if e == last || slices.Contains(top.elements[:i], e) {
			return true
		}
	}
	return false
}

// compare takes places out of a state in which elements of arrays are not as they must be; nil if none is left.
func (w *walker) compare(s *machine.State, ahead bool) *machine.State {
	if !s.Compares() || len(w.keys.levels) == 0 {
		return s
	}
	spent := func(array, ways int, rest func() *machine.State) bool {
		l := w.keys.array(array + w.outer)
		if l == nil || len(l.elements) < max(1, ways) {
			return false
		}
		sub := walker{g: w.g, state: rest(), keys: w.keys.clone(), outer: w.outer + array + 1}
		return !sub.another(&search{elements: l.elements, begin: l.begin, end: len(w.keys.text) + maxLonger})
	}
	if !ahead {
		spent = nil
	}
	return w.g.machine.Compare(s, w.keys.behind, spent)
}

// A search looks for an element that is equal to none before it. Where it has tried so many bytes, or so many behind
// each other, there are many ways to go on, and one leads there.
const (
	maxAnother = 1 << 15
	maxLonger  = 256
)

type search struct {
	elements   []string // before it
	begin, end int      // of its text, at most
	tries      int
}

// another says whether the element of an array that has begun can become what is looked for. The state is of the rest
// of that element.
func (w *walker) another(l *search) bool {
	if w.state.Final() && !slices.Contains(l.elements, canonical(w.keys.text[l.begin:])) {
		return true
	}
	for _, b := range w.ways() {
		if l.tries++; l.tries > maxAnother || len(w.keys.text) > l.end {
			return true
		}
		next := walker{g: w.g, state: w.state, keys: w.keys.clone(), outer: w.outer}
		if next.follow(b, false) && next.another(l) {
			return true
		}
	}
	return false
}

// ways are the bytes that may come next, those that end something first, without white space and escapes if others may.
func (w *walker) ways() []byte {
	var list, rest []byte
	inside := w.keys.mode != between
	for b := range 256 {
		if w.g.machine.Next(w.state, byte(b)) == nil {
			continue
		}
		if strings.IndexByte(" \t\r\n", byte(b)) >= 0 && !inside || b == '\\' && inside {
			rest = append(rest, byte(b))
			continue
		}
		list = append(list, byte(b))
	}
	order := func(b byte) int {
		switch {
		case strings.IndexByte(`"}]`, b) >= 0:
			return 0
		case '1' <= b && b <= '9':
			return 1
		}
		return 2
	}
	sort.SliceStable(list, func(i, j int) bool { return order(list[i]) < order(list[j]) })
	if len(list) == 0 {
		return rest
	}
	return list
}

// canonical writes a value of JSON in one way: members by name, numbers as digits and a power of ten.
func canonical(text []byte) string {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(text)
	}
	var b strings.Builder
	canonicalValue(&b, v)
	return b.String()
}

func canonicalValue(b *strings.Builder, v any) {
	switch v := v.(type) {
	case json.Number:
		b.WriteString(canonicalNumber(string(v)))
	case []any:
		b.WriteByte('[')
		for _, e := range v {
			canonicalValue(b, e)
			b.WriteByte(',')
		}
		b.WriteByte(']')
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		b.WriteByte('{')
		for _, name := range names {
			b.WriteString(strconv.Quote(name))
			b.WriteByte(':')
			canonicalValue(b, v[name])
			b.WriteByte(',')
		}
		b.WriteByte('}')
	case string:
		b.WriteString(strconv.Quote(v))
	case bool:
		b.WriteString(strconv.FormatBool(v))
	default:
		b.WriteString("null")
	}
}

// canonicalNumber writes the digits of a number without zeros at their ends, and the power of ten of the last one.
func canonicalNumber(text string) string {
	text, minus := strings.CutPrefix(text, "-")
	mantissa, exponent := text, 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa = text[:i]
		var err error
		if exponent, err = strconv.Atoi(text[i+1:]); err != nil {
			return text // taken for equal to what is written alike
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	exponent -= len(fraction)
	short := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(short)
	if short = strings.TrimLeft(short, "0"); short == "" {
		return "0"
	}
	out := short + "e" + strconv.Itoa(exponent)
	if minus {
		return "-" + out
	}
	return out
}

// strings are the strings of the elements of all open arrays.
func (k *keys) strings() (list []string) {
	var add func(v any)
	add = func(v any) {
		switch v := v.(type) {
		case string:
			list = append(list, v)
		case []any:
			for _, e := range v {
				add(e)
			}
		case map[string]any:
			for name, e := range v {
				list = append(list, name)
				add(e)
			}
		}
	}
	for i := range k.levels {
		l := &k.levels[i]
		if l.object || len(l.elements) == 0 {
			continue
		}
		var v any
		if json.Unmarshal([]byte("["+strings.TrimRight(string(k.text[l.open:l.begin]), ", \t\r\n")+"]"), &v) == nil {
			add(v)
		}
	}
	return list
}
