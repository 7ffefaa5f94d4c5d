package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/runtime"
)

var perplexityCommand = cli.Command{
	Name:  "perplexity",
	Args:  "plan.bin -f FILE [--window N] [--against PLAN]",
	Short: "measure how well the model predicts a text",
	Long: `
Cuts the text into whole windows of N tokens, evaluates each from scratch, and scores
the second half of each: positions N/2 to N-2 predict the token after them. That is
llama-perplexity's rule with -c N, so the figures compare.

--against compares each token's probabilities with those of another plan of the model, or of the model file
with a cache of f16. It prints the mean Kullback-Leibler divergence from them, for example the cost of a
cache of fewer bits:

  zincrun perplexity model.gguf --kv q4_0 --against model.gguf -f FILE`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		var plan planFlags
		var prompt promptFlags
		prompt.declare(f)
		window := f.Int("window", 512, "tokens in a window")
		against := f.String("against", "", "compare with the predictions of this plan or model file")
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
			var reference *runtime.Session
			var other *opened
			if *against != "" {
				flags := plan
				flags.kv, flags.model, flags.exact = "", "", false
				if other, err = flags.open(ctx, *against); err != nil {
					return err
				}
				defer other.Close()
				if other.Plan.Header.Model.Fingerprint != o.Plan.Header.Model.Fingerprint {
					return fmt.Errorf("%s: belongs to another model than %s", *against, path)
				}
				reference = runtime.NewSession(other.Plan, other.Exec)
			}
			bar := cli.NewProgress("scoring", int64(len(s)))
			defer bar.Done()
			sess := runtime.NewSession(o.Plan, o.Exec)
			r, err := runtime.ScoreText(ctx, sess, reference, o.tok, s, *window, func(int) { bar.Add(int64(*window) * 3) })
			var of *runtime.ReferenceError
			if errors.As(err, &of) {
				return fmt.Errorf("%s: %w", *against, other.locate(ctx, of.Err))
			}
			if err != nil {
				return o.locate(ctx, err)
			}
			if *asJSON {
				return json.NewEncoder(cli.Stdout).Encode(r)
			}
			fmt.Fprintf(cli.Stdout, "perplexity %.4f +- %.4f (%d tokens scored in %d windows of %d)\n", r.Perplexity, r.StdErr, r.Tokens, r.Windows, *window)
			if a := r.Against; a != nil {
				fmt.Fprintf(cli.Stdout, "against    %.4f: divergence %.6f +- %.6f nats, the same token first in %.2f %%\n", a.Perplexity, a.KL, a.StdErr, 100*a.SameTop)
			}
			return nil
		}
	},
}
