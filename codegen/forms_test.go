package codegen_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/audit"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// TestForms compiles the attention's output with each form that a candidate has where dispatches
// overlap: the code asks for what it should, and the checker takes the plan.
func TestForms(t *testing.T) {
	shape := published(t, "qwen3-8b")
	shape.Layers = 2
	f := headerOf(t, shape)
	compile := func(name string, rows ...tuning.Row) *plans.Plan {
		t.Helper()
		on, err := target.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := codegen.Import(f, frontend.Options{KV: ir.F16})
		if err != nil {
			t.Fatal(err)
		}
		r, err := codegen.Compile(t.Context(), codegen.Source{Model: f, Program: p}, codegen.Options{Target: on, Choice: codegen.Choice{Tuned: tuning.NewTable(rows)}})
		if err != nil {
			t.Fatal(err)
		}
		return r.Plan
	}
	// attn_output returns the dispatch of the first layer in an entry, and its site.
	output := func(p *plans.Plan, entry string) (*plans.Dispatch, string) {
		for i, e := range p.Entries {
			for j := range e.Dispatches {
				if e.Name == entry && e.Dispatches[j].Site == "blk.0.attn_output" {
					return &e.Dispatches[j], tuning.SiteOf(p.Program.Funcs[i], p.Program.Funcs[i].Groups[j])
				}
			}
		}
		t.Fatalf("no blk.0.attn_output in %s", entry)
		return nil, ""
	}
	plain := compile("sm_90-cuda")
	own, site := output(plain, "decode/1")
	_, wide := output(plain, "decode/2")
	const best = "fixed w32/4x32, 2 of 32 rows, 4 teams"
	row := func(site, best string) tuning.Row {
		return tuning.Row{Site: site, Device: "card", Driver: "1", Best: best, Micros: 5, Of: 2, When: time.Now()}
	}
	next := []string{"blk.0.ffn_gate.weight", "blk.0.ffn_up.weight"}
	for _, c := range []struct {
		form, want string
		count      int
		before     int      // prefetches before the kernel waits
		second     int      // prefetches of second bytes
		args       []string // that are prefetched
		zir        string
	}{
		{"", ".minnctapersm", 0, 0, 0, nil, "] overlap=loads"},
		{", room for 1024", ".minnctapersm 2\n", 1, 0, 0, nil, "] room=1024 overlap=loads"},
		{", 4 MiB ahead", "prefetch.global.L2", 2, 2, 0, next, "] ahead=4194304 overlap=loads"},
		{", 4 MiB after", "prefetch.global.L2", 2, 0, 0, next, "] after=4194304 overlap=loads"},
		{", 4 MiB ahead, 4 MiB after", "prefetch.global.L2", 4, 2, 2, next, "] ahead=4194304 after=4194304 overlap=loads"},
	} {
		p := compile("sm_90-cuda", row(site, best+c.form), row(wide, best+c.form))
		d, _ := output(p, "decode/1")
		if !strings.HasPrefix(d.Why, "measured 5.00 us on card") {
			t.Fatalf("%q: %s", c.form, d.Why)
		}
		text := string(p.Modules[p.Pipelines[d.Pipeline].Module].Bytes)
		if got := strings.Count(text, c.want); got != c.count {
			t.Errorf("%q: %d times %q\n%s", c.form, got, c.want, text)
		}
		before, _, _ := strings.Cut(text, "griddepcontrol.wait")
		if got := strings.Count(before, "prefetch."); got != c.before {
			t.Errorf("%q: %d prefetches before the wait, want %d", c.form, got, c.before)
		}
		// Behind the weights is behind the last load of any, and before the subgroups' sums are added up. The second
		// bytes begin where the first ones end, behind 124 lines of a unit's part.
		weights := strings.LastIndex(text, "L1::evict_first")
		if last := strings.LastIndex(text, "prefetch."); c.count > c.before && c.want == "prefetch.global.L2" && (last < weights || strings.LastIndex(text, "bar.sync") < last) {
			t.Errorf("%q: prefetches at %d, the last weights are loaded at %d", c.form, last, weights)
		}
		if got := len(regexp.MustCompile(`(?m)add\.s64 (%d\d+), %d\d+, 15872;\n\s*prefetch\.global\.L2 \[%d\d+\];`).FindAllString(text, -1)); got != c.second {
			t.Errorf("%q: %d prefetches go on, want %d", c.form, got, c.second)
		}
		var ahead []string
		for _, a := range d.Args[len(own.Args):] {
			ahead = append(ahead, a.Region)
		}
		if !slices.Equal(ahead, c.args) {
			t.Errorf("%q: asks for %q, want %q", c.form, ahead, c.args)
		}
		if problems := audit.Check(p); len(problems) > 0 {
			t.Errorf("%q: %v", c.form, problems)
		}
		if !strings.Contains(ir.Print(p.Program), "call \""+best+"\" ") || !strings.Contains(ir.Print(p.Program), c.zir) {
			t.Errorf("%q: the program does not show the form by itself, as %q", c.form, c.zir)
		}
		// A projection of several rows leaves no room, and prefetches nothing behind its weights.
		if d, _ := output(p, "decode/2"); strings.Contains(d.Why, "is none of them") != (strings.Contains(c.form, "room") || strings.Contains(c.form, "after")) {
			t.Errorf("%q: a step of two rows: %s", c.form, d.Why)
		}
	}
	// Nothing comes behind the choice of the token: the form is the plain kernel there.
	last := plain.Entries[0].Dispatches[len(plain.Entries[0].Dispatches)-1]
	program := plain.Program.Funcs[0]
	p := compile("sm_90-cuda", row(tuning.SiteOf(program, program.Groups[len(program.Groups)-1]), "argmax w32/4 MiB ahead"))
	d := p.Entries[0].Dispatches[len(plain.Entries[0].Dispatches)-1]
	if !strings.HasPrefix(d.Why, "measured") || p.Modules[p.Pipelines[d.Pipeline].Module].Name != plain.Modules[plain.Pipelines[last.Pipeline].Module].Name {
		t.Errorf("%s: %s, %s", d.Site, d.Why, p.Modules[p.Pipelines[d.Pipeline].Module].Name)
	}
	vulkan := compile("sm_90", row(site, best+", 4 MiB ahead"))
	if d, _ := output(vulkan, "decode/1"); !strings.Contains(d.Why, "is none of them") {
		t.Errorf("Vulkan: %s", d.Why)
	}
}
