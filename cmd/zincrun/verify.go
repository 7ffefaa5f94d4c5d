package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/verify"
)

var verifyCommand = cli.Command{
	Name:  "verify",
	Args:  "plan.bin [--entry E] [--layers LIST]",
	Short: "compare every dispatch with the oracle",
	Long: `
Runs each dispatch of each entry on the device and its ops on the oracle (plain Go, on
this computer's processor), on the same inputs, and compares every element. Each entry
gets a full and a partial step, behind a context that the plan's own prefill has put
into the KV cache. Since a dispatch's inputs are taken from the device, each is judged
on its own; after a difference the oracle's values take the place of the wrong ones.

Floats may differ by what another order of additions explains (in proportion to the
largest value of the row or head and the square root of the reduction's length), cached
f16 also by one unit in the last place and q8_0 by one code, integers not at all. Nothing else may have been
written. Last, the replay of the whole entry must give the same bytes, prompts cut at multiples of
their entry's grain the same bits in caches, states and logits as one step, as must prompts in a
step with others, and decode entries of all widths the same bits for the same tokens.

The result is the first dispatch that differs, with entry, call site, kernel, element
and both numbers, and exit code 1. For a large model, bound the work; with --layers none the oracle
computes nothing, and the replays, cuts and widths of most plans take seconds:

  zincrun verify plan.bin --layers 0,17,35 --rows 64
  zincrun verify plan.bin --layers none
  zincrun verify plan.bin --entry decode/1 --context 3000 --json`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		var v verifyFlags
		f.StringVar(&v.opts.Entry, "entry", "", "only this entry, such as decode/1")
		f.StringVar(&v.layers, "layers", "", "compare only call sites of these layers, such as 0,17 or 3-5, and those of no layer; none for no call site")
		f.IntVar(&v.opts.Rows, "rows", 0, "rows of a step, at most; 0 for what the entry takes")
		f.IntVar(&v.opts.Context, "context", 75, "positions in the KV cache before a step")
		v.plan.declare(f)
		f.BoolVar(&v.json, "json", false, "print the error of every dispatch as JSON")
		return v.run
	},
}

type verifyFlags struct {
	plan   planFlags
	opts   verify.Options
	layers string
	json   bool
}

func (v *verifyFlags) run(ctx context.Context, args []string) error {
	path, err := cli.OneArg(args, "plan")
	if err != nil {
		return err
	}
	if v.opts.Rows < 0 || v.opts.Context < 0 {
		return cli.Usagef("want --rows >= 0 and --context >= 0")
	}
	if v.opts.NoOracle = v.layers == "none"; !v.opts.NoOracle {
		if v.opts.Layers, err = parseRanges("--layers", v.layers); err != nil {
			return err
		}
	}
	o, err := v.plan.open(ctx, path)
	if err != nil {
		return err
	}
	defer o.Close()
	dev, err := device.Inspect(o.Exec)
	if err != nil {
		return fmt.Errorf("%s: nothing to compare: %w", path, err)
	}
	bar := cli.NewProgress("verifying", 1000)
	last := 0
	v.opts.Progress = func(done, total int) {
		now := done * 1000 / total
		bar.Add(int64(now - last))
		last = now
	}
	r, err := verify.Plan(ctx, o.Plan, o.Source, dev, v.opts)
	bar.Done()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if v.json {
		if err := json.NewEncoder(cli.Stdout).Encode(r); err != nil {
			return err
		}
	} else if err := r.Print(cli.Stdout); err != nil {
		return err
	}
	if r.Failed > 0 {
		first := r.First()
		return fmt.Errorf("%s: %d of %d comparisons failed, the first in %s, rows %d: %s", path, r.Failed, len(r.Results), first.Entry, first.Rows, first.Site)
	}
	return nil
}

// parseRanges reads numbers and ranges such as 0,3-5; nil for an empty list.
func parseRanges(flag, list string) ([]int, error) {
	if list == "" {
		return nil, nil
	}
	var out []int
	for _, s := range strings.Split(list, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(s), "-")
		if !isRange {
			to = from
		}
		lo, err1 := strconv.ParseUint(from, 10, 16)
		hi, err2 := strconv.ParseUint(to, 10, 16)
		if err1 != nil || err2 != nil || lo > hi {
			return nil, cli.Usagef("%s: %q is neither a number nor a range", flag, s)
		}
		for i := lo; i <= hi; i++ {
			out = append(out, int(i))
		}
	}
	return out, nil
}
