package plans

import (
	"strings"
	"testing"
)

// TestRates holds that a plan for processors has ranges, by cores, where others have a number, and that its times are
// said to be the reference's.
func TestRates(t *testing.T) {
	p := testPlan(t, false)
	e := &p.Entries[0]
	p.Require.Backend, p.Require.CPU = CPU, &CPURequirements{Features: []string{"avx2", "avx512vnni"}}
	e.Dispatches = e.Dispatches[:2]
	e.Dispatches[0].Cost = Cost{ReadBytes: cached, Predicted: Times{Bytes: 1, Stage: 1e-3}} // 40 GB
	e.Dispatches[1].Cost = Cost{Predicted: Times{Bytes: 0.001, Operations: 1, Stage: 1e-3}} // 200 G operations
	for cores, want := range map[int]Range{1: {40./30 + 200./300 + 2e-3, 40./4 + 200./100 + 2e-3}, 16: {40./480 + 200./4800 + 2e-3, 40./64 + 200./1600 + 2e-3}} {
		have := p.Seconds(e, 0, cores)
		for i := range have {
			if d := have[i] - want[i]; d > 1e-6 || d < -1e-6 {
				t.Errorf("%d cores: %v s, want %v", cores, have, want)
			}
		}
		if r := p.Rate(e, 0, cores); r[0] != 1/have[1] || r[1] != 1/have[0] {
			t.Errorf("%d cores: %v a second in %v s", cores, r, have)
		}
	}
	p.Require.CPU.Features = append(p.Require.CPU.Features, "amx-tile")
	tiles := p.Seconds(e, 0, 1)
	e.Dispatches[0].Cost.ReadBytes--
	small := p.Seconds(e, 0, 1)
	if tiles[0] >= 40./30+200./300 || small[0] >= tiles[0] || small[1] != tiles[1] {
		t.Errorf("tiles %v, in caches %v", tiles, small)
	}
	var said strings.Builder
	for _, table := range append(Page(p, 0), Estimate(p, 0, 64, 64, 2)...) {
		if err := table.WriteText(&said); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"us of the reference", "of a reference, two cores that read 40 GB and compute 200 G operations a second", " to "} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("nothing says %q", want)
		}
	}
	e.Dispatches = nil
	if r := p.Rate(e, 0, 2); r != (Range{}) {
		t.Errorf("nothing is predicted: %v", r)
	}
}

// TestUntunedRates holds that a plan for a GPU has a range where much of a step is of sites that nobody tuned, and a
// number where little is.
func TestUntunedRates(t *testing.T) {
	p := testPlan(t, false)
	e := &p.Entries[0]
	e.Dispatches = e.Dispatches[:2]
	for guessed, want := range map[float32]Range{0: {8, 8}, 3: {8, 8}, 4: {8 - 0.2*4, 8 + 0.35*4}, 8: {8 * 0.8, 8 * 1.35}} {
		e.Dispatches[0].Cost = Cost{Predicted: Times{Stage: guessed}}
		e.Dispatches[1].Cost = Cost{Predicted: Times{Stage: 8 - guessed}, Measured: true}
		have := p.Seconds(e, 0, 0)
		for i := range have {
			if d := have[i] - want[i]; d > 1e-6 || d < -1e-6 {
				t.Errorf("%v of 8 s are guessed: %v, want %v", guessed, have, want)
			}
		}
		if r := p.Rate(e, 0, 0); r[0] != 1/have[1] || r[1] != 1/have[0] {
			t.Errorf("%v a second in %v s", r, have)
		}
	}
}
