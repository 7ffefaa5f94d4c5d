package jinja

import (
	"fmt"
	"iter"
	"math"
	"math/big"
	"slices"
	"strings"
)

// Value is what an expression can be:
//
//	nil (None), bool, int64, *big.Int (read and printed, not reckoned with),
//	float64, Str, *List, *Dict, *rangeOf, *undefined, *namespace, *macro,
//	*function, *loop, *cycler
type Value any

// listKind says which of Python's types a List is.
type listKind uint8

const (
	kindList listKind = iota
	kindTuple
	kindKeys
	kindValues
	kindItems
	kindGenerator // read once
)

var listKinds = [...]string{"list", "tuple", "dict_keys", "dict_values", "dict_items", "generator"}

// List is a list, or one of the types that are nearly one.
type List struct {
	items []Value
	kind  listKind
}

// NewList returns a list.
func NewList(items ...Value) *List { return &List{items: items} }

// Append adds an item. A list that a template has seen must not change.
func (l *List) Append(v Value) { l.items = append(l.items, v) }

// All yields the items.
func (l *List) All() iter.Seq[Value] { return slices.Values(l.items) }

func tuple(items ...Value) *List { return &List{items, kindTuple} }

// indexed says whether it has items by number.
func (l *List) indexed() bool { return l.kind <= kindTuple }

// rangeOf is the result of range().
type rangeOf struct{ start, stop, step, n int64 }

// undefined is what a name without a value is.
type undefined struct{ message string }

// namespace is the object whose attributes can be set.
type namespace struct{ vars *Dict }

// absent stands for an optional argument that is not given.
type absent struct{}

// given returns v, or what stands for it when it is absent.
func given(v, otherwise Value) Value {
	if _, none := v.(absent); none {
		return otherwise
	}
	return v
}

// typeName is the name of v's type in Python.
func typeName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64, *big.Int:
		return "int"
	case float64:
		return "float"
	case Str:
		return "str"
	case *List:
		return listKinds[v.kind]
	case *Dict:
		return "dict"
	case *rangeOf:
		return "range"
	case *undefined:
		return "Undefined"
	case *namespace:
		return "Namespace"
	case *macro:
		return "Macro"
	case *loop:
		return "LoopContext"
	case *cycler:
		return "Cycler"
	}
	return "function"
}

func truth(v Value) bool {
	switch v := v.(type) {
	case nil, *undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case Str:
		return v.s != ""
	case *List:
		return v.kind == kindGenerator || len(v.items) > 0
	case *Dict:
		return v.Len() > 0
	case *rangeOf:
		return v.n > 0
	}
	return true
}

// number returns v as a number of Python's tower: int64 or float64.
func number(v Value) (i int64, f float64, isInt, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, 1, true, true
		}
		return 0, 0, true, true
	case int64:
		return v, float64(v), true, true
	case float64:
		return 0, v, false, true
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		return 0, f, false, true
	}
	return 0, 0, false, false
}

// equal is ==.
func (st *state) equal(a, b Value) bool { return st.same(a, b, 0) }

func (st *state) same(a, b Value, depth int) bool {
	st.deep(depth)
	if _, _, _, ok := number(a); ok {
		return sameNumber(a, b)
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case Str:
		b, ok := b.(Str)
		st.work(min(len(a.s), len(b.s)))
		return ok && a.s == b.s
	case *List:
		b, ok := b.(*List)
		return ok && st.sameList(a, b, depth)
	case *Dict:
		b, ok := b.(*Dict)
		return ok && st.sameDict(a, b, depth)
	case *rangeOf:
		b, ok := b.(*rangeOf)
		return ok && a.n == b.n && (a.n == 0 || a.start == b.start && (a.n == 1 || a.step == b.step))
	case *undefined:
		_, ok := b.(*undefined)
		return ok
	}
	return a == b
}

// sameNumber compares a number with any value; integers exactly.
func sameNumber(a, b Value) bool {
	i, f, isInt, _ := number(a)
	j, g, otherInt, ok := number(b)
	if isInt && otherInt {
		return ok && i == j
	}
	x, isBig := a.(*big.Int)
	y, otherBig := b.(*big.Int)
	if isBig && otherBig {
		return x.Cmp(y) == 0
	}
	return ok && f == g
}

func (st *state) sameList(a, b *List, depth int) bool {
	if a.kind != b.kind {
		return false
	}
	if a == b {
		return true
	}
	if len(a.items) != len(b.items) || a.kind > kindTuple && a.kind != kindKeys && a.kind != kindItems {
		return false
	}
	for i := range a.items {
		st.step()
		if !st.same(a.items[i], b.items[i], depth+1) {
			return false
		}
	}
	return true
}

func (st *state) sameDict(a, b *Dict, depth int) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i, k := range a.keys {
		st.step()
		v, ok := b.find(st.key(k))
		if !ok || !st.same(a.values[i], v, depth+1) {
			return false
		}
	}
	return true
}

// compare orders two values as Python's < does; op is for the error.
func (st *state) compare(op string, a, b Value) int {
	return st.order(op, a, b, 0)
}

func (st *state) order(op string, a, b Value, depth int) int {
	st.deep(depth)
	st.mustDefined(a)
	st.mustDefined(b)
	if i, f, isInt, ok := number(a); ok {
		if j, g, otherInt, ok := number(b); ok {
			switch {
			case isInt && otherInt:
				return sign(i < j, i > j)
			case f != f || g != g:
				return unordered
			default:
				return sign(f < g, f > g)
			}
		}
	}
	switch a := a.(type) {
	case Str:
		if b, ok := b.(Str); ok {
			st.work(min(len(a.s), len(b.s)))
			return strings.Compare(a.s, b.s)
		}
	case *List:
		if b, ok := b.(*List); ok && a.kind == b.kind && a.indexed() {
			for i := range min(len(a.items), len(b.items)) {
				st.step()
				if !st.same(a.items[i], b.items[i], depth+1) {
					return st.order(op, a.items[i], b.items[i], depth+1)
				}
			}
			return sign(len(a.items) < len(b.items), len(a.items) > len(b.items))
		}
	}
	st.fail("TypeError: '%s' not supported between instances of '%s' and '%s'", op, typeName(a), typeName(b))
	return 0
}

// unordered is the order of a number and NaN.
const unordered = 2

func sign(less, more bool) int {
	switch {
	case less:
		return -1
	case more:
		return 1
	}
	return 0
}

// mustDefined fails for undefined values, as most operations on them do.
func (st *state) mustDefined(v Value) {
	if u, ok := v.(*undefined); ok {
		st.fail("%s", u.message)
	}
}

// intArg returns a whole number.
func (st *state) intArg(v Value) int64 {
	st.mustDefined(v)
	i, _, isInt, ok := number(v)
	if !ok || !isInt {
		st.fail("TypeError: '%s' object cannot be interpreted as an integer", typeName(v))
	}
	return i
}

// onlyStr returns a string and takes nothing else.
func (st *state) onlyStr(v Value, what string) Str {
	s, ok := v.(Str)
	if !ok {
		st.mustDefined(v)
		st.fail("TypeError: %s must be a string, not '%s'", what, typeName(v))
	}
	return s
}

// Dict is a dict: it keeps the order in which keys were first set.
type Dict struct {
	keys, values []Value
	index        map[dictKey]int
}

// dictKey is a key as Python compares them: 1, 1.0 and True are the same.
type dictKey struct {
	kind byte
	text string
	bits uint64
}

// NewDict returns an empty dict.
func NewDict() *Dict { return &Dict{index: map[dictKey]int{}} }

func (d *Dict) Len() int { return len(d.keys) }

// Set sets the value of a key that the template could have written.
func (d *Dict) Set(key string, v Value) { d.set(dictKey{kind: 's', text: key}, own(key), v) }

// Get returns the value of a key.
func (d *Dict) Get(key string) (Value, bool) { return d.find(dictKey{kind: 's', text: key}) }

// All yields the entries whose keys are strings.
func (d *Dict) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for i, k := range d.keys {
			if k, ok := k.(Str); ok && !yield(k.s, d.values[i]) {
				return
			}
		}
	}
}

func (d *Dict) set(k dictKey, key, v Value) {
	if i, ok := d.index[k]; ok {
		d.values[i] = v
		return
	}
	d.index[k] = len(d.keys)
	d.keys = append(d.keys, key)
	d.values = append(d.values, v)
}

func (d *Dict) find(k dictKey) (Value, bool) {
	if i, ok := d.index[k]; ok {
		return d.values[i], true
	}
	return nil, false
}

// pair returns entry i as a tuple.
func (d *Dict) pair(i int) *List { return tuple(d.keys[i], d.values[i]) }

// key returns what v is as a key of a dict; lists and dicts can be none.
func (st *state) key(v Value) dictKey {
	k, ok := st.hash(v, 0)
	if !ok {
		st.fail("TypeError: unhashable type: '%s'", typeName(v))
	}
	return k
}

func (st *state) hash(v Value, depth int) (k dictKey, ok bool) {
	st.deep(depth)
	if i, f, isInt, ok := number(v); ok {
		if isInt || f == math.Trunc(f) && math.Abs(f) < 1<<62 {
			if !isInt {
				i = int64(f)
			}
			return dictKey{kind: 'i', bits: uint64(i)}, true
		}
		return dictKey{kind: 'f', bits: math.Float64bits(f)}, true
	}
	switch v := v.(type) {
	case nil:
		return dictKey{kind: 'n'}, true
	case Str:
		st.work(len(v.s))
		return dictKey{kind: 's', text: v.s}, true
	case *undefined:
		return dictKey{kind: 'u'}, true
	case *Dict:
		return dictKey{}, false
	case *List:
		if v.kind == kindTuple {
			var b strings.Builder
			for _, item := range v.items {
				st.step()
				k, ok := st.hash(item, depth+1)
				if !ok {
					return k, false
				}
				st.work(len(k.text))
				fmt.Fprintf(&b, "%c%d:%s%x,", k.kind, len(k.text), k.text, k.bits)
			}
			return dictKey{kind: 't', text: b.String()}, true
		}
		if v.kind == kindList {
			return dictKey{}, false
		}
	}
	return dictKey{kind: 'o', text: fmt.Sprintf("%p", v)}, true
}
