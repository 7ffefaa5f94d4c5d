package text

import (
	"container/list"
	"context"
	"slices"
	"sort"
	"strings"
	"sync"
)

// Remember returns a context with which tokenizers remember the tokens of texts, each of those between two special
// tokens: a conversation comes again with a little more behind it, and most of its messages were encoded before. Of a
// text that begins as a longer one did, such as a conversation whose template has no special tokens, only what is
// behind that is encoded. How long encoding takes tells an owner of others at most how much they have sent.
func Remember(ctx context.Context, owner string) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

type ownerKey struct{}

const (
	leastRemembered = 32       // bytes of a text; shorter ones are encoded as soon as they are found
	eachRemembered  = 256      // bytes that a text takes beside those of its own and of its tokens
	mostRemembered  = 64 << 20 // bytes of all texts with their tokens
	mostCompared    = 64       // texts that a new one is compared with, at most
)

// memory is what a tokenizer remembers. It is safe for several goroutines.
type memory struct {
	mu    sync.Mutex
	known map[remembered]*list.Element
	order list.List // of *recollection, what was used last first
	bytes int
	// begins has those with marks by how they begin, those that came last behind.
	begins map[beginning][]*recollection
}

// beginning is that of a text with marks, and whose it is.
type beginning struct{ owner, text string }

// remembered is a text, and what its tokens depend on beside it.
type remembered struct {
	owner, text string
	first       bool // as in model.encode
}

type recollection struct {
	remembered
	ids   []int32
	marks []mark
}

// beginning is that of a text of at least markEvery bytes.
func (r *remembered) beginning() beginning { return beginning{r.owner, r.text[:markEvery]} }

func (r *recollection) size() int { return eachRemembered + len(r.owner) + len(r.text) + 4*len(r.ids) }

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
func (m *memory) keep(of remembered, ids []int32, marks []mark) {
	of.text = strings.Clone(of.text) // it is a part of a longer one, as a rule
	r := &recollection{of, slices.Clone(ids), marks}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[of] != nil || r.size() > mostRemembered {
		return
	}
	if m.known == nil {
		m.known, m.begins = map[remembered]*list.Element{}, map[beginning][]*recollection{}
	}
	if m.known[of] = m.order.PushFront(r); len(marks) > 0 {
		m.begins[r.beginning()] = append(m.begins[r.beginning()], r)
	}
	for m.bytes += r.size(); m.bytes > mostRemembered; {
		last := m.order.Remove(m.order.Back()).(*recollection)
		delete(m.known, last.remembered)
		m.bytes -= last.size()
		if len(last.marks) > 0 {
			m.drop(last)
		}
	}
}

// drop takes a text with marks from those that begin as it does. The key of the others is a part of one of them, for it
// keeps the whole text in memory.
func (m *memory) drop(last *recollection) {
	b := last.beginning()
	rest := slices.DeleteFunc(m.begins[b], func(r *recollection) bool { return r == last })
	if delete(m.begins, b); len(rest) > 0 {
		m.begins[rest[0].beginning()] = rest
	}
}

// begin appends the tokens of the beginning of a text, up to the last mark where it can go on behind a text that is
// known, and returns the marks up to there.
func (m *memory) begin(ids []int32, of remembered) ([]int32, []mark) {
	if len(of.text) < markEvery {
		return ids, nil
	}
	var best *recollection
	m.mu.Lock()
	defer m.mu.Unlock()
	n, most, compared := 0, 0, 0 // most is how many bytes of a text were the same so far
	for _, r := range slices.Backward(m.begins[of.beginning()]) {
		if most == len(of.text) || compared == mostCompared {
			break
		}
		if len(r.text) <= most || r.text[most] != of.text[most] {
			continue
		}
		compared++
		common := alike(r.text, of.text)
		most = max(most, common)
		if k := sort.Search(len(r.marks), func(i int) bool { return r.marks[i].seen > common }); k > n {
			best, n = r, k
		}
	}
	if n == 0 {
		return ids, nil
	}
	return append(ids, best.ids[:best.marks[n-1].ids]...), best.marks[:n:n]
}

// alike is how many bytes two texts begin with that are the same.
func alike(a, b string) (n int) {
	for step := markEvery; step > 0; {
		if to := n + step; to <= min(len(a), len(b)) && a[n:to] == b[n:to] {
			n = to
		} else {
			step /= 2
		}
	}
	return n
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
	var marks []mark
	if m, ok := t.model.(*bpe); ok && remembers {
		at := 0
		if ids, marks = t.memory.begin(ids, of); len(marks) > 0 {
			at = marks[len(marks)-1].at
		}
		known, more := len(ids)-n, []mark(nil)
		ids, more = m.encodeMarked(ids, s[at:], stop)
		for _, k := range more {
			marks = append(marks, mark{at + k.at, known + k.ids, at + k.seen})
		}
	} else {
		ids = t.model.encode(ids, s, first, stop)
	}
	if stop.now() {
		return nil, ctx.Err()
	}
	if remembers {
		t.memory.keep(of, ids[n:], marks)
	}
	return ids, nil
}
