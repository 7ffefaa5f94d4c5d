package sample

import "math"

// dry lowers the logits of tokens that would continue a repetition: where the tokens before a place are
// those at the end of the history, the token at that place would.
func (s *Sampler) dry() {
	r := s.repeats
	if r == nil {
		return
	}
	r.follow(s.history)
	longest := r.tokens(s.history, s.set.vocab())
	s.set.change(func(id int32, l float64) float64 {
		return l - min(r.p.Multiplier*math.Pow(r.p.Base, float64(longest[id]-int32(r.p.AllowedLength))), math.MaxFloat32)
	}, r.ids)
	for _, id := range r.ids {
		longest[id] = 0
	}
}

// repeats follows the repetitions at the end of a sequence. A token more costs one look at each of those before it.
type repeats struct {
	p        DRY
	piece    func(id int32) string
	breakers *matcher // nil without any
	state    int32    // of the matcher, behind what was followed
	broken   int      // the place behind the last token in which a breaker ends
	runs     []int32  // of each place, how many tokens before it are those at the end
	breaking []int8   // by token, whether it holds a breaker: 0 is not known, 1 no, 2 yes
	longest  []int32  // by token, 0 between choices
	ids      []int32  // of the tokens that would continue a repetition
}

func newRepeats(p DRY, piece func(id int32) string) *repeats {
	if p.Multiplier == 0 || p.Window == 0 {
		return nil
	}
	return &repeats{p: p, piece: piece, breakers: newMatcher(p.Breakers)}
}

// follow takes in what the history has more than before.
func (r *repeats) follow(history []int32) {
	for at := len(r.runs); at < len(history); at++ {
		if r.breakers != nil {
			var ended bool
			if r.state, ended = r.breakers.read(r.state, r.piece(history[at])); ended {
				r.broken = at + 1
			}
		}
	}
	switch more := len(history) - len(r.runs); more {
	case 0:
	case 1:
		end := len(r.runs)
		r.runs = append(r.runs, 0)
		last := history[end]
		for i := end; i > 0; i-- {
			r.runs[i] = 0
			if history[i-1] == last {
				r.runs[i] = r.runs[i-1] + 1
			}
		}
		r.runs[0] = 0
	default:
		r.runs = suffixes(history)
	}
}

// tokens sets ids, and for each of them the length of the longest repetition that it would continue.
func (r *repeats) tokens(history []int32, vocab int) []int32 {
	r.ids = r.ids[:0]
	if len(r.longest) < vocab {
		r.longest, r.breaking = make([]int32, vocab), make([]int8, vocab)
	}
	n := len(history)
	start := 0
	if w := r.p.Window; w >= 0 {
		start = max(0, n-w)
	}
	limit, least := n-r.broken, max(1, r.p.AllowedLength)
	if n-start <= r.p.AllowedLength || limit < least {
		return r.longest
	}
	for i := start + 1; i < n; i++ {
		// history[i-length:i] are the last tokens.
		length, id := min(int(r.runs[i]), i-start, limit), history[i]
		if length < least || int(id) >= vocab || int32(length) <= r.longest[id] || r.breaks(id) {
			continue
		}
		if r.longest[id] == 0 {
			r.ids = append(r.ids, id)
		}
		r.longest[id] = int32(length)
	}
	return r.longest
}

// breaks says whether a token holds a breaker.
func (r *repeats) breaks(id int32) bool {
	if r.breaking[id] == 0 {
		r.breaking[id] = 1
		if r.breakers != nil {
			if _, ended := r.breakers.read(0, r.piece(id)); ended {
				r.breaking[id] = 2
			}
		}
	}
	return r.breaking[id] == 2
}

// suffixes returns for each place of a how many of the tokens before it are those at the end of a: the
// Z function of a from behind, in time linear in its length (Gusfield 1997, section 1.4).
func suffixes(a []int32) []int32 {
	n := len(a)
	z := make([]int32, n) // z[i]: a[n-1-i-k] == a[n-1-k] for k < z[i]
	left, right := 0, 0
	for i := 1; i < n; i++ {
		k := 0
		if i < right {
			k = min(right-i, int(z[i-left]))
		}
		for i+k < n && a[n-1-i-k] == a[n-1-k] {
			k++
		}
		if z[i] = int32(k); i+k > right {
			left, right = i, i+k
		}
	}
	out := make([]int32, n)
	for i := 1; i < n; i++ {
		out[n-i] = z[i] // the place behind a[n-1-i]
	}
	return out
}

// A matcher finds whether one of several texts ends somewhere in what it reads, a byte at a time (Aho and Corasick
// 1975). It has a state for each beginning of a text; 0 is that of none.
type matcher struct {
	next map[edge]int32 // longer beginnings, by one byte
	like []int32        // the longest beginning that a state ends with
	ends []bool
}

type edge struct {
	from int32
	with byte
}

// newMatcher returns nil if there is no text, but for empty ones.
func newMatcher(texts []string) *matcher {
	m := &matcher{next: map[edge]int32{}, like: make([]int32, 1), ends: make([]bool, 1)}
	layers := [][]edge{} // edges by how long their beginnings are
	for _, text := range texts {
		at := int32(0)
		for i := range len(text) {
			e := edge{at, text[i]}
			to, ok := m.next[e]
			if !ok {
				to = int32(len(m.ends))
				m.next[e], m.like, m.ends = to, append(m.like, 0), append(m.ends, false)
				if len(layers) == i {
					layers = append(layers, nil)
				}
				layers[i] = append(layers[i], e)
			}
			at = to
		}
		m.ends[at] = at > 0
	}
	if len(m.ends) == 1 {
		return nil
	}
	for i, layer := range layers {
		for _, e := range layer {
			to := m.next[e]
			if i > 0 {
				m.like[to] = m.step(m.like[e.from], e.with)
			}
			m.ends[to] = m.ends[to] || m.ends[m.like[to]]
		}
	}
	return m
}

func (m *matcher) step(state int32, c byte) int32 {
	for {
		if to, ok := m.next[edge{state, c}]; ok || state == 0 {
			return to
		}
		state = m.like[state]
	}
}

// read reads a text in a state, and says whether one of the texts ended in it.
func (m *matcher) read(state int32, text string) (_ int32, ended bool) {
	for i := range len(text) {
		state = m.step(state, text[i])
		ended = ended || m.ends[state]
	}
	return state, ended
}
