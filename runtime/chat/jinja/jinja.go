// Package jinja renders chat templates: the part of Jinja2 that published
// templates use, with the values of Python that show through it, in the
// setting that such templates are written for (trim_blocks, lstrip_blocks,
// loop controls, data that cannot be changed).
//
// Every byte of a string knows whether the template wrote it or the data did,
// through all operations, so that a reader of the result can tell a control
// token of the template from one that a user typed.
package jinja

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/zincc-dev/zincc/runtime/text"
)

// Limits of one template and one render. They bound time and memory whatever
// the template does; beyond one of them Parse and Render return an error.
const (
	maxSource = 256 << 10 // bytes of source
	maxText   = 8 << 20   // bytes of the output, and of any string
	maxDepth  = 64        // nesting of source, of calls and of data
	maxNested = 1000      // expressions that are evaluated within each other, calls included
)

// Budget is what renders may take. Those that share one take from the same. Without one a render has its own: Limit of
// the data that it is given.
type Budget struct {
	Steps int // nodes evaluated and items made
	Bytes int // of strings read and made
}

// Limit is the budget of a render with so many bytes of data, which it may read some times over.
func Limit(data int) *Budget { return &Budget{Steps: 1_000_000, Bytes: 64<<20 + 32*data} }

// Error is what is wrong with a template or with its use. Line and column
// count from 1, columns in code points.
type Error struct {
	Line, Column int
	Message      string
	Raised       bool // by the template's raise_exception
}

func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message) }

// Template is a parsed template. It is safe for use by several goroutines.
type Template struct {
	source string // line ends as \n
	body   []stmt
	names  map[string]int // how often they stand in it
}

// Parse reads the source of a template. The error is an *Error.
func Parse(source string) (t *Template, err error) {
	if len(source) > maxSource {
		return nil, &Error{1, 1, fmt.Sprintf("the template has %d bytes, at most %d are read", len(source), maxSource), false}
	}
	source = strings.ToValidUTF8(source, "\uFFFD")
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	source = strings.TrimSuffix(source, "\n")
	t = &Template{source: source, names: map[string]int{}}
	defer t.recover(&err)
	p := parser{tokens: lex(source)}
	for _, token := range p.tokens {
		if token.kind == tokName {
			t.names[token.text]++
		}
	}
	t.body = p.template()
	return t, nil
}

// Render evaluates the template with variables. strftime_now tells
// now. The spans are the text in order, neighbours of different origin; of an
// error, which is an *Error or that of ctx, no text comes back.
func (t *Template) Render(ctx context.Context, vars *Dict, now time.Time, b *Budget) (spans []text.Span, err error) {
	defer t.recover(&err)
	return t.render(ctx, vars, now, b, func(st *state) { st.run(t.body) }).spans(), nil
}

func (t *Template) render(ctx context.Context, vars *Dict, now time.Time, b *Budget, write func(st *state)) Str {
	size := weight(vars, 0)
	if b == nil {
		b = Limit(size)
	}
	st := &state{ctx: ctx, now: now, root: vars, budget: b}
	st.scope, st.out = &scope{}, &builder{st: st, b: make([]byte, 0, min(size+size/8, maxText))} // most of it is written once
	write(st)
	return st.out.str()
}

// spans are the parts of one origin.
func (s Str) spans() (spans []text.Span) {
	for part, user := range s.runs() {
		spans = append(spans, text.Span{Text: part, Literal: user})
	}
	return spans
}

// weight is how many bytes of text a value has.
func weight(v Value, depth int) (n int) {
	if depth > maxDepth {
		return 0
	}
	switch v := v.(type) {
	case Str:
		n = len(v.s)
	case *List:
		for _, item := range v.items {
			n += weight(item, depth+1)
		}
	case *Dict:
		for i, k := range v.keys {
			n += weight(k, depth+1) + weight(v.values[i], depth+1)
		}
	}
	return n
}

// cancelled carries the error of a context out of a render.
type cancelled struct{ err error }

// failure carries an error out of the parser or of a render.
type failure struct {
	at      int // offset in the source
	message string
	raised  bool
}

func failAt(at int, format string, args ...any) {
	panic(failure{at: at, message: fmt.Sprintf(format, args...)})
}

// oneLine makes a message, which may quote what anybody wrote, fit for a
// terminal and a log.
func oneLine(s string) string {
	const longest = 500
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "..."
	}
	return s
}

// recover turns a failure into an error; anything else is a bug and goes on.
func (t *Template) recover(err *error) {
	switch f := recover().(type) {
	case nil:
	case cancelled:
		*err = f.err
	case failure:
		before := t.source[:min(f.at, len(t.source))]
		line := strings.LastIndexByte(before, '\n') + 1
		*err = &Error{
			Line:    strings.Count(before, "\n") + 1,
			Column:  utf8.RuneCountInString(before[line:]) + 1,
			Message: oneLine(f.message), Raised: f.raised,
		}
	default:
		panic(f)
	}
}
