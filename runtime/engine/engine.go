// Package engine serves one plan to several users. One goroutine owns the device. It decodes all sequences in steps of
// several rows, which read short prompts, too. Others it reads piece by piece between these steps. A slot keeps its
// tokens for later prompts that begin alike; package cache knows which do.
//
// # The same answer
//
// Decode entries of all widths give the same bits, so other sequences in a step make no difference. Only positions
// decide where a prompt is cut, never load: at the ends of pieces, which follow from the predicted times of the plan
// and Options.ITL. So other requests make no difference either. A request reuses what its own owner's requests left in
// any slot, up to a cut that a prompt was read to, and in its own slot up to a multiple of the grain behind that: all
// before was written in the same pieces, so the answer has the same bits as without any cache. What was generated
// behind it is read again as a part of the prompt, since decode entries write other last bits than those of prompts.
// Another slot's rows are copied on the device.
//
// What is left of a short prompt is read in decode entries, too, beside the rows of others. How short it must be
// follows from predicted times alone.
//
// Rows of tokens that are guessed, since a text repeats itself, have these bits, too. They count as far as the guesses
// are what is chosen.
//
// Of wide entries that are alike any may read any rows that begin at a multiple of their grain, also those of several
// prompts: they give them the same bits. So which one does, and how many rows a step has, depends on load and time.
//
// Models with recurrent state go on only where a state is kept, and steps end there: at the last cut within
// Request.Turn, where a second prompt parts from a first, and 4,096 positions behind the last one. Models whose layers
// see a window, with caches in pages, go on where a slot still has the pages that the next row sees: where its prompt
// ended, and where that parted from others.
//
// So a request with a seed has one answer. All this holds for one plan, device and driver, and one bound ITL.
//
// Options.ReuseAnswers is an exception that a program declares. There the next turn of a conversation, a prompt that
// begins with an earlier one up to its Turn, goes on from where both agree, within the answer, too, and prompts of
// models with recurrent state are also cut at Request.Turn. Then an answer depends on whether its slot was kept.
package engine

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/cache"
	"github.com/zincc-dev/zincc/runtime/grammar"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// What Generate refuses a request with.
var (
	ErrQueueFull = errors.New("too many requests are waiting")
	ErrDraining  = errors.New("the server takes no new requests")
	ErrClosed    = errors.New("the engine is closed")
	// ErrQueueTimeout ends a request that has waited for Options.Patience.
	ErrQueueTimeout = errors.New("no slot became free in time")
)

// Unhurried is an Options.ITL for programs with one user, where nobody waits for a token while a prompt is
// read. Drivers may take longer submissions for a hanging device.
const Unhurried = 500 * time.Millisecond

// Options of an engine. The zero value is good.
type Options struct {
	// ITL bounds the time between two tokens of a sequence while prompts are read; 0: 50 ms. One user
	// is served better with Unhurried.
	ITL time.Duration
	// Queue is how many requests may wait for a slot; 0: 256.
	Queue int
	// Patience is how long a request may wait for a slot; 0: without end.
	Patience time.Duration
	// ReuseAnswers lets the next turn of a conversation go on from the answer that its slot holds. It computes less;
	// its answer may have other bits than that of the same request elsewhere.
	ReuseAnswers bool
	// NoDrafts has each step of a sequence choose one token, also where its text repeats itself.
	NoDrafts bool
	// Keeper keeps what prompts have left in slots, of this plan alone; nil: nothing is kept.
	Keeper Keeper
	// Watch is told what slots hold of prompts; nil: nobody looks.
	Watch cache.Watcher
}

// Engine runs requests on a plan.
type Engine struct {
	plan *plans.Plan
	exec runtime.Executor
	tok  *text.Tokenizer
	o    Options

	wake    chan struct{} // holds something when the loop should look
	stopped chan struct{} // closed when the loop has ended
	failed  chan struct{} // closed when the executor has failed

	mu       sync.Mutex
	waiting  []*seq // by priority, then first come
	active   int    // waiting or in a slot
	draining bool
	closing  error // why sequences are to end now
	err      error // of the executor
	idle     chan struct{}
	stats    Stats

	vocabulary func() *grammar.Vocabulary // made when it is asked for first

	loop // touched by the loop alone
}

type scored = sample.Scored

// New starts an engine. The executor is its own until Close, which leaves it open.
func New(plan *plans.Plan, exec runtime.Executor, tok *text.Tokenizer, o Options) (*Engine, error) {
	if runtime.Embeds(plan) {
		return nil, runtime.NoTokens(plan)
	}
	if o.ITL == 0 {
		o.ITL = 50 * time.Millisecond
	}
	if o.Queue == 0 {
		o.Queue = 256
	}
	e := &Engine{plan: plan, exec: exec, tok: tok, o: o,
		wake: make(chan struct{}, 1), stopped: make(chan struct{}), failed: make(chan struct{})}
	e.vocabulary = sync.OnceValue(func() *grammar.Vocabulary { return grammar.FromTokenizer(tok, plan.Header.Model.Vocab, tok.EOG()) })
	var err error
	if e.prompts, err = newPrompts(plan, o.ITL); err != nil {
		return nil, err
	}
	e.costs, e.tree = newCosts(plan, e.prompts.alike), newTree(plan, e.prompts, o.Watch)
	e.drafted = newCosts(plan, nil)
	e.turns, e.decided, e.waits = turns{}, zeros[int64](reuses), zeros[int64](promptWaits)
	e.chosen = zeros[int64](choices)
	e.kept = newKept(o, plan, exec, e.prompts)
	e.recurrent = plan.Memory.Recurrent()
	if x, ok := exec.(runtime.Overlapping); ok {
		e.overlaps = x.Overlaps()
		e.guides = e.overlaps && plan.Program.Global(ir.StepMask) != nil
	}
	if plan.Paged() != nil {
		e.pages = e.newPages()
		e.putTables()
	}
	for i := range plan.Header.Slots {
		e.slots = append(e.slots, &slot{index: i})
	}
	e.stats = newStats(plan, exec)
	go e.run()
	return e, nil
}

// Generate continues a prompt. The last event has Done, with an error if and only if the request was
// refused (by a RequestError, ContextError, sample.Error, ErrQueueFull, ErrDraining, ErrClosed) or
// failed. Cancelling ctx ends it at the next step, and so does leaving the loop.
func (e *Engine) Generate(ctx context.Context, r Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer e.look()
		defer cancel(nil)
		s, err := e.submit(ctx, &r)
		if err != nil {
			yield(Event{Done: &Done{Reason: Failed, Err: err}}, err)
			return
		}
		defer context.AfterFunc(ctx, e.look)()
		e.reply(s, cancel, yield)
	}
}

// errStopped ends a sequence whose answer has a stop text.
var errStopped = errors.New("stopped")

// Answer writes the text of an answer to w as it comes. It returns the end of the answer, or an error of the
// request or of w, or the cause of ctx.
func (e *Engine) Answer(ctx context.Context, r Request, w io.Writer) (*Done, error) {
	for ev, err := range e.Generate(ctx, r) {
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(w, ev.Text); err != nil {
			return nil, err
		}
		if ev.Done != nil && ev.Done.Reason != Cancelled {
			return ev.Done, nil
		}
	}
	return nil, cmp.Or(context.Cause(ctx), ErrClosed)
}

// reply makes events of what the engine chooses.
func (e *Engine) reply(s *seq, cancel func(error), yield func(Event, error) bool) {
	out := newReply(e.tok, s.req)
	tokens, stopped := 0, false
	var list []choice
	for range s.out.signal {
		var done *Done
		list, done = s.out.take(list)
		for _, c := range list {
			if stopped {
				break
			}
			if stopped = out.add(e.token(c, s.req.Special), c.reasoning); stopped {
				cancel(errStopped)
			}
		}
		ev := out.take(stopped || done != nil)
		tokens += len(ev.Tokens)
		if done == nil {
			if (ev.Text != "" || len(ev.Tokens) > 0) && !yield(ev, nil) {
				return
			}
			continue
		}
		last := *done
		if stopped && last.Err == nil {
			last.Reason, last.Stop, last.Drained, last.Usage.Completion = Stopped, out.stop, false, tokens
		}
		ev.Done = &last
		yield(ev, last.Err)
		return
	}
}

func (e *Engine) token(c choice, special bool) Token {
	t := Token{ID: c.id, Text: e.tok.Piece(c.id, special), Logprob: c.logprob}
	for _, a := range c.top {
		t.Top = append(t.Top, Alternative{a.ID, e.tok.Piece(a.ID, true), a.Logprob})
	}
	return t
}

// submit puts a request into the queue.
func (e *Engine) submit(ctx context.Context, r *Request) (*seq, error) {
	if err := e.check(r); err != nil {
		return nil, err
	}
	if r.Turn == 0 {
		r.Turn = len(r.Prompt)
	}
	s := newSeq(ctx, r, e.tok)
	if e.mayDraft(r) {
		s.guess = newGuesses(r.Prompt)
	}
	if r.Format != nil {
		p := allowed(r.Sampling, e.tok.Suppressed())
		s.format = newFormat(r, e.vocabulary(), p.Greedy())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.err != nil:
		return nil, e.err
	case e.closing != nil:
		return nil, ErrClosed
	case e.draining:
		return nil, ErrDraining
	case len(e.waiting) >= e.o.Queue:
		return nil, ErrQueueFull
	}
	at := len(e.waiting)
	for at > 0 && e.waiting[at-1].req.Priority < r.Priority {
		at--
	}
	e.waiting = slices.Insert(e.waiting, at, s)
	e.active++
	e.look()
	return s, nil
}

// look makes the loop look for what is new.
func (e *Engine) look() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Drain refuses new requests and waits until all have ended. When ctx ends, requests that still run
// end with Length and Drained.
func (e *Engine) Drain(ctx context.Context) error {
	e.mu.Lock()
	e.draining = true
	if e.active == 0 {
		e.mu.Unlock()
		return nil
	}
	if e.idle == nil {
		e.idle = make(chan struct{})
	}
	idle := e.idle
	e.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	e.shut(errDrained)
	<-e.stopped
	return ctx.Err()
}

// errDrained ends sequences at the end of Drain.
var errDrained = errors.New("drained")

// Close ends all requests as cancelled and waits for the step that runs.
func (e *Engine) Close() error {
	e.shut(ErrClosed)
	<-e.stopped
	return nil
}

func (e *Engine) shut(why error) {
	e.mu.Lock()
	if e.closing == nil {
		e.closing = why
	}
	e.mu.Unlock()
	e.look()
}

// Failed is closed when the executor has failed; Err then says how.
func (e *Engine) Failed() <-chan struct{} { return e.failed }

// Err is the error with which the executor failed, nil while it works.
func (e *Engine) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}
