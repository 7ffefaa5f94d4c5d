package jinja

import (
	"iter"
	"slices"
	"strconv"
	"strings"
)

// generator is what filters return that work item by item.
func generator(items []Value) Value { return &List{items, kindGenerator} }

// listFilters work on sequences.
var listFilters = []function{
	{name: "length", params: "v", do: func(st *state, a []Value) Value { return int64(st.size(a[0])) }},
	{name: "list", params: "v", do: func(st *state, a []Value) Value { return NewList(st.list(a[0])...) }},
	{name: "items", params: "v", do: func(st *state, a []Value) Value {
		switch v := a[0].(type) {
		case *undefined:
			return generator(nil)
		case *Dict:
			return generator(st.pairs(v))
		}
		st.fail("TypeError: Can only get item pairs from a mapping.")
		return nil
	}},
	{name: "first", params: "v", do: func(st *state, a []Value) Value {
		for v := range st.each(a[0]) {
			return v
		}
		return &undefined{"No first item, sequence was empty."}
	}},
	{name: "last", params: "v", do: func(st *state, a []Value) Value {
		if items := st.list(a[0]); len(items) > 0 {
			return items[len(items)-1]
		}
		return &undefined{"No last item, sequence was empty."}
	}},
	{name: "join", params: "v d? attribute?", do: func(st *state, a []Value) Value {
		get := st.getter(given(a[2], nil), nil)
		var parts []Str
		for v := range st.each(a[0]) {
			parts = append(parts, st.str(get(v)))
		}
		return st.joinStrs(st.str(given(a[1], Str{})), parts)
	}},
	{name: "reverse", params: "v", do: func(st *state, a []Value) Value {
		if s, ok := a[0].(Str); ok {
			back := int64(-1)
			return st.cut(s, [3]*int64{2: &back})
		}
		items := slices.Clone(st.list(a[0]))
		slices.Reverse(items)
		return generator(items)
	}},
	{name: "sort", params: "v reverse? case_sensitive? attribute?", do: func(st *state, a []Value) Value {
		items := slices.Clone(st.list(a[0]))
		var keys []func(Value) Value
		for _, part := range attributes(given(a[3], nil)) {
			keys = append(keys, st.folded(st.getter(part, nil), truth(given(a[2], false))))
		}
		st.sort(items, truth(given(a[1], false)), func(v Value) Value {
			all := NewList()
			for _, key := range keys {
				all.items = append(all.items, key(v))
			}
			return all
		})
		return NewList(items...)
	}},
	{name: "dictsort", params: "v case_sensitive? by? reverse?", do: func(st *state, a []Value) Value {
		d, ok := a[0].(*Dict)
		if !ok {
			st.mustDefined(a[0])
			st.fail("TypeError: '%s' object has no items", typeName(a[0]))
		}
		by := map[string]int64{"key": 0, "value": 1}
		which, ok := by[st.str(given(a[2], own("key"))).s]
		if !ok {
			st.fail("you can only sort by either \"key\" or \"value\"")
		}
		items := st.pairs(d)
		st.sort(items, truth(given(a[3], false)), st.folded(func(v Value) Value { return v.(*List).items[which] }, truth(given(a[1], false))))
		return NewList(items...)
	}},
	{name: "unique", params: "v case_sensitive? attribute?", do: func(st *state, a []Value) Value {
		key := st.folded(st.getter(given(a[2], nil), nil), truth(given(a[1], false)))
		seen := map[dictKey]bool{}
		var out []Value
		for v := range st.each(a[0]) {
			if k := st.key(key(v)); !seen[k] {
				seen[k] = true
				out = append(out, v)
			}
		}
		return generator(out)
	}},
	{name: "min", params: "v case_sensitive? attribute?", do: func(st *state, a []Value) Value { return st.extreme(a, -1) }},
	{name: "max", params: "v case_sensitive? attribute?", do: func(st *state, a []Value) Value { return st.extreme(a, 1) }},
	{name: "sum", params: "v attribute? start?", do: func(st *state, a []Value) Value {
		get := st.getter(given(a[1], nil), nil)
		total := given(a[2], int64(0))
		for v := range st.each(a[0]) {
			total = st.arithmetic("+", total, get(v))
		}
		return total
	}},
	{name: "batch", params: "v linecount fill_with?", do: func(st *state, a []Value) Value {
		n := int(st.intArg(a[1]))
		if n < 1 {
			st.fail("ValueError: a batch must have at least one item")
		}
		var out []Value
		for group := range slices.Chunk(st.list(a[0]), n) {
			group = slices.Clone(group)
			if fill := given(a[2], nil); fill != nil {
				st.spend(max(0, n-len(group)))
				for len(group) < n {
					group = append(group, fill)
				}
			}
			out = append(out, NewList(group...))
		}
		return generator(out)
	}},
	{name: "slice", params: "v slices fill_with?", do: sliceFilter},
	{name: "groupby", params: "v attribute default? case_sensitive?", do: func(st *state, a []Value) Value {
		key := st.getter(a[1], given(a[2], nil))
		fold := st.folded(key, truth(given(a[3], false)))
		items := slices.Clone(st.list(a[0]))
		st.sort(items, false, fold)
		out := NewList()
		for i, v := range items {
			if i == 0 || !st.equal(fold(items[i-1]), fold(v)) {
				out.items = append(out.items, tuple(key(v), NewList()))
			}
			group := out.items[len(out.items)-1].(*List).items[1].(*List)
			group.items = append(group.items, v)
		}
		return out
	}},
	{name: "map", raw: func(st *state, a *args) Value {
		apply := st.mapping(a)
		var out []Value
		for v := range st.eachOf(a.plain[0]) {
			out = append(out, apply(v))
		}
		return generator(out)
	}},
	{name: "select", raw: func(st *state, a *args) Value { return st.choose(a, false, true) }},
	{name: "reject", raw: func(st *state, a *args) Value { return st.choose(a, false, false) }},
	{name: "selectattr", raw: func(st *state, a *args) Value { return st.choose(a, true, true) }},
	{name: "rejectattr", raw: func(st *state, a *args) Value { return st.choose(a, true, false) }},
}

// sliceFilter deals the items into a number of lists, the first ones longer.
func sliceFilter(st *state, a []Value) Value {
	items, n := st.list(a[0]), int(st.intArg(a[1]))
	if n < 1 {
		st.fail("ValueError: there must be at least one slice")
	}
	st.spend(n)
	var out []Value
	at := 0
	for i := range n {
		size := len(items) / n
		long := i < len(items)%n
		if long {
			size++
		}
		group := slices.Clone(items[at : at+size])
		at += size
		if fill := given(a[2], nil); fill != nil && !long && len(items)%n > 0 {
			group = append(group, fill)
		}
		out = append(out, NewList(group...))
	}
	return generator(out)
}

func (st *state) pairs(d *Dict) []Value {
	st.spend(d.Len())
	out := make([]Value, d.Len())
	for i := range out {
		out[i] = d.pair(i)
	}
	return out
}

// attributes splits what sort takes: several attributes with commas between.
func attributes(v Value) []Value {
	s, ok := v.(Str)
	if !ok {
		return []Value{v}
	}
	var out []Value
	for part := range strings.SplitSeq(s.s, ",") {
		out = append(out, own(part))
	}
	return out
}

// getter reads an attribute such as a.b.0 of a value; without one, the value.
// An undefined step gives the default, if there is one.
func (st *state) getter(attribute, otherwise Value) func(Value) Value {
	var parts []Value
	switch path := attribute.(type) {
	case nil:
	case Str:
		for part := range strings.SplitSeq(path.s, ".") {
			if i, err := strconv.ParseInt(part, 10, 64); err == nil && i >= 0 {
				parts = append(parts, i)
			} else {
				parts = append(parts, own(part))
			}
		}
	default:
		parts = []Value{path}
	}
	return func(v Value) Value {
		for _, p := range parts {
			st.step()
			v = st.subscript(v, p)
			if _, none := v.(*undefined); none && otherwise != nil {
				v = otherwise
			}
		}
		return v
	}
}

// folded makes a key ignore case, unless case matters.
func (st *state) folded(key func(Value) Value, sensitive bool) func(Value) Value {
	if sensitive {
		return key
	}
	return func(v Value) Value {
		k := key(v)
		if s, ok := k.(Str); ok {
			return st.mapped(s, strings.ToLower)
		}
		return k
	}
}

// sort orders items by a key, stably.
func (st *state) sort(items []Value, reverse bool, key func(Value) Value) {
	type keyed struct{ v, key Value }
	all := make([]keyed, len(items))
	for i, v := range items {
		all[i] = keyed{v, key(v)}
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		st.step()
		c := st.compare("<", a.key, b.key)
		if reverse {
			return -c
		}
		return c
	})
	for i := range all {
		items[i] = all[i].v
	}
}

// extreme is min and max: the first of the items that beats all others.
func (st *state) extreme(a []Value, want int) Value {
	key := st.folded(st.getter(given(a[2], nil), nil), truth(given(a[1], false)))
	var best, bestKey Value = &undefined{"No aggregated item, sequence was empty."}, absent{}
	for v := range st.each(a[0]) {
		k := key(v)
		if _, none := bestKey.(absent); none || st.compare(map[int]string{-1: "<", 1: ">"}[want], k, bestKey) == want {
			best, bestKey = v, k
		}
	}
	return best
}

// eachOf is each for filters to which whatever is false is empty.
func (st *state) eachOf(v Value) iter.Seq[Value] {
	if !truth(v) {
		v = NewList()
	}
	return st.each(v)
}

// mapping is what map applies: an attribute or a filter.
func (st *state) mapping(a *args) func(Value) Value {
	if len(a.plain) == 1 {
		if attribute, ok := a.take("attribute"); ok {
			otherwise, _ := a.take("default")
			if len(a.names) > 0 {
				st.fail("unexpected keyword argument '%s'", a.names[0].s)
			}
			return st.getter(attribute, otherwise)
		}
		st.fail("map requires a filter argument")
	}
	name := st.onlyStr(a.plain[1], "the name of a filter").s
	rest := &args{a.plain[2:], a.names, a.named}
	return func(v Value) Value { return st.filter(name, v, rest) }
}

// choose is select and reject: what a test holds for, or the value itself.
func (st *state) choose(a *args, byAttribute, want bool) Value {
	rest := a.plain[1:]
	get := func(v Value) Value { return v }
	if byAttribute {
		if len(rest) == 0 {
			st.fail("missing parameter for attribute name")
		}
		get = st.getter(rest[0], nil)
		rest = rest[1:]
	}
	holds := truth
	if len(rest) > 0 {
		name := st.onlyStr(rest[0], "the name of a test").s
		with := &args{rest[1:], a.names, a.named}
		holds = func(v Value) bool { return st.test(name, v, with) }
	}
	var out []Value
	for v := range st.eachOf(a.plain[0]) {
		if holds(get(v)) == want {
			out = append(out, v)
		}
	}
	return generator(out)
}
