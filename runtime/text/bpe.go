package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// bpe is byte-level byte pair encoding. Words are sequences of bytes; the file
// writes bytes as the 256 printable code points of byteRunes, which this type
// undoes once, when it reads the vocabulary.
type bpe struct {
	pre *preTokenizer
	// Symbols are the strings that merges work on. The first 256 are the
	// single bytes.
	symbols []symbol
	merges  map[[2]int32]merge
	words   map[string]int32 // token of a whole word, if merges are to be ignored
}

// A symbol is a string that is a token, a side of a merge or its result.
type symbol struct {
	bytes string
	token int32 // -1: no token
}

// A merge makes one symbol of two; the lowest rank goes first.
type merge struct {
	rank   int
	symbol int32
}

// byteRunes are the code points that stand for bytes in the file: printable
// Latin-1 for itself, the other bytes in order from U+0100 (the GPT-2 table).
var byteRunes, runeBytes = func() (r [256]rune, b map[rune]byte) {
	b = make(map[rune]byte, 256)
	next := rune(256)
	for i := range r {
		c := rune(i)
		if c < '!' || '~' < c && c < 0xA1 || c == 0xAD {
			c = next
			next++
		}
		r[i] = c
		b[c] = byte(i)
	}
	return r, b
}()

// bytesOf undoes the writing of bytes as code points.
func bytesOf(text string) (bytes string, ok bool) {
	b := make([]byte, 0, len(text))
	for _, r := range text {
		c, ok := runeBytes[r]
		if !ok {
			return "", false
		}
		b = append(b, c)
	}
	return string(b), true
}

func newBPE(byText map[string]int32, merges []string, pre *preTokenizer) *bpe {
	m := &bpe{pre: pre, merges: make(map[[2]int32]merge, len(merges))}
	index := make(map[string]int32, 256+len(merges))
	intern := func(text string) (int32, bool) {
		if i, ok := index[text]; ok {
			return i, true
		}
		bytes, ok := bytesOf(text)
		if !ok {
			return 0, false
		}
		tok, ok := byText[text]
		if !ok {
			tok = -1
		}
		i := int32(len(m.symbols))
		m.symbols = append(m.symbols, symbol{bytes, tok})
		index[text] = i
		return i, true
	}
	for _, r := range byteRunes {
		intern(string(r))
	}
	for rank, text := range merges {
		if text == "" {
			continue
		}
		// A space at the start belongs to the left side.
		at := strings.IndexByte(text[1:], ' ') + 1
		if at == 0 {
			continue
		}
		left, right := text[:at], text[at+1:]
		l, ok1 := intern(left)
		r, ok2 := intern(right)
		result, ok3 := intern(left + right)
		if !ok1 || !ok2 || !ok3 {
			continue // a side that no byte sequence can have
		}
		if _, dup := m.merges[[2]int32{l, r}]; !dup {
			m.merges[[2]int32{l, r}] = merge{rank, result}
		}
	}
	if pre.ignoreMerges {
		m.words = make(map[string]int32, len(byText))
		for text, id := range byText {
			if bytes, ok := bytesOf(text); ok {
				m.words[bytes] = id
			}
		}
	}
	return m
}

func (m *bpe) encode(ids []int32, s string, _ bool) []int32 {
	t := newRunes(s)
	var w word
	start := 0
	for _, end := range m.pre.split(t) {
		text := t.src[t.offs[start]:t.offs[end]]
		start = end
		if id, ok := m.words[text]; ok {
			ids = append(ids, id)
			continue
		}
		ids = w.encode(m, ids, text)
	}
	return ids
}

// piece returns the bytes of a token. Code points that stand for no byte are
// spelled out as the peer does, so that a broken vocabulary is seen.
func (m *bpe) piece(text string) string {
	if bytes, ok := bytesOf(text); ok {
		return bytes
	}
	var b strings.Builder
	for _, r := range text {
		if c, ok := runeBytes[r]; ok {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "[UNK_BYTE_0x%x%s]", string(r), text)
		}
	}
	return b.String()
}

// word merges the symbols of one word. The zero value is ready; a word may be
// reused, which saves its memory.
type word struct {
	nodes []node
	queue mergeQueue
}

// A node is a symbol in a list. Merging two makes the left one the result and
// takes the right one out.
type node struct {
	symbol     int32 // -1: merged into its left neighbour
	prev, next int32 // -1: none
}

func (w *word) encode(m *bpe, ids []int32, text string) []int32 {
	w.nodes = w.nodes[:0]
	w.queue = w.queue[:0]
	for i := range len(text) {
		w.nodes = append(w.nodes, node{int32(text[i]), int32(i - 1), int32(i + 1)})
	}
	w.nodes[len(text)-1].next = -1
	for i := 1; i < len(text); i++ {
		w.propose(m, int32(i-1), int32(i))
	}
	for len(w.queue) > 0 {
		c := w.queue.pop()
		l, r := &w.nodes[c.left], &w.nodes[c.right]
		if l.symbol != c.leftSymbol || r.symbol != c.rightSymbol {
			continue // one side has been merged since
		}
		l.symbol = c.result
		r.symbol = -1
		l.next = r.next
		if r.next >= 0 {
			w.nodes[r.next].prev = c.left
		}
		w.propose(m, l.prev, c.left)
		w.propose(m, c.left, l.next)
	}
	for i := int32(0); i >= 0; i = w.nodes[i].next {
		ids = m.appendSymbol(ids, m.symbols[w.nodes[i].symbol])
	}
	return ids
}

// propose queues the merge of two neighbours if there is one.
func (w *word) propose(m *bpe, left, right int32) {
	if left < 0 || right < 0 {
		return
	}
	l, r := w.nodes[left].symbol, w.nodes[right].symbol
	if mg, ok := m.merges[[2]int32{l, r}]; ok {
		w.queue.push(candidate{mg.rank, left, right, l, r, mg.symbol})
	}
}

// appendSymbol appends the token of s. A symbol that is none falls apart into
// the bytes that are written as themselves in the file and are tokens; others
// are dropped, as in the peer.
func (m *bpe) appendSymbol(ids []int32, s symbol) []int32 {
	if s.token >= 0 {
		return append(ids, s.token)
	}
	for i := range len(s.bytes) {
		c := s.bytes[i]
		if id := m.symbols[c].token; id >= 0 && byteRunes[c] < utf8.RuneSelf {
			ids = append(ids, id)
		}
	}
	return ids
}

// A candidate is a merge that was possible when it was queued.
type candidate struct {
	rank                    int
	left, right             int32 // nodes
	leftSymbol, rightSymbol int32
	result                  int32
}

// mergeQueue is a binary heap: the lowest rank first, then the leftmost.
type mergeQueue []candidate

func (q mergeQueue) less(i, j int) bool {
	return q[i].rank < q[j].rank || q[i].rank == q[j].rank && q[i].left < q[j].left
}

func (q *mergeQueue) push(c candidate) {
	*q = append(*q, c)
	h := *q
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (q *mergeQueue) pop() candidate {
	h := *q
	top := h[0]
	n := len(h) - 1
	h[0] = h[n]
	h = h[:n]
	*q = h
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < n && h.less(child, least) {
				least = child
			}
		}
		if least == i {
			return top
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
