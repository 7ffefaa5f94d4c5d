package zincc_test

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/keep"
	"github.com/zincc-dev/zincc/runtime/text"
)

// TestKeptTails has the host and a processor keep turns of a hybrid, and of a model with a window.
// TestWindowsOnLlvmpipe and TestPreempted do so on llvmpipe, with the plans that they have.
func TestKeptTails(t *testing.T) {
	one, some := frontend.Options{Ctx: 512, Slots: 1, KV: ir.Q8_0, MaxRows: 48}, frontend.Options{Ctx: 512, Slots: 3, KV: ir.Q8_0, MaxRows: 48, Page: 64, Pool: 1536}
	slots := some
	slots.Page, slots.Pool = 0, 0
	for _, c := range []struct {
		name, on, model string
		o               frontend.Options
	}{
		{"host", "host", "gopher-moe", one},
		{"host in pages", "host", "gopher-moe", some},
		{"a processor", target.CPU, "gopher-moe", slots},
		{"rings on the host", "host", "windowed", one},
		{"rings of a processor", target.CPU, "windowed", slots},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := modelPath(c.model)
			if c.model == "windowed" {
				path = windowed(t)
			}
			plan, exec := openedFile(t, c.on, path, c.o)
			testKeptTails(t, plan, exec)
		})
	}
}

// windowed writes a model of which a layer sees a window of 70 positions.
func windowed(t *testing.T) string {
	t.Helper()
	s, err := synth.New(synth.Shape{
		Name: "windowed", Arch: "gpt-oss", Quant: "Q8_0", Layers: 2, Embd: 64, Vocab: 288, Ctx: 512, RopeBase: 1e4, Heads: 2, KVHeads: 1, HeadDim: 64,
		Experts: synth.Experts{Count: 2, Used: 1, FF: 32}, Windows: synth.Windows{Size: 70},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "windowed.gguf")
	if err := s.Write(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// testKeptTails: a turn that comes to an engine which has read other prompts goes on from the rows, windows and states
// that one before it kept, and has the answer that it has without.
func testKeptTails(t *testing.T, plan *plans.Plan, exec runtime.Executor) {
	t.Helper()
	size := plan.Header.Ctx * 9 / 16
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	tok, err := text.New(plan.Vocab)
	if err != nil {
		t.Fatal(err)
	}
	store, err := keep.Open(t.TempDir(), 1<<30, func(line string) { t.Error(line) })
	if err != nil {
		t.Fatal(err)
	}
	request := func(kind, n int) engine.Request {
		r := engine.Request{Max: 8, TopLogprobs: -1, IgnoreEOG: true}
		for at := range n {
			r.Prompt = append(r.Prompt, int32(1+(at*at+kind)%250))
		}
		r.Turn = n - 2
		return r
	}
	answer := func(e *engine.Engine, r engine.Request) (tokens []int32, cached int) {
		for ev, err := range e.Generate(t.Context(), r) {
			if err != nil {
				t.Error(err)
			}
			for _, token := range ev.Tokens {
				tokens = append(tokens, token.ID)
			}
			if ev.Done != nil {
				cached = ev.Done.Usage.Cached
			}
		}
		return tokens, cached
	}
	start := func() *engine.Engine {
		e, err := engine.New(plan, exec, tok, engine.Options{Keeper: keep.Of(nil, store, "plan")})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	turn := request(1, size)
	e := start()
	first, cached := answer(e, turn)
	if e.Close(); cached != 0 {
		t.Errorf("%d tokens are found at first", cached)
	}
	e = start()
	defer e.Close()
	var others sync.WaitGroup // take what the device still has of it
	for i := range plan.Header.Slots {
		others.Go(func() { answer(e, request(2+i, size+size/3)) })
	}
	others.Wait()
	turn.Prompt = slices.Concat(turn.Prompt, first, []int32{5, 6, 7})
	turn.Turn = len(turn.Prompt)
	have, cached := answer(e, turn)
	if n := e.Stats().RestoredTokens; cached < size-60 || n != int64(cached) {
		t.Errorf("%d tokens are found, %d restored", cached, n)
	}
	turn.NoCache = true
	if want, _ := answer(e, turn); !slices.Equal(have, want) {
		t.Errorf("%d behind a restart, without %d", have, want)
	}
}
