// Package markdown shows Markdown on a terminal while it is being written. It leaves the text as it is, markers too, so
// that what is copied is what the model wrote. It adds what makes it easy to read: lines end between words, items hang,
// headings, emphasis and code have styles, and fenced code is highlighted.
package markdown

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Options say how a text is shown.
type Options struct {
	Width  func() int // cells of a row; 0 or nil: rows have no end
	Styles bool       // escape sequences for styles and colors may be written
	Dim    bool       // all of it is paler, and is no Markdown: reasoning
}

// Renderer shows one text. What it is given is printable: line breaks are the only control characters.
type Renderer struct {
	out     io.Writer
	options Options
	width   int
	held    string // the end of what was given, which may be a part of a marker
	begun   bool   // the line has begun
	col     int
	hang    int    // cells that rows of this line after the first begin with
	space   string // between words, not yet written
	word    strings.Builder
	cells   int // of word
	last    rune
	style   style // of what comes next
	shown   style // that was turned to last
	block   *code // fenced code that is open
	err     error
}

// style is what text looks like.
type style struct {
	bold, italic, heading, mark bool
	code                        int // backticks that opened it
}

// New begins a text.
func New(out io.Writer, o Options) *Renderer { return &Renderer{out: out, options: o} }

// Write shows a part of the text.
func (r *Renderer) Write(p []byte) (int, error) {
	r.held += string(p)
	r.advance(false)
	return len(p), r.err
}

// Close shows what was held back and ends all styles. The next Write begins a new text.
func (r *Renderer) Close() error {
	r.advance(true)
	r.endLine()
	err := r.err
	*r = Renderer{out: r.out, options: r.options}
	return err
}

// advance takes what is whole of the text that is held; all takes the rest as well.
func (r *Renderer) advance(all bool) {
	for r.held != "" {
		n := 0
		switch {
		case r.block != nil:
			n = r.codeLine(all)
		case !r.begun:
			n = r.lineStart(all)
		default:
			n = r.inline(all)
		}
		if n == 0 {
			return
		}
		r.held = r.held[n:]
	}
}

// lineStart looks at what a line begins with. It takes markers, and returns 0 if more of the line has to come first.
func (r *Renderer) lineStart(all bool) int {
	line, ended := r.held, all
	if n := strings.IndexByte(line, '\n'); n >= 0 {
		line, ended = line[:n], true
	}
	if r.options.Width != nil {
		r.width = r.options.Width()
	}
	if r.options.Dim {
		r.begun, r.style = true, style{mark: true}
		return r.inline(all)
	}
	b := blockOf(line, ended)
	switch {
	case b.wait:
		return 0
	case b.fence != "":
		if !ended {
			return 0
		}
		r.plainLine(line)
		r.block = newCode(b.fence, line, r.options.Styles)
		return min(len(line)+1, len(r.held))
	case b.whole:
		if !ended {
			return 0
		}
		r.plainLine(line)
		return min(len(line)+1, len(r.held))
	}
	r.begun, r.style = true, style{heading: b.heading}
	if b.marker > 0 {
		r.mark(line[:b.marker])
		r.hang = uniseg.StringWidth(line[:b.marker])
		return b.marker
	}
	return r.inline(all)
}

// inline takes one character, marker or line break of a line.
func (r *Renderer) inline(all bool) int {
	if r.held == "" {
		return 0
	}
	switch c := r.held[0]; {
	case c == '\n':
		r.endLine()
		r.print("\n")
		r.begun, r.col, r.hang, r.last = false, 0, 0, 0
		return 1
	case c == ' ' || c == '\t':
		r.endWord()
		r.space += string(c)
		r.last = ' '
		return 1
	case strings.IndexByte("`*_\\", c) >= 0 && !r.options.Dim:
		return r.marker(c, all)
	}
	// A character may go on in what comes next.
	cluster, rest, _, _ := uniseg.FirstGraphemeClusterInString(r.held, -1)
	if !all && (rest == "" || !utf8.FullRuneInString(r.held) || !utf8.FullRuneInString(rest)) {
		return 0
	}
	r.add(cluster)
	return len(cluster)
}

// marker takes a run of one of `*_\ and changes the style where it opens or closes something.
func (r *Renderer) marker(c byte, all bool) int {
	n := 1
	for n < len(r.held) && r.held[n] == c && c != '\\' {
		n++
	}
	if n == len(r.held) && !all {
		return 0
	}
	next, _ := utf8.DecodeRuneInString(r.held[n:])
	if n == len(r.held) {
		next = ' '
	}
	s := r.style
	switch {
	case c == '`':
		r.ticks(n)
		return n
	case s.code > 0:
		r.add(r.held[:n])
		return n
	case c == '\\':
		if next > ' ' && next < utf8.RuneSelf {
			r.add(r.held[:2])
			return 2
		}
		r.add(`\`)
		return 1
	}
	strong, light := n >= 2, n%2 == 1
	on := strong && s.bold || light && s.italic
	opens := next > ' ' && !wordRune(r.last)
	closes := on && r.last > ' ' && (c == '*' || !wordRune(next))
	if n > 3 || !opens && !closes {
		r.add(r.held[:n])
		return n
	}
	if strong {
		s.bold = !closes
	}
	if light {
		s.italic = !closes
	}
	r.shift(r.held[:n], s)
	return n
}

// ticks takes n of them, which begin code, or end what as many began.
func (r *Renderer) ticks(n int) {
	s := r.style
	switch s.code {
	case 0:
		s.code = n
	case n:
		s.code = 0
	default:
		r.add(r.held[:n])
		return
	}
	r.shift(r.held[:n], s)
}

// wordRune tells whether a marker beside c is within a word.
func wordRune(c rune) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

// shift changes the style at a marker, which is paler.
func (r *Renderer) shift(marker string, to style) {
	r.mark(marker)
	r.style = to
}

func (r *Renderer) mark(marker string) {
	s := r.style
	r.style.mark = true
	r.add(marker)
	r.style = s
}

// add puts text at the end of the word.
func (r *Renderer) add(text string) {
	if r.options.Styles && r.style != r.shown {
		r.word.WriteString(r.style.sequence())
		r.shown = r.style
	}
	r.word.WriteString(text)
	r.cells += uniseg.StringWidth(text)
	r.last, _ = utf8.DecodeLastRuneInString(text)
}

// endLine writes the word and the blanks behind it, and ends the styles.
func (r *Renderer) endLine() {
	r.endWord()
	if r.width == 0 || r.col+uniseg.StringWidth(r.space) <= r.width {
		r.print(r.space)
	}
	if r.shown != (style{}) {
		r.print("\x1b[0m")
	}
	r.space, r.style, r.shown = "", style{}, style{}
}

// endWord writes the word, in the next row if this one has no room for it.
func (r *Renderer) endWord() {
	if r.word.Len() == 0 {
		return
	}
	gap := uniseg.StringWidth(r.space)
	if r.width > 0 && r.cells > 0 && r.col > r.hang && r.col+gap+r.cells > r.width {
		r.print("\n" + strings.Repeat(" ", r.hang))
		r.col = r.hang
	} else {
		r.print(r.space)
		r.col += gap
	}
	r.print(r.word.String())
	r.col += r.cells
	if r.width > 0 && r.col > r.width {
		r.col %= r.width // a word that is longer than a row
	}
	r.space, r.cells = "", 0
	r.word.Reset()
}

// plainLine writes a line that is not broken between words.
func (r *Renderer) plainLine(line string) {
	pale := style{mark: true}
	if r.options.Styles && strings.TrimSpace(line) != "" {
		line = pale.sequence() + line + "\x1b[0m"
	}
	r.print(line + "\n")
}

func (r *Renderer) codeLine(all bool) int {
	n := strings.IndexByte(r.held, '\n')
	if n < 0 && !all {
		return 0
	}
	line, taken := r.held, len(r.held)
	if n >= 0 {
		line, taken = r.held[:n], n+1
	}
	if r.block.closedBy(line) {
		r.block = nil
		r.plainLine(line)
		return taken
	}
	r.print(r.block.add(line))
	if n >= 0 {
		r.print("\n")
	}
	return taken
}

func (r *Renderer) print(text string) {
	if text != "" && r.err == nil {
		_, r.err = io.WriteString(r.out, text)
	}
}

// sequence is the escape sequence that turns to the style from any other.
func (s style) sequence() string {
	out := "\x1b[0"
	if s.bold || s.heading {
		out += ";1"
	}
	if s.mark {
		out += ";2"
	}
	if s.italic {
		out += ";3"
	}
	if s.code > 0 {
		out += ";36"
	}
	return out + "m"
}
