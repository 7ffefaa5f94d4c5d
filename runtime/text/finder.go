package text

import (
	"maps"
	"slices"
)

// A finder tells which of many words a text has. It is a trie of them: of most places the first byte says that no word
// begins there.
type finder struct {
	first [256]int32 // node of words that begin with this byte; 0: there are none
	nodes []finderNode
}

// finderNode is what some words begin with.
type finderNode struct {
	next  []finderEdge
	word  int32 // number of the one that this is, or -1
	words int32 // how many begin so
}

type finderEdge struct {
	byte byte
	to   int32
}

// newFinder makes a finder of n words, none of which is empty or comes twice.
func newFinder(n int, word func(i int) string) *finder {
	f := &finder{nodes: make([]finderNode, 1)}
	for i := range n {
		w := word(i)
		at := &f.first[w[0]]
		for j := 0; ; j++ {
			if *at == 0 {
				*at = int32(len(f.nodes))
				f.nodes = append(f.nodes, finderNode{word: -1})
			}
			node := &f.nodes[*at]
			if node.words++; j == len(w)-1 {
				node.word = int32(i)
				break
			}
			at = node.edge(w[j+1])
		}
	}
	return f
}

// edge is where the words go on that have this byte next; it adds an edge to none.
func (n *finderNode) edge(b byte) *int32 {
	i := slices.IndexFunc(n.next, func(e finderEdge) bool { return e.byte == b })
	if i < 0 {
		i, n.next = len(n.next), append(n.next, finderEdge{byte: b})
	}
	return &n.next[i].to
}

// find lists the numbers of the words that a text has where may says that they can stand, ascending.
func (f *finder) find(s string, may func(word, at int) bool) []int {
	found := map[int]bool{}
	var left []int32 // words that are not found, by node; nil: all
	var path []int32 // nodes from a place on
	for at := range len(s) {
		path = path[:0]
		for node := f.first[s[at]]; node > 0 && (left == nil || left[node] > 0); node = f.behind(node, s[at+len(path):]) {
			path = append(path, node)
			if n := int(f.nodes[node].word); n >= 0 && !found[n] && may(n, at) {
				if found[n] = true; left == nil {
					left = f.all()
				}
				for _, node := range path {
					left[node]--
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// behind is the node of the words that go on as a text does, 0 if there are none.
func (f *finder) behind(node int32, s string) int32 {
	if s != "" {
		for _, e := range f.nodes[node].next {
			if e.byte == s[0] {
				return e.to
			}
		}
	}
	return 0
}

// all is how many words there are, by node.
func (f *finder) all() (list []int32) {
	for i := range f.nodes {
		list = append(list, f.nodes[i].words)
	}
	return list
}
