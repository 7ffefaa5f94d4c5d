package api

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"
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
	for i++; i < len(raw) && raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(raw))
}
