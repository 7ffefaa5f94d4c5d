package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans/tuning"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/verify"
)

// tuneMargin is the share by which a candidate must be faster than one that the compiler
// offers earlier: times differ by as much from run to run.
const tuneMargin = 0.01

var tuneCommand = cli.Command{
	Name:  "tune",
	Args:  "tune.bin|MODEL.gguf -o FILE",
	Short: "time all candidates of every call site on the device",
	Long: `
Times each kernel that the compiler could have chosen, at every call site of a plan that
holds them all (zincc compile --candidates; of a model file zincrun has zincc make that
plan): on the real weights, between its real neighbours, by timestamps behind every
dispatch, all candidates by turns. The median over the turns counts. The best and second
best of each site go into a file, a row a line. Its key is what the site computes with which
shapes and types, the device and its driver. The file's rows with other keys stay, so one
file can hold the results of many models and devices.

A candidate replaces the compiler's first guess if it is faster by 1 %. All widths
of a decode entry use the order of additions that is best for one row, so they
give the same bits. Before writing the file, tune compares the chosen candidates with the oracle,
as zincrun verify does.

  zincc compile qwen3-8b.gguf --target sm_90 --candidates -o tune.bin
  zincrun tune tune.bin -o h200.jsonl
  zincc compile qwen3-8b.gguf --target sm_90 --tuning h200.jsonl -o plan.bin
  zincrun tune qwen3-8b.gguf --entry decode/1 -o card.jsonl`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		var t tuneFlags
		f.StringVarP(&t.out, "output", "o", "", "file to merge the rows into")
		f.StringVar(&t.entry, "entry", "", "only this entry, such as decode/1")
		f.Float64Var(&t.seconds, "seconds", 10, "how long to measure; every candidate is timed at least three times")
		f.IntVarP(&t.depth, "depth", "d", 512, "positions in the KV cache, as far as the plan has them")
		f.IntVar(&t.rows, "verify-rows", 16, "at most so many rows of a step are compared with the oracle; 0: compare nothing")
		t.plan.declare(f)
		f.BoolVar(&t.json, "json", false, "print JSON")
		return t.run
	},
}

type tuneFlags struct {
	plan        planFlags
	out, entry  string
	seconds     float64
	depth, rows int
	json        bool
}

func (t *tuneFlags) run(ctx context.Context, args []string) error {
	path, err := cli.OneArg(args, "plan")
	if err != nil {
		return err
	}
	if t.out == "" || t.depth < 0 || t.rows < 0 || !(t.seconds >= 0 && t.seconds <= 3600) {
		return cli.Usagef("want -o FILE, --depth and --verify-rows >= 0, --seconds from 0 to 3600")
	}
	if _, err := tuning.Read(t.out); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // before the work, not behind it
	}
	if gguf.Is(path) {
		t.plan.candidates = cmp.Or(t.entry, "all")
	}
	o, err := t.plan.open(ctx, path)
	if err != nil {
		return err
	}
	defer o.Close()
	if err := o.checkOutput(t.out); err != nil {
		return err
	}
	x, ok := o.Exec.(device.Measured)
	if !ok {
		return ir.Unsupported("%s: device %s has no kernels to time", path, o.Exec.Device())
	}
	bar := cli.NewProgress("timing", 1000)
	last := int64(0)
	times, err := runtime.Tune(ctx, o.Plan, x, runtime.TuneOptions{
		Entry: t.entry, Depth: t.depth, Budget: time.Duration(t.seconds * float64(time.Second)),
		Progress: func(share float64) {
			now := int64(1000 * share)
			bar.Add(now - last)
			last = now
		},
	})
	bar.Done()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	rows := t.decide(times, x)
	if err := t.verify(ctx, o, x, times, rows); err != nil {
		return err
	}
	if err := tuning.MergeFile(t.out, rows); err != nil {
		return err
	}
	best := tuning.Report(fmt.Sprintf("%s: what is best on %s", t.out, o.Exec.Device()), rows)
	if t.json {
		return table.WriteJSON(cli.Stdout, best)
	}
	return table.WriteText(cli.Stdout, best)
}

// decide returns the rows of the sites that have a choice.
func (t *tuneFlags) decide(times []runtime.CandidateTime, x device.Measured) []tuning.Row {
	var timings []tuning.Timing
	for _, c := range times {
		timings = append(timings, c.Timing)
	}
	now := time.Now().UTC().Truncate(time.Second)
	var rows []tuning.Row
	for _, r := range tuning.Decide(timings, tuneMargin) {
		if r.Of > 1 {
			r.Device, r.Driver, r.When = x.Device(), x.Driver(), now
			rows = append(rows, r)
		}
	}
	return rows
}

// verify compares a dispatch of each row's best candidate with the oracle.
func (t *tuneFlags) verify(ctx context.Context, o *opened, x device.Measured, times []runtime.CandidateTime, rows []tuning.Row) error {
	if t.rows == 0 || len(rows) == 0 {
		return nil
	}
	best := map[[2]string]bool{}
	for _, r := range rows {
		best[[2]string{r.Site, r.Best}] = true
	}
	type dispatch struct {
		entry string
		index int
	}
	chosen := map[dispatch]bool{}
	for _, c := range times {
		if best[[2]string{c.Site, c.Candidate}] {
			chosen[dispatch{c.Entry, c.Dispatch}] = true
		}
	}
	dev, err := device.Inspect(x)
	if err != nil {
		return err
	}
	opts := verify.Options{Rows: t.rows, Context: 75, Only: func(entry string, i int) bool { return chosen[dispatch{entry, i}] }}
	bar := cli.NewProgress("verifying", 1000)
	last := 0
	opts.Progress = func(done, total int) {
		now := done * 1000 / total
		bar.Add(int64(now - last))
		last = now
	}
	r, err := verify.Plan(ctx, o.Plan, o.Source, dev, opts)
	bar.Done()
	if err != nil {
		return err
	}
	if first := r.First(); first != nil {
		return fmt.Errorf("%s: %s: %s differs from the oracle, so nothing is written; zincrun verify --entry %s says more", first.Entry, first.Site, first.Kernel, first.Entry)
	}
	return nil
}
