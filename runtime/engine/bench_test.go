package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// idle is an executor whose steps take no time and always have the same logits.
type idle struct {
	fake
	logits []float32
	next   []int32
	steps  int
}

func (x *idle) Write(string, []int32) error { return nil }

func (x *idle) Submit(_ context.Context, launches ...runtime.Launch) (runtime.Ticket, error) {
	for _, l := range launches {
		x.steps += l.Times
	}
	return 0, nil
}

func (x *idle) Wait(context.Context, runtime.Ticket) error { return nil }

func (x *idle) Ints(string) ([]int32, error) { return x.next, nil }

func (x *idle) Floats(region string, _ ...int) ([]float32, error) {
	if region == "prefill/256:logits" {
		return x.logits[:len(x.next)], nil
	}
	return x.logits, nil
}

// BenchmarkStep is what the host does for a step of 64 rows of 151,936 logits.
func BenchmarkStep(b *testing.B) {
	const vocab, rows = 151936, 64
	p := fakePlan(rows, 1<<20, false)
	p.Entries = p.Entries[3:] // decode and prompts
	p.Entries[0].Rows, p.Entries[0].Run = rows, rows
	p.Header.Model.Vocab = vocab
	p.Vocab.Tokens, p.Vocab.Types = nil, nil
	for i := range vocab {
		p.Vocab.Tokens = append(p.Vocab.Tokens, fmt.Sprint("t", i))
	}
	tok, err := text.New(p.Vocab)
	if err != nil {
		b.Fatal(err)
	}
	x := &idle{fake: fake{plan: p}, logits: make([]float32, rows*vocab), next: make([]int32, 256)}
	for i := range x.next {
		x.next[i] = 1000
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range x.logits {
		x.logits[i] = float32(r.NormFloat64() * 2.5)
		if i%997 == 0 && i%vocab < 30*997 {
			x.logits[i] += 20
		}
	}
	drawn := sample.Neutral()
	drawn.Temp, drawn.TopK, drawn.TopP = 0.6, 20, 0.95
	penalized := drawn
	penalized.Repeat = 1.1
	for _, c := range []struct {
		name   string
		params sample.Params
	}{{"greedy", sample.Params{}}, {"drawn", drawn}, {"temperature", sample.Neutral()}, {"penalized", penalized}} {
		b.Run(c.name, func(b *testing.B) {
			e, err := engine.New(p, x, tok, engine.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			b.ReportAllocs()
			b.ResetTimer()
			x.steps = 0
			var wait sync.WaitGroup
			for i := range rows {
				wait.Go(func() {
					q := engine.Request{Prompt: []int32{int32(i)}, Max: b.N + 1, TopLogprobs: -1, IgnoreEOG: true, Sampling: c.params, Stops: []string{"\n\nHuman:"}}
					for _, err := range e.Generate(context.Background(), q) {
						if err != nil {
							b.Error(err)
						}
					}
				})
			}
			wait.Wait()
			b.ReportMetric(float64(x.steps)/float64(b.N), "steps/op")
		})
	}
}
