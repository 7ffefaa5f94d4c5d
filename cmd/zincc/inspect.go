package main

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/plans"
)

var inspectCommand = cli.Command{
	Name:  "inspect",
	Args:  "plan.bin [--json | --html report.html]",
	Short: "show what a plan does and needs",
	Long: `
Shows model and target, what the device must offer, the memory, every entry with its
dispatches (kernel, constants, grid, bytes, operations, predicted time, its share and
what bounds it, why this kernel), and for every tensor its layout on the device and the
kernels that read it. Times are predictions from the target's figures, at full rows and
behind an empty cache; zincrun profile measures.

--html writes all that as one file for a browser, with a timeline of the dispatches, the
arena, a roofline, the disassembled kernels and, side by side, the program after each pass
that changed it. For the passes the model is compiled again, from its header, which is
looked for where it was, or beside the plan, or named with --model; --oracle is that of
zincc compile.

  zincc inspect plan.bin
  zincc inspect plan.bin --html report.html`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		asJSON := f.Bool("json", false, "print JSON")
		html := htmlFlags{}
		html.add(f)
		f.StringVar(&html.target, "target", "", "of --html: the probe's .json, if the plan is for a device that was probed")
		f.StringVar(&html.model, "model", "", "of --html: model of the plan, if it is not where it was")
		return func(ctx context.Context, args []string) error {
			path, err := cli.OneArg(args, "plan")
			if err != nil {
				return err
			}
			if *asJSON && html.out != "" {
				return cli.Usagef("--json and --html exclude each other")
			}
			p, err := plans.Read(path)
			if err != nil {
				return err
			}
			defer p.Close()
			if html.out != "" {
				return html.inspect(ctx, path, p)
			}
			if *asJSON {
				return table.WriteJSON(cli.Stdout, plans.Inspect(p)...)
			}
			return table.WriteText(cli.Stdout, plans.Inspect(p)...)
		}
	},
}
