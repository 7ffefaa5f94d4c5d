// Package machine runs grammars over bytes. A grammar is symbols that stand for sequences of lexemes and symbols. A
// State is the set of places at which one may be in a grammar behind some bytes: each is a state of a lexer and a stack
// of what follows. Places, stacks and states are interned and made when they are met, so that states can keep what is
// known of them: where a byte leads, and which tokens may follow.
package machine

import "github.com/zincc-dev/zincc/runtime/grammar/lex"

// Symbol stands for one of several sequences.
type Symbol struct {
	// expand returns the sequences. It is called once. None of them leads back to the symbol without a byte, and
	// each has a text.
	expand   func() [][]Item
	list     [][]Item
	expanded bool
	elements Elements
	ways     func() int
}

// Ways tells how many different values there are of what the symbol stands for, at least.
func (s *Symbol) Ways(f func() int) *Symbol {
	s.ways = f
	return s
}

// Elements says that a symbol is what follows elements of an array.
type Elements uint8

// What follows no element, elements, and elements no two of which are equal.
const (
	NoElements Elements = iota
	AnyElements
	DistinctElements
)

// Behind returns the symbol of what follows elements of an array.
func Behind(e Elements, expand func() [][]Item) *Symbol {
	return &Symbol{expand: expand, elements: e}
}

// NewSymbol returns a symbol. expand is called when the symbol is met first.
func NewSymbol(expand func() [][]Item) *Symbol { return &Symbol{expand: expand} }

// Sequences returns what the symbol stands for.
func (s *Symbol) Sequences() [][]Item {
	if !s.expanded {
		s.list, s.expanded = s.expand(), true
		s.expand = nil
	}
	return s.list
}

// Item is a lexeme or a symbol.
type Item struct {
	Lexer  *lex.Lexer // nil: Symbol
	Start  int32      // state in which the lexeme begins
	Symbol *Symbol
}

// Lexeme is the item of the texts of a lexer from a state on. Where the lexer says what the end of a text means, it is
// the *Symbol of what follows.
func Lexeme(l *lex.Lexer, start int32) Item { return Item{Lexer: l, Start: start} }

// Of is the item of a symbol.
func Of(s *Symbol) Item { return Item{Symbol: s} }
