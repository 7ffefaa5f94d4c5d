package codegen_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans/audit"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// load imports a model.
func load(t *testing.T, model string) *ir.Program {
	t.Helper()
	f, err := gguf.OpenHeader(filepath.Join("..", "testdata", "models", model+"-q4_k_m.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := codegen.Import(f, frontend.Options{KV: ir.F16})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// program compiles a model as far as a stage.
func program(t *testing.T, model string, on *target.Target, c codegen.Choice, stage ir.Stage) *ir.Program {
	t.Helper()
	p, _, err := codegen.Lower(t.Context(), codegen.Source{Program: load(t, model)}, codegen.Options{Target: on, Choice: c}, stage)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// offers returns the candidates' names of each site, as a plan of candidates has them.
func offers(t *testing.T, on *target.Target) map[string][]string {
	t.Helper()
	names := map[string][]string{}
	p := program(t, "gopher-moe", on, codegen.Choice{Copies: codegen.AllEntries}, ir.Specialize)
	for _, f := range p.Funcs {
		for _, g := range f.Groups {
			site := tuning.SiteOf(f, g)
			if !slices.Contains(names[site], g.Call.Candidate) {
				names[site] = append(names[site], g.Call.Candidate)
			}
		}
	}
	return names
}

// TestCopiesOfOneEntry makes copies of one entry only, and of none that is not there.
func TestCopiesOfOneEntry(t *testing.T) {
	on, err := target.Lookup("sm_90-cuda")
	if err != nil {
		t.Fatal(err)
	}
	copied := map[string]int{}
	for _, f := range program(t, "gopher-moe", on, codegen.Choice{Copies: "decode/2"}, ir.Specialize).Funcs {
		if entry, is := tuning.Variant(f.Name); is {
			copied[entry]++
		}
	}
	if len(copied) != 1 || copied["decode/2"] < 2 {
		t.Errorf("copies are of %v", copied)
	}
	src := codegen.Source{Program: load(t, "gopher-moe")}
	if _, _, err := codegen.Lower(t.Context(), src, codegen.Options{Target: on, Choice: codegen.Choice{Copies: "decode/9"}}, ir.Specialize); err == nil || !strings.Contains(err.Error(), `no entry "decode/9"`) {
		t.Errorf("no error of an entry that is not there: %v", err)
	}
}

// TestTunedChoice compiles with a row for each site that names its last candidate.
func TestTunedChoice(t *testing.T) {
	on, err := target.Lookup("sm_90")
	if err != nil {
		t.Fatal(err)
	}
	names := offers(t, on)
	var rows []tuning.Row
	for site, list := range names {
		rows = append(rows, tuning.Row{Site: site, Device: "card", Driver: "1", Best: list[len(list)-1], Micros: 12.1,
			Next: list[0], NextMicros: 13.4, Of: len(list), When: time.Now()})
	}
	p := program(t, "gopher-moe", on, codegen.Choice{Tuned: tuning.NewTable(rows)}, ir.Place)
	guess := program(t, "gopher-moe", on, codegen.Choice{}, ir.Place)
	changed := 0
	for i, f := range p.Funcs {
		for j, g := range f.Groups {
			if !strings.HasPrefix(g.Call.Why, "measured 12.10 us on card, of ") || !strings.Contains(g.Call.Why, "; next 13.40 us, ") {
				t.Errorf("%s %s: %s", f.Name, g.Name, g.Call.Why)
			}
			other := guess.Funcs[i].Groups[j].Call
			differs := g.Call.Candidate != other.Candidate
			if several := len(names[tuning.SiteOf(f, g)]) > 1; differs != several {
				t.Errorf("%s %s: of %d candidates, the same as the best guess: %v", f.Name, g.Name, len(names[tuning.SiteOf(f, g)]), !differs)
			}
			if differs {
				changed++
			}
		}
	}
	if changed == 0 {
		t.Error("no site has another kernel")
	}
}

// TestTunedOrders: rows that name candidates of different orders for the widths of a decode
// entry do not make it add in different orders, and rows that name nobody change nothing.
func TestTunedOrders(t *testing.T) {
	on, err := target.Lookup("sm_90")
	if err != nil {
		t.Fatal(err)
	}
	names := offers(t, on)
	var rows []tuning.Row
	for site, list := range names {
		r := tuning.Row{Site: site, Device: "card", Driver: "1", Best: list[0], Micros: 1, Of: 1, When: time.Now()}
		if strings.HasPrefix(site, "decode/8: ") {
			r.Best = list[len(list)-1]
		}
		if strings.HasPrefix(site, "decode/4: ") {
			r.Best = "gone w32/"
		}
		rows = append(rows, r)
	}
	p := program(t, "gopher-moe", on, codegen.Choice{Tuned: tuning.NewTable(rows)}, ir.Place)
	guess := program(t, "gopher-moe", on, codegen.Choice{}, ir.Place)
	for i, f := range p.Funcs {
		for j, g := range f.Groups {
			other := guess.Funcs[i].Groups[j].Call
			switch f.Name {
			case "decode/4":
				if g.Call.Candidate != other.Candidate || !strings.Contains(g.Call.Why, "gone w32/, the best on card, is none of them") {
					t.Errorf("%s: %s: %s", g.Name, g.Call.Candidate, g.Call.Why)
				}
			case "decode/8":
				if tuning.Order(g.Call.Candidate) != tuning.Order(other.Candidate) {
					t.Errorf("%s: %s, narrower entries have %s", g.Name, g.Call.Candidate, other.Candidate)
				}
			}
		}
	}
}

// TestPlanOfCandidates holds the plan of all candidates against the checker's rules, of -short those of one entry.
func TestPlanOfCandidates(t *testing.T) {
	on, err := target.Lookup("sm_90")
	if err != nil {
		t.Fatal(err)
	}
	entries := codegen.AllEntries
	if testing.Short() {
		entries = "prefill/128"
	}
	for _, problem := range audit.Check(compileBy(t, "gopher-moe", on, codegen.Choice{Copies: entries})) {
		t.Error(problem)
	}
}

// reasons name how many were compared: fewer where wider entries keep the order of sums of the narrowest.
var reasons = regexp.MustCompile(` why=".*"`)

// TestTuneOnAMD tunes without hardware: what is compiled with the rows and no compiler is what is compiled with the
// compiler, but for few sites where that is not asked about what is little faster (see TestFewQuestions).
func TestTuneOnAMD(t *testing.T) {
	on, o := openAMD(t, "gfx1201")
	rows, err := codegen.Tune(t.Context(), codegen.Source{Program: load(t, "gopher-moe")}, codegen.Options{Target: on, Choice: codegen.Choice{Compiler: o}})
	if err != nil {
		t.Fatal(err)
	}
	waves := map[string]int{}
	for _, r := range rows {
		for _, c := range []string{r.Best, r.Next} {
			if _, wave, ok := strings.Cut(c, " w"); ok {
				waves[wave[:2]]++
			}
		}
	}
	if waves["32"] == 0 || waves["64"] == 0 {
		t.Errorf("sizes of subgroups of the best and the second: %v: they are not compared", waves)
	}
	var programs []string
	for _, c := range []codegen.Choice{{Compiler: o}, {Tuned: tuning.NewTable(rows)}} {
		p := program(t, "gopher-moe", on, c, ir.Place)
		programs = append(programs, reasons.ReplaceAllString(ir.Print(p), ""))
		for _, f := range p.Funcs {
			for _, g := range f.Groups {
				if !strings.HasPrefix(g.Call.Why, "predicted ") || !strings.Contains(g.Call.Why, "VGPRs") {
					t.Errorf("%s %s: %s", f.Name, g.Name, g.Call.Why)
				}
			}
		}
	}
	asked, tuned := strings.Split(programs[0], "\n"), strings.Split(programs[1], "\n")
	differ := 0
	for i := range min(len(asked), len(tuned)) {
		if asked[i] != tuned[i] {
			differ++
		}
	}
	if calls := strings.Count(programs[0], " call "); len(asked) != len(tuned) || differ > calls/20 {
		t.Errorf("the compiler itself and what it said give two programs: %d of %d calls differ", differ, calls)
	}
	known := radv.Known{}
	for _, r := range rows {
		if err := known.Add(r.Compiled, r.Driver); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range known {
		if k.Scratch > 0 || k.VGPRSpills > 0 {
			t.Errorf("a chosen kernel spills: %+v", k.Figures)
		}
	}
}
