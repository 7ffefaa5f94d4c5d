package oracle

import (
	"math"
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// emptyMax is the maximum of a split without positions.
const emptyMax = -1e30

// heads are the operands and attributes that attention and attention_split share.
type heads struct {
	q, k, v   []float32
	pos, slot []int32
	dim       int // of a head
	count     int
	group     int // heads that share a KV head
	stride    int // of one cached row
	ctx       int
	places    places
	window    int // positions that a row sees, itself among them
	scale     float32
}

func newHeads(c *call) (*heads, error) {
	a, rows := c.op.Attrs, c.rows(0)
	h := &heads{
		q: c.arg(0), k: c.arg(1), v: c.arg(2), pos: asInts(c.arg(3)), slot: asInts(c.arg(4)),
		dim: a.Int("head_dim"), count: a.Int("heads"), ctx: c.prog.Ctx, scale: float32(a.Float("scale")),
		window: c.prog.Ctx, places: c.places(1),
	}
	if w := a.Int("window"); w > 0 {
		h.window = w
	}
	h.group = h.count / a.Int("kv_heads")
	h.stride = a.Int("kv_heads") * h.dim
	if err := c.inRange(3, rows, h.ctx); err != nil {
		return nil, err
	}
	if err := c.slots(4, rows, min(h.places.sequences, c.places(2).sequences)); err != nil {
		return nil, err
	}
	for r := range rows {
		if h.slot[r] == ir.NoSlot {
			continue
		}
		if err := h.places.has(int(h.slot[r]), h.first(r), int(h.pos[r])); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// each calls work for every head of every row of the step, in parallel.
func (h *heads) each(c *call, work func(scores []float32, row, head int)) {
	rows, longest := c.rows(0), 0
	for _, p := range h.pos[:rows] {
		longest = max(longest, int(p)+1)
	}
	c.parallel(rows*h.count, longest*h.dim, func(worker, lo, hi int) {
		scores := c.scratchFor(worker, longest+lanes)
		for i := lo; i < hi; i++ {
			work(scores, i%rows, i/rows)
		}
	})
}

// first is the first position that a row sees.
func (h *heads) first(row int) int { return max(0, int(h.pos[row])+1-h.window) }

// attend sets out to the sum over p in [lo, hi) of exp(score - top) * v[p] and
// returns top, the largest score, and the sum of exp(score - top). A dead row has no
// positions. scores is scratch for hi-lo+lanes elements.
func (h *heads) attend(out, scores []float32, row, head, lo, hi int) (top float32, sum float64) {
	clear(out)
	if lo >= hi || h.slot[row] == ir.NoSlot {
		return emptyMax, 0
	}
	q := h.q[(row*h.count+head)*h.dim:][:h.dim]
	slot, first := int(h.slot[row]), head/h.group*h.dim
	n := hi - lo
	var block [lanes][]float32
	load := func(cache []float32, p int) {
		for j := range block {
			// Positions past the end repeat the last one; they weigh nothing.
			block[j] = cache[first+h.places.row(slot, lo+min(p+j, n-1))*h.stride:][:h.dim]
		}
	}
	for p := 0; p < n; p += lanes {
		load(h.k, p)
		s := dot(&block, q)
		copy(scores[p:], s[:])
	}
	top = float32(math.Inf(-1))
	for i, s := range scores[:n] {
		scores[i] = s * h.scale
		top = max(top, scores[i])
	}
	for i, s := range scores[:n] {
		scores[i] = float32(math.Exp(float64(s - top)))
		sum += float64(scores[i])
	}
	clear(scores[n : n+lanes])
	for p := 0; p < n; p += lanes {
		load(h.v, p)
		axpy(out, &block, (*[lanes]float32)(scores[p:]))
	}
	return top, sum
}

func attention(c *call) error {
	h, err := newHeads(c)
	if err != nil {
		return err
	}
	y := c.result()
	sink := sinksOf(c, c.op.Sinks())
	h.each(c, func(scores []float32, row, head int) {
		out := y[(row*h.count+head)*h.dim:][:h.dim]
		if h.slot[row] == ir.NoSlot {
			clear(out)
			return
		}
		top, sum := h.attend(out, scores, row, head, h.first(row), int(h.pos[row])+1)
		sum += sink(head, float64(top))
		for i := range out {
			out[i] = float32(float64(out[i]) / sum)
		}
	})
	return nil
}

// sinksOf returns what a head's sink adds to a sum of weights that are relative to top:
// nothing without sinks.
func sinksOf(c *call, v *ir.Value) func(head int, top float64) float64 {
	if v == nil {
		return func(int, float64) float64 { return 0 }
	}
	sinks := c.floats(v)
	return func(head int, top float64) float64 { return math.Exp(float64(sinks[head]) - top) }
}

func attentionSplit(c *call) error {
	h, err := newHeads(c)
	if err != nil {
		return err
	}
	splits, block, y := c.op.Attrs.Int("splits"), c.op.Attrs.Int("block"), c.result()
	together := c.op.Attrs.Int("rows")
	h.each(c, func(scores []float32, row, head int) {
		n := int(h.pos[row]) + 1
		first := row - row%together
		most := int(slices.Max(h.pos[first:min(c.rows(0), first+together)])) + 1
		begin := h.ctx
		for r := first; r < min(c.rows(0), first+together); r++ {
			begin = min(begin, h.first(r))
		}
		begin = begin / block * block
		step := max(ceilDiv(ceilDiv(most-begin, splits), block)*block, c.op.Attrs.Int("least"))
		for s := range splits {
			out := y[((row*h.count+head)*splits+s)*(h.dim+2):][:h.dim+2]
			top, sum := h.attend(out[:h.dim], scores, row, head, max(h.first(row), begin+s*step), min(n, begin+(s+1)*step))
			out[h.dim], out[h.dim+1] = top, float32(sum)
		}
	})
	return nil
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func attentionMerge(c *call) error {
	a := c.op.Attrs
	dim, splits, x, y := a.Int("head_dim"), a.Int("splits"), c.arg(0), c.result()
	var sinks *ir.Value
	if len(c.op.Args) > 1 {
		sinks = c.op.Args[1]
	}
	sink := sinksOf(c, sinks)
	for i := range c.rows(0) * a.Int("heads") {
		parts, out := x[i*splits*(dim+2):][:splits*(dim+2)], y[i*dim:][:dim]
		top := math.Inf(-1)
		for s := range splits {
			top = max(top, float64(parts[s*(dim+2)+dim]))
		}
		total := make([]float64, dim+1) // the sums of values, then of weights
		for s := range splits {
			p := parts[s*(dim+2):][:dim+2]
			w := math.Exp(float64(p[dim]) - top)
			for j := range dim {
				total[j] += w * float64(p[j])
			}
			total[dim] += w * float64(p[dim+1])
		}
		total[dim] += sink(i%a.Int("heads"), top)
		if total[dim] == 0 { // a dead row
			clear(out)
			continue
		}
		for j := range out {
			out[j] = float32(total[j] / total[dim])
		}
	}
	return nil
}
