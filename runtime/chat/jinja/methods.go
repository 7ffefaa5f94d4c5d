package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// methods by type and name. The first parameter is the object. They are set by
// init, as format looks methods up.
var methods map[string]map[string]*function

func init() {
	list := table(listMethods, nil)
	methods = map[string]map[string]*function{
		"str":  table(strMethods, map[string]string{"casefold": "lower"}),
		"dict": table(dictMethods, nil), "list": list, "tuple": list,
	}
}

var dictMethods = []function{
	{name: "get", params: "self key default?", do: func(st *state, a []Value) Value {
		if v, ok := a[0].(*Dict).find(st.key(a[1])); ok {
			return v
		}
		return given(a[2], nil)
	}},
	{name: "keys", params: "self", do: func(st *state, a []Value) Value {
		return &List{a[0].(*Dict).keys, kindKeys}
	}},
	{name: "values", params: "self", do: func(st *state, a []Value) Value {
		return &List{a[0].(*Dict).values, kindValues}
	}},
	{name: "items", params: "self", do: func(st *state, a []Value) Value {
		return &List{st.pairs(a[0].(*Dict)), kindItems}
	}},
	{name: "copy", params: "self", do: func(st *state, a []Value) Value { return a[0] }},
}

var listMethods = []function{
	{name: "index", params: "self value", do: func(st *state, a []Value) Value {
		for i, v := range a[0].(*List).items {
			st.step()
			if st.equal(v, a[1]) {
				return int64(i)
			}
		}
		st.fail("ValueError: %s is not in list", st.repr(a[1]).s)
		return nil
	}},
	{name: "count", params: "self value", do: func(st *state, a []Value) Value {
		n := int64(0)
		for _, v := range a[0].(*List).items {
			st.step()
			if st.equal(v, a[1]) {
				n++
			}
		}
		return n
	}},
	{name: "copy", params: "self", do: func(st *state, a []Value) Value { return a[0] }},
}

// changes are the methods that would change a value, which no template may.
var changes = map[string]map[string]bool{
	"list": {"append": true, "clear": true, "pop": true, "reverse": true, "insert": true, "sort": true, "extend": true, "remove": true},
	"dict": {"clear": true, "pop": true, "popitem": true, "setdefault": true, "update": true},
}

func self(a []Value) Str { return a[0].(Str) }

// strMethod is a row for a method without parameters.
func strMethod(name string, do func(st *state, s Str) Value) function {
	return function{name: name, params: "self", do: func(st *state, a []Value) Value { return do(st, self(a)) }}
}

// strTest is a row for a method that says whether all code points are such,
// and that there is one.
func strTest(name string, is func(r rune) bool) function {
	return strMethod(name, func(st *state, s Str) Value {
		st.work(len(s.s))
		return s.s != "" && strings.IndexFunc(s.s, func(r rune) bool { return !is(r) }) < 0
	})
}

// stripMethod is a row of the strip family.
func stripMethod(name string, left, right bool) function {
	return function{name: name, params: "self chars?", do: func(st *state, a []Value) Value {
		return st.strip(self(a), given(a[1], nil), left, right)
	}}
}

// fixMethod is a row for startswith and endswith, which take a tuple, too.
func fixMethod(name string, has func(s, fix string) bool) function {
	return function{name: name, params: "self fix start? end?", do: func(st *state, a []Value) Value {
		s := st.window(self(a), a[2], a[3])
		options := []Value{a[1]}
		if l, ok := a[1].(*List); ok && l.kind == kindTuple {
			options = l.items
		}
		for _, o := range options {
			st.step()
			if has(s.s, st.onlyStr(o, name+" first arg").s) {
				return true
			}
		}
		return false
	}}
}

// findMethod is a row for what looks for a string; strict ones fail.
func findMethod(name string, find func(s, sub string) int, strict bool) function {
	return function{name: name, params: "self sub start? end?", do: func(st *state, a []Value) Value {
		s := st.window(self(a), a[2], a[3])
		st.work(len(s.s))
		i := find(s.s, st.onlyStr(a[1], "what is looked for").s)
		if i < 0 {
			if strict {
				st.fail("ValueError: substring not found")
			}
			return int64(-1)
		}
		start := int64(0)
		if v := given(a[2], nil); v != nil {
			if start = st.intArg(v); start < 0 {
				start = max(0, start+int64(st.length(self(a))))
			}
		}
		return start + int64(utf8.RuneCountInString(s.s[:i]))
	}}
}

func partMethod(name string, find func(s, sub string) int, right bool) function {
	return function{name: name, params: "self sep", do: func(st *state, a []Value) Value {
		s, sep := self(a), st.onlyStr(a[1], "a separator")
		if sep.s == "" {
			st.fail("ValueError: empty separator")
		}
		st.work(len(s.s))
		i := find(s.s, sep.s)
		switch {
		case i >= 0:
			return tuple(s.slice(0, i), sep, s.slice(i+len(sep.s), len(s.s)))
		case right:
			return tuple(Str{}, Str{}, s)
		}
		return tuple(s, Str{}, Str{})
	}}
}

func splitMethod(name string, right bool) function {
	return function{name: name, params: "self sep? maxsplit?", do: func(st *state, a []Value) Value {
		n := int(st.intArg(given(a[2], int64(-1))))
		sep := given(a[1], nil)
		var parts []Str
		switch {
		case sep == nil:
			parts = st.fields(self(a), n, right)
		case right:
			parts = st.rsplit(self(a), st.onlyStr(sep, "a separator"), n)
		default:
			parts = st.split(self(a), st.onlyStr(sep, "a separator"), n)
		}
		return strList(parts)
	}}
}

func padMethod(name string, align byte) function {
	return function{name: name, params: "self width fillchar?", do: func(st *state, a []Value) Value {
		fill := st.onlyStr(given(a[2], own(" ")), "the fill character")
		if utf8.RuneCountInString(fill.s) != 1 {
			st.fail("TypeError: the fill character must be exactly one character long")
		}
		return st.pad(self(a), st.intArg(a[1]), fill, align)
	}}
}

func strList(parts []Str) *List {
	l := NewList()
	for _, p := range parts {
		l.items = append(l.items, p)
	}
	return l
}

var strMethods = []function{
	stripMethod("strip", true, true), stripMethod("lstrip", true, false), stripMethod("rstrip", false, true),
	splitMethod("split", false), splitMethod("rsplit", true),
	fixMethod("startswith", strings.HasPrefix), fixMethod("endswith", strings.HasSuffix),
	findMethod("find", strings.Index, false), findMethod("rfind", strings.LastIndex, false),
	findMethod("index", strings.Index, true), findMethod("rindex", strings.LastIndex, true),
	partMethod("partition", strings.Index, false), partMethod("rpartition", strings.LastIndex, true),
	padMethod("ljust", '<'), padMethod("rjust", '>'), padMethod("center", '^'),
	strMethod("upper", func(st *state, s Str) Value { return st.mapped(s, upper) }),
	strMethod("lower", func(st *state, s Str) Value { return st.mapped(s, strings.ToLower) }),
	strMethod("capitalize", func(st *state, s Str) Value { return st.capitalize(s) }),
	strMethod("title", func(st *state, s Str) Value { return st.title(s) }),
	strMethod("swapcase", func(st *state, s Str) Value {
		return st.mapped(s, func(s string) string {
			return strings.Map(func(r rune) rune {
				if unicode.IsUpper(r) {
					return unicode.ToLower(r)
				}
				return unicode.ToUpper(r)
			}, s)
		})
	}),
	strTest("isalpha", unicode.IsLetter), strTest("isspace", isSpace),
	strTest("isdigit", unicode.IsDigit), strTest("isdecimal", unicode.IsDigit), strTest("isnumeric", unicode.IsNumber),
	strTest("isalnum", func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
	strMethod("isascii", func(st *state, s Str) Value { return s.ascii() }),
	strMethod("isupper", func(st *state, s Str) Value { return cased(s.s) && strings.ToUpper(s.s) == s.s }),
	strMethod("islower", func(st *state, s Str) Value { return cased(s.s) && strings.ToLower(s.s) == s.s }),
	{name: "splitlines", params: "self keepends?", do: func(st *state, a []Value) Value {
		return strList(st.lines(self(a), truth(given(a[1], false))))
	}},
	{name: "replace", params: "self old new count?", do: func(st *state, a []Value) Value {
		to := st.escapeFor(self(a), st.onlyStr(a[2], "what replaces it")).(Str)
		return st.replace(self(a), st.onlyStr(a[1], "what is replaced"), to, int(st.intArg(given(a[3], int64(-1)))))
	}},
	{name: "join", params: "self items", do: func(st *state, a []Value) Value {
		var parts []Str
		for v := range st.each(a[1]) {
			s, ok := v.(Str)
			if !ok {
				st.fail("TypeError: sequence item %d: expected str instance, %s found", len(parts), typeName(v))
			}
			parts = append(parts, s)
		}
		return st.joined(self(a), parts)
	}},
	{name: "count", params: "self sub start? end?", do: func(st *state, a []Value) Value {
		s := st.window(self(a), a[2], a[3])
		st.work(len(s.s))
		return int64(strings.Count(s.s, st.onlyStr(a[1], "what is counted").s))
	}},
	{name: "removeprefix", params: "self prefix", do: func(st *state, a []Value) Value {
		s := self(a)
		return s.slice(len(s.s)-len(strings.TrimPrefix(s.s, st.onlyStr(a[1], "a prefix").s)), len(s.s))
	}},
	{name: "removesuffix", params: "self suffix", do: func(st *state, a []Value) Value {
		s := self(a)
		return s.slice(0, len(strings.TrimSuffix(s.s, st.onlyStr(a[1], "a suffix").s)))
	}},
	{name: "zfill", params: "self width", do: func(st *state, a []Value) Value {
		s, width := self(a), st.intArg(a[1])
		if strings.HasPrefix(s.s, "-") || strings.HasPrefix(s.s, "+") {
			return st.concat(s.slice(0, 1), st.pad(s.slice(1, len(s.s)), width-1, own("0"), '>'))
		}
		return st.pad(s, width, own("0"), '>')
	}},
	{name: "expandtabs", params: "self tabsize?", do: func(st *state, a []Value) Value {
		return st.expandTabs(self(a), st.intArg(given(a[1], int64(8))))
	}},
	{name: "format", raw: func(st *state, a *args) Value {
		return st.format(a.plain[0].(Str), a.plain[1:], st.named(a))
	}},
	{name: "format_map", params: "self mapping", do: func(st *state, a []Value) Value {
		d, ok := a[1].(*Dict)
		if !ok {
			st.fail("TypeError: format_map() argument must be a dict")
		}
		return st.format(self(a), nil, d)
	}},
}

// strip cuts the given characters off the ends, of nil white space.
func (st *state) strip(s Str, chars Value, left, right bool) Str {
	if chars == nil {
		return st.stripped(s, left, right, isSpace)
	}
	set := st.onlyStr(chars, "what is stripped").s
	st.work(len(set))
	in := map[rune]bool{}
	for _, r := range set {
		in[r] = true
	}
	return st.stripped(s, left, right, func(r rune) bool { return in[r] })
}

// window is the part of s that the arguments start and end of a method mean.
func (st *state) window(s Str, start, end Value) Str {
	var parts [3]*int64
	for i, v := range []Value{given(start, nil), given(end, nil)} {
		if v != nil {
			n := st.intArg(v)
			parts[i] = &n
		}
	}
	if parts[0] == nil && parts[1] == nil {
		return s
	}
	return st.cut(s, parts).(Str)
}

// pad fills s up to a width in code points.
func (st *state) pad(s Str, width int64, fill Str, align byte) Str {
	n := max(0, width-int64(st.length(s)))
	left := n/2 + n&width&1
	switch align {
	case '<':
		left = 0
	case '>':
		left = n
	}
	out := st.concat(st.repeat(fill, left), s, st.repeat(fill, n-left))
	out.safe = s.safe
	return out
}

func (st *state) expandTabs(s Str, size int64) Str {
	b := builder{st: st}
	column := int64(0)
	for c := range st.chars(s) {
		switch {
		case c.s == "\t" && size > 0:
			n := size - column%size
			b.add(st.repeat(own(" "), n))
			column += n
		case c.s == "\t":
		case c.s == "\n" || c.s == "\r":
			b.add(c)
			column = 0
		default:
			b.add(c)
			column++
		}
	}
	return b.like(s)
}

// uppers are the code points whose capital is several.
var uppers = strings.NewReplacer("ß", "SS", "ŉ", "ʼN", "ﬀ", "FF", "ﬁ", "FI", "ﬂ", "FL", "ﬃ", "FFI", "ﬄ", "FFL", "ﬅ", "ST", "ﬆ", "ST")

func upper(s string) string { return strings.ToUpper(uppers.Replace(s)) }

func (st *state) capitalize(s Str) Str {
	_, n := utf8.DecodeRuneInString(s.s)
	first := true
	return st.mapped(s, func(s string) string {
		if first {
			first = false
			return strings.ToTitle(s[:n]) + strings.ToLower(s[n:])
		}
		return strings.ToLower(s)
	})
}

// title begins every run of letters with a capital.
func (st *state) title(s Str) Str {
	inside := false
	return st.mapped(s, func(s string) string {
		return strings.Map(func(r rune) rune {
			was := inside
			inside = unicode.IsLetter(r) && (unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r))
			if was {
				return unicode.ToLower(r)
			}
			return unicode.ToTitle(r)
		}, s)
	})
}

// globals are the names that are there without being set.
var globals = map[string]Value{}

func init() {
	for _, g := range []function{
		{name: "raise_exception", params: "message", do: func(st *state, a []Value) Value {
			panic(failure{at: st.at, message: st.str(a[0]).s, raised: true})
		}},
		{name: "strftime_now", params: "format", do: func(st *state, a []Value) Value {
			return st.mapped(st.onlyStr(a[0], "a format"), func(s string) string { return strftime(s, st.now) })
		}},
		{name: "range", params: "a b? step?", do: func(st *state, a []Value) Value {
			step := st.intArg(given(a[2], int64(1)))
			if _, one := a[1].(absent); one {
				return st.rangeFrom(0, st.intArg(a[0]), step)
			}
			return st.rangeFrom(st.intArg(a[0]), st.intArg(a[1]), step)
		}},
		{name: "dict", raw: func(st *state, a *args) Value { return st.dict("dict", a) }},
		{name: "namespace", raw: func(st *state, a *args) Value { return &namespace{st.dict("namespace", a)} }},
		{name: "joiner", params: "sep?", do: func(st *state, a []Value) Value {
			used := false
			return &function{name: "joiner", do: func(*state, []Value) Value {
				if !used {
					used = true
					return Str{}
				}
				return given(a[0], own(", "))
			}}
		}},
		{name: "cycler", raw: func(st *state, a *args) Value {
			if len(a.plain) == 0 || len(a.names) > 0 {
				st.fail("RuntimeError: at least one item has to be provided")
			}
			return &cycler{items: a.plain}
		}},
		{name: "lipsum", raw: func(st *state, a *args) Value {
			st.fail("lipsum is not supported: a prompt must not depend on chance")
			return nil
		}},
	} {
		globals[g.name] = &g
	}
}

// dict makes a dict of another one or of pairs, and of named arguments.
func (st *state) dict(name string, a *args) *Dict {
	d := NewDict()
	if len(a.plain) > 1 {
		st.fail("TypeError: %s expected at most 1 argument, got %d", name, len(a.plain))
	}
	for _, from := range a.plain {
		st.mustDefined(from)
		if from, ok := from.(*Dict); ok {
			st.spend(from.Len())
			for i, k := range from.keys {
				d.set(st.key(k), k, from.values[i])
			}
			continue
		}
		for item := range st.each(from) {
			pair := slices.Clone(st.list(item))
			if len(pair) != 2 {
				st.fail("ValueError: dictionary update sequence element #%d has length %d; 2 is required", d.Len(), len(pair))
			}
			d.set(st.key(pair[0]), pair[0], pair[1])
		}
	}
	for i, n := range a.names {
		d.set(st.key(n), n, a.named[i])
	}
	return d
}

// named returns the named arguments as a dict.
func (st *state) named(a *args) *Dict { return st.dict("dict", &args{names: a.names, named: a.named}) }

// cycler gives its items in turn.
type cycler struct {
	items []Value
	at    int
}

func (c *cycler) property(name string) (Value, bool) {
	switch name {
	case "items":
		return tuple(c.items...), true
	case "pos":
		return int64(c.at), true
	case "current":
		return c.items[c.at], true
	case "next":
		return &function{name: name, do: func(*state, []Value) Value {
			v := c.items[c.at]
			c.at = (c.at + 1) % len(c.items)
			return v
		}}, true
	case "reset":
		return &function{name: name, do: func(*state, []Value) Value {
			c.at = 0
			return nil
		}}, true
	}
	return nil, false
}
