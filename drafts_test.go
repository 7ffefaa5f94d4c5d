package zincc_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// TestDraftsOnLlvmpipe: with guessed tokens in its steps a model gives the answers that it gives without, to the byte,
// greedy and drawn, whether it sees all positions or a window. Some guesses hold, some do not.
func TestDraftsOnLlvmpipe(t *testing.T) {
	const function = "func Max(a, b int) int {\n\tif a > b {\n\t\treturn a\n\t}\n\treturn b\n}\n\n"
	o := frontend.Options{Ctx: 512, Slots: 8, KV: ir.F16, MaxRows: 48, Page: 64, Pool: 1024}
	for name, path := range map[string]string{"gopher": modelPath("gopher"), "windows": windowed(t)} {
		t.Run(name, func(t *testing.T) {
			plan, exec := openedFile(t, "llvmpipe", path, o)
			cheap(plan)
			slow := &slowAlone{Executor: exec}
			tok, err := text.New(plan.Vocab)
			if err != nil {
				t.Fatal(err)
			}
			requests := make([]engine.Request, 2)
			for i := range requests {
				r := engine.Request{Prompt: tok.Encode(strings.Repeat(function, 3-i), text.EncodeOptions{AddSpecial: true}), Max: 40, TopLogprobs: -1, IgnoreEOG: true}
				if i > 0 {
					r.Sampling = sample.Neutral()
					r.Sampling.Seed, r.Sampling.Temp = 3, 0.5
				}
				requests[i] = r
			}
			run := func(o engine.Options) ([][]int32, engine.Stats) {
				e, err := engine.New(plan, slow, tok, o)
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				all := make([][]int32, len(requests))
				for i, r := range requests {
					if err := generate(t, e, r, func(id int32) { all[i] = append(all[i], id) }); err != nil {
						t.Fatal(err)
					}
				}
				return all, e.Stats()
			}
			want, none := run(engine.Options{NoDrafts: true, ITL: engine.Unhurried})
			got, st := run(engine.Options{ITL: engine.Unhurried})
			for i := range want {
				if !slices.Equal(got[i], want[i]) || len(got[i]) != requests[i].Max {
					t.Errorf("request %d: %d, without drafts %d", i, got[i], want[i])
				}
			}
			if none.Guessed != 0 || st.Held == 0 || st.Held == st.Guessed {
				t.Errorf("%d tokens were guessed, %d of them came so; without drafts %d", st.Guessed, st.Held, none.Guessed)
			}
		})
	}
}

// cheap has steps of decoding take as long in a plan's predictions whatever their rows.
func cheap(plan *plans.Plan) {
	for i := range plan.Entries {
		e := &plan.Entries[i]
		for j := range e.Dispatches {
			d := &e.Dispatches[j]
			d.Cost = plans.Cost{}
			if j == 0 && e.Kind == "decode" {
				d.Cost.Predicted.Bytes = 1e-3
			}
		}
	}
}

// slowAlone is an executor on which steps of one row take five times as long, so that drafts pay whatever else the
// computer does.
type slowAlone struct {
	runtime.Executor
	alone bool
	began time.Time
}

func (x *slowAlone) Submit(ctx context.Context, launches ...runtime.Launch) (runtime.Ticket, error) {
	x.alone, x.began = launches[0].Entry.Rows == 1, time.Now()
	return x.Executor.Submit(ctx, launches...)
}

func (x *slowAlone) Wait(ctx context.Context, t runtime.Ticket) error {
	err := x.Executor.Wait(ctx, t)
	if x.alone {
		time.Sleep(4 * time.Since(x.began))
	}
	return err
}
