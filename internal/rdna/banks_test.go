package rdna

import "testing"

// TestConflicts holds accesses whose lanes lie in banks as their strides say.
func TestConflicts(t *testing.T) {
	for _, c := range []struct {
		what         string
		at           func(l int) int // byte
		lanes, words int
		exec         uint64
		want         int64
	}{
		{"words one behind the other", func(l int) int { return 4 * l }, 32, 1, 1<<32 - 1, 0},
		{"bytes of words", func(l int) int { return l }, 32, 1, 1<<32 - 1, 0},
		{"one word", func(l int) int { return 128 }, 32, 1, 1<<32 - 1, 0},
		{"every second word", func(l int) int { return 8 * l }, 32, 1, 1<<32 - 1, 1},
		{"one bank", func(l int) int { return 128 * l }, 32, 1, 1<<32 - 1, 31},
		{"one bank, by turns two words", func(l int) int { return 128 * (l % 2) }, 32, 1, 1<<32 - 1, 1},
		{"one bank, in two passes", func(l int) int { return 128 * l }, 64, 1, ^uint64(0), 62},
		{"a column of rows of 33 words", func(l int) int { return 132 * l }, 32, 1, 1<<32 - 1, 0},
		{"four words each", func(l int) int { return 16 * l }, 32, 4, 1<<32 - 1, 0},
		{"four words each, of one bank", func(l int) int { return 128 * l }, 32, 4, 1<<32 - 1, 4 * 7},
		{"lanes that are off", func(l int) int { return 128 * l }, 32, 1, 3, 1},
	} {
		var where lanes
		for l := range c.lanes {
			where[l] = uint64(c.at(l))
		}
		if have := conflicts(&where, c.exec, c.lanes, c.words); have != c.want {
			t.Errorf("%s: %d cycles, want %d", c.what, have, c.want)
		}
	}
}
