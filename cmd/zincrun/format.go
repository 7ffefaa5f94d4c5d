package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/runtime/grammar"
)

// formatFlags say what an answer is held to.
type formatFlags struct {
	path   string
	source *grammar.Source  // nil: nothing
	made   *grammar.Grammar // of the source alone
}

func (f *formatFlags) declare(s *pflag.FlagSet) {
	s.StringVar(&f.path, "schema", "", "hold answers to the JSON schema of this file, or to its grammar if it ends in .gbnf")
}

// read makes the grammar, so that a schema that is not supported is refused before the model is loaded.
func (f *formatFlags) read() error {
	if f.path == "" {
		return nil
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	f.source = &grammar.Source{Kind: grammar.JSONSchema, Text: string(text)}
	if strings.HasSuffix(f.path, ".gbnf") {
		f.source.Kind = grammar.GBNFText
	}
	if f.made, err = grammar.Make(*f.source); err != nil {
		return refusedError{fmt.Errorf("%s: %w", f.path, err)}
	}
	return nil
}
