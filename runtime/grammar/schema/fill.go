package schema

import "github.com/zincc-dev/zincc/runtime/grammar/lex"

// maxFills bounds how many sets of names fill tries.
const maxFills = 1 << 14

// fill says whether an object of n members, with those that its names need, can grow to as many as it must have: by
// names that no schema knows, of which so many are left, and by known ones that fit, each with those that it needs.
func (d *objectDef) fill(need bits, n, left int, fits func(i int) bool) bool {
	if d.max >= 0 && (n > d.max || d.min > d.max) {
		return false
	}
	if n+left >= d.min {
		return true
	}
	good, rest := make([]bool, len(d.names)), 0
	for i := range d.names {
		if !need.has(i) && fits(i) {
			good[i] = true
			rest++
		}
	}
	tries := 0
	var grow func(from int, need bits, n, rest int) bool
	grow = func(from int, need bits, n, rest int) bool {
		for i := from; i < len(d.names) && n+left+rest >= d.min; i++ {
			if need.has(i) || !good[i] {
				continue
			}
			more := d.closure(need.with(i))
			size, whole := n, true
			for j := range d.names {
				if more.has(j) && !need.has(j) {
					size++
					whole = whole && good[j]
				}
			}
			if !whole || d.max >= 0 && size > d.max {
				rest--
				good[i] = false
				defer func() { good[i] = true }()
				continue
			}
			if size+left >= d.min {
				return true
			}
			if tries++; tries > maxFills {
				panic(&lex.LimitError{What: "names that need others, and bounds of how many there are"})
			}
			if grow(i+1, more, size, rest-(size-n)) {
				return true
			}
			if d.max < 0 { // more names would have done no harm
				return false
			}
			rest--
			good[i] = false
			defer func() { good[i] = true }()
		}
		return false
	}
	return grow(0, need, n, rest)
}
