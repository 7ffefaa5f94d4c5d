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
	Short: "allow a plan from elsewhere to run",
	Long: `
A plan is a program: its kernels reach as far as its numbers tell them, on a GPU, too. zincrun runs a plan if zincc made it on
this computer for this user, or if ` + "`zincc check`" + ` has compared it with the compiler's own output; zincrun asks zincc for
that itself. This command accepts a plan from elsewhere unchecked: one of another version of zincc, or where there is no zincc, for
example in the build of a container image. Use it only for plans from people that you trust. It records the SHA-256 of the plan,
all of it, in zincc/trusted in the user's configuration folder; you may remove it again.`,
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
			d, _ := p.Digest()
			if err := trust.Add(d); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			_, err = fmt.Fprintf(cli.Stdout, "%s: may run here: %s\n", path, d)
			return err
		}
	},
}
