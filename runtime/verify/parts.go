package verify

import (
	"context"
	"fmt"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/step"
)

// Parts is the site of the results that compare steps of the prompts of several sequences with steps of each alone.
const Parts = "parts"

// trialOfParts is trial for an entry with parts: three runs where it has room for them, of more than one part, of less,
// and of what is left.
func (v *verifier) trialOfParts(e *plans.Entry, rows int) trial {
	b, slots := step.Block{}, v.slots()
	for i := 0; i < slots && (len(b.Rows)+e.Part-1)/e.Part*e.Part < rows; i++ {
		b.Pad(e.Part)
		slot, run := slots-1-i, rows-len(b.Rows)
		if lengths := [...]int{e.Part + e.Part/3, e.Part / 4}; i < len(lengths) && i+1 < slots {
			run = min(run, lengths[i])
		}
		run = min(run, v.plan.Header.Ctx)
		from := min(v.context(slot), v.plan.Header.Ctx-run) / e.Grain * e.Grain
		for r := range run {
			b.Rows = append(b.Rows, v.row(slot, from+r))
		}
	}
	return trial{entry: e, rows: b.Rows}
}

// alone has the rows of each run of a step in steps of an entry of their own.
func (s trial) alone(e *plans.Entry) (runs [][]trial) {
	first := 0
	for _, last := range s.ends() {
		var list []trial
		for first < int(last)+1 {
			n := min(int(last)+1-first, e.Rows)
			list = append(list, s.part(e, first, n))
			first += n
		}
		runs = append(runs, list)
		first = (first + s.entry.Part - 1) / s.entry.Part * s.entry.Part
	}
	return runs
}

// compareParts gives the tokens of a step with the prompts of several sequences to steps of one sequence each, of the
// narrowest entry with parts, and compares the bits of caches, states and logits.
func (c *cutter) compareParts(ctx context.Context, s trial, narrow *plans.Entry) error {
	runs, other := s.alone(narrow), trial{entry: s.entry}
	for i, r := range s.rows {
		if s.live(i) {
			r.Token = (r.Token + 1) % int32(c.plan.Header.Model.Vocab)
		}
		other.rows = append(other.rows, r)
	}
	var before, after []part
	for _, run := range runs {
		first, last := run[0].rows[0], run[len(run)-1].rows
		slot, from, to := int(first.Slot), int(first.Pos), int(last[len(last)-1].Pos)+1
		before = append(before, append(c.cached(slot, from, to), c.states(slot, from)...)...)
		after = append(after, append(c.cached(slot, from, to), c.states(slot, to)...)...)
	}
	if _, err := c.follow(ctx, []trial{other}); err != nil {
		return err
	}
	begin := make([]byte, plans.SpanBytes(spansOf(before)))
	if err := c.dev.ReadSpans(ctx, spansOf(before), begin); err != nil {
		return err
	}
	var kept, results [2][]byte
	for i, steps := range [][][]trial{{{s}}, runs} {
		if err := c.dev.WriteSpans(ctx, spansOf(before), begin); err != nil {
			return err
		}
		for _, list := range steps {
			logits, err := c.follow(ctx, list)
			if err != nil {
				return err
			}
			results[i] = append(results[i], logits...)
		}
		kept[i] = make([]byte, plans.SpanBytes(spansOf(after)))
		if err := c.dev.ReadSpans(ctx, spansOf(after), kept[i]); err != nil {
			return err
		}
	}
	r := s.result(Parts)
	if r.Difference = c.otherParts(after, kept[0], kept[1]); r.Difference == nil {
		if r.Difference = otherBits(results[0], results[1], c.plan.Header.Model.Vocab); r.Difference != nil {
			r.Difference.Value = s.entry.Logits
		}
	}
	if r.Difference != nil {
		r.Difference.Problem = fmt.Sprintf("in a step with %d prompts, not the bits of steps of %s for each, which are said to be the oracle's", len(runs), narrow.Name)
	}
	c.add(r)
	return nil
}

// narrowest is the entry of the fewest rows that has parts.
func (v *verifier) narrowest() (narrow *plans.Entry) {
	for i := range v.plan.Entries {
		if e := &v.plan.Entries[i]; e.Part > 0 && (narrow == nil || e.Rows < narrow.Rows) {
			narrow = e
		}
	}
	return narrow
}
