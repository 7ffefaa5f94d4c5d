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
	merges  map[uint64]merge // by pairKey
	words   map[string]int32 // token of a whole word, if merges are to be ignored
}

// A symbol is a string that is a token, a side of a merge or its result.
type symbol struct {
	bytes string
	token int32 // -1: no token
}

// A merge makes one symbol of two; the lowest rank goes first.
type merge struct {
	rank   int32
	symbol int32
}

// pairKey is two symbols as one map key, which hashes faster than an array.
func pairKey(l, r int32) uint64 { return uint64(l)<<32 | uint64(r) }

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
	m := &bpe{pre: pre, merges: make(map[uint64]merge, len(merges))}
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
		if _, dup := m.merges[pairKey(l, r)]; !dup {
			m.merges[pairKey(l, r)] = merge{int32(rank), result}
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

func (m *bpe) encode(ids []int32, s string, _ bool, stop *cancel) []int32 {
	ids, _ = m.encodeMarked(ids, s, stop)
	return ids
}

// markEvery is how many bytes of a text are between two marks, at least.
const markEvery = 4096

// A mark is a place in a text from which all of it can be encoded that begins as far alike.
type mark struct {
	at   int // bytes before it
	ids  int // tokens of these
	seen int // bytes that texts begin alike with
}

// encodeMarked is encode with marks, in order; not of each vocabulary.
func (m *bpe) encodeMarked(ids []int32, s string, stop *cancel) ([]int32, []mark) {
	var marks []mark
	t := newRunes(s)
	w := merger{rule: m, stop: stop}
	start, before, marked := int32(0), len(ids), 0
	ends, seen := m.pre.split(t, stop)
	for i, end := range ends {
		if stop.now() {
			break
		}
		text := t.src[t.offs[start]:t.offs[end]]
		start = end
		if id, ok := m.words[text]; ok {
			ids = append(ids, id)
		} else {
			w.begin(text, len(text))
			for i := range len(text) {
				w.add(int32(i), int32(i)+1, int32(text[i]))
			}
			for n := range w.merged() {
				ids = m.appendSymbol(ids, m.symbols[n.symbol])
			}
		}
		if at := int(t.offs[end]); seen != nil && at-marked >= markEvery && int(seen[i]) < len(t.offs) && t.src == s {
			marks, marked = append(marks, mark{at, len(ids) - before, int(t.offs[seen[i]])}), at
		}
	}
	return ids, marks
}

// piece returns the bytes of a token. Code points that stand for no byte are
// spelled out as llama.cpp does, so that a broken vocabulary is seen.
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

// join returns the merge of two neighbours.
func (m *bpe) join(_ string, l, r node) (rank int32, symbol int32, ok bool) {
	mg, ok := m.merges[pairKey(l.symbol, r.symbol)]
	return mg.rank, mg.symbol, ok
}

// appendSymbol appends the token of s. A symbol that is none falls apart into
// the bytes that are written as themselves in the file and are tokens; others
// are dropped, as in llama.cpp.
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
