package codegen

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/tuning"
)

func amd(t *testing.T) *target.Target {
	t.Helper()
	on, err := target.Lookup("gfx1201")
	if err != nil {
		t.Fatal(err)
	}
	return on
}

func TestPredict(t *testing.T) {
	on := amd(t)
	f := radv.Figures{VGPRs: 48, InverseThroughput: 1000, Latency: 5000}
	for _, c := range []struct {
		name  string
		f     radv.Figures
		grid  int
		cost  plans.Cost
		bound string
		us    float64 // without the dispatch
	}{
		{"reads", f, 1, plans.Cost{ReadBytes: 32e6, WriteBytes: 32e6}, "bytes", 100},
		{"one subgroup", f, 1, plans.Cost{}, "latency", 5000 / 2920.0},
		{"one round", f, 128 * 4 / 4, plans.Cost{}, "latency", 5000 / 2920.0},
		{"16 subgroups a SIMD", f, 128 * 16 / 4, plans.Cost{}, "issue", 16 * 1000 / 2920.0},
		{"few waves", radv.Figures{VGPRs: 256, InverseThroughput: 900, Latency: 5000}, 128 * 16 / 4, plans.Cost{}, "latency", 4 * 5000 / 2920.0},
	} {
		p := predict(on, &rating{specialized: &specialized{workgroup: 128}, Result: radv.Result{Figures: c.f}, mean: 1, most: 1}, on.Wave, [3]int{c.grid, 1, 1}, c.cost)
		if got := 1e6 * (p.seconds - on.Stage); p.bound != c.bound || got < 0.999*c.us || got > 1.001*c.us {
			t.Errorf("%s: %.2f us of %s, want %.2f of %s", c.name, got, p.bound, c.us, c.bound)
		}
	}
}

func TestBest(t *testing.T) {
	make := func(name string, cycles int, change func(*rated)) *rated {
		r := &rated{
			Candidate: &kernels.Candidate{Order: name, Wave: 32, Grid: [3]int{4096, 1, 1}},
			rating: &rating{
				specialized: &specialized{workgroup: 128},
				Result:      radv.Result{Figures: radv.Figures{VGPRs: 48, InverseThroughput: cycles, Latency: 100}, Known: true},
				mean:        1, most: 1,
			},
		}
		if change != nil {
			change(r)
		}
		return r
	}
	spills := func(r *rated) { r.VGPRSpills, r.Scratch = 3, 64 }
	refused := func(r *rated) { r.Refused = "no such feature" }
	for _, c := range []struct {
		name string
		list []*rated
		want string // empty: no row
		why  []string
	}{
		{"faster", []*rated{make("a", 1000, nil), make("b", 800, nil)}, "b/", []string{"of 2: 48 VGPRs, 16 waves, issue; next "}},
		{"within the margin", []*rated{make("a", 1000, nil), make("b", 980, nil)}, "a/", []string{"of 2"}},
		{"only one", []*rated{make("a", 1000, nil)}, "a/", []string{"of 1: 48 VGPRs"}},
		{"spills", []*rated{make("a", 100, spills), make("b", 1000, nil)}, "b/", []string{"1 refused"}},
		{"refused", []*rated{make("a", 100, refused), make("b", 1000, spills), make("c", 1000, nil)}, "c/", []string{"2 refused"}},
		{"not asked", []*rated{make("a", 100, nil), make("b", 10, func(r *rated) { r.Known = false })}, "", nil},
		{"nothing left", []*rated{make("a", 100, spills), make("b", 1000, refused)}, "", nil},
	} {
		s := &site{key: "decode/1: linear", rated: c.list}
		rows := tuning.Decide(s.predict(amd(t), plans.Cost{}), margin)
		if c.want == "" {
			if len(rows) > 0 {
				t.Errorf("%s: %v, want nothing", c.name, rows)
			}
			continue
		}
		if len(rows) != 1 || rows[0].Best != c.want {
			t.Errorf("%s: %v, want %s", c.name, rows, c.want)
			continue
		}
		for _, part := range c.why {
			if why := rows[0].Why(); !strings.Contains(why, part) {
				t.Errorf("%s: %q does not have %q", c.name, why, part)
			}
		}
	}
}
