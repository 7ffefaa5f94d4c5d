package oracle

import (
	"math"

	"github.com/zincc-dev/zincc/ir"
)

// linearParts is linear, part by part of the rows.
func linearParts(c *call) error {
	w, err := c.matrixOf(c.op.Args[1])
	if err != nil {
		return err
	}
	c.keepIfCheap(w)
	x, y, rows, k, n, each := c.arg(0), c.result(), c.rows(0), w.cols, w.rows, c.op.Attrs.Int("each")
	c.parallel(ceilDiv(n, lanes), lanes*k*rows, func(worker, lo, hi int) {
		buf := c.scratchFor(worker, lanes*k)
		for i := lanes * lo; i < min(lanes*hi, n); i += lanes {
			block := w.block(i, n, buf)
			for part := range ir.PartsOf(k, each) {
				from, to := part*each, min((part+1)*each, k)
				of := block
				for j := range of {
					of[j] = block[j][from:to]
				}
				for r := range rows {
					s := dot(&of, x[r*k+from:r*k+to])
					at := (r*ir.PartsOf(k, each) + part) * n
					copy(y[at+i:at+n], s[:])
				}
			}
		}
	})
	return nil
}

func addParts(c *call) error {
	x, y, n, count := c.arg(0), c.result(), width(c.op.Result), c.op.Attrs.Int("count")
	squares, bias := ir.AddedTo(c.op)
	for r := range c.rows(0) {
		out := y[r*n:][:n]
		copy(out, x[r*count*n:])
		for part := 1; part < count; part++ {
			addTo(out, x[(r*count+part)*n:])
		}
		if squares != nil {
			rstd := c.rstd(squares, r)
			for i := range out {
				out[i] = float32(rstd * float64(out[i]))
			}
		}
		if bias != nil {
			addTo(out, c.floats(bias))
		}
	}
	return nil
}

// rstd returns what normalizes row r, whose squares have been added up.
func (c *call) rstd(squares *ir.Value, r int) float64 {
	sum, n := 0.0, width(squares)
	for _, s := range c.floats(squares)[r*n:][:n] {
		sum += float64(s)
	}
	return 1 / math.Sqrt(sum/float64(n*ir.SquaresEach)+c.op.Attrs.Float("eps"))
}
