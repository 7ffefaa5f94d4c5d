package jinja

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// refusedFilters are the filters of Jinja2 that are left out, and why.
var refusedFilters = map[string]string{
	"random": "a prompt must not depend on chance",
	"urlize": "a prompt has no links",
	"pprint": "tojson(indent=2) prints over several lines",
}

// filters by name. The first parameter is what stands before the bar. They are
// set by init, as map and select look filters up.
var filters map[string]*function

func init() {
	rows := slices.Concat(plainFilters, listFilters, markupFilters)
	filters = table(rows, map[string]string{"d": "default", "count": "length", "e": "escape"})
}

var plainFilters = []function{
	{name: "default", params: "v default_value? boolean?", do: func(st *state, a []Value) Value {
		_, none := a[0].(*undefined)
		if none || truth(given(a[2], false)) && !truth(a[0]) {
			return given(a[1], Str{})
		}
		return a[0]
	}},
	{name: "tojson", params: "v ensure_ascii? indent? separators? sort_keys?", do: toJSON},
	{name: "from_json", params: "v", do: fromJSON},
	{name: "string", params: "v", do: func(st *state, a []Value) Value { return st.str(a[0]) }},
	{name: "safe", params: "v", do: func(st *state, a []Value) Value {
		s := st.str(a[0])
		s.safe = true
		return s
	}},
	{name: "escape", params: "v", do: func(st *state, a []Value) Value { return st.escape(st.str(a[0])) }},
	{name: "forceescape", params: "v", do: func(st *state, a []Value) Value { return st.escape(st.plain(a[0])) }},
	{name: "upper", params: "v", do: func(st *state, a []Value) Value { return st.mapped(st.str(a[0]), upper) }},
	{name: "lower", params: "v", do: func(st *state, a []Value) Value { return st.mapped(st.str(a[0]), strings.ToLower) }},
	{name: "capitalize", params: "v", do: func(st *state, a []Value) Value { return st.capitalize(st.str(a[0])) }},
	{name: "title", params: "v", do: titleFilter},
	{name: "trim", params: "v chars?", do: func(st *state, a []Value) Value {
		return st.strip(st.str(a[0]), given(a[1], nil), true, true)
	}},
	{name: "replace", params: "v old new count?", do: func(st *state, a []Value) Value {
		n := -1
		if c := given(a[3], nil); c != nil {
			n = int(st.intArg(c))
		}
		return st.replace(st.plain(a[0]), st.str(a[1]), st.str(a[2]), n)
	}},
	{name: "indent", params: "v width? first? blank?", do: indent},
	{name: "center", params: "v width?", do: func(st *state, a []Value) Value {
		return st.pad(st.str(a[0]), st.intArg(given(a[1], int64(80))), own(" "), '^')
	}},
	{name: "format", raw: func(st *state, a *args) Value {
		if len(a.names) == 0 {
			return st.printf(st.str(a.plain[0]), tuple(a.plain[1:]...))
		}
		if len(a.plain) > 1 {
			st.fail("can't handle positional and keyword arguments at the same time")
		}
		return st.printf(st.str(a.plain[0]), st.named(a))
	}},
	{name: "truncate", params: "v length? killwords? end? leeway?", do: truncate},
	{name: "wordcount", params: "v", do: func(st *state, a []Value) Value {
		text := st.str(a[0])
		st.work(len(text.s))
		return int64(len(strings.FieldsFunc(text.s, func(r rune) bool { return !wordRune(r) })))
	}},
	{name: "wordwrap", params: "v width? break_long_words? wrapstring? break_on_hyphens?", do: wordwrap},
	{name: "filesizeformat", params: "v binary?", do: fileSize},
	{name: "urlencode", params: "v", do: urlencode},
	{name: "int", params: "v default? base?", do: toInt},
	{name: "float", params: "v default?", do: func(st *state, a []Value) Value {
		st.mustDefined(a[0])
		if f, ok := parseFloat(a[0]); ok {
			return f
		}
		return given(a[1], 0.0)
	}},
	{name: "abs", params: "v", do: func(st *state, a []Value) Value {
		st.mustDefined(a[0])
		i, f, isInt, ok := number(a[0])
		switch {
		case !ok:
			st.fail("TypeError: bad operand type for abs(): '%s'", typeName(a[0]))
		case isInt && i >= 0:
			return i
		case isInt:
			return st.product(i, -1)
		}
		return math.Abs(f)
	}},
	{name: "round", params: "v precision? method?", do: round},
	{name: "attr", params: "v name", do: func(st *state, a []Value) Value {
		name := st.str(a[1]).s
		st.mustDefined(a[0])
		if v, ok := st.property(a[0], name); ok {
			return v
		}
		return &undefined{"'" + object(a[0]) + "' has no attribute '" + name + "'"}
	}},
}

func toJSON(st *state, a []Value) Value {
	how := jsonStyle{ascii: truth(given(a[1], false)), sorted: truth(given(a[4], false)), item: own(", "), key: own(": ")}
	switch in := given(a[2], nil).(type) {
	case nil:
	case Str:
		how.indented, how.indent = true, in
	default:
		how.indented, how.indent = true, st.repeat(own(" "), st.intArg(in))
	}
	if how.indented {
		how.item = own(",")
	}
	if sep := given(a[3], nil); sep != nil {
		pair := st.list(sep)
		if len(pair) != 2 {
			st.fail("ValueError: separators must be two strings")
		}
		how.item, how.key = st.onlyStr(pair[0], "a separator"), st.onlyStr(pair[1], "a separator")
	}
	b := builder{st: st}
	st.writeJSON(&b, a[0], &how, 0)
	return b.str()
}

func fromJSON(st *state, a []Value) Value {
	s := st.onlyStr(a[0], "JSON")
	st.work(len(s.s))
	st.spend(len(s.s))
	v, err := FromJSON([]byte(s.s))
	if err != nil {
		st.fail("ValueError: %v", err)
	}
	return v
}

// titleFilter begins every word with a capital, words being cut at white
// space, hyphens and opening brackets.
func titleFilter(st *state, a []Value) Value {
	start := true
	return st.mapped(st.plain(a[0]), func(s string) string {
		var b strings.Builder
		for _, r := range s {
			cut := isSpace(r) || strings.ContainsRune("-({[<", r)
			switch {
			case cut:
				b.WriteRune(r)
			case start:
				b.WriteString(upper(string(r)))
			default:
				b.WriteString(strings.ToLower(string(r)))
			}
			start = cut
		}
		return b.String()
	})
}

func indent(st *state, a []Value) Value {
	var by Str
	switch w := given(a[1], int64(4)).(type) {
	case Str:
		by = w
	default:
		by = st.repeat(own(" "), st.intArg(w))
	}
	if _, ok := a[0].(Str); !ok {
		st.mustDefined(a[0])
		st.fail("TypeError: unsupported operand type(s) for +=: '%s' and 'str'", typeName(a[0]))
	}
	blank := truth(given(a[3], false))
	lines := st.lines(st.concat(a[0].(Str), own("\n")), false)
	b := builder{st: st}
	if truth(given(a[2], false)) {
		b.add(by)
	}
	for i, l := range lines {
		if i > 0 {
			b.own("\n")
			if blank || l.s != "" {
				b.add(by)
			}
		}
		b.add(l)
	}
	return b.like(a[0].(Str))
}

func truncate(st *state, a []Value) Value {
	s, ok := a[0].(Str)
	length, end := st.intArg(given(a[1], int64(255))), st.str(given(a[3], own("...")))
	leeway := int64(5)
	if v := given(a[4], nil); v != nil {
		leeway = st.intArg(v)
	}
	if !ok {
		if int64(st.size(a[0]))-leeway <= length {
			return a[0]
		}
		st.fail("TypeError: '%s' cannot be truncated", typeName(a[0]))
	}
	at := st.offsets(s)
	tail := int64(st.length(end))
	if length < tail || leeway < 0 {
		st.fail("expected a length of at least %d and a leeway of at least 0", tail)
	}
	if int64(len(at)-1)-leeway <= length {
		return s
	}
	head := s.slice(0, at[length-tail])
	if !truth(given(a[2], false)) {
		if i := strings.LastIndexByte(head.s, ' '); i >= 0 {
			head = head.slice(0, i)
		}
	}
	return st.concat(head, end)
}

// fileSize prints a number of bytes in the unit that fits.
func fileSize(st *state, a []Value) Value {
	st.mustDefined(a[0])
	bytes, ok := parseFloat(a[0])
	switch {
	case !ok && is[Str](a[0]):
		st.fail("ValueError: could not convert string to float: %s", st.repr(a[0]).s)
	case !ok:
		st.fail("TypeError: float() argument must be a string or a real number, not '%s'", typeName(a[0]))
	}
	base, units := 1000.0, []string{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"}
	if truth(given(a[1], false)) {
		base, units = 1024, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}
	}
	switch {
	case bytes == 1:
		return own("1 Byte")
	case bytes < base:
		if math.IsInf(bytes, -1) {
			st.fail("OverflowError: cannot convert float infinity to integer")
		}
		whole, _ := big.NewFloat(bytes).Int(nil)
		return own(whole.String() + " Bytes")
	}
	unit := base
	for i, name := range units {
		if unit *= base; bytes < unit || i == len(units)-1 {
			return st.printf(own("%.1f "+name), base*bytes/unit)
		}
	}
	return nil
}

// urlencode quotes a text, or pairs as a query.
func urlencode(st *state, a []Value) Value {
	quote := func(v Value, query bool) Str {
		keep := "_.-~/"
		if query {
			keep = "_.-~"
		}
		return st.mapped(st.plain(v), func(s string) string {
			var b strings.Builder
			for i := range len(s) {
				switch c := s[i]; {
				case c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte(keep, c) >= 0:
					b.WriteByte(c)
				case c == ' ' && query:
					b.WriteByte('+')
				default:
					fmt.Fprintf(&b, "%%%02X", c)
				}
			}
			return b.String()
		})
	}
	var pairs []Value
	switch v := a[0].(type) {
	case *Dict:
		pairs = st.pairs(v)
	case *List, *rangeOf:
		pairs = st.list(v)
	default:
		return quote(v, false)
	}
	var parts []Str
	for _, p := range pairs {
		kv := st.list(p)
		if len(kv) != 2 {
			st.fail("ValueError: a query is made of pairs")
		}
		parts = append(parts, st.concat(quote(kv[0], true), own("="), quote(kv[1], true)))
	}
	return st.joinStrs(own("&"), parts)
}

func toInt(st *state, a []Value) Value {
	st.mustDefined(a[0])
	switch v := a[0].(type) {
	case Str:
		base := st.intArg(given(a[2], int64(10)))
		if base < 0 || base == 1 || base > 36 {
			st.fail("ValueError: int() base must be >= 2 and <= 36, or 0")
		}
		if i, ok := parseInt(v.s, int(base)); ok {
			if !i.IsInt64() {
				return i
			}
			return i.Int64()
		}
	case *big.Int:
		return v
	}
	if i, _, isInt, ok := number(a[0]); ok && isInt {
		return i
	}
	f, ok := parseFloat(a[0])
	if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
		return given(a[1], int64(0))
	}
	if math.Abs(f) >= 1<<63 {
		st.overflow()
	}
	return int64(f)
}

// parseInt is Python's int() of a string.
func parseInt(s string, base int) (*big.Int, bool) {
	s = strings.TrimFunc(s, isSpace)
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 || digits == "" || len(digits) > 400 || strings.HasPrefix(digits, "_") ||
		strings.HasSuffix(digits, "_") || strings.Contains(digits, "__") {
		return nil, false
	}
	digits = strings.ReplaceAll(digits, "_", "")
	for _, r := range radixes {
		if len(digits) > 2 && (base == r.base || base == 0) && strings.EqualFold(digits[:2], r.prefix) {
			digits, base = digits[2:], r.base
		}
	}
	if base == 0 {
		base = 10
	}
	i, ok := new(big.Int).SetString(digits, base)
	if ok && strings.HasPrefix(s, "-") {
		i.Neg(i)
	}
	return i, ok
}

// parseFloat is Python's float().
func parseFloat(v Value) (float64, bool) {
	if s, ok := v.(Str); ok {
		text := strings.TrimFunc(s.s, isSpace)
		if strings.ContainsAny(text, "xXpP") || strings.HasPrefix(text, "_") || strings.HasSuffix(text, "_") || strings.Contains(text, "__") {
			return 0, false
		}
		f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
		return f, err == nil || math.IsInf(f, 0)
	}
	_, f, _, ok := number(v)
	return f, ok
}

func round(st *state, a []Value) Value {
	st.mustDefined(a[0])
	i, f, isInt, ok := number(a[0])
	if !ok {
		st.fail("TypeError: type %s doesn't define __round__ method", typeName(a[0]))
	}
	precision := st.intArg(given(a[1], int64(0)))
	method := st.str(given(a[2], own("common"))).s
	scale := math.Pow(10, float64(precision))
	switch method {
	case "ceil":
		return math.Ceil(f*scale) / scale
	case "floor":
		return math.Floor(f*scale) / scale
	case "common":
	default:
		st.fail("method must be common, ceil or floor")
	}
	if isInt && precision >= 0 {
		return i
	}
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0) || precision > 308:
		return f
	case precision >= 0:
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(precision), 64), 64)
		return f
	case precision < -308:
		f = 0
	default:
		unit := math.Pow(10, float64(-precision))
		f = math.RoundToEven(f/unit) * unit
	}
	if isInt {
		return int64(f)
	}
	return f
}
