package report_test

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/modules"
	"github.com/zincc-dev/zincc/plans/report"
)

var update = flag.Bool("update", false, "write the goldens and the screenshots of the documents")

// compiledOnce are the plans that compiled has made, encoded: tests change theirs.
var compiledOnce = map[[2]string]compiledPlan{}

type compiledPlan struct {
	data    []byte
	options report.Options
}

// compiled is a plan of a model in testdata with what its report shows.
func compiled(t *testing.T, model, name string) (*plans.Plan, report.Options) {
	t.Helper()
	key := [2]string{model, name}
	c, ok := compiledOnce[key]
	if !ok {
		plan, o := compile(t, model, name)
		var b bytes.Buffer
		if err := plans.Write(&b, plan); err != nil {
			t.Fatal(err)
		}
		c = compiledPlan{b.Bytes(), o}
		compiledOnce[key] = c
	}
	plan, err := plans.Decode(c.data)
	if err != nil {
		t.Fatal(err)
	}
	return plan, c.options
}

func compile(t *testing.T, model, name string) (*plans.Plan, report.Options) {
	t.Helper()
	f, err := gguf.Open(filepath.Join("..", "..", "testdata", "models", model+"-q4_k_m.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	on, err := target.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := codegen.Import(f, frontend.Options{KV: ir.F16})
	if err != nil {
		t.Fatal(err)
	}
	p.Path = model + "-q4_k_m.gguf"
	c, err := codegen.Compile(t.Context(), codegen.Source{Model: f, Program: p}, codegen.Options{Target: on})
	if err != nil {
		t.Fatal(err)
	}
	plan := c.Plan
	trace, same, err := codegen.Trace(t.Context(), plan, f, on, codegen.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	if !same {
		t.Errorf("%s for %s: compiled again, it is another program", model, name)
	}
	return plan, report.Options{Path: model + ".bin", Trace: trace, Candidates: codegen.Offered(plan.Program, on),
		Figures: report.Figures{Bandwidth: on.Bandwidth, FLOPs: on.FLOPs, MatrixFLOPs: on.MatrixFLOPs}}
}

func write(t *testing.T, r *report.Report, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// open loads the page and holds that it was drawn and is no wider than the window.
func open(t *testing.T, c *chromium, path string, width int, scheme string) {
	t.Helper()
	c.size(width, 1000, scheme)
	c.open(path)
	if c.text(`document.documentElement.dataset.drawn || "no"`) != "yes" {
		t.Fatalf("%d pixels, %s: the page was not drawn: %s", width, scheme, c.errors)
	}
	if n := c.number(`document.documentElement.scrollWidth`); int(n) > width {
		t.Errorf("%d pixels: the page is %v wide", width, n)
	}
}

// TestMeasured shows a profile beside the predictions, and says what it has none of.
func TestMeasured(t *testing.T) {
	plan, o := compiled(t, "gopher-moe", "gfx1201")
	profile := &plans.Profile{Device: "a card", Entry: "decode/1", Rows: 1, Depth: 100}
	d := plan.Entries[0].Dispatches[0]
	profile.Sites = []plans.ProfileSite{{Site: plans.FoldSite(d.Site), Kernel: plan.Modules[plan.Pipelines[d.Pipeline].Module].Name, Dispatches: 2, Time: 2.5}}
	o.Profiles = []*plans.Profile{profile, {Device: "a card", Entry: "decode/2", Rows: 2, Sites: []plans.ProfileSite{{Site: "embed", Kernel: "none", Dispatches: 1, Time: 1}}}}
	r, err := report.New(plan, o)
	path := write(t, r, err)
	c := startChromium(t)
	open(t, c, path, 480, "light")
	if n := c.number(`document.querySelectorAll(".timeline .took").length`); n != 0 {
		t.Errorf("%v measured dispatches at a depth that was not measured", n)
	}
	c.number(`[...document.querySelectorAll(".choice button")].find(b => b.textContent === "100").click(), 0`)
	if n := c.number(`document.querySelectorAll(".timeline .took").length`); n != 1 {
		t.Errorf("%v measured dispatches, want 1", n)
	}
	if have := c.text(`document.querySelector(".sums").textContent`); !strings.Contains(have, "1.25 µsmeasured on a card") {
		t.Errorf("the sums say %q", have)
	}
	if n := c.number(`document.querySelectorAll(".timeline .upright").length`); n == 0 {
		t.Error("480 pixels: no dispatch has its name")
	}
	if have := c.text(`document.querySelector("#plan").textContent`); !strings.Contains(have, "has 1 of 27 dispatches") || !strings.Contains(have, "decode/2 on a card is of another plan") {
		t.Errorf("notes: %.300q", have)
	}
	noErrors(t, c)
}

// TestCodeIsNamed holds that code which is no SPIR-V is not called so, and that its constants have values.
func TestCodeIsNamed(t *testing.T) {
	plan, o := compiled(t, "gopher", "sm_90-cuda")
	r, err := report.New(plan, o)
	path := write(t, r, err)
	c := startChromium(t)
	open(t, c, path, 1280, "light")
	c.number(`(d => { d.open = true; d.dispatchEvent(new Event("toggle")); return 0 })(document.querySelector("details.kernel"))`)
	if have := c.text(`document.querySelector("details.kernel .tabs").textContent`); have != "PTXThe module, with the values of its constants." {
		t.Errorf("the code is called %q", have)
	}
	if have := c.text(`document.querySelector("details.kernel pre").textContent`); !strings.Contains(have, ".visible .entry") {
		t.Errorf("the code is %.80q", have)
	}
	noErrors(t, c)
}

func noErrors(t *testing.T, c *chromium) {
	t.Helper()
	for _, e := range c.errors {
		t.Errorf("console: %s", e)
	}
}

func TestPage(t *testing.T) {
	plan, o := compiled(t, "gopher-moe", "gfx1201")
	r, err := report.New(plan, o)
	path := write(t, r, err)
	c := startChromium(t)
	background := map[string]string{}
	for scheme, width := range map[string]int{"light": 390, "dark": 1280} {
		open(t, c, path, width, scheme)
		background[scheme] = c.text(`getComputedStyle(document.body).backgroundColor`)
	}
	if background["light"] == background["dark"] {
		t.Errorf("dark and light are both %s", background["dark"])
	}
	open(t, c, path, 1280, "light")

	// Pointing at an op lights it in every column that has it; leaving puts it out.
	if n := c.number(`document.querySelectorAll(".column").length`); int(n) != len(r.Plans[0].Entries[0].Columns) {
		t.Errorf("%v columns, want %d", n, len(r.Plans[0].Entries[0].Columns))
	}
	const litColumns = `[...document.querySelectorAll(".column")].filter(c => c.querySelector(".op.lit")).length`
	c.point(`.column .op`, false)
	if n := c.number(litColumns); int(n) != len(r.Plans[0].Entries[0].Columns) {
		t.Errorf("the embedding is lit in %v columns", n)
	}
	if n := c.number(`document.querySelectorAll(".timeline .dispatch.lit").length`); n != 1 {
		t.Errorf("the embedding is lit as %v dispatches", n)
	}
	c.point(`h1`, false)
	if n := c.number(litColumns); n != 0 {
		t.Errorf("still lit in %v columns", n)
	}
	// A norm that FuseNorm copies into its consumer is found there.
	c.point(`.column details:nth-of-type(2) .op`, false)
	if n := c.number(litColumns); int(n) != len(r.Plans[0].Entries[0].Columns) {
		t.Errorf("a norm is lit in %v columns", n)
	}
	// A click keeps it lit, Escape does not.
	c.point(`.column .op`, true)
	c.point(`h1`, false)
	if n := c.number(litColumns); n == 0 {
		t.Error("a click does not keep an op lit")
	}
	c.key("Escape")
	if n := c.number(litColumns); n != 0 {
		t.Errorf("Escape leaves %v columns lit", n)
	}

	// The keyboard walks the dispatches and pins one.
	c.number(`document.querySelector(".timeline .dispatch").focus(), 0`)
	c.key("ArrowRight")
	if n := c.number(`[...document.querySelectorAll(".timeline .dispatch")].indexOf(document.activeElement)`); n != 1 {
		t.Errorf("the right arrow leads to dispatch %v", n)
	}
	c.key("Enter")
	if have := c.text(`document.querySelector(".panel").textContent`); !strings.Contains(have, plan.Entries[0].Dispatches[1].Site) {
		t.Errorf("the panel says %q", have)
	}
	if n := c.number(litColumns); n < 2 {
		t.Errorf("the dispatch's ops are lit in %v columns", n)
	}
	c.key("Escape")

	// A pinned dispatch keeps the panel, which lists its candidates.
	c.point(`.timeline .dispatch[aria-label^="blk.0.ffn_gate"]`, true)
	c.point(`.panel summary`, true)
	if n := c.number(`document.querySelectorAll(".panel .offers[open] tbody tr").length`); n < 2 {
		t.Errorf("the panel lists %v candidates", n)
	}
	if n := c.number(`document.querySelectorAll(".panel .offers .taken").length`); n != 1 {
		t.Errorf("%v candidates were taken", n)
	}
	c.key("Escape")

	// In a column it walks the ops.
	c.number(`document.querySelector(".column .op").focus(), 0`)
	c.key("ArrowDown")
	if n := c.number(`[...document.querySelectorAll(".column .op")].indexOf(document.activeElement)`); n != 1 {
		t.Errorf("the down arrow leads to op %v", n)
	}

	// Columns and parts fold.
	c.point(`.column-title`, true)
	if c.text(`document.querySelector(".column").className`) != "column folded" {
		t.Error("a column does not fold")
	}
	open(t, c, path, 1280, "light")
	c.point(`.column details.part:nth-of-type(2) > summary`, true)
	c.call("Runtime.evaluate", map[string]any{"expression": "new Promise(r => setTimeout(r, 100))", "awaitPromise": true}, nil)
	if n := c.number(`[...document.querySelectorAll("details.part")].filter(d => d.dataset.part === "layer 0" && d.open).length`); n != 0 {
		t.Errorf("a layer stays open in %v columns", n)
	}

	checkEntries(t, c, plan)
	checkListings(t, c, plan)
	noErrors(t, c)
}

// checkEntries holds the page's figures of every entry and depth against Go's, and
// switches to another entry.
func checkEntries(t *testing.T, c *chromium, plan *plans.Plan) {
	t.Helper()
	for _, depth := range []int{0, 256} {
		var have []struct {
			Time  float64
			Work  string
			Sites []string
		}
		c.eval(&have, `data.Plans[0].Entries.map(e => run(data.Plans[0], e, Math.min(%d, data.Plans[0].Ctx - e.Rows))).map(r =>
			({ Time: r.time, Work: [r.sum.read, r.sum.write, r.sum.flops].join(), Sites: r.list.map(d => d.site) }))`, depth)
		for i := range plan.Entries {
			e, page := &plan.Entries[i], have[i]
			depth := min(depth, plan.Header.Ctx-e.Rows)
			if want := 1e6 * e.Predict(depth).Seconds(); page.Time < want*0.9999 || page.Time > want*1.0001 {
				t.Errorf("%s behind %d: the page predicts %v us, want %v", e.Name, depth, page.Time, want)
			}
			read, write, flops := e.Work(depth)
			if want := fmt.Sprintf("%d,%d,%d", read, write, flops); page.Work != want {
				t.Errorf("%s behind %d: work %s, want %s", e.Name, depth, page.Work, want)
			}
			if len(page.Sites) != len(e.Dispatches) {
				t.Fatalf("%s: %d dispatches, want %d", e.Name, len(page.Sites), len(e.Dispatches))
			}
			for j, d := range e.Dispatches {
				if page.Sites[j] != d.Site {
					t.Errorf("%s: dispatch %d is %q, want %q", e.Name, j, page.Sites[j], d.Site)
				}
			}
		}
	}
	const press = `[...document.querySelectorAll(".choice button")].find(b => b.textContent === %q).click(), 0`
	e := &plan.Entries[len(plan.Entries)-1]
	c.number(press, e.Name)
	if n := c.number(`document.querySelectorAll(".timeline .dispatch").length`); int(n) != len(e.Dispatches) {
		t.Errorf("%s: %v dispatches are drawn, want %d", e.Name, n, len(e.Dispatches))
	}
	before := c.text(`document.querySelector(".card b").textContent`)
	c.number(press, "256")
	if after := c.text(`document.querySelector(".card b").textContent`); after == before {
		t.Errorf("%s: %s whatever the cache holds", e.Name, after)
	}
}

// checkListings holds that the page writes out every module as package spirv does.
func checkListings(t *testing.T, c *chromium, plan *plans.Plan) {
	t.Helper()
	for i := range plan.Modules {
		want, err := modules.Disassemble(&plan.Modules[i], nil)
		if err != nil {
			t.Fatal(err)
		}
		have := c.text(`listing(data.Plans[0].Modules[%d].Listing, 18)`, i)
		lines, wanted := strings.Split(have, "\n"), strings.Split(strings.TrimSpace(strings.ReplaceAll(want, "\n\n", "\n")), "\n")
		if len(lines) != len(wanted) {
			t.Errorf("module %q: %d lines, want %d", plan.Modules[i].Name, len(lines), len(wanted))
			continue
		}
		for j := range lines {
			if lines[j] != wanted[j] {
				t.Errorf("module %q: line %d is %q, want %q", plan.Modules[i].Name, j, lines[j], wanted[j])
				break
			}
		}
	}
	c.number(`document.querySelector(".kernel summary").click(), 0`)
	c.call("Runtime.evaluate", map[string]any{"expression": "new Promise(r => setTimeout(r, 100))", "awaitPromise": true}, nil)
	if have := c.text(`document.querySelector(".kernel pre").textContent`); !strings.Contains(have, "OpEntryPoint GLCompute") {
		t.Errorf("a kernel opens to %.200q", have)
	}
}

// TestArena holds that the values of an entry take the arena that the plan has.
func TestArena(t *testing.T) {
	plan, o := compiled(t, "gopher-moe", "gfx1201")
	r, err := report.New(plan, o)
	if err != nil {
		t.Fatal(err)
	}
	var most int64
	for i, e := range r.Plans[0].Entries {
		most = max(most, e.Arena)
		listed := 0
		for _, op := range plan.Program.Func(e.Name).Ops() {
			if v := op.Result; v != nil && v.Offset >= 0 {
				listed++
			}
		}
		if len(e.Values) != listed {
			t.Errorf("%s: %d values lie in the arena, want %d", e.Name, len(e.Values), listed)
		}
		for j, a := range e.Values {
			for _, b := range e.Values[:j] {
				if a.First <= b.Last && b.First <= a.Last && a.Offset < b.Offset+b.Bytes && b.Offset < a.Offset+a.Bytes {
					t.Errorf("%s: %v and %v overlap", e.Name, a, b)
				}
			}
		}
		if last := plan.Entries[i].Dispatches[len(e.Dispatches)-1].Stage; e.Values[len(e.Values)-1].Last > last {
			t.Errorf("%s: a value outlives step %d", e.Name, last)
		}
	}
	if have := plan.Memory.Arena; have < most || have-most >= 256 {
		t.Errorf("the arena has %d bytes, the values end at %d", have, most)
	}
}

// TestHostile holds that names of a stranger's file stay text.
func TestHostile(t *testing.T) {
	const evil = `</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1">` + "\u2028'\"`${window.hacked=1}"
	plan, o := compiled(t, "gopher", "llvmpipe")
	plan.Header.Model.Name, plan.Header.Target, o.Path = evil, evil, evil
	o.Notes = []string{evil}
	for _, g := range plan.Program.Globals {
		if g.Name == "token_embd.weight" {
			g.Name = evil
		}
	}
	plan.Weights[0].Name = evil
	plan.Program.Funcs[0].Groups[0].Name = evil
	plan.Entries[0].Dispatches[0].Site = evil
	plan.Program.Funcs[0].Groups[0].Call.Why = evil
	o.Trace = nil
	for _, build := range []func() (*report.Report, error){
		func() (*report.Report, error) { return report.New(plan, o) },
		func() (*report.Report, error) {
			other, oo := compiled(t, "gopher", "sm_90")
			return report.Diff(plan, other, o, oo)
		},
	} {
		r, err := build()
		path := write(t, r, err)
		c := startChromium(t)
		open(t, c, path, 1280, "light")
		c.point(`.column .op`, false)
		c.point(`.site`, true)
		if c.text(`String(window.hacked)`) != "undefined" || c.number(`document.images.length`) != 0 {
			t.Error("a name became markup")
		}
		if have := c.text(`document.body.innerText`); !strings.Contains(have, "<img src=x") {
			t.Error("the name is not shown")
		}
		noErrors(t, c)
	}
}

func TestDiffPage(t *testing.T) {
	a, oa := compiled(t, "gopher", "gfx1201")
	b, ob := compiled(t, "gopher", "sm_90")
	r, err := report.Diff(a, b, oa, ob)
	path := write(t, r, err)
	c := startChromium(t)
	for _, width := range []int{390, 1280} {
		open(t, c, path, width, "dark")
	}
	if n := c.number(`document.querySelectorAll("#differences table").length`); int(n) != len(r.Diff)-1 || n < 3 {
		t.Errorf("%v tables of differences, want %d and a headline", n, len(r.Diff)-1)
	}
	if n := c.number(`document.querySelectorAll("#differences .headline .card").length`); n < 3 {
		t.Errorf("%v cards in the headline", n)
	}
	// A site is lit in both programs and both timelines.
	c.point(`.column .group:not(.single) .site`, false)
	if n := c.number(`document.querySelectorAll(".timeline .dispatch.lit").length`); n < 2 {
		t.Errorf("a site is lit as %v dispatches", n)
	}
	if n := c.number(`[...document.querySelectorAll(".column")].filter(c => c.querySelector(".group.lit")).length`); n != 2 {
		t.Errorf("a site is lit in %v programs", n)
	}
	noErrors(t, c)
	// Nothing differs from itself, nothing is predicted for the host.
	host, oh := compiled(t, "gopher", "host")
	r, err = report.Diff(host, host, oh, oh)
	open(t, c, write(t, r, err), 1280, "light")
	if have := c.text(`document.querySelector("#differences").innerText`); !strings.Contains(have, "do not differ") {
		t.Errorf("differences: %q", have)
	}
	noErrors(t, c)
}

// TestScreenshots takes the pictures of the documents; with -update it writes them.
func TestScreenshots(t *testing.T) {
	if testing.Short() {
		t.Skip("TestPage draws the same page")
	}
	plan, o := compiled(t, "gopher-moe", "gfx1201")
	r, err := report.New(plan, o)
	path := write(t, r, err)
	c := startChromium(t)
	for _, scheme := range []string{"light", "dark"} {
		open(t, c, path, 1280, scheme)
		c.size(1280, 1480, scheme)
		c.number(`document.querySelector(".columns").scrollLeft = 346, 0`)
		c.number(`[...document.querySelectorAll(".column:nth-child(3) .op")].find(o => o.querySelector("b").textContent === "deltanet").click(), 0`)
		c.number(`scrollTo(0, 0), 0`)
		c.call("Runtime.evaluate", map[string]any{"expression": "new Promise(r => setTimeout(r, 200))", "awaitPromise": true}, nil)
		shot := c.screenshot()
		img, err := png.Decode(bytes.NewReader(shot))
		if err != nil {
			t.Fatal(err)
		}
		if size := img.Bounds().Size(); size.X != 1280 || size.Y != 1480 {
			t.Errorf("%s: the picture is %v", scheme, size)
		}
		if n := colours(img); n < 50 {
			t.Errorf("%s: the picture has %d colours", scheme, n)
		}
		if len(shot) > 360<<10 { // descriptions of passes are a quarter
			t.Errorf("%s: the picture has %d bytes", scheme, len(shot))
		}
		if *update {
			if err := os.WriteFile("../../docs/report-"+scheme+".png", shot, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	noErrors(t, c)
}

func colours(img image.Image) int {
	seen := map[color.Color]bool{}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			seen[img.At(x, y)] = true
		}
	}
	return len(seen)
}
