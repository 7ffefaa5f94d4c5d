package codegen_test

import (
	"bufio"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// sitesPath has what dispatches took on an H200 through CUDA between two timestamps (zincrun profile), one row a call
// site of a step: model, entry, cached positions, dispatches of the whole model, microseconds of one, site and kernel.
const sitesPath = "testdata/sites.tsv"

const (
	withinSite = 0.2 // of a site that no tuning row predicts
	withinStep = 0.1 // of the rows of a step together
)

// fewerTiles is why a projection with more products than others of its dispatch takes less than is predicted.
const fewerTiles = "the finer projection has half as many tiles, which count as a turn"

// sitesOff are predictions that are known to be further off, by entry and kernel, with the reason.
var sitesOff = map[[2]string]string{
	{"decode/1", "argmax choose v=4 split masked next advance"}:                                                                "masks of all slots count as read",
	{"decode/16", "gemm_wide q4_k*fixed,q4_k*fixed,q6_k*fixed k=4096 columns=16 groups=16 splits=4 series=[16 16 8] room=512"}: fewerTiles,
	{"decode/32", "gemm_wide q4_k*fixed,q4_k*fixed,q6_k*fixed k=4096 columns=32 groups=16 splits=4 series=[16 16 8] room=512"}: fewerTiles,
	{"decode/128", "argmax choose v=4 split/8 masked among next advance n"}:                                                    "each subgroup of the last workgroup merges rows twice",
	{"decode/128", "add_parts parts+add parts=12 columns=128 n"}:                                                               "it packs nothing, as in the last layer alone",
	{"prefill/512", "heads hd=256 w=32 neox/64 [slice norm rope half] [norm rope f16] [f16] side=2x4 n"}:                       "what the dispatch before wrote comes from a cache",
}

// timedSite is a row of sitesPath.
type timedSite struct {
	model, entry string
	depth, times int
	us           float64
	site, kernel string
}

func readSites(t *testing.T) (list []timedSite) {
	t.Helper()
	f, err := os.Open(sitesPath)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var s timedSite
		columns := strings.SplitN(lines.Text(), "\t", 7)
		if _, err := fmt.Sscan(strings.Join(columns[2:5], " "), &s.depth, &s.times, &s.us); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		s.model, s.entry, s.site, s.kernel = columns[0], columns[1], columns[5], columns[6]
		list = append(list, s)
	}
	return list
}

// users are the plans of manyUsers, which tests share.
var users sync.Map

// manyUsers is a plan of a few layers of a model for 128 sequences, as those that were timed. Of five layers of the 35B
// one that is not the last has attention.
func manyUsers(t *testing.T, model string) (*plans.Plan, *target.Target) {
	t.Helper()
	on, err := target.Lookup("sm_90-cuda")
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := users.Load(model); ok {
		return p.(*plans.Plan), on
	}
	s := published(t, model)
	s.Layers = 5
	rows, err := target.Tuned(on)
	if err != nil {
		t.Fatal(err)
	}
	r, err := codegen.Compile(t.Context(), codegen.Source{Model: headerOf(t, s)}, codegen.Options{Target: on,
		Choice: codegen.Choice{Tuned: tuning.NewTable(rows)}, Import: frontend.Options{Ctx: 2048, Slots: 128, KV: ir.F16}})
	if err != nil {
		t.Fatal(err)
	}
	users.Store(model, r.Plan)
	return r.Plan, on
}

// predictedSite is the prediction of a call site between timestamps, which keep dispatches apart that overlap in a
// step.
type predictedSite struct {
	cost    plans.Cost
	besides float64 // seconds that a step does not spend
}

func predictedSites(p *plans.Plan, on *target.Target) map[[3]string]predictedSite {
	sites := map[[3]string]predictedSite{}
	for _, e := range p.Entries {
		stages := map[int]bool{}
		for _, d := range e.Dispatches {
			s, kernel := predictedSite{d.Cost, on.Fit.Timestamp}, p.Modules[p.Pipelines[d.Pipeline].Module].Name
			family, _, _ := strings.Cut(kernel, " ")
			switch {
			case d.Order.Early == ir.LoadsFirst:
				s.besides = on.Fit.Overlap
			case stages[d.Stage] && !d.Cost.Measured:
				s.besides += on.Stage + on.Fit.Ramp + on.Fit.Paces[family].Once
			}
			stages[d.Stage] = true
			sites[[3]string{e.Name, plans.FoldSite(d.Site), kernel}] = s
		}
	}
	return sites
}

// TestSitesAreNearWhatWasMeasured holds predictions of sites, and of their sums, against what a device took for the
// same kernels; -v prints all. Sites that a tuning row predicts count in sums alone. With -update rows of kernels that
// no plan has any more are left out.
func TestSitesAreNearWhatWasMeasured(t *testing.T) {
	list := readSites(t)
	sites, on := map[string]map[[3]string]predictedSite{}, (*target.Target)(nil)
	for _, s := range list {
		if sites[s.model] == nil {
			var p *plans.Plan
			p, on = manyUsers(t, s.model)
			sites[s.model] = predictedSites(p, on)
		}
	}
	type step struct {
		model, entry string
		depth        int
	}
	sums := map[step][2]float64{} // measured, predicted
	var offs []float64
	gone := map[timedSite]bool{}
	for _, s := range list {
		p, ok := sites[s.model][[3]string{s.entry, s.site, s.kernel}]
		if !ok {
			gone[s] = true
			continue
		}
		have := 1e6 * (p.cost.At(s.depth).Predicted.Seconds() + p.besides)
		off := have/s.us - 1
		t.Logf("%s %s behind %d: %6.1f us, %6.1f measured, %+4.0f %%, %s: %s", s.model, s.entry, s.depth, have, s.us, 100*off, s.site, s.kernel)
		at := step{s.model, s.entry, s.depth}
		sum := sums[at]
		sums[at] = [2]float64{sum[0] + float64(s.times)*s.us, sum[1] + float64(s.times)*have}
		if p.cost.Measured {
			continue
		}
		offs = append(offs, math.Abs(off))
		why := sitesOff[[2]string{s.entry, s.kernel}]
		switch far := !(math.Abs(off) <= withinSite); {
		case far && why == "":
			t.Errorf("%s: %s behind %d: %s is predicted to take %.1f us, it took %.1f (%s)", s.model, s.entry, s.depth, s.site, have, s.us, s.kernel)
		case !far && why != "":
			t.Errorf("%s: %s: %s is near what was measured: it is no exception any more", s.model, s.entry, s.site)
		}
	}
	for at, sum := range sums {
		t.Logf("%s %s behind %d: sum %.0f us, %.0f measured", at.model, at.entry, at.depth, sum[1], sum[0])
		if off := sum[1]/sum[0] - 1; !(math.Abs(off) <= withinStep) {
			t.Errorf("%s: %s behind %d: predicted to take %.0f us, it took %.0f", at.model, at.entry, at.depth, sum[1], sum[0])
		}
	}
	slices.Sort(offs)
	t.Logf("%d sites without tuning rows: median off by %.1f %%, worst by %.1f %%", len(offs), 100*offs[len(offs)/2], 100*offs[len(offs)-1])
	dropGone(t, list, gone)
}

// dropGone writes the rows whose kernels there are with -update; without, a row whose kernel is gone is an error.
func dropGone(t *testing.T, list []timedSite, gone map[timedSite]bool) {
	t.Helper()
	if flag.Lookup("update").Value.String() != "true" {
		for s := range gone {
			t.Errorf("%s: %s has no %s with kernel %q: measure the new kernel, or drop the row with -update", s.model, s.entry, s.site, s.kernel)
		}
		return
	}
	var text strings.Builder
	for _, s := range list {
		if !gone[s] {
			fmt.Fprintf(&text, "%s\t%s\t%d\t%d\t%.1f\t%s\t%s\n", s.model, s.entry, s.depth, s.times, s.us, s.site, s.kernel)
		}
	}
	if err := os.WriteFile(sitesPath, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestPredictionsGrow: a step of more rows, or behind more positions, is never predicted to take less time.
func TestPredictionsGrow(t *testing.T) {
	for _, model := range []string{"qwen3-8b", "qwen35-35b-a3b"} {
		p, _ := manyUsers(t, model)
		rapid.Check(t, func(t *rapid.T) {
			a := &p.Entries[rapid.IntRange(0, len(p.Entries)-1).Draw(t, "entry")]
			b := &p.Entries[rapid.IntRange(0, len(p.Entries)-1).Draw(t, "other")]
			depth := rapid.IntRange(0, p.Header.Ctx).Draw(t, "depth")
			deeper := rapid.IntRange(depth, p.Header.Ctx).Draw(t, "deeper")
			if less, more := a.Predict(depth).Seconds(), a.Predict(deeper).Seconds(); less > more {
				t.Errorf("%s: %s: %g s behind %d, %g behind %d", model, a.Name, less, depth, more, deeper)
			}
			if a.Kind != b.Kind || a.Rows > b.Rows {
				return
			}
			if less, more := a.Predict(depth).Seconds(), b.Predict(depth).Seconds(); less > more {
				t.Errorf("%s behind %d: %s %g s, %s %g", model, depth, a.Name, less, b.Name, more)
			}
		})
	}
}
