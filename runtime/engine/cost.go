package engine

import (
	"time"

	"github.com/zincc-dev/zincc/plans"
)

// costs estimates how long steps take: as predicted, times what the last steps took of that.
type costs map[*plans.Entry]*cost

type cost struct {
	ratio   float64 // measured to predicted
	seconds float64 // measured, where nothing is predicted
	depth   int     // of the last prediction
	last    float64 // that prediction, in seconds
	steps   int64
	rows    int64
	total   float64 // seconds
}

// learn is the weight of the newest measurement.
const learn = 0.2

func newCosts(plan *plans.Plan) costs {
	c := costs{}
	for i := range plan.Entries {
		c[&plan.Entries[i]] = &cost{ratio: 1, depth: -1}
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

// estimate is how long a step should take.
func (c costs) estimate(e *plans.Entry, depth int) time.Duration {
	s := c.predict(e, depth) * c[e].ratio
	if s == 0 {
		s = c[e].seconds
	}
	return time.Duration(s * float64(time.Second))
}

// measured takes what times steps of some rows took.
func (c costs) measured(e *plans.Entry, depth, rows, times int, took time.Duration) {
	k, s := c[e], took.Seconds()/float64(times)
	k.steps, k.rows, k.total = k.steps+int64(times), k.rows+int64(rows*times), k.total+took.Seconds()
	if k.seconds == 0 { // drivers may do for the first step what no other needs
		k.seconds = s
		return
	}
	k.seconds += learn * (s - k.seconds)
	if p := c.predict(e, depth); p > 0 {
		k.ratio += learn * (s/p - k.ratio)
	}
}
