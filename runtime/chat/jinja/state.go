package jinja

import (
	"context"
	"iter"
	"time"
	"unicode/utf8"
)

// state is one render.
type state struct {
	now      time.Time
	root     *Dict // the context
	scope    *scope
	out      *builder
	captured Str // what filters of a block apply to
	at       int // where an error of now is
	ctx      context.Context
	budget   *Budget
	looked   int // bytes and steps since the last look at ctx
	calls    int
	nested   int
}

// scope holds the variables of a body; what it has not is looked for further up.
type scope struct {
	vars map[string]Value
	up   *scope
}

func (s *scope) set(name string, v Value) {
	if s.vars == nil {
		s.vars = map[string]Value{}
	}
	s.vars[name] = v
}

func (st *state) fail(format string, args ...any) { failAt(st.at, format, args...) }

// step counts against endless loops.
func (st *state) step() { st.spend(1) }

func (st *state) spend(n int) {
	if n > st.budget.Steps {
		st.budget.Steps = 0
		st.fail("the template takes too many steps")
	}
	st.budget.Steps -= n
	st.look(n)
}

// work counts bytes read or made.
func (st *state) work(n int) {
	if n > st.budget.Bytes {
		st.budget.Bytes = 0
		st.fail("the template handles too much text")
	}
	st.budget.Bytes -= n
	st.look(n >> 8)
}

// look ends the render when its context has ended.
func (st *state) look(n int) {
	if st.looked += n; st.looked >= 1024 {
		st.looked = 0
		if err := st.ctx.Err(); err != nil {
			panic(cancelled{err})
		}
	}
}

// reads counts the texts of arguments: whatever is done with them, is done with every byte.
func (st *state) reads(args []Value) {
	for _, v := range args {
		if s, ok := v.(Str); ok {
			st.work(s.size())
		}
	}
}

// deep bounds walks over nested values.
func (st *state) deep(depth int) {
	if depth > maxDepth {
		st.fail("a value is nested deeper than %d", maxDepth)
	}
}

// call guards a recursion of the template.
func (st *state) call(f func()) {
	if st.calls++; st.calls > maxDepth {
		st.fail("calls are nested deeper than %d", maxDepth)
	}
	f()
	st.calls--
}

// within runs f in a scope below up.
func (st *state) within(up *scope, f func(s *scope)) {
	outer := st.scope
	st.scope = &scope{up: up}
	f(st.scope)
	st.scope = outer
}

// capture returns what f writes.
func (st *state) capture(f func()) Str {
	outer := st.out
	st.out = &builder{st: st}
	f()
	text := st.out.str()
	st.out = outer
	return text
}

func (st *state) run(body []stmt) control {
	for _, s := range body {
		st.step()
		if c := s.exec(st); c != goOn {
			return c
		}
	}
	return goOn
}

func (st *state) lookup(name string) (Value, bool) {
	st.work(len(name))
	for s := st.scope; s != nil; s = s.up {
		st.work(8)
		if v, ok := s.vars[name]; ok {
			return v, true
		}
	}
	if v, ok := st.root.Get(name); ok {
		return v, true
	}
	if g, ok := globals[name]; ok {
		return g, true
	}
	return nil, false
}

// each yields what a loop over v sees.
func (st *state) each(v Value) iter.Seq[Value] {
	return func(yield func(Value) bool) {
		switch v := v.(type) {
		case *undefined:
		case Str:
			for c := range st.chars(v) {
				st.step()
				if !yield(c) {
					return
				}
			}
		case *List:
			items := v.items
			if v.kind == kindGenerator {
				v.items = nil
			}
			for _, item := range items {
				st.step()
				if !yield(item) {
					return
				}
			}
		case *Dict:
			for _, k := range v.keys {
				st.step()
				if !yield(k) {
					return
				}
			}
		case *rangeOf:
			for i := range v.n {
				st.step()
				if !yield(v.start + i*v.step) {
					return
				}
			}
		case *loop:
			for ; v.i+1 < len(v.items); v.i++ {
				st.step()
				if !yield(v.items[v.i+1]) {
					return
				}
			}
		default:
			st.fail("TypeError: '%s' object is not iterable", typeName(v))
		}
	}
}

// list returns what a loop over v sees.
func (st *state) list(v Value) []Value {
	var out []Value
	for item := range st.each(v) {
		out = append(out, item)
	}
	return out
}

// size is Python's len().
func (st *state) size(v Value) int {
	switch v := v.(type) {
	case *undefined:
		return 0
	case Str:
		return st.length(v)
	case *Dict:
		return v.Len()
	case *rangeOf:
		return int(v.n)
	case *loop:
		return len(v.items)
	case *List:
		if v.kind != kindGenerator {
			return len(v.items)
		}
	}
	st.fail("TypeError: object of type '%s' has no len()", typeName(v))
	return 0
}

// contains is the operator in.
func (st *state) contains(in, v Value) bool {
	switch in := in.(type) {
	case Str:
		s, ok := v.(Str)
		if !ok {
			st.mustDefined(v)
			st.fail("TypeError: 'in <string>' requires string as left operand, not %s", typeName(v))
		}
		st.work(len(in.s))
		return index(in.s, s.s) >= 0
	case *Dict:
		_, ok := in.find(st.key(v))
		return ok
	case *rangeOf:
		i, f, isInt, ok := number(v)
		if !isInt {
			i = int64(f)
			ok = ok && float64(i) == f
		}
		return ok && in.n > 0 && (i-in.start)%in.step == 0 && (i-in.start)/in.step >= 0 && (i-in.start)/in.step < in.n
	case nil, bool, int64, float64, *namespace, *macro, *function:
		st.fail("TypeError: argument of type '%s' is not iterable", typeName(in))
	}
	for item := range st.each(in) {
		if st.equal(item, v) {
			return true
		}
	}
	return false
}

// at returns item i, counted from the end if negative, of what has numbered
// items.
func (st *state) item(of Value, i int64) (Value, bool) {
	n := int64(0)
	switch of := of.(type) {
	case Str:
		if of.ascii() {
			n = int64(len(of.s))
		} else {
			n = int64(utf8.RuneCountInString(of.s))
		}
		st.work(len(of.s))
	case *List:
		if of.indexed() {
			n = int64(len(of.items))
		}
	case *rangeOf:
		n = of.n
	}
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return nil, false
	}
	switch of := of.(type) {
	case Str:
		if of.ascii() {
			return of.slice(int(i), int(i)+1), true
		}
		at := st.offsets(of)
		return of.slice(at[i], at[i+1]), true
	case *List:
		return of.items[i], true
	case *rangeOf:
		return of.start + i*of.step, true
	}
	return nil, false
}
