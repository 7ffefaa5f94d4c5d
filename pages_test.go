package zincc_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/audit"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/text"
	"github.com/zincc-dev/zincc/runtime/verify"
)

// paged are options of a plan of four sequences in a pool of three contexts.
var paged = frontend.Options{Ctx: 192, Slots: 4, KV: ir.Q8_0, MaxRows: 16, Page: 64, Pool: 3 * 192}

// TestPagedPlans: the checker takes plans in pages of every kind of target, each kernel of caches looks into the table,
// and prompts have the kernels that they have without pages.
func TestPagedPlans(t *testing.T) {
	for _, on := range []string{"sm_90-cuda", "sm_90", "gfx1201", "llvmpipe"} {
		o := paged
		o.MaxRows = 256
		plan := goodPlanOf(t, on, o)
		o.Page, o.Pool = 0, 0
		without := goodPlanOf(t, on, o)
		for i, f := range plan.Program.Funcs {
			for j, g := range f.Groups {
				of := slices.ContainsFunc(g.Ops, func(op *ir.Op) bool { return op.Table() != nil })
				if have := strings.Contains(g.Call.Kernel, " pages="); have != of {
					t.Errorf("%s: %s: %s has kernel %q", on, f.Name, g.Name, g.Call.Kernel)
				}
				if want := without.Program.Funcs[i].Groups[j].Call.Candidate; g.Call.Candidate != want {
					t.Errorf("%s: %s: %s has candidate %q, without pages %q", on, f.Name, g.Name, g.Call.Candidate, want)
				}
			}
		}
	}
}

// TestPagesOnLlvmpipe verifies the kernels of a layer on pages that verify's sequences have.
func TestPagesOnLlvmpipe(t *testing.T) {
	for _, kv := range []ir.DType{ir.F16, ir.Q4_0} {
		o := paged
		o.KV = kv
		checkDispatches(t, "gopher", goodPlanOf(t, "llvmpipe", o), verify.Options{Layers: []int{0}, Context: 100}, 40)
	}
}

// TestNoPagesOnProcessors: a processor's plan has no pages.
func TestNoPagesOnProcessors(t *testing.T) {
	on, err := target.Lookup("cpu:x86-64-v3")
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(modelPath("gopher"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err = codegen.Compile(t.Context(), codegen.Source{Model: f}, codegen.Options{Target: on, Import: paged}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

// TestSetPages: a plan with another pool is, byte for byte, that which was compiled for the pool, and the checker takes
// the largest one; a pool of fewer pages than the plan states, or of more than sequences have, is refused.
func TestSetPages(t *testing.T) {
	for _, on := range []string{"host", "sm_90-cuda", "llvmpipe"} {
		bytesOf := func(p *plans.Plan) []byte {
			var b bytes.Buffer
			if err := plans.Write(&b, p); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		}
		o := paged
		o.Pool = 4 * 192
		large := goodPlanOf(t, on, o)
		o.Pool = 192
		plan := goodPlanOf(t, on, o)
		k := plan.Paged()
		if most := plan.MostPages(); k.Pages != 4 || most != large.Paged().Pages || most != 13 {
			t.Fatalf("%s: %d pages, at most %d", on, k.Pages, most)
		}
		for memory, want := range map[int64]int{0: 4, plan.MemoryBytes() + 2*plan.PageBytes() - 1: 5, 1 << 40: 13} {
			if have := plan.PagesIn(memory); have != want {
				t.Errorf("%s: %d pages fit %d bytes, want %d", on, have, memory, want)
			}
		}
		small := bytesOf(plan)
		for _, n := range []int{3, 14} {
			if err := plan.SetPages(n); err == nil || !bytes.Equal(bytesOf(plan), small) {
				t.Errorf("%s: %d pages are set: %v", on, n, err)
			}
		}
		if err := plan.SetPages(13); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytesOf(plan), bytesOf(large)) {
			t.Errorf("%s: the plan is another than that which was compiled for 13 pages", on)
		}
		if bad := audit.Check(plan); len(bad) > 0 {
			t.Errorf("%s: %v", on, bad)
		}
	}
}

// TestBadPagedPlans changes what a plan says of its pages.
func TestBadPagedPlans(t *testing.T) {
	var file bytes.Buffer
	if err := plans.Write(&file, goodPlanOf(t, "llvmpipe", paged)); err != nil {
		t.Fatal(err)
	}
	table := func(p *plans.Plan) *plans.Region {
		i := slices.IndexFunc(p.Memory.Step, func(r plans.Region) bool { return r.Name == ir.StepPages })
		return &p.Memory.Step[i]
	}
	cacheOp := func(p *plans.Plan) *ir.Op {
		ops := p.Program.Funcs[0].Ops()
		return ops[slices.IndexFunc(ops, func(op *ir.Op) bool { return op.Table() != nil })]
	}
	for _, c := range []struct {
		name, rule, message string
		change              func(p *plans.Plan)
	}{
		{"smaller pages", "schema", "pages of 32 positions", func(p *plans.Plan) { p.Memory.KV[0].Kept.Page /= 2; p.Memory.KV[0].Kept.Pages *= 2 }},
		{"larger pages", "regions", "its readers and writers have", func(p *plans.Plan) {
			k := p.Memory.KV[0].Kept
			k.Page, k.Pages, k.Rows = 2*k.Page, k.Pages/2, 4*k.Page
		}},
		{"pages that are not there", "schema", "are not its", func(p *plans.Plan) { p.Memory.KV[0].Kept.Pages++ }},
		{"a region without its last page", "memory", "kv region", func(p *plans.Plan) {
			r := &p.Memory.KV[0]
			r.Kept.Pages--
			r.Bytes -= int64(r.Kept.Page) * r.Kept.RowBytes
			p.Require.Memory = p.MemoryBytes()
		}},
		{"too few pages for a sequence", "schema", "beside the page that is nobody's", func(p *plans.Plan) { p.Memory.KV[0].Kept.Rows = 64 * p.Memory.KV[0].Kept.Pages }},
		{"pages of another kind", "schema", "keeps positions and has", func(p *plans.Plan) { p.Memory.KV[0].Kept.Kind = "positions" }},
		{"a short block table", "memory", "step region", func(p *plans.Plan) { table(p).Bytes /= 2; p.Require.Memory = p.MemoryBytes() }},
		{"a cache that is not in pages", "schema", "and there is a block table: true", func(p *plans.Plan) { p.Program.Global(p.Memory.KV[0].Name).Layout = "" }},
		{"an op without the table", "schema", "and there is a block table: false", func(p *plans.Plan) { op := cacheOp(p); op.Args = op.Args[:len(op.Args)-1] }},
		{"a table of other sequences", "schema", "block table", func(p *plans.Plan) { p.Program.Global(ir.StepPages).Type.Shape[0]++ }},
		{"a cache of a group that gives pages back", "schema", "pages of group 1 with a window of 0", func(p *plans.Plan) { p.Memory.KV[0].Kept.Group = ir.WindowGroup }},
		{"a cache of a group that there is not", "schema", "pages of group 2", func(p *plans.Plan) { p.Memory.KV[0].Kept.Group = ir.PageGroups }},
		{"a block table of no group", "schema", "block table", func(p *plans.Plan) { p.Program.Global(ir.StepPages).Name = "mine" }},
		{"a cache of fewer pages than others", "schema", "pages, others of block table", func(p *plans.Plan) { p.Program.Global(p.Memory.KV[1].Name).Type.Shape[0]-- }},
		{"a part of a cache", "regions", "kernels reach all pages", func(p *plans.Plan) {
			for _, d := range p.Entries[0].Dispatches {
				for j := range d.Args {
					if d.Args[j].Region == p.Memory.KV[0].Name {
						d.Args[j].Bytes -= 64
					}
				}
			}
		}},
		{"more pages than sequences have", "regions", "of which sequences have", func(p *plans.Plan) {
			for _, g := range p.Program.Globals {
				if g.Paged() {
					g.Type.Shape[0] += 9
				}
			}
			for i := range p.Memory.KV {
				r := &p.Memory.KV[i]
				r.Kept.Pages += 9
				r.Bytes += 9 * int64(r.Kept.Page) * r.Kept.RowBytes
			}
			p.Require.Memory = p.MemoryBytes()
		}},
		{"a kernel of other pages", "reproduced", "", func(p *plans.Plan) {
			for i := range p.Pipelines {
				for j := range p.Pipelines[i].Consts {
					if k := &p.Pipelines[i].Consts[j]; k.Name == "page" {
						k.Value *= 2
					}
				}
			}
			for _, f := range p.Program.Funcs {
				for _, g := range f.Groups {
					for i := range g.Call.Consts {
						if k := &g.Call.Consts[i]; k.Name == "page" {
							k.Value *= 2
						}
					}
				}
			}
		}},
		{"a dispatch that writes the table", "effects", "", func(p *plans.Plan) {
			for i := range p.Entries[0].Dispatches {
				for j := range p.Entries[0].Dispatches[i].Args {
					if a := &p.Entries[0].Dispatches[i].Args[j]; a.Region == ir.StepPages {
						a.Write = true
					}
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := plans.Decode(file.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			c.change(p)
			bad := audit.Check(p)
			if len(bad) == 0 { // as the command does
				if bad, err = codegen.CheckReproduced(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.ContainsFunc(bad, func(b plans.Problem) bool { return b.Rule == c.rule && strings.Contains(b.Message, c.message) }) {
				t.Errorf("rule %q does not refuse it: %v", c.rule, bad)
			}
		})
	}
}

// TestWindowsOnLlvmpipe: of a model whose layers see a window, kernels give requests at once, behind prompts longer
// than the window, the answers that they give them one by one, while others take pages that lie before the window.
func TestWindowsOnLlvmpipe(t *testing.T) {
	const slots = 3
	plan, exec := openedFile(t, "llvmpipe", windowed(t), frontend.Options{Ctx: 512, Slots: slots, KV: ir.F16, MaxRows: 48, Page: 64, Pool: 1024})
	if plan.PagedIn(ir.WindowGroup) == nil || plan.PagedIn(ir.WholeGroup) == nil {
		t.Fatal("the plan has not both groups of caches")
	}
	tok, err := text.New(plan.Vocab)
	if err != nil {
		t.Fatal(err)
	}
	var answers [2][slots][]int32
	for i, together := range []int{1, slots} {
		e, err := engine.New(plan, exec, tok, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var group errgroup.Group
		group.SetLimit(together)
		for j := range answers[i] {
			prompt := make([]int32, 320+11*j)
			for at := range prompt {
				prompt[at] = int32(1 + (at*at+j)%250)
			}
			group.Go(func() error {
				for ev, err := range e.Generate(t.Context(), engine.Request{Prompt: prompt, Max: 24, TopLogprobs: -1, IgnoreEOG: true}) {
					if err != nil {
						return err
					}
					for _, token := range ev.Tokens {
						answers[i][j] = append(answers[i][j], token.ID)
					}
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		e.Close()
	}
	for j := range answers[0] {
		if !slices.Equal(answers[0][j], answers[1][j]) || len(answers[0][j]) != 24 {
			t.Errorf("request %d: %d alone, %d with others", j, answers[0][j], answers[1][j])
		}
	}
	testKeptTails(t, plan, exec)
}
