package codegen

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/rank"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
)

// TestRank compares, over the candidates of each call site, the order of the predicted
// times with that of the cycles for which AMD's compiler says that they keep the SIMDs
// busy: as it counts them, every loop as eight iterations, and corrected by Weigh. The
// predictions know the latter, and bytes and latency besides. With -v it prints the
// figures; those of docs/lab/tuning.md are of all entries of the models that -args names. Without names
// it asks about a model of experts and one entry of each kind.
func TestRank(t *testing.T) {
	if testing.Short() {
		t.Skip("TestTuneOnAMD asks the same compiler, TestPredictAMD of codegen/strategy predicts")
	}
	models, entries := flag.Args(), []string(nil)
	if len(models) == 0 {
		models, entries = []string{filepath.Join("..", "testdata", "models", "gopher-moe-q4_k_m.gguf")}, []string{"decode/1", "decode/8", "prefill/128"}
	}
	for _, model := range models {
		for _, on := range []string{"gfx1201", "gfx1100"} {
			var raw, corrected float64
			ranks := ratedSites(t, model, on, entries)
			if len(ranks) == 0 {
				t.Fatalf("%s %s: no site has candidates that differ", model, on)
			}
			for _, s := range ranks {
				raw += rank.Correlation(s.predicted, s.busy) / float64(len(ranks))
				corrected += rank.Correlation(s.predicted, s.corrected) / float64(len(ranks))
			}
			t.Logf("%s %s: %d sites, rho %.2f with the cycles, %.2f with the corrected cycles", filepath.Base(model), on, len(ranks), raw, corrected)
			if corrected <= 0 {
				t.Errorf("%s %s: rho %.2f: the order of the predictions is no better than chance", model, on, corrected)
			}
		}
	}
}

// siteRank is a call site's candidates.
type siteRank struct{ predicted, busy, corrected []float64 }

// ratedSites returns the call sites of a model for whose candidates times are predicted that differ by more than the
// margin; one of those that differ by the layer only. entries, if there are any, are those to look at.
func ratedSites(t *testing.T, path, name string, entries []string) []siteRank {
	t.Helper()
	on, err := target.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	o, err := radv.Open(t.Context(), on.AMD.Family, on.AMD.StandIn, nil)
	if err != nil {
		t.Fatalf("RADV of mesa-vulkan-drivers 25 is needed: %v", err)
	}
	defer o.Close()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var ranks []siteRank
	_, _, err = lower(t.Context(), Source{Model: f}, Options{Target: on, Import: frontend.Options{KV: ir.F16}}, ir.Specialize, func(p *ir.Program) (chosen, error) {
		p.Funcs = slices.DeleteFunc(p.Funcs, func(f *ir.Func) bool { return entries != nil && !slices.Contains(entries, f.Name) })
		sites, err := sitesOf(p, on)
		if err != nil {
			return chosen{}, err
		}
		q := newInquiry(on, o)
		q.all = true
		if err := q.ask(t.Context(), sites, make([]plans.Cost, len(sites))); err != nil {
			return chosen{}, err
		}
		seen := map[string]bool{}
		for _, s := range sites {
			work, err := cost(p, on, s.f, s.g, s.outputs)
			if err != nil {
				return chosen{}, err
			}
			var r siteRank
			key := s.f.Name
			for _, c := range s.rated {
				key += fmt.Sprintln(c.Kernel, c.Consts, c.Grid, work)
				if c.refusal() != "" {
					continue
				}
				grid := c.Grid[0] * c.Grid[1] * c.Grid[2] * ((c.workgroup + c.Wave - 1) / c.Wave)
				r.predicted = append(r.predicted, strategy.PredictAMD(on, c.dispatched(c.Candidate), work).Seconds)
				r.busy = append(r.busy, float64(grid)*float64(c.InverseThroughput))
				r.corrected = append(r.corrected, float64(grid)*float64(c.InverseThroughput)*c.Mean)
			}
			if !seen[key] && len(r.busy) > 1 && slices.Max(r.predicted) > (1+strategy.Margin)*slices.Min(r.predicted) {
				ranks = append(ranks, r)
			}
			seen[key] = true
			s.take(&s.candidates[0], "")
		}
		return chosen{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ranks
}
