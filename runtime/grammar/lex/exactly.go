package lex

// exactly is the language of one text; its states are places in it.
type exactly []rune

// Exactly is the language of one text, which begins at state 0.
func Exactly(text string) Runes {
	e := exactly(text)
	return &e
}

func (e *exactly) Next(p any, r rune) (any, bool) {
	i := p.(int)
	return i + 1, i < len(*e) && (*e)[i] == r
}

func (e *exactly) Any(p any, lo, hi rune) bool {
	i := p.(int)
	return i < len(*e) && lo <= (*e)[i] && (*e)[i] <= hi
}

func (e *exactly) Accept(p any) (any, bool) { return nil, p.(int) == len(*e) }

func (e *exactly) Radius(any, Class) (int, bool) { return 0, false }
func (e *exactly) First(any) First               { return everything }
func (e *exactly) All(any) bool                  { return false }
func (e *exactly) Clip(p any, _ int) any         { return p }
