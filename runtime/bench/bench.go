// Package bench measures how fast a plan runs, by llama-bench's tests: pp, the
// tokens a second of a prompt, and tg, of generation, each at a depth, the number
// of tokens that the sequence has before. Tokens are random but always the same;
// tokenizing and sampling are not measured. Generated tokens are the most likely
// ones, chosen on the device, runtime.Burst of them in a submission.
package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// Test is one row of llama-bench: either a prompt or a generation.
type Test struct {
	Prompt int // tokens
	Gen    int // tokens
	Depth  int // tokens before
}

// String is llama-bench's name of the test, such as "tg64 @ d1024".
func (t Test) String() string {
	s := fmt.Sprintf("pp%d", t.Prompt)
	if t.Gen > 0 {
		s = fmt.Sprintf("tg%d", t.Gen)
	}
	if t.Depth > 0 {
		s += fmt.Sprintf(" @ d%d", t.Depth)
	}
	return s
}

// Result is the outcome of a test over its repetitions.
type Result struct {
	Rate      float64 // tokens a second, mean
	Deviation float64 // standard deviation of a sample
	// Bytes is what one repetition reads at least: weights and activations that
	// the plan counts, and the cached keys and values.
	Bytes     int64
	Bandwidth float64 // Bytes over time, bytes a second, mean
	// Roofline is the share of the time that the plan's bytes and operations take at the
	// target's rates, without stages: 1 is the best there is; 0 where the target has no
	// rates.
	Roofline float64
	Stages   int // between barriers, of one repetition
}

// Tests lists the tests for all combinations of a length and a depth.
func Tests(prompts, gens, depths []int) []Test {
	var list []Test
	for _, d := range depths {
		for _, p := range prompts {
			if p > 0 {
				list = append(list, Test{Prompt: p, Depth: d})
			}
		}
		for _, g := range gens {
			if g > 0 {
				list = append(list, Test{Gen: g, Depth: d})
			}
		}
	}
	return list
}

// Check says whether the plan has room for the test.
func Check(plan *plans.Plan, t Test) error {
	if need := t.Prompt + t.Gen + t.Depth; need > plan.Header.Ctx {
		return fmt.Errorf("%s takes %d positions and the plan's context is %d; compile with --ctx %d or more", t, need, plan.Header.Ctx, need)
	}
	return nil
}

// warmUp is how long a test runs before its time counts. A GPU that was idle runs its first tenths of a second at a
// fraction of its clock (docs/lab/cuda.md, an idle card).
const warmUp = 500 * time.Millisecond

// Run measures one test. Runs that warm up, one or more, do not count.
func Run(ctx context.Context, plan *plans.Plan, exec runtime.Executor, t Test, repeats int) (Result, error) {
	if err := Check(plan, t); err != nil {
		return Result{}, err
	}
	c := &counter{Executor: exec}
	sess := runtime.NewSession(plan, c)
	c.session = sess
	rng := rand.New(rand.NewPCG(1, 1))
	tokens := func(n int) []int32 {
		list := make([]int32, n)
		for i := range list {
			list[i] = int32(rng.IntN(plan.Header.Model.Vocab))
		}
		return list
	}
	before := tokens(t.Depth)
	fill := func() error {
		if t.Depth == 0 {
			return nil
		}
		sess.Reset()
		_, err := sess.Prefill(ctx, before, 0)
		return err
	}
	if err := fill(); err != nil {
		return Result{}, err
	}
	prompt, first := tokens(t.Prompt), tokens(1)[0]
	once := func() error {
		if t.Prompt > 0 {
			_, err := sess.Prefill(ctx, prompt, 0)
			return err
		}
		next := first
		for left := t.Gen; left > 0; {
			n := min(left, runtime.Burst)
			out, err := sess.Decode(ctx, next, n)
			if err != nil {
				return err
			}
			next = out[n-1]
			left -= n
		}
		return nil
	}
	start, err := sess.Save(ctx)
	if err != nil {
		return Result{}, err
	}
	defer start.Free()
	var r Result
	var rates []float64
	for warmed := time.Duration(0); len(rates) < repeats; {
		c.runs = c.runs[:0]
		began := time.Now()
		if err := once(); err != nil {
			return r, err
		}
		took, did := time.Since(began), c.work()
		back := fill
		if sess.Holds(start) {
			back = func() error { return sess.Restore(ctx, start) }
		}
		if err := back(); err != nil {
			return r, err
		}
		if warmed < warmUp {
			warmed += took
			continue
		}
		s := took.Seconds()
		rates = append(rates, float64(t.Prompt+t.Gen)/s)
		r.Bytes, r.Stages = did.bytes, did.stages
		r.Bandwidth += float64(did.bytes) / s / float64(repeats)
		r.Roofline += did.roofline / s / float64(repeats)
	}
	r.Rate, r.Deviation = meanDeviation(rates)
	return r, nil
}

// counter notes which entries run, and where. What that takes is added up later: a token's dispatches take as long to
// count as some of them to run.
type counter struct {
	runtime.Executor
	session *runtime.Session
	runs    []run
}

// run is an entry that ran so many times in a row, at first behind so many positions.
type run struct {
	entry         *plans.Entry
	before, times int
}

// work is what the entries that ran must read, and how long that and their operations take at best.
type work struct {
	bytes    int64
	roofline float64 // seconds
	stages   int
}

func (c *counter) Submit(ctx context.Context, launches ...runtime.Launch) (runtime.Ticket, error) {
	for _, l := range launches {
		c.runs = append(c.runs, run{l.Entry, c.session.Len(), l.Times})
	}
	return c.Executor.Submit(ctx, launches...)
}

func (c *counter) work() (w work) {
	for _, r := range c.runs {
		for i := range r.times {
			read, _, _ := r.entry.Work(r.before + i)
			best := r.entry.Predict(r.before + i)
			w.bytes += read
			w.roofline += best.Bytes + best.Operations
			w.stages += r.entry.Stages()
		}
	}
	return w
}

func meanDeviation(x []float64) (mean, deviation float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	if len(x) < 2 {
		return mean, 0
	}
	for _, v := range x {
		deviation += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(deviation / float64(len(x)-1))
}
