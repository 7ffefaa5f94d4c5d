package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// idle is an executor whose steps take a time and always have the same logits.
type idle struct {
	fake
	logits     []float32
	next       []int32
	candidates []int32
	steps      int
	takes      time.Duration
	ended      time.Time     // the last step
	host       time.Duration // between steps
}

func (x *idle) Write(string, []int32) error { return nil }

func (x *idle) Submit(_ context.Context, launches ...runtime.Launch) (runtime.Ticket, error) {
	for _, l := range launches {
		x.steps += l.Times
	}
	x.host += time.Since(x.ended)
	return 0, nil
}

func (x *idle) Wait(context.Context, runtime.Ticket) error {
	time.Sleep(x.takes)
	x.ended = time.Now()
	return nil
}

func (x *idle) Overlaps() bool { return x.takes > 0 }

func (x *idle) Ints(region string) ([]int32, error) {
	if strings.HasPrefix(region, "prefill/") && strings.HasSuffix(region, ":candidates") {
		return x.candidates[:ir.CandidateRow], nil
	} else if strings.HasSuffix(region, ":candidates") {
		return x.candidates, nil
	}
	return x.next, nil
}

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
	x := &idle{candidates: make([]int32, rows*ir.CandidateRow), fake: fake{plan: p}, logits: make([]float32, rows*vocab), next: make([]int32, 256)}
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
	for i := range rows {
		ir.Candidates(x.logits[i*vocab:][:vocab], x.candidates[i*ir.CandidateRow:])
	}
	drawn := sample.Neutral()
	drawn.Temp, drawn.TopK, drawn.TopP = 0.6, 20, 0.95
	penalized := drawn
	penalized.Repeat = 1.1
	for _, c := range []struct {
		name   string
		params sample.Params
		among  string // the region of candidates
		takes  time.Duration
	}{
		{"greedy", sample.Params{}, "", 0}, {"drawn", drawn, "", 0}, {"temperature", sample.Neutral(), "", 0}, {"penalized", penalized, "", 0},
		{"drawn of candidates", drawn, "decode/8:candidates", 4 * time.Millisecond},
	} {
		b.Run(c.name, func(b *testing.B) {
			e, err := engine.New(p, x, tok, engine.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			b.ReportAllocs()
			b.ResetTimer()
			x.steps, x.host, x.takes, p.Entries[0].Candidates = 0, 0, c.takes, c.among
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
			b.ReportMetric(float64(x.host.Microseconds())/float64(x.steps), "host-us/step")
		})
	}
}
