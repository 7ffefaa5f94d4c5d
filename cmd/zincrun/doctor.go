package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/runtime/doctor"
)

var doctorCommand = cli.Command{
	Name:  "doctor",
	Args:  "[--json]",
	Short: "say what keeps this computer from running models, or slows them",
	Long: `
Looks at drivers, the permissions of render nodes, which device is used and why not the others, cooperative
matrices, links and power saving of PCIe, clocks and power limits, huge pages, limits of the container or
unit, and free disk space, and says what to do. It changes nothing. What lies in /sys and /proc is read on Linux only.

Exit code 0: no problem, though there may be notes; 1: there are problems.`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		asJSON := f.Bool("json", false, "print JSON: check, state (ok, note or problem), found, do")
		return func(_ context.Context, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("doctor takes no arguments, have %d", len(args))
			}
			bar := cli.NewProgress("looking", 0)
			found := doctor.Look(doctor.Here())
			bar.Done()
			return printFindings(found, *asJSON)
		}
	},
}

// printFindings prints what was found. Problems are an error.
func printFindings(found []doctor.Finding, asJSON bool) error {
	problems := 0
	for _, f := range found {
		if f.State == doctor.Problem {
			problems++
		}
		if !asJSON {
			fmt.Fprint(cli.Stdout, findingText(f, cli.Stdout.Width(table.LineWidth)))
		}
	}
	if asJSON {
		e := json.NewEncoder(cli.Stdout)
		e.SetIndent("", "  ")
		if err := e.Encode(found); err != nil {
			return err
		}
	}
	switch problems {
	case 0:
		return nil
	case 1:
		return errors.New("1 problem")
	}
	return fmt.Errorf("%d problems", problems)
}

// findingText is a finding in lines of that width, what to do below what was found.
func findingText(f doctor.Finding, width int) string {
	var b strings.Builder
	head, indent := fmt.Sprintf("%-7s  %-12s  ", f.State, f.Check), 23
	if width < 60 { // no room for columns
		fmt.Fprintf(&b, "%s  %s\n", f.State, f.Check)
		head, indent = "  ", 2
	}
	for _, part := range table.Wrap(printable.Line(f.Found), width-indent) {
		b.WriteString(head + part + "\n")
		head = strings.Repeat(" ", indent)
	}
	if f.Do == "" {
		return b.String()
	}
	head = strings.Repeat(" ", indent) + "-> "
	for _, part := range table.Wrap(printable.Line(f.Do), width-indent-3) {
		b.WriteString(head + part + "\n")
		head = strings.Repeat(" ", indent+3)
	}
	return b.String()
}
