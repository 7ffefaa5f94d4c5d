package text

import (
	"strings"
	"unicode/utf8"
)

// lineBPE is the BPE of gemma4: by the ranks of merges, over code points. A word is a line or a
// run of newlines. A run that is a token is taken whole. Spaces and what is no token
// are as in spm.
type lineBPE struct {
	*spm
	merges map[[2]string]int32 // rank by both sides
}

func newLineBPE(of *spm, merges []string) *lineBPE {
	m := &lineBPE{spm: of, merges: make(map[[2]string]int32, len(merges))}
	for rank, text := range merges {
		if text == "" {
			continue
		}
		at := strings.IndexByte(text[1:], ' ') + 1 // tokens have no spaces but the first
		if at == 0 {
			continue
		}
		pair := [2]string{text[:at], text[at+1:]}
		if _, dup := m.merges[pair]; !dup {
			m.merges[pair] = int32(rank)
		}
	}
	return m
}

func (m *lineBPE) encode(ids []int32, s string, _ bool, stop *cancel) []int32 {
	s = strings.ReplaceAll(s, " ", escapedSpace)
	w := merger{rule: m, stop: stop}
	for s != "" && !stop.now() {
		line := strings.IndexByte(s, '\n')
		if line == 0 {
			line = len(s) - len(strings.TrimLeft(s, "\n"))
			if id, ok := m.byText[s[:line]]; ok {
				ids, s = append(ids, id), s[line:]
				continue
			}
		} else if line < 0 {
			line = len(s)
		}
		word := s[:line]
		s = s[line:]
		w.begin(word, utf8.RuneCountInString(word))
		for i := 0; i < len(word); {
			end := min(i+sequenceLen(word[i]), len(word))
			w.add(int32(i), int32(end), 0)
			i = end
		}
		for n := range w.merged() {
			ids = m.appendPart(ids, word[n.start:n.end])
		}
	}
	return ids
}

// join returns the merge of two neighbours.
func (m *lineBPE) join(word string, l, r node) (rank int32, symbol int32, ok bool) {
	rank, ok = m.merges[[2]string{word[l.start:l.end], word[r.start:r.end]}]
	return rank, 0, ok
}
