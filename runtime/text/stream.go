package text

import "unicode/utf8"

// A Stream turns tokens into text as they come, without cutting a code point
// in two: bytes that begin one are held back until the rest of it follows.
// Bytes that can be part of no code point pass through as they are.
type Stream struct {
	tok     *Tokenizer
	special bool
	held    []byte
}

// Stream begins a text. Control tokens give text only if special is set.
func (t *Tokenizer) Stream(special bool) *Stream {
	return &Stream{tok: t, special: special}
}

// Next takes a token and returns the text that is complete with it.
func (s *Stream) Next(id int32) string {
	s.held = append(s.held, s.tok.Piece(id, s.special)...)
	n := len(s.held)
	for i := n - 1; i >= max(0, n-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(s.held[i]) {
			if !utf8.FullRune(s.held[i:]) {
				n = i
			}
			break
		}
	}
	out := string(s.held[:n])
	s.held = append(s.held[:0], s.held[n:]...)
	return out
}

// Flush returns what is held back and ends the text.
func (s *Stream) Flush() string {
	out := string(s.held)
	s.held = s.held[:0]
	return out
}
