package oracle

import (
	"math"

	"github.com/zincc-dev/zincc/ir"
)

func softplus(x float64) float64 {
	if x > 20 {
		return x
	}
	return math.Log1p(math.Exp(x))
}

func relu2(c *call) error {
	x, y := c.arg(0), c.result()
	for i := range c.rows(0) * width(c.op.Result) {
		v := max(x[i], 0)
		y[i] = v * v
	}
	return nil
}

func ssd(c *call) error {
	a, rows, in := c.op.Attrs, c.rows(0), width(c.op.Args[0])
	heads, dim, groups, n := a.Int("heads"), a.Int("head_dim"), a.Int("groups"), a.Int("state_dim")
	state, pos, slot, err := c.states(5, heads*n*dim, 6)
	if err != nil {
		return err
	}
	x, dt, bias, rate, skip, y := c.arg(0), c.arg(1), c.arg(2), c.arg(3), c.arg(4), c.result()
	c.parallel(heads, 4*n*dim*rows, func(_, lo, hi int) {
		for h := lo; h < hi; h++ {
			for r := range rows {
				if slot[r] == ir.NoSlot {
					clear(y[(r*heads+h)*dim:][:dim])
					continue
				}
				s := state[(int(slot[r])*heads+h)*n*dim:][:n*dim]
				if pos[r] == 0 {
					clear(s)
				}
				row := x[r*in:][:in]
				t := softplus(float64(dt[r*heads+h]) + float64(bias[h]))
				group := heads*dim + h/(heads/groups)*n
				ssdStep(y[(r*heads+h)*dim:][:dim], s, row[h*dim:][:dim], row[group:][:n], row[group+groups*n:][:n], float32(math.Exp(t*float64(rate[h]))), float32(t), skip[h])
			}
		}
	})
	return nil
}

// ssdStep is one token of one head.
func ssdStep(y, s, x, b, c []float32, decay, step, skip float32) {
	for p, v := range x {
		y[p] = skip * v
	}
	for n := range b {
		row := s[n*len(x):][:len(x)]
		for p, v := range x {
			row[p] = decay*row[p] + step*v*b[n]
			y[p] += c[n] * row[p]
		}
	}
}
