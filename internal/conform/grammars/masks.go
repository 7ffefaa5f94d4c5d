package main

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"

	"github.com/zincc-dev/zincc/runtime/grammar"
)

// grammars makes the grammars of all schemas that are taken.
func grammarsOf(args []string) ([]*grammar.Grammar, []string, error) {
	list, err := find(args)
	if err != nil {
		return nil, nil, err
	}
	var out []*grammar.Grammar
	var names []string
	for _, s := range list {
		if g, _, err := grammar.Schema(inDraft(s.name, s.text), grammar.SchemaOptions{}); err == nil {
			out, names = append(out, g), append(names, s.name)
		}
	}
	if len(out) == 0 {
		return nil, nil, fmt.Errorf("none of %d schemas is taken", len(list))
	}
	return out, names, nil
}

func (o *options) vocabularies() ([]*grammar.Vocabulary, error) {
	if len(o.tokenizers) == 0 {
		return nil, fmt.Errorf("want a --tokenizer")
	}
	var out []*grammar.Vocabulary
	for _, path := range o.tokenizers {
		v, err := readTokenizer(path)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// masks compares masks with all tokens, tried one by one, in states of random walks.
func masks(o *options, args []string) error {
	vocabularies, err := o.vocabularies()
	if err != nil {
		return err
	}
	grammars, names, err := grammarsOf(args)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(o.seed, 0))
	many, few, states := 0, 0, 0
	for states < o.states {
		at := r.IntN(len(grammars))
		v := vocabularies[r.IntN(len(vocabularies))]
		m := grammars[at].Match(v)
		for range walkTokens {
			mask := m.Mask()
			if err := m.Err(); err != nil {
				return fmt.Errorf("%s: %w", names[at], err)
			}
			if r.IntN(4) == 0 && states < o.states {
				states++
				for id, want := range o.tried(m, v) {
					if have := mask.Has(int32(id)); have && !want {
						many++
						fmt.Printf("%s: %q: token %d is allowed\n", names[at], m.Text(), id)
					} else if want && !have {
						few++
						fmt.Printf("%s: %q: token %d is not allowed\n", names[at], m.Text(), id)
					}
				}
			}
			id, ok := pick(r, v, mask)
			if !ok {
				return fmt.Errorf("%s: %q: no token is allowed", names[at], m.Text())
			}
			if !m.Accept(id) {
				return fmt.Errorf("%s: %q: token %d is in the mask and not accepted", names[at], m.Text(), id)
			}
			if m.Over() {
				break
			}
		}
	}
	fmt.Printf("%d states of %d grammars: %d tokens too many, %d too few; seed %d\n", states, len(grammars), many, few, o.seed)
	if many+few > 0 {
		return fmt.Errorf("masks differ")
	}
	return nil
}

// tried tries every token of a vocabulary by itself. Of those that begin with bytes that are refused, one is tried.
func (o *options) tried(m *grammar.Matcher, v *grammar.Vocabulary) []bool {
	order := o.orders[v]
	if order == nil {
		for id := range int32(v.Len()) {
			order = append(order, id)
		}
		slices.SortFunc(order, func(a, b int32) int { return strings.Compare(v.Piece(a), v.Piece(b)) })
		o.orders[v] = order
	}
	allowed := make([]bool, v.Len())
	for i := 0; i < len(order); {
		id := order[i]
		piece := v.Piece(id)
		i++
		if allowed[id] = m.Allows(id); allowed[id] || piece == "" || piece[0] == grammar.Mark {
			continue
		}
		n := 1
		for n < len(piece) && m.Clone().AcceptText(piece[:n]) {
			n++
		}
		refused := piece[:n]
		i += sort.Search(len(order)-i, func(k int) bool { return !strings.HasPrefix(v.Piece(order[i+k]), refused) })
	}
	return allowed
}

// pick draws a token: any one that is allowed, or a short one, so that texts come to an end.
func pick(r *rand.Rand, v *grammar.Vocabulary, mask grammar.Mask) (int32, bool) {
	n := mask.Count()
	if n == 0 {
		return 0, false
	}
	best := int32(-1)
	for range 1 + r.IntN(6) {
		k := r.IntN(n)
		for w, word := range mask {
			if c := bits.OnesCount64(word); k >= c {
				k -= c
				continue
			}
			for ; k > 0; k-- {
				word &= word - 1
			}
			id := int32(w*64 + bits.TrailingZeros64(word))
			if best < 0 || len(v.Piece(id)) < len(v.Piece(best)) {
				best = id
			}
			break
		}
	}
	return best, true
}
