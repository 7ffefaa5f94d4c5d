package zincc_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// TestPreempted: requests that come at once, behind a few prompts, greedy and drawn, have in a pool of a third of the
// pages that they need, two each, the answers that they have one by one, to the byte; on the way some give their slots
// up and come back. Of 12 that are decoded together the states lack updates then. One by one means in a plan without
// pages, but under -short in the same one.
func TestPreempted(t *testing.T) {
	for _, c := range []struct {
		on, model       string
		requests, pages int
	}{{"host", "gopher", 6, 4}, {"host", "gopher-moe", 12, 14}, {"llvmpipe", "gopher", 6, 4}, {"llvmpipe", "gopher-moe", 6, 4}} {
		t.Run(fmt.Sprintf("%s/%s/%d", c.on, c.model, c.requests), func(t *testing.T) {
			if c.model != "gopher" && c.on != "host" && testing.Short() {
				t.Skip("the hybrid model is left to the longer run")
			}
			o := frontend.Options{Ctx: 128, Slots: c.requests, KV: ir.F16, MaxRows: 16, Page: 64, Pool: c.pages * 64}
			plan, exec := openedOn(t, c.on, c.model, o)
			together, preempted := answers(t, plan, exec, c.requests, c.requests)
			if c.on != "host" && c.model != "gopher" {
				testKeptTails(t, plan, exec)
			}
			if !testing.Short() {
				o.Page, o.Pool = 0, 0
				plan, exec = openedOn(t, c.on, c.model, o)
			}
			alone, none := answers(t, plan, exec, c.requests, 1)
			for i := range alone {
				if !slices.Equal(alone[i], together[i]) {
					t.Errorf("request %d: %d alone, %d together", i, alone[i], together[i])
				}
			}
			if none != 0 || preempted == 0 {
				t.Errorf("%d requests have given their slots up, and %d one by one", preempted, none)
			}
		})
	}
}

// answers sends so many requests, so many at a time, and returns their tokens and how many gave their slots up.
func answers(t *testing.T, plan *plans.Plan, exec runtime.Executor, requests, together int) ([][]int32, int64) {
	t.Helper()
	tok, err := text.New(plan.Vocab)
	if err != nil {
		t.Fatal(err)
	}
	// With a bound of time prompts of a slow device may wait until the answers before them have ended.
	e, err := engine.New(plan, exec, tok, engine.Options{ITL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	texts := []string{"// path: sort/search.go\npackage sort\n", "func Reverse(s string) string {", "package strings\n\n"}
	all := make([][]int32, requests)
	var group errgroup.Group
	group.SetLimit(together)
	if together > 1 { // all are there before one begins: as many begin as there are pages
		group.SetLimit(together + 1)
		held := make(chan struct{})
		hold := sync.OnceFunc(func() {
			close(held)
			for began := time.Now(); e.Stats().Waiting < together && time.Since(began) < time.Minute; {
				time.Sleep(time.Millisecond)
			}
		})
		r := engine.Request{Prompt: tok.Encode("type", text.EncodeOptions{AddSpecial: true}), Max: 1, Reading: func(int) { hold() }}
		group.Go(func() error {
			defer hold() // also if it is refused
			return generate(t, e, r, func(int32) {})
		})
		<-held
	}
	for i := range all {
		prompt := tok.Encode(texts[i%3]+strings.Repeat("// x\n", i/3), text.EncodeOptions{AddSpecial: true})
		r := engine.Request{Prompt: prompt, Max: 66 - len(prompt), TopLogprobs: -1, IgnoreEOG: true}
		if i%2 > 0 {
			r.Sampling = sample.Neutral()
			r.Sampling.Seed, r.Sampling.Repeat = uint64(i), 1.1
		}
		group.Go(func() error { return generate(t, e, r, func(id int32) { all[i] = append(all[i], id) }) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return all, e.Stats().Preempted
}

// generate has the tokens of a request's answer taken.
func generate(t *testing.T, e *engine.Engine, r engine.Request, take func(id int32)) error {
	for ev, err := range e.Generate(t.Context(), r) {
		if err != nil {
			return err
		}
		for _, token := range ev.Tokens {
			take(token.ID)
		}
	}
	return nil
}

// openedOn is a plan of a model of testdata, and its executor.
func openedOn(t *testing.T, on, model string, o frontend.Options) (*plans.Plan, runtime.Executor) {
	t.Helper()
	return openedFile(t, on, modelPath(model), o)
}

// openedFile is a plan of a model file, and its executor.
func openedFile(t *testing.T, on, path string, o frontend.Options) (*plans.Plan, runtime.Executor) {
	t.Helper()
	to, err := target.Lookup(on)
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plan := emit(t, f, to, o)
	src, err := plans.OpenSource(plan, "", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	exec, err := device.Open(t.Context(), "auto", plan, src, device.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { exec.Close() })
	return plan, exec
}
