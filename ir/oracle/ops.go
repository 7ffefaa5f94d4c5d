package oracle

import (
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

func embed(c *call) error {
	table, err := c.matrixOf(c.op.Args[1])
	if err != nil {
		return err
	}
	if err := c.inRange(0, c.rows(0), table.rows); err != nil {
		return err
	}
	scale, y, k := float32(c.op.Attrs.Float("scale")), c.result(), table.cols
	for r, id := range asInts(c.arg(0))[:c.rows(0)] {
		out := y[r*k : (r+1)*k]
		for i, t := range table.row(int(id), out) {
			out[i] = scale * t
		}
	}
	return nil
}

func rmsnorm(c *call) error {
	eps, group := c.op.Attrs.Float("eps"), c.op.Attrs.Int("group")
	x, y := c.arg(0), c.result()
	weight := func(int) float64 { return 1 }
	if len(c.op.Args) == 2 {
		w := c.arg(1)
		weight = func(j int) float64 { return float64(w[j%len(w)]) }
	}
	c.parallel(c.rows(0)*width(c.op.Result)/group, 2*group, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			in, out := x[i*group:(i+1)*group], y[i*group:(i+1)*group]
			s := 1 / math.Sqrt(sumOfSquares(in)/float64(group)+eps)
			for j, v := range in {
				out[j] = float32(float64(v) * s * weight(i*group+j))
			}
		}
	})
	return nil
}

// elementwise sets the rows of the result to f of the rows of both operands; an
// element costs about cost multiply-adds.
func elementwise(c *call, cost int, f func(a, b float32) float32) {
	a, b, y := c.arg(0), c.arg(1), c.result()
	c.parallel(c.rows(0)*width(c.op.Result), cost, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			y[i] = f(a[i], b[i])
		}
	})
}

func half(c *call) error {
	x, y := c.arg(0), c.result()
	for i := range c.rows(0) * width(c.op.Result) {
		y[i] = gguf.F16ToF32(gguf.F32ToF16(min(max(x[i], -65504), 65504)))
	}
	return nil
}

func bfloat16(c *call) error {
	x, y := c.arg(0), c.result()
	for i := range c.rows(0) * width(c.op.Result) {
		y[i] = math.Float32frombits((math.Float32bits(x[i]) + 1<<15) &^ 0xffff)
	}
	return nil
}

func add(c *call) error {
	elementwise(c, 2, func(a, b float32) float32 { return a + b })
	return nil
}

func mul(c *call) error {
	elementwise(c, 2, func(a, b float32) float32 { return a * b })
	return nil
}

func scale(c *call) error {
	x, y, factor := c.arg(0), c.result(), c.op.Attrs.Float("factor")
	if len(c.op.Args) == 2 {
		factor *= float64(c.arg(1)[0])
	}
	for i := range c.rows(0) * width(c.op.Result) {
		y[i] = float32(factor * float64(x[i]))
	}
	return nil
}

func softcap(c *call) error {
	x, y, scale, most := c.arg(0), c.result(), c.op.Attrs.Float("scale"), c.op.Attrs.Float("cap")
	c.parallel(c.rows(0)*width(c.op.Result), 16, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			y[i] = float32(most * math.Tanh(scale*float64(x[i])/most))
		}
	})
	return nil
}

// activations maps the attribute act of glu to its function, if it is one of the gate alone.
var activations = map[string]func(x float64) float64{
	"silu": silu,
	"gelu": func(x float64) float64 {
		return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	},
}

// swigluOAI is the gated unit of gpt-oss.
func swigluOAI(gate, up float32) float32 {
	g, u := min(float64(gate), 7), max(-7, min(float64(up), 7))
	return float32(g * sigmoidOf(1.702*g) * (u + 1))
}

func glu(c *call) error {
	if c.op.Attrs.Str("act") == "swiglu_oai" {
		elementwise(c, 16, swigluOAI)
		return nil
	}
	act := activations[c.op.Attrs.Str("act")]
	if act == nil {
		return fmt.Errorf("unknown activation %q", c.op.Attrs.Str("act"))
	}
	elementwise(c, 16, func(g, u float32) float32 { return float32(act(float64(g))) * u })
	return nil
}

func rope(c *call) error {
	rows, dim, rot := c.rows(0), c.op.Attrs.Int("head_dim"), c.op.Attrs.Int("n_rot")
	if err := c.inRange(1, rows, c.prog.Ctx); err != nil {
		return err
	}
	// Pair i is (i*step, i*step+gap).
	step, gap := 1, rot/2
	if c.op.Attrs.Str("kind") == "norm" {
		step, gap = 2, 1
	}
	x, pos, table, y, k := c.arg(0), asInts(c.arg(1)), c.arg(2), c.result(), width(c.op.Result)
	c.parallel(rows, 4*k, func(_, lo, hi int) {
		copy(y[lo*k:hi*k], x[lo*k:hi*k])
		for r := lo; r < hi; r++ {
			t := table[int(pos[r])*rot:][:rot]
			for h := 0; h < k; h += dim {
				in, out := x[r*k+h:][:dim], y[r*k+h:][:dim]
				for i := range rot / 2 {
					cos, sin := t[2*i], t[2*i+1]
					a, b := in[i*step], in[i*step+gap]
					out[i*step] = a*cos - b*sin
					out[i*step+gap] = a*sin + b*cos
				}
			}
		}
	})
	return nil
}

func kvwrite(c *call) error {
	rows, cacheType := c.rows(0), c.op.Args[3].Type.DType
	x, pos, slot, cache, k := c.arg(0), asInts(c.arg(1)), asInts(c.arg(2)), c.arg(3), width(c.op.Args[0])
	if err := c.inRange(1, rows, c.prog.Ctx); err != nil {
		return err
	}
	places := c.places(3)
	if err := c.slots(2, rows, places.sequences); err != nil {
		return err
	}
	for r := range rows {
		if slot[r] == ir.NoSlot {
			continue
		}
		if err := places.owns(int(slot[r]), int(pos[r])); err != nil {
			return err
		}
		out := cache[places.row(int(slot[r]), int(pos[r]))*k:][:k]
		copy(out, x[r*k:(r+1)*k])
		switch cacheType {
		case ir.F16:
			for i, v := range out {
				out[i] = gguf.F16ToF32(gguf.F32ToF16(v))
			}
		default:
			if q := gguf.QuantizerOf(cacheType); q != nil {
				q.Round(out)
			}
		}
	}
	return nil
}

// lastIndex returns n-1, n being operand i.
func (c *call) lastIndex(i int) (int, error) {
	n, err := c.ints(i)
	if err != nil {
		return 0, err
	}
	if n[0] < 1 || int(n[0]) > c.n {
		return 0, fmt.Errorf("%s %d is not in [1, %d]", c.op.Kind.Params[i], n[0], c.n)
	}
	return int(n[0]) - 1, nil
}

func lastRow(c *call) error {
	last, err := c.lastIndex(1)
	if err != nil {
		return err
	}
	y := c.result()
	copy(y, c.arg(0)[last*len(y):])
	return nil
}

func takeRows(c *call) error {
	rows, err := c.ints(1)
	if err != nil {
		return err
	}
	n := c.op.Attrs.Int("count")
	if err := c.inRange(1, n, c.n); err != nil {
		return err
	}
	y := c.result()
	for i, each := 0, len(y)/n; i < n; i++ {
		copy(y[i*each:][:each], c.arg(0)[int(rows[i])*each:])
	}
	return nil
}

func argmax(c *call) error {
	x, y, k := c.arg(0), asInts(c.result()), width(c.op.Args[0])
	for r := range c.rows(0) {
		mask, err := c.mask(r)
		if err != nil {
			return err
		}
		_, y[r] = largest(x[r*k:(r+1)*k], 0, mask)
	}
	return nil
}

// mask returns the mask of a row of argmax; nil without one.
func (c *call) mask(row int) ([]int32, error) {
	if len(c.op.Args) == 1 {
		return nil, nil
	}
	masked, err := c.ints(1)
	if err != nil {
		return nil, err
	}
	mask, err := c.ints(2)
	if err != nil || masked[row] == 0 {
		return nil, err
	}
	words := width(c.op.Args[2])
	if i := int(masked[row]) - 1; i >= 0 && i < len(mask)/words {
		return mask[i*words:][:words], nil
	}
	return nil, fmt.Errorf("row %d has mask %d of %d", row, masked[row], len(mask)/words)
}

// largest returns the largest number of x that the mask, if there is one, allows, and its smallest index, counted from
// first; -Inf and 0 if there is none above that.
func largest(x []float32, first int, mask []int32) (most float32, at int32) {
	most = float32(math.Inf(-1))
	for i, v := range x {
		if id := first + i; v > most && (mask == nil || mask[id/32]>>(id%32)&1 != 0) {
			most, at = v, int32(id)
		}
	}
	return most, at
}

func argmaxSplit(c *call) error {
	x, y, k, splits := c.arg(0), c.result(), width(c.op.Args[0]), c.op.Attrs.Int("splits")
	step := ceilDiv(ceilDiv(k, splits), 4) * 4
	for i := range c.rows(0) * splits {
		mask, err := c.mask(i / splits)
		if err != nil {
			return err
		}
		row, lo := i/splits*k, min(k, i%splits*step)
		most, at := largest(x[row+lo:row+min(k, lo+step)], lo, mask)
		y[2*i], y[2*i+1] = most, float32(at)
	}
	return nil
}

func argmaxMerge(c *call) error {
	x, y, splits := c.arg(0), asInts(c.result()), c.op.Attrs.Int("splits")
	for r := range c.rows(0) {
		most := float32(math.Inf(-1))
		y[r] = 0
		for s := range splits {
			// Splits are in the order of their indices.
			if part := x[2*(r*splits+s):][:2]; part[0] > most {
				most, y[r] = part[0], int32(part[1])
			}
		}
	}
	return nil
}

func advance(c *call) error {
	var arg [7][]int32
	for i := range arg {
		var err error
		if arg[i], err = c.ints(i); err != nil {
			return err
		}
	}
	next, token, pos, slot, n, out, count := arg[0], arg[1], arg[2], arg[3], arg[4], arg[5], arg[6]
	source, err := c.lastIndex(4)
	if err != nil {
		return err
	}
	m := c.rows(0)
	if c.op.Args[0].Type.Shape[0] == ir.T {
		source = 0
	}
	if min(len(token), len(pos), len(slot)) < source+m {
		return fmt.Errorf("token, pos or slot has fewer than %d rows", source+m)
	}
	for r := range m {
		token[r] = next[r]
		pos[r] = pos[source+r] + 1
		slot[r] = slot[source+r]
		out[(uint32(count[0])+uint32(r))%uint32(len(out))] = next[r]
	}
	count[0] += int32(m)
	n[0] = int32(m)
	return nil
}
