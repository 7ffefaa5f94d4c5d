package keep

import (
	"container/list"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory keeps what engines have of prompts in the host's memory, as long as the process runs. Beyond a number of bytes
// those go that were not used for longest. It is for several goroutines.
type Memory struct {
	most int64

	mu    sync.Mutex
	all   held
	plans map[string]held // by what their names begin with, up to the first -
	known map[string]*list.Element
	order list.List // of *remembered, what was used last first
}

// held is how much is kept.
type held struct {
	pieces int
	bytes  int64
}

type remembered struct {
	name string
	data []byte
	used time.Time
}

// NewMemory returns one of so many bytes at most.
func NewMemory(most int64) *Memory {
	return &Memory{most: most, known: map[string]*list.Element{}, plans: map[string]held{}}
}

// Has says whether something is kept under a name.
func (m *Memory) Has(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[name] != nil
}

// Read returns what is kept under a name, which nobody may change; nil if there is nothing of that length.
func (m *Memory) Read(name string, bytes int64) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.known[name]
	if e == nil {
		return nil
	}
	r := e.Value.(*remembered)
	r.used = time.Now()
	m.order.MoveToFront(e)
	if int64(len(r.data)) != bytes {
		return nil
	}
	return r.data
}

// Write keeps a copy of data under a name.
func (m *Memory) Write(name string, data []byte) {
	if int64(len(data)) > m.most {
		return
	}
	r := &remembered{name, slices.Clone(data), time.Now()}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.known[name]; e != nil {
		m.drop(e)
	}
	m.known[name] = m.order.PushFront(r)
	for m.count(r, 1); m.all.bytes > m.most; {
		m.drop(m.order.Back())
	}
}

func (m *Memory) drop(e *list.Element) {
	r := m.order.Remove(e).(*remembered)
	delete(m.known, r.name)
	m.count(r, -1)
}

// count notes that there is one more, or one less.
func (m *Memory) count(r *remembered, n int) {
	plan, _, _ := strings.Cut(r.name, "-")
	h := m.plans[plan]
	for _, h := range []*held{&m.all, &h} {
		h.pieces, h.bytes = h.pieces+n, h.bytes+int64(n*len(r.data))
	}
	m.plans[plan] = h
}

// Use notes that what is kept under the names was wanted so long ago, the first most.
func (m *Memory) Use(names []string, ago time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := time.Now().Add(-ago)
	next := m.order.Front() // of what was used before, and not by this call
	for next != nil && next.Value.(*remembered).used.After(at) {
		next = next.Next()
	}
	for _, name := range names {
		e := m.known[name]
		if e == nil {
			continue
		}
		e.Value.(*remembered).used = at
		switch {
		case e == next:
			next = next.Next() // it is in its place
		case next == nil:
			m.order.MoveToBack(e)
		default:
			m.order.MoveBefore(e, next)
		}
	}
}

// held is how much is kept of a plan.
func (m *Memory) held(plan string) held {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.plans[plan]
}
