package text

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// chatVocab is gopherVocab with the markers of a chat template.
func chatVocab(t testing.TB) Vocab {
	v := gopherVocab(t, "qwen2")
	for text, typ := range map[string]int32{
		"<|im_start|>": typeControl, "<|im_end|>": typeControl, "<think>": typeUserDefined, "\n\n\n": typeUserDefined,
	} {
		v.Tokens = append(v.Tokens, text)
		v.Types = append(v.Types, typ)
	}
	return v
}

func TestEncodeSpans(t *testing.T) {
	tok := mustNew(t, chatVocab(t))
	id := func(name string) int32 {
		id, ok := tok.ID(name)
		if !ok {
			t.Fatalf("no token %s", name)
		}
		return id
	}
	ours, theirs := func(s string) Span { return Span{s, false} }, func(s string) Span { return Span{s, true} }
	for _, c := range []struct {
		name  string
		spans []Span
		want  []int32 // the special ones among the ids
	}{
		{"template", []Span{ours("<|im_start|>user\n"), theirs("hi"), ours("<|im_end|>\n")}, []int32{id("<|im_start|>"), id("<|im_end|>")}},
		{"literal", []Span{ours("<|im_start|>"), theirs("<|im_end|><think><|im_start|>")}, []int32{id("<|im_start|>")}},
		{"across a seam", []Span{ours("<|im_"), theirs("end|>"), theirs("<|im_st"), ours("art|>")}, nil},
		{"template in two spans", []Span{ours("<|im_"), ours("end|>")}, []int32{id("<|im_end|>")}},
		{"after an empty literal", []Span{ours("<|im_"), theirs(""), ours("end|>")}, []int32{id("<|im_end|>")}},
		{"at the seams", []Span{theirs("x"), ours("<think>"), theirs("x")}, []int32{id("<think>")}},
		{"one literal byte first", []Span{theirs("<"), ours("think><think>")}, []int32{id("<think>")}},
		{"one literal byte last", []Span{ours("<think><think"), theirs(">")}, []int32{id("<think>")}},
		{"white space", []Span{theirs("a\n\n\nb")}, []int32{id("\n\n\n")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []int32
			var whole strings.Builder
			for _, s := range c.spans {
				whole.WriteString(s.Text)
			}
			ids := spansOf(tok, c.spans)
			for _, id := range ids {
				if slices.Contains(tok.special, id) {
					got = append(got, id)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("special tokens %v, want %v", got, c.want)
			}
			if text := tok.Decode(ids, true); text != whole.String() {
				t.Errorf("decodes to %q, want %q", text, whole.String())
			}
		})
	}
}

func TestEncodeSpansBOS(t *testing.T) {
	v := chatVocab(t)
	v.AddBOS = new(true)
	tok := mustNew(t, v)
	bos := tok.Piece(tok.BOS(), true)
	for _, text := range []string{"", "x", bos + "x"} {
		ids := spansOf(tok, []Span{{Text: text}})
		if n := len(ids) - len(slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return id == tok.BOS() })); n != 1 || ids[0] != tok.BOS() {
			t.Errorf("EncodeSpans(%q) = %v, want one BOS, first", text, ids)
		}
	}
	if ids := spansOf(tok, []Span{{bos, true}}); len(ids) < 3 {
		t.Errorf("a literal BOS gives %v", ids)
	}
}

// Where the spans are cut changes nothing but what special tokens are seen.
func TestEncodeSpansSeams(t *testing.T) {
	toks := []*Tokenizer{mustNew(t, chatVocab(t)), mustNew(t, spmVocab(t))}
	rapid.Check(t, func(t *rapid.T) {
		tok := rapid.SampledFrom(toks).Draw(t, "tokenizer")
		parts := rapid.SliceOf(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			"<|im_start|>", "<|im_end|>", "<think>", "<|im_", "end|>", "the ", "word", "\n\n\n", "<s>", "</s>",
		}))).Draw(t, "parts")
		var spans, literal []Span
		for _, p := range parts {
			spans = append(spans, Span{p, false})
			literal = append(literal, Span{p, true})
		}
		whole := strings.Join(parts, "")
		if got, want := spansOf(tok, spans), tok.Encode(whole, EncodeOptions{ParseSpecial: true}); !slices.Equal(withoutBOS(tok, got), withoutBOS(tok, want)) {
			t.Fatalf("template: %v, want %v", got, want)
		}
		if got, want := spansOf(tok, literal), spansOf(tok, []Span{{whole, true}}); !slices.Equal(got, want) {
			t.Fatalf("literal: %v, want %v", got, want)
		}
		for _, id := range withoutBOS(tok, spansOf(tok, literal)) {
			if tok.tokens[id].attr&attrControl != 0 {
				t.Fatalf("a literal text gives the control token %d", id)
			}
		}
		// Any mix: the special tokens are a subset, the text is the same.
		mixed := slices.Clone(spans)
		for i := range mixed {
			mixed[i].Literal = rapid.Bool().Draw(t, "literal")
		}
		if got, want := tok.Decode(spansOf(tok, mixed), true), tok.Decode(spansOf(tok, spans), true); tok == toks[0] && got != want {
			t.Fatalf("mixed: decodes to %q, want %q", got, want)
		}
	})
}

func withoutBOS(tok *Tokenizer, ids []int32) []int32 {
	if tok.addBOS && len(ids) > 0 && ids[0] == tok.bos {
		return ids[1:]
	}
	return ids
}

// spansOf is EncodeSpans of a text that nobody cancels.
func spansOf(tok *Tokenizer, spans []Span) []int32 {
	ids, _ := tok.EncodeSpans(context.Background(), spans)
	return ids
}
