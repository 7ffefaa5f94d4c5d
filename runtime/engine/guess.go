package engine

// A guess is what comes next if a text repeats itself: what came the last time behind the same tokens. Agents write
// what they have read again and again, such as the lines around a change. A guess costs the host next to nothing, also
// where it is not used, so each one that could be made tells how often such guesses hold.

const (
	// guessBehind is how many tokens are alike, at least, where a guess begins.
	guessBehind = 3
	// guessLong is behind how many tokens that are alike a guess counts as one of a long run. Such guesses hold more
	// often, and what others were worth says little of them.
	guessLong = 8
	// fewestPlaces and mostPlaces bound the places that are remembered, by a hash; later ones take the room of earlier
	// ones. An answer may be much longer than its prompt.
	fewestPlaces, mostPlaces = 1 << 12, 1 << 16
)

// guesses are those of a sequence.
type guesses struct {
	places []int32 // how many tokens end with three of such a hash; 0: none do
	at     int     // the token there is expected next; 0: none is
	alike  int     // how many tokens before it are the last ones
	odds   [2]odds // behind few tokens that are alike, and behind many
}

// odds are how often guesses held, of late.
type odds struct{ held, all float64 }

const (
	// fadeOdds is the weight of a guess beside the next one.
	fadeOdds = 1 - 1.0/32
	// priorOdds is for how many guesses the share stands that is assumed before there were any.
	priorOdds = 2
)

// shares are those of guesses that hold, assumed before there were any. Behind three tokens of a text that does not
// repeat itself others come more often than not.
var shares = [2]float64{0.3, 0.7}

// newGuesses looks at a prompt.
func newGuesses(prompt []int32) *guesses {
	n := fewestPlaces
	for n < 2*len(prompt) && n < mostPlaces {
		n *= 2
	}
	g := &guesses{places: make([]int32, n)}
	for n := guessBehind; n < len(prompt); n++ {
		g.places[g.place(prompt[n-guessBehind:n])] = int32(n)
	}
	if len(prompt) >= guessBehind {
		g.find(history{prompt: prompt})
	}
	return g
}

// history is the tokens of a sequence.
type history struct{ prompt, answer []int32 }

func (t history) len() int { return len(t.prompt) + len(t.answer) }

func (t history) at(i int) int32 {
	if i < len(t.prompt) {
		return t.prompt[i]
	}
	return t.answer[i-len(t.prompt)]
}

// place is where the place of three tokens is kept.
func (g *guesses) place(last []int32) int {
	h := uint64(0)
	for _, t := range last {
		h = (h ^ uint64(uint32(t))) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return int(h & uint64(len(g.places)-1))
}

// find looks for the last three tokens in what comes before, and keeps their place.
func (g *guesses) find(t history) {
	n := t.len()
	var last [guessBehind]int32
	for i := range last {
		last[i] = t.at(n - guessBehind + i)
	}
	place := &g.places[g.place(last[:])]
	if at := int(*place); g.at == 0 && at > 0 {
		same := true
		for i := range last {
			same = same && t.at(at-guessBehind+i) == last[i]
		}
		if same {
			g.at, g.alike = at, guessBehind
		}
	}
	*place = int32(n)
}

// add looks at the last token of a text, which is new.
func (g *guesses) add(t history) {
	n := t.len()
	if g.at > 0 {
		held := t.at(g.at) == t.at(n-1)
		g.odds[g.kind()].add(held)
		if g.at, g.alike = g.at+1, g.alike+1; !held {
			g.at, g.alike = 0, 0
		}
	}
	if n >= guessBehind {
		g.find(t)
	}
}

// kind says which odds are those of the next guess.
func (g *guesses) kind() int {
	if g.alike < guessLong {
		return 0
	}
	return 1
}

// chance is how likely the next guess holds; 0: there is none.
func (g *guesses) chance() float64 {
	if g == nil || g.at == 0 {
		return 0
	}
	o := g.odds[g.kind()]
	return (o.held + priorOdds*shares[g.kind()]) / (o.all + priorOdds)
}

// next appends up to n tokens to a list, which are guessed to come next. Behind the end of the text they go on with
// themselves.
func (g *guesses) next(list []int32, t history, n int) []int32 {
	first := len(list)
	for i := g.at; i < g.at+n; i++ {
		if i < t.len() {
			list = append(list, t.at(i))
		} else {
			list = append(list, list[first+i-t.len()])
		}
	}
	return list
}

func (o *odds) add(held bool) {
	o.held, o.all = fadeOdds*o.held, fadeOdds*o.all+1
	if held {
		o.held++
	}
}
