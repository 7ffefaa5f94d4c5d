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
	pieces []string
	ends   []int32 // tokens that end an answer
	twins  []int32 // the next token with the same text, -1: none
	all    trie
	slices []slice // the one with the most tokens first
	quoted []int32 // tokens with two quotes and more

	mu   sync.Mutex
	kept []*note // states with masks, oldest first
	room int     // masks that may be kept
}

// keptBytes bounds the memory of the masks that a vocabulary keeps.
const keptBytes = 256 << 20

// slice is a set of tokens of plain text of at most radius code points. Where any such text may follow, the set is a part
// of the mask, and only rest is walked.
type slice struct {
	radius int
	mask   Mask
	rest   trie
}

// radii are those of the slices; the last takes all.
var radii = []int{10, 30, 1 << 20}

// trie holds tokens by their bytes, in preorder.
type trie []node

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
	v := &Vocabulary{pieces: slices.Clone(pieces), ends: slices.Clone(ends), twins: make([]int32, len(pieces))}
	v.room = max(16, keptBytes/(8*words(len(pieces))))
	var order []int32
	for id, p := range pieces {
		v.twins[id] = -1
		if i := strings.LastIndexByte(p, Mark); p == "" || len(p) > maxPiece || i > 0 || p == string([]byte{Mark}) {
			v.pieces[id] = ""
			continue
		}
		order = append(order, int32(id))
		if strings.Count(p, `"`) > 1 {
			v.quoted = append(v.quoted, int32(id))
		}
	}
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
	v.all = v.trie(single)
	length := make([]int, len(v.pieces))
	for _, id := range single {
		length[id] = plainLength(v.pieces[id])
	}
	for _, r := range slices.Backward(radii) {
		s := slice{radius: r, mask: NewMask(len(pieces))}
		var rest []int32
		for _, id := range single {
			if length[id] == 0 || length[id] > r {
				rest = append(rest, id)
				continue
			}
			v.add(s.mask, id)
		}
		s.rest = v.trie(rest)
		v.slices = append(v.slices, s)
	}
	return v
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
	return NewVocabulary(pieces, ends)
}

// plainLength is the number of code points of plain text, as lex.Pool.Radius has it; 0 for other text.
func plainLength(s string) int {
	n := 0
	for i := 0; i < len(s); n++ {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || r < 0x20 || r == '"' || r == '\\' {
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

// trie returns the trie of tokens that are sorted.
func (v *Vocabulary) trie(order []int32) trie {
	var t trie
	var open []int32 // nodes of the last token
	last := ""
	close := func(depth int) {
		for _, i := range slices.Backward(open[depth:]) {
			t[i].end = int32(len(t))
		}
		open = open[:depth]
	}
	for _, id := range order {
		p := v.pieces[id]
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
	return slices.Clip(t)
}

// Len is the number of tokens.
func (v *Vocabulary) Len() int { return len(v.pieces) }

// Piece returns the text of a token, with a Mark in front for control tokens; empty for tokens that cannot come.
func (v *Vocabulary) Piece(id int32) string { return v.pieces[id] }

// keep notes that a state has a mask, and drops the oldest if there are too many.
func (v *Vocabulary) keep(n *note) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.kept) >= v.room {
		for _, old := range v.kept[:len(v.kept)/2] {
			old.mask.Store(nil)
		}
		v.kept = append(v.kept[:0], v.kept[len(v.kept)/2:]...)
	}
	v.kept = append(v.kept, n)
}
