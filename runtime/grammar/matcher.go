package grammar

import (
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
	"github.com/zincc-dev/zincc/runtime/grammar/machine"
)

// Matcher follows one answer. One goroutine uses it at a time.
type Matcher struct {
	walker
	v    *Vocabulary
	text []byte
	over bool // an end token was accepted
	own  Mask // of the answer alone, made anew by each call of Mask that needs it
	work scratch
	err  error
}

// Text is what was accepted.
func (m *Matcher) Text() string { return string(m.text) }

// Match begins an answer of a model with this vocabulary.
func (g *Grammar) Match(v *Vocabulary) *Matcher {
	g.mu.Lock()
	defer g.mu.Unlock()
	return &Matcher{walker: g.begin(), v: v}
}

// Clone returns a matcher that goes on from the same place.
func (m *Matcher) Clone() *Matcher {
	c := *m
	c.keys, c.text, c.own, c.work = m.keys.clone(), slices.Clip(m.text), nil, scratch{}
	return &c
}

// Err says why a matcher allows nothing more although the answer is not complete: the grammar is too complex.
func (m *Matcher) Err() error { return m.err }

// Done says whether the answer is complete; it may still go on.
func (m *Matcher) Done() bool { return m.state.Final() }

// Over says whether the answer is complete and cannot go on.
func (m *Matcher) Over() bool { return m.over || m.state.Over() }

// begin takes the lock for a call, which end returns.
func (m *Matcher) begin() {
	m.g.mu.Lock()
	m.g.machine.Allow()
}

func (m *Matcher) end() {
	defer m.g.mu.Unlock()
	if r := recover(); r != nil {
		func() {
			defer catch(&m.err)
			panic(r)
		}()
	}
}

// Allows says whether a token may come next. Tokens that end an answer may when it is complete.
func (m *Matcher) Allows(id int32) (ok bool) {
	if m.over || m.err != nil || id < 0 || int(id) >= len(m.v.pieces) {
		return false
	}
	if m.ends(id) {
		return m.state.Final()
	}
	piece := m.v.pieces[id]
	if piece == "" {
		return false
	}
	m.begin()
	defer m.end()
	return m.follow(piece) != nil && !m.repeats(piece)
}

func (m *Matcher) ends(id int32) bool {
	for _, e := range m.v.ends {
		if e == id {
			return true
		}
	}
	return false
}

// follow returns where a text leads, by the machine alone.
func (m *Matcher) follow(piece string) *machine.State {
	s := m.state
	for i := 0; i < len(piece) && s != nil; i++ {
		s = m.g.machine.Next(s, piece[i])
	}
	return s
}

// repeats says whether a text that the machine allows has a key that its object has already, or ends in one that can
// become no other; or so of elements of arrays.
func (m *Matcher) repeats(piece string) bool {
	keys := m.g.unique && (strings.Contains(piece, `"`) || m.keys.mode == inKey && m.keys.any())
	if !keys && !(m.g.compare && (m.state.Compares() || strings.Contains(piece, "["))) {
		return false
	}
	w := m.walker
	w.keys = m.keys.clone()
	for i := 0; i < len(piece); i++ {
		if !w.step(piece[i]) {
			return true
		}
	}
	return false
}

// Accept takes the next token; false, and nothing is changed, if it is not allowed.
func (m *Matcher) Accept(id int32) bool {
	switch {
	case m.over || m.err != nil || id < 0 || int(id) >= len(m.v.pieces):
		return false
	case m.ends(id):
		m.over = m.state.Final()
		return m.over
	}
	piece := m.v.pieces[id]
	return piece != "" && m.AcceptText(piece)
}

// AcceptText takes the next bytes; false, and nothing is changed, if they are not allowed.
func (m *Matcher) AcceptText(piece string) (ok bool) {
	if m.over || m.err != nil {
		return false
	}
	m.begin()
	defer m.end()
	to := m.follow(piece)
	if to == nil || m.repeats(piece) {
		return false
	}
	for i := 0; m.g.follows() && i < len(piece); i++ {
		m.step(piece[i])
	}
	if !m.g.follows() {
		m.state = to
	}
	m.text = append(m.text, piece...)
	return true
}

// Forced returns the bytes that must come next, whatever the model would write: as far as only one may follow. most
// bounds how many.
func (m *Matcher) Forced(most int) (text []byte) {
	if m.over || m.err != nil {
		return nil
	}
	m.begin()
	defer m.end()
	for s := m.state; len(text) < most; {
		b, ok := m.g.machine.Forced(s)
		if !ok {
			break
		}
		text = append(text, b)
		s = m.g.machine.Next(s, b)
	}
	return text
}

// Mask returns the tokens that may come next, until the next call. It must not be changed. It is nil if Err is not.
func (m *Matcher) Mask() (mask Mask) {
	if m.err != nil {
		return nil
	}
	if m.over {
		return NewMask(m.v.Len())
	}
	m.begin()
	defer m.end()
	k := maker{m.g.machine, m.v}
	return m.distinct(k.mask(m.state, &m.work))
}

// Words is Mask as package sample has it.
func (m *Matcher) Words() []uint64 { return m.Mask() }

// distinct takes tokens out of a mask that would write a key again.
func (m *Matcher) distinct(mask Mask) Mask {
	compares := m.g.compare && (m.state.Compares() || m.opens(mask))
	if !compares && !(m.g.unique && m.keys.any()) {
		return mask
	}
	m.own = append(m.own[:0], mask...)
	out := m.own
	if compares {
		m.compareTokens(out)
	}
	if !m.g.unique || !m.keys.any() {
		return out
	}
	if raw, names, ok := m.keys.open(); ok {
		plain := !strings.Contains(raw, `\`)
		fresh := endless(m.state)
		for _, name := range names {
			if !plain || strings.HasPrefix(name, raw) {
				m.without(out, raw, name, fresh)
			}
		}
	} else {
		m.opening(out)
	}
	list := m.v.quoted
	if m.keys.mode != between {
		list = m.v.reopen // the first quote ends the string, and without has seen to it if that is a key
	}
	for _, id := range list {
		if out.Has(id) && m.repeats(m.v.pieces[id]) {
			out.clear(id)
		}
	}
	return out
}

// opening takes out the tokens that begin a key which can become no other than those that have come.
func (m *Matcher) opening(mask Mask) {
	for _, o := range m.v.openers {
		if s := m.follow(o.head); s == nil || endless(s) {
			continue
		}
		for _, id := range o.tokens {
			if mask.Has(id) && m.repeats(m.v.pieces[id]) {
				mask.clear(id)
			}
		}
	}
}

// without takes out the tokens that end a key, of which raw is written, as name. Unless the key is endless, they may be
// such, too, that it can become no other with than those that have come.
func (m *Matcher) without(mask Mask, raw, name string, endless bool) {
	l := lex.NewLexer(lex.JSONString{Runes: lex.Exactly(name)})
	s := l.State(lex.InJSON(0))
	for i := 0; i < len(raw); i++ {
		if s = l.Next(s, raw[i]); s < 0 {
			return
		}
	}
	tries := []trie{m.v.slices[lex.Plain].rest} // they have a quote
	if !endless {
		tries = m.v.all
	}
	stack := []int32{s}
	for _, t := range tries {
		for i := 0; i < len(t.nodes); {
			n := &t.nodes[i]
			s := l.Next(stack[n.depth-1], n.b)
			if s < 0 {
				i = int(n.end)
				continue
			}
			if _, closed := l.Accept(s); closed {
				for ; i < int(n.end); i++ {
					m.remove(mask, t.nodes[i].token)
				}
				continue
			}
			if !endless && n.token >= 0 && mask.Has(n.token) && m.repeats(m.v.pieces[n.token]) {
				m.remove(mask, n.token)
			}
			stack = append(stack[:n.depth], s)
			i++
		}
	}
}

// remove takes a token and those with the same text out of a mask.
func (m *Matcher) remove(mask Mask, id int32) {
	for ; id >= 0; id = m.v.twins[id] {
		mask.clear(id)
	}
}
