package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/runtime/grammar"
)

var schemaCommand = cli.Command{
	Name:  "schema",
	Args:  "FILE [--accept DOC]...",
	Short: "check a JSON schema or a grammar for answers",
	Long: `
Says whether answers can be held to a JSON schema (drafts 7 and 2020-12), or to a grammar in GBNF if
the file's name ends in .gbnf: what of it is not supported, and where, and what of it is no
condition of an answer.

--accept decides whether a document is valid, as text: byte by byte, with white space as an answer
may have it, which is at most 8 characters between two marks. It can be given several times.
White space at the end of the document is passed over.

The exit code is 0 if all documents are accepted, 1 if not, and 3 if the schema is refused:
not supported, or no schema.

  zincrun schema person.json
  zincrun schema person.json --accept ada.json --accept bob.json
  zincrun schema person.json --json`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		docs := f.StringArray("accept", nil, "decide whether this document is valid; - for standard input")
		anyFormat := f.Bool("any-format", false, "take format for a remark, which refuses nothing")
		asJSON := f.Bool("json", false, "print JSON")
		return func(ctx context.Context, args []string) error {
			path, err := cli.OneArg(args, "schema")
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			c := schemaCheck{found: table.Table{Title: "schema", Columns: schemaColumns}, docs: table.Table{Title: "documents", Columns: documentColumns}}
			err = c.read(path, text, *anyFormat)
			if err == nil {
				for _, doc := range *docs {
					text, err := readInput(ctx, doc)
					if err != nil {
						return err
					}
					if err := c.decide(doc, text); err != nil {
						return err
					}
				}
			}
			if printed := c.print(*asJSON); printed != nil {
				return printed
			}
			if err == nil && c.refused > 0 {
				err = fmt.Errorf("%d of %d documents are not accepted", c.refused, len(*docs))
			}
			return err
		}
	},
}

var (
	schemaColumns   = []string{"what", "keyword", "path", "why"}
	documentColumns = []string{"document", "accepted", "bytes", "refused at"}
)

// schemaCheck is what is known of a schema.
type schemaCheck struct {
	grammar *grammar.Grammar // nil: nothing is valid
	found   table.Table
	docs    table.Table
	refused int
}

// refusedError is why a schema or a grammar cannot be used: exit code 3.
type refusedError struct{ error }

func (e refusedError) Is(target error) bool { return target == errors.ErrUnsupported }

func (e refusedError) Unwrap() error { return e.error }

// read makes the grammar. The error says why it cannot be used.
func (c *schemaCheck) read(path string, text []byte, anyFormat bool) error {
	if strings.HasSuffix(path, ".gbnf") {
		g, err := grammar.GBNF(string(text))
		if err != nil {
			return refusedError{fmt.Errorf("%s: %w", path, err)}
		}
		c.grammar = g
		c.found.Add("taken", "", "", "")
		return nil
	}
	g, remarks, err := grammar.Schema(text, grammar.SchemaOptions{Documents: true, AnyFormat: anyFormat})
	var at *grammar.SchemaError
	switch {
	case err == nil:
		c.grammar = g
		c.found.Add("taken", "", "", "")
		for _, r := range remarks {
			c.found.Add("no condition", r.Keyword, pointer(r.Path), r.Why)
		}
		return nil
	case !errors.As(err, &at):
		return refusedError{fmt.Errorf("%s: %w", path, err)}
	case at.Problem == grammar.NothingValid:
		c.found.Add("taken", "", pointer(at.Path), at.Problem)
		return nil
	case errors.Is(err, errors.ErrUnsupported):
		list := grammar.Refused(text)
		if !containsError(list, at) {
			list = append([]*grammar.SchemaError{at}, list...)
		}
		for _, e := range list {
			c.found.Add("refused", e.Keyword, pointer(e.Path), e.Problem)
		}
	default:
		c.found.Add("wrong", at.Keyword, pointer(at.Path), at.Problem)
	}
	return refusedError{fmt.Errorf("%s: %w", path, err)}
}

func containsError(list []*grammar.SchemaError, e *grammar.SchemaError) bool {
	for _, x := range list {
		if *x == *e {
			return true
		}
	}
	return false
}

func pointer(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// decide says whether a document is valid.
func (c *schemaCheck) decide(name string, text []byte) error {
	text = bytes.TrimRight(text, " \t\r\n")
	at, ok := 0, false
	if c.grammar != nil {
		var err error
		if at, ok, err = c.grammar.Check(text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	where := ""
	if !ok {
		c.refused++
		where = "its end"
		if at < len(text) {
			where = fmt.Sprintf("byte %d, at %.40q", at, text[at:])
		}
	}
	c.docs.Add(name, ok, len(text), where)
	return nil
}

func (c *schemaCheck) print(asJSON bool) error {
	tables := []*table.Table{&c.found}
	if len(c.docs.Rows) > 0 {
		tables = append(tables, &c.docs)
	}
	if asJSON {
		return table.WriteJSON(cli.Stdout, tables...)
	}
	return table.WriteText(cli.Stdout, tables...)
}
