package zincc_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/text"
)

// TestTogether: on llvmpipe prompts that come at once, two of which begin alike, are read in steps of several, and have
// the answers that they have one by one, to the byte: of a model with windows, and of one with a delta rule.
func TestTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("steps of 512 rows are left to the longer run")
	}
	testTogether(t, frontend.Options{Ctx: 640, Slots: 4, KV: ir.F16}, []int{60, 150, 129, 200}, func(e engine.EntryStats) bool { return e.Prompts > e.Steps })
}

// TestShortTogether: on llvmpipe prompts of up to 8 tokens that come at once share steps of decoding, and have the
// answers that they have one by one, to the byte.
func TestShortTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("the host has all widths in runtime/engine")
	}
	o := frontend.Options{Ctx: 64, Slots: 12, KV: ir.F16, MaxRows: 16}
	testTogether(t, o, []int{8, 7, 8, 5, 8, 1, 8}, func(e engine.EntryStats) bool { return e.Prompts > 0 && e.Rows > 8*e.Steps })
}

// testTogether asks for answers to prompts of some lengths on two models on llvmpipe, alone and together, where some
// entry has steps of which several says that they were shared.
func testTogether(t *testing.T, o frontend.Options, lengths []int, several func(e engine.EntryStats) bool) {
	common := synth.Shape{Quant: "Q8_0", Layers: 2, Embd: 64, Vocab: 288, Ctx: 640, RopeBase: 1e4, Heads: 4, KVHeads: 2, HeadDim: 32, Experts: synth.Experts{Count: 4, Used: 2, FF: 32}}
	windows, delta := common, common
	windows.Name, windows.Arch, windows.Windows = "windows", "gpt-oss", synth.Windows{Size: 70}
	delta.Name, delta.Arch, delta.RopeDims, delta.Experts.Shared = "delta", "qwen35moe", 16, 32
	delta.DeltaNet = synth.DeltaNet{KeyHeads: 2, ValueHeads: 4, State: 64, Taps: 4, Interval: 2}
	for _, shape := range []synth.Shape{windows, delta} {
		t.Run(shape.Name, func(t *testing.T) {
			s, err := synth.New(shape)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "model.gguf")
			if err := s.Write(path); err != nil {
				t.Fatal(err)
			}
			plan, exec := openedFile(t, "llvmpipe", path, o)
			tok, err := text.New(plan.Vocab)
			if err != nil {
				t.Fatal(err)
			}
			run := func(together int) ([][]int32, engine.Stats) {
				e, err := engine.New(plan, exec, tok, engine.Options{ITL: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				all := make([][]int32, len(lengths))
				var group errgroup.Group
				group.SetLimit(together)
				for i, n := range lengths {
					var prompt []int32
					for at := range n {
						prompt = append(prompt, int32(1+(at*at+at/128*i+i%2)%250))
					}
					group.Go(func() error {
						for ev, err := range e.Generate(t.Context(), engine.Request{Prompt: prompt, Max: 2, TopLogprobs: 0, IgnoreEOG: true}) {
							if err != nil {
								return err
							}
							for _, token := range ev.Tokens {
								all[i] = append(all[i], token.ID)
							}
						}
						return nil
					})
				}
				if err := group.Wait(); err != nil {
					t.Fatal(err)
				}
				return all, e.Stats()
			}
			alone, _ := run(1)
			together, st := run(len(lengths))
			for i := range alone {
				if !slices.Equal(alone[i], together[i]) {
					t.Errorf("request %d: %d alone, %d together", i, alone[i], together[i])
				}
			}
			if !slices.ContainsFunc(st.Entries, several) {
				t.Errorf("no step has several prompts: %+v", st.Entries)
			}
		})
	}
}
