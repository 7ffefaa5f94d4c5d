package grammar

import (
	"fmt"
	"testing"
)

// TestKept holds that grammars are kept, until they have too many states.
func TestKept(t *testing.T) {
	c := cache{states: 2000}
	get := func(text string) *Grammar {
		g, err := c.get(Source{Kind: JSONSchema, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	const number, other = `{"type":"number"}`, `{"type":"array","items":{"type":"number","minimum":2}}`
	g, o := get(number), get(other)
	if get(number) != g || get(other) != o {
		t.Error("a grammar is made twice")
	}
	for i := range 1000 {
		o.Check(fmt.Appendf(nil, "[%d", 1000000+7919*i))
	}
	if o.machine.Built() <= c.states {
		t.Fatalf("%d states", o.machine.Built())
	}
	if get(other) == o {
		t.Error("a grammar with too many states is kept")
	}
	if len(c.entries) != c.order.Len() {
		t.Error("the list and the map differ")
	}
	if _, err := c.get(Source{Kind: JSONSchema, Text: `{"type":"text"}`}); err == nil {
		t.Error("no error")
	}
}
