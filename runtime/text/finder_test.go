package text

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestFinder: a text has the words that strings.Contains finds behind a place where none can stand.
func TestFinder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfDistinct(rapid.StringMatching(`[<>ab|é]{1,4}`), rapid.ID[string]).Draw(t, "words")
		s := rapid.StringMatching(`[<>ab|é]{0,40}`).Draw(t, "text")
		from := rapid.IntRange(0, len(s)).Draw(t, "from")
		var want []int
		for i, w := range words {
			if strings.Contains(s[from:], w) {
				want = append(want, i)
			}
		}
		f := newFinder(len(words), func(i int) string { return words[i] })
		if got := f.find(s, func(_, at int) bool { return at >= from }); !slices.Equal(got, want) {
			t.Fatalf("%q has %d of %q, want %d", s, got, words, want)
		}
	})
}

// TestEncodeEnds: a text of special tokens alone is not cut for a context that has ended.
func TestEncodeEnds(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	if ids, err := newGopher(t).EncodeContext(ctx, "<|endoftext|>", EncodeOptions{ParseSpecial: true}); err != context.Canceled {
		t.Errorf("%d, %v", ids, err)
	}
}
