package main

import (
	"context"
	"os"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/plans"
)

var inspectCommand = cli.Command{
	Name:  "inspect",
	Args:  "plan.bin [--json]",
	Short: "show what a plan does and needs",
	Long: `
Shows model and target, what the device must offer, the memory, every entry with its
dispatches (kernel, constants, grid, bytes, operations, predicted time, its share and
what bounds it, why this kernel), and for every tensor its layout on the device and the
kernels that read it. Times are predictions from the target's figures, at full rows and
behind an empty cache; zincrun profile measures.`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		asJSON := f.Bool("json", false, "print JSON")
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
			if *asJSON {
				return table.WriteJSON(os.Stdout, plans.Inspect(p)...)
			}
			return table.WriteText(os.Stdout, plans.Inspect(p)...)
		}
	},
}
