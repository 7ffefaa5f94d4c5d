package grammar

import (
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

// SchemaOptions say how a schema is read; the zero value is what answers are written by.
type SchemaOptions = schema.Options

// Remark is a part of a schema that is no condition.
type Remark = schema.Remark

// Schema returns the JSON texts that are valid by a JSON schema, and what of it is no condition. The error is a
// *SchemaError or ErrTooComplex.
func Schema(text []byte, o SchemaOptions) (*Grammar, []Remark, error) {
	if len(text) > MaxSource {
		return nil, nil, &SchemaError{Problem: fmt.Sprintf("%d bytes, at most %d", len(text), MaxSource)}
	}
	var r *schema.Result
	g, err := build(func(p *lex.Pool) (item machine.Item, err error) {
		if r, err = schema.Compile(p, text, o); err != nil {
			return item, err
		}
		return r.Root, nil
	})
	if err != nil {
		return nil, nil, err
	}
	g.unique = r.Unique
	return g, r.Remarks, nil
}

// Refused returns the parts of a schema that Schema refuses for their keyword, all of them, whether they are used or not.
func Refused(text []byte) []*SchemaError { return schema.Refused(text) }

// GBNFError says what of a GBNF grammar cannot be used, and where.
type GBNFError = gbnf.Error

// GBNF returns the texts of a grammar as llama.cpp writes them. The error is a *GBNFError or ErrTooComplex.
func GBNF(text string) (*Grammar, error) {
	if len(text) > MaxSource {
		return nil, &GBNFError{Problem: fmt.Sprintf("%d bytes, at most %d", len(text), MaxSource)}
	}
	return build(func(p *lex.Pool) (machine.Item, error) { return gbnf.Compile(p, text) })
}

// Regex returns the texts that an ECMAScript pattern matches from begin to end.
func Regex(pattern string) (*Grammar, error) {
	return build(func(p *lex.Pool) (machine.Item, error) {
		t, err := ecma.Whole(p, pattern)
		if err != nil {
			return machine.Item{}, err
		}
		return plain(p, t)
	})
}

// Choice returns a list of texts.
func Choice(texts []string) (*Grammar, error) {
	return build(func(p *lex.Pool) (machine.Item, error) {
		terms := make([]*lex.Term, len(texts))
		for i, s := range texts {
			terms[i] = p.Text(s)
		}
		return plain(p, p.Or(terms...))
	})
}

func plain(p *lex.Pool, t *lex.Term) (machine.Item, error) {
	if !p.Live(t) {
		return machine.Item{}, fmt.Errorf("the grammar has no text")
	}
	l := lex.NewLexer(lex.UTF8{Runes: lex.Terms{Pool: p}})
	return machine.Lexeme(l, l.State(lex.Begin(t))), nil
}
