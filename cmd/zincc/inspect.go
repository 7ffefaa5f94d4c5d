package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/plans"
)

var inspectCommand = cli.Command{
	Name:  "inspect",
	Args:  "plan.bin [--entry NAME] [--site PART] [--full] [--json | --html report.html]",
	Short: "show what a plan does and needs",
	Long: `
Prints a page: the model, the memory and whether it fits, the entries, the layers by kind, the call
sites that take the longest in a decoded token and in the widest step of a prompt, and warnings.
Times are predictions from the target's figures, at full rows and behind an empty cache; zincrun
profile measures.

--entry lists the dispatches of an entry. --site describes the call sites with that part in their
name: ops, candidate, kernel, constants, grid, bytes, operations, predicted time and why it was chosen.
It also lists the kernel's arguments with access and type and its constants with value and unit; with
--entry also the candidates that the compiler chose from. --full prints every table, also the
requirements, pipelines, and for every tensor its layout on the device and the kernels that read
it; --json prints them as JSON. A candidate's name is unique at its call site; tuning
files use the same names. A kernel's name has three parts: its family, what it computes with which
weight types, and its shape; docs/adding-a-kernel.md has the legend.

--html writes all that as one file for a browser, with a timeline of the dispatches, the
arena, a roofline, the disassembled kernels and, side by side, the program after each pass
that changed it. To show the passes, zincc compiles the model's header again. It looks for the model
at its old path, then beside the plan; --model names another place. --measured shows measured
times beside the predictions.

  zincc inspect plan.bin
  zincc inspect plan.bin --entry decode/1
  zincc inspect plan.bin --entry decode/1 --site ffn_down
  zincc inspect plan.bin --html report.html`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		asJSON := f.Bool("json", false, "print every table as JSON")
		full := f.Bool("full", false, "print every table")
		entry := f.String("entry", "", "list the dispatches of this entry, such as decode/1")
		site := f.String("site", "", "describe the call sites with this in their name, such as ffn_down")
		html := htmlFlags{}
		html.add(f)
		f.StringSliceVar(&html.measured, "measured", nil, "with --html: times measured by zincrun profile --json, a file for each entry")
		f.StringVar(&html.model, "model", "", "with --html: the plan's model file, if it has moved")
		return func(ctx context.Context, args []string) error {
			path, err := cli.OneArg(args, "plan")
			if err != nil {
				return err
			}
			if (*asJSON || *full) && html.out != "" {
				return cli.Usagef("--html goes without --json and --full")
			}
			if (*asJSON || *full || html.out != "") && (*entry != "" || *site != "") {
				return cli.Usagef("--entry and --site go without --full, --json and --html")
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
			tables, err := page(p, *entry, *site, *full)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			return table.WriteText(cli.Stdout, tables...)
		}
	},
}

// siteTables are the call sites and what their kernels take, as far as this compiler knows those.
func siteTables(p *plans.Plan, entry, site string) ([]*table.Table, error) {
	one, err := plans.SiteTable(p, entry, site)
	if err != nil {
		return nil, err
	}
	tables := []*table.Table{one}
	if err := codegen.Reproducible(p); err != nil {
		fmt.Fprintf(cli.Stderr, "zincc: candidates and the signatures of kernels are not shown: %v\n", err)
		return tables, nil
	}
	if t, err := target.OfPlan(&p.Header); err == nil && entry != "" && !t.IsHost() {
		tables = append(tables, codegen.CandidateTable(p, t, entry, site))
	}
	contracts, err := codegen.Contracts(p, entry, site)
	if err != nil {
		fmt.Fprintf(cli.Stderr, "zincc: the signatures of kernels are not shown: %v\n", err)
	}
	return append(tables, contracts...), nil
}

// page chooses the tables to print.
func page(p *plans.Plan, entry, site string, full bool) ([]*table.Table, error) {
	var one *table.Table
	var err error
	switch {
	case full:
		return plans.Inspect(p), nil
	case site != "":
		return siteTables(p, entry, site)
	case entry != "":
		one, err = plans.EntryTable(p, entry)
	default:
		memory := int64(0)
		if t, err := target.OfPlan(&p.Header); err == nil {
			memory = t.Memory
		}
		return plans.Page(p, memory), nil
	}
	return []*table.Table{one}, err
}
