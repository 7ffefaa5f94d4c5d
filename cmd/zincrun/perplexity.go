package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/runtime"
)

var perplexityCommand = cli.Command{
	Name:  "perplexity",
	Args:  "plan.bin -f FILE [--window N]",
	Short: "how well the model predicts a text",
	Long: `
Cuts the text into whole windows of N tokens, evaluates each from scratch, and scores
the second half of each: positions N/2 to N-2 predict the token after them. That is
llama-perplexity's rule with -c N, so that the figures compare.`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		var plan planFlags
		var prompt promptFlags
		prompt.declare(f)
		window := f.Int("window", 512, "tokens of a window")
		plan.declare(f)
		asJSON := f.Bool("json", false, "print JSON")
		return func(ctx context.Context, args []string) error {
			path, s, err := prompt.planAndText(ctx, f, args, "perplexity of what?")
			if err != nil {
				return err
			}
			if *window < runtime.MinWindow {
				return cli.Usagef("--window: want %d or more, have %d", runtime.MinWindow, *window)
			}
			o, err := plan.openText(ctx, path)
			if err != nil {
				return err
			}
			defer o.Close()
			bar := cli.NewProgress("scoring", int64(len(s)))
			defer bar.Done()
			sess := runtime.NewSession(o.Plan, o.Exec)
			r, err := runtime.ScoreText(ctx, sess, o.tok, s, *window, func(int) { bar.Add(int64(*window) * 3) })
			if err != nil {
				return o.locate(ctx, err)
			}
			if *asJSON {
				return json.NewEncoder(cli.Stdout).Encode(r)
			}
			fmt.Fprintf(cli.Stdout, "perplexity %.4f +- %.4f (%d tokens scored in %d windows of %d)\n", r.Perplexity, r.StdErr, r.Tokens, r.Windows, *window)
			return nil
		}
	},
}
