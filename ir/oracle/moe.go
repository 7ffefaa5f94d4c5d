package oracle

import (
	"cmp"
	"math"
	"slices"
)

func topk(c *call) error {
	x, ids, experts, k := c.arg(0), asInts(c.result()), width(c.op.Args[0]), width(c.op.Result)
	taken := make([]bool, experts)
	for r := range c.rows(0) {
		clear(taken)
		row := x[r*experts : (r+1)*experts]
		if g := c.op.Attrs.Str("gating"); g != "" {
			var bias []float32
			if len(c.op.Args) == 2 {
				bias = c.arg(1)
			}
			row = weighed(row, bias, gatings[g])
			limitGroups(row, c.op.Attrs.Int("groups"), c.op.Attrs.Int("used_groups"))
		}
		for i := range k {
			best := -1
			for e, s := range row {
				if !taken[e] && (best < 0 || s > row[best]) {
					best = e
				}
			}
			taken[best] = true
			ids[r*k+i] = int32(best)
		}
	}
	return nil
}

// limitGroups leaves the scores of the groups whose two largest have the largest sums, and makes others -Inf.
func limitGroups(scores []float32, groups, used int) {
	if groups == 0 {
		return
	}
	n := len(scores) / groups
	sums := make([]float32, groups)
	for g := range sums {
		largest := slices.Sorted(slices.Values(scores[g*n : (g+1)*n]))
		sums[g] = largest[n-1] + largest[n-2]
	}
	for g, sum := range sums {
		better := 0
		for h, other := range sums {
			if other > sum || other == sum && h < g {
				better++
			}
		}
		if better >= used {
			for e := g * n; e < (g+1)*n; e++ {
				scores[e] = float32(math.Inf(-1))
			}
		}
	}
}

// weighed returns what experts are chosen by where that is not their scores. The bias may be nil.
func weighed(scores, bias []float32, weigh func(w []float64, scores []float32, ids []int32)) []float32 {
	list, p, all := make([]float32, len(scores)), make([]float64, len(scores)), make([]int32, len(scores))
	for e := range all {
		all[e] = int32(e)
	}
	weigh(p, scores, all)
	for e := range list {
		if list[e] = float32(p[e]); bias != nil {
			list[e] = float32(p[e] + float64(bias[e]))
		}
	}
	return list
}

// minWeightSum keeps route from dividing by zero: the smallest normal float16.
const minWeightSum = 6.103515625e-05

// gatings maps the attribute gating of route to the function that turns the
// scores of one row into the weights of its chosen experts.
var gatings = map[string]func(w []float64, scores []float32, ids []int32){
	"softmax": func(w []float64, scores []float32, ids []int32) {
		top, sum := math.Inf(-1), 0.0
		for _, s := range scores {
			top = max(top, float64(s))
		}
		for _, s := range scores {
			sum += math.Exp(float64(s) - top)
		}
		for i, e := range ids {
			w[i] = math.Exp(float64(scores[e])-top) / sum
		}
	},
	"topk_softmax": func(w []float64, scores []float32, ids []int32) {
		top, sum := math.Inf(-1), 0.0
		for _, e := range ids {
			top = max(top, float64(scores[e]))
		}
		for i, e := range ids {
			w[i] = math.Exp(float64(scores[e]) - top)
			sum += w[i]
		}
		for i := range w {
			w[i] /= sum
		}
	},
	"sigmoid": func(w []float64, scores []float32, ids []int32) {
		for i, e := range ids {
			w[i] = sigmoidOf(float64(scores[e]))
		}
	},
}

func route(c *call) error {
	a, rows, experts, k := c.op.Attrs, c.rows(0), width(c.op.Args[0]), width(c.op.Result)
	if err := c.inRange(1, rows*k, experts); err != nil {
		return err
	}
	x, ids, y, weigh := c.arg(0), asInts(c.arg(1)), c.result(), gatings[a.Str("gating")]
	w := make([]float64, k)
	for r := range rows {
		weigh(w, x[r*experts:(r+1)*experts], ids[r*k:(r+1)*k])
		scale := a.Float("scale")
		if a.Int("norm") != 0 {
			sum := 0.0
			for _, v := range w {
				sum += v
			}
			scale /= max(sum, minWeightSum)
		}
		for i, v := range w {
			if len(c.op.Args) == 3 {
				v *= float64(c.arg(2)[ids[r*k+i]])
			}
			y[r*k+i] = float32(v * scale)
		}
	}
	return nil
}

// load is the work of one expert in a step: the slots, of all rows, that chose it.
type load struct {
	expert int
	slots  []int // row*k + slot, ascending
}

// loadsOf sorts the slots by expert, so that a dequantized weight row serves them
// all. Experts that no slot chose have no load.
func loadsOf(ids []int32) []load {
	var loads []load
	at := map[int32]int{}
	for slot, e := range ids {
		i, ok := at[e]
		if !ok {
			i = len(loads)
			at[e] = i
			loads = append(loads, load{expert: int(e)})
		}
		loads[i].slots = append(loads[i].slots, slot)
	}
	return loads
}

func expertLinear(c *call) error {
	t := c.op.Args[1].Type
	w, err := c.matrixOf(c.op.Args[1])
	if err != nil {
		return err
	}
	experts := w.split(int(t.Shape[0]))
	k, slots, cols := width(c.op.Args[2]), c.rows(0)*width(c.op.Args[2]), w.cols
	if err := c.inRange(2, slots, len(experts)); err != nil {
		return err
	}
	shared := 1 // slots that read the same run of x
	if width(c.op.Args[0]) == cols {
		shared = k
	}
	x, y, loads := c.arg(0), c.result(), loadsOf(asInts(c.arg(2))[:slots])
	for _, l := range loads {
		c.keepIfCheap(experts[l.expert])
	}
	first, n := c.op.Attrs.Int("first"), c.op.Attrs.Int("rows")
	blocks := ceilDiv(n, lanes)
	c.parallel(len(loads)*blocks, lanes*cols*ceilDiv(slots, len(loads)), func(worker, lo, hi int) {
		buf := c.scratchFor(worker, lanes*cols)
		for b := lo; b < hi; b++ {
			l, i := loads[b/blocks], b%blocks*lanes
			block := experts[l.expert].block(first+i, first+n, buf)
			for _, s := range l.slots {
				sums := dot(&block, x[s/shared*cols:][:cols])
				copy(y[s*n+i:(s+1)*n], sums[:])
			}
		}
	})
	return nil
}

func expertBias(c *call) error {
	slots, n := c.rows(0)*width(c.op.Args[2]), width(c.op.Args[1])
	if err := c.inRange(2, slots, int(c.op.Args[1].Type.Shape[0])); err != nil {
		return err
	}
	bias, err := c.matrixOf(c.op.Args[1])
	if err != nil {
		return err
	}
	x, y, row := c.arg(0), c.result(), make([]float32, n)
	for s, e := range asInts(c.arg(2))[:slots] {
		for i, v := range bias.row(int(e), row) {
			y[s*n+i] = x[s*n+i] + v
		}
	}
	return nil
}

func expertScale(c *call) error {
	slots := c.rows(0) * width(c.op.Args[2])
	if err := c.inRange(2, slots, int(c.op.Args[1].Type.Shape[0])); err != nil {
		return err
	}
	x, y, scales, n := c.arg(0), c.result(), c.arg(1), width(c.op.Result)/width(c.op.Args[2])
	for s, e := range asInts(c.arg(2))[:slots] {
		for i := s * n; i < (s+1)*n; i++ {
			y[i] = scales[e] * x[i]
		}
	}
	return nil
}

func expertOrder(c *call) error {
	y, ids := asInts(c.result()), asInts(c.arg(0))
	slots := y[:c.rows(0)*width(c.op.Result)]
	for s := range slots {
		slots[s] = int32(s)
	}
	slices.SortStableFunc(slots, func(a, b int32) int { return cmp.Compare(ids[a], ids[b]) })
	return nil
}

func expertOffsets(c *call) error {
	y := asInts(c.result())
	n := c.rows(0) * width(c.op.Args[0])
	if err := c.inRange(0, n, len(y)-1); err != nil {
		return err
	}
	clear(y)
	for _, e := range asInts(c.arg(0))[:n] {
		y[e+1]++
	}
	for e := range len(y) - 1 {
		y[e+1] += y[e]
	}
	return nil
}

func expertSum(c *call) error {
	rows, k, n := c.rows(0), width(c.op.Args[1]), width(c.op.Result)
	x, w, y := c.arg(0), c.arg(1), c.result()
	for r := range rows {
		out := y[r*n : (r+1)*n]
		clear(out)
		for s := r * k; s < (r+1)*k; s++ {
			for i, v := range x[s*n : (s+1)*n] {
				out[i] += w[s] * v
			}
		}
	}
	return nil
}

func gateRows(c *call) error {
	x, g, y, n := c.arg(0), c.arg(1), c.result(), width(c.op.Result)
	for r := range c.rows(0) {
		s := float32(sigmoidOf(float64(g[r])))
		for i := r * n; i < (r+1)*n; i++ {
			y[i] = s * x[i]
		}
	}
	return nil
}

// split returns n matrices of equal height, the experts of a weight [n, rows, cols].
func (w *matrix) split(n int) []*matrix {
	if w.parts != nil {
		return w.parts
	}
	parts, rows := make([]*matrix, n), w.rows/n
	size := len(w.raw) / n
	for i := range parts {
		p := &matrix{rows: rows, cols: w.cols, dtype: w.dtype, raw: w.raw[i*size : (i+1)*size]}
		if w.kept != nil {
			p.kept = w.kept[i*rows*w.cols : (i+1)*rows*w.cols]
		}
		parts[i] = p
	}
	w.parts = parts
	return parts
}
