package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans/tuning"
)

var tuneCommand = cli.Command{
	Name:  "tune",
	Args:  "MODEL.gguf... --target gfx1201 -o FILE",
	Short: "find the best kernel of every call site with AMD's compiler, without an AMD GPU",
	Long: `
Compiles all candidates of each call site of the models with Mesa's driver for AMD (version 25,
not 26), which needs no GPU for that. It ranks them by a cost model: bytes over
bandwidth, the compiler's cycles over the SIMDs, occupancy, rounds. It refuses candidates that spill
registers. The best candidate of each site goes into a file, a row a line, for
` + "`zincc compile --tuning FILE`" + `; the file's rows of other sites stay. Headers of the
models are enough. The rows of published models in this program were made this way.

If you have a device of any vendor, measure instead:

  zincc compile MODEL.gguf --target TARGET --candidates -o tune.bin
  zincrun tune tune.bin -o FILE

  zincc tune qwen3-8b.gguf --target gfx1201 -o gfx1201.jsonl
  zincc compile qwen3-8b.gguf --target gfx1201 --tuning gfx1201.jsonl -o plan.bin`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		name := f.String("target", "", "the AMD device; zincc targets lists them")
		out := f.StringP("output", "o", "", "file to merge the rows into")
		kv := f.String("kv", "f16", "type of the KV cache: "+ir.CacheTypeNames())
		asJSON := f.Bool("json", false, "print JSON")
		return func(ctx context.Context, models []string) error {
			if len(models) == 0 || *out == "" {
				return cli.Usagef("want models and -o FILE")
			}
			if err := cli.CheckOutput(*out, models...); err != nil {
				return err
			}
			t, _, err := findTarget(ctx, *name)
			if err != nil {
				return err
			}
			if t.AMD == nil {
				return cli.Usagef("--target: %s has no compiler to ask; measure instead: zincc compile --candidates, zincrun tune", t.Name)
			}
			dtype, err := kvType(*kv)
			if err != nil {
				return err
			}
			o, err := radv.Open(ctx, t.AMD.Family, t.AMD.StandIn, nil)
			if err != nil {
				return err
			}
			defer o.Close()
			bar, at := watch("asking AMD's compiler")
			defer bar.Done()
			o.Asking(func(done, total int) { at("", done, total) })
			var rows []tuning.Row
			for _, model := range models {
				more, err := tuneModel(ctx, model, codegen.Options{Target: t, Import: frontend.Options{KV: dtype}, Choice: codegen.Choice{Compiler: o}})
				if err != nil {
					return err
				}
				rows = tuning.Merge(rows, more)
			}
			if err := tuning.MergeFile(*out, rows); err != nil {
				return err
			}
			bar.Done()
			best := tuning.Report(fmt.Sprintf("%s: what is predicted to be best on %s", *out, t.Name), rows)
			if *asJSON {
				return table.WriteJSON(cli.Stdout, best)
			}
			return table.WriteText(cli.Stdout, best)
		}
	},
}

// tuneModel predicts for one model, and needs only its header.
func tuneModel(ctx context.Context, path string, o codegen.Options) ([]tuning.Row, error) {
	m, err := gguf.OpenHeader(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	rows, err := codegen.Tune(ctx, codegen.Source{Model: m}, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rows, nil
}
