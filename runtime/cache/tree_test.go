package cache

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// content is what a row of a holder, or a state, is of: an owner and the tokens up to there.
type content string

func contentOf(owner string, prompt []int32, n int) content {
	return content(fmt.Sprint(owner, prompt[:n]))
}

// fakeState is a state that counts whether it is freed once.
type fakeState struct {
	of    content
	freed int
	bytes int64
}

func (s *fakeState) Bytes() int64 { return s.bytes }
func (s *fakeState) Free()        { s.freed++ }

// world is a tree beside what holders really have, row by row.
type world struct {
	t      *Tree
	o      Options
	rows   [][]content  // of each holder
	states []*fakeState // that were ever made
	lost   [][]bool     // positions at which a holder does not see all that it must
	now    float64
	found  int // tokens
	shared int // hits in another holder
	stored int // tokens of nodes that were made
	left   map[*node]bool
	known  map[uint64]known
	wrong  error // of what the watcher was told
}

// known is a piece that the watcher knows.
type known struct {
	parent, behind uint64 // the piece before it, and how many are behind it
	of             content
}

func (w *world) Cuts(cuts []int) { w.known = map[uint64]known{0: {}} }

func (w *world) Stored(p Piece) {
	up, ok := w.known[p.Parent]
	if _, twice := w.known[p.ID]; !ok || twice {
		w.wrong = fmt.Errorf("piece %d is stored behind %d: %v, twice: %v", p.ID, p.Parent, ok, twice)
	}
	up.behind++
	w.known[p.Parent] = up
	w.known[p.ID] = known{parent: p.Parent, of: contentOf(p.Owner, p.Tokens, len(p.Tokens))}
}

func (w *world) Removed(id uint64) {
	p, ok := w.known[id]
	if !ok || p.behind > 0 {
		w.wrong = fmt.Errorf("piece %d is removed, known: %v, with %d behind it", id, ok, p.behind)
	}
	delete(w.known, id)
	up := w.known[p.parent]
	up.behind--
	w.known[p.parent] = up
}

// told holds what the watcher knows against a node.
func (w *world) told(n *node) error {
	p, ok := w.known[n.id]
	tokens := make([]int32, len(n.key)/4)
	copy(bytesOf(tokens), n.key)
	if want := w.left[n] || w.useful(n); ok != want || ok && (p.parent != n.parent.id || p.of != contentOf(n.owner, tokens, len(tokens))) {
		return fmt.Errorf("the watcher knows %v of a piece at %d, want %v: %+v", ok, n.pos(), want, p)
	}
	return w.wrong
}

// useful says whether a state is at a node or below it.
func (w *world) useful(n *node) bool {
	return n.state != nil || slices.ContainsFunc(n.next, w.useful)
}

// missed is how many seconds of computing are lost if a holder leaves its path for that of a hit.
func (w *world) missed(holder int, h Hit) float64 {
	sum, on := 0.0, map[*node]bool{}
	for _, n := range h.path {
		on[n] = true
	}
	for n := w.t.holders[holder]; n != nil && n.parent != nil; n = n.parent {
		if len(n.held) == 1 && !on[n] && (!w.o.Recurrent || w.useful(n)) {
			sum += (w.o.Costs[n.cut] - w.o.Costs[n.cut-1]) * math.Exp((n.used-w.now)/ageing)
		}
	}
	return sum
}

func newWorld(cuts []int, holders int, recurrent bool, budget int64) *world {
	w := &world{o: Options{Cuts: cuts, Holders: holders, Recurrent: recurrent, StateBytes: budget}}
	for _, c := range cuts {
		w.o.Costs = append(w.o.Costs, float64(c)*1e-3)
	}
	w.o.Watch, w.left = w, map[*node]bool{}
	w.t, w.rows, w.lost = New(w.o), make([][]content, holders), make([][]bool, holders)
	for i := range w.lost {
		w.lost[i] = make([]bool, len(cuts))
	}
	return w
}

func (w *world) sound(holder, pos int) bool { return !w.lost[holder][slices.Index(w.o.Cuts, pos)] }

// read lets a prompt be read in a holder, up to end, as the engine does.
func (w *world) read(holder int, owner string, prompt []int32, end int) error {
	h := w.t.Match(owner, prompt[:max(0, len(prompt)-1)], holder, w.sound)
	if h.Pos >= len(prompt) || h.Known < h.Pos {
		return fmt.Errorf("%d tokens are found of %d, known are %d", h.Pos, len(prompt), h.Known)
	}
	common := w.t.Common(holder, h)
	for i := range w.o.Holders {
		if have, want := w.t.Loss(i, h, w.now), w.missed(i, h); math.Abs(have-want) > 1e-12 {
			return fmt.Errorf("behind a hit of %d holder %d is missed by %g s, want %g", h.Pos, i, have, want)
		}
	}
	if h.Pos > 0 {
		for i := range h.Pos { // what is read was written, by the owner, and is this
			if src := w.rows[h.Holder]; i >= len(src) || src[i] != contentOf(owner, prompt, i+1) {
				return fmt.Errorf("row %d of holder %d is not of this prompt", i, h.Holder)
			}
		}
		if !w.sound(h.Holder, h.Pos) {
			return fmt.Errorf("holder %d has lost what position %d sees", h.Holder, h.Pos)
		}
		for i := range min(common, len(w.rows[holder])) {
			if w.rows[holder][i] != contentOf(owner, prompt, i+1) {
				return fmt.Errorf("row %d of holder %d is not common", i, holder)
			}
		}
		if common > len(w.rows[holder]) {
			return fmt.Errorf("%d rows of holder %d are common, it has %d", common, holder, len(w.rows[holder]))
		}
	}
	if w.o.Recurrent && h.Pos > 0 {
		if s := h.State.(*fakeState); s.freed > 0 || s.of != contentOf(owner, prompt, h.Pos) {
			return fmt.Errorf("the state of position %d is freed %d times, or of another prompt", h.Pos, s.freed)
		}
	}
	w.found += h.Pos
	if h.Pos > 0 && h.Holder != holder {
		w.shared++
		w.rows[holder] = append(w.rows[holder][:common:common], w.rows[h.Holder][common:h.Pos]...)
	}
	clear(w.lost[holder])
	w.t.Begin(holder, owner, h, w.now)
	w.rows[holder] = slices.Clone(w.rows[holder][:h.Pos])
	for pos := h.Pos; pos < end; pos++ {
		w.rows[holder] = append(w.rows[holder], contentOf(owner, prompt, pos+1))
		if i := slices.Index(w.o.Cuts, pos+1); i >= 0 {
			before := w.t.Stats().Nodes
			if at := w.t.Extend(holder, prompt, w.now); at != pos+1 {
				return fmt.Errorf("extended to %d, want %d", at, pos+1)
			}
			if w.t.Stats().Nodes > before {
				w.stored += w.o.Cuts[i] - w.o.Cuts[i-1]
			}
			if !w.o.Recurrent && len(prompt)%2 == i%2 {
				w.t.Left(holder)
				for n := w.t.holders[holder]; n.parent != nil; n = n.parent {
					w.left[n] = true
				}
			}
		}
	}
	// What is generated behind is nobody else's.
	w.rows[holder] = append(w.rows[holder], "generated")
	return nil
}

// keep takes a state at the end of a holder's path.
func (w *world) keep(holder int, bytes int64) {
	if w.t.At(holder) == 0 || w.t.HasState(holder) {
		return
	}
	s := &fakeState{of: w.rows[holder][w.t.At(holder)-1], bytes: bytes}
	w.states = append(w.states, s)
	w.t.Keep(holder, s, w.now)
}

// check holds the tree's books against what there is.
func (w *world) check() error {
	held, nodes, tokens, bytes, states := map[*node][]int{}, 0, 0, int64(0), 0
	for h, leaf := range w.t.holders {
		for n := leaf; n != nil; n = n.parent {
			held[n] = append(held[n], h)
			if p := n.pos(); p > len(w.rows[h]) {
				return fmt.Errorf("holder %d is said to have %d rows of %d", h, p, len(w.rows[h]))
			}
		}
		on, last := map[int]State{}, len(w.rows[h])+1
		for pos, s := range w.t.States(h) {
			if on[pos] = s; pos >= last || s.(*fakeState).of != w.rows[h][pos-1] {
				return fmt.Errorf("holder %d has a state at %d of other rows, or behind %d", h, pos, last)
			}
			last = pos
		}
		for n := leaf; n != nil; n = n.parent {
			if on[n.pos()] != n.state {
				return fmt.Errorf("holder %d has a state at %d: %v, listed %v", h, n.pos(), n.state, on[n.pos()])
			}
		}
	}
	var walk func(n *node) error
	walk = func(n *node) error {
		if !slices.Equal(n.held, held[n]) || len(n.held) == 0 {
			return fmt.Errorf("a node at %d has holders %d, want %d", n.pos(), n.held, held[n])
		}
		delete(held, n)
		if n.state != nil {
			states++
			bytes += n.state.Bytes()
			above := n.parent
			for above != nil && above.state == nil {
				above = above.parent
			}
			if n.above != above {
				return fmt.Errorf("the state at %d is not behind the next one above", n.pos())
			}
			if s := n.state.(*fakeState); s.freed != 0 || n.parent == nil {
				return fmt.Errorf("the state at %d is freed %d times", n.pos(), s.freed)
			}
		}
		for _, m := range n.next {
			nodes, tokens = nodes+1, tokens+m.pos()-n.pos()
			if m.parent != n || m.owner != n.owner || m.cut != n.cut+1 || len(m.key) != 4*(m.pos()-n.pos()) {
				return fmt.Errorf("a node below %d is not its child", n.pos())
			}
			if err := w.told(m); err != nil {
				return err
			}
			if err := walk(m); err != nil {
				return err
			}
		}
		return nil
	}
	for owner, r := range w.t.roots {
		if r.owner != owner || r.parent != nil || r.cut != 0 {
			return fmt.Errorf("the root of %q is %+v", owner, r)
		}
		if err := walk(r); err != nil {
			return err
		}
	}
	if have := len(w.known) - 1; have > nodes {
		return fmt.Errorf("the watcher knows %d pieces of %d", have, nodes)
	}
	if len(held) > 0 {
		return fmt.Errorf("%d nodes are held and in no tree", len(held))
	}
	for i := range w.o.Holders {
		if have, want := w.t.Missed(i, w.now), w.missed(i, Hit{}); math.Abs(have-want) > 1e-12 {
			return fmt.Errorf("holder %d is missed by %g s, want %g", i, have, want)
		}
		bytes := int64(0)
		for n := w.t.holders[i]; n != nil; n = n.parent {
			if n.state != nil {
				bytes += n.state.Bytes()
			}
		}
		if have := w.t.StatesOf(i); have != bytes {
			return fmt.Errorf("holder %d has %d bytes of states, want %d", i, have, bytes)
		}
	}
	alive := 0
	for _, s := range w.states {
		if s.freed > 1 {
			return fmt.Errorf("a state is freed %d times", s.freed)
		}
		alive += 1 - s.freed
	}
	have := w.t.Stats()
	if want := (Stats{nodes, states, tokens, bytes, int64(w.stored - tokens), have.EvictedStates}); have != want || states != alive || states != len(w.t.states) {
		return fmt.Errorf("counts %+v, want %+v, %d states are alive, %d listed", have, want, alive, len(w.t.states))
	}
	if bytes > w.o.StateBytes && states > 1 {
		return fmt.Errorf("%d bytes of states, the bound is %d", bytes, w.o.StateBytes)
	}
	return nil
}

// TestTree lets conversations of two owners come, fork, go on and be forgotten in a few holders: what a prompt finds
// was written, by its owner, for these tokens, and every node and state has the holders that it should.
func TestTree(t *testing.T) {
	found, shared, evicted := 0, 0, int64(0)
	rapid.Check(t, func(rt *rapid.T) {
		cuts := []int{0}
		for len(cuts) < 8 {
			cuts = append(cuts, cuts[len(cuts)-1]+rapid.IntRange(1, 4).Draw(rt, "piece"))
		}
		recurrent := rapid.Bool().Draw(rt, "recurrent")
		w := newWorld(cuts, rapid.IntRange(1, 4).Draw(rt, "holders"), recurrent, rapid.Int64Range(1, 60).Draw(rt, "budget"))
		var talks [][]int32
		for range rapid.IntRange(1, 40).Draw(rt, "turns") {
			w.now += rapid.Float64Range(0, 900).Draw(rt, "later")
			holder := rapid.IntRange(0, w.o.Holders-1).Draw(rt, "holder")
			var prompt []int32
			if len(talks) > 0 && rapid.IntRange(0, 3).Draw(rt, "new") > 0 {
				prompt = slices.Clone(rapid.SampledFrom(talks).Draw(rt, "talk"))
				prompt = prompt[:rapid.IntRange(0, len(prompt)).Draw(rt, "fork")]
			}
			for range rapid.IntRange(1, 8).Draw(rt, "more") {
				prompt = append(prompt, rapid.Int32Range(0, 1).Draw(rt, "token"))
			}
			prompt = prompt[:min(len(prompt), cuts[len(cuts)-1])]
			talks = append(talks, prompt)
			owner := rapid.SampledFrom([]string{"", "", "a"}).Draw(rt, "owner")
			end := len(prompt) // or the reader has left before
			if rapid.IntRange(0, 4).Draw(rt, "leaves") == 0 {
				end = rapid.IntRange(0, end).Draw(rt, "end")
			}
			if err := w.read(holder, owner, prompt, end); err != nil {
				rt.Fatal(err)
			}
			switch rapid.IntRange(0, 5).Draw(rt, "then") {
			case 0:
				w.lost[holder][rapid.IntRange(1, len(cuts)-1).Draw(rt, "lost")] = true
			case 1:
				w.t.Trim(holder, rapid.IntRange(0, len(prompt)).Draw(rt, "trim"))
			case 2:
				if (len(w.t.states) > 0) != w.t.FreeState(w.now) {
					rt.Fatal("a state is freed, or not")
				}
			default:
				if recurrent {
					w.keep(holder, rapid.Int64Range(1, 30).Draw(rt, "bytes"))
				}
			}
			if err := w.check(); err != nil {
				rt.Fatal(err)
			}
		}
		found, shared, evicted = found+w.found, shared+w.shared, evicted+w.t.Stats().EvictedStates
		w.t.Forget()
		if err := w.check(); err != nil || w.t.Stats().Nodes != 0 || len(w.t.roots) != 0 {
			rt.Fatalf("%v, %+v are left", err, w.t.Stats())
		}
	})
	if found == 0 || shared == 0 || evicted == 0 {
		t.Errorf("%d tokens were found, %d times in another holder, %d states gave way", found, shared, evicted)
	}
}

// TestOwnersApart: what one owner's requests left is not even known to another's.
func TestOwnersApart(t *testing.T) {
	w := newWorld([]int{0, 4, 8, 12}, 2, false, 1)
	prompt := []int32{1, 2, 3, 4, 5, 6, 7, 8, 9}
	if err := w.read(0, "a", prompt, 9); err != nil {
		t.Fatal(err)
	}
	if h := w.t.Match("b", prompt, 1, w.sound); h.Pos != 0 || h.Known != 0 {
		t.Errorf("another owner finds %d tokens, and knows %d", h.Pos, h.Known)
	}
	if h := w.t.Match("a", prompt, 1, w.sound); h.Pos != 8 || h.Known != 8 || h.Holder != 0 {
		t.Errorf("its owner finds %+v", h)
	}
	if h := w.t.Match("a", prompt[:7], 1, w.sound); h.Pos != 4 {
		t.Errorf("%d tokens are found of 7", h.Pos)
	}
}

// TestLoss: a holder is missed for what it alone holds, the less the longer nobody asks for it.
func TestLoss(t *testing.T) {
	w := newWorld([]int{0, 4, 8, 12}, 2, false, 1)
	prompt := []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}[:12]
	for holder, n := range []int{12, 5} {
		if err := w.read(holder, "", prompt[:n], n); err != nil {
			t.Fatal(err)
		}
	}
	for holder, want := range []float64{8e-3, 0} {
		if have := w.t.Loss(holder, Hit{}, 0); math.Abs(have-want) > 1e-9 {
			t.Errorf("holder %d is missed by %g s, want %g", holder, have, want)
		}
	}
	if have, want := w.t.Loss(0, Hit{}, ageing), 8e-3/math.E; math.Abs(have-want) > 1e-9 {
		t.Errorf("later it is missed by %g s, want %g", have, want)
	}
	h := w.t.Match("", prompt[:11], -1, w.sound)
	if have, want := w.t.Loss(0, h, 0), 4e-3; math.Abs(have-want) > 1e-9 || h.Pos != 8 {
		t.Errorf("behind a hit of %d it is missed by %g s, want %g", h.Pos, have, want)
	}
}

// TestStatesThatSpareMost: of states those stay that spare most by byte. Of a conversation the last one stays, behind
// which its next turn goes on, though that spares little more than the one above it does.
func TestStatesThatSpareMost(t *testing.T) {
	for _, c := range []struct {
		cuts, ends, want []int
	}{
		{[]int{0, 4, 8, 12, 100}, []int{4, 12, 100}, []int{12, 100}}, // spare 4, 8 and 88
		{[]int{0, 40, 80, 84}, []int{40, 80, 84}, []int{80, 84}},
	} {
		w := newWorld(c.cuts, 1, true, 2)
		prompt := make([]int32, 101)
		for _, end := range c.ends {
			if err := w.read(0, "", prompt[:end+1], end); err != nil {
				t.Fatal(err)
			}
			w.keep(0, 1)
		}
		var have []int
		for _, s := range w.t.states {
			have = append(have, s.pos())
		}
		if !slices.Equal(have, c.want) {
			t.Errorf("states are kept at %d, want %d", have, c.want)
		}
	}
}

// TestForksStay: a state at which prompts have parted counts in full beside those behind it.
func TestForksStay(t *testing.T) {
	w := newWorld([]int{0, 40, 44, 48, 52}, 2, true, 3)
	for holder, end := range []int{48, 48} {
		prompt := make([]int32, 60)
		prompt[41] = int32(holder)
		for _, end := range []int{40, end} {
			if err := w.read(holder, "", prompt, end); err != nil {
				t.Fatal(err)
			}
			w.keep(holder, 1)
		}
	}
	prompt := make([]int32, 60)
	if err := w.read(0, "", prompt, 52); err != nil {
		t.Fatal(err)
	}
	w.keep(0, 1)
	var have []int
	for _, s := range w.t.states {
		have = append(have, s.pos())
	}
	if !slices.Equal(have, []int{40, 48, 52}) {
		t.Errorf("states are kept at %d", have)
	}
}

// TestParts: paths part behind what two holders have in common, for both of them, until one has left.
func TestParts(t *testing.T) {
	w := newWorld([]int{0, 4, 8, 12, 16}, 2, false, 1)
	for holder, end := range []int{16, 12} {
		prompt := make([]int32, 17)
		prompt[9] = int32(holder) // behind 8
		if err := w.read(holder, "", prompt, end); err != nil {
			t.Fatal(err)
		}
	}
	check := func(holder, from, to int, want bool) {
		t.Helper()
		if have := w.t.Parts(holder, from, to); have != want {
			t.Errorf("holder %d: paths part from %d to %d: %v", holder, from, to, have)
		}
	}
	for holder := range 2 {
		check(holder, 4, 12, true)
		check(holder, 8, 12, true)
		check(holder, 4, 8, false)
		check(holder, 12, 16, false)
	}
	w.t.Trim(0, 8)
	check(1, 0, 12, false)
	w.t.Trim(1, 0)
	check(1, 0, 12, false)
}
