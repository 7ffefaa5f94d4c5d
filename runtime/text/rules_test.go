package text

import (
	"slices"
	"testing"
)

func small(model, pre, name string, tokens ...string) Vocab {
	v := Vocab{Model: model, Pre: pre, Name: name, Tokens: tokens, AddBOS: new(bool)}
	for range tokens {
		v.Types = append(v.Types, typeNormal)
	}
	return v
}

// TestRankOfTwice: a merge that is listed twice has the rank of the first place.
func TestRankOfTwice(t *testing.T) {
	v := small("gpt2", "gpt-2", "", "a", "b", "c", "ab", "bc")
	v.Merges = []string{"a b", "b c", "a b"}
	if got := mustNew(t, v).Encode("abc", EncodeOptions{}); !slices.Equal(got, []int32{3, 2}) {
		t.Errorf("abc is %d, want ab c", got)
	}
}

// TestEqualScores: of joins of the same score the leftmost goes first, in whatever order the vocabulary has them.
func TestEqualScores(t *testing.T) {
	v := small("llama", "", "", "<unk>", "bc", "ab", "a", "b", "c")
	v.Scores, v.AddSpacePrefix = []float32{0, -1, -1, -9, -9, -9}, new(bool)
	if got := mustNew(t, v).Encode("abc", EncodeOptions{}); !slices.Equal(got, []int32{2, 5}) {
		t.Errorf("abc is %d, want ab c", got)
	}
}

// TestStripAfterSpecial: all ASCII white space behind a special token of Phi-3 belongs to it.
func TestStripAfterSpecial(t *testing.T) {
	v := small("gpt2", "gpt-2", "Phi-3 mini", "x", "<|end|>", "Ġ", "ĉ", "Ċ", "ċ", "Č", "č")
	v.Types[1] = typeControl
	for _, space := range []string{"", " ", "\t", "\n", "\v", "\f", "\r", " \t\n\v\f\r"} {
		if got := mustNew(t, v).Encode("<|end|>"+space+"x", EncodeOptions{ParseSpecial: true}); !slices.Equal(got, []int32{1, 0}) {
			t.Errorf("%q behind the token: %d", space, got)
		}
	}
}

// TestLongest: no token has more bytes than Longest says, and one has as many.
func TestLongest(t *testing.T) {
	tok := mustNew(t, small("gpt2", "gpt-2", "", "a", "abc", "ĠĠĠĠĠ"))
	if tok.Longest() != 5 {
		t.Errorf("%d bytes, want the five spaces", tok.Longest())
	}
}
