package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/plans"
)

var diffCommand = cli.Command{
	Name:  "diff",
	Args:  "a.bin b.bin [--json | --html diff.html] [--fail-on stages,bytes,time,registers]",
	Short: "show how two plans differ",
	Long: `
Compares two plans, which may differ in target, model, quantization or compiler version:
call sites that were fused differently (those of only one plan, with their ops), changed kernels,
constants, grids and subgroup sizes, the code of kernels, steps and
dispatches of each entry, bytes and operations, memory, and the predicted time of a step
behind an empty cache. A difference that all layers share is one row: blk.*. Of an entry that
one plan lacks, "-" stands for what that plan would take.

--fail-on is a budget for CI: exit 1 if b takes more than a in any entry. It names measures:
stages (steps between barriers), bytes (read and written by a step), time (predicted),
registers (the most of any kernel, where AMD's compiler was asked). An entry that b lacks
counts as worse.

--html writes one file for a browser: the differences, and both plans' timelines,
programs, rooflines and kernels beside each other.

  zincc diff gfx1201.bin sm_90.bin
  zincc diff main.bin branch.bin --fail-on stages,bytes`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		asJSON := f.Bool("json", false, "print JSON")
		html := htmlFlags{}
		html.add(f)
		failOn := f.StringSlice("fail-on", nil, "exit 1 if b takes more of these: "+strings.Join(plans.Measures(), ", "))
		return func(ctx context.Context, args []string) error {
			if len(args) != 2 {
				return cli.Usagef("want two plans, have %d arguments", len(args))
			}
			for _, name := range *failOn {
				if !slices.Contains(plans.Measures(), name) {
					return cli.Usagef("--fail-on: want some of %s, have %q", strings.Join(plans.Measures(), ", "), name)
				}
			}
			if *asJSON && html.out != "" {
				return cli.Usagef("--json and --html exclude each other")
			}
			var both [2]*plans.Plan
			for i, path := range args {
				p, err := plans.Read(path)
				if err != nil {
					return err
				}
				defer p.Close()
				both[i] = p
			}
			show := func() error { return printDiff(args, both, *asJSON) }
			if html.out != "" {
				show = func() error { return html.diff(ctx, args, both) }
			}
			if err := show(); err != nil {
				return err
			}
			if len(*failOn) == 0 {
				return nil
			}
			if worse := plans.Worse(both[0], both[1], *failOn); len(worse) > 0 {
				return fmt.Errorf("%s is worse than %s: %s", args[1], args[0], strings.Join(worse, ", "))
			}
			return nil
		}
	},
}

func printDiff(paths []string, both [2]*plans.Plan, asJSON bool) error {
	tables := plans.Diff(both[0], both[1])
	if asJSON {
		return table.WriteJSON(cli.Stdout, tables...)
	}
	tables = slices.DeleteFunc(tables, func(t *table.Table) bool { return len(t.Rows) == 0 })
	fmt.Fprintf(cli.Stdout, "a is %s\nb is %s\n\n", paths[0], paths[1])
	if len(tables) == 0 {
		fmt.Fprintln(cli.Stdout, "They do not differ.")
	}
	return table.WriteText(cli.Stdout, tables...)
}
