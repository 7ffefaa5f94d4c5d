package printable

import (
	"bytes"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestWriter writes the bytes that a terminal acts on, whole and one by one.
func TestWriter(t *testing.T) {
	const text = "a\x1b[2J\x1b]0;title\x07b\b\b\x9b31m\u009bc\r\x7f\x00\u202ed\n\tgröß 世界"
	const want = "a[2J]0;titleb�31mcd\n\tgröß 世界"
	for _, n := range []int{1, 2, 3, 5, len(text)} {
		var b bytes.Buffer
		w := Writer(&b)
		for rest := text; rest != ""; {
			part := rest[:min(n, len(rest))]
			rest = rest[len(part):]
			if k, err := w.Write([]byte(part)); k != len(part) || err != nil {
				t.Fatalf("%d, %v", k, err)
			}
		}
		if b.String() != want {
			t.Errorf("%d bytes at a time: %q, want %q", n, b.String(), want)
		}
	}
}

// TestWriterIsPrintable writes any bytes in any pieces.
func TestWriterIsPrintable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b, whole bytes.Buffer
		w, all := Writer(&b), []byte(nil)
		for _, p := range rapid.SliceOf(rapid.SliceOf(rapid.Byte())).Draw(t, "pieces") {
			w.Write(p)
			all = append(all, p...)
		}
		Writer(&whole).Write(all)
		if !bytes.Equal(b.Bytes(), whole.Bytes()) {
			t.Errorf("in pieces %q, whole %q", b.Bytes(), whole.Bytes())
		}
		for _, r := range b.String() {
			if r != '\n' && r != '\t' && unicode.IsControl(r) || !utf8.Valid(b.Bytes()) {
				t.Errorf("%q", b.String())
			}
		}
	})
}
