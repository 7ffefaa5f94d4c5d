package machine

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
)

// Limits of a machine.
const (
	maxDepth  = 1024    // of stacks
	maxPlaces = 1024    // of a state
	maxStates = 1 << 15 // kept at a time
	maxBuild  = 5 * time.Second
)

// cell is a stack: what follows first, and what behind it.
type cell struct {
	id    int32
	depth int32
	item  Item
	below *cell
	// Of this stack: how many arrays have begun, and whether elements of one must differ.
	arrays   int32
	distinct bool
}

// place is where one may be in a grammar.
type place struct {
	lexer *lex.Lexer
	state int32
	then  *cell
}

// State is the set of places behind some bytes.
type State struct {
	places []place
	final  bool // the text may end here
	next   [16]*[16]*State
	forced int16 // the only byte that may follow, or one of these
	// Note is what the caller knows of the state.
	Note any
}

const (
	unknown int16 = -1 - iota
	free          // several bytes may follow, or the text may end
)

// dead is where bytes lead that are refused.
var dead = &State{}

// Final says whether the text may end here.
func (s *State) Final() bool { return s.final }

// Over says whether the text must end here.
func (s *State) Over() bool { return s.final && len(s.places) == 0 }

// JSON says whether a part of JSON text may come next.
func (s *State) JSON() bool {
	for _, p := range s.places {
		if p.lexer.JSON {
			return true
		}
	}
	return false
}

// Some says whether f holds in one of the places, of a lexer and its state.
func (s *State) Some(f func(l *lex.Lexer, at int32) bool) bool {
	return slices.ContainsFunc(s.places, func(p place) bool { return f(p.lexer, p.state) })
}

// Bytes appends the bytes that may lead on from a state, all of these and perhaps others.
func (s *State) Bytes(to []byte) []byte {
	if len(s.places) == 1 {
		return s.places[0].lexer.Bytes(s.places[0].state, to)
	}
	for b := range 256 {
		to = append(to, byte(b))
	}
	return to
}

// Radius is how many code points of a class, any of them, may surely follow in a state of one place; exact: and surely
// no more of them.
func (s *State) Radius(c lex.Class) (n int, exact bool) {
	p := s.places[0]
	return p.lexer.Radius(p.state, c)
}

// Lexer returns the lexer of a state of one place, and its state.
func (s *State) Lexer() (*lex.Lexer, int32) { return s.places[0].lexer, s.places[0].state }

// Parts returns a state for each place of a state. What may follow in one of them may follow in the state.
func (m *Machine) Parts(s *State) []*State {
	if len(s.places) == 1 && !s.final {
		return []*State{s}
	}
	parts := make([]*State, len(s.places))
	for i, p := range s.places {
		parts[i] = m.single(p)
	}
	return parts
}

// Clip returns a state of one place that is the same for all texts of at most n code points as one of one place.
func (m *Machine) Clip(s *State, n int) *State {
	p := s.places[0]
	p.state = p.lexer.Clip(p.state, n)
	if p == s.places[0] {
		return s
	}
	return m.single(p)
}

// Bare returns a state of one place without what follows it.
func (m *Machine) Bare(s *State) *State {
	p := s.places[0]
	p.then = nil
	return m.single(p)
}

// single returns the state of a place alone.
func (m *Machine) single(p place) *State {
	s := m.singles[p]
	if s == nil {
		m.pool.Spend(1)
		m.built.Add(1)
		s = &State{places: []place{p}, forced: unknown}
		m.singles[p] = s
	}
	return s
}

// Machine makes the states of one grammar. One goroutine uses it at a time.
type Machine struct {
	pool    *lex.Pool
	root    Item
	cells   map[cellKey]*cell
	lexers  map[*lex.Lexer]int32
	states  map[string]*State
	singles map[place]*State // those of one place that are not final
	made    int32            // cells
	key     []byte
	begin   *State
	built   atomic.Int64
}

// Built is how many states were made. Any goroutine may ask.
func (m *Machine) Built() int64 { return m.built.Load() }

type cellKey struct {
	item  Item
	below *cell
}

// ErrComplex says that a text leads to more places than a machine follows.
var ErrComplex = errors.New("the grammar is too ambiguous at this place")

// New returns a machine for texts of an item, whose terms are of a pool.
func New(pool *lex.Pool, root Item) *Machine {
	m := &Machine{pool: pool, root: root}
	m.forget()
	return m
}

// forget begins anew to know which states are alike. States that are in use go on to work.
func (m *Machine) forget() {
	m.cells, m.lexers = map[cellKey]*cell{}, map[*lex.Lexer]int32{}
	m.states, m.singles = map[string]*State{}, map[place]*State{}
}

// Allow gives a call its time to build states.
func (m *Machine) Allow() {
	m.pool.Allow(maxBuild)
	if len(m.states)+len(m.singles) > maxStates || len(m.cells) > 4*maxStates {
		m.forget()
	}
}

// Begin returns the state before the first byte.
func (m *Machine) Begin() *State {
	if m.begin == nil {
		w := work{m: m}
		w.enter(m.root, nil)
		m.begin = w.state()
		if m.begin == nil {
			m.begin = dead
		}
	}
	return m.begin
}

// Next follows a byte; nil where it is refused.
func (m *Machine) Next(s *State, b byte) *State {
	if len(s.places) == 1 && s.places[0].lexer.Next(s.places[0].state, b) < 0 {
		return nil // the lexer knows, so that the state need not
	}
	block := s.next[b>>4]
	if block == nil {
		block = new([16]*State)
		s.next[b>>4] = block
	}
	n := block[b&15]
	if n == nil {
		n = m.step(s, b)
		block[b&15] = n
	}
	if n == dead {
		return nil
	}
	return n
}

func (m *Machine) step(s *State, b byte) *State {
	if len(s.places) == 1 {
		p := s.places[0]
		if p.state = p.lexer.Next(p.state, b); p.state < 0 {
			return dead
		}
		if _, ends := p.lexer.Accept(p.state); !ends {
			if !p.lexer.More(p.state) {
				return dead
			}
			return m.single(p)
		}
	}
	w := work{m: m}
	for _, p := range s.places {
		if n := p.lexer.Next(p.state, b); n >= 0 {
			w.at(place{p.lexer, n, p.then})
		}
	}
	if n := w.state(); n != nil {
		return n
	}
	return dead
}

// Forced returns the only byte that may follow; false if there are several or the text may end.
func (m *Machine) Forced(s *State) (byte, bool) {
	if s.forced == unknown {
		s.forced = free
		n := 0
		for b := 0; b < 256 && n < 2 && !s.final; b++ {
			if m.Next(s, byte(b)) != nil {
				s.forced = int16(b)
				n++
			}
		}
		if n != 1 {
			s.forced = free
		}
	}
	return byte(s.forced), s.forced >= 0
}

func (m *Machine) push(item Item, below *cell) *cell {
	k := cellKey{item, below}
	c := m.cells[k]
	if c == nil {
		c = &cell{id: m.made, item: item, below: below, depth: 1}
		if below != nil {
			c.depth += below.depth
			c.arrays, c.distinct = below.arrays, below.distinct
		}
		if item.Symbol != nil && item.Symbol.elements != NoElements {
			c.arrays++
			c.distinct = c.distinct || item.Symbol.elements == DistinctElements
		}
		m.made++
		m.cells[k] = c
	}
	return c
}

// work collects the places of a state.
type work struct {
	m       *Machine
	places  []place
	seen    map[place]bool
	final   bool
	resumed map[*cell]bool
}

// at adds a place, and where its lexeme may end, what follows.
func (w *work) at(p place) {
	out, ends := p.lexer.Accept(p.state)
	if p.lexer.More(p.state) {
		if len(w.places) < 16 {
			if slices.Contains(w.places, p) {
				return
			}
		} else {
			if w.seen == nil {
				w.seen = map[place]bool{}
				for _, q := range w.places {
					w.seen[q] = true
				}
			}
			if w.seen[p] {
				return
			}
			w.seen[p] = true
		}
		if len(w.places) == maxPlaces {
			panic(&lex.LimitError{What: ErrComplex.Error()})
		}
		w.places = append(w.places, p)
	}
	if !ends {
		return
	}
	if symbol, ok := out.(*Symbol); ok && symbol != nil {
		w.enter(Of(symbol), p.then)
		return
	}
	w.resume(p.then)
}

// resume goes on with a stack.
func (w *work) resume(c *cell) {
	if c == nil {
		w.final = true
		return
	}
	if w.resumed[c] {
		return
	}
	if w.resumed == nil {
		w.resumed = map[*cell]bool{}
	}
	w.resumed[c] = true
	w.enter(c.item, c.below)
}

// enter begins an item, behind which a stack follows.
func (w *work) enter(item Item, then *cell) {
	if item.Lexer != nil {
		w.at(place{item.Lexer, item.Start, then})
		return
	}
	for _, list := range item.Symbol.Sequences() {
		if len(list) == 0 {
			w.resume(then)
			continue
		}
		c := then
		for _, i := range slices.Backward(list[1:]) {
			c = w.m.push(i, c)
		}
		if c != nil && c.depth > maxDepth {
			continue
		}
		w.enter(list[0], c)
	}
}

// state returns the state of the places, nil if there are none.
func (w *work) state() *State {
	if len(w.places) == 0 && !w.final {
		return nil
	}
	m := w.m
	if len(w.places) == 1 && !w.final {
		return m.single(w.places[0])
	}
	ids := make([][3]int32, len(w.places))
	for i, p := range w.places {
		id, ok := m.lexers[p.lexer]
		if !ok {
			id = int32(len(m.lexers))
			m.lexers[p.lexer] = id
		}
		ids[i] = [3]int32{id, p.state, -1}
		if p.then != nil {
			ids[i][2] = p.then.id
		}
	}
	slices.SortFunc(ids, func(a, b [3]int32) int { return slices.Compare(a[:], b[:]) })
	k := m.key[:0]
	if w.final {
		k = append(k, 1)
	}
	for _, id := range ids {
		for _, n := range id {
			k = binary.LittleEndian.AppendUint32(k, uint32(n))
		}
	}
	m.key = k
	if s := m.states[string(k)]; s != nil {
		return s
	}
	m.pool.Spend(1)
	m.built.Add(1)
	s := &State{places: slices.Clip(w.places), final: w.final, forced: unknown}
	m.states[string(k)] = s
	return s
}
