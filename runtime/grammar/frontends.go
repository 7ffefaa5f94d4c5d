package grammar

import (
	"errors"
	"fmt"

	"github.com/zincc-dev/zincc/runtime/grammar/ecma"
	"github.com/zincc-dev/zincc/runtime/grammar/gbnf"
	"github.com/zincc-dev/zincc/runtime/grammar/lex"
	"github.com/zincc-dev/zincc/runtime/grammar/machine"
	"github.com/zincc-dev/zincc/runtime/grammar/schema"
)

// SchemaError says what of a JSON schema cannot be used, and where. It is errors.ErrUnsupported where the schema may be
// good and is not supported.
type SchemaError = schema.Error

// NothingValid is the problem of a schema that no value is valid by.
const NothingValid = schema.NothingValid

// Notation is how the arguments of a call are written.
type Notation = schema.Notation

// The notations beside JSON.
const (
	Gemma  = schema.Gemma
	Python = schema.Python
)

// SchemaOptions say how a schema is read; the zero value is what answers are written by.
type SchemaOptions = schema.Options

// Remark is a part of a schema that is no condition.
type Remark = schema.Remark

// Schema returns the JSON texts that are valid by a JSON schema, and what of it is no condition. The error is a
// *SchemaError.
func Schema(text []byte, o SchemaOptions) (*Grammar, []Remark, error) {
	var r *schema.Result
	g, err := build(func(b *builder) (root machine.Item, err error) {
		if r, err = b.schema(text, o); err == nil {
			root = r.Root
		}
		return root, err
	})
	if why, ok := err.(*tooComplex); ok { // a text has too many beginnings
		err = &SchemaError{Keyword: r.Chooses, Problem: "is too complex: " + why.why, Refused: true}
	}
	if err != nil {
		return nil, nil, err
	}
	return g, r.Remarks, nil
}

// Refused returns the parts of a schema that Schema refuses for their keyword, all of them, whether they are used or
// not.
func Refused(text []byte) []*SchemaError { return schema.Refused(text) }

// GBNFError says what of a GBNF grammar cannot be used, and where.
type GBNFError = gbnf.Error

// GBNF returns the texts of a grammar as llama.cpp writes them. The error is a *GBNFError or ErrTooComplex.
func GBNF(text string) (*Grammar, error) {
	return build(func(b *builder) (machine.Item, error) { return b.gbnf(text) })
}

// PatternError says what of a pattern cannot be used, and where.
type PatternError = ecma.Error

// Regex returns the texts that an ECMAScript pattern matches from begin to end. The error is a *PatternError,
// ErrNoText or ErrTooComplex.
func Regex(pattern string) (*Grammar, error) {
	return build(func(b *builder) (machine.Item, error) { return b.regex(pattern) })
}

// Choice returns a list of texts. The error is ErrNoText or ErrTooComplex.
func Choice(texts []string) (*Grammar, error) {
	return build(func(b *builder) (machine.Item, error) { return b.choice(texts) })
}

// ErrNoText says that there is no text of a grammar.
var ErrNoText = errors.New("there is no text of it")

// builder makes the items of one grammar.
type builder struct {
	pool                     *lex.Pool
	unique, compare, decides bool
}

func (b *builder) schema(text []byte, o SchemaOptions) (*schema.Result, error) {
	if len(text) > MaxSource {
		return nil, &SchemaError{Problem: fmt.Sprintf("%d bytes, at most %d", len(text), MaxSource)}
	}
	r, err := schema.Compile(b.pool, text, o)
	if err == nil {
		b.unique = b.unique || r.Unique
		b.compare, b.decides = b.compare || r.Compares, b.decides || o.Documents
	}
	return r, err
}

func (b *builder) gbnf(text string) (machine.Item, error) {
	if len(text) > MaxSource {
		return machine.Item{}, &GBNFError{Problem: fmt.Sprintf("%d bytes, at most %d", len(text), MaxSource)}
	}
	return gbnf.Compile(b.pool, text)
}

func (b *builder) regex(pattern string) (machine.Item, error) {
	t, err := ecma.Whole(b.pool, pattern)
	if err != nil {
		return machine.Item{}, err
	}
	return b.plain(t)
}

func (b *builder) choice(texts []string) (machine.Item, error) {
	terms := make([]*lex.Term, len(texts))
	for i, s := range texts {
		terms[i] = b.pool.Text(s)
	}
	return b.plain(b.pool.Or(terms...))
}

// plain is the item of the texts of a term.
func (b *builder) plain(t *lex.Term) (machine.Item, error) {
	if !b.pool.Live(t) {
		return machine.Item{}, ErrNoText
	}
	return b.lexeme(lex.UTF8{Runes: lex.Terms{Pool: b.pool}}, lex.Begin(t)), nil
}

func (b *builder) lexeme(r lex.Rules, begin lex.Key) machine.Item {
	l := lex.NewLexer(r)
	return machine.Lexeme(l, l.State(begin))
}
