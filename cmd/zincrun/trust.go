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
	Short: "allow a plan of machine code from elsewhere to run",
	Long: `
A plan for the processor (target cpu) holds machine code, and runs like any program of yours.
zincrun accepts such a plan if zincc made it on this computer for this user, or if
` + "`zincc check`" + ` has compared it with the compiler's own output. This command accepts a plan from
elsewhere unchecked, for example in the build of a container image. Use it only for plans from people that you
trust. It records a checksum of what the plan executes in zincc/trusted in the user's
configuration folder; you may remove it again.

Plans for GPUs need no trust, since drivers compile their code.`,
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
