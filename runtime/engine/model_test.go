package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/passes"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/host"
	"github.com/zincc-dev/zincc/runtime/text"
)

// model is a small model of testdata on the host.
type model struct {
	plan *plans.Plan
	tok  *text.Tokenizer
	exec *host.Executor
}

func loadModel(t *testing.T, name string, ctx int) *model {
	t.Helper()
	path := "../../testdata/models/" + name + "-q4_k_m.gguf"
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := frontend.Load(f, frontend.Options{Ctx: ctx, KV: ir.F16, MaxRows: codegen.MaxRows})
	if err != nil {
		t.Fatal(err)
	}
	device, err := target.Lookup("host")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := passes.Run(p, codegen.Table(device, p.Funcs[0].Rows), passes.Options{StopAfter: ir.Place}); err != nil {
		t.Fatal(err)
	}
	m := &model{}
	if m.plan, err = codegen.Emit(p, f, device, false); err != nil {
		t.Fatal(err)
	}
	src, err := plans.OpenSource(m.plan, "plan.bin", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	if m.exec, err = host.New(t.Context(), m.plan, src); err != nil {
		t.Fatal(err)
	}
	if m.tok, err = text.New(m.plan.Vocab); err != nil {
		t.Fatal(err)
	}
	return m
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
	m := loadModel(t, "gopher", 128)
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
