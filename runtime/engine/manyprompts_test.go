package engine_test

import (
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/runtime/engine"
)

// promptShapes are models whose steps read several prompts: one with windows and one with recurrent state.
var promptShapes = []synth.Shape{
	{Name: "parts", Arch: "gpt-oss", Quant: "Q8_0", Layers: 2, Embd: 64, Vocab: 288, Ctx: 640, RopeBase: 1e4, Heads: 4, KVHeads: 2, HeadDim: 32,
		Experts: synth.Experts{Count: 4, Used: 2, FF: 32}, Windows: synth.Windows{Size: 70}},
	{Name: "hybrid", Arch: "qwen35moe", Quant: "Q8_0", Layers: 2, Embd: 64, Vocab: 288, Ctx: 640, RopeBase: 1e4, Heads: 4, KVHeads: 2, HeadDim: 32, RopeDims: 16,
		Experts: synth.Experts{Count: 4, Used: 2, FF: 32, Shared: 32}, DeltaNet: synth.DeltaNet{KeyHeads: 2, ValueHeads: 4, State: 32, Taps: 4, Interval: 2}},
}

// writeShape writes a model file of a shape.
func writeShape(t *testing.T, shape synth.Shape) string {
	t.Helper()
	s, err := synth.New(shape)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := s.Write(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestManyPrompts: prompts that come at once, some of which begin alike, and their next turns are read in steps of
// several, in slots and in a pool that is too small for all. They have the answers that they have one by one, to the
// byte.
func TestManyPrompts(t *testing.T) {
	for _, shape := range promptShapes {
		t.Run(shape.Name, func(t *testing.T) {
			t.Parallel()
			path := writeShape(t, shape)
			var list []engine.Request
			for i, n := range []int{60, 130, 300, 200, 90, 257, 40, 128} {
				var prompt []int32
				for at := range n {
					prompt = append(prompt, int32(1+(at*at+at/96*(i%3)+i%2)%250)) // some begin alike
				}
				list = append(list, engine.Request{Prompt: prompt, Max: 6, TopLogprobs: -1, IgnoreEOG: true})
			}
			o := frontend.Options{Ctx: 640, Slots: 4, KV: ir.F16}
			alone, _ := talks(t, loadFile(t, path, o), list, 1)
			paged := o
			paged.Page, paged.Pool = 64, 1024
			for of, o := range map[string]frontend.Options{"slots": o, "pages": paged} {
				together, st := talks(t, loadFile(t, path, o), list, 4)
				for i := range list {
					if !slices.Equal(alone[i], together[i]) {
						t.Errorf("conversation %d: %d alone, %d with others in %s", i, alone[i], together[i], of)
					}
				}
				if !slices.ContainsFunc(st.Entries, func(e engine.EntryStats) bool { return e.Prompts > e.Steps }) {
					t.Errorf("no step has several prompts in %s: %+v", of, st.Entries)
				}
			}
		})
	}
}

// TestManyShortPrompts: of prompts of up to 48 tokens that come at once those of up to 16 are read in steps of decoding
// that several share. They and their next turns have the answers that they have one by one, to the byte.
func TestManyShortPrompts(t *testing.T) {
	for _, shape := range promptShapes {
		t.Run(shape.Name, func(t *testing.T) {
			t.Parallel()
			path := writeShape(t, shape)
			var list []engine.Request
			for i := range 24 {
				var prompt []int32
				for at := range 1 + 29*i%48 {
					prompt = append(prompt, int32(1+(at*at+i*i)%250))
				}
				list = append(list, engine.Request{Prompt: prompt, Max: 1 + i%4, TopLogprobs: -1, IgnoreEOG: true})
			}
			o := frontend.Options{Ctx: 256, Slots: 24, KV: ir.F16, MaxRows: 48}
			load := func(o frontend.Options) *model {
				m := loadFile(t, path, o)
				for i := range m.plan.Entries { // in wide steps rows of decoding take less
					e := &m.plan.Entries[i]
					ms, ok := map[string]float32{"decode/16": 0.11, "decode/32": 0.1}[e.Name]
					switch {
					case e.Kind != "decode":
						ms = 1
					case !ok:
						ms = 0.05
					}
					e.Dispatches[0].Cost.Predicted.Stage = ms * 1e-3
				}
				return m
			}
			alone, _ := talks(t, load(o), list, 1)
			paged := o
			paged.Page, paged.Pool = 64, 1024
			for of, o := range map[string]frontend.Options{"slots": o, "pages": paged} {
				together, st := talks(t, load(o), list, 24)
				for i := range list {
					if !slices.Equal(alone[i], together[i]) {
						t.Errorf("conversation %d: %d alone, %d with others in %s", i, alone[i], together[i], of)
					}
				}
				if !slices.ContainsFunc(st.Entries, func(e engine.EntryStats) bool {
					return (e.Name == "decode/16" || e.Name == "decode/32") && e.Prompts > 0
				}) {
					t.Errorf("no step of decoding has several prompts in %s: %+v", of, st.Entries)
				}
			}
		})
	}
}

// talks holds conversations of two turns, so many at a time, and returns the answers.
func talks(t *testing.T, m *model, list []engine.Request, together int) ([][]int32, engine.Stats) {
	t.Helper()
	for i := range m.plan.Entries { // nothing is predicted for the host, where pieces are narrow then
		if p := &m.plan.Entries[i].Dispatches[0].Cost.Predicted; p.Stage == 0 {
			p.Stage = 1e-3
		}
	}
	e := m.start(t, engine.Options{ITL: engine.Unhurried})
	answers := make([][]int32, len(list))
	var group errgroup.Group
	group.SetLimit(together)
	for i, r := range list {
		group.Go(func() error {
			for turn := range 2 {
				for ev, err := range e.Generate(t.Context(), r) {
					if err != nil {
						return err
					}
					for _, tok := range ev.Tokens {
						answers[i] = append(answers[i], tok.ID)
					}
				}
				r.Prompt = slices.Concat(r.Prompt, answers[i], r.Prompt[:50*(1+turn)%len(r.Prompt)])
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return answers, e.Stats()
}
