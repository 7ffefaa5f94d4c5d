package text

import (
	"iter"
	"slices"
)

// A merger joins the parts of one word pair by pair, the pair of lowest rank
// first and the leftmost of those, until no pair is left. Its memory is kept
// from word to word.
type merger struct {
	rule interface {
		// join says which symbol two neighbours in the word make.
		join(word string, l, r node) (rank int32, symbol int32, ok bool)
	}
	stop  *cancel // ends the joins early
	word  string
	nodes []node
	queue mergeQueue
}

// A node is a part of the word, in a list. Joining two makes the left one the
// result and leaves the right one empty.
type node struct {
	start, end int32 // in bytes
	symbol     int32
	prev, next int32 // -1: none
}

func (n node) len() int32 { return n.end - n.start }

// begin starts a new word, of so many parts at most.
func (m *merger) begin(word string, parts int) {
	m.word = word
	m.nodes = slices.Grow(m.nodes[:0], parts)
	m.queue = slices.Grow(m.queue[:0], parts)
}

// add appends a part to the word.
func (m *merger) add(start, end, symbol int32) {
	i := int32(len(m.nodes))
	m.nodes = append(m.nodes, node{start, end, symbol, i - 1, -1})
	if i > 0 {
		m.nodes[i-1].next = i
		m.propose(i-1, i)
	}
}

// merged does all merges and yields the parts that remain.
func (m *merger) merged() iter.Seq[node] {
	for len(m.queue) > 0 && !m.stop.now() {
		c := m.queue.pop()
		l, r := &m.nodes[c.left], &m.nodes[c.right]
		if l.len() == 0 || r.len() == 0 || l.len()+r.len() != c.len {
			continue // one side has been joined with another since
		}
		l.symbol = c.symbol
		l.end = r.end
		l.next = r.next
		r.start = r.end
		if r.next >= 0 {
			m.nodes[r.next].prev = c.left
		}
		m.propose(l.prev, c.left)
		m.propose(c.left, l.next)
	}
	return func(yield func(node) bool) {
		for i := 0; i >= 0 && i < len(m.nodes); i = int(m.nodes[i].next) {
			if !yield(m.nodes[i]) {
				return
			}
		}
	}
}

// propose queues the join of two neighbours if the rule has it.
func (m *merger) propose(left, right int32) {
	if left < 0 || right < 0 {
		return
	}
	l, r := m.nodes[left], m.nodes[right]
	if rank, symbol, ok := m.rule.join(m.word, l, r); ok {
		m.queue.push(candidate{rank, left, right, l.len() + r.len(), symbol})
	}
}

// A candidate is a join that was possible when it was queued.
type candidate struct {
	rank        int32
	left, right int32 // nodes
	len         int32 // of both together
	symbol      int32 // the result
}

// mergeQueue is a binary heap: the lowest rank first, then the leftmost.
type mergeQueue []candidate

func (q mergeQueue) less(i, j int) bool {
	return q[i].rank < q[j].rank || q[i].rank == q[j].rank && q[i].left < q[j].left
}

func (q *mergeQueue) push(c candidate) {
	*q = append(*q, c)
	h := *q
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (q *mergeQueue) pop() candidate {
	h := *q
	top := h[0]
	n := len(h) - 1
	h[0] = h[n]
	h = h[:n]
	*q = h
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < n && h.less(child, least) {
				least = child
			}
		}
		if least == i {
			return top
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
