package text

import (
	"cmp"
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"
)

// attr is a set of properties of a token. The file gives each token one; names
// that models agree on add to it.
type attr uint8

const (
	attrNormal attr = 1 << iota
	attrUnknown
	attrControl
	attrUserDefined
	attrByte
	attrRStrip // swallows the white space after it
)

func attrOf(ggmlType int32) attr {
	switch ggmlType {
	case typeNormal:
		return attrNormal
	case typeUnknown:
		return attrUnknown
	case typeControl:
		return attrControl
	case typeUserDefined:
		return attrUserDefined
	case typeByte:
		return attrByte
	}
	return 0
}

// Names of tokens whose meaning files often do not state.
var (
	eotNames = []string{"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>",
		"<EOT>", "_<EOT>", "[EOT]", "<｜end▁of▁sentence｜>", "<end_of_utterance>"}
	eomNames    = []string{"<|eom_id|>"}
	fimPadNames = []string{"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}
	fimRepNames = []string{"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}
	fimSepNames = []string{"<|file_sep|>"}
	// Other fill-in-the-middle markers: control tokens, but generation goes on.
	fimPrefixNames = []string{"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>"}
	fimSuffixNames = []string{"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>"}
	fimMiddleNames = []string{"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>"}
	fimNames       = slices.Concat(fimPrefixNames, fimSuffixNames, fimMiddleNames)
	// Names that end generation wherever they occur.
	eogNames = []string{"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
		"<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
		"<end_of_utterance>", "<eos>", "<｜end▁of▁sentence｜>", "<turn|>", "<|tool_response>", "[e~["}
	// Markers of formats, which a reader of the text must see: harmony's and gemma 4's.
	visibleNames = []string{"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>",
		"<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", `<|"|>`}
)

// findSpecial works out which tokens are special and which end generation.
func (t *Tokenizer) findSpecial(v Vocab) {
	t.eog = map[int32]bool{}
	for _, r := range []struct {
		id    *int32
		names []string
		ends  bool
	}{
		{v.EOT, eotNames, true},
		{v.EOM, eomNames, true},
		{v.FIMPad, fimPadNames, true},
		{v.FIMRep, fimRepNames, true},
		{v.FIMSep, fimSepNames, true},
		{nil, fimNames, false},
	} {
		id := t.specialID(r.id, -1)
		if id < 0 {
			id = t.named(r.names)
		}
		if r.ends && id >= 0 {
			t.eog[id] = true
		}
	}
	for _, name := range eogNames {
		if name == "</s>" && v.Model == "gemma4" {
			continue // a tag of HTML there
		}
		if id := t.named([]string{name}); id >= 0 {
			t.eog[id] = true
		}
	}
	if t.eos >= 0 {
		t.eog[t.eos] = true
	}
	for _, name := range visibleNames {
		if id, ok := t.byText[name]; ok {
			t.tokens[id].attr = attrUserDefined
		}
	}
	t.fixHarmonyEnd()

	for i, tok := range t.tokens {
		if tok.attr&(attrControl|attrUserDefined|attrUnknown) != 0 {
			t.special = append(t.special, int32(i))
		}
	}
	slices.SortStableFunc(t.special, func(a, b int32) int {
		return cmp.Compare(len(t.tokens[b].text), len(t.tokens[a].text))
	})
	t.finder = newFinder(len(t.special), func(i int) string { return t.tokens[t.special[i]].text })
	if name := strings.ToLower(v.Name); strings.Contains(name, "phi-3") || strings.Contains(name, "phi3") {
		t.stripAfterSpecial()
	}
}

// named returns the first of names that is in the vocabulary and makes it a
// control token.
func (t *Tokenizer) named(names []string) int32 {
	for _, name := range names {
		if id, ok := t.byText[name]; ok {
			t.tokens[id].attr |= attrControl
			return id
		}
	}
	return -1
}

// Gap is the tokens of a prompt that asks for the text of a gap.
type Gap struct {
	Prefix, Suffix, Middle int32
	Repo, File             int32 // before the name of a repository, of a file; -1: none
}

// Gap returns the tokens around a gap; false if the model was not trained to fill one.
func (t *Tokenizer) Gap() (Gap, bool) {
	find := func(names []string) int32 {
		for _, name := range names {
			if id, ok := t.byText[name]; ok {
				return id
			}
		}
		return -1
	}
	g := Gap{find(fimPrefixNames), find(fimSuffixNames), find(fimMiddleNames), find(fimRepNames), find(fimSepNames)}
	return g, g.Prefix >= 0 && g.Suffix >= 0 && g.Middle >= 0
}

// fixHarmonyEnd lets generation go on after <|end|> in vocabularies where that
// ends a message and not the turn.
func (t *Tokenizer) fixHarmonyEnd() {
	has := func(name string) bool {
		id, ok := t.byText[name]
		return ok && t.eog[id]
	}
	call := has("<|call|>") || has("<|calls|>")
	if call && has("<|end|>") && (has("<|return|>") || has("<|flush|>")) {
		id := t.byText["<|end|>"]
		delete(t.eog, id)
		t.tokens[id].attr = attrUserDefined
	}
}

// stripAfterSpecial sets what the Phi-3 files mean but do not say.
func (t *Tokenizer) stripAfterSpecial() {
	for _, id := range t.special {
		t.tokens[id].attr |= attrRStrip
	}
	if id, ok := t.byText["</s>"]; ok {
		t.tokens[id].attr |= attrRStrip
	}
	for _, name := range []string{"<unk>", "<s>", "<|endoftext|>"} {
		if id, ok := t.byText[name]; ok {
			t.tokens[id].attr &^= attrRStrip
		}
	}
}

// A fragment is one special token, or text between two of them.
type fragment struct {
	id   int32 // -1: text
	text string
	at   int // offset of text in the whole
}

// partition cuts the special tokens out of s, the one with the longest text
// first, wherever may says that the token can stand at that offset. The error is that of ctx.
func (t *Tokenizer) partition(ctx context.Context, s string, may func(tok *token, at int) bool) ([]fragment, error) {
	if s == "" {
		return nil, nil
	}
	frags, next := []fragment{{-1, s, 0}}, []fragment(nil)
	for _, i := range t.finder.find(s, func(i, at int) bool { return may(&t.tokens[t.special[i]], at) }) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		next = next[:0]
		for _, f := range frags {
			next = t.cut(next, f, t.special[i], may)
		}
		frags, next = next, frags
	}
	return frags, nil
}

// cut appends the parts of f around the occurrences of one special token.
func (t *Tokenizer) cut(out []fragment, f fragment, id int32, may func(*token, int) bool) []fragment {
	if f.id >= 0 {
		return append(out, f)
	}
	tok := &t.tokens[id]
	from := 0 // where the search goes on
	for {
		i := strings.Index(f.text[from:], tok.text)
		if i < 0 {
			break
		}
		if i += from; !may(tok, f.at+i) {
			_, n := utf8.DecodeRuneInString(f.text[i:])
			from = i + n
			continue
		}
		if i > 0 {
			out = append(out, fragment{-1, f.text[:i], f.at})
		}
		out = append(out, fragment{id: id})
		right := f.text[i+len(tok.text):]
		if tok.attr&attrRStrip != 0 {
			right = strings.TrimLeft(right, " \t\n\v\f\r")
		}
		f.at += len(f.text) - len(right)
		f.text, from = right, 0
	}
	if f.text != "" {
		out = append(out, f)
	}
	return out
}

// byteOf returns the byte that a token <0xXX> stands for, "" for other names.
func byteOf(name string) string {
	digits, ok := strings.CutPrefix(name, "<0x")
	if !ok || len(digits) != 3 || digits[2] != '>' {
		return ""
	}
	b, err := hex.DecodeString(digits[:2])
	if err != nil {
		return ""
	}
	return string(b)
}
