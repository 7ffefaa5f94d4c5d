package main

import (
	"bufio"
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/audit"
	"github.com/zincc-dev/zincc/plans/trust"
)

var checkCommand = cli.Command{
	Name:  "check",
	Args:  "plan.bin",
	Short: "prove a plan without a GPU",
	Long: `
Proves that every output element of every dispatch is written exactly once, that a
barrier stands between every two dispatches that need one, that no two live values
overlap, that no access leaves its buffer, and that everything that changes from step to
step is in the step block. Reads the modules: they store only where their dispatches say,
and need only what the plan requires. If this version of zincc made the plan, it emits it again
from the op program and compares. Prints each violation with its rule; exit code 1 if there are any.
A plan of machine code that passes all of this may run here, like a plan compiled here.`,
	Setup: func(*pflag.FlagSet) func(context.Context, []string) error {
		return func(ctx context.Context, args []string) error {
			path, err := cli.OneArg(args, "plan")
			if err != nil {
				return err
			}
			p, err := plans.Read(path)
			if err != nil {
				return err
			}
			problems := audit.Check(p)
			rules, open := len(audit.Rules()), codegen.Derivable(p)
			if open == nil {
				rules++
				if len(problems) == 0 {
					problems = codegen.CheckDerived(ctx, p)
				}
			}
			w := bufio.NewWriter(cli.Stdout)
			for _, pr := range problems {
				fmt.Fprintln(w, printable.Line(pr.String()))
			}
			if err := w.Flush(); err != nil {
				return err
			}
			if n := len(problems); n > 0 {
				return fmt.Errorf("%s: %d problems", path, n)
			}
			dispatches := 0
			for _, e := range p.Entries {
				dispatches += len(e.Dispatches)
			}
			if open == nil {
				if err := trust.Add(p); err != nil {
					fmt.Fprintf(os.Stderr, "zincc: %s: the plan is ok, but this could not be recorded: %s\n", path, err)
				}
			}
			_, err = fmt.Fprintf(cli.Stdout, "%s: ok, %d entries, %d dispatches, %d rules\n", path, len(p.Entries), dispatches, rules)
			if open != nil {
				fmt.Fprintf(os.Stderr, "not compared with the compiler's own output: %v\n", open)
			}
			return err
		}
	},
}
