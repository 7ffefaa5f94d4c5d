package grammar

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/grammar/schema"
	"github.com/zincc-dev/zincc/runtime/text"
)

// vocabulary is that of the chat model in testdata.
var vocabulary = sync.OnceValues(func() (*Vocabulary, error) {
	f, err := gguf.OpenHeader("../../testdata/models/gopher-chat-q4_k_m.gguf")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := plans.ReadVocab(f)
	if err != nil {
		return nil, err
	}
	tok, err := text.New(data)
	if err != nil {
		return nil, err
	}
	return FromTokenizer(tok, tok.Len(), tok.EOG()), nil
})

// walked are grammars of all kinds for random walks.
func walked(t testing.TB) map[string]*Grammar {
	list := map[string]*Grammar{}
	add := func(name string, g *Grammar, err error) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		list[name] = g
	}
	for _, s := range []string{
		`{}`, `{"type":"object","additionalProperties":{"type":"integer"}}`,
		`{"type":"object","properties":{"name":{"type":"string","maxLength":12},"age":{"type":"integer","minimum":0,"maximum":130},"tags":{"type":"array","items":{"enum":["go","c","zig"]},"maxItems":3}},"required":["name","age"],"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"type":"number","multipleOf":0.25}},"patternProperties":{"^x_":{"type":"boolean"}},"propertyNames":{"maxLength":6},"minProperties":2}`,
		`{"type":"string","format":"date-time"}`, `{"type":"string","pattern":"^[a-z]{2,8}-\\d+$","maxLength":9}`, `{"type":"string","format":"email"}`,
		`{"anyOf":[{"type":"object","properties":{"k":{"const":"a"}},"required":["k"]},{"type":"array","prefixItems":[{"type":"string"},{"$ref":"#"}],"minItems":2}]}`,
	} {
		g, _, err := Schema([]byte(s), SchemaOptions{})
		add(s, g, err)
	}
	g, err := GBNF(jsonGBNF)
	add("json.gbnf", g, err)
	g, err = Regex(`[A-Z]\w*(?:, \w+)*[.!?]|func \w+\(\)`)
	add("regex", g, err)
	g, err = Choice([]string{"yes", "no", "yesterday", "never"})
	add("choice", g, err)
	return list
}

// draw takes a token of a mask, a short one rather, so that walks come to an end.
func draw(r *rand.Rand, v *Vocabulary, mask Mask) int32 {
	best := int32(-1)
	for range 1 + r.IntN(5) {
		k := r.IntN(mask.Count())
		for w, word := range mask {
			if c := bits.OnesCount64(word); k >= c {
				k -= c
				continue
			}
			for ; k > 0; k-- {
				word &= word - 1
			}
			if id := int32(w*64 + bits.TrailingZeros64(word)); best < 0 || len(v.Piece(id)) < len(v.Piece(best)) {
				best = id
			}
			break
		}
	}
	return best
}

// TestMasks compares masks with every token of the vocabulary, tried by itself from the beginning of the text.
func TestMasks(t *testing.T) {
	v, err := vocabulary()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, 7))
	states := 0
	for name, g := range walked(t) {
		for range 4 {
			m := g.Match(v)
			for step := 0; step < 40 && !m.Over(); step++ {
				mask := m.Mask()
				if m.Err() != nil || mask.Count() == 0 {
					t.Fatalf("%s: %q: no token: %v", name, m.Text(), m.Err())
				}
				if step%7 == 0 {
					states++
					for id := range int32(v.Len()) {
						want := v.Piece(id) != ""
						if m.ends(id) {
							_, want, _ = g.Check([]byte(m.Text()))
						} else if want {
							text := m.Text() + v.Piece(id)
							at, _, _ := g.Check([]byte(text))
							want = at == len(text)
						}
						if mask.Has(id) != want || m.Allows(id) != want {
							t.Fatalf("%s: %q and %q: mask %v, token %v, want %v", name, m.Text(), v.Piece(id), mask.Has(id), m.Allows(id), want)
						}
					}
				}
				if !m.Accept(draw(r, v, mask)) {
					t.Fatalf("%s: %q: a token of the mask is not accepted", name, m.Text())
				}
			}
		}
	}
	t.Logf("%d states", states)
}

// TestSlices holds that a mask of the slices is what the whole vocabulary gives.
func TestSlices(t *testing.T) {
	v, err := vocabulary()
	if err != nil {
		t.Fatal(err)
	}
	for n := range 40 {
		g, _, err := Schema(fmt.Appendf(nil, `{"type":"string","maxLength":%d}`, n), SchemaOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m := g.Match(v)
		m.AcceptText(`"`)
		have, want := m.Mask(), NewMask(v.Len())
		k := maker{g.machine, v}
		k.walk(m.state, v.all, func(id int32) { v.add(want, id) })
		for id := range int32(v.Len()) {
			if have.Has(id) != want.Has(id) {
				t.Fatalf("%d characters: token %q: %v", n, v.Piece(id), have.Has(id))
			}
		}
	}
}

// TestForced holds that forced bytes are those that come next, whatever is chosen.
func TestForced(t *testing.T) {
	g, err := GBNF(`root ::= "The answer is " ("yes" | "yet")`)
	if err != nil {
		t.Fatal(err)
	}
	m := g.Match(tiny())
	if text := m.Forced(100); string(text) != "The answer is ye" {
		t.Errorf("forced: %q", text)
	}
	if !m.AcceptText("The answer is yet") || !m.Over() || len(m.Forced(9)) > 0 || !m.Allows(257) || m.Allows('a') {
		t.Errorf("%q: over %v", m.Text(), m.Over())
	}
	if !m.Accept(257) || m.Accept(257) {
		t.Error("the end comes once")
	}
}

// TestClone holds that a clone and its original go their own ways.
func TestClone(t *testing.T) {
	g, _, err := Schema([]byte(`{"type":"object"}`), SchemaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m := g.Match(tiny())
	m.AcceptText(`{"a":1,"b`)
	c := m.Clone()
	if !m.AcceptText(`":2,"c`) || !c.AcceptText(`c":2,"b`) {
		t.Fatal("not accepted")
	}
	if !m.AcceptText(`":1}`) || !c.AcceptText(`":1}`) {
		t.Errorf("%q, %q", m.Text(), c.Text())
	}
	d := g.Match(tiny())
	d.AcceptText(`{"a":1,"`)
	if d.AcceptText(`a":1}`) || d.Mask().Has('a') != true || !d.AcceptText("a") || d.Mask().Has('"') || d.Mask().Has(256) {
		t.Error("a key comes twice")
	}
}

// TestParallel has several answers of one grammar at once.
func TestParallel(t *testing.T) {
	v, err := vocabulary()
	if err != nil {
		t.Fatal(err)
	}
	g, _, err := Schema([]byte(`{"type":"object","additionalProperties":{"type":"array"}}`), SchemaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			m := g.Match(v)
			for step := 0; step < 100 && !m.Over(); step++ {
				if !m.Accept(draw(r, v, m.Mask())) {
					t.Error("not accepted")
				}
			}
		})
	}
	wait.Wait()
}

// TestFormatMasks holds that no format, with bounds of the length beside it, is too complex for masks.
func TestFormatMasks(t *testing.T) {
	v, err := vocabulary()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range schema.Formats() {
		g, _, err := Schema(fmt.Appendf(nil, `{"type":"string","format":%q,"minLength":3,"maxLength":300}`, name), SchemaOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r := rand.New(rand.NewPCG(1, 2))
		for range 3 {
			m := g.Match(v)
			for step := 0; step < 12 && !m.Over() && m.Err() == nil; step++ {
				if mask := m.Mask(); mask != nil {
					m.Accept(draw(r, v, mask))
				}
			}
			if m.Err() != nil {
				t.Errorf("%s: %q: %v", name, m.Text(), m.Err())
			}
		}
	}
}
