package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/grammar"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// idle is an executor whose steps take a time, of the host, too, which looks for the end all the time as it nears.
// Their results are ever the same few.
type idle struct {
	fake
	logits     []float32
	next       []int32
	candidates [][]int32 // of steps in turn, many enough to be in no core's cache, as if a device had written them
	takes      time.Duration
	steps      int
	open       int
	near       func()
	ended      time.Time       // the last step
	gaps       []time.Duration // from the end of a step to the next submission, where that was not made ahead
	hosts      []time.Duration // from the end of a step until the next one is waited for
}

func (x *idle) Write(string, []int32) error { return nil }

func (x *idle) Submit(_ context.Context, launches ...runtime.Launch) (runtime.Ticket, error) {
	if x.open++; x.open == 1 && !x.ended.IsZero() {
		x.gaps = append(x.gaps, time.Since(x.ended))
	}
	return runtime.Ticket(launches[0].Times), nil
}

func (x *idle) Wait(_ context.Context, t runtime.Ticket) error {
	if !x.ended.IsZero() {
		x.hosts = append(x.hosts, time.Since(x.ended))
	}
	end := time.Now().Add(time.Duration(t) * x.takes)
	time.Sleep(time.Duration(t) * x.takes / 2)
	if x.near != nil {
		x.near()
		x.near = nil
	}
	for time.Now().Before(end) {
	}
	x.open--
	x.steps += int(t)
	x.ended = time.Now()
	return nil
}

func (x *idle) Near(f func()) { x.near = f }

func (x *idle) Overlaps() bool { return true }

func (x *idle) Ints(region string) ([]int32, error) {
	if strings.HasSuffix(region, ":candidates") {
		return x.candidates[x.steps%len(x.candidates)][:x.heads(region)*ir.CandidateRow], nil
	}
	return x.next, nil
}

func (x *idle) Floats(region string, _ ...int) ([]float32, error) {
	return x.logits[:x.heads(region)*x.plan.Header.Model.Vocab], nil
}

func (x *idle) heads(region string) int {
	name, _, _ := strings.Cut(region, ":")
	for i := range x.plan.Entries {
		if e := &x.plan.Entries[i]; e.Name == name {
			return e.Heads()
		}
	}
	return 0
}

// median is that of times, in microseconds.
func median(list []time.Duration) float64 {
	slices.Sort(list)
	return float64(list[len(list)/2].Nanoseconds()) / 1e3
}

// widePlan has slots for 128 sequences in pages, and entries of so many kernels as a large model has.
func widePlan(vocab int) *plans.Plan {
	p := fakePlan(128, 1<<13, false)
	like := p.Entries[3]
	p.Entries = nil
	for _, kind := range []string{"decode", "prefill"} {
		for rows := 1; rows <= 128; rows *= 2 {
			e := like
			e.Name, e.Kind, e.Rows, e.Run, e.Reach = fmt.Sprintf("%s/%d", kind, rows), kind, rows, min(rows, 8), rows
			e.Logits, e.Next, e.Candidates = e.Name+":logits", e.Name+":next", e.Name+":candidates"
			cost := plans.Cost{ReadBytes: 1 << 20, BytesPerPos: 1, Predicted: plans.Times{Bytes: float32(1e-3+3e-5*float64(rows)) / 400}}
			e.Dispatches = slices.Repeat([]plans.Dispatch{{Cost: cost}}, 400)
			p.Entries = append(p.Entries, e)
		}
	}
	toPages(p, 128*16)
	p.Header.Model.Vocab, p.Vocab.Tokens, p.Vocab.Types = vocab, nil, nil
	for i := range vocab {
		p.Vocab.Tokens = append(p.Vocab.Tokens, fmt.Sprint("t", i))
	}
	return p
}

// BenchmarkStep is what the host does for a step of 64 or 128 rows of 151,936 logits.
func BenchmarkStep(b *testing.B) {
	const vocab, most, distinct, steps = 151936, 128, 32, 4
	p := widePlan(vocab)
	tok, err := text.New(p.Vocab)
	if err != nil {
		b.Fatal(err)
	}
	x := &idle{fake: fake{plan: p}, logits: make([]float32, most*vocab), next: slices.Repeat([]int32{1000}, 256)}
	r := rand.New(rand.NewPCG(1, 2))
	var rows [distinct][ir.CandidateRow]int32
	for i := range most {
		row := x.logits[i*vocab:][:vocab]
		if i >= distinct {
			copy(row, x.logits[(i-distinct)*vocab:])
			continue
		}
		for k := range row {
			row[k] = float32(r.NormFloat64() * 2.5)
		}
		for range 30 {
			row[r.IntN(vocab)] += 20
		}
		ir.Candidates(row, rows[i][:])
	}
	for step := range steps {
		var all []int32
		for i := range most {
			all = append(all, rows[(7*step+i)%distinct][:]...)
		}
		x.candidates = append(x.candidates, all)
	}
	format, err := grammar.Regex(`[t0-8]*`)
	if err != nil {
		b.Fatal(err)
	}
	draw := func(q *engine.Request, i int) {
		q.Sampling = sample.Neutral()
		q.Sampling.Temp, q.Sampling.TopK, q.Sampling.TopP, q.Sampling.Seed = 0.7, 40, 0.95, uint64(i)
	}
	for _, c := range []struct {
		name string
		rows int
		set  func(q *engine.Request, i int)
	}{
		{"greedy", 64, func(*engine.Request, int) {}},
		{"greedy", 128, func(*engine.Request, int) {}},
		{"drawn", 64, draw},
		{"drawn", 128, draw},
		{"top-p", 64, func(q *engine.Request, i int) { draw(q, i); q.Sampling.TopK = 0 }},
		{"min-p", 64, func(q *engine.Request, i int) {
			draw(q, i)
			q.Sampling.TopK, q.Sampling.TopP, q.Sampling.MinP = 0, 1, 0.05
		}},
		{"penalties", 64, func(q *engine.Request, i int) { draw(q, i); q.Sampling.Repeat = 1.1 }},
		{"stops", 64, func(q *engine.Request, i int) { draw(q, i); q.Stops = []string{"\n\nHuman:", "###"} }},
		{"formats", 64, func(q *engine.Request, i int) {
			if draw(q, i); i%8 == 0 {
				q.Format = format
			}
		}},
		{"probabilities", 64, func(q *engine.Request, i int) {
			if draw(q, i); i%8 == 0 {
				q.TopLogprobs = 5
			}
		}},
	} {
		b.Run(fmt.Sprintf("%s/%d", c.name, c.rows), func(b *testing.B) {
			x.steps, x.open, x.gaps, x.hosts, x.ended, x.takes = 0, 0, nil, nil, time.Time{}, 2*time.Millisecond
			e, err := engine.New(p, x, tok, engine.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			b.ReportAllocs()
			b.ResetTimer()
			var wait sync.WaitGroup
			for i := range c.rows {
				q := engine.Request{Prompt: []int32{int32(i)}, Max: b.N + 1, TopLogprobs: -1, IgnoreEOG: true}
				c.set(&q, i)
				wait.Go(func() {
					for _, err := range e.Generate(context.Background(), q) {
						if err != nil {
							b.Error(err)
						}
					}
				})
			}
			wait.Wait()
			chosen := e.Stats().Chosen
			b.ReportMetric(float64(chosen[engine.ByLogits])/float64(b.N), "by-logits/op")
			b.ReportMetric(median(x.gaps), "gap-us")
			b.ReportMetric(median(x.hosts), "host-us")
		})
	}
}
