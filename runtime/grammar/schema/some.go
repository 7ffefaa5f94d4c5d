package schema

import "github.com/zincc-dev/zincc/runtime/grammar/lex"

// all are the bits of what some members must be.
func (d *objectDef) all() uint8 { return 1<<len(d.some) - 1 }

// known says whether names that schemas know can be all that some members must be.
func (d *objectDef) known() bool {
	for _, s := range d.some {
		has := false
		for _, name := range d.names {
			has = has || d.c.has(s, name)
		}
		if !has {
			return false
		}
	}
	return true
}

// ways calls f with the unions that the value of a member may be of, and what some ask for that is done with it, until
// f returns false: of name i, or i < 0 of another one that matches patterns. done is what has been before.
func (d *objectDef) ways(i int, matches []bool, done uint8, f func(u *union, done uint8) bool) {
	nodes := []*node(nil)
	if i >= 0 {
		nodes = d.c.nodesOf(d.rules, d.names[i])
	} else {
		nodes = d.otherNodes(matches)
	}
	var choose func(k int, nodes []*node, done uint8) bool
	choose = func(k int, nodes []*node, done uint8) bool {
		if k == len(d.some) {
			return f(d.c.union(nodes...), done)
		}
		if done>>k&1 == 0 && (i >= 0 && d.c.has(d.some[k], d.names[i]) || i < 0 && matches[d.ruled+k]) &&
			!choose(k+1, append(nodes[:len(nodes):len(nodes)], d.some[k].node), done|1<<k) {
			return false
		}
		return choose(k+1, nodes, done)
	}
	choose(0, nodes, done)
}

// next calls f with the unions of the value of a member that may come next, and the object with it, until f returns
// false.
func (s *objectState) next(i int, matches []bool, f func(u *union, next *objectState) bool) {
	d := s.def
	seen := s.seen
	if i >= 0 {
		seen = seen.with(i)
	}
	if len(d.some) == 0 {
		u := (*union)(nil)
		if i >= 0 {
			u = d.values[i]
		} else {
			u = d.c.valueUnion(d, matches)
		}
		f(u, d.state(seen, s.n+1, 0))
		return
	}
	d.ways(i, matches, s.done, func(u *union, done uint8) bool {
		if next := d.state(seen, s.n+1, done); d.c.inhabited(u) && next.completes() {
			return f(u, next)
		}
		return true
	})
}

// leads says whether an object with one more member can become whole.
func (s *objectState) leads(i int, matches []bool) (ok bool) {
	d := s.def
	if len(d.some) == 0 {
		seen := s.seen
		if i >= 0 {
			seen = seen.with(i)
		}
		return d.state(seen, s.n+1, 0).completes()
	}
	if i < 0 && matches == nil {
		return true // by kind
	}
	s.next(i, matches, func(*union, *objectState) bool { ok = true; return false })
	return ok
}

// satisfy says whether an object of n members can become whole, of whose names those that schemas know are seen, and
// that has done a part of what some ask for; and whether that is sure, as compiler.search does. It tries which members
// do the rest.
func (d *objectDef) satisfy(seen bits, n int, done uint8, has func(u *union) (ok, sure bool)) (ok, sure bool) {
	f := &fillers{objectDef: d, seen: seen, n: n, has: has, sure: true, kinds: d.kinds()}
	f.others = make([]int, len(f.kinds))
	if !d.closed {
		for _, k := range f.kinds {
			if f.there(k.value) {
				f.left = min(lex.Many, f.left+d.c.pool.Words(k.names))
			}
		}
		f.left = min(lex.Many, max(0, f.left-(n-seen.count())))
	}
	return f.try("", 0, done), f.sure
}

// fillers looks for members that make some members what they must be.
type fillers struct {
	*objectDef
	seen   bits
	n      int // members that are there
	has    func(u *union) (ok, sure bool)
	sure   bool // nothing was left open
	kinds  []nameKind
	others []int // of each kind, how many names do something
	left   int   // how many members of other names there may be
	tries  int
}

// there reports whether u has a value.
func (f *fillers) there(u *union) bool {
	is, certain := f.has(u)
	f.sure = f.sure && certain
	return is
}

// try looks for more members than those used, and more of other names, until all that must be is done.
func (f *fillers) try(used bits, more int, done uint8) bool {
	if f.tries++; f.tries > maxFills {
		panic(&lex.LimitError{What: "members of which some must be valid by other schemas"})
	}
	if done == f.all() {
		return f.fits(used, more)
	}
	if f.max >= 0 && f.n+more+used.count() >= f.max {
		return false
	}
	found := false
	for i := range f.names {
		if found || f.seen.has(i) || used.has(i) || !f.named[i] {
			continue
		}
		f.ways(i, nil, done, func(u *union, now uint8) bool {
			found = now != done && f.there(u) && f.try(used.with(i), more, now)
			return !found
		})
	}
	for j, k := range f.kinds {
		if found || f.closed || more >= f.left || f.others[j] >= f.c.pool.Words(k.names) {
			continue
		}
		f.others[j]++
		f.ways(-1, k.matches, done, func(u *union, now uint8) bool {
			found = now != done && f.there(u) && f.try(used, more+1, now)
			return !found
		})
		f.others[j]--
	}
	return found
}

// fits reports whether the object can end with these members and those that they and the schema need.
func (f *fillers) fits(used bits, more int) bool {
	need := f.closure(joined(joined(f.must, f.seen), used))
	size := f.n + more
	for i := range f.names {
		if need.has(i) && !f.seen.has(i) {
			size++
			if !f.named[i] || !used.has(i) && !f.there(f.values[i]) {
				return false
			}
		}
	}
	return f.fill(need, size, max(0, f.left-more), func(i int) bool { return f.named[i] && f.there(f.values[i]) })
}
