package grammar

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
	"github.com/zincc-dev/zincc/runtime/text"
)

// Mark stands in front of the text of a control token. It is no byte of any text, so a control token is never
// taken for its text.
const Mark = lex.ControlMark

// Vocabulary holds the tables of a model's tokens that masks are made with. It is safe for use by several goroutines.
type Vocabulary struct {
	pieces    []string
	ends      []int32 // tokens that end an answer
	twins     []int32 // the next token with the same text, -1: none
	unwritten Mask    // tokens that cannot come
	all       []trie
	slices    []slice // by class
	quoted    []int32 // tokens with two quotes and more
	reopen    []int32 // of these, those that write a name, or begin one, behind the end of a string
	openers   []opener
	quotes    quotes
	// In code points: the longest token, and of quotes the longest one or head.
	longest, marked int
	anyText         [lex.Kinds]sync.Once
	inAnyText       [lex.Kinds]*inside
	baseOfText      [lex.Kinds]Mask // plain text, and what inAnyText has inside

	kept kept

	bracketsOnce sync.Once
	brackets     []int32
}

// opener are the tokens with one quote and text behind it, by what comes up to the quote.
type opener struct {
	head   string
	tokens []int32
}

func openersOf(order []int32, pieces []string) (list []opener) {
	index := map[string]int{}
	for _, id := range order {
		p := pieces[id]
		at := strings.IndexByte(p, '"')
		if at < 0 || at == len(p)-1 || strings.Count(p, `"`) > 1 {
			continue
		}
		i, ok := index[p[:at+1]]
		if !ok {
			i = len(list)
			index[p[:at+1]] = i
			list = append(list, opener{head: p[:at+1]})
		}
		list[i].tokens = append(list[i].tokens, id)
	}
	return list
}

// slice holds the tokens whose texts are wholly of a class. Where any such text may follow, sets of them are a part of
// the mask, and only the others are walked.
type slice struct {
	sets   []Mask    // of the tokens of at most radii[i] code points
	longer []trie    // of those of more than radii[i-1], and at most radii[i]
	length [][]int32 // those of i code points
	rest   trie      // of the larger class those that are not wholly of this one
}

// radii are those of the sets; the last takes all.
var radii = []int{4, 10, 30, maxPiece}

// trie holds tokens by their bytes.
type trie struct {
	nodes []node     // in preorder
	roots [256]int32 // by first byte, -1: none
}

type node struct {
	end   int32 // behind the last node below this one
	token int32 // -1: none
	depth uint16
	b     byte
}

// maxPiece is the longest token that can be chosen.
const maxPiece = 1 << 12

// NewVocabulary makes the tables. pieces are the texts of the tokens by id: empty for those that have none, with a Mark
// in front for control tokens. ends are the tokens that end an answer.
func NewVocabulary(pieces []string, ends []int32) *Vocabulary {
	v := bare(pieces, ends)
	v.twins, v.unwritten = make([]int32, len(pieces)), NewMask(len(pieces))
	var order []int32
	for id, p := range pieces {
		v.twins[id] = -1
		if i := strings.LastIndexByte(p, Mark); p == "" || len(p) > maxPiece || i > 0 || p == string([]byte{Mark}) {
			v.unwritten.set(int32(id))
			continue
		}
		order = append(order, int32(id))
		if strings.Count(p, `"`) > 1 {
			v.quoted = append(v.quoted, int32(id))
			if strings.Count(p, `"`) > 2 || !strings.HasSuffix(p, `"`) {
				v.reopen = append(v.reopen, int32(id))
			}
		}
	}
	v.finish()
	v.openers = openersOf(order, v.pieces)
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(strings.Compare(v.pieces[a], v.pieces[b]), cmp.Compare(a, b))
	})
	single := order[:0]
	for _, id := range order {
		if n := len(single); n > 0 && v.pieces[single[n-1]] == v.pieces[id] {
			v.twins[id] = v.twins[single[n-1]]
			v.twins[single[n-1]] = id
			continue
		}
		single = append(single, id)
	}
	v.slices = []slice{v.slice(lex.Plain, single)}
	plain := slices.DeleteFunc(slices.Clone(single), func(id int32) bool { return !v.slices[0].sets[len(radii)-1].Has(id) })
	v.slices = append(v.slices, v.slice(lex.Word, plain))
	v.quotes = v.newQuotes(single)
	for _, id := range single {
		v.longest = max(v.longest, utf8.RuneCountInString(v.pieces[id]))
	}
	v.finish()
	return v
}

// bare is a vocabulary without tables.
func bare(pieces []string, ends []int32) *Vocabulary {
	return &Vocabulary{pieces: slices.Clone(pieces), ends: slices.Clone(ends)}
}

// finish makes what follows from the tables.
func (v *Vocabulary) finish() {
	v.unwritten.each(func(id int32) {
		if int(id) < len(v.pieces) {
			v.pieces[id] = ""
		}
	})
	if len(v.slices) > 0 {
		v.all = append([]trie{v.slices[lex.Plain].rest}, v.slices[lex.Plain].longer...)
	}
}

// slice makes the tables of a class for tokens that are sorted.
func (v *Vocabulary) slice(c lex.Class, order []int32) slice {
	s := slice{sets: make([]Mask, len(radii))}
	lists := make([][]int32, len(radii)+1)
	for i := range radii {
		s.sets[i] = NewMask(len(v.pieces))
	}
	for _, id := range order {
		n := classLength(v.pieces[id], c)
		if n == 0 {
			lists[len(radii)] = append(lists[len(radii)], id)
			continue
		}
		for len(s.length) <= n {
			s.length = append(s.length, nil)
		}
		s.length[n] = append(s.length[n], id)
		at, _ := slices.BinarySearch(radii, n)
		lists[at] = append(lists[at], id)
		for i := at; i < len(radii); i++ {
			v.add(s.sets[i], id)
		}
	}
	for _, list := range lists[:len(radii)] {
		s.longer = append(s.longer, trieOf(list, v.pieces))
	}
	s.rest = trieOf(lists[len(radii)], v.pieces)
	return s
}

// quotes are the tokens that may stand in a JSON string and are no plain text. A token that ends one has a head, up to
// the quote, and a tail behind it.
type quotes struct {
	inner  trie      // those without an end
	heads  trie      // a token of it is an index of closing
	texts  []string  // the heads
	closes []closing // by head
	tails  trie      // a token of it is the number of a tail
	bare   bool      // tail 0 is nothing, which is not in the trie
}

// closing are the tokens with a head.
type closing []closed

type closed struct{ id, tail int32 }

func (v *Vocabulary) newQuotes(order []int32) (q quotes) {
	var inner []int32
	var heads, tails []string
	ends := map[int32]int{}
	for _, id := range order {
		p := v.pieces[id]
		first := strings.IndexFunc(p, func(r rune) bool { return !lex.Plain.Has(r) })
		if first >= 0 && p[first] != '"' && p[first] != '\\' || classLength(p, lex.Plain) > 0 {
			continue
		}
		at := closingQuote(p)
		if at < 0 {
			inner = append(inner, id)
			v.marked = max(v.marked, utf8.RuneCountInString(p))
			continue
		}
		ends[id] = at + 1
		v.marked = max(v.marked, at)
		heads, tails = append(heads, p[:at+1]), append(tails, p[at+1:])
	}
	heads, tails = sortedTexts(heads), sortedTexts(tails)
	q.inner, q.texts, q.closes = trieOf(inner, v.pieces), heads, make([]closing, len(heads))
	for _, id := range order {
		if at, ok := ends[id]; ok {
			head, _ := slices.BinarySearch(heads, v.pieces[id][:at])
			tail, _ := slices.BinarySearch(tails, v.pieces[id][at:])
			q.closes[head] = append(q.closes[head], closed{id, int32(tail)})
		}
	}
	q.heads = trieOf(numbers(0, len(heads)), heads)
	q.bare = len(tails) > 0 && tails[0] == ""
	from := 0
	if q.bare {
		from = 1
	}
	q.tails = trieOf(numbers(from, len(tails)), tails)
	return q
}

func sortedTexts(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// numbers are those from one to below another.
func numbers(from, to int) []int32 {
	var list []int32
	for ; from < to; from++ {
		list = append(list, int32(from))
	}
	return list
}

// closingQuote returns where the first quote stands that no backslash is in front of; negative: nowhere.
func closingQuote(s string) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// FromTokenizer returns the vocabulary of a tokenizer. n is how many logits the model has.
func FromTokenizer(tok *text.Tokenizer, n int, ends []int32) *Vocabulary {
	pieces := make([]string, n)
	for id := range pieces {
		switch visible, named := tok.Piece(int32(id), false), tok.Piece(int32(id), true); {
		case visible != "":
			pieces[id] = visible
		case named != "":
			pieces[id] = string([]byte{Mark}) + named
		}
	}
	return Kept(pieces, ends)
}

// classLength is the number of code points of a text of a class; 0 for other text.
func classLength(s string, c lex.Class) int {
	n := 0
	for i := 0; i < len(s); n++ {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || !c.Has(r) {
			return 0
		}
		i += size
	}
	return n
}

// add sets the bits of a token and of those with the same text.
func (v *Vocabulary) add(m Mask, id int32) {
	for ; id >= 0; id = v.twins[id] {
		m.set(id)
	}
}

// trieOf returns the trie of pieces that are sorted.
func trieOf(order []int32, pieces []string) trie {
	var t []node
	var open []int32 // nodes of the last token
	last := ""
	close := func(depth int) {
		for _, i := range slices.Backward(open[depth:]) {
			t[i].end = int32(len(t))
		}
		open = open[:depth]
	}
	for _, id := range order {
		p := pieces[id]
		same := 0
		for same < len(p) && same < len(last) && p[same] == last[same] {
			same++
		}
		close(same)
		for i := same; i < len(p); i++ {
			open = append(open, int32(len(t)))
			t = append(t, node{token: -1, depth: uint16(i + 1), b: p[i]})
		}
		t[len(t)-1].token = id
		last = p
	}
	close(0)
	out := trie{nodes: slices.Clip(t)}
	out.root()
	return out
}

// root finds the first nodes.
func (t *trie) root() {
	for b := range t.roots {
		t.roots[b] = -1
	}
	for i := int32(0); int(i) < len(t.nodes); i = t.nodes[i].end {
		t.roots[t.nodes[i].b] = i
	}
}

// Len is the number of tokens.
func (v *Vocabulary) Len() int { return len(v.pieces) }

// Piece returns the text of a token, with a Mark in front for control tokens; empty for tokens that cannot come.
func (v *Vocabulary) Piece(id int32) string { return v.pieces[id] }
