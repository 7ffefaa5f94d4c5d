package grammar

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
	"github.com/zincc-dev/zincc/runtime/grammar/machine"
)

// tokens is a set of tokens: a mask, which others may share, and a list of further ones.
type tokens struct {
	mask   Mask
	list   []int32
	common bool // the mask is everybody's
}

// add adds the tokens to a mask.
func (t *tokens) add(to Mask) {
	for i, w := range t.mask {
		to[i] |= w
	}
	for _, id := range t.list {
		to.set(id)
	}
}

// note is what is kept of a state: tokens that may follow, by the machine alone. One that is dropped is made again.
type note struct {
	v      *Vocabulary
	whole  atomic.Pointer[Mask]   // all that may follow
	part   atomic.Pointer[tokens] // the same of a state of one place, without ends
	inside atomic.Pointer[inside]
}

// kept are notes, oldest first.
type kept struct {
	mu    sync.Mutex
	notes []keptNote
	bytes int
}

type keptNote struct {
	*note
	bytes int
}

// keptBytes bounds the memory of what a vocabulary keeps of states.
const keptBytes = 256 << 20

// add keeps a note that has grown, and drops the older half if there is too much.
func (k *kept) add(n *note, bytes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.notes = append(k.notes, keptNote{n, bytes + 64})
	k.bytes += bytes + 64
	if k.bytes < keptBytes {
		return
	}
	at := 0
	for ; at < len(k.notes) && k.bytes > keptBytes/2; at++ {
		old := k.notes[at]
		old.whole.Store(nil)
		old.part.Store(nil)
		old.inside.Store(nil)
		k.bytes -= old.bytes
	}
	k.notes = append([]keptNote(nil), k.notes[at:]...)
}

// maker makes masks of the states of a machine.
type maker struct {
	machine *machine.Machine
	v       *Vocabulary
}

// maxParts is how many places of a state are looked at one by one. More are walked together.
const maxParts = 32

func (k *maker) note(s *machine.State) *note {
	n, _ := s.Note.(*note)
	if n == nil || n.v != k.v {
		n = &note{v: k.v}
		s.Note = n
	}
	return n
}

// scratch is a mask that the next one is made of: a shared one, and a list of further tokens.
type scratch struct {
	mask, shared Mask
	further      []int32
}

// maxFurther is how many further tokens a mask in a scratch has.
const maxFurther = 1 << 12

// set makes the mask of parts of which one at most has a shared mask; false if there are more of these, or long lists.
func (w *scratch) set(parts []*tokens, n int) bool {
	var shared Mask
	total := 0
	for _, t := range parts {
		if t.mask != nil {
			if shared != nil {
				return false
			}
			shared = t.mask
		}
		total += len(t.list)
	}
	if total > maxFurther {
		return false
	}
	switch {
	case w.mask == nil:
		w.mask = NewMask(n)
		copy(w.mask, shared)
	case len(shared) == 0 && len(w.shared) == 0 || len(shared) > 0 && len(w.shared) > 0 && &shared[0] == &w.shared[0]:
		for _, id := range w.further {
			w.mask.clear(id)
		}
	case shared == nil:
		clear(w.mask)
	default:
		copy(w.mask, shared)
	}
	w.shared, w.further = shared, w.further[:0]
	for _, t := range parts {
		for _, id := range t.list {
			w.add(id)
		}
	}
	return true
}

// add sets a token.
func (w *scratch) add(id int32) {
	if !w.mask.Has(id) {
		w.mask.set(id)
		w.further = append(w.further, id)
	}
}

// remove clears a token; the mask is then made anew next.
func (w *scratch) remove(id int32) {
	if w.mask.Has(id) {
		w.mask.clear(id)
		w.shared = Mask{0}
	}
}

// mask returns the tokens that may follow a state, in the scratch, or in a mask that is kept.
func (k *maker) mask(s *machine.State, w *scratch) Mask {
	n := k.note(s)
	if p := n.whole.Load(); p != nil {
		return *p
	}
	v := k.v
	states := k.machine.Parts(s)
	if len(states) <= maxParts {
		parts := make([]*tokens, len(states))
		for i, p := range states {
			parts[i] = k.part(p)
		}
		if w.set(parts, v.Len()) {
			k.ends(s, w.add, w.remove)
			return w.mask
		}
		mask := NewMask(v.Len())
		for _, t := range parts {
			t.add(mask)
		}
		return k.keep(n, s, mask)
	}
	mask := NewMask(v.Len())
	k.walk(s, v.all, func(id int32) { v.add(mask, id) })
	return k.keep(n, s, mask)
}

// keep keeps the mask of a state.
func (k *maker) keep(n *note, s *machine.State, mask Mask) Mask {
	k.ends(s, mask.set, mask.clear)
	n.whole.Store(&mask)
	k.v.kept.add(n, 8*len(mask))
	return mask
}

// ends adds the tokens that end an answer where it may, and removes them where it may not.
func (k *maker) ends(s *machine.State, add, remove func(id int32)) {
	for _, id := range k.v.ends {
		switch {
		case int(id) >= k.v.Len() || id < 0:
		case s.Final():
			add(id)
		default:
			remove(id)
		}
	}
}

// part returns the tokens that may follow a state of one place. States that no token tells apart have the same.
func (k *maker) part(s *machine.State) *tokens {
	if clipped := k.machine.Clip(s, k.v.longest); clipped != s {
		return k.part(clipped)
	}
	n := k.note(s)
	if t := n.part.Load(); t != nil {
		return t
	}
	t := k.make(s)
	n.part.Store(t)
	bytes := 8*len(t.mask) + 4*len(t.list)
	if t.common {
		bytes = 4 * len(t.list)
	}
	k.v.kept.add(n, bytes)
	return t
}

// make makes the tokens that may follow a state of one place.
func (k *maker) make(s *machine.State) *tokens {
	l, at := s.Lexer()
	in, any, kind := l.InString(at)
	if !in {
		return k.outside(s)
	}
	inside := k.inside(s, any, kind)
	if base := k.v.baseOfText[kind]; any && base != nil {
		t := &tokens{mask: base, common: true}
		inside.tails(k, s, func(id int32) {
			for ; id >= 0; id = k.v.twins[id] {
				t.list = append(t.list, id)
			}
		})
		t.list = slices.Clip(t.list)
		return t
	}
	t := &tokens{mask: NewMask(k.v.Len())}
	k.plain(s, t.mask, func(tries ...trie) { k.lexical(l, at, tries, func(id, _ int32) { k.v.add(t.mask, id) }) })
	inside.inner.add(t.mask)
	inside.tails(k, s, func(id int32) { k.v.add(t.mask, id) })
	return t
}

// plain adds the tokens of plain text that may follow: of a class, where any of them may. It calls walk with the tries
// of the others.
func (k *maker) plain(s *machine.State, mask Mask, walk func(tries ...trie)) {
	v := k.v
	for _, c := range lex.Classes {
		r, exact := s.Radius(c)
		at := 0
		for at < len(radii) && radii[at] <= r {
			at++
		}
		if at == 0 && !(exact && r > 0) {
			continue
		}
		slice := &v.slices[c]
		from := 1
		if at > 0 {
			copy(mask, slice.sets[at-1])
			from = radii[at-1] + 1
		}
		if exact {
			for n := from; n <= r && n < len(slice.length); n++ {
				for _, id := range slice.length[n] {
					v.add(mask, id)
				}
			}
		} else {
			walk(slice.longer[at:]...)
		}
		if c != lex.Plain {
			walk(slice.rest)
		}
		return
	}
	walk(v.slices[lex.Plain].longer...)
}

// outside returns the tokens that may follow a state that is in no JSON string.
func (k *maker) outside(s *machine.State) *tokens {
	if r, _ := s.Radius(lex.Word); r == 0 {
		return k.collect(s, k.v.all)
	}
	t := &tokens{mask: NewMask(k.v.Len())}
	walk := func(tries ...trie) { k.walk(s, tries, func(id int32) { k.v.add(t.mask, id) }) }
	k.plain(s, t.mask, walk)
	walk(k.v.slices[lex.Plain].rest)
	return t
}

// inside is what may follow in a JSON string and is no plain text, whatever stands behind the string.
type inside struct {
	inner tokens
	ends  []end
}

// end are the tokens that end the string with one meaning.
type end struct {
	out   any
	head  string
	tails [][]int32
}

// inside returns what may follow in a JSON string.
func (k *maker) inside(s *machine.State, any bool, kind int) (in *inside) {
	if any {
		k.v.anyText[kind].Do(func() {
			in, base := k.newInside(s), slices.Clone(k.v.slices[lex.Plain].sets[len(radii)-1])
			in.inner.add(base)
			k.v.inAnyText[kind], k.v.baseOfText[kind] = in, base
		})
		in = k.v.inAnyText[kind]
		if in != nil { // else it was too complex once
			return in
		}
	}
	s = k.machine.Clip(k.machine.Bare(s), k.v.marked+1)
	n := k.note(s)
	if in := n.inside.Load(); in != nil {
		return in
	}
	in = k.newInside(s)
	n.inside.Store(in)
	bytes := 8*len(in.inner.mask) + 4*len(in.inner.list)
	for _, e := range in.ends {
		bytes += 64 + 32*len(e.tails)
	}
	k.v.kept.add(n, bytes)
	return in
}

func (k *maker) newInside(s *machine.State) *inside {
	l, at := s.Lexer()
	q := &k.v.quotes
	in := &inside{}
	var list []int32
	k.lexical(l, at, []trie{q.inner}, func(id, _ int32) {
		for ; id >= 0; id = k.v.twins[id] {
			list = append(list, id)
		}
	})
	in.inner = k.set(list)
	k.lexical(l, at, []trie{q.heads}, func(head, state int32) {
		out, ok := l.Accept(state)
		if !ok {
			return
		}
		i := slices.IndexFunc(in.ends, func(e end) bool { return e.out == out })
		if i < 0 {
			i = len(in.ends)
			in.ends = append(in.ends, end{out: out, head: q.texts[head]})
		}
		e := &in.ends[i]
		for _, c := range q.closes[head] {
			for int(c.tail) >= len(e.tails) {
				e.tails = append(e.tails, nil)
			}
			e.tails[c.tail] = append(e.tails[c.tail], c.id)
		}
	})
	for i := range in.ends {
		in.ends[i].out = nil // of one grammar
	}
	return in
}

// tails calls f with the tokens that end the string in a state; of those with the same text, with the first one.
func (in *inside) tails(k *maker, s *machine.State, f func(id int32)) {
	q := &k.v.quotes
	for _, e := range in.ends {
		behind := s
		for i := 0; i < len(e.head) && behind != nil; i++ {
			behind = k.machine.Next(behind, e.head[i])
		}
		if behind == nil {
			continue
		}
		add := func(tail int32) {
			if int(tail) < len(e.tails) {
				for _, id := range e.tails[tail] {
					f(id)
				}
			}
		}
		if q.bare {
			add(0)
		}
		k.walk(behind, []trie{q.tails}, add)
	}
}

// set is a set of the tokens of a list.
func (k *maker) set(list []int32) tokens {
	if len(list) <= words(k.v.Len()) {
		return tokens{list: list}
	}
	t := tokens{mask: NewMask(k.v.Len())}
	for _, id := range list {
		t.mask.set(id)
	}
	return t
}

// collect returns the tokens of tries that may follow.
func (k *maker) collect(s *machine.State, tries []trie) *tokens {
	var list []int32
	k.walk(s, tries, func(id int32) {
		for ; id >= 0; id = k.v.twins[id] {
			list = append(list, id)
		}
	})
	t := k.set(list)
	return &t
}

// walk calls f with the tokens of tries that may follow; of those with the same text, with the first one.
func (k *maker) walk(s *machine.State, tries []trie, f func(id int32)) {
	var buffer [256]byte
	bytes := s.Bytes(buffer[:0])
	stack := make([]*machine.State, 64)
	stack[0] = s
	for ti := range tries {
		t := tries[ti].nodes
		for _, b := range bytes {
			root := tries[ti].roots[b]
			if root < 0 {
				continue
			}
			for i, end := int(root), int(t[root].end); i < end; {
				n := &t[i]
				s := k.machine.Next(stack[n.depth-1], n.b)
				if s == nil {
					i = int(n.end)
					continue
				}
				if int(n.depth) == len(stack) {
					stack = append(stack, make([]*machine.State, len(stack))...)
				}
				stack[n.depth] = s
				if n.token >= 0 {
					f(n.token)
				}
				i++
			}
		}
	}
}

// lexical is walk within a lexeme. It calls f with the state that a token leads to, too.
func (k *maker) lexical(l *lex.Lexer, from int32, tries []trie, f func(id, state int32)) {
	var buffer [256]byte
	bytes := l.Bytes(from, buffer[:0])
	stack := make([]int32, 64)
	stack[0] = from
	for ti := range tries {
		t := tries[ti].nodes
		for _, b := range bytes {
			root := tries[ti].roots[b]
			if root < 0 {
				continue
			}
			for i, end := int(root), int(t[root].end); i < end; {
				n := &t[i]
				s := l.Next(stack[n.depth-1], n.b)
				if s < 0 {
					i = int(n.end)
					continue
				}
				if int(n.depth) == len(stack) {
					stack = append(stack, make([]int32, len(stack))...)
				}
				stack[n.depth] = s
				if n.token >= 0 {
					f(n.token, s)
				}
				i++
			}
		}
	}
}
