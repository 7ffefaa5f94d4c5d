package codegen

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/passes"
	"github.com/zincc-dev/zincc/plans"
)

// Report sums up a compilation for people and, as JSON, for programs.
type Report struct {
	Plan          string
	Target        string
	Model         string
	Ctx           int
	Entries       []EntryReport
	Weights       int64 // bytes on the device
	KV            int64
	State         int64
	Arena         int64
	LargestCtx    int   // largest context that fits the target's memory; 0 where that is not known
	BytesPerToken int64 // read by decode/1 with an empty cache
	Passes        []PassReport
	Total         time.Duration
}

// EntryReport counts the dispatches of an entry and the steps between barriers.
type EntryReport struct {
	Name       string
	Dispatches int
	Steps      int
	PerLayer   float64 // dispatches of the layers over the number of layers
}

// PassReport is the time of a pass.
type PassReport struct {
	Name string
	Time time.Duration
}

// NewReport sums up plan, which was compiled for t and written to path.
func NewReport(plan *plans.Plan, t *target.Target, times []passes.Timing, path string) *Report {
	r := &Report{
		Plan: path, Target: printable.Name(plan.Header.Target), Model: printable.Name(plan.Header.Model.Name), Ctx: plan.Header.Ctx,
		Weights: plan.WeightBytes(), KV: plans.SumBytes(plan.Memory.KV), State: plans.SumBytes(plan.Memory.State), Arena: plan.Memory.Arena,
	}
	if t.Memory != 0 {
		r.LargestCtx = LargestCtx(plan, t)
	}
	for _, e := range plan.Entries {
		er := EntryReport{Name: e.Name, Dispatches: len(e.Dispatches), Steps: e.Steps()}
		inLayers := 0
		for _, d := range e.Dispatches {
			if strings.HasPrefix(d.Site, "blk.") {
				inLayers++
			}
			if e.Name == "decode/1" {
				r.BytesPerToken += d.Cost.ReadBytes
			}
		}
		if n := plan.Header.Model.Layers; n > 0 {
			er.PerLayer = float64(inLayers) / float64(n)
		}
		r.Entries = append(r.Entries, er)
	}
	for _, t := range times {
		r.Passes = append(r.Passes, PassReport{t.Pass, t.Time})
		r.Total += t.Time
	}
	return r
}

// Print writes the report as a table.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s for %s, context %d\n\n", r.Plan, r.Model, r.Target, r.Ctx)
	fmt.Fprintf(&b, "%-14s %10s %6s %10s\n", "entry", "dispatches", "steps", "per layer")
	for _, e := range r.Entries {
		fmt.Fprintf(&b, "%-14s %10d %6d %10.1f\n", e.Name, e.Dispatches, e.Steps, e.PerLayer)
	}
	fmt.Fprintf(&b, "\n%-26s %12s\n", "weights", mib(r.Weights))
	fmt.Fprintf(&b, "%-26s %12s\n", "KV cache", mib(r.KV))
	if r.State > 0 {
		fmt.Fprintf(&b, "%-26s %12s\n", "recurrent state", mib(r.State))
	}
	fmt.Fprintf(&b, "%-26s %12s\n", "arena", mib(r.Arena))
	if r.LargestCtx > 0 {
		fmt.Fprintf(&b, "%-26s %12d\n", "largest context that fits", r.LargestCtx)
	}
	fmt.Fprintf(&b, "%-26s %12s\n", "read per decoded token", mib(r.BytesPerToken))
	b.WriteString("\npasses")
	for i, p := range r.Passes {
		if i%4 == 0 {
			b.WriteString("\n ")
		}
		fmt.Fprintf(&b, " %s %s", p.Name, p.Time.Round(10*time.Microsecond))
	}
	fmt.Fprintf(&b, "\n  total %s\n", r.Total.Round(10*time.Microsecond))
	_, err := io.WriteString(w, b.String())
	return err
}

func mib(n int64) string { return fmt.Sprintf("%.2f MiB", float64(n)/(1<<20)) }
