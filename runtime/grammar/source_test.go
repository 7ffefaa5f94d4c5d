package grammar

import (
	"fmt"
	"strings"
	"testing"
)

// TestKept holds that grammars are kept, until their sources and states are too much.
func TestKept(t *testing.T) {
	c := cache{bytes: 2000 * stateBytes}
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
	if o.machine.Built() <= 2000 {
		t.Fatalf("%d states", o.machine.Built())
	}
	if get(other) == o {
		t.Error("a grammar with too many states is kept")
	}
	large := func(i int) string {
		return fmt.Sprintf(`{"type":"string","title":"%d%s"}`, i, strings.Repeat("x", 9000))
	}
	first := get(large(0))
	for i := range 8 {
		get(large(i))
	}
	if c.order.Len() > 4 || get(large(0)) == first {
		t.Errorf("%d grammars are kept, of large sources", c.order.Len())
	}
	if len(c.entries) != c.order.Len() {
		t.Error("the list and the map differ")
	}
	if _, err := c.get(Source{Kind: JSONSchema, Text: `{"type":"text"}`}); err == nil {
		t.Error("no error")
	}
}
