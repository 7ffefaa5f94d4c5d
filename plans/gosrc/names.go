package gosrc

import (
	"fmt"
	"go/token"
	"strings"
)

// words are the runs of ASCII letters and digits in s.
func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
	})
}

// names gives out the identifiers of the program, each once.
type names map[string]bool

// add returns an identifier for text, such as blk0AttnQWeight for blk.0.attn_q.weight.
func (n names) add(text string) string {
	var b strings.Builder
	for i, w := range words(text) {
		if i > 0 {
			w = strings.ToUpper(w[:1]) + w[1:]
		} else if w[0] >= '0' && w[0] <= '9' {
			b.WriteString("x")
		}
		b.WriteString(w)
	}
	name := b.String()
	if name == "" || token.IsKeyword(name) {
		name += "X"
	}
	id := name
	for i := 2; n[id]; i++ {
		id = fmt.Sprintf("%sX%d", name, i)
	}
	n[id] = true
	return id
}
