package engine

import (
	"slices"
	"time"

	"github.com/zincc-dev/zincc/plans"
)

// Entries that are alike give rows of a prompt the same bits. So a step has the narrowest of them that has its rows,
// and as many rows as there is time for. Where they have parts, one takes rows of several prompts: those of the first
// that is to be read, and in the parts that are left those of the prompts behind it. Nobody waits for others to come.

// alike says that a step of an entry may as well be one of others that are alike, and have fewer rows of a prompt.
func alike(e *plans.Entry) bool { return e.Alike() && e.Grain > 0 }

// runs is a step of prompts: of each sequence so many rows, from where it is on, one run behind the other.
type runs struct {
	entry *plans.Entry
	seqs  []*seq
	wants []want
	packed
}

// want is what a prompt would take of a step: rows from a position on.
type want struct{ pos, rows int }

// share returns how many rows of a step of some parts prompts get, in their order: all that one wants, or the parts
// that are left. Those that it does not list have none.
func share(list []want, parts, part int) (rows []int) {
	for _, w := range list {
		if parts == 0 {
			break
		}
		n := min(w.rows, parts*part)
		rows, parts = append(rows, n), parts-(n+part-1)/part
	}
	return rows
}

// packed is how a step is shared.
type packed struct {
	rows  []int // of each prompt
	total int   // up to the last one, with the dead ones between
	depth int   // where a row is in its prompt, in the mean
}

func pack(list []want, parts, part int) packed {
	p := packed{rows: share(list, parts, part)}
	sum, count := 0, 0
	for i, n := range p.rows {
		p.total = (p.total+part-1)/part*part + n
		sum, count = sum+n*list[i].pos, count+n
	}
	p.depth = sum / max(1, count)
	return p
}

// pack shares the widest step that fits among prompts: one whose entry is full, or that has all that they want. To
// leave out rows of an entry spares less than they take elsewhere. Far behind not even the narrowest may fit; then a
// step of first may have fewer rows. It lists no prompt if no step fits.
func (p *prompts) pack(list []want, first bool, fits func(e *plans.Entry, depth, rows int) bool) (*plans.Entry, packed) {
	for _, widest := range slices.Backward(p.alike) {
		step := pack(list, widest.Rows/p.part, p.part)
		i := slices.IndexFunc(p.alike, func(e *plans.Entry) bool { return e.Rows >= step.total })
		if e := p.alike[i]; fits(e, step.depth, step.total) {
			return e, step
		}
	}
	for rows := p.alike[0].Rows; first && rows > p.least; {
		rows = max(rows-p.least, p.least)
		if step := pack(list, rows/p.part, p.part); fits(p.alike[0], step.depth, step.total) {
			return p.alike[0], step
		}
	}
	return p.alike[0], packed{}
}

// nextRuns is the next step of prompts, nil if there is none. It fits if it has rows.
func (e *Engine) nextRuns() (*runs, error) {
	for {
		r, err := e.gather()
		if err != nil || len(r.seqs) == 0 {
			return nil, err
		}
		r.drop(func(s *seq) bool { return s.slot == nil }) // who started behind it has its pages
		if len(r.seqs) == 0 {
			continue
		}
		if alike(r.entry) {
			r.entry, r.packed = e.prompts.pack(r.wants, e.spent == 0, e.withinBound())
			r.seqs = r.seqs[:max(1, len(r.rows))]
		} else if w := r.wants[0]; e.spent == 0 || e.fits(r.seqs[0], r.entry, w.rows) {
			r.packed = packed{[]int{w.rows}, w.rows, w.pos}
		}
		return r, nil
	}
}

// drop takes sequences out.
func (r *runs) drop(out func(s *seq) bool) {
	n := 0
	for i, s := range r.seqs {
		if !out(s) {
			r.seqs[n], r.wants[n] = s, r.wants[i]
			n++
		}
	}
	r.seqs, r.wants = r.seqs[:n], r.wants[:n]
}

// gather lists the sequences of the next step of prompts, and what they want of it: the first that is to be read, and
// where steps have parts, those behind it that may join. There are none while one before them is read in rounds. Short
// ones, which rounds read, start wherever they are.
func (e *Engine) gather() (*runs, error) {
	r, rounds, full := &runs{}, false, false
	var fits func(entry *plans.Entry, depth, rows int) bool
	for i, s := range e.running {
		if s.ended || s.slot == nil || !s.reading() {
			continue
		}
		if !s.joined {
			short := !s.started && len(s.req.Prompt) <= e.prompts.joins
			if !short && (rounds || full || len(r.seqs) > 0 && !e.mayJoin(i, r.wants, fits)) {
				continue
			}
			if ready, err := e.start(s); err != nil {
				return nil, err
			} else if !ready {
				continue
			}
		}
		if s.joined || e.join(s) {
			rounds = rounds || len(r.seqs) == 0
			continue
		}
		entry, w := e.wants(s)
		alone := !alike(entry) || !e.prompts.several || w.pos%entry.Grain > 0 || e.restorable(s)
		if full || alone && len(r.seqs) > 0 {
			continue
		}
		r.entry, r.seqs, r.wants = entry, append(r.seqs, s), append(r.wants, w)
		if full = alone; !full {
			fits = e.withinBound()
		}
	}
	return r, nil
}

// wants is the entry that a prompt's next step has, and the rows that it would take. It ends where a state is to be
// kept.
func (e *Engine) wants(s *seq) (*plans.Entry, want) {
	pos := len(s.slot.tokens)
	entry, n := e.prompts.step(pos, e.stop(s), s.exact)
	if s.exact && e.recurrent {
		if cut := e.nextDue(s, pos, pos+n); cut > 0 {
			n = cut - pos
		}
	}
	return entry, want{pos, n}
}

// mayJoin says whether a running sequence may take what is left of a step behind others: there is room for a part, and
// if it has not started, nobody before it is on the way to a cut from which it can go on.
func (e *Engine) mayJoin(i int, list []want, fits func(entry *plans.Entry, depth, rows int) bool) bool {
	s, more := e.running[i], want{rows: e.prompts.part}
	if s.started {
		more.pos = len(s.slot.tokens)
	}
	if _, step := e.prompts.pack(append(list, more), e.spent == 0, fits); len(step.rows) <= len(list) {
		return false
	}
	return s.started || s.req.NoCache || !slices.ContainsFunc(e.running[:i], func(r *seq) bool { return e.spares(r, s) })
}

// spares says whether r is read up to a cut from which s can go on, and has not come there yet.
func (e *Engine) spares(r, s *seq) bool {
	if r.ended || r.slot == nil || !r.reading() || r.req.Owner != s.req.Owner || r.started && !r.exact {
		return false
	}
	at := 0
	if r.started {
		at = len(r.slot.tokens)
	}
	a, b := r.req.Prompt, s.req.Prompt
	cut := e.nextLeft(r, at, e.prompts.last(len(b)))
	return cut > 0 && slices.Equal(a[:cut], b[:cut])
}

// withinBound says which steps that are alike may be next. The first one may take half of the bound, as a piece of a
// prompt may, or where nobody waits for a token, twice the bound: who comes meanwhile waits behind it.
func (e *Engine) withinBound() func(entry *plans.Entry, depth, rows int) bool {
	left := e.left(true)
	if e.spent == 0 {
		left = max(left, time.Duration(float64(e.o.ITL)/margin/2))
	}
	return func(entry *plans.Entry, depth, rows int) bool {
		return e.costs.mostOf(entry, depth, rows) <= left || e.spent == 0 && rows <= e.prompts.least
	}
}
