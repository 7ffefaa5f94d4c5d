package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spec is how one value is formatted: of % and of str.format alike.
type spec struct {
	fill      Str
	align     byte // < > ^ =, 0: by type
	sign      byte // + or space, 0: none
	alternate bool
	comma     string
	width     int64
	precision int64 // -1: none
	verb      byte  // 0: by type
}

// number formats a number by the verb of s.
func (st *state) number(v Value, s spec) Str {
	i, f, isInt, ok := number(v)
	if !ok {
		st.mustDefined(v)
		st.fail("TypeError: %%%c format: a real number is required, not %s", s.verb, typeName(v))
	}
	whole := new(big.Int)
	switch n := v.(type) {
	case *big.Int:
		whole, isInt = n, true
	default:
		whole.SetInt64(i)
	}
	if s.precision > 1000 {
		st.fail("ValueError: precision too big")
	}
	p := int(s.precision)
	digits, prefix := "", ""
	neg := isInt && whole.Sign() < 0 || !isInt && math.Signbit(f)
	abs := math.Abs(f)
	if isInt {
		abs, _ = new(big.Float).SetInt(new(big.Int).Abs(whole)).Float64()
	}
	switch s.verb {
	case 'd', 'x', 'X', 'o', 'b':
		if !isInt {
			st.fail("ValueError: unknown format code '%c' for object of type 'float'", s.verb)
		}
		digits = new(big.Int).Abs(whole).Text(map[byte]int{'d': 10, 'x': 16, 'X': 16, 'o': 8, 'b': 2}[s.verb])
		if s.alternate && s.verb != 'd' {
			prefix = "0" + string(s.verb)
		}
		if s.verb == 'X' {
			digits = strings.ToUpper(digits)
		}
		for len(digits) < p {
			digits = strings.Repeat("0", p-len(digits)) + digits
		}
	case '%':
		digits = floatDigits(abs*100, 'f', p) + "%"
	default:
		digits = floatDigits(abs, s.verb, p)
	}
	if s.comma != "" {
		digits = grouped(digits, s.comma)
	}
	signText := ""
	if neg {
		signText = "-"
	} else if s.sign != 0 {
		signText = string(s.sign)
	}
	if s.align == '=' {
		return st.concat(own(signText+prefix), st.pad(own(digits), s.width-int64(len(signText+prefix)), s.fill, '>'))
	}
	return st.place(own(signText+prefix+digits), s, '>')
}

// floatDigits writes a number that is not negative; without a precision it is 6.
func floatDigits(f float64, verb byte, precision int) string {
	if precision < 0 {
		precision = 6
	}
	var text string
	switch {
	case math.IsNaN(f):
		text = "nan"
	case math.IsInf(f, 0):
		text = "inf"
	case verb == 'g' || verb == 'G':
		text = strconv.FormatFloat(f, 'g', max(precision, 1), 64)
	default:
		text = strconv.FormatFloat(f, verb|0x20, precision, 64)
	}
	if verb < 'a' {
		return strings.ToUpper(text)
	}
	return text
}

// grouped puts a separator between groups of three digits.
func grouped(digits, sep string) string {
	end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(digits)
	}
	var b strings.Builder
	for i := range end {
		if i > 0 && (end-i)%3 == 0 {
			b.WriteString(sep)
		}
		b.WriteByte(digits[i])
	}
	return b.String() + digits[end:]
}

// place pads a text to the width of s.
func (st *state) place(text Str, s spec, align byte) Str {
	if s.align != 0 {
		align = s.align
	}
	if align == '^' {
		n := s.width - int64(st.length(text))
		if n <= 0 {
			return text
		}
		return st.concat(st.repeat(s.fill, n/2), text, st.repeat(s.fill, n-n/2))
	}
	return st.pad(text, s.width, s.fill, align)
}

// text formats a string by the width and precision of s.
func (st *state) text(text Str, s spec, align byte) Str {
	if s.precision >= 0 {
		at := st.offsets(text)
		text = text.slice(0, at[min(s.precision, int64(len(at)-1))])
	}
	return st.place(text, s, align)
}

// printf is the operator % of strings.
func (st *state) printf(format Str, arg Value) Str {
	values, loose := []Value{arg}, false
	mapping, _ := arg.(*Dict)
	switch a := arg.(type) {
	case *List:
		if loose = a.kind != kindTuple; !loose {
			values = a.items
		}
	case *Dict, *rangeOf, *undefined:
		loose = true
	}
	b := builder{st: st}
	next := 0
	take := func() Value {
		if next >= len(values) {
			st.fail("TypeError: not enough arguments for format string")
		}
		next++
		return values[next-1]
	}
	f := format.s
	for i := 0; i < len(f); {
		n := strings.IndexByte(f[i:], '%')
		if n < 0 {
			b.add(format.slice(i, len(f)))
			break
		}
		b.add(format.slice(i, i+n))
		i += n + 1
		s := spec{fill: own(" "), precision: -1}
		get := take
		if strings.HasPrefix(f[i:], "(") {
			end := strings.IndexByte(f[i:], ')')
			if end < 0 {
				st.fail("ValueError: incomplete format key")
			}
			if mapping == nil {
				st.fail("TypeError: format requires a mapping")
			}
			key := f[i+1 : i+end]
			get = func() Value { return st.subscript(mapping, own(key)) }
			i += end + 1
		}
		i = st.printfSpec(f, i, &s, take)
		if i >= len(f) {
			st.fail("ValueError: incomplete format")
		}
		verb := f[i]
		i++
		if verb == '%' {
			b.own("%")
			continue
		}
		b.add(st.verb(verb, s, st.escapeFor(format, get())))
	}
	// Whatever has items passes for a mapping, which need not be used up.
	if next < len(values) && !loose {
		st.fail("TypeError: not all arguments converted during string formatting")
	}
	return b.like(format)
}

// printfSpec reads flags, width and precision at f[i:].
func (st *state) printfSpec(f string, i int, s *spec, take func() Value) int {
	for ; i < len(f) && strings.IndexByte("-+ 0#", f[i]) >= 0; i++ {
		switch f[i] {
		case '-':
			s.align = '<'
		case '+':
			s.sign = '+'
		case ' ':
			if s.sign == 0 {
				s.sign = ' '
			}
		case '0':
			if s.align == 0 {
				s.align, s.fill = '=', own("0")
			}
		case '#':
			s.alternate = true
		}
	}
	count := func(n int64) int64 {
		if strings.HasPrefix(f[i:], "*") {
			i++
			return st.intArg(take())
		}
		for ; i < len(f) && f[i] >= '0' && f[i] <= '9'; i++ {
			n = min(n*10+int64(f[i]-'0'), maxText+1)
		}
		return n
	}
	if s.width = count(0); s.width < 0 {
		s.align, s.width = '<', -s.width
	}
	if strings.HasPrefix(f[i:], ".") {
		i++
		s.precision = max(0, count(0))
	}
	for i < len(f) && strings.IndexByte("hlL", f[i]) >= 0 {
		i++
	}
	return i
}

// verb formats one value of a printf format.
func (st *state) verb(verb byte, s spec, v Value) Str {
	s.verb = verb
	if s.align == '<' {
		s.fill = own(" ")
	}
	switch verb {
	case 's', 'r', 'a':
		text := st.repr
		if verb == 's' {
			text = st.str
		}
		if s.align == '=' {
			s.align, s.fill = 0, own(" ")
		}
		return st.text(text(v), s, '>')
	case 'd', 'i', 'u':
		s.verb = 'd'
		if f, ok := v.(float64); ok {
			v = toInt(st, []Value{f, absent{}, absent{}})
		}
		return st.number(v, s)
	case 'x', 'X', 'o', 'e', 'E', 'f', 'F', 'g', 'G':
		return st.number(v, s)
	case 'c':
		if c, ok := v.(Str); ok && utf8.RuneCountInString(c.s) == 1 {
			return st.place(c, s, '>')
		}
		i := st.intArg(v)
		if i < 0 || i > utf8.MaxRune {
			st.fail("OverflowError: %%c arg not in range(0x110000)")
		}
		return st.place(own(string(rune(i))), s, '>')
	}
	st.fail("ValueError: unsupported format character '%c'", verb)
	return Str{}
}

// format is str.format.
func (st *state) format(format Str, plain []Value, named *Dict) Str {
	next := 0
	var expand func(f Str, depth int) Str
	field := func(f Str, depth int) Str {
		name, how := f, Str{}
		if i := strings.IndexByte(f.s, ':'); i >= 0 {
			name, how = f.slice(0, i), f.slice(i+1, len(f.s))
		}
		conversion := ""
		if i := strings.IndexByte(name.s, '!'); i >= 0 {
			name, conversion = name.slice(0, i), name.s[i+1:]
		}
		v := st.escapeFor(format, st.field(name.s, plain, named, &next))
		switch conversion {
		case "":
		case "s":
			v = st.str(v)
		case "r", "a":
			v = st.repr(v)
		default:
			st.fail("ValueError: unknown conversion specifier '%s'", conversion)
		}
		return st.formatted(v, expand(how, depth+1))
	}
	expand = func(f Str, depth int) Str {
		if depth > 2 {
			st.fail("ValueError: max string recursion exceeded")
		}
		b := builder{st: st}
		for i := 0; i < len(f.s); {
			n := strings.IndexAny(f.s[i:], "{}")
			if n < 0 {
				b.add(f.slice(i, len(f.s)))
				break
			}
			b.add(f.slice(i, i+n))
			i += n
			if i+1 < len(f.s) && f.s[i+1] == f.s[i] {
				b.add(f.slice(i, i+1))
				i += 2
				continue
			}
			if f.s[i] == '}' {
				st.fail("ValueError: Single '}' encountered in format string")
			}
			open, j := 1, i+1
			for ; j < len(f.s) && open > 0; j++ {
				switch f.s[j] {
				case '{':
					open++
				case '}':
					open--
				}
			}
			if open > 0 {
				st.fail("ValueError: expected '}' before end of string")
			}
			st.step()
			b.add(field(f.slice(i+1, j-1), depth))
			i = j
		}
		return b.str()
	}
	out := expand(format, 0)
	out.safe = format.safe
	return out
}

// field finds the value of a replacement field such as 0, name or name.x[1].
func (st *state) field(path string, plain []Value, named *Dict, next *int) Value {
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	first, rest := path[:end], path[end:]
	var v Value
	i, err := strconv.Atoi(first)
	if first == "" {
		i, err = *next, nil
		*next++
	}
	switch {
	case err == nil:
		if i < 0 || i >= len(plain) {
			st.fail("IndexError: tuple index out of range")
		}
		v = plain[i]
	default:
		found := false
		if v, found = named.Get(first); !found {
			st.fail("KeyError: '%s'", first)
		}
	}
	for rest != "" {
		st.step()
		if rest[0] == '.' {
			end := strings.IndexAny(rest[1:], ".[") + 1
			if end == 0 {
				end = len(rest)
			}
			v = st.attr(v, rest[1:end])
			rest = rest[end:]
			continue
		}
		end := strings.IndexByte(rest, ']')
		if rest[0] != '[' || end < 0 {
			st.fail("ValueError: Missing ']' in format string")
		}
		if i, err := strconv.ParseInt(rest[1:end], 10, 64); err == nil {
			v = st.subscript(v, i)
		} else {
			v = st.subscript(v, own(rest[1:end]))
		}
		rest = rest[end+1:]
	}
	return v
}

// specOf reads a specification of str.format for a number or another value. ok is false if it is none.
func specOf(how Str, isNumber bool) (s spec, ok bool) {
	s = spec{fill: own(" "), precision: -1}
	f := how.s
	_, n := utf8.DecodeRuneInString(f)
	if len(f) > n && strings.IndexByte("<>^=", f[n]) >= 0 {
		s.fill, s.align = how.slice(0, n), f[n]
		f = f[n+1:]
	} else if f != "" && strings.IndexByte("<>^=", f[0]) >= 0 {
		s.align = f[0]
		f = f[1:]
	}
	flag := func(chars string) byte {
		if f != "" && strings.IndexByte(chars, f[0]) >= 0 {
			c := f[0]
			f = f[1:]
			return c
		}
		return 0
	}
	count := func() (n int64) {
		for f != "" && f[0] >= '0' && f[0] <= '9' {
			n = min(n*10+int64(f[0]-'0'), maxText+1)
			f = f[1:]
		}
		return n
	}
	if c := flag("+- "); c != '-' {
		s.sign = c
	}
	s.alternate = flag("#") != 0
	if strings.HasPrefix(f, "0") && s.align == 0 {
		s.fill, s.align = own("0"), '='
		if !isNumber {
			s.align = '<'
		}
	}
	s.width = count()
	if c := flag(",_"); c != 0 {
		s.comma = string(c)
	}
	if flag(".") != 0 {
		s.precision = count()
	}
	s.verb = flag("bcdeEfFgGnosxX%")
	return s, f == ""
}

// formatted formats a value by a specification of str.format.
func (st *state) formatted(v Value, how Str) Str {
	_, _, isInt, isNumber := number(v)
	s, ok := specOf(how, isNumber)
	if !ok {
		st.fail("ValueError: Invalid format specifier '%s' for object of type '%s'", how.s, typeName(v))
	}
	if _, big := v.(*big.Int); big {
		isInt = true
	}
	switch {
	case is[Str](v):
		if s.verb != 0 && s.verb != 's' {
			st.fail("ValueError: Unknown format code '%c' for object of type 'str'", s.verb)
		}
		return st.text(v.(Str), s, '<')
	case !isNumber || how.s == "":
		if how.s != "" {
			st.fail("TypeError: unsupported format string passed to %s.__format__", typeName(v))
		}
		return st.str(v)
	case s.verb == 0 || s.verb == 'n':
		if isInt {
			s.verb = 'd'
			break
		}
		s.verb = 'g'
		if s.precision < 0 {
			return st.plainFloat(v.(float64), s)
		}
	}
	return st.number(v, s)
}

// plainFloat places the repr of a float.
func (st *state) plainFloat(f float64, s spec) Str {
	text := floatRepr(math.Abs(f))
	if s.comma != "" {
		text = grouped(text, s.comma)
	}
	signText := ""
	if math.Signbit(f) {
		signText = "-"
	} else if s.sign != 0 {
		signText = string(s.sign)
	}
	if s.align == '=' {
		return st.concat(own(signText), st.pad(own(text), s.width-int64(len(signText)), s.fill, '>'))
	}
	return st.place(own(signText+text), s, '>')
}
