package emulate

import (
	"context"
	"fmt"

	"github.com/zincc-dev/zincc/internal/rdna"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// counted is what the dispatches of a call site execute, over all layers that use the same kernel there.
type counted struct {
	runtime.SiteTime
	rdna.Counts
}

// Profile counts what a step of an entry executes on an executor of the device: see runtime.Profile.
func (v *Verbs) Profile(ctx context.Context, plan *plans.Plan, x runtime.Executor, entry string, rows, depth int) (*table.Table, error) {
	v.count(true)
	list, err := runtime.Profile(ctx, plan, x, entry, rows, depth, 1)
	counts := v.count(false)
	if err != nil {
		return nil, err
	}
	if len(counts) != len(list) {
		return nil, v.errorf("%d of %d dispatches have run", len(counts), len(list))
	}
	var sites []*counted
	at := map[[2]string]*counted{}
	sum := &counted{SiteTime: runtime.SiteTime{Site: "sum"}}
	for i, s := range list {
		key := [2]string{plans.FoldSite(s.Site), s.Kernel}
		c := at[key]
		if c == nil {
			c = &counted{SiteTime: runtime.SiteTime{Site: key[0], Kernel: key[1]}}
			at[key], sites = c, append(sites, c)
		}
		for _, to := range []*counted{c, sum} {
			to.SiteTime.Add(s)
			to.Counts.Add(&counts[i])
		}
	}
	t := &table.Table{Title: fmt.Sprintf("%s at depth %d on %s: thousands of wave instructions, and kB", entry, depth, x.Device()),
		Columns: []string{"site", "kernel", "count", "waves", "vector", "scalar", "matrix", "memory", "shared", "conflicts", "waits", "barriers", "kB", "needed kB", "predicted us"}}
	thousand := func(n int64) float64 { return float64(n) / 1e3 }
	for _, s := range append(sites, sum) {
		c := &s.Counts
		t.Add(s.Site, s.SiteTime.Kernel, s.Dispatches, c.Wave, thousand(c.Vector), thousand(c.Scalar), thousand(c.Matrix), thousand(c.GlobalLoads+c.GlobalStores+c.ScalarLoads+c.Atomics),
			thousand(c.SharedLoads+c.SharedStores), thousand(c.SharedConflicts), thousand(c.Waits), thousand(c.Barriers), thousand(c.LoadedBytes+c.StoredBytes+c.ScalarBytes), thousand(s.Bytes),
			1e6*s.Predicted)
	}
	return t, nil
}
