package oracle

import (
	"math"
	"math/bits"

	"github.com/zincc-dev/zincc/ir"
)

func sigmoidOf(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func silu(x float64) float64 { return x / (1 + math.Exp(-x)) }

func slice(c *call) error {
	x, y, in, n, first := c.arg(0), c.result(), width(c.op.Args[0]), width(c.op.Result), c.op.Attrs.Int("first")
	for r := range c.rows(0) {
		copy(y[r*n:(r+1)*n], x[r*in+first:])
	}
	return nil
}

func headSlice(c *call) error {
	a, x, y := c.op.Attrs, c.arg(0), c.result()
	dim, parts, part := a.Int("head_dim"), a.Int("parts"), a.Int("part")
	for h := range c.rows(0) * width(c.op.Result) / dim {
		copy(y[h*dim:(h+1)*dim], x[(h*parts+part)*dim:])
	}
	return nil
}

func gate(c *call) error {
	elementwise(c, 16, func(x, g float32) float32 { return float32(sigmoidOf(float64(g))) * x })
	return nil
}

func sigmoid(c *call) error {
	x, y := c.arg(0), c.result()
	for i := range c.rows(0) * width(c.op.Result) {
		y[i] = float32(sigmoidOf(float64(x[i])))
	}
	return nil
}

func l2norm(c *call) error {
	eps, group, x, y := c.op.Attrs.Float("eps"), c.op.Attrs.Int("group"), c.arg(0), c.result()
	for i := range c.rows(0) * width(c.op.Result) / group {
		in, out := x[i*group:(i+1)*group], y[i*group:(i+1)*group]
		s := 1 / math.Sqrt(sumOfSquares(in)+eps)
		for j, v := range in {
			out[j] = float32(float64(v) * s)
		}
	}
	return nil
}

func hadamard(c *call) error {
	group, x, y := c.op.Attrs.Int("group"), c.arg(0), c.result()
	factor := 1 / math.Sqrt(float64(group))
	for first := 0; first < c.rows(0)*width(c.op.Result); first += group {
		for i := range group {
			sum := 0.0
			for j, v := range x[first:][:group] {
				if bits.OnesCount(uint(i&j))%2 == 1 {
					v = -v
				}
				sum += float64(v)
			}
			y[first+i] = float32(factor * sum)
		}
	}
	return nil
}

func gatedRMSNorm(c *call) error {
	eps, group := c.op.Attrs.Float("eps"), c.op.Attrs.Int("group")
	x, w, z, y := c.arg(0), c.arg(1), c.arg(2), c.result()
	c.parallel(c.rows(0)*width(c.op.Result)/group, 16*group, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			in, gates, out := x[i*group:(i+1)*group], z[i*group:(i+1)*group], y[i*group:(i+1)*group]
			s := 1 / math.Sqrt(sumOfSquares(in)/float64(group)+eps)
			for j, v := range in {
				out[j] = float32(float64(v) * s * float64(w[j]) * silu(float64(gates[j])))
			}
		}
	})
	return nil
}

func sumOfSquares(x []float32) float64 {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}

func decay(c *call) error {
	a, dt, rate, y, heads := c.arg(0), c.arg(1), c.arg(2), c.result(), width(c.op.Result)
	for i := range c.rows(0) * heads {
		y[i] = float32(softplus(float64(a[i])+float64(dt[i%heads])) * float64(rate[i%heads]))
	}
	return nil
}

// states checks pos and slot, operands i and i+1, against a state of size
// elements a slot, operand s.
func (c *call) states(s, size, i int) (state []float32, pos, slot []int32, err error) {
	rows := c.rows(0)
	state = c.arg(s)
	if err = c.inRange(i, rows, c.prog.Ctx); err == nil {
		err = c.slots(i+1, rows, len(state)/size)
	}
	return state, asInts(c.arg(i)), asInts(c.arg(i + 1)), err
}

func conv1d(c *call) error {
	ringType, n, taps := c.op.Args[2].Type, width(c.op.Result), width(c.op.Args[1])
	ring, pos, slot, err := c.states(2, ringType.Positions(c.prog.Ctx)*n, 3)
	if err != nil {
		return err
	}
	x, w, y := c.arg(0), c.arg(1), c.result()
	c.parallel(c.rows(0), n*(taps+16), func(_, lo, hi int) {
		for r := lo; r < hi; r++ {
			out := y[r*n : (r+1)*n]
			clear(out)
			if slot[r] == ir.NoSlot {
				continue
			}
			if len(c.op.Args) > 5 {
				copy(out, c.arg(5))
			}
			for d := min(taps-1, int(pos[r])); d >= 0; d-- {
				p := int(pos[r]) - d
				past := ring[ringType.Place(c.prog.Ctx, int(slot[r]), p)*n:][:n]
				if q := r - d; q >= 0 && slot[q] == slot[r] && int(pos[q]) == p {
					past = x[q*n : (q+1)*n]
				}
				for ch, v := range past {
					out[ch] += w[ch*taps+taps-1-d] * v
				}
			}
			if c.op.Attrs.Str("act") == "none" {
				continue
			}
			for ch, v := range out {
				out[ch] = float32(silu(float64(v)))
			}
		}
	})
	return nil
}

func convWrite(c *call) error {
	ringType, n, rows := c.op.Args[1].Type, width(c.op.Args[0]), c.rows(0)
	ring, pos, slot, err := c.states(1, ringType.Positions(c.prog.Ctx)*n, 2)
	if err != nil {
		return err
	}
	x := c.arg(0)
	for r := range rows { // in order: of rows that share a place, the last one stays
		if slot[r] == ir.NoSlot {
			continue
		}
		copy(ring[ringType.Place(c.prog.Ctx, int(slot[r]), int(pos[r]))*n:][:n], x[r*n:])
	}
	return nil
}

func deltanet(c *call) error {
	a, rows := c.op.Attrs, c.rows(2)
	d, kHeads, vHeads, scale, keyHead := a.Int("head_dim"), a.Int("k_heads"), a.Int("v_heads"), float32(a.Float("scale")), keyHeads(a)
	each := int(c.op.Args[5].Type.Shape[2]) * d
	state, pos, slot, err := c.states(5, vHeads*each, 6)
	if err != nil {
		return err
	}
	q, k, v, g, beta, y := c.arg(0), c.arg(1), c.arg(2), c.arg(3), c.arg(4), c.result()
	defers := func(r int) bool {
		every := int32(a.Int("defer"))
		return every > 0 && pos[r] > 0 && (pos[r]+1+slot[r])%every != 0 && (r == 0 || slot[r-1] != slot[r]) && (r+1 == rows || slot[r+1] != slot[r])
	}
	c.parallel(vHeads, 4*d*d*rows, func(_, lo, hi int) {
		deltas, now := make([]float32, d), make([]float32, d*d)
		for h := lo; h < hi; h++ {
			for r := range rows {
				if slot[r] == ir.NoSlot {
					clear(y[(r*vHeads+h)*d:][:d])
					continue
				}
				s := deltaStateOf(state[(int(slot[r])*vHeads+h)*each:][:each], d, pos[r] == 0)
				key, head := (r*kHeads+keyHead(h))*d, r*vHeads+h
				of := s.base
				waits := defers(r) && s.waiting() < s.most()
				if waits {
					copy(now, s.base)
					of = now
				}
				s.apply(of)
				deltaStep(y[head*d:][:d], of, q[key:][:d], k[key:][:d], v[head*d:][:d], deltas, g[head], beta[head], scale)
				if waits {
					s.add(deltas, k[key:][:d], g[head])
				} else {
					s.wait(0)
				}
			}
		}
	})
	return nil
}

// deltaStep is one token of one value head. A row of s belongs to one value dim;
// the rows do not depend on each other. It leaves what the token adds of k to each in deltas.
func deltaStep(y, s, q, k, v, deltas []float32, g, beta, scale float32) {
	d, decay := len(y), float32(math.Exp(float64(g)))
	var rows [lanes][]float32
	for i := 0; i < d; i += lanes {
		n := min(lanes, d-i)
		for j := range rows {
			// Rows past the end repeat the last one; their sums are dropped.
			at := min(i+j, d-1) * d
			rows[j] = s[at : at+d]
		}
		for _, row := range rows[:n] {
			for c := range row {
				row[c] *= decay
			}
		}
		u := dot(&rows, k)
		for j, row := range rows[:n] {
			deltas[i+j] = beta * (v[i+j] - u[j])
			for c := range row {
				row[c] += deltas[i+j] * k[c]
			}
		}
		o := dot(&rows, q)
		for j := range n {
			y[i+j] = scale * o[j]
		}
	}
}
