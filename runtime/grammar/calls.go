package grammar

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
	"github.com/zincc-dev/zincc/runtime/grammar/machine"
	"github.com/zincc-dev/zincc/runtime/grammar/schema"
)

// Calls are calls of tools, as a chat template writes them. A CallID in a text of it stands for any id.
type Calls struct {
	Tools []Tool
	// Between stands between two calls. Parallel: there may be several.
	Between  string
	Parallel bool
	// Open stands before the first call and Close behind the last, if the template writes them once for all.
	Open, Close string
}

// Tool is one that may be called.
type Tool struct {
	Name          string          // for errors
	Before, After string          // what stands around the arguments
	Schema        json.RawMessage // of the arguments; nil: any object
	Tags          *Tags           // nil: the arguments are JSON, or in a notation
	Notation      Notation
	// Loose takes any object where the schema is not supported.
	Loose bool
}

// Tags are how each argument is written between marks: Open KEY Text TEXT Close, or Open KEY Other JSON Close. What
// differs by Text and Other alone is text, but for the arguments of JSON. End is in no text.
type Tags struct {
	Open, Text, Other, Close, End string
	JSON                          []string
}

// arguments is the item of a tool's arguments.
func (b *builder) arguments(t *Tool) (machine.Item, error) {
	o := SchemaOptions{Objects: true, Notation: t.Notation}
	any := func() (machine.Item, error) {
		if t.Notation == Python {
			return b.regex(anyArguments)
		}
		if t.Tags != nil || t.Notation == Gemma { // whatever ends with what stands behind them
			return b.plain(b.pool.Not(b.pool.Cat(b.pool.Any(), b.pool.Text(strings.TrimSpace(t.After)), b.pool.Any())))
		}
		r, err := b.schema([]byte(`{"type":"object"}`), o)
		if err != nil {
			return machine.Item{}, err
		}
		return r.Root, nil
	}
	if len(t.Schema) == 0 {
		return any()
	}
	if g := t.Tags; g != nil {
		o.Tags = &schema.Tags{Open: g.Open, Text: g.Text, Other: g.Other, Close: g.Close, End: g.End, Marks: b.marks,
			IsText: func(name string) bool { return !slices.Contains(g.JSON, name) }}
	}
	r, err := b.schema(t.Schema, o)
	if err != nil && t.Loose {
		return any()
	}
	if err != nil {
		return machine.Item{}, fmt.Errorf("%s: %w", t.Name, err)
	}
	return r.Root, nil
}

// anyArguments is a pattern for arguments of Python: strings of either quote, and what has no brackets but within
// others.
const anyArguments = `(?:[^()"']|"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*'|\((?:[^()"']|"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*')*\))*`

// sequences are the ways to write calls.
func (c *Calls) sequences(b *builder) ([][]machine.Item, error) {
	var ways [][]machine.Item
	for _, t := range c.Tools {
		item, err := b.arguments(&t)
		if err != nil {
			return nil, err
		}
		way := append(b.marks(t.Before), item)
		ways = append(ways, append(way, b.marks(t.After)...))
	}
	one := machine.NewSymbol(func() [][]machine.Item { return ways })
	var more *machine.Symbol
	between := b.marks(c.Between)
	end := b.marks(c.Close)
	more = machine.NewSymbol(func() [][]machine.Item {
		out := [][]machine.Item{end}
		if c.Parallel {
			out = append(out, append(append(append([]machine.Item{}, between...), machine.Of(one)), machine.Of(more)))
		}
		return out
	})
	lead, err := b.plain(schema.Lead(b.pool))
	if err != nil {
		return nil, err
	}
	way := append([]machine.Item{lead}, b.marks(strings.TrimLeft(c.Open, " \n"))...)
	return [][]machine.Item{append(way, machine.Of(one), machine.Of(more))}, nil
}

// CallID stands for nine letters and digits.
const CallID = "\x00"

// marked finds what may be a control token.
var marked = regexp.MustCompile(`<[^<>\s]{1,80}>|\[[A-Z_]{2,40}\]`)

// marks are the items of a text of a template. What looks like a control token may be one.
func (b *builder) marks(text string) (out []machine.Item) {
	id := b.pool.Repeat(b.pool.Set(lex.NewSet(lex.Range{Lo: '0', Hi: '9'}, lex.Range{Lo: 'A', Hi: 'Z'}, lex.Range{Lo: 'a', Hi: 'z'})), 9, 9)
	plain := func(s string) {
		for i, part := range strings.Split(s, CallID) {
			if i > 0 {
				out = append(out, b.lexeme(lex.UTF8{Runes: lex.Terms{Pool: b.pool}}, lex.Begin(id)))
			}
			if part != "" {
				out = append(out, b.lexeme(lex.UTF8{Runes: lex.Exactly(part)}, lex.Begin(0)))
			}
		}
	}
	for text != "" {
		at := marked.FindStringIndex(text)
		if at == nil {
			break
		}
		plain(text[:at[0]])
		out = append(out, b.lexeme(lex.Marker(text[at[0]:at[1]]), lex.Key{}))
		text = text[at[1]:]
	}
	plain(text)
	return out
}
