package verify

import (
	"context"
	"fmt"

	"github.com/zincc-dev/zincc/plans"
)

// Alike is the site of the results that compare entries of class alike.
const Alike = "alike"

// compareAlike gives the rows of one step of the widest entry that is alike to each of the others, as many at a time
// as it takes, and compares the bits of caches, states and logits.
func (c *cutter) compareAlike(ctx context.Context) error {
	var widest *plans.Entry
	for i := range c.plan.Entries {
		if e := &c.plan.Entries[i]; e.Alike() && (widest == nil || e.Run > widest.Run) {
			widest = e
		}
	}
	for i := range c.plan.Entries {
		e := &c.plan.Entries[i]
		if !e.Alike() || e == widest || c.opts.Entry != "" && c.opts.Entry != e.Name && c.opts.Entry != widest.Name {
			continue
		}
		s := c.whole(widest)
		var steps []trial
		for done := 0; done < len(s.rows); done += e.Run {
			steps = append(steps, s.part(e, done, min(e.Run, len(s.rows)-done)))
		}
		r := s.part(e, 0, len(s.rows)).result(Alike)
		var err error
		if r.Difference, err = c.difference(ctx, s, steps); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		if r.Difference != nil {
			r.Difference.Problem = fmt.Sprintf("in %d steps not the bits of one step of %s, which is said to be the oracle's", len(steps), widest.Name)
		}
		c.add(r)
	}
	return nil
}
