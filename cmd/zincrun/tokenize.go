package main

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
)

var tokenizeCommand = cli.Command{
	Name:  "tokenize",
	Args:  "plan.bin (-p TEXT | -f FILE)",
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
			plan, tok, err := readPlan(path)
			if err != nil {
				return err
			}
			defer plan.Close()
			return printTokens(tok, encode(tok, s), *asJSON)
		}
	},
}
