package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/audit"
	"github.com/zincc-dev/zincc/plans/trust"
)

var checkCommand = cli.Command{
	Name:  "check",
	Args:  "plan.bin",
	Short: "prove a plan without a GPU, and let it run here",
	Long: `
Proves that every output element of every dispatch is written exactly once, that a
barrier stands between every two dispatches that need one, that no two live values
overlap, that no access leaves its buffer, and that everything that changes from step to
step is in the step block. Reads the modules: they store only where their dispatches say,
and need only what the plan requires. Then it emits the plan again from the op program, without any
cache, and compares. Prints each violation with its rule; exit code 1 if there are any.

A plan that equals what this zincc makes may run here, like a plan compiled here. The rules alone do
not allow it: they tell what a kernel touches, not how far it reaches. If another version of zincc made the
plan, or this computer cannot make its code, the exit code is 3, and ` + "`zincrun trust`" + ` is what allows it.`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		asJSON := f.Bool("json", false, "print the result as JSON")
		return func(ctx context.Context, args []string) error {
			path, err := cli.OneArg(args, "plan")
			if err != nil {
				return err
			}
			return check(ctx, path, *asJSON)
		}
	},
}

// checked is what check has found.
type checked struct {
	Plan       string          `json:"plan"`
	SHA256     plans.Digest    `json:"sha256"`
	Entries    int             `json:"entries"`
	Dispatches int             `json:"dispatches"`
	Rules      int             `json:"rules"`
	Problems   []plans.Problem `json:"problems"`
	// Reproduced: this compiler makes the same plan, so it may run here.
	Reproduced bool `json:"reproduced"`
	// Unrecorded says why that is not on record.
	Unrecorded string `json:"unrecorded,omitempty"`
}

func check(ctx context.Context, path string, asJSON bool) error {
	p, err := plans.Read(path)
	if err != nil {
		return err
	}
	defer p.Close()
	c := checked{Plan: path, Entries: len(p.Entries), Rules: len(audit.Rules()), Problems: audit.Check(p)}
	c.SHA256, _ = p.Digest()
	for _, e := range p.Entries {
		c.Dispatches += len(e.Dispatches)
	}
	open := codegen.Reproducible(p) // why it cannot be reproduced
	if len(c.Problems) == 0 && open == nil {
		bar, _ := watch("comparing with what this compiler makes")
		c.Problems, open = codegen.CheckReproduced(ctx, p)
		if bar.Done(); ctx.Err() != nil {
			return ctx.Err()
		}
		c.Rules++
	}
	if c.Reproduced = len(c.Problems) == 0 && open == nil; c.Reproduced {
		err := trust.Add(c.SHA256)
		switch {
		case err != nil && asJSON:
			c.Unrecorded = err.Error()
		case err != nil:
			fmt.Fprintf(cli.Stderr, "zincc: %s: the plan is ok, but this could not be recorded: %s\n", path, printable.Line(err.Error()))
		}
	}
	if err := c.print(asJSON); err != nil {
		return err
	}
	switch {
	case len(c.Problems) > 0:
		return fmt.Errorf("%s: %d problems", path, len(c.Problems))
	case open != nil:
		return ir.Unsupported("%s: not compared with the compiler's own output, so it may not run here by that: %v", path, open)
	}
	return nil
}

func (c *checked) print(asJSON bool) error {
	if asJSON {
		return json.NewEncoder(cli.Stdout).Encode(c)
	}
	w := bufio.NewWriter(cli.Stdout)
	for _, pr := range c.Problems {
		fmt.Fprintln(w, printable.Line(pr.String()))
	}
	if len(c.Problems) == 0 {
		fmt.Fprintf(w, "%s: ok, %d entries, %d dispatches, %d rules\n", c.Plan, c.Entries, c.Dispatches, c.Rules)
	}
	return w.Flush()
}
