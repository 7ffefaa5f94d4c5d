package text

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestFinder: a text has the words that strings.Contains finds.
func TestFinder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfDistinct(rapid.StringMatching(`[<>ab|é]{1,4}`), rapid.ID[string]).Draw(t, "words")
		s := rapid.StringMatching(`[<>ab|é]{0,40}`).Draw(t, "text")
		var want []int
		for i, w := range words {
			if strings.Contains(s, w) {
				want = append(want, i)
			}
		}
		if got := newFinder(len(words), func(i int) string { return words[i] }).find(s); !slices.Equal(got, want) {
			t.Fatalf("%q has %d of %q, want %d", s, got, words, want)
		}
	})
}
