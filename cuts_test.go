package zincc_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/text"
)

// TestTurnsReadLittle: further turns of a conversation find all but a grain, at most, of what was read before, where
// the prompt before ended within a wide step, and also where a step goes on from one piece of a prompt into the next. A
// prompt that ends with a narrow step finds all before that. A model with recurrent state finds what is before a turn
// as long as a step, and a second prompt that parts from others where the first one did. They have the tokens and the
// probabilities that they have in an engine which has read nothing, to the bit.
func TestTurnsReadLittle(t *testing.T) {
	dense := synth.Shape{Name: "dense", Arch: "qwen3", Layers: 2, Embd: 64, FF: 128, Heads: 2, KVHeads: 1, HeadDim: 64}
	windows := synth.Shape{Name: "windows", Arch: "gemma4", Layers: 2, Embd: 64, FF: 128, Heads: 2, KVHeads: 1, HeadDim: 64, Tied: true,
		Windows: synth.Windows{Size: 70, Period: 2, WideDim: 64, WideHeads: 1}}
	hybrid := synth.Shape{Name: "hybrid", Arch: "qwen35moe", Layers: 2, Embd: 64, Heads: 4, KVHeads: 2, HeadDim: 32, RopeDims: 16,
		Experts: synth.Experts{Count: 4, Used: 2, FF: 32, Shared: 32}, DeltaNet: synth.DeltaNet{KeyHeads: 2, ValueHeads: 4, State: 64, Taps: 4, Interval: 2}}
	for _, c := range []struct {
		shape synth.Shape
		on    string
		page  int
		found []int // of each prompt; the last ones part from longer ones: pages before a window are given back
	}{{dense, "host", 0, []int{0, 300, 700, 512, 560}}, {dense, "cpu", 0, []int{0, 256, 640, 512, 512}}, {dense, "llvmpipe", 128, []int{0, 288, 672, 512, 544}},
		{windows, "host", 128, []int{0, 300, 700, 0, 560}}, {windows, "cpu", 0, []int{0, 256, 640, 512, 512}}, {windows, "llvmpipe", 0, []int{0, 288, 672, 512, 544}},
		{hybrid, "host", 128, []int{0, 0, 640, 0, 512}}, {hybrid, "cpu", 0, []int{0, 0, 640, 0, 512}}, {hybrid, "llvmpipe", 128, []int{0, 0, 640, 0, 512}}} {
		t.Run(fmt.Sprintf("%s/%s/%d", c.shape.Name, c.on, c.page), func(t *testing.T) {
			c.shape.Quant, c.shape.Vocab, c.shape.Ctx, c.shape.RopeBase = "Q8_0", 288, 1024, 1e4
			s, err := synth.New(c.shape)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "model.gguf")
			if err := s.Write(path); err != nil {
				t.Fatal(err)
			}
			turnsReadLittle(t, c.on, path, c.found, frontend.Options{Ctx: 1024, Slots: 2, KV: ir.F16, MaxRows: 512, Page: c.page, Pool: 16 * c.page})
		})
	}
}

func turnsReadLittle(t *testing.T, on, path string, found []int, o frontend.Options) {
	plan, exec := openedFile(t, on, path, o)
	if on == "host" { // which predicts nothing, and would take the narrowest entry
		plan.Entries = slices.DeleteFunc(plan.Entries, func(e plans.Entry) bool { return e.Name == "prefill/48" || e.Name == "prefill/128" })
	}
	tok, err := text.New(plan.Vocab)
	if err != nil {
		t.Fatal(err)
	}
	start := func() *engine.Engine {
		e, err := engine.New(plan, exec, tok, engine.Options{ITL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	// Prompts of so many tokens, each behind the one before and its answer, but for the last; how much of it is found.
	var prompt []int32
	turns := []struct{ tokens, found int }{{300, found[0]}, {700, found[1]}, {740, found[2]}, {560, found[3]}, {570, found[4]}}
	answers := func(e *engine.Engine, n int) (rows []engine.Token, found int) {
		r := engine.Request{Prompt: slices.Clone(prompt[:n]), Turn: n - 4, Max: 6, TopLogprobs: 2, IgnoreEOG: true}
		for ev, err := range e.Generate(t.Context(), r) {
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, ev.Tokens...)
			if ev.Done != nil {
				found = ev.Done.Usage.Cached
			}
		}
		return rows, found
	}
	var with, without [][]engine.Token
	e := start()
	for _, turn := range turns {
		for i := len(prompt); i < turn.tokens; i++ {
			prompt = append(prompt, int32(1+(i*i+i/7)%250))
		}
		rows, found := answers(e, turn.tokens)
		for i := 0; i < len(rows) && len(prompt) < turn.tokens+len(rows); i++ {
			prompt = append(prompt, rows[i].ID)
		}
		if with = append(with, rows); found != turn.found {
			t.Errorf("a prompt of %d finds %d tokens, want %d", turn.tokens, found, turn.found)
		}
	}
	e.Close()
	for _, turn := range turns {
		e := start()
		rows, _ := answers(e, turn.tokens)
		without = append(without, rows)
		e.Close()
	}
	for i, turn := range turns {
		if !reflect.DeepEqual(with[i], without[i]) || len(with[i]) != 6 {
			t.Errorf("the answer behind %d tokens is %+v, without a cache %+v", turn.tokens, with[i], without[i])
		}
	}
}
