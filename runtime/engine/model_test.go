package engine_test

import (
	"errors"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/cpu"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/host"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// model is a small model of testdata on the host.
type model struct {
	plan *plans.Plan
	tok  *text.Tokenizer
	exec *host.Executor
}

func loadModel(t *testing.T, name string, ctx, slots int) *model {
	t.Helper()
	return loadFile(t, "../../testdata/models/"+name+"-q4_k_m.gguf", frontend.Options{Ctx: ctx, Slots: slots, KV: ir.F16})
}

func loadFile(t *testing.T, path string, o frontend.Options) *model {
	t.Helper()
	m := &model{}
	var src *plans.Source
	m.plan, src = compileFor(t, "host", path, o)
	var err error
	if m.exec, err = host.New(t.Context(), m.plan, src); err != nil {
		t.Fatal(err)
	}
	if m.tok, err = text.New(m.plan.Vocab); err != nil {
		t.Fatal(err)
	}
	return m
}

// compileFor compiles a model file for a target.
func compileFor(t *testing.T, name, path string, o frontend.Options) (*plans.Plan, *plans.Source) {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	device, err := target.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := codegen.Compile(t.Context(), codegen.Source{Model: f}, codegen.Options{Target: device, Import: o})
	if err != nil {
		t.Fatal(err)
	}
	src, err := plans.OpenSource(compiled.Plan, "plan.bin", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return compiled.Plan, src
}

func (m *model) start(t *testing.T, o engine.Options) *engine.Engine {
	t.Helper()
	e, err := engine.New(m.plan, m.exec, m.tok, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func (m *model) encode(s string) []int32 {
	return m.tok.Encode(s, text.EncodeOptions{AddSpecial: true, ParseSpecial: true})
}

// answer collects the events of a request.
func answer(t *testing.T, e *engine.Engine, r engine.Request) (string, []int32, *engine.Done) {
	t.Helper()
	var b strings.Builder
	var ids []int32
	var done *engine.Done
	for ev, err := range e.Generate(t.Context(), r) {
		if err != nil {
			t.Errorf("generate: %v", err)
		}
		b.WriteString(ev.Text)
		for _, tok := range ev.Tokens {
			ids = append(ids, tok.ID)
		}
		done = ev.Done
	}
	return b.String(), ids, done
}

// TestGreedy compares a greedy answer with the session's own loop.
func TestGreedy(t *testing.T) {
	m := loadModel(t, "gopher", 128, 1)
	prompt := m.encode("// path: sort/search.go\npackage sort\n\n// Search")
	session := runtime.NewSession(m.plan, m.exec)
	next, err := session.Prefill(t.Context(), prompt, 0)
	if err != nil {
		t.Fatal(err)
	}
	rest, err := session.Decode(t.Context(), next, 39)
	if err != nil {
		t.Fatal(err)
	}
	want := append([]int32{next}, rest...)
	e := m.start(t, engine.Options{})
	got, ids, done := answer(t, e, engine.Request{Prompt: prompt, Max: 40, TopLogprobs: -1})
	if !slices.Equal(ids, want) || got != m.tok.Decode(want, false) {
		t.Errorf("%d, %q, want %d", ids, got, want)
	}
	if done == nil || done.Reason != engine.Length || done.Usage.Completion != 40 || done.Usage.Prompt != len(prompt) {
		t.Errorf("ends with %+v", done)
	}
}

// TestSuppressed takes the tokens of a greedy answer out by the vocabulary: the answer is that of a request which
// forbids them, and has none, also where the request has a bias for one.
func TestSuppressed(t *testing.T) {
	m := loadModel(t, "gopher", 96, 1)
	prompt := m.encode("package sort\n\n// Search")
	ask := func(bias map[int32]float64) []int32 {
		_, ids, _ := answer(t, m.start(t, engine.Options{}), engine.Request{Prompt: prompt, Max: 6, TopLogprobs: -1, Sampling: sample.Params{Bias: bias}})
		return ids
	}
	first := ask(nil)
	forbidden := map[int32]float64{}
	for _, id := range first {
		forbidden[id] = math.Inf(-1)
	}
	want := ask(forbidden)
	vocab := m.plan.Vocab
	vocab.Suppress = slices.Sorted(maps.Keys(forbidden))
	var err error
	if m.tok, err = text.New(vocab); err != nil {
		t.Fatal(err)
	}
	given := map[int32]float64{first[0]: 5}
	if got := ask(nil); !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
	if got := ask(given); !slices.Equal(got, want) {
		t.Errorf("with a bias for a suppressed token: %d, want %d", got, want)
	}
	if slices.ContainsFunc(want, func(id int32) bool { return forbidden[id] != 0 }) {
		t.Errorf("%d has one of %d", want, vocab.Suppress)
	}
	if len(given) != 1 || given[first[0]] != 5 {
		t.Errorf("the request's bias has become %v", given)
	}
}

// TestSameBits sends requests one by one, then 8 at a time to an engine that has seen nothing: with the same
// seeds, prefixes found in slots or not, the answers are the same to the byte, also of caches that lie in a pool of a
// third of the pages that all slots take. -short sends a third of them.
func TestSameBits(t *testing.T) {
	for name, requests := range map[string]int{"gopher": 64, "gopher-moe": 32} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() {
				requests /= 3
			}
			// In pieces of 16 rows prompts have cuts at which others can go on.
			m := loadFile(t, "../../testdata/models/"+name+"-q4_k_m.gguf", frontend.Options{Ctx: 96, Slots: 16, KV: ir.F16, MaxRows: 16})
			var list []engine.Request
			for i := range requests {
				texts := []string{"// path: sort/search.go\npackage sort\n", "func Reverse(s string) string {", "package strings"}
				// Some prompts come again, some go on from others.
				r := engine.Request{Prompt: m.encode(texts[i%3] + strings.Repeat("\n// x", i%4)), Max: 3, TopLogprobs: -1}
				if i%4 > 0 {
					r.Sampling = sample.Neutral()
					r.Sampling.Seed, r.Sampling.Repeat = uint64(i), 1.1
				}
				if i%12 < 8 {
					r.Turn = len(r.Prompt) - 2
				}
				list = append(list, r)
			}
			run := func(m *model, together int) ([][]int32, int) {
				e, err := engine.New(m.plan, m.exec, m.tok, engine.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				answers, cached := make([][]int32, len(list)), make([]int, len(list))
				var group errgroup.Group
				group.SetLimit(together)
				for i, r := range list {
					group.Go(func() error {
						for ev, err := range e.Generate(t.Context(), r) {
							if err != nil {
								return err
							}
							for _, tok := range ev.Tokens {
								answers[i] = append(answers[i], tok.ID)
							}
							if ev.Done != nil {
								cached[i] = ev.Done.Usage.Cached
							}
						}
						return nil
					})
				}
				if err := group.Wait(); err != nil {
					t.Fatal(err)
				}
				found := 0
				for _, n := range cached {
					found += min(n, 1)
				}
				return answers, found
			}
			alone, found := run(m, 1)
			paged := loadFile(t, "../../testdata/models/"+name+"-q4_k_m.gguf", frontend.Options{Ctx: 96, Slots: 16, KV: ir.F16, MaxRows: 16, Page: 64, Pool: 11 * 64})
			for of, m := range map[string]*model{"slots": m, "pages": paged} {
				together, _ := run(m, 16)
				for i := range list {
					if !slices.Equal(alone[i], together[i]) {
						t.Errorf("request %d: %d alone, %d with others in %s", i, alone[i], together[i], of)
					}
				}
			}
			if found == 0 {
				t.Error("no request has found anything in a slot")
			}
		})
	}
}

// TestFreedPages: what lay in a page that no sequence has any more is gone, so that a step that reads it all the same
// has no answer.
func TestFreedPages(t *testing.T) {
	m := loadFile(t, "../../testdata/models/gopher-q4_k_m.gguf", frontend.Options{Ctx: 96, Slots: 2, KV: ir.F16, MaxRows: 16, Page: 64, Pool: 3 * 64})
	prompt := m.encode("// path: sort/search.go\npackage sort\n")
	own := m.plan.OwnPages(ir.WholeGroup).Entries
	for _, table := range [][]int32{own, {3, 2, 0, 0}, {0, 0, 1, 0}, {0, 2, 0, 0}} {
		session := runtime.NewSession(m.plan, m.exec)
		next, err := session.Prefill(t.Context(), prompt, 0)
		if err != nil {
			t.Fatal(err)
		}
		freed := !slices.Contains(table, own[0])
		for _, table := range [][]int32{table, own} {
			if err := m.exec.Write(ir.StepPages, table); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := session.Decode(t.Context(), next, 1); freed != errors.Is(err, sample.ErrNotNumbers) {
			t.Errorf("behind the table %d: %v", table, err)
		}
	}
}

// TestCopiedRows has a processor answer behind rows that another slot's prompt wrote, in caches whose scales lie apart:
// as without a cache.
func TestCopiedRows(t *testing.T) {
	plan, src := compileFor(t, target.CPU, "../../testdata/models/gopher-q4_k_m.gguf", frontend.Options{Ctx: 96, Slots: 2, KV: ir.Q8_0, MaxRows: 16})
	exec, err := cpu.New(t.Context(), plan, src, cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer exec.Close()
	tok, err := text.New(plan.Vocab)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(plan, exec, tok, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	system := strings.Repeat("// path: sort/search.go\n", 8)
	found := 0
	for i, question := range []string{"package sort", "func Reverse", "type Heap"} {
		r := engine.Request{Prompt: tok.Encode(system+question, text.EncodeOptions{AddSpecial: true}), Max: 8, TopLogprobs: -1, IgnoreEOG: true}
		_, got, done := answer(t, e, r)
		r.NoCache = true
		if _, want, _ := answer(t, e, r); !slices.Equal(got, want) {
			t.Errorf("conversation %d, of %d tokens %d found: %d, want %d", i, done.Usage.Prompt, done.Usage.Cached, got, want)
		}
		found = max(found, done.Usage.Cached)
	}
	if found < 32 {
		t.Errorf("%d tokens are found", found)
	}
}

// TestEndOfGeneration: an answer ends where the model chooses a token that ends generation, unless
// the request wants to go on.
func TestEndOfGeneration(t *testing.T) {
	m := loadModel(t, "gopher", 128, 1)
	prompt := m.encode("// path: sort/search.go\npackage sort\n\n// Search")
	_, want, _ := answer(t, m.start(t, engine.Options{}), engine.Request{Prompt: prompt, Max: 30, TopLogprobs: -1})
	if len(want) != 30 {
		t.Fatalf("%d tokens", len(want))
	}
	const at = 11
	vocab := m.plan.Vocab
	vocab.EOS = new(want[at])
	var err error
	if m.tok, err = text.New(vocab); err != nil {
		t.Fatal(err)
	}
	first := slices.Index(want, want[at])
	for _, ignore := range []bool{false, true} {
		_, ids, done := answer(t, m.start(t, engine.Options{}), engine.Request{Prompt: prompt, Max: 30, TopLogprobs: -1, IgnoreEOG: ignore})
		switch {
		case ignore && (!slices.Equal(ids, want) || done.Reason != engine.Length):
			t.Errorf("going on: %d, %v, want %d", ids, done.Reason, want)
		case !ignore && (len(ids) > first+1 || !slices.Equal(ids, want[:len(ids)]) || len(ids) < first || done.Reason == engine.Length):
			t.Errorf("%d, %v, want %d", ids, done.Reason, want[:first])
		}
	}
}

// TestWindowsInPages: of a model whose layers see a window, requests at once have in a pool that is too small for all
// the answers that they have one by one in slots. Pages before a window are given back: on the host they then hold
// NaNs.
func TestWindowsInPages(t *testing.T) {
	const window, slots = 70, 4
	s, err := synth.New(synth.Shape{
		Name: "windowed", Arch: "gpt-oss", Quant: "Q8_0", Layers: 2, Embd: 64, Vocab: 288, Ctx: 640, RopeBase: 1e4, Heads: 4, KVHeads: 2, HeadDim: 32,
		Experts: synth.Experts{Count: 4, Used: 2, FF: 32}, Windows: synth.Windows{Size: window},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "windowed.gguf")
	if err := s.Write(path); err != nil {
		t.Fatal(err)
	}
	o := frontend.Options{Ctx: 640, Slots: slots, KV: ir.F16, MaxRows: 48}
	list := make([]engine.Request, 7)
	for i := range list {
		prompt := make([]int32, 420+10*i)
		for at := range prompt {
			prompt[at] = int32(1 + (at*at+at/96*(i%3))%250) // some begin alike
		}
		list[i] = engine.Request{Prompt: prompt, Max: 40, TopLogprobs: -1, IgnoreEOG: true, Turn: len(prompt) - 2}
	}
	run := func(o frontend.Options, together int) ([][]int32, engine.Stats) {
		m := loadFile(t, path, o)
		e := m.start(t, engine.Options{})
		answers := make([][]int32, len(list))
		var group errgroup.Group
		group.SetLimit(together)
		for i, r := range list {
			group.Go(func() error {
				for ev, err := range e.Generate(t.Context(), r) {
					if err != nil {
						return err
					}
					for _, tok := range ev.Tokens {
						answers[i] = append(answers[i], tok.ID)
					}
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		return answers, e.Stats()
	}
	alone, _ := run(o, 1)
	o.Page, o.Pool = 64, 1536
	together, st := run(o, slots)
	for i := range list {
		if !slices.Equal(alone[i], together[i]) {
			t.Errorf("request %d: %d alone in slots, %d with others in pages", i, alone[i], together[i])
		}
	}
	held := 0
	for _, s := range st.Slots {
		held += ir.PagesOf(s.Tokens, o.Page)
	}
	if st.CachedTokens == 0 || st.Pages.Held >= 2*held {
		t.Errorf("%d tokens were found; %d pages of both groups are held for %d of one", st.CachedTokens, st.Pages.Held, held)
	}
}
