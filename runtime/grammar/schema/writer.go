package schema

import (
	"strings"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
	"github.com/zincc-dev/zincc/runtime/grammar/machine"
)

// maxSpace is the longest run of white space between the marks of JSON.
const maxSpace = 8

// whiteSpace is what may stand between marks: in documents any white space, in answers a space, or a new line and its
// indentation. Models that may write more of it do so without end.
func (c *compiler) whiteSpace() *lex.Term {
	p := c.pool
	if c.o.Documents {
		return p.Repeat(p.Set(lex.Chars(" \t\n\r")), 0, maxSpace)
	}
	indent := func(s string) *lex.Term { return p.Repeat(p.Text(s), 0, maxSpace-1) }
	return p.Opt(p.Or(p.Text(" "), p.Cat(p.Text("\n"), p.Or(indent(" "), indent("\t")))))
}

// Lead is what may stand before an answer: behind reasoning, templates end lines.
func Lead(p *lex.Pool) *lex.Term { return p.Opt(p.Or(p.Text(" "), p.Text("\n"), p.Text("\n\n"))) }

// writer makes the lexemes of values.
type writer struct {
	c *compiler

	space, comma, colon            machine.Item
	openArray, openObject          machine.Item
	endArray, endObject            machine.Item
	differs, endDiffers, endEquals machine.Item // behind elements that are compared
	endEmptyArray                  machine.Item // behind the white space of the opening bracket
	endEmptyObject                 machine.Item
	equals                         machine.Item // of Python's arguments
	mark                           machine.Item // on both sides of Gemma's strings

	texts   map[*lex.Term]machine.Item // strings
	words   map[types]machine.Item
	numbers map[string]machine.Item
}

func newWriter(c *compiler) *writer {
	w := &writer{c: c, texts: map[*lex.Term]machine.Item{}, words: map[types]machine.Item{}, numbers: map[string]machine.Item{}}
	p := c.pool
	space := c.whiteSpace()
	if c.o.Notation == Gemma {
		space = p.Empty()
	}
	mark := func(parts ...*lex.Term) machine.Item { return w.term(p.Cat(parts...)) }
	w.space = mark(Lead(p))
	if c.o.Documents {
		w.space = mark(space)
	}
	w.equals = mark(p.Text("="))
	marker := lex.NewLexer(lex.Marker(gemmaQuote))
	w.mark = machine.Lexeme(marker, marker.State(lex.Key{}))
	w.comma, w.colon = mark(space, p.Text(","), space), mark(space, p.Text(":"), space)
	w.openArray, w.openObject = mark(p.Text("["), space), mark(p.Text("{"), space)
	w.endEmptyArray, w.endEmptyObject = mark(p.Text("]")), mark(p.Text("}"))
	compared := func(what lex.Behind, parts ...*lex.Term) machine.Item {
		item := mark(parts...)
		item.Lexer.Behind = what
		return item
	}
	w.differs = compared(lex.Differs, space, p.Text(","), space)
	w.endDiffers, w.endEquals = compared(lex.DiffersAtEnd, space, p.Text("]")), compared(lex.Equals, space, p.Text("]"))
	w.endArray, w.endObject = mark(space, p.Text("]")), mark(space, p.Text("}"))
	return w
}

// term is the lexeme of the texts of a term, as they are.
func (w *writer) term(t *lex.Term) machine.Item {
	l := lex.NewLexer(lex.UTF8{Runes: lex.Terms{Pool: w.c.pool}})
	l.JSON = w.c.o.Notation != Gemma
	return machine.Lexeme(l, l.State(lex.Begin(t)))
}

// strings are the rules of JSON strings. Answers escape what some program does.
func (w *writer) strings(r lex.Runes) lex.Rules {
	return lex.JSONString{Runes: r, Needed: !w.c.o.Documents}
}

// text is the lexeme of strings.
func (w *writer) text(t *lex.Term) machine.Item {
	item, ok := w.texts[t]
	if !ok && w.c.o.Notation != JSON {
		ways := w.noted(t)
		item, ok = machine.Of(machine.NewSymbol(func() [][]machine.Item { return ways })), true
		w.texts[t] = item
	}
	if !ok {
		l := lex.NewLexer(w.strings(lex.Terms{Pool: w.c.pool}))
		l.JSON = true
		item = machine.Lexeme(l, l.State(lex.BeginJSON(t)))
		w.texts[t] = item
	}
	return item
}

// guarded is the lexeme of strings that guards take.
func (w *writer) guarded(t *lex.Term, guards []guarded) machine.Item {
	l := lex.NewLexer(w.strings(guardedRunes{lex.Terms{Pool: w.c.pool}, guards}))
	l.JSON = true
	return machine.Lexeme(l, l.State(lex.BeginJSON(guardedAt{term: t})))
}

// word is the lexeme of null, true and false.
func (w *writer) word(set types) machine.Item {
	item, ok := w.words[set]
	if !ok {
		var list []*lex.Term
		for _, x := range []struct {
			bit  types
			word string
		}{{isNull, "null"}, {isTrue, "true"}, {isFalse, "false"}} {
			if set&x.bit != 0 {
				list = append(list, w.c.pool.Text(x.word))
				if w.c.o.Notation == Python {
					list = append(list, w.c.pool.Text(pythonWords[x.word]))
				}
			}
		}
		item = w.term(w.c.pool.Or(list...))
		w.words[set] = item
	}
	return item
}

// number is the lexeme of numbers.
func (w *writer) number(n num) machine.Item {
	key := n.key()
	item, ok := w.numbers[key]
	if !ok {
		if n.free() {
			item = w.term(anyNumber(w.c.pool, w.c.o.Documents))
		} else {
			l := lex.NewLexer(&numbers{num: n, any: w.c.o.Documents})
			l.JSON = true
			item = machine.Lexeme(l, l.State(lex.Key{}))
		}
		w.numbers[key] = item
	}
	return item
}

// document is the item of a whole text: a value, with white space in front.
func (w *writer) document(u *union) machine.Item {
	return machine.Of(machine.NewSymbol(func() [][]machine.Item {
		return [][]machine.Item{{w.space, w.value(u)}}
	}))
}

// value is the item of the values of a union.
func (w *writer) value(u *union) machine.Item {
	if u.symbol == nil {
		u.symbol = machine.NewSymbol(func() [][]machine.Item { return w.sequences(u) }).Ways(func() int {
			n, _ := w.c.values(u, map[*union]bool{})
			return n
		})
	}
	return machine.Of(u.symbol)
}

// sequences are the ways to write a value of a union. What is written as one lexeme is joined.
func (w *writer) sequences(u *union) (out [][]machine.Item) {
	c := w.c
	var words types
	var texts []*lex.Term
	numbers := map[string]bool{}
	for _, a := range c.must(u).alts {
		words |= a.types & (isNull | isBool)
		if a.types&isString != 0 {
			t, guards := c.strings(a)
			if len(guards) == 0 {
				texts = append(texts, t)
			} else if c.pool.Live(t) {
				out = append(out, []machine.Item{w.guarded(t, guards)})
			}
		}
		if key := a.num.key(); a.types&isNumber != 0 && !numbers[key] {
			numbers[key] = true
			out = append(out, []machine.Item{w.number(a.num)})
		}
		if a.types&isArray != 0 {
			if d := c.array(u, a); d.completes(d.begin()) {
				out = append(out, []machine.Item{w.openArray, machine.Of(d.behind(d.begin()))})
			}
		}
		if a.types&isObject != 0 {
			if s := c.object(u, a).state("", 0, 0); s.completes() {
				out = append(out, []machine.Item{w.openObject, machine.Of(s.begin())})
			}
		}
	}
	if words != 0 {
		out = append(out, []machine.Item{w.word(words)})
	}
	if t := c.pool.Or(texts...); c.pool.Live(t) {
		out = append(out, []machine.Item{w.text(t)})
	}
	return out
}

// key tells sets of numbers apart.
func (a num) key() string {
	if a.free() {
		return ""
	}
	var b strings.Builder
	if a.lo != nil {
		b.WriteString(a.lo.String())
	}
	b.WriteString(map[bool]string{true: "<", false: "<="}[a.loOpen])
	b.WriteString(map[bool]string{true: "<", false: "<="}[a.hiOpen])
	if a.hi != nil {
		b.WriteString(a.hi.String())
	}
	if a.mult != nil {
		b.WriteString("*" + a.mult.String())
	}
	for _, v := range a.not {
		b.WriteString("!" + v.String())
	}
	for _, v := range a.apart {
		b.WriteString("/" + v.String())
	}
	if a.listed {
		for _, v := range a.values {
			b.WriteString("=" + v.String())
		}
	}
	return b.String()
}
