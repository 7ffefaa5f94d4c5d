package printable

import (
	"io"
	"unicode/utf8"
)

// Writer returns a writer for text of others that a terminal shows: it writes to w what Stream leaves of it. A rune may
// come in pieces; what is no UTF-8 becomes U+FFFD. It counts all bytes that it was given as written.
func Writer(w io.Writer) io.Writer { return &writer{to: w} }

type writer struct {
	to   io.Writer
	rest []byte // of a rune that has not come whole
}

func (w *writer) Write(p []byte) (int, error) {
	text := append(w.rest, p...)
	end := len(text)
	for i := max(0, end-utf8.UTFMax+1); i < end; i++ {
		if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:]) {
			end = i
			break
		}
	}
	w.rest = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(w.to, Stream(string(text[:end]))); err != nil {
		return 0, err
	}
	return len(p), nil
}
