package api

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zincc-dev/zincc/internal/progress"
)

// Served is a model that the server knows and may load.
type Served struct {
	Names []string // the first is what it is called in replies
	Path  string   // for people
	Ctx   int      // positions of a sequence
	Made  time.Time
	Bytes int64 // of memory that it needs, until its plan says so
	Open  func(ctx context.Context) (*Model, error)
	// Broken says why the model cannot be loaded; "": it may be.
	Broken string

	reading sync.Once
	read    *described // what its file says
}

// A pool keeps models loaded while they are used, as many as memory holds: the one that
// was not used for longest goes first.
type pool struct {
	memory int64 // bytes for all models; 0: no limit is known
	loaded func(m *loaded, took time.Duration)

	mu      sync.Mutex
	served  []*Served
	models  map[*Served]*loaded
	failed  map[*Served]error // of those that did not load when they were last asked for
	changed chan struct{}     // closed, and made anew, when room may have come or the state of a model has changed
	closed  bool

	life context.Context // of loads; ends with the pool
	end  context.CancelFunc
}

// loaded is a model in memory, or on its way there.
type loaded struct {
	served *Served
	model  *Model
	err    error
	ready  chan struct{}         // closed when model or err is there
	gone   chan struct{}         // closed when the model is unloaded
	stage  atomic.Pointer[stage] // on its way there
	users  int
	used   time.Time
	keep   *time.Duration // behind its last use; nil, or less than 0: until others need the memory
	expiry *time.Timer    // looks whether that is over; nil before its first
	// closing: it is on its way out of memory.
	closing bool
	// withdrawn: it is no longer served, and goes when nobody uses it.
	withdrawn bool
}

func newPool(served []*Served, memory int64) *pool {
	p := &pool{served: slices.Clone(served), memory: memory, models: map[*Served]*loaded{}, failed: map[*Served]error{}, changed: make(chan struct{})}
	p.life, p.end = context.WithCancel(context.Background())
	return p
}

// acquire returns the model, loaded, and what to call when it is no longer used. It waits
// until the model is loaded, or until others have freed memory for it.
func (p *pool) acquire(ctx context.Context, s *Served) (*Model, func(), error) {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, nil, errDraining
		}
		l := p.models[s]
		if l == nil || l.closing {
			fits, victim := p.room(s)
			if victim != nil {
				victim.closing = true
				p.mu.Unlock()
				err := p.unload(victim)
				if err != nil {
					return nil, nil, err
				}
				continue
			}
			if !fits || l != nil {
				wait := p.changed
				p.mu.Unlock()
				select {
				case <-ctx.Done():
					return nil, nil, context.Cause(ctx)
				case <-wait:
				}
				continue
			}
			l = &loaded{served: s, ready: make(chan struct{}), gone: make(chan struct{}), withdrawn: !slices.Contains(p.served, s)}
			p.models[s] = l
			// Whoever asked first may leave: others wait for the model, too.
			go p.load(l)
			p.changes()
		}
		l.users++
		l.used = time.Now()
		p.mu.Unlock()

		release := func() {
			p.mu.Lock()
			l.users--
			l.used = time.Now()
			p.mu.Unlock()
			p.wake()
			p.leave(l)
			p.expire(l)
		}
		select {
		case <-ctx.Done():
			release()
			return nil, nil, context.Cause(ctx)
		case <-l.ready:
		}
		if l.err != nil {
			release()
			return nil, nil, l.err
		}
		return l.model, release, nil
	}
}

// room says whether s fits beside what is loaded, and else which idle model goes first;
// no victim means that those in the way are in use.
func (p *pool) room(s *Served) (fits bool, victim *loaded) {
	if p.memory == 0 {
		return true, nil
	}
	sum := s.Bytes
	for _, l := range p.models {
		sum += l.bytes()
		if l.users == 0 && l.model != nil && !l.closing && (victim == nil || l.used.Before(victim.used)) {
			victim = l
		}
	}
	if sum <= p.memory || len(p.models) == 0 {
		return true, nil
	}
	return false, victim
}

// bytes is the memory that a model takes.
func (l *loaded) bytes() int64 {
	if l.model != nil && l.model.Memory != (Memory{}) {
		return l.model.Memory.total()
	}
	return l.served.Bytes
}

func (p *pool) load(l *loaded) {
	start := time.Now()
	model, err := l.served.Open(progress.With(p.life, l.watch))
	p.mu.Lock()
	l.model, l.err = model, err
	closed := p.closed
	if err != nil || closed {
		delete(p.models, l.served)
	}
	if delete(p.failed, l.served); err != nil && !closed {
		p.failed[l.served] = err
	}
	p.mu.Unlock()
	if closed {
		if err == nil {
			l.close()
		}
		l.err = errDraining
	}
	if p.loaded != nil {
		p.loaded(l, time.Since(start))
	}
	close(l.ready)
	p.wake()
	p.leave(l)
}

func (p *pool) unload(l *loaded) error {
	err := l.close()
	p.mu.Lock()
	delete(p.models, l.served)
	if l.expiry != nil {
		l.expiry.Stop()
	}
	p.mu.Unlock()
	p.wake()
	return err
}

func (l *loaded) close() error {
	close(l.gone)
	err := l.model.Engine.Close()
	if l.model.Close != nil {
		err = errors.Join(err, l.model.Close())
	}
	return err
}

// wake lets those look again who wait for memory, or for what models do.
func (p *pool) wake() {
	p.mu.Lock()
	p.changes()
	p.mu.Unlock()
}

// changes is wake for those who hold the lock.
func (p *pool) changes() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// each calls f with the models that are loaded, in the order in which they are served.
func (p *pool) each(f func(*Served, *Model)) {
	type pair struct {
		s *Served
		m *Model
	}
	var all []pair
	p.mu.Lock()
	for _, s := range p.served {
		if l := p.models[s]; l != nil && l.model != nil && !l.closing {
			all = append(all, pair{s, l.model})
		}
	}
	p.mu.Unlock()
	for _, a := range all {
		f(a.s, a.m)
	}
}

// close unloads all models and lets none be loaded any more.
func (p *pool) close() error {
	p.mu.Lock()
	p.closed = true
	p.end()
	var all []*loaded
	for s, l := range p.models {
		if l.model != nil && !l.closing {
			all = append(all, l)
			delete(p.models, s)
		}
	}
	p.mu.Unlock()
	p.wake()
	var err error
	for _, l := range all {
		err = errors.Join(err, l.close())
	}
	return err
}
