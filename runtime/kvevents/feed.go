package kvevents

import (
	"sync"

	"github.com/zincc-dev/zincc/runtime/cache"
)

// mostBlock is how many tokens a block has at most: as many as vLLM's and llm-d's have unless they are told otherwise.
const mostBlock = 16

// Feed is what one model's engine tells. It is a cache.Watcher, and never makes the engine wait: what does not fit the
// queue is dropped. Routers see that as a gap of the sequence numbers, behind which the feed begins anew.
type Feed struct {
	p     *Publisher
	topic string
	root  string // of hashes: the model

	mu    sync.Mutex
	queue []change
	lost  bool // the queue was full; nothing is taken until it is told
	over  bool

	// Touched by the publisher alone.
	block  int
	pieces map[uint64]piece
}

// change is what the engine told.
type change struct {
	stored  *cache.Piece
	removed uint64
	cuts    []int // if not nil
}

// piece is what routers know of a piece.
type piece struct {
	hashes []uint64
	end    uint64 // the last block up to the piece's end
}

// mostChanges bounds the queue of a feed.
const mostChanges = 1 << 14

// Cuts implements cache.Watcher.
func (f *Feed) Cuts(cuts []int) { f.put(change{cuts: cuts}) }

// Stored implements cache.Watcher.
func (f *Feed) Stored(p cache.Piece) { f.put(change{stored: &p}) }

// Removed implements cache.Watcher.
func (f *Feed) Removed(id uint64) { f.put(change{removed: id}) }

// Close says that the model holds nothing any more.
func (f *Feed) Close() {
	f.put(change{cuts: []int{}})
	f.mu.Lock()
	f.over = true
	f.mu.Unlock()
}

func (f *Feed) put(c change) {
	f.mu.Lock()
	switch {
	case len(f.queue) < mostChanges && !f.lost:
		f.queue = append(f.queue, c)
	case c.cuts != nil: // a new beginning, or the end
		f.queue, f.lost = []change{c}, false
	default:
		f.lost = true
		f.p.dropped.Add(1)
	}
	f.mu.Unlock()
	select {
	case f.p.wake <- struct{}{}:
	default:
	}
}

// take returns what was told since the last time, and whether something was lost behind it.
func (f *Feed) take() (list []change, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list, lost = f.queue, f.lost
	f.queue, f.lost = nil, false
	return list, lost
}

// events makes events of changes.
func (f *Feed) events(list []change) (events []event) {
	for _, c := range list {
		switch {
		case c.cuts != nil:
			f.block, f.pieces = blockOf(c.cuts), map[uint64]piece{}
			events = append(events[:0], event{name: "AllBlocksCleared"})
		case c.stored != nil:
			if e, ok := f.stored(c.stored); ok {
				events = append(events, e)
			}
		default:
			if p := f.pieces[c.removed]; len(p.hashes) > 0 {
				events = append(events, event{name: "BlockRemoved", hashes: p.hashes})
			}
			delete(f.pieces, c.removed)
		}
	}
	return events
}

// stored is the event of a piece; none if routers do not know the piece before it, or it has no whole block.
func (f *Feed) stored(p *cache.Piece) (event, bool) {
	up, ok := f.pieces[p.Parent]
	if p.Parent == 0 {
		up, ok = piece{}, true
	}
	if !ok {
		return event{}, false
	}
	before := up.end
	if p.Parent == 0 {
		before = sum([]byte(f.root + "\x00" + p.Owner))
	}
	h := hashes(before, p.Tokens, f.block)
	if len(h) == 0 {
		return event{}, false
	}
	f.pieces[p.ID] = piece{h, h[len(h)-1]}
	return event{"BlockStored", h, up.end, p.Tokens[:len(h)*f.block], f.block}, true
}

// blockOf is the number of tokens of a block: all pieces but the last of a context are whole blocks.
func blockOf(cuts []int) int {
	n := mostBlock
	for i := 1; i < len(cuts)-1; i++ {
		for rest := cuts[i] - cuts[i-1]; rest > 0; {
			n, rest = rest, n%rest
		}
	}
	return n
}
