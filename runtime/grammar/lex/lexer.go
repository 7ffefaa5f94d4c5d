package lex

// Key is a state of Rules. Keys that are equal are one state.
type Key struct {
	Phase uint8
	N     uint8
	V     rune
	P     any // comparable
}

// Rules say how a language is written in bytes.
type Rules interface {
	// Step follows a byte; false where it leads to no text of the language.
	Step(k Key, b byte) (Key, bool)
	// Accept says whether the text may end here. out is what the end means to who made the rules.
	Accept(k Key) (out any, ok bool)
	// More says whether a byte may follow.
	More(k Key) bool
	// Radius is how many code points of a class, any of them, may surely follow; exact: and surely no more of them.
	Radius(k Key, c Class) (n int, exact bool)
	// Clip returns a state that is the same for all texts of at most n code points.
	Clip(k Key, n int) Key
}

// Lexer is the automaton of Rules over bytes. Its states are numbers, made when they are met.
type Lexer struct {
	rules  Rules
	states []state
	index  map[Key]int32
	JSON   bool // writes a part of JSON text
	Behind Behind
}

// Behind says that a lexeme comes behind an element of an array, and what of the elements it needs.
type Behind uint8

// Lexemes that need nothing, an element that is equal to none before it, to go on or to end, and two that are equal.
const (
	Anything Behind = iota
	Differs
	DiffersAtEnd
	Equals
)

type state struct {
	key      Key
	next     *[256]int32 // 0 not known, -1 nowhere, else the state plus 1
	out      any
	ok, more bool
}

// firsts are rules that know many bytes at once that lead nowhere.
type firsts interface {
	dead(k Key, next *[256]int32) // sets these to -1
}

// NewLexer returns the lexer of rules.
func NewLexer(r Rules) *Lexer { return &Lexer{rules: r, index: map[Key]int32{}} }

// State returns the number of a state.
func (l *Lexer) State(k Key) int32 {
	if s, ok := l.index[k]; ok {
		return s
	}
	s := int32(len(l.states))
	st := state{key: k}
	st.out, st.ok = l.rules.Accept(k)
	st.more = l.rules.More(k)
	l.states = append(l.states, st)
	l.index[k] = s
	return s
}

// Next follows a byte; negative where it leads nowhere.
func (l *Lexer) Next(s int32, b byte) int32 {
	st := &l.states[s]
	if st.next == nil {
		st.next = new([256]int32)
		if f, ok := l.rules.(firsts); ok {
			f.dead(st.key, st.next)
		}
	}
	next := st.next
	if n := next[b]; n != 0 {
		return n - 1
	}
	k, ok := l.rules.Step(st.key, b)
	if !ok {
		next[b] = -1
		return -1
	}
	n := l.State(k)
	next[b] = n + 1
	return n
}

// Bytes appends the bytes that may lead on from a state, all of these and perhaps others.
func (l *Lexer) Bytes(s int32, to []byte) []byte {
	st := &l.states[s]
	if st.next == nil {
		l.Next(s, 0)
	}
	for b, n := range l.states[s].next {
		if n >= 0 {
			to = append(to, byte(b))
		}
	}
	return to
}

// Accept says whether the text may end in a state, and what that means.
func (l *Lexer) Accept(s int32) (out any, ok bool) { return l.states[s].out, l.states[s].ok }

// More says whether a byte may follow.
func (l *Lexer) More(s int32) bool { return l.states[s].more }

// Radius is that of the rules.
func (l *Lexer) Radius(s int32, c Class) (n int, exact bool) {
	return l.rules.Radius(l.states[s].key, c)
}

// Clip is that of the rules.
func (l *Lexer) Clip(s int32, n int) int32 {
	k := l.states[s].key
	if clipped := l.rules.Clip(k, n); clipped != k {
		return l.State(clipped)
	}
	return s
}

// InString says whether a state is in the text of a JSON string, where it is no escape and no code point of several
// bytes. any: every text may follow. kind tells lexers apart that write these in several ways.
func (l *Lexer) InString(s int32) (ok, any bool, kind int) {
	j, ok := l.rules.(JSONString)
	k := l.states[s].key
	if !ok || k.Phase != inText || j.Single {
		return false, false, 0
	}
	if j.Needed {
		kind = 1
	}
	n, exact := j.Runes.Radius(k.P, Plain)
	return true, exact && n == Far && j.Runes.All(k.P), kind
}

// Others are Runes that know whether a text may follow that is none of a list of texts, which are all different.
type Others interface {
	Other(p any, list []string) bool
	// Endless says whether it is so wherever a text goes from here.
	Endless(p any) bool
}

// Other says whether a text may follow that is none of a list, in the text of a JSON string.
func (l *Lexer) Other(s int32, list []string) bool {
	if j, ok := l.rules.(JSONString); ok {
		if o, ok := j.Runes.(Others); ok {
			return o.Other(l.states[s].key.P, list)
		}
	}
	return true
}

// Endless says whether another text may follow, wherever a text goes from a state.
func (l *Lexer) Endless(s int32) bool {
	if j, ok := l.rules.(JSONString); ok {
		if o, ok := j.Runes.(Others); ok {
			return o.Endless(l.states[s].key.P)
		}
	}
	return true
}

// Counted are Runes that know how many texts may follow, at least.
type Counted interface{ Ways(p any) int }

// Ways is how many different texts may follow in the text of a JSON string, at least; 0 elsewhere.
func (l *Lexer) Ways(s int32) int {
	k := l.states[s].key
	if j, ok := l.rules.(JSONString); ok && (k.Phase == inText || k.Phase == opening) {
		if c, ok := j.Runes.(Counted); ok {
			return c.Ways(k.P)
		}
	}
	return 0
}

// Kinds is how many kinds of lexers InString tells apart.
const Kinds = 2

// Len is how many states there are.
func (l *Lexer) Len() int { return len(l.states) }

// Runes is a language of code points, in which more may be known of a text than that it belongs to it.
type Runes interface {
	Next(p any, r rune) (any, bool)
	Any(p any, lo, hi rune) bool // whether one of lo to hi leads on
	Accept(p any) (out any, ok bool)
	Radius(p any, c Class) (n int, exact bool)
	Clip(p any, n int) any
	First(p any) First // what may lead on
	All(p any) bool    // whether every text belongs to it
}

// Terms are the Runes whose states are the terms of a pool.
type Terms struct{ *Pool }

func (t Terms) Next(p any, r rune) (any, bool)  { return t.Pool.Next(p.(*Term), r) }
func (t Terms) Any(p any, lo, hi rune) bool     { return t.AnyOf(p.(*Term), lo, hi) }
func (t Terms) Accept(p any) (out any, ok bool) { return nil, p.(*Term).nullable }
func (t Terms) First(p any) (f First) {
	f.Add(t.Pool, p.(*Term))
	return f
}
func (t Terms) Ways(p any) int        { return t.Pool.Words(p.(*Term)) }
func (t Terms) All(p any) bool        { return p.(*Term) == t.any }
func (t Terms) Clip(p any, n int) any { return t.Pool.Clip(p.(*Term), n) }
func (t Terms) Radius(p any, c Class) (n int, exact bool) {
	return t.Pool.Radius(p.(*Term), c)
}
