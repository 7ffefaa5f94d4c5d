package text

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestRemember holds that what is remembered changes no token, whoever has sent the texts before.
func TestRemember(t *testing.T) {
	tok := newGopher(t)
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.StringMatching(`(func|x:=|\n|<|\|>|é| ){60,200}`)
		var spans []Span
		for range rapid.IntRange(1, 4).Draw(t, "turns") {
			spans = append(spans, Span{Text: "<|endoftext|>"}, Span{Text: words.Draw(t, "text"), Literal: true})
		}
		ctx := Remember(t.Context(), rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "owner"))
		want, err := tok.EncodeSpans(t.Context(), spans)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got, err := tok.EncodeSpans(ctx, spans); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%+v: ids %v, %v, want %v", spans, got, err, want)
			}
		}
	})
}

// TestRemembers holds what is remembered: long texts, of those who sent them, as many as there is room for.
func TestRemembers(t *testing.T) {
	tok := newGopher(t)
	a, b := Remember(t.Context(), "a"), Remember(t.Context(), "b")
	encode := func(ctx context.Context, s string) int {
		if _, err := tok.EncodeContext(ctx, s, EncodeOptions{ParseSpecial: true}); err != nil {
			t.Fatal(err)
		}
		return len(tok.memory.known)
	}
	long := strings.Repeat("f(x) ", 100)
	for i, c := range []struct {
		ctx  context.Context
		text string
		want int // texts
	}{
		{t.Context(), long, 0}, {a, "f(x)", 0}, {a, long, 1}, {a, long, 1}, {b, long, 2}, {a, long + "<|endoftext|>" + long + "y", 3},
	} {
		if got := encode(c.ctx, c.text); got != c.want {
			t.Errorf("%d: %d texts are remembered, want %d", i, got, c.want)
		}
	}
	m := &tok.memory
	ids := make([]int32, mostRemembered/16)
	for i := range int32(5) {
		m.keep(remembered{text: long, owner: string(rune('c' + i))}, ids)
		m.find(nil, remembered{text: long, owner: "c"})
	}
	if m.bytes > mostRemembered || m.order.Len() != len(m.known) {
		t.Errorf("%d bytes of %d texts are remembered, listed %d", m.bytes, len(m.known), m.order.Len())
	}
	for owner, want := range map[string]bool{"a": false, "b": false, "c": true, "d": false, "g": true} {
		if m.known[remembered{text: long, owner: owner, first: owner < "c"}] != nil != want {
			t.Errorf("the text of %s is remembered: %t", owner, !want)
		}
	}
	m.keep(remembered{text: long, owner: "h"}, make([]int32, mostRemembered))
	if m.known[remembered{text: long, owner: "h"}] != nil || len(m.known) == 0 {
		t.Error("a text without room for it is remembered")
	}
	over, cancel := context.WithCancel(b)
	cancel()
	before := len(m.known)
	if _, err := tok.EncodeContext(over, strings.Repeat("go ", 10000), EncodeOptions{}); err == nil || len(m.known) != before {
		t.Errorf("encoding that was given up: %v, %d texts", err, len(m.known))
	}
}
