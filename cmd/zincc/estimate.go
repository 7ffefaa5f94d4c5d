package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
)

var estimateCommand = cli.Command{
	Name:  "estimate",
	Args:  "MODEL.gguf [--target TARGET] [--ctx 128k] [--json]",
	Short: "predict memory and speed of a model on a device",
	Long: `
Compiles the model without reading or writing a weight, and predicts memory and speed on the
device. It needs neither the device nor the tensors; the first megabytes of the file,
up to the end of its header, are enough.

Memory is exact: weights in their layout, KV cache, recurrent state, arena. Without
--ctx it is for the model's own context, or for the largest that fits. With --page it is that
of the smallest pool and of the largest: zincrun serve takes as many pages as the device has memory for.

Speed is a prediction, not a measurement. A tuned call site takes its measured time.
Others take the longer of bytes over bandwidth and operations over their rate
(` + "zincc targets" + `); each step between barriers adds its stage cost. For measured devices, a fit
adds what dispatches take beyond that. Processors have a range, for the cores that there are here.
Work on the host is not included. docs/estimates.md compares
estimates with measured rates. ppN is a step of N rows of a prompt, tg one token; depth is
the number of positions already in the cache. Bound says what takes most of the time.

  zincc estimate qwen3-8b.gguf --target gfx1201
  zincc estimate qwen3-8b.gguf --target gfx1201 --ctx 128k --kv f16 --json`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		var positions cli.Positions
		name := f.String("target", native, "device to predict for: a name of zincc targets, the best device of this computer, or a probe's .json")
		f.Var(&positions, "ctx", "positions of the KV cache, such as 4096 or 128k (default the model's context, as far as it fits)")
		slots := f.Int("slots", 1, "sequences at a time, each with a KV cache of its own")
		var pages pageFlags
		pages.declare(f)
		kv := f.String("kv", "f16", "type of the KV cache: "+ir.CacheTypeNames())
		asJSON := f.Bool("json", false, "print JSON")
		return func(ctx context.Context, args []string) error {
			path, err := input(ctx, args, "model")
			if err != nil {
				return err
			}
			bar, at := watch("estimating")
			defer bar.Done()
			t, _, err := findTarget(ctx, *name)
			if err != nil {
				return err
			}
			dtype, err := kvType(*kv)
			if err != nil {
				return err
			}
			if err := checkSlots(*slots); err != nil {
				return err
			}
			if err := pages.check(*slots); err != nil {
				return err
			}
			m, err := gguf.OpenHeader(path)
			if err != nil {
				return err
			}
			defer m.Close()
			choice, done, err := (&choiceFlags{compiler: "off"}).open(ctx, t)
			if err != nil {
				return err
			}
			defer done()
			plan, own, err := codegen.Estimate(ctx, m, codegen.Options{Target: t, Choice: choice, Import: frontend.Options{Ctx: int(positions), Slots: *slots, KV: dtype, Page: pages.page, Pool: int(pages.pool)}, Progress: at})
			bar.Done()
			if err != nil {
				return err
			}
			tables := plans.Estimate(plan, t.Memory, own, codegen.LargestCtx(plan, t), target.Cores(t))
			if *asJSON {
				return table.WriteJSON(cli.Stdout, tables...)
			}
			fmt.Fprintf(cli.Stdout, "%s for %s: a prediction, not a measurement\n\n", path, printable.Name(t.Name))
			return table.WriteText(cli.Stdout, tables...)
		}
	},
}

// checkSlots holds --slots against what plans can have.
func checkSlots(n int) error {
	if n < 1 || n > ir.MaxSlots {
		return cli.Usagef("--slots: want 1 to %d, have %d", ir.MaxSlots, n)
	}
	return nil
}

// kvType is the dtype that --kv names.
func kvType(s string) (ir.DType, error) {
	for _, t := range ir.CacheTypes {
		if s == t.String() {
			return t, nil
		}
	}
	return ir.Invalid, cli.Usagef("--kv: want %s, have %q", ir.CacheTypeNames(), s)
}
