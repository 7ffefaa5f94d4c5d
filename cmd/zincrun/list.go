package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/runtime/library"
)

var listCommand = cli.Command{
	Name:  "list",
	Args:  "[--json]",
	Short: "list the models on this computer that commands know by name",
	Long: `
Lists the models of the models folder, and those in the caches of Hugging Face's programs, of Ollama and of LM Studio, which
are used where they lie. Every command takes a name in place of a file. The end of a name is enough where it
is clear: REPO:QUANT, REPO, or what the file is called.

  zincrun list
  zincrun chat qwen3-8b-q4_k_m`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		models := declareModels(f)
		asJSON := f.Bool("json", false, "print JSON")
		return func(_ context.Context, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("list takes no arguments, have %d", len(args))
			}
			l, err := library.Open(*models)
			if err != nil {
				return err
			}
			all := l.List()
			if *asJSON {
				return json.NewEncoder(cli.Stdout).Encode(append([]library.Model{}, all...))
			}
			t := &table.Table{Title: "models; the models folder is " + l.Dir, Columns: []string{"name", "size", "in", "changed", ""}}
			for _, m := range all {
				t.Add(m.Name, table.Bytes(m.Bytes), m.Where, m.Modified.Format(time.DateOnly), m.Problem)
			}
			if len(all) == 0 {
				_, err := fmt.Fprintf(cli.Stdout, "no models in %s, nor in the caches of other programs; zincrun pull --help says how to fetch one\n", printable.Line(l.Dir))
				return err
			}
			return t.WriteText(cli.Stdout)
		}
	},
}

var rmCommand = cli.Command{
	Name:  "rm",
	Args:  "NAME...",
	Short: "remove models from the models folder",
	Long: `
Removes models, or what was fetched of them, from the models folder. What lies in the cache of another program is left to that
program. Plans that were compiled from a model stay until zincrun plans --prune.

  zincrun rm qwen3:8b`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		models := declareModels(f)
		return func(_ context.Context, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("name a model; zincrun list has them")
			}
			l, err := library.Open(*models)
			if err != nil {
				return err
			}
			for _, arg := range args {
				m, err := l.Find(arg)
				if err != nil {
					return err
				}
				if err := l.Remove(m); err != nil {
					return err
				}
				fmt.Fprintf(cli.Stdout, "removed %s, %s\n", m.Name, table.Bytes(m.Bytes))
			}
			return nil
		}
	},
}
