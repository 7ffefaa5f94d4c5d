package oracle

import (
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/ir"
)

// keyHeads returns which key head a value head reads.
func keyHeads(a ir.Attrs) func(h int) int {
	keys, heads := a.Int("k_heads"), a.Int("v_heads")
	if a.Str("map") == "div" {
		return func(h int) int { return h / (heads / keys) }
	}
	return func(h int) int { return h % keys }
}

func deltaChunks(c *call) error {
	a, rows := c.op.Attrs, c.rows(0)
	d, keys, heads, keyHead := a.Int("head_dim"), a.Int("k_heads"), a.Int("v_heads"), keyHeads(a)
	q, k, g, beta, y := c.arg(0), c.arg(1), c.arg(2), c.arg(3), c.result()
	var pos []int32
	if len(c.op.Args) > 4 {
		pos = asInts(c.arg(4))
	}
	for first := 0; first < rows; first += ir.DeltaChunk {
		if last := min(first+ir.DeltaChunk, rows) - 1; pos != nil && (pos[last] < pos[first] || int(pos[last])-int(pos[first]) > last-first) {
			return fmt.Errorf("row %d: positions %d to %d of a chunk", first, pos[first], pos[last])
		}
	}
	c.parallel(heads, 4*d*ir.DeltaChunk*rows, func(_, lo, hi int) {
		for h := lo; h < hi; h++ {
			for first := 0; first < rows; first += ir.DeltaChunk {
				p := deltaProducts{scale: a.Float("scale")}
				for r := first; r < first+liveInChunk(pos, first, rows); r++ {
					key := (r*keys + keyHead(h)) * d
					p.add(q[key:][:d], k[key:][:d], float64(g[r*heads+h]), float64(beta[r*heads+h]), a.Float("eps"))
				}
				for i := range p.k {
					p.store(i, y[((first+i)*heads+h)*ir.DeltaChunkWidth:][:ir.DeltaChunkWidth])
				}
			}
		}
	})
	return nil
}

// liveInChunk is how many rows of a step the chunk from row first on has; pos, if it is not nil, tells which of them
// are dead.
func liveInChunk(pos []int32, first, rows int) int {
	n := min(ir.DeltaChunk, rows-first)
	if pos != nil {
		n = int(pos[first+n-1]-pos[first]) + 1
	}
	return n
}

// deltaProducts is a chunk of a head, row by row.
type deltaProducts struct {
	scale                  float64
	k                      [][]float64 // divided by their lengths
	kLength, qLength, logs []float64   // logs: sums of the log decays up to a row
	b, f                   [][ir.DeltaChunk]float64
}

// add takes in the next row.
func (p *deltaProducts) add(q, k []float32, g, beta, eps float64) {
	if n := len(p.logs); n > 0 {
		g += p.logs[n-1]
	}
	key, kLength := unit(k, eps)
	query, qLength := unit(q, eps)
	p.k, p.kLength, p.qLength, p.logs = append(p.k, key), append(p.kLength, kLength), append(p.qLength, qLength), append(p.logs, g)
	r := len(p.k) - 1
	var b, f [ir.DeltaChunk]float64
	b[r] = beta
	for i := range r {
		weight := beta * math.Exp(g-p.logs[i]) * dot64(key, p.k[i])
		for j := range r {
			b[j] -= weight * p.b[i][j]
		}
	}
	p.b = append(p.b, b)
	for i := range p.k {
		weight := p.scale * math.Exp(g-p.logs[i]) * dot64(query, p.k[i])
		for j := range f {
			f[j] += weight * p.b[i][j]
		}
	}
	p.f = append(p.f, f)
}

// store writes what the op has of row r.
func (p *deltaProducts) store(r int, y []float32) {
	last := p.logs[len(p.logs)-1]
	for i := range ir.DeltaChunk {
		y[i] = float32(math.Exp(last-p.logs[r]) / p.kLength[r] * p.b[r][i])
		y[ir.DeltaChunk+i] = float32(p.f[r][i])
	}
	numbers := y[2*ir.DeltaChunk:]
	numbers[0], numbers[1] = float32(math.Exp(p.logs[r])/p.kLength[r]), float32(p.scale*math.Exp(p.logs[r])/p.qLength[r])
	numbers[2], numbers[3] = float32(math.Exp(last)), 0
}

// unit divides x by its length, the root of the sum of squares and eps.
func unit(x []float32, eps float64) (y []float64, length float64) {
	length = math.Sqrt(sumOfSquares(x) + eps)
	y = make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v) / length
	}
	return y, length
}

// dot64 returns the product of x and y.
func dot64[X, Y float32 | float64](x []X, y []Y) float64 {
	sum := 0.0
	for i, v := range x {
		sum += float64(v) * float64(y[i])
	}
	return sum
}

func deltanetChunked(c *call) error {
	a, rows := c.op.Attrs, c.rows(2)
	d, keys, heads, keyHead := a.Int("head_dim"), a.Int("k_heads"), a.Int("v_heads"), keyHeads(a)
	each := int(c.op.Args[4].Type.Shape[2]) * d
	state, pos, slot, err := c.states(4, heads*each, 5)
	if err != nil {
		return err
	}
	runs, err := c.runs(pos[:rows], slot[:rows])
	if err != nil {
		return err
	}
	q, k, v, chunk, y := c.arg(0), c.arg(1), c.arg(2), c.arg(3), c.result()
	c.parallel(len(runs)*heads, 6*d*d*rows, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			h, begin, end := i%heads, runs[i/heads][0], runs[i/heads][1]
			whole := deltaStateOf(state[(int(slot[begin])*heads+h)*each:][:each], d, pos[begin] == 0)
			whole.apply(whole.base)
			whole.wait(0)
			s := whole.base
			for first := begin; first < end; first += ir.DeltaChunk {
				live := min(ir.DeltaChunk, end-first)
				var qs, ks, changes, says, numbers [ir.DeltaChunk][]float32 // by row: matrices and numbers of delta_chunk
				for r := range live {
					key := ((first+r)*keys + keyHead(h)) * d
					qs[r], ks[r] = q[key:][:d], k[key:][:d]
					of := chunk[((first+r)*heads+h)*ir.DeltaChunkWidth:][:ir.DeltaChunkWidth]
					changes[r], says[r], numbers[r] = of[:ir.DeltaChunk], of[ir.DeltaChunk:2*ir.DeltaChunk], of[2*ir.DeltaChunk:]
				}
				for j := range d {
					at := func(r int) int { return ((first+r)*heads+h)*d + j }
					var delta [ir.DeltaChunk]float64
					row := s[j*d:][:d]
					for r := range live {
						delta[r] = float64(v[at(r)]) - float64(numbers[r][0])*dot64(row, ks[r])
					}
					for r := range live {
						y[at(r)] = float32(float64(numbers[r][1])*dot64(row, qs[r]) + dot64(says[r], delta[:]))
					}
					var change [ir.DeltaChunk]float64
					for r := range live {
						change[r] = dot64(changes[r], delta[:])
					}
					for i := range row {
						sum := float64(numbers[0][2]) * float64(row[i])
						for r := range live {
							sum += change[r] * float64(ks[r][i])
						}
						row[i] = float32(sum)
					}
				}
			}
		}
	})
	return nil
}

// runs returns where the runs of a step's rows begin and end: one, unless the step has parts.
func (c *call) runs(pos, slot []int32) (list [][2]int, err error) {
	for r := range slot {
		switch {
		case c.parts && slot[r] == ir.NoSlot:
		case len(list) == 0 || c.parts && slot[r] != slot[r-1]:
			list = append(list, [2]int{r, r + 1})
		case slot[r] != slot[r-1] || pos[r] == 0:
			return nil, fmt.Errorf("row %d does not follow the rows before it in slot %d", r, slot[r-1])
		default:
			list[len(list)-1][1]++
		}
	}
	return list, nil
}
