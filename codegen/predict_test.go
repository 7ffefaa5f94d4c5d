package codegen

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/strategy"
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

func TestBest(t *testing.T) {
	make := func(name string, cycles int, change func(*rated)) *rated {
		r := &rated{
			Candidate: &kernels.Candidate{Order: name, Wave: 32, Grid: [3]int{4096, 1, 1}},
			rating: &rating{
				specialized: &specialized{workgroup: 128},
				Result:      radv.Result{Figures: radv.Figures{VGPRs: 48, InverseThroughput: cycles, Latency: 100}, Known: true},
				Weighed:     Weighed{Mean: 1, Most: 1},
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
		read int64  // bytes
		want string // empty: no row
		why  []string
	}{
		{"faster", []*rated{make("a", 1000, nil), make("b", 800, nil)}, 0, "b/", []string{"of 2: 48 VGPRs, 16 waves, issue; next "}},
		{"within the margin", []*rated{make("a", 1000, nil), make("b", 980, nil)}, 0, "a/", []string{"of 2"}},
		{"bound by bytes, with fewer cycles", []*rated{make("a", 1000, nil), make("b", 700, nil), make("c", 600, nil)}, 1e9, "b/", []string{"of 3: 48 VGPRs, 16 waves, bytes; next "}},
		{"only one", []*rated{make("a", 1000, nil)}, 0, "a/", []string{"of 1: 48 VGPRs"}},
		{"spills", []*rated{make("a", 100, spills), make("b", 1000, nil)}, 0, "b/", []string{"1 refused"}},
		{"refused", []*rated{make("a", 100, refused), make("b", 1000, spills), make("c", 1000, nil)}, 0, "c/", []string{"2 refused"}},
		{"not asked", []*rated{make("a", 100, nil), make("b", 10, func(r *rated) { r.Known = false })}, 0, "", nil},
		{"nothing left", []*rated{make("a", 100, spills), make("b", 1000, refused)}, 0, "", nil},
	} {
		s := &site{key: "decode/1: linear", rated: c.list}
		rows := tuning.Decide(s.predict(amd(t), plans.Cost{ReadBytes: c.read}), strategy.Margin)
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
