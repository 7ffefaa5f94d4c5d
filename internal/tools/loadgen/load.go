package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
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
	behind int
	// shared: each prompt comes behind the same tokens, as many, of a system prompt. A first request, which is not
	// measured, brings them.
	shared int
	// agent: the requests are one conversation, turn by turn, of one user.
	agent   *agent
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
	if l.shared > 0 {
		f := c.generate(ctx, ask{prompt: l.behindShared(p, p.of(l.requests, l.prompt)), answer: firstAnswer, sampler: l.sampler})
		if f.err != nil {
			return res, fmt.Errorf("the first request: %w", f.err)
		}
	}
	start := time.Now()
	switch {
	case l.agent != nil:
		for i := 0; i < l.requests && ctx.Err() == nil; i++ {
			one(i)
		}
	case l.rate > 0:
		l.open(ctx, one)
	default:
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
	case l.agent != nil:
		return nil, l.agent.turn(ctx, c, p, i, a)
	case l.question != "":
		var err error
		if a.prompt, err = c.rendered(ctx, fmt.Sprintf(l.question, l.seed<<16+uint64(i))); err != nil {
			return nil, trace{err: err}
		}
		return nil, c.generate(ctx, a)
	case l.behind == 0:
		a.prompt = l.behindShared(p, p.of(i, l.prompt))
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

// behindShared puts a prompt behind what all have in common.
func (l load) behindShared(p *prompts, prompt []int32) []int32 {
	if l.shared == 0 {
		return prompt
	}
	return slices.Concat(p.of(-1, l.shared), prompt)
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

// agent is the conversation of a program that works with tools: each turn has all that was said before, the last
// answer, and what a tool gave.
type agent struct {
	first, tool int // tokens of the first prompt, and of what a tool gives
	forks       int // every so many turns it goes back by two turns and takes another way

	said []int32
	ends []int // of what was said, behind each turn
}

// turn asks turn number i.
func (g *agent) turn(ctx context.Context, c *client, p *prompts, i int, a ask) trace {
	switch {
	case i == 0:
		g.said, g.ends = p.of(0, g.first), nil
	case i%g.forks == 0 && len(g.ends) > 2:
		g.ends = g.ends[:len(g.ends)-2]
		g.said = append(g.said[:g.ends[len(g.ends)-1]:g.ends[len(g.ends)-1]], p.of(i, g.tool)...)
	default:
		g.said = append(g.said, p.of(i, g.tool)...)
	}
	a.prompt = g.said
	t := c.told(ctx, a)
	g.said = append(g.said, t.ids...)
	g.ends = append(g.ends, len(g.said))
	return t
}
