package lineedit

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// A key is what was typed: a name such as "left" or "^R", or the text of a character or of a paste.
type key struct {
	name string // "" for text
	text string
}

// Terminals put these around what is pasted.
const (
	pasteBegins = "\x1b[200~"
	pasteEnds   = "\x1b[201~"
)

// maxPaste bounds the bytes of one paste; what is behind them is left out.
const maxPaste = 16 << 20

// sequences are the escape sequences of keys, as xterm, the Linux console and rxvt send them.
var sequences = map[string]string{
	"[A": "up", "[B": "down", "[C": "right", "[D": "left", "[H": "home", "[F": "end",
	"OA": "up", "OB": "down", "OC": "right", "OD": "left", "OH": "home", "OF": "end",
	"[1~": "home", "[7~": "home", "[4~": "end", "[8~": "end", "[3~": "delete",
	"[1;5C": "word right", "[1;5D": "word left", "[1;3C": "word right", "[1;3D": "word left", "f": "word right", "b": "word left",
	"d": "delete word right", "\x7f": "delete word left", "\x08": "delete word left", "\r": "newline", "\n": "newline",
}

// controls are the keys that are one byte.
var controls = map[byte]string{
	1: "home", 2: "left", 3: "^C", 4: "^D", 5: "end", 6: "right", 7: "^G", 8: "backspace", 9: "\t", 10: "newline", 11: "delete to end",
	12: "^L", 13: "enter", 14: "down", 16: "up", 18: "^R", 21: "delete to start", 23: "delete word left", 25: "yank", 127: "backspace",
}

// next takes the first key off data. ok is false if data ends within a key.
func next(data []byte) (k key, rest []byte, ok bool) {
	if len(data) == 0 {
		return key{}, data, false
	}
	switch c := data[0]; {
	case c == 0x1b:
		return escape(data)
	case c == '\t':
		return key{text: "\t"}, data[1:], true
	case c < 0x20 || c == 0x7f:
		return key{name: controls[c]}, data[1:], true
	}
	// Characters that came together are inserted together.
	n := 0
	for n < len(data) && data[n] >= 0x20 && data[n] != 0x7f {
		if !utf8.FullRune(data[n:]) {
			break
		}
		_, size := utf8.DecodeRune(data[n:])
		n += size
	}
	if n == 0 {
		return key{}, data, false
	}
	return key{text: string(data[:n])}, data[n:], true
}

func escape(data []byte) (key, []byte, bool) {
	if bytes.HasPrefix(data, []byte(pasteBegins)) {
		end := bytes.Index(data, []byte(pasteEnds))
		if end < 0 {
			return key{}, data, false
		}
		return key{text: string(data[len(pasteBegins):min(end, maxPaste)])}, data[end+len(pasteEnds):], true
	}
	if len(data) < 2 {
		return key{}, data, false
	}
	n := 2
	if c := data[1]; c == '[' || c == 'O' {
		// Parameters, then one byte that ends the sequence.
		for n < len(data) && data[n] >= 0x20 && data[n] < 0x40 {
			n++
		}
		if n == len(data) {
			return key{}, data, false
		}
		n++
	}
	return key{name: sequences[string(data[1:n])]}, data[n:], true
}

// visible returns text as it can be edited: lines end in \n, and control characters are left out.
func visible(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
}
