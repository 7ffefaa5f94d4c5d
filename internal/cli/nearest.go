package cli

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Nearest returns the candidate that word is most likely a slip of: at most a third of its letters differ, or it begins
// one of them. "" if there is none. Upper and lower case do not matter.
func Nearest(word string, candidates []string) string {
	word = strings.ToLower(word)
	best, found := len([]rune(word))/3+1, ""
	for _, c := range candidates {
		d := levenshtein.ComputeDistance(word, strings.ToLower(c))
		if d == 2 && letters(word) == letters(strings.ToLower(c)) {
			d = 1 // two are swapped
		}
		if d < best {
			best, found = d, c
		}
	}
	for _, c := range candidates {
		if found == "" && len(word) > 2 && strings.HasPrefix(strings.ToLower(c), word) {
			found = c
		}
	}
	return found
}

// letters are those of word, in order.
func letters(word string) string {
	all := []rune(word)
	slices.Sort(all)
	return string(all)
}
