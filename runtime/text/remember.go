package text

import (
	"container/list"
	"context"
	"slices"
	"strings"
	"sync"
)

// Remember returns a context with which tokenizers remember the tokens of long texts, each of those between two special
// tokens: a conversation comes again with a little more behind it, and most of its messages were encoded before. How
// long encoding takes tells an owner nothing of what others have sent.
func Remember(ctx context.Context, owner string) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

type ownerKey struct{}

const (
	leastRemembered = 256      // bytes of a text; to look for a short one is not worth it
	mostRemembered  = 64 << 20 // bytes of all texts with their tokens
)

// memory is what a tokenizer remembers. It is safe for several goroutines.
type memory struct {
	mu    sync.Mutex
	known map[remembered]*list.Element
	order list.List // of *recollection, what was used last first
	bytes int
}

// remembered is a text, and what its tokens depend on beside it.
type remembered struct {
	owner, text string
	first       bool // as in model.encode
}

type recollection struct {
	remembered
	ids []int32
}

func (r *recollection) size() int { return len(r.owner) + len(r.text) + 4*len(r.ids) }

// find appends the tokens of a text that is known.
func (m *memory) find(ids []int32, of remembered) ([]int32, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.known[of]
	if e == nil {
		return ids, false
	}
	m.order.MoveToFront(e)
	return append(ids, e.Value.(*recollection).ids...), true
}

// keep notes the tokens of a text. Where all are too many bytes, those go that were not used for longest.
func (m *memory) keep(of remembered, ids []int32) {
	of.text = strings.Clone(of.text) // it is a part of a longer one, as a rule
	r := &recollection{of, slices.Clone(ids)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[of] != nil || r.size() > mostRemembered {
		return
	}
	if m.known == nil {
		m.known = map[remembered]*list.Element{}
	}
	m.known[of] = m.order.PushFront(r)
	for m.bytes += r.size(); m.bytes > mostRemembered; {
		last := m.order.Remove(m.order.Back()).(*recollection)
		delete(m.known, last.remembered)
		m.bytes -= last.size()
	}
}

// encodeText appends the tokens of a text that holds no special ones.
func (t *Tokenizer) encodeText(ctx context.Context, ids []int32, s string, first bool) ([]int32, error) {
	owner, remembers := ctx.Value(ownerKey{}).(string)
	of := remembered{owner, s, first}
	if remembers = remembers && len(s) >= leastRemembered; remembers {
		if ids, ok := t.memory.find(ids, of); ok {
			return ids, nil
		}
	}
	stop, n := cancelWith(ctx), len(ids)
	if ids = t.model.encode(ids, s, first, stop); stop.now() {
		return nil, ctx.Err()
	}
	if remembers {
		t.memory.keep(of, ids[n:])
	}
	return ids, nil
}
