package engine

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/zincc-dev/zincc/plans"
)

// prompts says how prompts are cut into steps. It depends on the plan and the bound alone, so
// that a prompt has the same steps whatever else runs.
type prompts struct {
	entries []*plans.Entry // prefill and decode, by rows
	decode  []*plans.Entry // by rows
	alike   []*plans.Entry // those that are, by rows
	part    int            // steps of these end a run of a prompt at a multiple of it, or where the prompt ends
	grain   int            // of all of these: their steps begin at a multiple of it
	least   int            // rows of these that a step has time for wherever they serve
	several bool           // they take runs of several prompts
	joins   int            // how many tokens that are left of a prompt are read in rounds of decoding, at most
	pieces  []piece        // of the context
	cuts    []int          // where prompts can go on that begin alike, ascending; the last one is the context
	costs   []float64      // seconds that a prompt takes up to each cut, as predicted
}

// piece is a part of the context that steps of an entry read, unless the prompt ends there. Then the narrowest entry
// that reaches its end reads the rest. A prompt that ends behind, or whose rest takes the piece's entry, too, can also
// go on at the cuts within: there the entry's grain lets a step begin.
//
// Of entries that are alike the narrowest stands for all of them, and how many rows of a prompt a step has is chosen as
// it comes. Where they have parts, only what is shorter than one has a narrow entry, as a part of a step that others
// are in takes less. There a piece is as long as they serve.
type piece struct {
	begin, end int
	widest     *plans.Entry
	cuts       bool // there are some within
}

// cell is how far apart cuts within pieces are, at least, in positions. Narrower ones spare little: kernels take about
// as many rows at once.
const cell = 128

// margin is how much longer than predicted a step may take before it breaks the bound.
const margin = 1.25

// unpredicted is what a token counts for, in seconds, where nothing is predicted: there only comparisons matter.
const unpredicted = 1e-3

// newPrompts cuts the context into pieces of the widest prefill entry whose predicted time leaves room for the widest
// step of decoding within the bound, or is half of the bound: few plans ever have a step of all rows far behind, and
// in narrow pieces prompts would take several times as long. Entries that are alike serve as far as few of their rows
// fit the bound: where somebody answers, a step has as many as there is time for. Pieces are of the narrowest, if none
// is so fast or nothing is predicted. What steps really take does not count: then a prompt's bits would depend on it.
// A processor ends in the middle of a step, and its time is predicted for two cores: where nobody waits, pieces there
// are the widest.
func newPrompts(plan *plans.Plan, itl time.Duration) (*prompts, error) {
	p := &prompts{}
	var prefill []*plans.Entry
	for i := range plan.Entries {
		switch e := &plan.Entries[i]; e.Kind {
		case "decode":
			p.entries, p.decode = append(p.entries, e), append(p.decode, e)
		case "prefill":
			p.entries = append(p.entries, e)
			prefill = append(prefill, e)
		}
	}
	if len(p.decode) == 0 {
		return nil, fmt.Errorf("plan has no entry that decodes")
	}
	for _, list := range [][]*plans.Entry{p.entries, p.decode, prefill} {
		slices.SortFunc(list, func(a, b *plans.Entry) int { return cmp.Compare(a.Rows, b.Rows) })
	}
	decode := p.decode[len(p.decode)-1]
	if len(prefill) == 0 {
		prefill = []*plans.Entry{decode}
	}
	prefill = slices.DeleteFunc(prefill, func(e *plans.Entry) bool {
		if alike(e) {
			p.alike = append(p.alike, e)
		}
		return alike(e) && e != p.alike[0]
	})
	if err := p.setPart(); err != nil {
		return nil, err
	}
	p.setJoins()
	alone := plan.StopsInStep() && itl >= Unhurried
	for pos := 0; pos < plan.Header.Ctx; {
		best := prefill[0]
		if alone {
			best = prefill[len(prefill)-1]
		}
		beside := min(decode.Predict(pos).Seconds(), itl.Seconds()/margin/2)
		for _, e := range prefill {
			took, room := e.Predict(pos).Seconds(), beside
			if alike(e) {
				took, room = ofRows(e.Predict(0).Seconds(), took, p.least, e.Rows), 0
			}
			if took > 0 && margin*(took+room) <= itl.Seconds() {
				best = e
			}
		}
		end := min(pos+best.Run, plan.Header.Ctx)
		if last := len(p.pieces) - 1; last >= 0 && alike(best) && p.several && p.pieces[last].widest == best {
			p.pieces[last].end = end
		} else {
			p.pieces = append(p.pieces, piece{begin: pos, end: end, widest: best})
		}
		pos = end
	}
	p.cut(plan)
	return p, nil
}

// setPart sets the rows of a part, also of entries that are alike and have none.
func (p *prompts) setPart() error {
	p.part, p.grain, p.several = 1, 1, true
	for _, e := range p.alike {
		p.part, p.several = lcm(p.part, cmp.Or(e.Part, e.Grain)), p.several && e.Part > 0
		if least := p.alike[0]; p.part > least.Rows { // at once: more of them could overflow
			return fmt.Errorf("entry %s has fewer rows than a part, which has %d", least.Name, p.part)
		}
		p.grain = lcm(p.grain, e.Grain) // which divides a part
	}
	if len(p.alike) > 0 {
		p.least = min((cell+p.part-1)/p.part*p.part, p.alike[0].Rows)
	}
	return nil
}

// cut sets the cuts of all pieces, at their begin and within. Those within begin a page where caches lie in pages, so
// that who goes on there copies none. Models with recurrent state go on at those of them where steps end (due).
func (p *prompts) cut(plan *plans.Plan) {
	page := 1
	if k := plan.Paged(); k != nil {
		page = k.Page
	}
	spent := 0.0
	for i := range p.pieces {
		q := &p.pieces[i]
		each := 0 // nowhere within
		if g := q.widest.Grain; g > 0 && q.begin%g == 0 && p.narrowest(q, q.begin, q.end) == q.widest {
			each = lcm(g, page)
			each *= (cell + each - 1) / each
		}
		for pos := q.begin; pos < q.end; {
			p.cuts, p.costs = append(p.cuts, pos), append(p.costs, spent)
			next := q.end
			if each > 0 {
				next = min((pos/each+1)*each, q.end)
			}
			q.cuts = q.cuts || pos > q.begin
			took := cmp.Or(q.widest.Predict(pos).Seconds(), unpredicted*float64(q.widest.Run))
			spent += took * float64(next-pos) / float64(q.widest.Run)
			pos = next
		}
	}
	p.cuts, p.costs = append(p.cuts, plan.Header.Ctx), append(p.costs, spent)
}

func lcm(a, b int) int {
	n := a
	for n%b != 0 {
		n += a
	}
	return n
}

// pieceAt is the number of the piece that has a position.
func (p *prompts) pieceAt(pos int) int {
	return min(sort.Search(len(p.pieces), func(i int) bool { return p.pieces[i].end > pos }), len(p.pieces)-1)
}

// cutBefore is the last cut at or before pos.
func (p *prompts) cutBefore(pos int) int {
	return p.cuts[sort.SearchInts(p.cuts, pos+1)-1]
}

// cost is how many seconds a prompt takes up to the cut at pos.
func (p *prompts) cost(pos int) float64 { return p.costs[sort.SearchInts(p.cuts, pos)] }

// cutsIn lists the cuts behind a position, up to another one.
func (p *prompts) cutsIn(after, to int) []int {
	first := sort.SearchInts(p.cuts, after+1)
	return p.cuts[first:max(first, sort.SearchInts(p.cuts, to+1))]
}

// apart is how far a cut is at least from a recurrent state before it for steps to end there only to keep another one:
// a step more takes about as long as the rows of the piece's entry do beside what the step takes anyhow. Where a piece
// has no cuts within, steps end at its end in any case.
func (p *prompts) apart(cut int) int {
	if q := &p.pieces[p.pieceAt(cut-1)]; q.cuts {
		return q.widest.Run
	}
	return 0
}

// wide says whether a prompt of n tokens has the entry of a piece wherever that has cuts.
func (p *prompts) wide(q *piece, n int) bool {
	return n >= q.end || p.narrowest(q, q.begin, n) == q.widest
}

// shared is how many tokens of a prompt of n have the bits that they have in all prompts which begin alike and end
// behind. At each cut up to there these can go on.
func (p *prompts) shared(n int) int {
	if q := &p.pieces[p.pieceAt(n-1)]; !p.wide(q, n) {
		return q.begin
	}
	return n
}

// goOn is the last position between the cut at pos and the next one where a prompt can go on of which so many tokens
// are there, written as it writes them; pos if there is none.
func (p *prompts) goOn(pos, tokens int) int {
	q := &p.pieces[p.pieceAt(pos)]
	grain := q.widest.Grain
	if alike(q.widest) {
		grain = p.grain
	}
	if !q.cuts {
		return pos
	}
	return max(pos, min(tokens, p.cutsIn(pos, q.end)[0]-1)/grain*grain)
}

// last is the last cut where a prompt of n tokens can go on. Some token is left to compute.
func (p *prompts) last(n int) int { return p.cutBefore(min(p.shared(n), n-1)) }

// narrowest is the narrowest entry of a piece that reaches from a position to where the prompt, or the piece, ends.
func (p *prompts) narrowest(q *piece, pos, end int) *plans.Entry {
	for _, e := range p.entries {
		if alike(q.widest) && p.several && e.Rows >= p.part {
			break
		}
		if e.Rows <= q.widest.Rows && e.Reach >= end-pos {
			return e
		}
	}
	return q.widest
}

// most is how many rows of a sequence a step has for which an entry stands, at most.
func (p *prompts) most(e *plans.Entry) int {
	if alike(e) {
		e = p.alike[len(p.alike)-1]
	}
	return e.Run
}

// step returns the entry and rows of the next step of a prompt from pos on, up to end at most. If the prompt is to have
// the bits of one that began at position 0, pos is a cut of it, or where such a step has ended. An entry that is alike
// stands for all of them, and the step may have fewer rows. Where it begins between multiples of the grain, as behind
// a turn, it ends at the next cut.
func (p *prompts) step(pos, end int, exact bool) (*plans.Entry, int) {
	i := p.pieceAt(pos)
	q := &p.pieces[i]
	switch {
	case !exact:
		e := p.narrowest(q, pos, end)
		return e, min(end-pos, p.most(e))
	case !q.cuts && !alike(q.widest) || !p.wide(q, end):
		end = min(end, q.end)
		e := p.narrowest(q, pos, end)
		return e, min(end-pos, e.Run)
	case pos%q.widest.Grain > 0:
		end = min(end, p.cutsIn(pos, q.end)[0])
	}
	to := min(end, q.end)
	for i++; to < end && i < len(p.pieces); i++ { // on into pieces of the same entry
		next := &p.pieces[i]
		if next.widest != q.widest || !next.cuts && !alike(q.widest) || !p.wide(next, end) {
			break
		}
		to = min(end, next.end)
	}
	return q.widest, min(to-pos, p.most(q.widest))
}
