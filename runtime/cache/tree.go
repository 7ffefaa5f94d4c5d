// Package cache knows which beginnings of prompts a device holds, and where: a tree without device, engine or clock.
//
// A node is a piece of a prompt, from one cut to the next, behind all pieces above it. Cuts are the places where
// prompts are cut whatever else runs, so that what a node stands for has the same bits whoever wrote it. Each owner has
// a tree of its own: nothing that one owner's requests left is ever found by another's.
//
// A holder is a place that has the rows of one path, from its root to a node: a sequence slot. Models with recurrent
// state go on only from a node that has a copy of the state there, too.
package cache

import (
	"math"
	"slices"
	"unsafe"
)

// State is a copy of recurrent state.
type State interface {
	Bytes() int64
	Free()
}

// Options of a tree.
type Options struct {
	Cuts    []int     // positions where nodes end, ascending; the first is 0
	Costs   []float64 // seconds that a prompt takes up to each cut, ascending
	Holders int
	// Recurrent says that a prompt goes on only from a state.
	Recurrent bool
	// StateBytes bounds the states that are kept: beyond, those that spare least go. One is always kept.
	StateBytes int64
	Watch      Watcher // nil: nobody looks
}

// Tree is what is known of prompts. Times are in seconds since any moment, the same for all calls. It is for one
// goroutine.
type Tree struct {
	o       Options
	roots   map[string]*node // by owner
	holders []*node          // the end of each holder's path; nil: it has none
	states  []*node          // with a state
	stats   Stats
	last    uint64 // ID of the newest piece
}

// node is a piece of a prompt.
type node struct {
	tree   *Tree
	parent *node // nil of a root
	owner  string
	key    string // the tokens, four bytes each
	cut    int    // index of the cut where it ends; 0 of a root
	next   map[string]*node
	held   []int // holders whose paths go through it or end here, ascending
	state  State
	used   float64 // when a request last went through it
	id     uint64  // Piece.ID; 0 of a root
	told   bool    // the watcher knows it
}

// New makes an empty tree.
func New(o Options) *Tree {
	if o.Watch != nil {
		o.Watch.Cuts(o.Cuts)
	}
	return &Tree{o: o, roots: map[string]*node{}, holders: make([]*node, o.Holders)}
}

// ageing is the age in seconds at which what is kept counts for 1/e of what it spares.
const ageing = 600

// goOn is how many turns go on behind the last state of a conversation for each that goes back to one above it. It is a
// guess: people and agents take a turn back now and then.
const goOn = 16

func (n *node) pos() int { return n.tree.o.Cuts[n.cut] }

// spares is what a request that goes on here computes less than one that goes on at another node above.
func (n *node) spares(above *node, now float64) float64 {
	base := 0.0
	if above != nil {
		base = n.tree.o.Costs[above.cut]
	}
	return (n.tree.o.Costs[n.cut] - base) * math.Exp(-max(0, now-n.used)/ageing)
}

// bytesOf are the bytes of tokens in memory, the key of a node.
func bytesOf(tokens []int32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(tokens))), 4*len(tokens))
}

// piece returns the tokens of the piece that begins at a cut; nil where the prompt ends before the next one.
func (t *Tree) piece(prompt []int32, cut int) []int32 {
	if cut+1 >= len(t.o.Cuts) || t.o.Cuts[cut+1] > len(prompt) {
		return nil
	}
	return prompt[t.o.Cuts[cut]:t.o.Cuts[cut+1]]
}

// Hit is where a prompt can go on.
type Hit struct {
	Pos    int   // tokens that need no computing
	Holder int   // that has them, one of several; -1: none
	State  State // at Pos; nil for models without
	// Known is how far the prompt has been read before, at least Pos: beyond, rows or a state are gone.
	Known int
	node  *node
}

// Match finds the farthest cut at which an owner's prompt can go on. Some token is left to compute. sound says whether
// a holder still has all that the next row sees at a position of its path: rings lose rows. Of several holders
// prefer, if it is one, is the one.
func (t *Tree) Match(owner string, prompt []int32, prefer int, sound func(holder, pos int) bool) Hit {
	h := Hit{Holder: -1}
	if len(prompt) == 0 {
		return h
	}
	for n := t.roots[owner]; n != nil; {
		h.Known = n.pos()
		if n.cut > 0 && (!t.o.Recurrent || n.state != nil) {
			if holder := n.holder(prefer, sound); holder >= 0 {
				h.Pos, h.Holder, h.State, h.node = n.pos(), holder, n.state, n
			}
		}
		n = n.next[string(bytesOf(t.piece(prompt[:len(prompt)-1], n.cut)))]
	}
	return h
}

// holder returns one that is sound there, -1 if there is none.
func (n *node) holder(prefer int, sound func(holder, pos int) bool) int {
	if _, ok := slices.BinarySearch(n.held, prefer); ok && sound(prefer, n.pos()) {
		return prefer
	}
	for _, h := range n.held {
		if sound(h, n.pos()) {
			return h
		}
	}
	return -1
}

// Begin makes the path of a hit, which Match has just returned, that of a holder; its own is forgotten. Where the hit
// is nothing, the path is the owner's root.
func (t *Tree) Begin(holder int, owner string, h Hit, now float64) {
	n := h.node
	if n == nil {
		if n = t.roots[owner]; n == nil {
			n = &node{tree: t, owner: owner, next: map[string]*node{}}
			t.roots[owner] = n
		}
	}
	for m := n; m != nil; m = m.parent {
		m.hold(holder)
		m.used = now
	}
	t.leave(holder, n)
	t.holders[holder] = n
}

func (n *node) hold(holder int) {
	if i, ok := slices.BinarySearch(n.held, holder); !ok {
		n.held = slices.Insert(n.held, i, holder)
	}
}

// leave takes a holder off the nodes of its path that are not above or at keep.
func (t *Tree) leave(holder int, keep *node) {
	on := map[*node]bool{}
	for m := keep; m != nil; m = m.parent {
		on[m] = true
	}
	for n := t.holders[holder]; n != nil && !on[n]; {
		up := n.parent
		if i, ok := slices.BinarySearch(n.held, holder); ok {
			n.held = slices.Delete(n.held, i, i+1)
		}
		n.prune()
		n = up
	}
	t.holders[holder] = nil
}

// prune drops a node that nobody holds. No node below it is held either.
func (n *node) prune() {
	if len(n.held) > 0 {
		return
	}
	if n.state != nil {
		n.drop()
	}
	if n.parent == nil {
		delete(n.tree.roots, n.owner)
		return
	}
	n.gone()
	delete(n.parent.next, n.key)
	size := len(n.key) / 4
	n.tree.stats.Nodes, n.tree.stats.Tokens = n.tree.stats.Nodes-1, n.tree.stats.Tokens-size
	n.tree.stats.ForgottenTokens += int64(size)
}

// Extend adds the next piece of a prompt to a holder's path, which ends where the piece begins, and returns where it
// ends then. tokens are those of the prompt up to there, at least.
func (t *Tree) Extend(holder int, prompt []int32, now float64) int {
	n := t.holders[holder]
	key := bytesOf(t.piece(prompt, n.cut))
	next := n.next[string(key)]
	if next == nil {
		t.last++
		next = &node{tree: t, parent: n, owner: n.owner, key: string(key), cut: n.cut + 1, next: map[string]*node{}, id: t.last}
		n.next[next.key] = next
		t.stats.Nodes, t.stats.Tokens = t.stats.Nodes+1, t.stats.Tokens+len(key)/4
	}
	next.hold(holder)
	next.used = now
	t.holders[holder] = next
	if !t.o.Recurrent {
		next.tell()
	}
	return next.pos()
}

// At is where a holder's path ends.
func (t *Tree) At(holder int) int {
	if n := t.holders[holder]; n != nil {
		return n.pos()
	}
	return 0
}

// HasState says whether there is a state at the end of a holder's path.
func (t *Tree) HasState(holder int) bool { return t.holders[holder].state != nil }

// Keep takes a state at the end of a holder's path. Others may go for it, or itself.
func (t *Tree) Keep(holder int, s State, now float64) {
	n := t.holders[holder]
	if n.state != nil {
		n.drop()
	}
	n.state, n.used = s, now
	n.tell()
	t.states, t.stats.StateBytes = append(t.states, n), t.stats.StateBytes+s.Bytes()
	t.stats.States = len(t.states)
	for t.stats.StateBytes > t.o.StateBytes && len(t.states) > 1 {
		t.FreeState(now)
	}
}

// FreeState frees the state that spares least, and says whether there was one.
func (t *Tree) FreeState(now float64) bool {
	var least *node
	value := math.Inf(1)
	for _, n := range t.states {
		above := n.parent
		for above != nil && above.state == nil {
			above = above.parent
		}
		v := n.spares(above, now) / float64(max(1, n.state.Bytes()))
		if n.passed() {
			v /= goOn
		}
		if v < value {
			least, value = n, v
		}
	}
	if least == nil {
		return false
	}
	least.drop()
	t.stats.EvictedStates++
	return true
}

// passed says whether all that is known to go on from a node goes on to one state below it, which spares more.
func (n *node) passed() bool {
	for len(n.next) == 1 {
		for _, below := range n.next {
			n = below
		}
		if n.state != nil {
			return true
		}
	}
	return false
}

// drop frees the node's state.
func (n *node) drop() {
	t := n.tree
	t.stats.StateBytes -= n.state.Bytes()
	n.state.Free()
	n.state = nil
	t.states = slices.DeleteFunc(t.states, func(m *node) bool { return m == n })
	t.stats.States = len(t.states)
	for m := n; m != nil && m.told && !t.useful(m); m = m.parent {
		m.gone()
	}
}

// Missed is how many seconds of computing are lost if a holder forgets its path.
func (t *Tree) Missed(holder int, now float64) float64 { return t.Loss(holder, Hit{}, now) }

// Loss is how many seconds of computing are lost if a holder leaves its path for that of a hit: what it alone holds
// beyond, the less the longer nobody has asked for it.
func (t *Tree) Loss(holder int, h Hit, now float64) float64 {
	on := map[*node]bool{}
	for m := h.node; m != nil; m = m.parent {
		on[m] = true
	}
	sum := 0.0
	for n := t.holders[holder]; n != nil && n.parent != nil && !on[n] && len(n.held) == 1; n = n.parent {
		if !t.o.Recurrent || t.useful(n) {
			sum += n.spares(n.parent, now)
		}
	}
	return sum
}

// useful says whether a state is at a node or below it.
func (t *Tree) useful(n *node) bool {
	return slices.ContainsFunc(t.states, func(s *node) bool {
		for s != nil && s != n && s.cut > n.cut {
			s = s.parent
		}
		return s == n
	})
}

// Trim takes what lies behind pos off a holder's path.
func (t *Tree) Trim(holder, pos int) {
	n := t.holders[holder]
	for n != nil && n.pos() > pos {
		n = n.parent
	}
	t.leave(holder, n)
	t.holders[holder] = n
}

// Common is how far a holder's own path is that of a hit.
func (t *Tree) Common(holder int, h Hit) int {
	for n := h.node; n != nil; n = n.parent {
		if _, ok := slices.BinarySearch(n.held, holder); ok {
			return n.pos()
		}
	}
	return 0
}

// Forget drops everything.
func (t *Tree) Forget() {
	for i := range t.holders {
		t.leave(i, nil)
	}
}

// Stats counts what a tree has, and what it has lost since the start.
type Stats struct {
	Nodes, States int
	Tokens        int // of all nodes: what several holders have counts once
	StateBytes    int64
	// ForgottenTokens are those of nodes that no holder has any more, EvictedStates the states that gave way to others.
	ForgottenTokens, EvictedStates int64
}

// Stats returns the counts.
func (t *Tree) Stats() Stats { return t.stats }

// StatesOf is how many bytes of states are on a holder's path.
func (t *Tree) StatesOf(holder int) (bytes int64) {
	for n := t.holders[holder]; n != nil; n = n.parent {
		if n.state != nil {
			bytes += n.state.Bytes()
		}
	}
	return bytes
}
