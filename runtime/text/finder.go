package text

import (
	"maps"
	"slices"
	"strings"
)

// A finder tells which of many words a text has. It looks at the text once for each byte that some begin with, of which
// special tokens have few.
type finder struct {
	words map[string]int    // their numbers
	first map[byte][]length // by how they begin
}

// length is one that words have which begin with the same byte, and what of them comes second: of most, one of few.
type length struct {
	bytes  int
	second [256]bool
}

func newFinder(n int, word func(i int) string) *finder {
	f := &finder{words: make(map[string]int, n), first: map[byte][]length{}}
	for i := range n {
		w := word(i)
		f.words[w] = i
		list := f.first[w[0]]
		k := slices.IndexFunc(list, func(l length) bool { return l.bytes == len(w) })
		if k < 0 {
			k, list = len(list), append(list, length{bytes: len(w)})
			f.first[w[0]] = list
		}
		if len(w) > 1 {
			list[k].second[w[1]] = true
		}
	}
	return f
}

// find lists the numbers of the words that a text has, ascending.
func (f *finder) find(s string) []int {
	found := map[int]bool{}
	for first, lengths := range f.first {
		for at := 0; ; at++ {
			next := strings.IndexByte(s[at:], first)
			if next < 0 {
				break
			}
			at += next
			for i := range lengths {
				l := &lengths[i]
				if end := at + l.bytes; end <= len(s) && (l.bytes == 1 || l.second[s[at+1]]) {
					if n, ok := f.words[s[at:end]]; ok {
						found[n] = true
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
