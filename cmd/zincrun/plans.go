package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/runtime/planstore"
)

var plansCommand = cli.Command{
	Name:  "plans",
	Args:  "[--prune [--unused 30]]",
	Short: "list or remove the plans that were compiled from model files",
	Long: `
If a command gets a model file in place of a plan, it has zincc compile the file once for the device of this
computer, and keeps the plan in the user's cache folder. This command lists those plans, the last used
first. A plan serves one model, device, driver, context, type of KV cache and version of zincc.
--prune removes plans that were not used for --unused days, and plans whose model is gone.

  zincrun plans
  zincrun plans --prune              # not used for 30 days
  zincrun plans --prune --unused 0   # all`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		prune := f.Bool("prune", false, "remove plans")
		unused := f.Int("unused", 30, "with --prune: remove plans that were not used for so many days")
		asJSON := f.Bool("json", false, "print JSON")
		return func(_ context.Context, args []string) error {
			switch {
			case len(args) > 0:
				return cli.Usagef("plans takes no arguments, have %d", len(args))
			case *unused < 0:
				return cli.Usagef("--unused: want 0 days or more, have %d", *unused)
			case f.Changed("unused") && !*prune:
				return cli.Usagef("--unused goes with --prune")
			}
			store, err := planstore.Open()
			if err != nil {
				return err
			}
			list := store.List
			if *prune {
				list = func() ([]planstore.Entry, error) { return store.Prune(time.Now().AddDate(0, 0, -*unused)) }
			}
			entries, err := list()
			if err != nil {
				return err
			}
			if *asJSON {
				return json.NewEncoder(cli.Stdout).Encode(append([]planstore.Entry{}, entries...))
			}
			title := store.Dir
			if *prune {
				title = "removed from " + title
			}
			return printPlans(title, entries)
		}
	},
}

func printPlans(title string, entries []planstore.Entry) error {
	t := &table.Table{Title: title, Columns: []string{"model", "target", "ctx", "slots", "kv", "size", "used", "", "plan"}}
	total := int64(0)
	for _, e := range entries {
		model := e.Model
		if model == "" {
			model = e.Path
		}
		t.Add(filepath.Base(model), e.Target, e.Ctx, e.Slots, e.KV, table.Bytes(e.Bytes), e.Used.Format(time.DateOnly), e.Gone, e.Path)
		total += e.Bytes
	}
	if err := t.WriteText(cli.Stdout); err != nil {
		return err
	}
	_, err := fmt.Fprintf(cli.Stdout, "%d plans, %s\n", len(entries), table.Bytes(total))
	return err
}
