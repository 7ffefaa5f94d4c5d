package grammar

import (
	"strings"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
)

// opens says whether a token may come that begins an array and has two elements of it.
func (m *Matcher) opens(mask Mask) bool {
	for _, id := range m.v.arrays() {
		if mask.Has(id) {
			return true
		}
	}
	return false
}

// arrays are the tokens that have a bracket and a comma behind it.
func (v *Vocabulary) arrays() []int32 {
	v.bracketsOnce.Do(func() {
		for id, p := range v.pieces {
			if i := strings.IndexByte(p, '['); i >= 0 && strings.IndexByte(p[i:], ',') > 0 {
				v.brackets = append(v.brackets, int32(id))
			}
		}
	})
	return v.brackets
}

// compareTokens takes tokens out of a mask with which elements of arrays would not be as they must be. In a string that
// any text may follow these are tokens that end it. In other strings they are such, and tokens that go on as a string
// of an element before it, by which alone an element can become one that has been.
func (m *Matcher) compareTokens(mask Mask) {
	test := func(id int32) {
		if mask.Has(id) && m.repeats(m.v.pieces[id]) {
			m.remove(mask, id)
		}
	}
	if !m.state.Compares() {
		for _, id := range m.v.arrays() {
			test(id)
		}
		return
	}
	if m.keys.mode == between || m.keys.mode == inSingle {
		mask.each(test)
		return
	}
	rest := &m.v.slices[lex.Plain].rest
	for _, n := range rest.nodes {
		if n.token >= 0 {
			test(n.token)
		}
	}
	if m.state.Free() {
		return
	}
	text, whole := string(m.keys.text[m.keys.quote:]), true
	if strings.Contains(text, `\`) {
		text, whole = begun(text, false), false
	}
	for _, s := range m.keys.strings() {
		s, is := strings.CutPrefix(s, text)
		if !is {
			continue
		}
		if !whole { // of an escape that has begun, digits may be written
			mask.each(test)
			return
		}
		for _, t := range m.v.slices[lex.Plain].longer {
			t.prefixes(s, test)
		}
	}
}

// prefixes calls f with the tokens that a text begins with.
func (t *trie) prefixes(text string, f func(id int32)) {
	if text == "" || t.roots[text[0]] < 0 {
		return
	}
	at := t.roots[text[0]]
	for depth := 1; ; depth++ {
		n := &t.nodes[at]
		if n.token >= 0 {
			f(n.token)
		}
		if depth == len(text) {
			return
		}
		next := at + 1
		for next < n.end && t.nodes[next].b != text[depth] {
			next = t.nodes[next].end
		}
		if next >= n.end {
			return
		}
		at = next
	}
}
