package runtime

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/plans"
)

// Profiler is an executor that can time single dispatches.
type Profiler interface {
	Executor
	Profile(ctx context.Context, e *plans.Entry, repeats int) ([]time.Duration, error)
}

// SiteTime is what the dispatches of one call site take, over all layers that
// use the same kernel there.
type SiteTime struct {
	Site       string // with "blk.*" for the layers
	Kernel     string
	Dispatches int
	Time       time.Duration // of all of them
	Predicted  float64       // seconds that the plan expects them to take
	Bytes      int64         // that they must read and write
	FLOPs      int64
}

// Profile times one step of the entry with rows rows behind depth positions,
// whose content does not matter for the time. Prediction, bytes and operations are
// those of full rows at this depth. Slowest site first.
func Profile(ctx context.Context, plan *plans.Plan, exec Executor, entry string, depth, repeats int) ([]SiteTime, error) {
	p, ok := exec.(Profiler)
	if !ok {
		return nil, fmt.Errorf("device %s has no timestamps", exec.Device())
	}
	i := slices.IndexFunc(plan.Entries, func(e plans.Entry) bool { return e.Name == entry })
	if i < 0 {
		return nil, fmt.Errorf("plan has no entry %q", entry)
	}
	e := &plan.Entries[i]
	if depth+e.Rows > plan.Header.Ctx {
		return nil, fmt.Errorf("depth %d and %d rows do not fit the plan's context of %d", depth, e.Rows, plan.Header.Ctx)
	}
	s := NewSession(plan, exec)
	s.pos = depth
	if err := s.write(make([]int32, e.Rows)); err != nil {
		return nil, err
	}
	times, err := p.Profile(ctx, e, repeats)
	if err != nil {
		return nil, err
	}
	var sites []SiteTime
	at := map[[2]string]int{}
	for i, d := range e.Dispatches {
		key := [2]string{plans.FoldSite(d.Site), plan.Modules[plan.Pipelines[d.Pipeline].Module].Name}
		j, ok := at[key]
		if !ok {
			j = len(sites)
			at[key] = j
			sites = append(sites, SiteTime{Site: key[0], Kernel: key[1]})
		}
		sites[j].Dispatches++
		sites[j].Time += times[i]
		c := d.Cost.At(depth)
		sites[j].Predicted += c.Predicted.Seconds()
		sites[j].Bytes += c.ReadBytes + c.WriteBytes
		sites[j].FLOPs += c.FLOPs
	}
	slices.SortStableFunc(sites, func(a, b SiteTime) int { return cmp.Compare(b.Time, a.Time) })
	return sites, nil
}
