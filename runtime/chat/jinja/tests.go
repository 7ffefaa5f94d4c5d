package jinja

import (
	"math/big"
	"strings"
)

// tests by name. The first parameter is what stands before is.
var tests map[string]*function

func init() {
	tests = table(testRows, map[string]string{
		"==": "eq", "equalto": "eq", "!=": "ne", "<": "lt", "lessthan": "lt", "<=": "le",
		">": "gt", "greaterthan": "gt", ">=": "ge",
	})
}

func isTest(name string, holds func(v Value) bool) function {
	return function{name: name, params: "v", do: func(_ *state, a []Value) Value { return holds(a[0]) }}
}

func comparison(name, op string) function {
	return function{name: name, params: "v other", do: func(st *state, a []Value) Value { return st.holds(op, a[0], a[1]) }}
}

func is[T Value](v Value) bool {
	_, ok := v.(T)
	return ok
}

func isInteger(v Value) bool { return is[int64](v) || is[*big.Int](v) }

var testRows = []function{
	isTest("defined", func(v Value) bool { return !is[*undefined](v) }),
	isTest("undefined", is[*undefined]),
	isTest("none", func(v Value) bool { return v == nil }),
	isTest("boolean", is[bool]),
	isTest("true", func(v Value) bool { return v == true }),
	isTest("false", func(v Value) bool { return v == false }),
	isTest("integer", isInteger),
	isTest("float", is[float64]),
	isTest("number", func(v Value) bool { return isInteger(v) || is[float64](v) || is[bool](v) }),
	isTest("string", is[Str]),
	isTest("mapping", is[*Dict]),
	isTest("iterable", func(v Value) bool {
		return is[Str](v) || is[*List](v) || is[*Dict](v) || is[*rangeOf](v) || is[*undefined](v) || is[*loop](v)
	}),
	isTest("sequence", func(v Value) bool {
		if l, ok := v.(*List); ok {
			return l.indexed()
		}
		return is[Str](v) || is[*Dict](v) || is[*rangeOf](v) || is[*undefined](v)
	}),
	isTest("callable", func(v Value) bool {
		return is[*function](v) || is[*macro](v) || is[*loop](v) || is[*undefined](v)
	}),
	isTest("escaped", func(v Value) bool {
		s, ok := v.(Str)
		return ok && s.safe
	}),
	{name: "lower", params: "v", do: func(st *state, a []Value) Value {
		return cased(st.str(a[0]).s) && strings.ToLower(st.str(a[0]).s) == st.str(a[0]).s
	}},
	{name: "upper", params: "v", do: func(st *state, a []Value) Value {
		return cased(st.str(a[0]).s) && strings.ToUpper(st.str(a[0]).s) == st.str(a[0]).s
	}},
	{name: "odd", params: "v", do: func(st *state, a []Value) Value {
		return st.equal(st.arithmetic("%", a[0], int64(2)), int64(1))
	}},
	{name: "even", params: "v", do: func(st *state, a []Value) Value {
		return st.equal(st.arithmetic("%", a[0], int64(2)), int64(0))
	}},
	{name: "divisibleby", params: "v num", do: func(st *state, a []Value) Value {
		return st.equal(st.arithmetic("%", a[0], a[1]), int64(0))
	}},
	{name: "sameas", params: "v other", do: func(st *state, a []Value) Value {
		return typeName(a[0]) == typeName(a[1]) && st.equal(a[0], a[1])
	}},
	{name: "in", params: "v seq", do: func(st *state, a []Value) Value { return st.contains(a[1], a[0]) }},
	{name: "filter", params: "v", do: func(st *state, a []Value) Value { return filters[st.str(a[0]).s] != nil }},
	{name: "test", params: "v", do: func(st *state, a []Value) Value { return tests[st.str(a[0]).s] != nil }},
	comparison("eq", "=="), comparison("ne", "!="), comparison("lt", "<"),
	comparison("le", "<="), comparison("gt", ">"), comparison("ge", ">="),
}

// cased says whether s has a letter with a case.
func cased(s string) bool { return strings.ToLower(s) != strings.ToUpper(s) }
