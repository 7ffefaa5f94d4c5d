package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/outfile"
	"github.com/zincc-dev/zincc/internal/rank"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

var profileCommand = cli.Command{
	Name:  "profile",
	Args:  "plan.bin [--entry decode/1]",
	Short: "time every call site of an entry on the device",
	Long: `
Runs one step of an entry with a timestamp behind every dispatch. For each call site it shows the time,
summed over the layers that use the same kernel there, beside the prediction of the plan, and the bytes
and operations that the site must do. Spearman's rank correlation over the rows says whether the predictions
have the order of the times. Each time includes the dispatch's barrier,
also where the plan itself needs none, so the sum is an upper bound of the step.

zincc inspect --html report.html --measured FILE shows the --json output beside the predictions.

On an emulated device (--device rdna:gfx1100) there are no times: it shows what waves execute, in thousands, and what
they move, beside the bytes that the site must move.`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		var plan planFlags
		entry := f.String("entry", "decode/1", "the entry; zincc inspect lists them")
		rows := f.Int("rows", 0, "rows of the step; 0: all that the entry has")
		depth := f.IntP("depth", "d", 0, "positions in the KV cache before the step")
		repeats := f.IntP("repeat", "r", 20, "repetitions; the median counts")
		plan.declare(f)
		asJSON := f.Bool("json", false, "print JSON")
		trace := f.String("trace", "", "also write every dispatch to this file, for chrome://tracing or Perfetto")
		return func(ctx context.Context, args []string) error {
			path, err := cli.OneArg(args, "plan")
			if err != nil {
				return err
			}
			if *depth < 0 || *repeats <= 0 {
				return cli.Usagef("want --depth >= 0 and --repeat > 0")
			}
			o, err := plan.open(ctx, path)
			if err != nil {
				return err
			}
			defer o.Close()
			if err := o.checkOutput(*trace); err != nil {
				return err
			}
			if i := slices.IndexFunc(o.Plan.Entries, func(e plans.Entry) bool { return e.Name == *entry }); i >= 0 && *rows == 0 {
				*rows = o.Plan.Entries[i].Rows
			}
			if x, is := o.Exec.(*emulated); is {
				t, err := x.verbs.Profile(ctx, o.Plan, x, *entry, *rows, *depth)
				if err != nil {
					return err
				}
				if *asJSON {
					return table.WriteJSON(cli.Stdout, t)
				}
				return table.WriteText(cli.Stdout, t)
			}
			bar := cli.NewProgress("profiling", 0)
			list, err := runtime.Profile(ctx, o.Plan, o.Exec, *entry, *rows, *depth, *repeats)
			bar.Done()
			if err != nil {
				return err
			}
			if *trace != "" {
				if err := outfile.Write(*trace, func(w io.Writer) error { return runtime.WriteTrace(w, list) }); err != nil {
					return err
				}
			}
			if *asJSON {
				p := plans.Profile{Device: o.Exec.Device(), Entry: *entry, Rows: *rows, Depth: *depth}
				for _, s := range runtime.BySite(list) {
					p.Sites = append(p.Sites, plans.ProfileSite{Site: s.Site, Kernel: s.Kernel, Dispatches: s.Dispatches,
						Time: float64(s.Time) / 1e3, Predicted: 1e6 * s.Predicted, Bytes: s.Bytes, FLOPs: s.FLOPs})
				}
				e := json.NewEncoder(cli.Stdout)
				e.SetIndent("", "  ")
				return e.Encode(p)
			}
			return table.WriteText(cli.Stdout, profileTable(fmt.Sprintf("%s at depth %d on %s", *entry, *depth, o.Exec.Device()), runtime.BySite(list)))
		}
	},
}

func profileTable(title string, sites []runtime.SiteTime) *table.Table {
	var sum runtime.SiteTime
	var measured, expected []float64 // of one dispatch
	for _, s := range sites {
		sum.Add(s)
		measured = append(measured, float64(s.Time)/float64(s.Dispatches))
		expected = append(expected, s.Predicted/float64(s.Dispatches))
	}
	if sum.Predicted > 0 {
		title += fmt.Sprintf(", rank correlation with the prediction %.2f", rank.Correlation(measured, expected))
	}
	t := &table.Table{Title: title, Columns: []string{"site", "kernel", "count", "us each", "us", "predicted us", "share %", "GB/s", "GFLOP/s"}}
	us := func(d time.Duration) float64 { return float64(d) / 1e3 }
	sum.Site = "sum"
	for _, s := range append(sites, sum) {
		t.Add(s.Site, s.Kernel, s.Dispatches, us(s.Time)/float64(max(s.Dispatches, 1)), us(s.Time), 1e6*s.Predicted,
			100*us(s.Time)/us(sum.Time), float64(s.Bytes)/float64(s.Time), float64(s.FLOPs)/float64(s.Time))
	}
	return t
}
