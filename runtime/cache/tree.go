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
	"iter"
	"math"
	"slices"
	"sort"
	"time"
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
	missed  []missed         // by holder
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
	next   []*node
	held   []int // holders whose paths go through it or end here, ascending: each of them also holds the parent
	state  State
	states int     // here and below
	above  *node   // of a node with a state: the next one with a state above it; nil: there is none
	used   float64 // when a request last went through it
	id     uint64  // Piece.ID; 0 of a root
	told   bool    // the watcher knows it
}

// missed is what a holder is missed for at a time; unknown since a change of what it alone holds.
type missed struct {
	known   bool
	at, sum float64 // seconds
}

// New makes an empty tree.
func New(o Options) *Tree {
	if o.Watch != nil {
		o.Watch.Cuts(o.Cuts)
	}
	return &Tree{o: o, roots: map[string]*node{}, holders: make([]*node, o.Holders), missed: make([]missed, o.Holders)}
}

// ageing is the age in seconds at which what is kept counts for 1/e of what it spares.
const ageing = 600

// goOn is how many turns go on behind the last state of a conversation for each that goes back to one above it. It is a
// guess: people and agents take a turn back now and then.
const goOn = 16

// Passed is the age at which a state counts as much as one that a conversation has gone on behind.
var Passed = time.Duration(ageing * math.Log(goOn) * float64(time.Second))

func (n *node) pos() int { return n.tree.o.Cuts[n.cut] }

// spares is what a request that goes on here computes less than one that goes on at another node above.
func (n *node) spares(above *node, now float64) float64 {
	base := 0.0
	if above != nil {
		base = n.tree.o.Costs[above.cut]
	}
	return (n.tree.o.Costs[n.cut] - base) * aged(now-n.used)
}

// aged is what counts of a second that was spared so many seconds ago.
func aged(seconds float64) float64 { return math.Exp(-max(0, seconds) / ageing) }

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

// child is the node of a piece behind n; nil if there is none.
func (n *node) child(piece []int32) *node {
	key := bytesOf(piece)
	for _, m := range n.next { // no more than there are holders
		if m.key == string(key) {
			return m
		}
	}
	return nil
}

// Hit is where a prompt can go on.
type Hit struct {
	Pos    int   // tokens that need no computing
	Holder int   // that has them, one of several; -1: none
	State  State // at Pos; nil for models without
	// Known is how far the prompt has been read before, at least Pos: beyond, rows or a state are gone.
	Known int
	path  []*node // from the root to Pos
	known []*node // from the root to Known
}

// Match finds the farthest cut at which an owner's prompt can go on, of which these are the tokens that need not be
// computed. sound says whether a holder still has all that the next row sees at a position of its path: rings lose
// rows. Of several holders prefer, if it is one, is the one.
func (t *Tree) Match(owner string, prompt []int32, prefer int, sound func(holder, pos int) bool) Hit {
	h := Hit{Holder: -1}
	var path []*node
	for n := t.roots[owner]; n != nil; {
		path, h.Known = append(path, n), n.pos()
		piece := t.piece(prompt, n.cut)
		if piece == nil {
			break
		}
		n = n.child(piece)
	}
	for i := len(path) - 1; i > 0; i-- {
		n := path[i]
		if t.o.Recurrent && n.state == nil {
			continue
		}
		if holder := n.holder(prefer, sound); holder >= 0 {
			h.Pos, h.Holder, h.State, h.path = n.pos(), holder, n.state, path[:i+1]
			break
		}
	}
	h.known = path
	return h
}

// Forks says whether other prompts went on with other tokens at Known.
func (h Hit) Forks() bool {
	n := len(h.known)
	return n > 0 && len(h.known[n-1].next) > 0
}

// Rows is the part of a prompt that holders have the rows of, up to a position, whatever they have beside: State is
// nil. Of several holders prefer, if it is one, is the one.
func (h Hit) Rows(pos, prefer int) Hit {
	rows := Hit{Holder: -1, Known: h.Known, known: h.known}
	for i := 1; i < len(h.known) && h.known[i].pos() <= pos; i++ {
		n := h.known[i]
		if rows.Pos, rows.Holder, rows.path = n.pos(), n.held[0], h.known[:i+1]; n.isHeld(prefer) {
			rows.Holder = prefer
		}
	}
	return rows
}

// holder returns one that is sound there, -1 if there is none.
func (n *node) holder(prefer int, sound func(holder, pos int) bool) int {
	if n.isHeld(prefer) && sound(prefer, n.pos()) {
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
	path := h.path
	if path == nil {
		root := t.roots[owner]
		if root == nil {
			root = &node{tree: t, owner: owner}
			t.roots[owner] = root
		}
		path = []*node{root}
	}
	for _, n := range path {
		n.hold(holder)
		n.used = now
	}
	end := path[len(path)-1]
	t.leave(holder, end)
	t.holders[holder] = end
}

func (n *node) isHeld(holder int) bool {
	_, ok := slices.BinarySearch(n.held, holder)
	return ok
}

func (n *node) hold(holder int) {
	if i, ok := slices.BinarySearch(n.held, holder); !ok {
		n.changes()
		n.held = slices.Insert(n.held, i, holder)
	}
}

// changes notes that the one who alone holds a node, if there is one, is missed for more or less than before.
func (n *node) changes() {
	if len(n.held) == 1 {
		n.tree.missed[n.held[0]].known = false
	}
}

// common is the last node that two paths have in common; nil if there is none.
func common(a, b *node) *node {
	for a != b && a != nil && b != nil {
		if a.cut >= b.cut {
			a = a.parent
		} else {
			b = b.parent
		}
	}
	if a != b {
		return nil
	}
	return a
}

// leave takes a holder off the nodes of its path that are not above or at keep.
func (t *Tree) leave(holder int, keep *node) {
	last := common(t.holders[holder], keep)
	for n := t.holders[holder]; n != last; {
		up := n.parent
		if i, ok := slices.BinarySearch(n.held, holder); ok {
			n.held = slices.Delete(n.held, i, i+1)
		}
		n.changes()
		n.prune()
		n = up
	}
	t.holders[holder], t.missed[holder] = nil, missed{}
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
	i := slices.Index(n.parent.next, n)
	n.parent.next = slices.Delete(n.parent.next, i, i+1)
	size := len(n.key) / 4
	n.tree.stats.Nodes, n.tree.stats.Tokens = n.tree.stats.Nodes-1, n.tree.stats.Tokens-size
	n.tree.stats.ForgottenTokens += int64(size)
}

// Extend adds the next piece of a prompt to a holder's path, which ends where the piece begins, and returns where it
// ends then. tokens are those of the prompt up to there, at least.
func (t *Tree) Extend(holder int, prompt []int32, now float64) int {
	n := t.holders[holder]
	piece := t.piece(prompt, n.cut)
	next := n.child(piece)
	if next == nil {
		t.last++
		next = &node{tree: t, parent: n, owner: n.owner, key: string(bytesOf(piece)), cut: n.cut + 1, id: t.last}
		n.next = append(n.next, next)
		t.stats.Nodes, t.stats.Tokens = t.stats.Nodes+1, t.stats.Tokens+len(piece)
	}
	next.hold(holder)
	next.used = now
	t.holders[holder], t.missed[holder] = next, missed{}
	return next.pos()
}

// Left says that prompts can go on at the end of a holder's path, of models without recurrent state: where they see all
// positions at each end of a piece, with windows where what the window sees is kept.
func (t *Tree) Left(holder int) { t.holders[holder].tell() }

// At is where a holder's path ends.
func (t *Tree) At(holder int) int {
	if n := t.holders[holder]; n != nil {
		return n.pos()
	}
	return 0
}

// Parts says whether paths part from a holder's at a position in [from, to).
func (t *Tree) Parts(holder, from, to int) bool {
	for n := t.holders[holder]; n != nil && n.pos() >= from; n = n.parent {
		if n.pos() < to && len(n.next) > 1 {
			return true
		}
	}
	return false
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
	n.count(1)
	n.tell()
	n.above = n.parent
	for n.above != nil && n.above.state == nil {
		n.above = n.above.parent
	}
	for _, m := range t.states {
		if n.states > 1 && m.above == n.above && common(m, n) == n {
			m.above = n
		}
	}
	t.states, t.stats.StateBytes = append(t.states, n), t.stats.StateBytes+s.Bytes()
	t.stats.States = len(t.states)
	for t.stats.StateBytes > t.o.StateBytes && len(t.states) > 1 {
		t.FreeState(now)
	}
}

// count notes that there are so many states more.
func (n *node) count(more int) {
	for n.changes(); n != nil; n = n.parent {
		n.states += more
	}
}

// FreeState frees the state that spares least, and says whether there was one.
func (t *Tree) FreeState(now float64) bool {
	var least *node
	value := math.Inf(1)
	for _, n := range t.states {
		v := n.spares(n.above, now) / float64(max(1, n.state.Bytes()))
		if v < goOn*value && n.passed() { // else it is not the least, passed or not
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
		if n = n.next[0]; n.state != nil {
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
	n.count(-1)
	t.states = slices.DeleteFunc(t.states, func(m *node) bool { return m == n })
	for _, m := range t.states {
		if m.above == n {
			m.above = n.above
		}
	}
	n.above = nil
	t.stats.States = len(t.states)
	for m := n; m != nil && m.told && m.states == 0; m = m.parent {
		m.gone()
	}
}

// Missed is how many seconds of computing are lost if a holder forgets its path.
func (t *Tree) Missed(holder int, now float64) float64 {
	m := &t.missed[holder]
	if !m.known {
		*m = missed{true, now, t.lost(holder, nil, now)}
	}
	return m.sum * aged(now-m.at) // all of it has become so much older
}

// Loss is how many seconds of computing are lost if a holder leaves its path for that of a hit: what it alone holds
// beyond, the less the longer nobody has asked for it.
func (t *Tree) Loss(holder int, h Hit, now float64) float64 {
	if n := len(h.path); n > 0 && len(h.path[n-1].held) == 1 && h.path[n-1].held[0] == holder {
		return t.lost(holder, h.path[n-1], now)
	}
	return t.Missed(holder, now) // nothing of the hit's path is held by it alone
}

// lost is Loss by looking at all that a holder has beyond a node.
func (t *Tree) lost(holder int, keep *node, now float64) float64 {
	sum, last := 0.0, common(t.holders[holder], keep)
	for n := t.holders[holder]; n != last && n.parent != nil && len(n.held) == 1; n = n.parent {
		if !t.o.Recurrent || n.states > 0 {
			sum += n.spares(n.parent, now)
		}
	}
	return sum
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
	// Who holds a node holds all nodes above it.
	n := sort.Search(len(h.path), func(i int) bool { return !h.path[i].isHeld(holder) })
	if n == 0 {
		return 0
	}
	return h.path[n-1].pos()
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
	for _, n := range t.states {
		if n.isHeld(holder) {
			bytes += n.state.Bytes()
		}
	}
	return bytes
}

// States are those on a holder's path, and where, the last one first.
func (t *Tree) States(holder int) iter.Seq2[int, State] {
	return func(yield func(pos int, s State) bool) {
		for n := t.holders[holder]; n != nil; n = n.parent {
			if n.state != nil && !yield(n.pos(), n.state) {
				return
			}
		}
	}
}
