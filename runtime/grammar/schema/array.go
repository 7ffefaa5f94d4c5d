package schema

import (
	"github.com/zincc-dev/zincc/runtime/grammar/machine"
)

// arrayDef is what holds of the arrays of an alt.
type arrayDef struct {
	prefix   []*union
	rest     *union
	min, max int // max < 0: without end
	symbols  map[int]*machine.Symbol
}

// array returns the arrays of an alt.
func (c *compiler) array(u *union, a *alt) *arrayDef {
	if d := u.arrays[a]; d != nil {
		return d
	}
	d := &arrayDef{max: -1, symbols: map[int]*machine.Symbol{}}
	u.arrays[a] = d
	longest := 0
	for _, r := range a.arr {
		longest = max(longest, len(r.prefix))
		d.min = max(d.min, r.min)
		if r.max >= 0 && (d.max < 0 || r.max < d.max) {
			d.max = r.max
		}
	}
	if d.max >= 0 {
		longest = min(longest, d.max)
	}
	at := func(i int) *union {
		var nodes []*node
		for _, r := range a.arr {
			switch {
			case i < len(r.prefix):
				nodes = append(nodes, r.prefix[i])
			case r.rest != nil:
				nodes = append(nodes, r.rest)
			}
		}
		return c.union(nodes...)
	}
	for i := range longest {
		d.prefix = append(d.prefix, at(i))
	}
	d.rest = at(1 << 40)
	return d
}

func (d *arrayDef) element(i int) *union {
	if i < len(d.prefix) {
		return d.prefix[i]
	}
	return d.rest
}

// fits says whether there may be an element i.
func (c *compiler) fits(d *arrayDef, i int) bool {
	return (d.max < 0 || i < d.max) && c.inhabited(d.element(i))
}

// valid says whether arrays of these elements may be at all.
func (c *compiler) validArray(d *arrayDef) bool {
	if d.max >= 0 && d.min > d.max {
		return false
	}
	for i := 0; i < d.min && i <= len(d.prefix); i++ {
		if !c.fits(d, i) {
			return false
		}
	}
	return true
}

// behind returns the symbol of what follows i elements.
func (c *compiler) behind(d *arrayDef, i int) *machine.Symbol {
	key := i
	if d.max < 0 {
		key = min(i, max(d.min, len(d.prefix)+1))
	}
	s := d.symbols[key]
	if s == nil {
		s = machine.NewSymbol(func() [][]machine.Item {
			w := c.syntax
			var out [][]machine.Item
			open, end := w.comma, w.endArray
			if key == 0 {
				open, end = machine.Item{}, w.endEmptyArray
			}
			if key >= d.min {
				out = append(out, []machine.Item{end})
			}
			if c.fits(d, key) {
				list := []machine.Item{w.value(d.element(key)), machine.Of(c.behind(d, key+1))}
				if key > 0 {
					list = append([]machine.Item{open}, list...)
				}
				out = append(out, list)
			}
			return out
		})
		d.symbols[key] = s
	}
	return s
}
