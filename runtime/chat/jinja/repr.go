package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// str is Python's str().
func (st *state) str(v Value) Str {
	switch v := v.(type) {
	case Str:
		return v
	case *undefined:
		return Str{}
	}
	return st.repr(v)
}

// plain is str() that forgets that a string is safe.
func (st *state) plain(v Value) Str {
	s := st.str(v)
	s.safe = false
	return s
}

// repr is Python's repr().
func (st *state) repr(v Value) Str {
	b := builder{st: st}
	st.writeRepr(&b, v, 0)
	return b.str()
}

func (st *state) writeRepr(b *builder, v Value, depth int) {
	st.deep(depth)
	st.step()
	switch v := v.(type) {
	case nil:
		b.own("None")
	case bool:
		b.own(map[bool]string{true: "True", false: "False"}[v])
	case int64:
		b.own(strconv.FormatInt(v, 10))
	case *big.Int:
		b.own(v.String())
	case float64:
		b.own(floatRepr(v))
	case Str:
		if v.safe {
			b.own("Markup(")
			defer b.own(")")
		}
		reprStr(b, v)
	case *List:
		st.reprList(b, v, depth)
	case *Dict:
		st.reprDict(b, v, depth)
	case *rangeOf:
		if v.step == 1 {
			b.own(fmt.Sprintf("range(%d, %d)", v.start, v.stop))
		} else {
			b.own(fmt.Sprintf("range(%d, %d, %d)", v.start, v.stop, v.step))
		}
	case *undefined:
		b.own("Undefined")
	case *namespace:
		b.own("<Namespace ")
		st.reprDict(b, v.vars, depth)
		b.own(">")
	case *macro:
		if v.def.name == "" {
			b.own("<Macro anonymous>")
		} else {
			b.own("<Macro '" + v.def.name + "'>")
		}
	case *loop:
		b.own(fmt.Sprintf("<LoopContext %d/%d>", v.i+1, len(v.items)))
	case *function:
		b.own("<function " + v.name + ">")
	case *cycler:
		b.own("<Cycler>")
	}
}

func (st *state) reprList(b *builder, l *List, depth int) {
	open, end := "[", "]"
	switch {
	case l.kind == kindTuple && len(l.items) == 1:
		open, end = "(", ",)"
	case l.kind == kindTuple:
		open, end = "(", ")"
	case l.kind == kindGenerator:
		b.own("<generator object>")
		return
	case l.kind != kindList:
		open, end = listKinds[l.kind]+"([", "])"
	}
	b.own(open)
	for i, item := range l.items {
		if i > 0 {
			b.own(", ")
		}
		st.writeRepr(b, item, depth+1)
	}
	b.own(end)
}

func (st *state) reprDict(b *builder, d *Dict, depth int) {
	b.own("{")
	for i, k := range d.keys {
		if i > 0 {
			b.own(", ")
		}
		st.writeRepr(b, k, depth+1)
		b.own(": ")
		st.writeRepr(b, d.values[i], depth+1)
	}
	b.own("}")
}

// reprStr writes a string in quotes: single ones unless only they occur in it.
func reprStr(b *builder, s Str) {
	quote := '\''
	if strings.Contains(s.s, "'") && !strings.Contains(s.s, `"`) {
		quote = '"'
	}
	b.own(string(quote))
	for part, user := range s.runs() {
		start := 0
		for i, r := range part {
			esc := ""
			switch {
			case r == quote || r == '\\':
				esc = `\` + string(r)
			case r == '\n':
				esc = `\n`
			case r == '\r':
				esc = `\r`
			case r == '\t':
				esc = `\t`
			case r == ' ' || unicode.IsGraphic(r) && !unicode.Is(unicode.Zs, r):
				continue
			case r <= 0xFF:
				esc = fmt.Sprintf(`\x%02x`, r)
			case r <= 0xFFFF:
				esc = fmt.Sprintf(`\u%04x`, r)
			default:
				esc = fmt.Sprintf(`\U%08x`, r)
			}
			b.write(part[start:i], user)
			b.write(esc, user)
			start = i + len(string(r))
		}
		b.write(part[start:], user)
	}
	b.own(string(quote))
}

// floatRepr is the shortest text that reads back as f, as Python writes it.
func floatRepr(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
