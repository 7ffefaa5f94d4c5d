package schema

import mathbits "math/bits"

// bits is a set of names.
type bits string

func (b bits) has(i int) bool { return i>>3 < len(b) && b[i>>3]>>(i&7)&1 != 0 }

func (b bits) with(i int) bits {
	out := make([]byte, max(len(b), i>>3+1))
	copy(out, b)
	out[i>>3] |= 1 << (i & 7)
	return bits(out)
}

func (b bits) count() (n int) {
	for i := range len(b) {
		n += mathbits.OnesCount8(b[i])
	}
	return n
}

// joined is the union of two sets.
func joined(a, b bits) bits {
	out := make([]byte, max(len(a), len(b)))
	copy(out, a)
	for i := range len(b) {
		out[i] |= b[i]
	}
	return bits(out)
}
