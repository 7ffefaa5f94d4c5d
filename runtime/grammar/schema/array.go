package schema

import (
	"encoding/binary"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
	"github.com/zincc-dev/zincc/runtime/grammar/machine"
)

// arrayDef is what holds of the arrays of an alt.
type arrayDef struct {
	c        *compiler
	prefix   []*union
	rest     *union
	nodes    [][]*node // of the elements of prefix, and of the rest
	some     []some
	min, max int // max < 0: without end
	repeats  repeats
	none     bool // there are none
	last     int  // elements from here on are alike
	symbols  map[arrayAt]*machine.Symbol
	ends     map[arrayAt]bool // whether an array can become whole
}

// arrayAt is an array of some elements: how many there are, and how many of each schema's, as far as they count.
type arrayAt struct {
	n      int
	counts string
}

// array returns the arrays of an alt.
func (c *compiler) array(u *union, a *alt) *arrayDef {
	if d := u.arrays[a]; d != nil {
		return d
	}
	d := &arrayDef{c: c, max: -1, symbols: map[arrayAt]*machine.Symbol{}, ends: map[arrayAt]bool{}}
	u.arrays[a] = d
	longest := 0
	for _, r := range a.arr {
		longest = max(longest, len(r.prefix))
		d.min = max(d.min, r.min)
		if r.max >= 0 && (d.max < 0 || r.max < d.max) {
			d.max = r.max
		}
		d.some = append(d.some, r.some...)
		d.none = d.none || d.repeats != anyRepeats && r.repeats != anyRepeats && r.repeats != d.repeats
		d.repeats = max(d.repeats, r.repeats)
		for _, s := range r.some {
			d.last = max(d.last, s.from)
			if s.min > 1<<16 || s.max > 1<<16 {
				panic(&lex.LimitError{What: "more than 65536 elements that are counted"})
			}
		}
	}
	if d.max >= 0 {
		longest = min(longest, d.max)
	}
	at := func(i int) []*node {
		var nodes []*node
		for _, r := range a.arr {
			switch {
			case i < len(r.prefix):
				nodes = append(nodes, r.prefix[i])
			case r.rest != nil:
				nodes = append(nodes, r.rest)
			}
		}
		return nodes
	}
	for i := range longest {
		d.nodes = append(d.nodes, at(i))
		d.prefix = append(d.prefix, c.union(d.nodes[i]...))
	}
	d.nodes = append(d.nodes, at(1<<40))
	d.rest = c.union(d.nodes[longest]...)
	d.last = max(d.last, len(d.prefix))
	if d.repeats != anyRepeats {
		d.compare(u)
	}
	return d
}

func (d *arrayDef) element(i int) *union {
	if i < len(d.prefix) {
		return d.prefix[i]
	}
	return d.rest
}

// unions are those of all elements, so that they are looked at before the first token.
func (d *arrayDef) unions() []*union {
	list := append([]*union{d.rest}, d.prefix...)
	if len(d.some) == 0 {
		return list
	}
	for i := 0; i <= d.last; i++ {
		d.each(arrayAt{i, string(make([]byte, 4*len(d.some)))}, func(u *union, _ arrayAt) bool {
			list = append(list, u)
			return true
		})
	}
	return list
}

// maxSome is how many schemas count the elements of an array.
const maxSome = 8

// each calls f with the ways to go on with an element: its union, and the array with it, until f returns false.
func (d *arrayDef) each(at arrayAt, f func(u *union, next arrayAt) bool) {
	if d.max >= 0 && at.n >= d.max {
		return
	}
	if len(d.some) == 0 {
		f(d.element(at.n), d.capped(arrayAt{at.n + 1, ""}))
		return
	}
	if len(d.some) > maxSome {
		panic(&lex.LimitError{What: "more than 8 schemas that count elements"})
	}
	nodes := d.nodes[min(at.n, len(d.prefix))]
	counts := []byte(at.counts)
	var choose func(i int, nodes []*node) bool
	choose = func(i int, nodes []*node) bool {
		if i == len(d.some) {
			return f(d.c.union(nodes...), d.capped(arrayAt{at.n + 1, string(counts)}))
		}
		s := &d.some[i]
		here := counts[4*i : 4*i+4]
		n := int(binary.LittleEndian.Uint32(here))
		switch {
		case at.n < s.from, s.max < 0 && n >= s.min:
			return choose(i+1, nodes)
		}
		if s.max < 0 || n < s.max {
			binary.LittleEndian.PutUint32(here, uint32(n+1))
			if !choose(i+1, append(nodes[:len(nodes):len(nodes)], s.node)) {
				return false
			}
			binary.LittleEndian.PutUint32(here, uint32(n))
		}
		if s.max >= 0 {
			nodes = append(nodes[:len(nodes):len(nodes)], s.not)
		}
		return choose(i+1, nodes)
	}
	choose(0, nodes)
}

// capped counts elements no farther than they count.
func (d *arrayDef) capped(at arrayAt) arrayAt {
	if d.max < 0 {
		at.n = min(at.n, max(d.min, d.last+1))
	}
	return at
}

// whole says whether an array may end.
func (d *arrayDef) whole(at arrayAt) bool {
	for i, s := range d.some {
		if int(binary.LittleEndian.Uint32([]byte(at.counts[4*i:]))) < s.min {
			return false
		}
	}
	return at.n >= d.min
}

// begin is an array without elements.
func (d *arrayDef) begin() arrayAt { return arrayAt{0, string(make([]byte, 4*len(d.some)))} }

// reaches says whether an array can become whole, with elements that has says there are; and whether that is sure, as
// compiler.search does.
func (d *arrayDef) reaches(from arrayAt, has func(u *union) (ok, sure bool)) (ok, sure bool) {
	if d.none || d.max >= 0 && d.min > d.max {
		return false, true
	}
	sure = true
	if len(d.some) == 0 { // elements behind those that differ by their place are alike
		for i := from.n; i < min(d.min, len(d.prefix)+1); i++ {
			there, certain := has(d.element(i))
			if sure = sure && certain; !there {
				return false, certain
			}
		}
		return true, true
	}
	seen := map[arrayAt]bool{from: true}
	queue := []arrayAt{from}
	for len(queue) > 0 && !ok {
		at := queue[0]
		queue = queue[1:]
		if d.whole(at) {
			return true, true
		}
		d.each(at, func(u *union, next arrayAt) bool {
			if seen[next] {
				return true
			}
			there, certain := has(u)
			sure = sure && certain
			if there {
				d.c.pool.Spend(1)
				seen[next] = true
				queue = append(queue, next)
			}
			return true
		})
	}
	return false, sure
}

// completes says whether an array can become whole.
func (d *arrayDef) completes(at arrayAt) bool {
	ok, known := d.ends[at]
	if !known {
		ok, _ = d.reaches(at, func(u *union) (bool, bool) { return d.c.inhabited(u), true })
		d.ends[at] = ok
	}
	return ok
}

// behind returns the symbol of what follows some elements.
func (d *arrayDef) behind(at arrayAt) *machine.Symbol {
	s := d.symbols[at]
	if s == nil {
		elements := machine.AnyElements
		if d.repeats == differ {
			elements = machine.DistinctElements
		}
		s = machine.Behind(elements, func() [][]machine.Item {
			w := d.c.syntax
			var out [][]machine.Item
			comma, end := w.comma, w.endArray
			switch {
			case at.n == 0:
				end = w.endEmptyArray
			case d.repeats == differ:
				comma, end = w.differs, w.endDiffers
			case d.repeats == equalOnes:
				end = w.endEquals
			}
			if d.whole(at) {
				out = append(out, []machine.Item{end})
			}
			d.each(at, func(u *union, next arrayAt) bool {
				if d.c.inhabited(u) && d.completes(next) {
					list := []machine.Item{w.value(u), machine.Of(d.behind(next))}
					if at.n > 0 {
						list = append([]machine.Item{comma}, list...)
					}
					out = append(out, list)
				}
				return true
			})
			return out
		}).Ways(func() int {
			if at.n == d.max || len(d.some) > 0 || !d.completes(d.capped(arrayAt{at.n + 1, at.counts})) {
				return 1
			}
			n, _ := d.c.values(d.element(at.n), map[*union]bool{})
			if n < lex.Many && d.repeats == differ {
				return max(0, n-at.n)
			}
			return n
		})
		d.symbols[at] = s
	}
	return s
}
