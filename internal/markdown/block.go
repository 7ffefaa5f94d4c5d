package markdown

import "strings"

// block is what a line is, by what it begins with.
type block struct {
	wait    bool   // more of the line has to come
	fence   string // it opens code, until this stands alone
	whole   bool   // a row of a table, or a rule: not broken between words
	heading bool
	marker  int // bytes of an item's or a quote's marker, and the blanks around it
}

func blockOf(line string, ended bool) block {
	text := strings.TrimLeft(line, " \t")
	indent := len(line) - len(text)
	if text == "" {
		return block{wait: !ended}
	}
	run := strings.IndexFunc(text, func(r rune) bool { return r != rune(text[0]) })
	alone := run < 0 // nothing else has come yet
	if alone {
		run = len(text)
	}
	more := alone && !ended // what follows the run decides
	blank := !alone && (text[run] == ' ' || text[run] == '\t')
	switch c := text[0]; {
	case strings.IndexByte("-*_+", c) >= 0:
		return listOrRule(c, indent, run, alone, blank, more)
	case c == '`' || c == '~':
		if run >= 3 && (c == '~' || !strings.Contains(text[run:], "`")) {
			return block{fence: text[:run]}
		}
		return block{wait: more && run < 3}
	case c == '#':
		return block{wait: more && run <= 6, heading: run <= 6 && (alone || blank)}
	case c == '|':
		return block{whole: true}
	case c == '>':
		n := indent + 1
		if len(text) > 1 && text[1] == ' ' {
			n++
		}
		return block{wait: len(text) == 1 && !ended, marker: n}
	}
	return numbered(text, indent, ended)
}

// listOrRule is what begins with run characters c, of which lists or lines across the page are made. They are alone, or
// a blank follows them, or more may come that decides.
func listOrRule(c byte, indent, run int, alone, blank, more bool) block {
	switch {
	case c != '+' && alone && run >= 3:
		return block{wait: more, whole: true}
	case c != '_' && run == 1 && blank:
		return block{marker: indent + 2}
	case c == '+' && run > 1:
		return block{}
	}
	return block{wait: more}
}

// numbered is the block of a line that may begin with a number.
func numbered(text string, indent int, ended bool) block {
	rest := strings.TrimLeft(text, "0123456789")
	digits := len(text) - len(rest)
	switch {
	case digits == 0 || digits > 9:
	case rest == "" || rest == "." || rest == ")":
		return block{wait: !ended}
	case strings.HasPrefix(rest, ". ") || strings.HasPrefix(rest, ") "):
		return block{marker: indent + digits + 2}
	}
	return block{}
}
