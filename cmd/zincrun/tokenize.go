package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/models"
	"github.com/zincc-dev/zincc/runtime/text"
)

var tokenizeCommand = cli.Command{
	Name:  "tokenize",
	Args:  "MODEL.gguf|plan.bin (-p TEXT | -f FILE)",
	Short: "show the tokens of a text",
	Long:  "Prints each token's id and text, a line each, as the model will see them, special tokens included.",
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		var prompt promptFlags
		prompt.declare(f)
		asJSON := f.Bool("json", false, "print the ids as a JSON list")
		return func(ctx context.Context, args []string) error {
			path, s, err := prompt.planAndText(ctx, f, args, "tokens of what?")
			if err != nil {
				return err
			}
			if path, err = models.Path(ctx, path); err != nil {
				return err
			}
			vocab, err := readVocab(path)
			if err != nil {
				return err
			}
			tok, err := text.New(vocab)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			return printTokens(tok, encode(tok, s), *asJSON)
		}
	},
}
