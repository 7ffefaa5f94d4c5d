package plans

import (
	"iter"

	"github.com/zincc-dev/zincc/ir"
)

// Batches yields the runs [from, to) of dispatches that do not wait for each other. Each batch begins when all before
// it have ended, so that every dispatch gets what it waits for, where a device has no finer way to wait.
func (e *Entry) Batches() iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		from := 0
		for i := range e.Dispatches {
			if e.Dispatches[i].Waits > e.Dispatches[from].Stage {
				if !yield(from, i) {
					return
				}
				from = i
			}
		}
		if from < len(e.Dispatches) {
			yield(from, len(e.Dispatches))
		}
	}
}

// BeginsEarly reports whether the dispatch begins while the one before it runs.
func (d *Dispatch) BeginsEarly() bool { return d.Early != ir.NotEarly }

// LoadsEarly reports whether the dispatch then loads what nothing that may still run writes.
func (d *Dispatch) LoadsEarly() bool { return d.Early == ir.LoadsFirst }

// LoadsEarly reports whether dispatches of the entry load early.
func (e *Entry) LoadsEarly() bool {
	for i := range e.Dispatches {
		if e.Dispatches[i].LoadsEarly() {
			return true
		}
	}
	return false
}

// checkLaunches holds queues and early starts against what the backend does with them.
func checkLaunches(c *checker) {
	b := backendOf(c.plan.Require.Backend)
	for i := range c.sites {
		s := &c.sites[i]
		if s.Queue >= b.queues {
			c.addAt("launch", s, "is on queue %d; backend %s has %d", s.Queue, b.name, b.queues)
		}
		if !s.BeginsEarly() {
			continue
		}
		if b.early == nil || !b.early(&c.plan.Require) {
			c.addAt("launch", s, "begins early, which the device cannot have")
		}
		if !c.lone(i) || !c.lone(i-1) || c.sites[i-1].entry != s.entry || s.Waits != s.Stage {
			c.addAt("launch", s, "begins early and is not alone in stage %d, behind a lone dispatch, for whose end it waits", s.Stage)
		} else if s.Queue != 0 || c.sites[i-1].Queue != 0 {
			c.addAt("launch", s, "begins early on queue %d, behind queue %d; want 0", s.Queue, c.sites[i-1].Queue)
		}
	}
}

// lone reports whether there is dispatch i and it is alone in its stage.
func (c *checker) lone(i int) bool {
	beside := func(j int) bool {
		return j >= 0 && j < len(c.sites) && c.sites[j].entry == c.sites[i].entry && c.sites[j].Stage == c.sites[i].Stage
	}
	return i >= 0 && !beside(i-1) && !beside(i+1)
}
