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
	widest  []*plans.Entry // at the cuts, what a piece that begins there may take
	cuts    []int          // where pieces begin, ascending; the last one is the context
	costs   []float64      // seconds that a prompt takes up to each cut, as predicted
}

// margin is how much longer than predicted a step may take before it breaks the bound.
const margin = 1.25

// unpredicted is what a token counts for, in seconds, where nothing is predicted: there only comparisons matter.
const unpredicted = 1e-3

// newPrompts cuts the context into pieces of the widest prefill entry whose predicted time leaves room for a step of
// decoding within the bound; of the narrowest, if none does or nothing is predicted. What steps really take does not
// count: then a prompt's bits would depend on it. A processor ends in the middle of a step, and its time is predicted
// for two cores: where nobody waits, pieces there are the widest.
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
	alone := plan.StopsInStep() && itl >= Unhurried
	spent := 0.0
	for pos := 0; pos < plan.Header.Ctx; {
		best := prefill[0]
		if alone {
			best = prefill[len(prefill)-1]
		}
		for _, e := range prefill {
			took := e.Predict(pos).Seconds()
			if took > 0 && margin*(took+decode.Predict(pos).Seconds()) <= itl.Seconds() {
				best = e
			}
		}
		p.cuts, p.widest, p.costs = append(p.cuts, pos), append(p.widest, best), append(p.costs, spent)
		spent += cmp.Or(best.Predict(pos).Seconds(), unpredicted*float64(best.Run))
		pos += best.Run
	}
	p.cuts, p.costs = append(p.cuts, plan.Header.Ctx), append(p.costs, spent)
	return p, nil
}

// cutBefore is the last cut at or before pos.
func (p *prompts) cutBefore(pos int) int {
	return p.cuts[sort.SearchInts(p.cuts, pos+1)-1]
}

// cost is how many seconds a prompt takes up to the cut at pos.
func (p *prompts) cost(pos int) float64 { return p.costs[sort.SearchInts(p.cuts, pos)] }

// isCut says whether a piece begins at pos.
func (p *prompts) isCut(pos int) bool { return p.cutBefore(pos) == pos }

// step returns the entry and rows of the next step of a prompt from pos on, up to end at most,
// and at most to the next cut if the prompt is to have the steps of one that began at position 0.
func (p *prompts) step(pos, end int, exact bool) (*plans.Entry, int) {
	at := sort.SearchInts(p.cuts, pos+1) - 1
	at = min(at, len(p.widest)-1)
	widest := p.widest[at]
	if exact {
		end = min(end, p.cuts[at+1])
	}
	left := end - pos
	e := widest
	for _, c := range slices.Backward(p.entries) {
		if c.Rows <= widest.Rows && c.Reach >= left {
			e = c
		}
	}
	return e, min(left, e.Run)
}
