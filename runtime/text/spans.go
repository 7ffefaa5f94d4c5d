package text

import (
	"context"
	"slices"
	"strings"
	"unicode"
)

// Span is a part of a text: the template's own, or, if Literal, what somebody
// else put into it.
type Span struct {
	Text    string
	Literal bool
}

// EncodeSpans returns the tokens of the spans as one text, so that no word is cut where
// two of them touch. A special token is recognised only where all its
// bytes are the template's: a literal <|im_end|> is the text of these characters.
// Tokens of white space alone, which some vocabularies list as user-defined,
// are part of any text. BOS goes before, if the vocabulary asks for it and the
// text does not begin with it. The error is that of ctx.
func (t *Tokenizer) EncodeSpans(ctx context.Context, spans []Span) ([]int32, error) {
	size := 0
	for _, p := range spans {
		size += len(p.Text)
	}
	var s strings.Builder
	s.Grow(size)
	var starts []int // of literal and template parts in turn, a template part first
	literal := false
	for _, p := range spans {
		if p.Text != "" && p.Literal != literal {
			starts = append(starts, s.Len())
			literal = p.Literal
		}
		s.WriteString(p.Text)
	}
	ids, err := t.encode(ctx, make([]int32, 0, size/4), s.String(), func(tok *token, at int) bool {
		if tok.space {
			return true
		}
		part, _ := slices.BinarySearch(starts, at+1)
		end, _ := slices.BinarySearch(starts, at+len(tok.text))
		return part == end && part%2 == 0
	})
	if t.addBOS && (len(ids) == 0 || ids[0] != t.bos) {
		ids = slices.Insert(ids, 0, t.bos)
	}
	return ids, err
}

// isBlank says whether a token is user-defined white space.
func (tok *token) isBlank() bool {
	return tok.attr&attrUserDefined != 0 && strings.TrimFunc(strings.ReplaceAll(tok.text, escapedSpace, " "), unicode.IsSpace) == ""
}
