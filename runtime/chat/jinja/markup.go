package jinja

import (
	"html"
	"strings"
)

var markupFilters = []function{
	{name: "striptags", params: "v", do: func(st *state, a []Value) Value {
		s := st.without(st.str(a[0]), "<!--", "-->")
		s = st.joinStrs(own(" "), st.fields(st.without(s, "<", ">"), -1, false))
		return st.mapped(s, html.UnescapeString)
	}},
	{name: "xmlattr", params: "v autospace?", do: func(st *state, a []Value) Value {
		d, ok := a[0].(*Dict)
		if !ok {
			st.mustDefined(a[0])
			st.fail("TypeError: '%s' object has no items", typeName(a[0]))
		}
		b := builder{st: st}
		for i, k := range d.keys {
			st.step()
			if v := d.values[i]; v == nil || is[*undefined](v) {
				continue
			}
			key := st.onlyStr(k, "the name of an attribute")
			if strings.ContainsAny(key.s, " \t\n\r\f\v/>=") {
				st.fail("ValueError: Invalid character in attribute name: %s", st.repr(key).s)
			}
			if len(b.b) > 0 || truth(given(a[1], true)) {
				b.own(" ")
			}
			b.add(st.escape(key))
			b.own(`="`)
			b.add(st.escape(st.str(d.values[i])))
			b.own(`"`)
		}
		return b.str()
	}},
}

// without cuts what lies between begin and end, and both of them. A begin
// without an end stays.
func (st *state) without(s Str, begin, end string) Str {
	st.work(len(s.s))
	b := builder{st: st}
	at := 0
	for {
		i := strings.Index(s.s[at:], begin)
		if i < 0 {
			break
		}
		j := strings.Index(s.s[at+i:], end)
		if j < 0 {
			break
		}
		st.step()
		b.add(s.slice(at, at+i))
		at += i + j + len(end)
	}
	b.add(s.slice(at, len(s.s)))
	return b.str()
}
