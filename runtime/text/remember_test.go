package text

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

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

// TestForgets: a text that has gone is not kept by those that begin as it does.
func TestForgets(t *testing.T) {
	var m memory
	keep := func(s string) remembered {
		of := remembered{text: s}
		m.keep(of, nil, []mark{{}})
		return of
	}
	start := strings.Repeat("a", markEvery)
	short := keep(start + "b")
	long := keep(start + strings.Repeat("c", mostRemembered/2))
	if _, known := m.find(nil, short); !known {
		t.Fatal("the short text is not known")
	}
	keep(strings.Repeat("d", mostRemembered/2))
	if _, known := m.find(nil, long); known || len(m.begins) != 2 {
		t.Fatalf("the long text is known: %t; %d beginnings", known, len(m.begins))
	}
	for b, list := range m.begins {
		if unsafe.StringData(b.text) != unsafe.StringData(list[0].text) {
			t.Error("a beginning is a part of a text that has gone")
		}
	}
}

// TestRemembers holds what is remembered: texts that are not too short, of those who sent them, as many as there is
// room for.
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
		{t.Context(), long, 0}, {a, "f(x)", 0}, {a, long, 1}, {a, long, 1}, {b, long, 2}, {a, long + "<|endoftext|>" + long + "y", 3}, {a, long[:40], 4},
	} {
		if got := encode(c.ctx, c.text); got != c.want {
			t.Errorf("%d: %d texts are remembered, want %d", i, got, c.want)
		}
	}
	m := &tok.memory
	ids := make([]int32, mostRemembered/16)
	for i := range int32(5) {
		m.keep(remembered{text: long, owner: string(rune('c' + i))}, ids, nil)
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
	m.keep(remembered{text: long, owner: "h"}, make([]int32, mostRemembered), nil)
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

// TestMarks holds for each pre-tokenizer that a word which follows from the beginning of a text alone is one of all
// texts that begin so, as are those before it, and that the rest of them is cut as a text of its own.
func TestMarks(t *testing.T) {
	for _, rule := range preRules {
		p, err := compileRule(rule)
		if err != nil {
			t.Fatal(err)
		}
		settled := 0
		rapid.Check(t, func(t *rapid.T) {
			word := rapid.StringMatching(`((a|B|ll|'|'s|'L|1|12|  | |\n|\r\n|\.|,\n|é|中|ก้|_|/|!!){1,12})`)
			a, b, c := word.Draw(t, "beginning"), word.Draw(t, "end"), word.Draw(t, "other end")
			ends, seen := p.split(newRunes(a+b), nil)
			whole, _ := p.split(newRunes(a+c), nil)
			common := 0
			for x, y := newRunes(a+b).cps, newRunes(a+c).cps; common < min(len(x), len(y)) && x[common] == y[common]; {
				common++
			}
			if len(seen) > 0 != (len(rule.stages) == 1) {
				t.Fatalf("%d stages, %d words seen", len(rule.stages), len(seen))
			}
			for i, n := range seen {
				if int(n) > common {
					break
				}
				settled++
				if i >= len(whole) || !slices.Equal(whole[:i+1], ends[:i+1]) {
					t.Fatalf("%q and %q: words end at %d and %d, %d follow from %d", a+b, a+c, ends, whole, i+1, n)
				}
				rest, _ := p.split(newRunes(string([]rune(a + c)[ends[i]:])), nil)
				for k := range rest {
					rest[k] += ends[i]
				}
				if !slices.Equal(rest, whole[i+1:]) {
					t.Fatalf("%q: words behind %d end at %d, in the whole at %d", a+c, ends[i], rest, whole[i+1:])
				}
			}
		})
		if settled == 0 && len(rule.stages) == 1 {
			t.Errorf("%s: no word follows from a beginning", rule.names)
		}
	}
}

// TestRememberBeginnings: a text that begins as others of its owner do has the tokens that it has by itself, and only
// what is behind the beginning is encoded.
func TestRememberBeginnings(t *testing.T) {
	tok := newGopher(t)
	ctx := Remember(t.Context(), "a")
	text, draw := "", rand.New(rand.NewPCG(1, 2))
	words := []string{"func ", "x := y", "\n", "  ", "é", "return", "0x12", "\"", "\t", " (", ")"}
	more := func(n int) (s string) {
		for len(s) < n {
			s += words[draw.IntN(len(words))]
		}
		return s
	}
	for i := range 40 {
		if i%7 == 6 {
			text = text[:len(text)-draw.IntN(len(text)*2/3)] // within a word, or a code point
		}
		text += more(1 + draw.IntN(12000))
		want := tok.Encode(text, EncodeOptions{})
		got, err := tok.EncodeContext(ctx, text, EncodeOptions{})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("text %d of %d bytes: other tokens, %v", i, len(text), err)
		}
		last := tok.memory.order.Front().Value.(*recollection)
		if n := len(last.marks); n < len(text)/markEvery/2-1 {
			t.Errorf("text %d of %d bytes has %d marks", i, len(text), n)
		}
	}
	of := remembered{owner: "a", text: text + "more"}
	if ids, marks := tok.memory.begin(nil, of); len(marks) == 0 || len(text)-marks[len(marks)-1].at > 2*markEvery || len(ids) != marks[len(marks)-1].ids {
		t.Errorf("%d tokens are known of a text of %d bytes, which has %d marks", len(ids), len(text), len(marks))
	}
	if of.owner = "b"; len(first(tok.memory.begin(nil, of))) > 0 {
		t.Error("an owner goes on with what another has sent")
	}
}

// TestRememberConversations: a conversation goes on behind what was known of it, however many others begin alike, as
// long as its own text is remembered.
func TestRememberConversations(t *testing.T) {
	tok := newGopher(t)
	ctx := Remember(t.Context(), "a")
	system := strings.Repeat("return x ", 600)
	talk := func(user int) string { return system + strings.Repeat(fmt.Sprintf("func %d () ", user), 900) }
	m := &tok.memory
	encode := func(text string) {
		want := tok.Encode(text, EncodeOptions{})
		if got, err := tok.EncodeContext(ctx, text, EncodeOptions{}); err != nil || !slices.Equal(got, want) {
			t.Fatalf("other tokens, %v", err)
		}
	}
	for user := range 2 * mostCompared {
		encode(talk(user))
	}
	text := talk(0) + "return"
	if _, marks := m.begin(nil, remembered{owner: "a", text: text}); len(marks) == 0 || len(text)-marks[len(marks)-1].at > 2*markEvery {
		t.Errorf("of a text of %d bytes that is longer than one before only %d marks are known", len(text), len(marks))
	}
	if len(m.begins) != 1 {
		t.Errorf("texts begin in %d ways, want 1", len(m.begins))
	}
	for i := range 16 { // each takes a sixteenth of the room
		m.keep(remembered{text: fmt.Sprint(i), owner: "b"}, make([]int32, mostRemembered/64), nil)
	}
	if n := len(m.begins); n != 0 {
		t.Errorf("%d beginnings are left of texts that have gone", n)
	}
}

func first(ids []int32, _ []mark) []int32 { return ids }
