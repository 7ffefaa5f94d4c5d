package engine

import (
	"cmp"
	"math"
	"time"

	"github.com/zincc-dev/zincc/plans"
)

// costs estimates how long steps take: as predicted, times what the last steps took of that.
type costs map[*plans.Entry]*cost

type cost struct {
	ratio   average // measured to predicted
	seconds average // measured, where nothing is predicted
	depth   int     // of the last prediction
	last    float64 // that prediction, in seconds
	steps   int64
	rows    int64
	prompts int64        // runs of them
	total   float64      // seconds
	below   *plans.Entry // of those that are alike: the next narrower one
	shallow float64      // predicted behind nothing, in seconds; 0: not yet asked for
}

// average follows what is measured.
type average struct {
	mean float64
	off  float64 // mean deviation from it
}

const (
	learn = 0.2 // weight of the newest measurement
	// settle is the weight of a deviation that is less than the mean one: that a few steps happen to be alike does not
	// say that the next one is, too.
	settle = 0.05
	// forget is how much the mean of an entry that seems slower comes nearer to that of another with each step of this.
	// Otherwise an entry whose steps were once interrupted would not be chosen again, nor measured again.
	forget = 1.0 / 256
)

func (a *average) add(x float64) {
	more := math.Abs(x-a.mean) - a.off
	if more > 0 {
		a.off += learn * more
	} else {
		a.off += settle * more
	}
	a.mean += learn * (x - a.mean)
}

// most is what the next one is hardly above: 2.5 mean deviations are two standard ones.
func (a *average) most() float64 { return a.mean + 2.5*a.off }

// newCosts are those of a plan, whose entries that are alike are listed by rows.
func newCosts(plan *plans.Plan, alike []*plans.Entry) costs {
	c := costs{}
	for i := range plan.Entries {
		c[&plan.Entries[i]] = &cost{ratio: average{mean: 1}, depth: -1}
	}
	for i := 1; i < len(alike); i++ {
		c[alike[i]].below = alike[i-1]
	}
	return c
}

// predict is the predicted time behind depth positions, to the next 64, in seconds.
func (c costs) predict(e *plans.Entry, depth int) float64 {
	k := c[e]
	if depth = (depth + 63) &^ 63; depth != k.depth {
		k.depth, k.last = depth, e.Predict(depth).Seconds()
	}
	return k.last
}

// predictRows is predict of a step of so many rows. Of entries that are alike the device leaves out tiles behind the
// last row: the time is between that of the next narrower entry and that of all rows, by rows.
func (c costs) predictRows(e *plans.Entry, depth, rows int) float64 {
	whole, k := c.predict(e, depth), c[e]
	switch {
	case !alike(e) || rows >= e.Rows:
		return whole
	case k.below == nil:
		if k.shallow == 0 {
			k.shallow = e.Predict(0).Seconds()
		}
		return ofRows(k.shallow, whole, rows, e.Rows)
	}
	less := c.predict(k.below, depth)
	return less + (whole-less)*float64(max(0, rows-k.below.Rows))/float64(e.Rows-k.below.Rows)
}

// ofRows is the time of a step of fewer rows of the narrowest entry of those that are alike. shallow is the time of all
// its rows behind nothing, of which half is there for any: of prefill/512 of an 8B on an H200 128 rows take 0.66, 256
// 0.79 and 384 0.93. whole is that of all behind what is before them; what it has more goes by rows: behind 100,000
// positions 100 rows take 0.25 of the attention of 512, 192 rows 0.48.
func ofRows(shallow, whole float64, rows, all int) float64 {
	part := min(1, float64((rows+cell-1)/cell*cell)/float64(all))
	return shallow*(1+part)/2 + max(0, whole-shallow)*part
}

// most is how long a step will hardly take.
func (c costs) most(e *plans.Entry, depth int) time.Duration { return c.mostOf(e, depth, e.Rows) }

// mostOf is most of a step of so many rows.
func (c costs) mostOf(e *plans.Entry, depth, rows int) time.Duration {
	s := c.predictRows(e, depth, rows) * c[e].ratio.most()
	if s == 0 {
		s = c[e].seconds.most()
	}
	return seconds(s)
}

// next is how long a step will hardly take by what the last ones took, else as predicted; an hour if nothing is known.
func (c costs) next(e *plans.Entry, depth int) time.Duration {
	return cmp.Or(seconds(c[e].seconds.most()), c.most(e, depth), time.Hour)
}

// mean is how long a step takes, in seconds.
func (c costs) mean(e *plans.Entry, depth int) float64 {
	if s := c.predict(e, depth) * c[e].ratio.mean; s > 0 {
		return s
	}
	return c[e].seconds.mean
}

// covering is steps in which each of some sequences has a row.
type covering struct {
	entry *plans.Entry // the widest
	mean  float64      // seconds
	most  time.Duration
}

// cover says how a token of each of n sequences takes the least time in steps of the entries, narrow ones first in the
// list: the widest of these steps, and what all will hardly take more than. Where nothing tells times apart, few steps
// are best, and narrow ones.
func (c costs) cover(entries []*plans.Entry, n, depth int) (*plans.Entry, time.Duration) {
	best := c.covering(entries, n, depth)
	return best.entry, best.most
}

func (c costs) covering(entries []*plans.Entry, n, depth int) covering {
	means := make([]float64, len(entries))
	for i, e := range entries {
		means[i] = c.mean(e, depth)
	}
	type covered struct {
		mean         float64
		steps, entry int // the first of these steps
	}
	all := make([]covered, n+1)
	for k := 1; k <= n; k++ {
		best := covered{steps: math.MaxInt}
		for i, e := range entries {
			rest := &all[max(0, k-e.Rows)]
			mean, steps := rest.mean+means[i], rest.steps+1
			if best.steps == math.MaxInt || mean < best.mean || mean == best.mean && steps < best.steps {
				best = covered{mean, steps, i}
			}
		}
		all[k] = best
	}
	best := covering{mean: all[n].mean}
	for n > 0 {
		e := entries[all[n].entry]
		best.most += c.most(e, depth)
		if n -= e.Rows; best.entry == nil || e.Rows > best.entry.Rows {
			best.entry = e
		}
	}
	return best
}

// fullGain is how many more tokens a second steps without an empty row must give than those that have a row for all.
const fullGain = 1.05

// full is the entry whose steps give more tokens a second with a row for some of n sequences than steps with a row for
// each of them do; nil if there is none. So 40 have 32 rows by turns, where 32 and 8, or 64, take longer. Behind such a
// step the device waits for so many seconds of the host.
func (c costs) full(entries []*plans.Entry, n, depth int, host float64) *plans.Entry {
	var best *plans.Entry
	least := c.covering(entries, n, depth).mean / float64(n) / fullGain
	for _, e := range entries {
		mean := c.mean(e, depth)
		if each := (mean + host) / float64(e.Rows); e.Rows < n && mean > 0 && each < least {
			best, least = e, each
		}
	}
	return best
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// counted counts times steps of some rows.
func (c costs) counted(e *plans.Entry, rows, times int, took time.Duration) {
	k := c[e]
	k.steps, k.rows, k.total = k.steps+int64(times), k.rows+int64(rows*times), k.total+took.Seconds()
}

// nearer has what seems to take longer than a step of another kind come nearer to that, as forget says.
func (c costs) nearer(other *cost) {
	for _, k := range c {
		if k.steps > 0 {
			k.ratio.lower(other.ratio, 1)
			k.seconds.lower(other.seconds, unknownDraft)
		}
	}
}

// lower brings an average nearer to so many times another one that is lower.
func (a *average) lower(to average, times float64) {
	a.mean += forget * min(0, times*to.mean-a.mean)
	a.off += forget * min(0, times*to.off-a.off)
}

// measured counts times steps of some rows, and takes what they took.
func (c costs) measured(e *plans.Entry, depth, rows, times int, took time.Duration) {
	c.counted(e, rows, times, took)
	k, s := c[e], took.Seconds()/float64(times)
	if k.seconds.mean == 0 { // drivers may do for the first step what no other needs
		k.seconds.mean = s
		return
	}
	k.seconds.add(s)
	if p := c.predictRows(e, depth, rows); p > 0 {
		k.ratio.add(s / p)
		for _, other := range c {
			other.ratio.mean += forget * min(0, k.ratio.mean-other.ratio.mean)
		}
	}
}
