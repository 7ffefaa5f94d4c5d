package grammar

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
	"github.com/zincc-dev/zincc/runtime/grammar/machine"
)

// keys follows JSON text and knows the keys that each open object has.
type keys struct {
	levels []level
	mode   keyMode
	escape bool
	raw    []byte // the key that is being written, without quotes
	// Where elements of arrays are compared: all text from the outermost bracket on, and where its last string begins.
	compare bool
	text    []byte
	quote   int
}

// level is an open object or array.
type level struct {
	object bool
	key    bool // a key comes next
	names  []string
	// Of an array, if elements are compared: those before the last comma, in one way to write them.
	elements    []string
	open, begin int // behind the bracket, and where the next one begins
}

type keyMode uint8

const (
	between keyMode = iota
	inKey
	inString
	inSingle // quotes, as of Python
)

func (k *keys) clone() keys {
	c := *k
	c.levels = slices.Clone(k.levels)
	for i := range c.levels {
		c.levels[i].names = slices.Clip(c.levels[i].names) // appending copies
		c.levels[i].elements = slices.Clip(c.levels[i].elements)
	}
	c.raw, c.text = slices.Clone(k.raw), slices.Clip(k.text)
	return c
}

// any says whether an open object has a key.
func (k *keys) any() bool {
	return slices.ContainsFunc(k.levels, func(l level) bool { return len(l.names) > 0 })
}

// stuck says whether the key that is being written can become no other key in a state: all that it can become have
// come.
func (k *keys) stuck(s *machine.State) bool {
	if k.mode != inKey || len(k.levels[len(k.levels)-1].names) == 0 || endless(s) {
		return false
	}
	return stuck(s, string(k.raw), k.levels[len(k.levels)-1].names)
}

// endless says whether the key that is being written can become another one in a state, however it goes on.
func endless(s *machine.State) bool {
	return !s.Some(func(l *lex.Lexer, at int32) bool { return !l.Endless(at) })
}

// stuck says whether a key, of which raw is written, can become none in a state but those of a list.
func stuck(s *machine.State, raw string, names []string) bool {
	return !s.Some(func(l *lex.Lexer, at int32) bool { return another(l, at, raw, names) })
}

// another says whether a key can become one that is in no list.
func another(l *lex.Lexer, at int32, raw string, names []string) bool {
	if l.Endless(at) {
		return true
	}
	whole, _, _ := l.InString(at)
	text := begun(raw, whole)
	var rest []string
	for _, name := range names {
		if s, is := strings.CutPrefix(name, text); is {
			rest = append(rest, s)
		}
	}
	if whole || len(rest) == 0 {
		return len(rest) == 0 || l.Other(at, rest)
	}
	for b := range 256 { // of an escape, or of a character of several bytes
		if next := l.Next(at, byte(b)); next >= 0 && another(l, next, raw+string([]byte{byte(b)}), names) {
			return true
		}
	}
	return false
}

// begun returns the text of what is written of a key. If it is not whole, it ends within an escape or a character,
// which do not count.
func begun(raw string, whole bool) (text string) {
	for n := len(raw); n >= 0; n-- {
		part := raw[:n]
		if !utf8.ValidString(part) || json.Unmarshal([]byte(`"`+part+`"`), &text) != nil {
			continue
		}
		if whole || !strings.HasSuffix(text, string(utf8.RuneError)) { // else it may be the first half of a pair
			return text
		}
	}
	return ""
}

// open returns what is written of a key, and the keys that it must not become; false outside keys.
func (k *keys) open() (raw string, names []string, ok bool) {
	if k.mode != inKey {
		return "", nil, false
	}
	return string(k.raw), k.levels[len(k.levels)-1].names, true
}

// step follows a byte that comes in a state; false if it ends a key that its object has already.
func (k *keys) step(b byte, s *machine.State) bool {
	if k.compare {
		k.note(b)
	}
	if len(k.levels) == 0 {
		if (b == '{' || b == '[') && s.JSON() {
			k.levels = append(k.levels, level{object: b == '{', key: b == '{', open: len(k.text), begin: len(k.text)})
		}
		return true
	}
	top := &k.levels[len(k.levels)-1]
	switch k.mode {
	case between:
		switch b {
		case '"':
			k.mode = inString
			if top.key {
				k.mode, k.raw = inKey, k.raw[:0]
			}
		case '\'':
			k.mode = inSingle
		case '{', '[':
			k.levels = append(k.levels, level{object: b == '{', key: b == '{', open: len(k.text), begin: len(k.text)})
		case '}', ']':
			k.levels = k.levels[:len(k.levels)-1]
		case ',':
			top.key = top.object
		}
		return true
	case inKey:
		if k.escape || b != '"' {
			k.raw = append(k.raw, b)
		}
	}
	switch {
	case k.escape:
		k.escape = false
	case b == '\\':
		k.escape = true
	case k.mode == inSingle:
		if b == '\'' {
			k.mode = between
		}
	case b == '"':
		was := k.mode
		k.mode = between
		if was == inKey {
			top.key = false
			name := string(k.raw)
			if strings.IndexByte(name, '\\') >= 0 && json.Unmarshal([]byte(`"`+name+`"`), &name) != nil {
				return true // the machine refuses it
			}
			if slices.Contains(top.names, name) {
				return false
			}
			top.names = append(top.names, name)
		}
	}
	return true
}
