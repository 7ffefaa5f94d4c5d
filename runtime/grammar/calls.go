package grammar

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
	"github.com/zincc-dev/zincc/runtime/grammar/machine"
	"github.com/zincc-dev/zincc/runtime/grammar/schema"
)

// Calls are calls of tools, as a chat template writes them: the arguments are JSON.
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
	// Loose takes any object where the schema is not supported.
	Loose bool
}

// sequences are the ways to write calls.
func (c *Calls) sequences(b *builder) ([][]machine.Item, error) {
	var ways [][]machine.Item
	for _, t := range c.Tools {
		text := []byte(t.Schema)
		if len(text) == 0 {
			text = []byte(`{"type":"object"}`)
		}
		r, err := b.schema(text, SchemaOptions{Objects: true})
		if err != nil && t.Loose {
			r, err = b.schema([]byte(`{}`), SchemaOptions{Objects: true})
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		way := append(b.marks(t.Before), r.Root)
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

// marked finds what may be a control token.
var marked = regexp.MustCompile(`<[^<>\s]{1,80}>|\[[A-Z_]{2,40}\]`)

// marks are the items of a text of a template. What looks like a control token may be one.
func (b *builder) marks(text string) (out []machine.Item) {
	plain := func(s string) {
		if s != "" {
			out = append(out, b.lexeme(lex.UTF8{Runes: lex.Exactly(s)}, lex.Begin(0)))
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
