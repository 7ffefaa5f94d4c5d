package jinja

import (
	"fmt"
	"math"
	"strings"
)

func index(s, sub string) int { return strings.Index(s, sub) }

func (e *constExpr) eval(*state) Value   { return e.v }
func (*captured) eval(st *state) Value   { return st.captured }
func (e *notExpr) eval(st *state) Value  { return !truth(st.eval(e.x)) }
func (e *callExpr) eval(st *state) Value { return e.call(st, nil) }

func (st *state) eval(e expr) Value {
	st.step()
	if st.nested++; st.nested > maxNested {
		st.fail("expressions are nested deeper than %d", maxNested)
	}
	v := e.eval(st)
	st.nested--
	return v
}

func (e *nameExpr) eval(st *state) Value {
	if v, ok := st.lookup(e.name); ok {
		return v
	}
	st.at = e.at
	return &undefined{fmt.Sprintf("'%s' is undefined", e.name)}
}

func (e *listExpr) eval(st *state) Value {
	l := &List{kind: e.kind}
	for _, item := range e.items {
		l.items = append(l.items, st.eval(item))
	}
	return l
}

func (e *dictExpr) eval(st *state) Value {
	d := NewDict()
	for i, k := range e.keys {
		key, v := st.eval(k), st.eval(e.values[i])
		st.at = e.at
		d.set(st.key(key), key, v)
	}
	return d
}

func (e *attrExpr) eval(st *state) Value {
	of := st.eval(e.of)
	st.at = e.at
	return st.attr(of, e.name)
}

func (e *itemExpr) eval(st *state) Value {
	of, i := st.eval(e.of), st.eval(e.index)
	st.at = e.at
	return st.subscript(of, i)
}

// object describes v in the message of an undefined value.
func object(v Value) string {
	switch v.(type) {
	case nil:
		return "None"
	case *namespace:
		return "jinja2.utils.Namespace object"
	case *macro:
		return "jinja2.runtime.Macro object"
	}
	return typeName(v) + " object"
}

// attr is x.name: an attribute, else an item.
func (st *state) attr(of Value, name string) Value {
	st.work(len(name))
	st.mustDefined(of)
	if v, ok := st.property(of, name); ok {
		return v
	}
	if d, ok := of.(*Dict); ok {
		if v, ok := d.Get(name); ok {
			return v
		}
	}
	return &undefined{fmt.Sprintf("'%s' has no attribute '%s'", object(of), name)}
}

// property returns what Python has as an attribute of v.
func (st *state) property(of Value, name string) (Value, bool) {
	switch of := of.(type) {
	case *namespace:
		if v, ok := of.vars.Get(name); ok {
			return v, true
		}
		return nil, false
	case *loop:
		return of.property(name)
	case *macro:
		return of.property(name)
	case *cycler:
		return of.property(name)
	}
	kind := typeName(of)
	if method, ok := methods[kind][name]; ok {
		return method.bind(of), true
	}
	if changes[kind][name] || strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") {
		return &undefined{fmt.Sprintf("SecurityError: access to attribute '%s' of '%s' object is unsafe.", name, kind)}, true
	}
	return nil, false
}

// subscript is x[i]: an item, else an attribute.
func (st *state) subscript(of, i Value) Value {
	st.mustDefined(of)
	if d, ok := of.(*Dict); ok {
		if k, ok := st.hash(i, 0); ok {
			if v, ok := d.find(k); ok {
				return v
			}
		}
	} else if n, _, isInt, _ := number(i); isInt {
		if v, ok := st.item(of, n); ok {
			return v
		}
	}
	if s, ok := i.(Str); ok {
		if v, ok := st.property(of, s.s); ok {
			return v
		}
		return &undefined{fmt.Sprintf("'%s' has no attribute '%s'", object(of), s.s)}
	}
	return &undefined{fmt.Sprintf("%s has no element %s", object(of), st.repr(i).s)}
}

func (e *sliceExpr) eval(st *state) Value {
	of := st.eval(e.of)
	var parts [3]*int64
	for i, x := range e.parts {
		if x == nil {
			continue
		}
		v := st.eval(x)
		st.at = e.at
		if v != nil {
			n := st.intArg(v)
			parts[i] = &n
		}
	}
	st.at = e.at
	return st.cut(of, parts)
}

// cut is x[start:stop:step].
func (st *state) cut(of Value, parts [3]*int64) Value {
	st.mustDefined(of)
	switch of := of.(type) {
	case Str:
		st.work(of.size())
		if parts[2] == nil && of.ascii() {
			i, j, _ := st.bounds(len(of.s), parts)
			return of.slice(i, max(i, j))
		}
		at := st.offsets(of)
		i, j, step := st.bounds(len(at)-1, parts)
		if step == 1 {
			return of.slice(at[i], at[max(i, j)])
		}
		b := builder{st: st}
		for ; step > 0 && i < j || step < 0 && i > j; i += step {
			b.add(of.slice(at[i], at[i+1]))
		}
		return b.like(of)
	case *List:
		if !of.indexed() {
			break
		}
		out := &List{kind: of.kind}
		i, j, step := st.bounds(len(of.items), parts)
		for ; step > 0 && i < j || step < 0 && i > j; i += step {
			st.step()
			out.items = append(out.items, of.items[i])
		}
		return out
	case *rangeOf:
		i, j, step := st.bounds(int(of.n), parts)
		n := 0
		if step > 0 && i < j || step < 0 && i > j {
			n = (j-i-sign(step < 0, step > 0))/step + 1
		}
		return &rangeOf{of.start + int64(i)*of.step, of.start + int64(j)*of.step, of.step * int64(step), int64(n)}
	}
	if is[*Dict](of) {
		st.fail("TypeError: unhashable type: 'slice'")
	}
	st.fail("TypeError: '%s' object is not subscriptable", typeName(of))
	return nil
}

// bounds works out what a slice of n items means. Steps longer than n are n+1.
func (st *state) bounds(n int, parts [3]*int64) (start, stop, step int) {
	clamp := func(p *int64, otherwise, low, high int) int {
		if p == nil {
			return otherwise
		}
		i := *p
		if i < 0 {
			i += int64(n)
		}
		return int(max(int64(low), min(i, int64(high))))
	}
	step = 1
	if parts[2] != nil {
		if *parts[2] == 0 {
			st.fail("ValueError: slice step cannot be zero")
		}
		step = int(max(int64(-n-1), min(*parts[2], int64(n+1))))
	}
	if step < 0 {
		return clamp(parts[0], n-1, -1, n-1), clamp(parts[1], -1, -1, n-1), step
	}
	return clamp(parts[0], 0, 0, n), clamp(parts[1], n, 0, n), step
}

func (e *signExpr) eval(st *state) Value {
	v := st.eval(e.x)
	st.at = e.at
	st.mustDefined(v)
	i, f, isInt, ok := number(v)
	if !ok {
		op := map[bool]string{true: "-", false: "+"}[e.neg]
		st.fail("TypeError: bad operand type for unary %s: '%s'", op, typeName(v))
	}
	switch {
	case isInt && e.neg:
		if i == math.MinInt64 {
			st.overflow()
		}
		return -i
	case isInt:
		return i
	case e.neg:
		return -f
	}
	return f
}

func (e *logicExpr) eval(st *state) Value {
	var v Value
	for _, item := range e.items {
		if v = st.eval(item); truth(v) == e.until {
			break
		}
	}
	return v
}

func (e *concatExpr) eval(st *state) Value {
	b := builder{st: st}
	for _, item := range e.items {
		b.add(st.str(st.eval(item)))
	}
	return b.str()
}

func (e *condExpr) eval(st *state) Value {
	switch {
	case truth(st.eval(e.cond)):
		return st.eval(e.yes)
	case e.no != nil:
		return st.eval(e.no)
	}
	return &undefined{"the inline if-expression evaluated to false and no else section was defined."}
}

func (e *mathExpr) eval(st *state) Value {
	v := st.eval(e.first)
	for _, o := range e.rest {
		x := st.eval(o.x)
		st.at = o.at
		v = st.arithmetic(o.op, v, x)
	}
	return v
}

func (e *compareExpr) eval(st *state) Value {
	v := st.eval(e.first)
	for _, o := range e.rest {
		x := st.eval(o.x)
		st.at = o.at
		if !st.holds(o.op, v, x) {
			return false
		}
		v = x
	}
	return true
}

func (st *state) holds(op string, a, b Value) bool {
	switch op {
	case "==":
		return st.equal(a, b)
	case "!=":
		return !st.equal(a, b)
	case "in":
		return st.contains(b, a)
	case "not in":
		return !st.contains(b, a)
	}
	c := st.compare(op, a, b)
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c == 1
	}
	return c == 0 || c == 1
}
