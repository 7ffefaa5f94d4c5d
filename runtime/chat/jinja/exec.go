package jinja

import (
	"math"
	"slices"
)

func (s *dataStmt) exec(st *state) control {
	st.out.own(s.text)
	return goOn
}

func (s *printStmt) exec(st *state) control {
	st.out.add(st.str(st.eval(s.x)))
	return goOn
}

func (s *ifStmt) exec(st *state) control {
	for _, a := range s.arms {
		if truth(st.eval(a.cond)) {
			return st.run(a.body)
		}
	}
	return st.run(s.otherwise)
}

func (s *jumpStmt) exec(*state) control { return s.to }

func (s *setStmt) exec(st *state) control {
	v := st.eval(s.value)
	s.target.assign(st, s.at, v)
	return goOn
}

func (s *setBlockStmt) exec(st *state) control {
	v := st.block(s.filters, s.body)
	s.target.assign(st, s.at, v)
	return goOn
}

func (s *filterBlockStmt) exec(st *state) control {
	st.out.add(st.str(st.block(s.filters, s.body)))
	return goOn
}

// block returns the text of a body, with filters applied.
func (st *state) block(filters expr, body []stmt) Value {
	var text Str
	st.within(st.scope, func(*scope) {
		text = st.capture(func() { st.run(body) })
	})
	if filters == nil {
		return text
	}
	outer := st.captured
	st.captured = text
	v := st.eval(filters)
	st.captured = outer
	return v
}

func (s *withStmt) exec(st *state) (c control) {
	values := make([]Value, len(s.values))
	for i, v := range s.values {
		values[i] = st.eval(v)
	}
	st.within(st.scope, func(*scope) {
		for i, t := range s.targets {
			t.assign(st, s.at, values[i])
		}
		c = st.run(s.body)
	})
	return c
}

func (t *nameTarget) assign(st *state, _ int, v Value) { st.scope.set(t.name, v) }

func (t *attrTarget) assign(st *state, _ int, v Value) {
	of, _ := st.lookup(t.name)
	st.at = t.at
	ns, ok := of.(*namespace)
	if !ok {
		st.fail("cannot assign attribute on non-namespace object")
	}
	ns.vars.Set(t.attr, v)
}

func (t *tupleTarget) assign(st *state, at int, v Value) {
	st.at = at
	st.mustDefined(v)
	items := st.list(v)
	switch {
	case len(items) < len(t.items):
		st.fail("ValueError: not enough values to unpack (expected %d, got %d)", len(t.items), len(items))
	case len(items) > len(t.items):
		st.fail("ValueError: too many values to unpack (expected %d)", len(t.items))
	}
	for i, target := range t.items {
		target.assign(st, at, items[i])
	}
}

// loop is the variable loop.
type loop struct {
	stmt    *forStmt
	scope   *scope // around the loop
	items   []Value
	i       int
	depth   int
	changed []Value
	st      *state
}

func (s *forStmt) exec(st *state) control {
	over := st.eval(s.over)
	st.at = s.at
	s.loop(st, over, 0)
	return goOn
}

func (s *forStmt) loop(st *state, over Value, depth int) {
	l := &loop{stmt: s, scope: st.scope, depth: depth, st: st}
	for v := range st.each(over) {
		keep := true
		if s.test != nil {
			st.within(l.scope, func(*scope) {
				s.target.assign(st, s.at, v)
				keep = truth(st.eval(s.test))
			})
		}
		if keep {
			l.items = append(l.items, v)
		}
	}
	ended := false // an iteration ran to its end: Jinja takes no other for one
	for ; l.i < len(l.items); l.i++ {
		c := goOn
		st.step()
		st.within(l.scope, func(sc *scope) {
			sc.set("loop", l)
			s.target.assign(st, s.at, l.items[l.i])
			c = st.run(s.body)
		})
		ended = ended || c == goOn
		if c == leaveLoop {
			break
		}
	}
	if !ended {
		st.within(l.scope, func(*scope) { st.run(s.otherwise) })
	}
}

func (l *loop) property(name string) (Value, bool) {
	i, n := int64(l.i), int64(len(l.items))
	switch name {
	case "index":
		return i + 1, true
	case "index0":
		return i, true
	case "revindex":
		return n - i, true
	case "revindex0":
		return n - i - 1, true
	case "first":
		return i == 0, true
	case "last":
		return i == n-1, true
	case "length":
		return n, true
	case "depth":
		return int64(l.depth + 1), true
	case "depth0":
		return int64(l.depth), true
	case "previtem":
		if i > 0 {
			return l.items[i-1], true
		}
		return &undefined{"there is no previous item"}, true
	case "nextitem":
		if i+1 < n {
			return l.items[i+1], true
		}
		return &undefined{"there is no next item"}, true
	case "cycle":
		return &function{name: name, raw: func(st *state, a *args) Value {
			if len(a.plain) == 0 {
				st.fail("TypeError: no items for cycling given")
			}
			return a.plain[l.i%len(a.plain)]
		}}, true
	case "changed":
		return &function{name: name, raw: func(st *state, a *args) Value {
			if l.changed != nil && st.equal(tuple(l.changed...), tuple(a.plain...)) {
				return false
			}
			l.changed = append([]Value{}, a.plain...)
			return true
		}}, true
	}
	return nil, false
}

// call runs the body of a recursive loop for other items.
func (l *loop) call(st *state, a *args) Value {
	if !l.stmt.recursive {
		st.fail("TypeError: the loop must have the 'recursive' marker to be called recursively")
	}
	if len(a.plain) != 1 || len(a.names) > 0 {
		st.fail("TypeError: loop() takes one argument")
	}
	outer := st.scope
	st.scope = l.scope
	text := Str{}
	st.call(func() {
		text = st.capture(func() { l.stmt.loop(st, a.plain[0], l.depth+1) })
	})
	st.scope = outer
	return text
}

// macro is a macro with the scope that it was defined in.
type macro struct {
	def   *macroDef
	scope *scope
}

func (s *macroStmt) exec(st *state) control {
	st.scope.set(s.def.name, &macro{s.def, st.scope})
	return goOn
}

func (s *callStmt) exec(st *state) control {
	caller := &macro{s.caller, st.scope}
	st.out.add(st.str(s.call.call(st, caller)))
	return goOn
}

func (m *macro) property(name string) (Value, bool) {
	switch name {
	case "name":
		if m.def.name == "" {
			return nil, true
		}
		return own(m.def.name), true
	case "arguments":
		l := tuple()
		for _, p := range m.def.params {
			l.items = append(l.items, own(p.name))
		}
		return l, true
	case "catch_kwargs":
		return m.def.uses["kwargs"], true
	case "catch_varargs":
		return m.def.uses["varargs"], true
	case "caller":
		return m.def.uses["caller"], true
	}
	return nil, false
}

// call binds the arguments and returns the text of the body. Defaults are
// evaluated now and may use the parameters before them.
func (m *macro) call(st *state, a *args) Value {
	d := m.def
	took := map[string]bool{}
	take := func(name string) (Value, bool) {
		i := slices.IndexFunc(a.names, func(s Str) bool { return s.s == name })
		if i < 0 {
			return nil, false
		}
		took[name] = true
		return a.named[i], true
	}
	var text Str
	st.call(func() {
		st.within(m.scope, func(s *scope) {
			ownCaller := false
			for i, p := range d.params {
				ownCaller = ownCaller || p.name == "caller"
				v, ok := Value(nil), i < len(a.plain)
				if ok {
					v = a.plain[i]
				} else if v, ok = take(p.name); !ok {
					if p.def == nil {
						v = &undefined{"parameter '" + p.name + "' was not provided"}
					} else {
						v = st.eval(p.def)
					}
				}
				s.set(p.name, v)
			}
			if d.uses["caller"] && !ownCaller {
				v, ok := take("caller")
				if !ok || v == nil {
					v = &undefined{"No caller defined"}
				}
				s.set("caller", v)
			}
			m.rest(st, s, a, took)
			text = st.capture(func() { st.run(d.body) })
		})
	})
	return text
}

// rest handles arguments without a parameter.
func (m *macro) rest(st *state, s *scope, a *args, took map[string]bool) {
	d := m.def
	over := a.plain[min(len(d.params), len(a.plain)):]
	if d.uses["varargs"] {
		s.set("varargs", tuple(over...))
	} else if len(over) > 0 {
		st.fail("TypeError: macro '%s' takes not more than %d argument(s)", d.name, len(d.params))
	}
	others := NewDict()
	for i, name := range a.names {
		if !took[name.s] {
			others.set(st.key(name), name, a.named[i])
		}
	}
	if d.uses["kwargs"] {
		s.set("kwargs", others)
	} else if others.Len() > 0 {
		st.fail("TypeError: macro '%s' takes no keyword argument '%s'", d.name, others.keys[0].(Str).s)
	}
}

// rangeFrom is the built-in range. The longest is that of Jinja's sandbox.
func (st *state) rangeFrom(start, stop, step int64) Value {
	const longest = 100_000
	if step == 0 {
		st.fail("ValueError: range() arg 3 must not be zero")
	}
	var n uint64
	switch {
	case step > 0 && start < stop:
		n = (uint64(stop)-uint64(start)-1)/uint64(step) + 1
	case step < 0 && start > stop:
		n = (uint64(start)-uint64(stop)-1)/magnitude(step) + 1
	}
	if n > longest {
		st.fail("OverflowError: Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", longest)
	}
	if n > 0 && math.Abs(float64(start)+float64(n)*float64(step)) > 1<<62 {
		st.overflow()
	}
	return &rangeOf{start, stop, step, int64(n)}
}
