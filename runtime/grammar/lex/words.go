package lex

// Many is more texts than anybody counts.
const Many = 1 << 20

// Words returns how many texts a language has, at most Many. It counts them by their length.
func (p *Pool) Words(t *Term) int {
	if t.words > 0 {
		return int(t.words) - 1
	}
	total := 0
	seen := map[*Term]bool{t: true}
	ring, counts := []*Term{t}, map[*Term]int{t: 1}
	for length := 0; len(ring) > 0 && total < Many; length++ {
		if length > len(seen) { // a state has come twice, and may so again
			total = Many
			break
		}
		var next []*Term
		more := map[*Term]int{}
		for _, s := range ring {
			if s.nullable {
				total = min(Many, total+counts[s])
			}
			for _, e := range p.Edges(s) {
				if more[e.To] == 0 {
					next = append(next, e.To)
				}
				more[e.To] = min(Many, more[e.To]+counts[s]*int(e.Hi-e.Lo+1))
				if !seen[e.To] {
					seen[e.To] = true
					p.Spend(1)
				}
			}
		}
		ring, counts = next, more
	}
	t.words = int32(total) + 1
	return total
}

// Other says whether a language has a text that is none of a list.
func (p *Pool) Other(t *Term, list []string) bool {
	words := p.Words(t)
	if words > len(list) {
		return true
	}
	for _, s := range list {
		if p.Has(t, s) {
			words--
		}
	}
	return words > 0
}
