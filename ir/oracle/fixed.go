package oracle

import (
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// fixedPoint rounds to multiples of the largest magnitude of each run over most: of long elements, if
// those make up the rows, or else of 32.
func fixedPoint(most float64, long int) func(c *call) error {
	return func(c *call) error {
		run, row := 32, c.op.Attrs.Int("row")
		if row == 0 {
			row = width(c.op.Result)
		}
		if row%long == 0 {
			run = long
		}
		x, y := c.arg(0), c.result()
		for at := 0; at < c.rows(0)*width(c.op.Result); at += run {
			largest := float32(0)
			for _, v := range x[at : at+run] {
				largest = max(largest, float32(math.Abs(float64(v))))
			}
			for i, v := range x[at : at+run] {
				y[at+i] = 0
				if largest > 1e-30 {
					n := math.RoundToEven(float64(v) * most / float64(largest))
					y[at+i] = float32(n * float64(largest) / most)
				}
			}
		}
		return nil
	}
}

func squares(c *call) error {
	x, y := c.arg(0), c.result()
	for i := range c.rows(0) * width(c.op.Result) {
		y[i] = float32(sumOfSquares(x[i*ir.SquaresEach:][:ir.SquaresEach]))
	}
	return nil
}

// pack12 clears what lies behind the last row.
func pack12(c *call) error {
	p, rows, err := packed(c)
	if err != nil {
		return err
	}
	x, y := c.arg(0), asInts(c.result())
	clear(y)
	c.parallel(rows*p.Blocks, ir.PackBlock*len(p.Lanes), func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row, block := i/p.Blocks, i%p.Blocks
			var n [ir.PackBlock]float32
			copy(n[:], x[i*ir.PackBlock:])
			if len(c.op.Args) == 2 {
				for e, g := range c.arg(1)[block*ir.PackBlock:][:ir.PackBlock] {
					n[e] *= g
				}
			}
			lay12(p, y, row, block, &n, round12(&n))
		}
	})
	return nil
}

// Repack12 returns what op pack12 leaves of so many rows if their codes are those of the first layout of words, made
// integers, and their scales, too.
func Repack12(p ir.Packed, words []int32, rows int) []int32 {
	y := make([]int32, len(words))
	for i := range rows * p.Blocks {
		n, scale := Block12(p, words, i/p.Blocks, i%p.Blocks)
		for e, v := range n {
			n[e] = nearest(float64(v))
		}
		lay12(p, y, i/p.Blocks, i%p.Blocks, &n, scale)
	}
	return y
}

// Block12 returns the codes and the scale of a block that the first layout of words has.
func Block12(p ir.Packed, words []int32, row, block int) (n [ir.PackBlock]float32, scale float32) {
	for v := range ir.PackCodes {
		each := float32(1)
		if p.Lanes[0].Odd && v/4%2 == 1 {
			each = 16
		}
		for q, word := range words[p.Vector(0, row, block, v):][:4] {
			for i, e := range p.Lanes[0].Elements(v, q) {
				n[e] = each * gguf.F16ToF32(uint16(word>>(16*i)))
			}
		}
	}
	return n, math.Float32frombits(uint32(words[p.Scales(0, row, block)[0]]))
}

// lay12 puts a block into all layouts.
func lay12(p ir.Packed, y []int32, row, block int, n *[ir.PackBlock]float32, scale float32) {
	for l, lanes := range p.Lanes {
		for _, at := range p.Scales(l, row, block) {
			y[at] = int32(math.Float32bits(scale))
		}
		for v := range ir.PackCodes {
			each := float32(1)
			if lanes.Odd && v/4%2 == 1 {
				each = 1.0 / 16
			}
			for q, at := 0, p.Vector(l, row, block, v); q < 4; q++ {
				e := lanes.Elements(v, q)
				y[at+q] = halves(each*n[e[0]], each*n[e[1]])
			}
		}
		totals := totals12(n, lanes.Totals)
		for i := 0; i < len(totals); i += 2 {
			h, q := i/8, i/2%4
			y[p.Vector(l, row, block, ir.PackCodes+h)+q] = halves(totals[i][0], totals[i+1][0])
			y[p.Vector(l, row, block, ir.PackCodes+2+h)+q] = halves(totals[i][1], totals[i+1][1])
		}
	}
}

// packed returns what the op packs or unpacks, and how many rows, if they are as many at most.
func packed(c *call) (p ir.Packed, rows int, err error) {
	if p, err = ir.PackedOf(c.op); err != nil || p.Whole {
		return p, p.Rows, err
	}
	if c.n > p.Rows {
		err = fmt.Errorf("%d rows in tiles of %d", c.n, p.Rows)
	}
	return p, c.n, err
}

// round12 makes a block integers and returns their scale, to the bits that kernels compute in float32.
func round12(y *[ir.PackBlock]float32) (scale float32) {
	most, inverse := float32(0), float32(0)
	for _, v := range y {
		if a := float32(math.Abs(float64(v))); a > most {
			most = a
		}
	}
	if most > 1e-30 {
		inverse = 2047 / most
	}
	for i, v := range y {
		y[i] = nearest(float64(v) * float64(inverse)) // the product is exact
	}
	return most * float32(1.0/2047)
}

// nearest rounds to an integer, ties to even. Zero is never -0, as in the sum with 3*2^22 that kernels round by.
func nearest(x float64) float32 {
	if n := math.RoundToEven(x); n != 0 {
		return float32(n)
	}
	return 0
}

// totals12 returns upper and lower digits of the sums of so many runs of n.
func totals12(n *[ir.PackBlock]float32, count int) [][2]float32 {
	list := make([][2]float32, count)
	for i := range list {
		total := float32(0) // exact
		for _, v := range n[i*len(n)/count : (i+1)*len(n)/count] {
			total += v
		}
		upper := nearest(float64(total) / 64)
		list[i] = [2]float32{upper, total - 64*upper}
	}
	return list
}

// halves returns two f16 in a word.
func halves(low, high float32) int32 {
	return int32(uint32(gguf.F32ToF16(low)) | uint32(gguf.F32ToF16(high))<<16)
}

func unpack12(c *call) error {
	p, rows, err := packed(c)
	if err != nil {
		return err
	}
	x, y := asInts(c.arg(0)), c.result()
	for row := range rows {
		for block := range p.Blocks {
			n, scale := Block12(p, x, row, block)
			out := y[(row*p.Blocks+block)*ir.PackBlock:]
			for e, v := range n {
				out[e] = v * scale
			}
		}
	}
	return nil
}
