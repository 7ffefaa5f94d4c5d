package jinja

import "strings"

// args is the evaluated arguments of a call.
type args struct {
	plain []Value
	names []Str
	named []Value
}

// take removes a named argument.
func (a *args) take(name string) (Value, bool) {
	for i, n := range a.names {
		if n.s == name {
			v := a.named[i]
			a.names = append(append([]Str{}, a.names[:i]...), a.names[i+1:]...)
			a.named = append(append([]Value{}, a.named[:i]...), a.named[i+1:]...)
			return v, true
		}
	}
	return nil, false
}

func (l *argList) eval(st *state) *args {
	a := &args{}
	for _, e := range l.plain {
		a.plain = append(a.plain, st.eval(e))
	}
	for i, e := range l.named {
		a.names = append(a.names, own(l.names[i]))
		a.named = append(a.named, st.eval(e))
	}
	if l.rest != nil {
		v := st.eval(l.rest)
		a.plain = append(a.plain, st.list(v)...)
	}
	if l.restNamed != nil {
		d, ok := st.eval(l.restNamed).(*Dict)
		if !ok {
			st.fail("TypeError: argument after ** must be a mapping")
		}
		for i, k := range d.keys {
			st.step()
			a.names = append(a.names, st.onlyStr(k, "a keyword"))
			a.named = append(a.named, d.values[i])
		}
	}
	return a
}

// function is a built-in: its parameters are words, those with a ? may be
// left out and are then absent. A raw one binds its arguments itself.
type function struct {
	name   string
	params string
	do     func(st *state, a []Value) Value
	raw    func(st *state, a *args) Value
}

// bind returns the method of one value.
func (f *function) bind(self Value) *function {
	return &function{name: f.name, raw: func(st *state, a *args) Value { return f.apply(st, self, a) }}
}

// apply calls f with a first argument before a.
func (f *function) apply(st *state, first Value, a *args) Value {
	return f.call(st, &args{append([]Value{first}, a.plain...), a.names, a.named})
}

func (f *function) call(st *state, a *args) Value {
	st.reads(a.plain)
	st.reads(a.named)
	if f.raw != nil {
		return f.raw(st, a)
	}
	params := strings.Fields(f.params)
	if len(a.plain) > len(params) {
		st.fail("TypeError: %s() takes at most %d arguments, %d given", f.name, len(params), len(a.plain))
	}
	values := make([]Value, len(params))
	copy(values, a.plain)
	for i := len(a.plain); i < len(params); i++ {
		values[i] = absent{}
	}
next:
	for i, name := range a.names {
		for j, p := range params {
			if strings.TrimSuffix(p, "?") == name.s && j >= len(a.plain) {
				values[j] = a.named[i]
				continue next
			}
		}
		st.fail("TypeError: %s() got an unexpected keyword argument '%s'", f.name, name.s)
	}
	for j, p := range params {
		if _, none := values[j].(absent); none && !strings.HasSuffix(p, "?") {
			st.fail("TypeError: %s() misses the argument '%s'", f.name, p)
		}
	}
	return f.do(st, values)
}

// call evaluates a call; a call block gives its body as caller.
func (e *callExpr) call(st *state, caller *macro) Value {
	fn := st.eval(e.fn)
	a := e.args.eval(st)
	if caller != nil {
		a.names = append(a.names, own("caller"))
		a.named = append(a.named, caller)
	}
	st.at = e.at
	switch fn := fn.(type) {
	case *function:
		return fn.call(st, a)
	case *macro:
		return fn.call(st, a)
	case *loop:
		return fn.call(st, a)
	}
	st.mustDefined(fn)
	st.fail("TypeError: '%s' object is not callable", typeName(fn))
	return nil
}

func (e *filterExpr) eval(st *state) Value {
	of := st.eval(e.of)
	a := e.args.eval(st)
	st.at = e.at
	return st.filter(e.name, of, a)
}

func (st *state) filter(name string, of Value, a *args) Value {
	f, ok := filters[name]
	if why, known := refusedFilters[name]; known {
		st.fail("filter '%s' is not supported: %s", name, why)
	}
	if !ok {
		st.fail("No filter named '%s'.", name)
	}
	return f.apply(st, of, a)
}

func (e *testExpr) eval(st *state) Value {
	of := st.eval(e.of)
	a := e.args.eval(st)
	st.at = e.at
	return st.test(e.name, of, a)
}

func (st *state) test(name string, of Value, a *args) bool {
	f, ok := tests[name]
	if !ok {
		st.fail("No test named '%s'.", name)
	}
	return truth(f.apply(st, of, a))
}

// table makes a table of functions by name, and by other names.
func table(rows []function, aliases map[string]string) map[string]*function {
	t := make(map[string]*function, len(rows)+len(aliases))
	for i := range rows {
		t[rows[i].name] = &rows[i]
	}
	for name, of := range aliases {
		t[name] = t[of]
	}
	return t
}
