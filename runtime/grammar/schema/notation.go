package schema

import (
	"strings"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
	"github.com/zincc-dev/zincc/runtime/grammar/machine"
)

// Notation is how values are written.
type Notation uint8

// The notations. Values of Gemma and of Python are those of JSON but for what is said here.
const (
	JSON   Notation = iota
	Gemma           // {key:<|"|>text<|"|>}: names without quotes, texts as they are, no white space
	Python          // key='text', other=[True, None]: arguments; strings of either quote
)

// gemmaQuote is the mark on both sides of Gemma's strings.
const gemmaQuote = `<|"|>`

// unnamedInGemma is why objects without a list of names are refused.
const unnamedInGemma = "members that no schema names are not supported in calls of this form; false leaves them out"

var pythonWords = map[string]string{"null": "None", "true": "True", "false": "False"}

// bareName says whether a name can be written without quotes, where marks follow it.
func bareName(name, marks string) bool {
	return name != "" && !strings.ContainsAny(name, "{}[],<\n\"'"+marks) && strings.TrimSpace(name) == name
}

// writable leaves out the texts that a notation cannot write.
func (c *compiler) writable(t *lex.Term) *lex.Term {
	if c.o.Notation != Gemma {
		return t
	}
	p := c.pool
	return p.And(t, p.Not(p.Cat(p.Any(), p.Text(gemmaQuote), p.Any())))
}

// noted are the ways to write strings in a notation other than JSON.
func (w *writer) noted(t *lex.Term) [][]machine.Item {
	runes := lex.Terms{Pool: w.c.pool}
	if w.c.o.Notation == Gemma {
		l := lex.NewLexer(lex.UTF8{Runes: runes})
		return [][]machine.Item{{w.mark, machine.Lexeme(l, l.State(lex.Begin(t))), w.mark}}
	}
	var ways [][]machine.Item
	for _, single := range []bool{false, true} {
		l := lex.NewLexer(lex.JSONString{Runes: runes, Needed: true, Single: single})
		l.JSON = !single
		ways = append(ways, []machine.Item{machine.Lexeme(l, l.State(lex.BeginJSON(t)))})
	}
	return ways
}

// bare says whether names are written without quotes.
func (d *objectDef) bare() bool {
	return d.tags != nil || d.keywords || d.c.o.Notation == Gemma
}

// call has the objects written as arguments. They have no members beside those that are named.
func (d *objectDef) call() {
	d.keywords, d.closed = true, true
	for i, name := range d.names {
		d.named[i] = d.named[i] && bareName(name, "()=")
	}
}

// keywords is the item of the objects of a union as arguments of Python.
func (c *compiler) keywords(u *union) machine.Item {
	var ways [][]machine.Item
	for _, a := range u.alts {
		if s := c.object(u, a).state("", 0, 0); s.completes() {
			ways = append(ways, []machine.Item{machine.Of(s.keyword(false))})
		}
	}
	return machine.Of(machine.NewSymbol(func() [][]machine.Item { return ways }))
}

// keyword is the symbol of the arguments that follow, behind another one or not.
func (s *objectState) keyword(behind bool) *machine.Symbol {
	to := &s.first
	if behind {
		to = &s.after
	}
	if *to == nil {
		*to = machine.NewSymbol(func() (out [][]machine.Item) {
			if s.whole() {
				out = append(out, nil)
			}
			if s.more() {
				list := []machine.Item{s.key()}
				if behind {
					list = append([]machine.Item{s.def.c.syntax.comma}, list...)
				}
				out = append(out, list)
			}
			return out
		})
	}
	return *to
}
