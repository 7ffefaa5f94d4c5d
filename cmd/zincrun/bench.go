package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/runtime/bench"
	"github.com/zincc-dev/zincc/runtime/device"
)

var benchCommand = cli.Command{
	Name:  "bench",
	Args:  "plan.bin [-p 128,512] [-n 64] [-d 0,1024] [-r 3]",
	Short: "measure tokens a second",
	Long: `
Runs llama-bench's tests, so the figures compare: ppN is the rate of a prompt of N
tokens, tgN the rate of N generated tokens, "@ dD" means behind D tokens. Lists
make every combination. Each test warms up for half a second, at least one run
(llama-bench: one run), and then runs -r times. Tokenizing and sampling are not included.
Tokens are random but always the same.

Stages are the steps between barriers of a prompt or of a generated token. The roofline is
the time of the plan's bytes and operations at the rates of its target; its share
of the measured time would be 100 if nothing else took time. Plans for processors have none:
they do not know on which processor they run.

GB/s is what the plan must read for the test (weights, activations, cached keys and
values) over the time. The share is that of the bandwidth of a kernel that only
reads the device's memory, measured first. It says how close a generation is
to the best that the device can do; a prompt is bound by arithmetic. The host's
memory is not measured.`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		var b benchFlags
		f.IntSliceVarP(&b.prompts, "n-prompt", "p", []int{512}, "lengths of prompts; 0 for none")
		f.IntSliceVarP(&b.gens, "n-gen", "n", []int{128}, "lengths of generations; 0 for none")
		f.IntSliceVarP(&b.depths, "n-depth", "d", []int{0}, "tokens before each test")
		f.IntVarP(&b.repeats, "repetitions", "r", 5, "runs of each test")
		b.plan.declare(f)
		f.BoolVar(&b.json, "json", false, "print JSON")
		return b.run
	},
}

type benchFlags struct {
	plan                  planFlags
	prompts, gens, depths []int
	repeats               int
	json                  bool
}

func (b *benchFlags) run(ctx context.Context, args []string) error {
	path, err := cli.OneArg(args, "plan")
	if err != nil {
		return err
	}
	for _, list := range [][]int{b.prompts, b.gens, b.depths} {
		for _, n := range list {
			if n < 0 {
				return cli.Usagef("want -p, -n and -d >= 0, have %d", n)
			}
		}
	}
	tests := bench.Tests(b.prompts, b.gens, b.depths)
	if len(tests) == 0 || b.repeats < 1 {
		return cli.Usagef("want a test, by -p, -n and -d, and -r >= 1")
	}
	o, err := b.plan.open(ctx, path)
	if err != nil {
		return err
	}
	defer o.Close()
	for _, t := range tests {
		if err := bench.Check(o.Plan, t); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	backend, limit := o.Plan.Require.Backend, 0.0
	if x, ok := o.Exec.(device.Measured); ok {
		backend = x.Backend()
		if limit, err = x.ReadBandwidth(ctx); ctx.Err() != nil {
			return err
		} else if err != nil {
			fmt.Fprintf(cli.Stderr, "zincrun: read bandwidth is left out: %s\n", err)
		}
	}
	h := &o.Plan.Header
	size := int64(0)
	for _, w := range o.Plan.Weights {
		size += w.Size
	}
	out := &table.Table{
		Title:   fmt.Sprintf("%s: %s", path, o.Exec.Device()),
		Columns: []string{"model", "size", "params", "backend", "test", "t/s", "+-", "stages", "roofline %", "GB/s"},
	}
	processor := o.Plan.OfReference()
	if processor {
		out.Columns = slices.DeleteFunc(out.Columns, func(c string) bool { return c == "roofline %" })
	}
	if limit > 0 {
		out.Columns = append(out.Columns, "share %")
	}
	bar := cli.NewProgress("measuring", int64(len(tests)))
	for _, t := range tests {
		r, err := bench.Run(ctx, o.Plan, o.Exec, t, b.repeats)
		if err != nil {
			bar.Done()
			return err
		}
		bar.Add(1)
		row := []any{printable.Name(h.Model.Arch + " " + h.Model.Name), table.Bytes(size), table.Count(h.Model.Parameters), backend, t.String(),
			r.Rate, r.Deviation, r.Stages / max(t.Gen, 1)}
		if !processor {
			row = append(row, 100*r.Roofline)
		}
		row = append(row, r.Bandwidth/1e9)
		if limit > 0 {
			row = append(row, 100*r.Bandwidth/limit)
		}
		out.Add(row...)
	}
	bar.Done()
	if b.json {
		return table.WriteJSON(cli.Stdout, out)
	}
	return table.WriteText(cli.Stdout, out)
}
