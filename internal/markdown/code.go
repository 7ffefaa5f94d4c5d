package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// language says what code of a language looks like: as much as colors need.
type language struct {
	names    string // that fences have
	line     string // begins a comment up to the line's end
	open     string // begins a comment over lines
	close    string
	quotes   string // of strings within a line
	long     string // of strings over lines
	keywords string
}

const cWords = "break case char class const continue default do double else enum extern float for goto if inline int long namespace new private public return short signed sizeof static struct switch template this throw try typedef union unsigned using virtual void volatile while bool true false nullptr"

var languages = []language{
	{names: "go golang", line: "//", open: "/*", close: "*/", quotes: `"'`, long: "`",
		keywords: "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false"},
	{names: "c cpp c++ cc h hpp cuda glsl hlsl objc", line: "//", open: "/*", close: "*/", quotes: `"'`, keywords: cWords},
	{names: "java kotlin kt swift csharp cs c# scala dart", line: "//", open: "/*", close: "*/", quotes: `"'`, long: `"""`,
		keywords: cWords + " abstract actor async await def extends final fun func guard implements import in interface internal is let match null object open override package protected protocol record sealed super trait val var when where yield"},
	{names: "js javascript ts typescript jsx tsx", line: "//", open: "/*", close: "*/", quotes: `"'`, long: "`",
		keywords: "async await break case catch class const continue default delete do else enum export extends false finally for from function if implements import in instanceof interface let new null of return super switch this throw true try type typeof undefined var void while yield"},
	{names: "rust rs zig", line: "//", open: "/*", close: "*/", quotes: `"`,
		keywords: "as async await break comptime const continue crate defer else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type union unsafe use var where while"},
	{names: "python py", line: "#", quotes: `"'`, long: `"""`,
		keywords: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield match case"},
	{names: "sh bash shell zsh console make makefile dockerfile", line: "#", quotes: `"'`, keywords: "case do done elif else esac export fi for function if in local return then until while"},
	{names: "ruby rb perl", line: "#", quotes: `"'`, keywords: "begin class def do else elsif end ensure false for if in module my nil not or rescue return self sub then true unless until use when while yield"},
	{names: "yaml yml toml ini conf", line: "#", quotes: `"'`, keywords: "true false null yes no on off"},
	{names: "json jsonc json5", line: "//", quotes: `"`, keywords: "true false null"},
	{names: "sql", line: "--", open: "/*", close: "*/", quotes: `'"`,
		keywords: "select from where and or not insert into values update set delete create table drop alter join left right inner outer on group by order having limit as distinct union null is in like between exists case when then else end primary key SELECT FROM WHERE AND OR NOT INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE DROP ALTER JOIN LEFT RIGHT INNER OUTER ON GROUP BY ORDER HAVING LIMIT AS DISTINCT UNION NULL IS IN LIKE BETWEEN EXISTS CASE WHEN THEN ELSE END PRIMARY KEY"},
	{names: "lua haskell hs", line: "--", quotes: `"'`, keywords: "and break data do else elseif end false for function if import in instance let local module nil not of or repeat return then true type until where while"},
	{names: "css scss", open: "/*", close: "*/", quotes: `"'`},
}

// colors are the terminal's own, which fit its background.
const (
	comment = "2"
	keyword = "34"
	str     = "32"
	number  = "35"
)

// code is fenced code.
type code struct {
	fence  string
	lang   *language // nil: no colors
	words  map[string]bool
	within string // what ends the string or comment that goes on from the line before; "" for none
}

func newCode(fence, line string, styles bool) *code {
	c := &code{fence: fence}
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "`~"))), " ")
	if !styles || name == "" {
		return c
	}
	for i, l := range languages {
		for n := range strings.FieldsSeq(l.names) {
			if n != name {
				continue
			}
			c.lang, c.words = &languages[i], map[string]bool{}
			for w := range strings.FieldsSeq(l.keywords) {
				c.words[w] = true
			}
			return c
		}
	}
	return c
}

// closedBy tells whether a line ends the code.
func (c *code) closedBy(line string) bool {
	line = strings.TrimSpace(line)
	return len(line) >= len(c.fence) && strings.Trim(line, c.fence[:1]) == ""
}

// add returns a line of code as it is shown.
func (c *code) add(line string) string {
	if c.lang == nil {
		return line
	}
	var b strings.Builder
	for line != "" {
		n, color := c.next(line)
		if color == "" {
			b.WriteString(line[:n])
		} else {
			b.WriteString("\x1b[" + color + "m" + line[:n] + "\x1b[0m")
		}
		line = line[n:]
	}
	return b.String()
}

// next is the length of what a line begins with, and its color.
func (c *code) next(line string) (n int, color string) {
	l := c.lang
	begins := func(mark string) bool { return mark != "" && strings.HasPrefix(line, mark) }
	switch r, size := utf8.DecodeRuneInString(line); {
	case c.within != "":
		color = str
		if c.within == l.close {
			color = comment
		}
		return c.until(line, 0), color
	case begins(l.line):
		return len(line), comment
	case begins(l.open):
		c.within = l.close
		return c.until(line, len(l.open)), comment
	case begins(l.long):
		c.within = l.long
		return c.until(line, len(l.long)), str
	case strings.ContainsRune(l.quotes, r):
		return quoted(line), str
	case unicode.IsDigit(r):
		end := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' && r != '_' })
		if end < 0 {
			end = len(line)
		}
		return end, number
	case unicode.IsLetter(r) || r == '_':
		end := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
		if end < 0 {
			end = len(line)
		}
		if c.words[line[:end]] {
			color = keyword
		}
		return end, color
	default:
		return size, ""
	}
}

// until is the end of what goes on from from until the mark that ends it, or the line's end.
func (c *code) until(line string, from int) int {
	n := strings.Index(line[from:], c.within)
	if n < 0 {
		return len(line)
	}
	n += from + len(c.within)
	c.within = ""
	return n
}

// quoted is the length of the string that a line begins with; one that is not closed is its quote alone, such as an
// apostrophe.
func quoted(line string) int {
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case line[0]:
			return i + 1
		}
	}
	return 1
}
