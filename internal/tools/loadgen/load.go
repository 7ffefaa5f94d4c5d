package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// load says what is asked of a server, and when.
type load struct {
	users    int     // closed loop: each asks again when it has its answer
	rate     float64 // open loop: requests a second, a Poisson process; 0 for a closed loop
	requests int
	limit    time.Duration // then nothing more is asked, and what runs is given up

	prompt, answer int // tokens
	// behind: each request is a conversation. Its first turn has a prompt of so many tokens and
	// is not measured; the second continues it with the answer and a prompt.
	behind  int
	sampler sampler
	schema  json.RawMessage // of the answers; nil: any text
	// question: each prompt is this with a number at its %d, as the model's chat template writes it; "": prompts are
	// drawn.
	question string
	seed     uint64
}

// firstAnswer is the number of tokens that a first turn is answered with.
const firstAnswer = 16

// result is what came of a load.
type result struct {
	traces     []trace // of what ended, in the order in which it did
	first      []trace // of first turns
	unfinished int     // given up at the limit
	wall       time.Duration
}

// run puts the load on the server. progress is called behind each request.
func (l load) run(ctx context.Context, c *client, p *prompts, progress func()) (*result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.limit, errLimit)
	defer cancel()
	res := &result{}
	var mu sync.Mutex
	one := func(i int) {
		first, t := l.request(ctx, c, p, i)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case ctx.Err() != nil && t.err != nil:
			res.unfinished++
		default:
			res.traces = append(res.traces, t)
			if first != nil {
				res.first = append(res.first, *first)
			}
		}
		progress()
	}
	start := time.Now()
	if l.rate > 0 {
		l.open(ctx, one)
	} else {
		l.closed(ctx, one)
	}
	res.wall = time.Since(start)
	if err := context.Cause(ctx); err != nil && err != errLimit {
		return res, err
	}
	return res, nil
}

type limitError struct{}

func (limitError) Error() string { return "the time is up" }

var errLimit = limitError{}

// closed keeps the number of requests under way at that of the users.
func (l load) closed(ctx context.Context, one func(i int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(l.users, l.requests) {
		wg.Go(func() {
			for i := range next {
				one(i)
			}
		})
	}
	for i := 0; i < l.requests && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
}

// open starts requests at times that do not depend on how long answers take.
func (l load) open(ctx context.Context, one func(i int)) {
	var wg sync.WaitGroup
	start := time.Now()
	for i, at := range l.arrivals() {
		select {
		case <-time.After(time.Until(start.Add(at))):
			wg.Go(func() { one(i) })
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
	}
	wg.Wait()
}

// arrivals are the times of a Poisson process: the gaps between them are exponential. The first
// is at 0.
func (l load) arrivals() []time.Duration {
	r := rand.New(rand.NewPCG(l.seed, 0))
	all := make([]time.Duration, l.requests)
	at := 0.0
	for i := range all {
		all[i] = time.Duration(at * float64(time.Second))
		at += r.ExpFloat64() / l.rate
	}
	return all
}

// request asks request number i; first is the first turn of a conversation.
func (l load) request(ctx context.Context, c *client, p *prompts, i int) (first *trace, t trace) {
	a := ask{answer: l.answer, sampler: l.sampler, schema: l.schema, seed: uint32(l.seed) + uint32(i)}
	switch {
	case l.question != "":
		var err error
		said := []message{{Role: "user", Content: fmt.Sprintf(l.question, l.seed<<16+uint64(i))}}
		if a.prompt, err = c.rendered(ctx, said, map[string]bool{"enable_thinking": false}); err != nil {
			return nil, trace{err: err}
		}
		return nil, c.generate(ctx, a)
	case l.behind == 0:
		a.prompt = p.of(i, l.prompt)
		return nil, c.generate(ctx, a)
	}
	// Prompts of second turns come behind those of first turns.
	said := p.of(i, l.behind)
	f := c.told(ctx, ask{prompt: said, answer: firstAnswer, sampler: l.sampler, seed: a.seed})
	if f.err != nil {
		return &f, f
	}
	a.prompt = append(append(said, f.ids...), p.of(l.requests+i, l.prompt)...)
	return &f, c.generate(ctx, a)
}

// told is generate with the ids of the answer's tokens.
func (c *client) told(ctx context.Context, a ask) trace {
	a.ids = true
	t := c.generate(ctx, a)
	if t.err == nil && len(t.ids) != t.completion { // the server tells no ids: what a client can know is the text
		t.ids, t.err = c.tokenize(ctx, t.text)
	}
	return t
}
