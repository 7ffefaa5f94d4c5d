package runtime

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/step"
)

// Profiler is an executor that can time single dispatches.
type Profiler interface {
	Executor
	Profile(ctx context.Context, e *plans.Entry, repeats int) ([]time.Duration, error)
}

// SiteTime is the time of a dispatch or, from BySite, of the dispatches of one call site, over
// all layers that use the same kernel there.
type SiteTime struct {
	Site       string // in a sum with "blk.*" for the layers
	Kernel     string
	Dispatches int
	Time       time.Duration // of all of them
	Predicted  float64       // seconds that the plan expects them to take
	Bytes      int64         // that they must read and write
	FLOPs      int64
}

// Add adds the dispatches, times and work of o.
func (s *SiteTime) Add(o SiteTime) {
	s.Dispatches += o.Dispatches
	s.Time += o.Time
	s.Predicted += o.Predicted
	s.Bytes += o.Bytes
	s.FLOPs += o.FLOPs
}

// Profile times one step of the entry with rows rows (0: all), behind depth positions, whose content does not matter
// for the time. The tokens differ, so they choose different experts. Rows of an exact entry are of as many sequences as
// the plan holds, those of others of one. Prediction, bytes and operations are for full rows at this depth. It returns
// one SiteTime for each dispatch, in order.
func Profile(ctx context.Context, plan *plans.Plan, exec Executor, entry string, rows, depth, repeats int) ([]SiteTime, error) {
	p, ok := exec.(Profiler)
	if !ok {
		return nil, fmt.Errorf("device %s has no timestamps", exec.Device())
	}
	i := slices.IndexFunc(plan.Entries, func(e plans.Entry) bool { return e.Name == entry })
	if i < 0 {
		return nil, fmt.Errorf("plan has no entry %q", entry)
	}
	e := &plan.Entries[i]
	if err := prepareStep(plan, exec, e, rows, depth); err != nil {
		return nil, err
	}
	times, err := p.Profile(ctx, e, repeats)
	if err != nil {
		return nil, err
	}
	var list []SiteTime
	for i, d := range e.Dispatches {
		c := d.Cost.At(depth)
		t := SiteTime{Site: d.Site, Kernel: plan.Modules[plan.Pipelines[d.Pipeline].Module].Name, Dispatches: 1, Time: times[i],
			Predicted: c.Predicted.Seconds(), Bytes: c.ReadBytes + c.WriteBytes, FLOPs: c.FLOPs}
		list = append(list, t)
	}
	return list, nil
}

// prepareStep writes the step block for one step of the entry: see Profile.
func prepareStep(plan *plans.Plan, exec Executor, e *plans.Entry, rows, depth int) error {
	if rows == 0 {
		rows = e.Rows
	}
	if rows < 0 || rows > e.Rows {
		return fmt.Errorf("entry %s has %d rows, not %d", e.Name, e.Rows, rows)
	}
	each := rows // of a sequence
	if e.Exact() {
		each = (rows + plan.Header.Slots - 1) / plan.Header.Slots
	}
	if depth+each > plan.Header.Ctx {
		return fmt.Errorf("depth %d and %d rows do not fit the plan's context of %d", depth, each, plan.Header.Ctx)
	}
	var block step.Block
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range rows {
		block.Add(rng.Int32N(int32(plan.Header.Model.Vocab)), depth+i%each, i/each)
	}
	return block.Store(exec)
}

// BySite adds up the dispatches of each call site, slowest first.
func BySite(list []SiteTime) []SiteTime {
	var sites []SiteTime
	at := map[[2]string]int{}
	for _, d := range list {
		key := [2]string{plans.FoldSite(d.Site), d.Kernel}
		j, ok := at[key]
		if !ok {
			j = len(sites)
			at[key] = j
			sites = append(sites, SiteTime{Site: key[0], Kernel: key[1]})
		}
		sites[j].Add(d)
	}
	slices.SortStableFunc(sites, func(a, b SiteTime) int { return cmp.Compare(b.Time, a.Time) })
	return sites
}
