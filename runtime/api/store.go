package api

import (
	"container/list"
	"encoding/json"
	"reflect"
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
	reply json.RawMessage // of a response: itself
	own   []string        // of a response: the keys of its items
	bytes int64           // of all that, also where others hold it, too
}

// storeBytes is what a server keeps.
const storeBytes = 64 << 20

func newStore(bytes int64) *store {
	return &store{room: bytes, order: list.New(), byKey: map[string]*list.Element{}}
}

// put keeps an entry.
func (s *store) put(k kept) {
	const entryBytes = 256
	k.bytes = entryBytes + held(reflect.ValueOf(k))
	if k.bytes > s.room {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.byKey[k.key]; old != nil {
		s.drop(old)
	}
	s.byKey[k.key] = s.order.PushFront(&k)
	for s.used += k.bytes; s.used > s.room; {
		s.drop(s.order.Back())
	}
}

func (s *store) drop(e *list.Element) {
	k := s.order.Remove(e).(*kept)
	delete(s.byKey, k.key)
	s.used -= k.bytes
}

// get returns what was kept; nil: nothing.
func (s *store) get(key string) *kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byKey[key]
	if e == nil {
		return nil
	}
	s.order.MoveToFront(e)
	return e.Value.(*kept)
}

// remove forgets a response and its items.
func (s *store) remove(k *kept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range append(k.own, k.key) {
		if e := s.byKey[key]; e != nil {
			s.drop(e)
		}
	}
}
