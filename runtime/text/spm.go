package text

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// spm is the BPE of SentencePiece: two neighbours may join if the result is a
// token, the one with the highest score first. Spaces are written as U+2581.
type spm struct {
	byText      map[string]int32
	rank        []int32 // of each token by falling score; equal scores share one
	bytes       [256]int32
	spacePrefix bool // a text that begins or follows a special token gets a space
}

const escapedSpace = "\u2581"

func newSPM(byText map[string]int32, tokens []token, unk int32, spacePrefix bool) *spm {
	m := &spm{byText: byText, rank: make([]int32, len(tokens)), spacePrefix: spacePrefix}
	order := make([]int32, len(tokens))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(tokens[b].score, tokens[a].score) })
	for i, id := range order {
		m.rank[id] = int32(i)
		if i > 0 && tokens[order[i-1]].score == tokens[id].score {
			m.rank[id] = m.rank[order[i-1]]
		}
	}
	for b := range m.bytes {
		m.bytes[b] = unk
		for _, name := range []string{fmt.Sprintf("<0x%02X>", b), string([]byte{byte(b)})} {
			if id, ok := byText[name]; ok {
				m.bytes[b] = id
				break
			}
		}
	}
	return m
}

func (m *spm) encode(ids []int32, s string, first bool, stop *cancel) []int32 {
	if m.spacePrefix && first {
		s = " " + s
	}
	s = strings.ReplaceAll(s, " ", escapedSpace)
	w := merger{rule: m, stop: stop}
	w.begin(s, utf8.RuneCountInString(s))
	for i := 0; i < len(s); {
		end := min(i+sequenceLen(s[i]), len(s))
		w.add(int32(i), int32(end), 0)
		i = end
	}
	for n := range w.merged() {
		ids = m.appendPart(ids, s[n.start:n.end])
	}
	return ids
}

func (m *spm) join(word string, l, r node) (rank int32, symbol int32, ok bool) {
	id, ok := m.byText[word[l.start:r.end]]
	if !ok {
		return 0, 0, false
	}
	return m.rank[id], id, true
}

// appendPart appends the token of a part, or its bytes if it is none: then it
// is one code point that never joined another.
func (m *spm) appendPart(ids []int32, part string) []int32 {
	if id, ok := m.byText[part]; ok {
		return append(ids, id)
	}
	for i := range len(part) {
		if id := m.bytes[part[i]]; id >= 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

func (m *spm) piece(text string) string { return strings.ReplaceAll(text, escapedSpace, " ") }
