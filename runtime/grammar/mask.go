package grammar

import "math/bits"

// Mask is a set of tokens: token id is bit id&63 of word id>>6.
type Mask []uint64

func words(n int) int { return (n + 63) / 64 }

// NewMask returns an empty set of n tokens.
func NewMask(n int) Mask { return make(Mask, words(n)) }

// Has says whether a token is in the set.
func (m Mask) Has(id int32) bool {
	return id >= 0 && int(id>>6) < len(m) && m[id>>6]>>(id&63)&1 != 0
}

func (m Mask) set(id int32)   { m[id>>6] |= 1 << (id & 63) }
func (m Mask) clear(id int32) { m[id>>6] &^= 1 << (id & 63) }

// Count returns how many tokens are in the set.
func (m Mask) Count() int {
	n := 0
	for _, w := range m {
		n += bits.OnesCount64(w)
	}
	return n
}

// Only returns the token of a set of one; false for other sets.
func (m Mask) Only() (int32, bool) {
	at := -1
	for i, w := range m {
		if w == 0 {
			continue
		}
		if at >= 0 || w&(w-1) != 0 {
			return 0, false
		}
		at = i
	}
	if at < 0 {
		return 0, false
	}
	return int32(at*64 + bits.TrailingZeros64(m[at])), true
}

// each calls f with the tokens of a set, which f may take out.
func (m Mask) each(f func(id int32)) {
	for i, w := range m {
		for ; w != 0; w &= w - 1 {
			f(int32(i*64 + bits.TrailingZeros64(w)))
		}
	}
}
