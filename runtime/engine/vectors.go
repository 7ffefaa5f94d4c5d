package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// Vectors makes vectors of texts for several users, on a plan whose model predicts no tokens. It reads one text at
// a time; texts of several requests take turns.
type Vectors struct {
	sess   *runtime.Session
	plan   *plans.Plan
	device string
	turn   chan struct{} // holds one value while the device is free

	life   context.Context // ends with the cause why nothing goes on
	end    context.CancelCauseFunc
	failed chan struct{}

	mu       sync.Mutex
	idle     sync.Cond // a request has ended
	draining bool
	active   int // requests
	stats    Stats
	err      error // of the device
}

// NewVectors serves the plan on the executor, which stays the caller's.
func NewVectors(plan *plans.Plan, exec runtime.Executor) (*Vectors, error) {
	if !runtime.Embeds(plan) {
		return nil, runtime.ErrNoVectors
	}
	v := &Vectors{sess: runtime.NewSession(plan, exec), plan: plan, device: exec.Device(), turn: make(chan struct{}, 1), failed: make(chan struct{})}
	v.idle.L = &v.mu
	v.life, v.end = context.WithCancelCause(context.Background())
	v.stats = Stats{Device: v.device, Ctx: plan.Header.Ctx, Memory: plan.Memory, Started: time.Now(), Requests: map[string]int64{}}
	v.turn <- struct{}{}
	return v, nil
}

// Width is the number of dimensions of a vector.
func (v *Vectors) Width() int { return runtime.VectorWidth(v.plan) }

// Embed returns the vectors of texts in their order. The error is a ContextError, a RequestError, ErrDraining,
// ErrClosed, the error of ctx, or an error of the model or the device.
func (v *Vectors) Embed(ctx context.Context, texts [][]int32) (all [][]float32, err error) {
	for _, ids := range texts {
		switch {
		case len(ids) == 0:
			return nil, &RequestError{"input", "has a text without tokens"}
		case len(ids) > v.plan.Header.Ctx:
			return nil, &ContextError{len(ids), v.plan.Header.Ctx}
		}
		for _, id := range ids {
			if id < 0 || int(id) >= v.plan.Header.Model.Vocab {
				return nil, &RequestError{"input", fmt.Sprintf("has token %d, the model has %d", id, v.plan.Header.Model.Vocab)}
			}
		}
	}
	if err := v.enter(); err != nil {
		return nil, err
	}
	defer func() { v.leave(err) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(v.life, func() { cancel(context.Cause(v.life)) })()
	for _, ids := range texts {
		one, err := v.embed(ctx, ids)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func (v *Vectors) embed(ctx context.Context, ids []int32) ([]float32, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-v.turn:
	}
	defer func() { v.turn <- struct{}{} }()
	one, err := v.sess.Embed(ctx, ids)
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case err == nil:
		v.stats.PromptTokens += int64(len(ids))
	case ctx.Err() == nil && !errors.Is(err, runtime.ErrNoDirection) && v.err == nil:
		v.err = err
		close(v.failed)
		v.end(err)
	}
	return one, err
}

func (v *Vectors) enter() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.life.Err() != nil:
		return context.Cause(v.life)
	case v.draining:
		return ErrDraining
	}
	v.active++
	return nil
}

func (v *Vectors) leave(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.active--
	reason := Stopped
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrClosed):
		reason = Cancelled
	case err != nil:
		reason = Failed
	}
	v.stats.Requests[reason]++
	v.idle.Broadcast()
}

// Generate refuses.
func (v *Vectors) Generate(context.Context, Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		err := runtime.NoTokens(v.plan)
		yield(Event{Done: &Done{Reason: Failed, Err: err}}, err)
	}
}

// Stats returns counters since the start.
func (v *Vectors) Stats() Stats {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.stats
	s.Waiting = max(0, v.active-1)
	slot := SlotStats{State: "idle"}
	if v.active > 0 {
		slot.State = "prompt"
	}
	s.Slots = []SlotStats{slot}
	s.Requests = map[string]int64{}
	for reason, n := range v.stats.Requests {
		s.Requests[reason] = n
	}
	return s
}

// Failed is closed when the device has failed, with the error that Err returns.
func (v *Vectors) Failed() <-chan struct{} { return v.failed }

// Err is the error with which the device has failed.
func (v *Vectors) Err() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.err
}

// Drain refuses new requests and waits for those that run; when ctx ends, it ends them.
func (v *Vectors) Drain(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.draining = true
	defer context.AfterFunc(ctx, func() { v.end(ErrClosed) })()
	for v.active > 0 {
		v.idle.Wait()
	}
	return ctx.Err()
}

// Close ends all requests and waits for them.
func (v *Vectors) Close() error {
	v.end(ErrClosed)
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.active > 0 {
		v.idle.Wait()
	}
	return nil
}
