package api

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// elements yields the elements of valid JSON that is an array. It copies nothing.
func elements(raw []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		n := 0
		for part := range parts(raw) {
			if !yield(n, part) {
				return
			}
			n++
		}
	}
}

// members yields the names and values of valid JSON that is an object. A name may come again.
func members(raw []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for part := range parts(raw) {
			end := stringEnd(part, 0)
			name := string(part[1 : end-1])
			if strings.Contains(name, `\`) {
				json.Unmarshal(part[:end], &name)
			}
			if !yield(name, bytes.TrimSpace(bytes.TrimLeft(part[end:], " \t\r\n:"))) {
				return
			}
		}
	}
}

// parts yields what commas part within the brackets around raw.
func parts(raw []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		depth, begin := 0, 0
		for i := 0; i < len(raw); i++ {
			switch c := raw[i]; c {
			case '"':
				i = stringEnd(raw, i) - 1
			case '{', '[':
				if depth++; depth == 1 {
					begin = i + 1
				}
			case ',', '}', ']':
				if depth == 1 {
					part := bytes.TrimSpace(raw[begin:i])
					if len(part) > 0 && !yield(part) {
						return
					}
					begin = i + 1
				}
				if c != ',' {
					depth--
				}
			}
		}
	}
}

// stringEnd is where the JSON string at i ends.
func stringEnd(raw []byte, i int) int {
	quote := i // the next one, escaped or not
	for at := i + 1; at < len(raw); {
		if quote < at {
			n := bytes.IndexByte(raw[at:], '"')
			if n < 0 {
				break
			}
			quote = at + n
		}
		n := bytes.IndexByte(raw[at:quote], '\\')
		if n < 0 {
			return quote + 1
		}
		at += n + 2
	}
	return len(raw)
}

// escapes are what follows a backslash in JSON and stands for one byte.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unquote returns what a string of valid JSON stands for, as encoding/json does, which looks at each byte thrice.
func unquote(raw []byte) string {
	raw = raw[1 : len(raw)-1]
	n := bytes.IndexByte(raw, '\\')
	if n < 0 {
		return string(raw)
	}
	s := make([]byte, 0, len(raw))
	for ; n >= 0; n = bytes.IndexByte(raw, '\\') {
		s = append(s, raw[:n]...)
		if c := escapes[raw[n+1]]; c != 0 {
			s, raw = append(s, c), raw[n+2:]
			continue
		}
		r := hexRune(raw[n:])
		raw = raw[n+6:]
		if utf16.IsSurrogate(r) {
			if r = utf16.DecodeRune(r, hexRune(raw)); r != utf8.RuneError {
				raw = raw[6:]
			}
		}
		s = utf8.AppendRune(s, r)
	}
	return string(append(s, raw...))
}

// hexRune is the code unit that \uXXXX stands for, 0 where there is none.
func hexRune(raw []byte) rune {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0
	}
	r, _ := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return rune(r)
}
