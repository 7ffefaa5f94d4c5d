package api

import (
	"context"
	"errors"
	"sync"
	"time"
)

// lastWords is the time that clients have to read the ends of answers that a drain cuts short.
const lastWords = 250 * time.Millisecond

// calls are those that a drain waits for.
type calls struct {
	mu   sync.Mutex
	all  map[*call]bool
	none chan struct{} // closed when the last one ends, if somebody waits
}

func (a *calls) add(c *call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = map[*call]bool{}
	}
	a.all[c] = true
}

func (a *calls) remove(c *call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.all, c)
	if len(a.all) == 0 && a.none != nil {
		close(a.none)
		a.none = nil
	}
}

// wait waits until no call is left.
func (a *calls) wait(ctx context.Context) error {
	a.mu.Lock()
	if len(a.all) == 0 {
		a.mu.Unlock()
		return nil
	}
	if a.none == nil {
		a.none = make(chan struct{})
	}
	none := a.none
	a.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// cut gives up the connections of all calls that are left: neither do they read nor does anybody read what they write.
func (a *calls) cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.all {
		c.cancel(errDraining)
		c.w.give()
	}
}

var errBusy = errors.New("a step still runs on the device")

// Drain lets no new request in, waits for those that run until ctx ends, cuts their answers short then, and unloads all
// models. It returns soon after the end of ctx, at most lastWords and a second, and then with an error: a device is
// still busy.
func (s *Server) Drain(ctx context.Context) error {
	s.draining.Store(true)
	end := context.AfterFunc(ctx, func() {
		time.Sleep(lastWords)
		s.calls.cut()
	})
	defer end()
	ended := make(chan error, 1)
	go func() {
		var all sync.WaitGroup
		s.pool.each(func(_ *Served, m *Model) {
			all.Go(func() { m.Engine.Drain(ctx) })
		})
		all.Wait()
		s.calls.wait(context.Background())
		ended <- s.pool.close()
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(lastWords + time.Second):
		return errBusy
	}
}
