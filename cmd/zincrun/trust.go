package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/trust"
)

var trustCommand = cli.Command{
	Name:  "trust",
	Args:  "plan.bin",
	Short: "let a plan of machine code run that was made elsewhere",
	Long: `
A plan for the processor (target cpu) holds machine code, and runs as any program of yours
would. zincrun takes such a plan if zincc made it on this computer for this user, or
` + "`zincc check`" + ` has compared it with what the compiler makes. This command takes one from
elsewhere as it is, such as in the build of a container image: for plans of people that you
trust. It records a sum of what the plan executes in zincc/trusted in the user's
configuration folder, which you may remove again.

Plans for GPUs need no trust here: their drivers compile what they hold.`,
	Setup: func(*pflag.FlagSet) func(context.Context, []string) error {
		return func(_ context.Context, args []string) error {
			path, err := cli.OneArg(args, "plan")
			if err != nil {
				return err
			}
			p, err := plans.Read(path)
			if err != nil {
				return err
			}
			defer p.Close()
			if err := trust.Add(p); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			_, err = fmt.Fprintf(cli.Stdout, "%s: may run here\n", path)
			return err
		}
	},
}
