package api

import (
	"container/list"
	"sync"
)

// A store keeps in memory what clients of Responses may refer to: those of late, as many as its bytes hold.
type store struct {
	mu    sync.Mutex
	room  int64
	used  int64
	order *list.List // the latest first
	byKey map[string]*list.Element
}

type kept struct {
	key   string
	items []inputItem
	bytes int64
}

// storeBytes is what a server keeps.
const storeBytes = 64 << 20

func newStore(bytes int64) *store {
	return &store{room: bytes, order: list.New(), byKey: map[string]*list.Element{}}
}

// put keeps items, which take so many bytes.
func (s *store) put(key string, items []inputItem, bytes int64) {
	bytes += 256 // of the entry itself
	if bytes > s.room {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.byKey[key]; old != nil {
		s.drop(old)
	}
	s.byKey[key] = s.order.PushFront(&kept{key, items, bytes})
	for s.used += bytes; s.used > s.room; {
		s.drop(s.order.Back())
	}
}

func (s *store) drop(e *list.Element) {
	k := s.order.Remove(e).(*kept)
	delete(s.byKey, k.key)
	s.used -= k.bytes
}

// get returns what was kept.
func (s *store) get(key string) ([]inputItem, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byKey[key]
	if e == nil {
		return nil, false
	}
	s.order.MoveToFront(e)
	return e.Value.(*kept).items, true
}
