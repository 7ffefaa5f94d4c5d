package schema

import (
	"strings"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
	"github.com/zincc-dev/zincc/runtime/grammar/machine"
)

// Tags are how members are written between marks: Open KEY Text TEXT Close, or Open KEY Other JSON Close.
type Tags struct {
	Open, Text, Other, Close string
	End                      string                        // is not in texts
	IsText                   func(name string) bool        // whether a member is read as text, where Text and Other are alike
	Marks                    func(s string) []machine.Item // the lexemes of a mark
}

// tag has the objects written between marks. They have no members beside those that are named.
func (d *objectDef) tag(t *Tags) {
	d.tags, d.texts, d.closed = t, make([]bool, len(d.names)), true
	for i, name := range d.names {
		d.texts[i] = t.IsText(name)
		bad := name == "" || strings.ContainsAny(name, "<>\"{}\n") || strings.TrimSpace(name) != name
		d.named[i] = d.named[i] && !bad && len(d.taggedValue(d.texts[i], d.values[i], nil)) > 0
	}
}

// tagged is the item of the objects of a union, written between marks.
func (c *compiler) tagged(u *union) machine.Item {
	var ways [][]machine.Item
	for _, a := range u.alts {
		if s := c.object(u, a).state("", 0, 0); s.completes() {
			ways = append(ways, []machine.Item{machine.Of(s.tagged())})
		}
	}
	return machine.Of(machine.NewSymbol(func() [][]machine.Item { return ways }))
}

// tagged is the symbol of the members that follow.
func (s *objectState) tagged() *machine.Symbol {
	if s.first == nil {
		s.first = machine.NewSymbol(func() (out [][]machine.Item) {
			if s.whole() {
				out = append(out, nil)
			}
			if s.more() {
				out = append(out, append(s.def.tags.Marks(s.def.tags.Open), s.key()))
			}
			return out
		})
	}
	return s.first
}

// taggedValue are the ways to write the rest of a member behind its name.
func (d *objectDef) taggedValue(text bool, u *union, next *objectState) (out [][]machine.Item) {
	c, t := d.c, d.tags
	both := t.Text != t.Other
	way := func(mark string, value machine.Item) {
		list := append(t.Marks(mark), value)
		list = append(list, t.Marks(t.Close)...)
		if next != nil {
			list = append(list, machine.Of(next.tagged()))
		}
		out = append(out, list)
	}
	if both || text {
		var list []*lex.Term
		for _, a := range c.must(u).alts {
			if a.types&isString != 0 {
				t, _ := c.strings(a)
				list = append(list, t)
			}
		}
		all := c.pool.And(c.pool.Or(list...), c.pool.Not(c.pool.Cat(c.pool.Any(), c.pool.Text(t.End), c.pool.Any())))
		if c.pool.Live(all) {
			l := lex.NewLexer(lex.UTF8{Runes: lex.Terms{Pool: c.pool}})
			way(t.Text, machine.Lexeme(l, l.State(lex.Begin(all))))
		}
	}
	if (both || !text) && c.inhabited(u) {
		way(t.Other, c.syntax.value(u))
	}
	return out
}
