package oracle

import (
	"fmt"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// matrix is a weight of rows x cols; a vector has one row.
type matrix struct {
	rows, cols int
	dtype      ir.DType
	raw        []byte
	kept       []float32 // all elements, once keep has been called
}

func newMatrix(t ir.Type, raw []byte) (*matrix, error) {
	if err := gguf.Dequantize(nil, nil, t.DType); err != nil {
		return nil, err
	}
	for _, d := range t.Shape {
		if d <= 0 {
			return nil, fmt.Errorf("weight %s has a symbolic dim", t)
		}
	}
	bytes, err := t.Bytes(1, 1)
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) != bytes {
		return nil, fmt.Errorf("%s takes %d bytes, not %d", t, bytes, len(raw))
	}
	n, _ := t.Elements(1, 1)
	w := &matrix{rows: int(n) / int(t.Last()), cols: int(t.Last()), dtype: t.DType, raw: raw}
	if len(t.Shape) == 1 {
		w.kept = w.row(0, make([]float32, w.cols))
	}
	return w, nil
}

// row returns row i: a window of what is kept, else buf, filled.
func (w *matrix) row(i int, buf []float32) []float32 {
	if w.kept != nil {
		return w.kept[i*w.cols : (i+1)*w.cols]
	}
	stride := int(w.dtype.Bytes(int64(w.cols)))
	if err := gguf.Dequantize(buf, w.raw[i*stride:(i+1)*stride], w.dtype); err != nil {
		panic(err) // newMatrix has checked type and sizes
	}
	return buf
}

// keep dequantizes w for good.
func (m *Machine) keep(w *matrix) {
	all := make([]float32, w.rows*w.cols)
	m.parallel(w.rows, w.cols, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			w.row(i, all[i*w.cols:(i+1)*w.cols])
		}
	})
	w.kept = all
}

// matrixOf returns a weight, or another f32 value seen as one.
func (m *Machine) matrixOf(v *ir.Value) (*matrix, error) {
	if w := m.weights[v]; w != nil {
		return w, nil
	}
	if v.Type.DType != ir.F32 || v.Type.Shape[0] < 0 {
		return nil, fmt.Errorf("%s is neither a weight nor f32 of fixed shape", v.Type)
	}
	x, cols := m.values[v], width(v)
	return &matrix{rows: len(x) / cols, cols: cols, dtype: ir.F32, kept: x}, nil
}

// floats returns a value or a whole weight; the weights that ops other than linear
// and embed read are vectors, which are always kept.
func (m *Machine) floats(v *ir.Value) []float32 {
	if w := m.weights[v]; w != nil {
		if w.kept == nil {
			m.keep(w)
		}
		return w.kept
	}
	return m.values[v]
}

// linear takes four weight rows at a time past all rows of x: a weight row is
// dequantized once a step, and an element of x is loaded once for four products.
func linear(c *call) error {
	w, err := c.matrixOf(c.op.Args[1])
	if err != nil {
		return err
	}
	if size := 4 * int64(w.rows) * int64(w.cols); w.kept == nil && size <= c.budget {
		c.budget -= size
		c.keep(w)
	}
	x, y, rows, k, n := c.arg(0), c.result(), c.rows(0), w.cols, w.rows
	c.parallel((n+3)/4, 4*k*rows, func(worker, lo, hi int) {
		buf := c.scratchFor(worker, 4*k)
		for i := 4 * lo; i < min(4*hi, n); i += 4 {
			var block [4][]float32
			for j := range block {
				// Rows past the end repeat the last one; their sums are dropped.
				block[j] = w.row(min(i+j, n-1), buf[j*k:(j+1)*k])
			}
			for r := range rows {
				s := dot4(block[0], block[1], block[2], block[3], x[r*k:(r+1)*k])
				copy(y[r*n+i:(r+1)*n], s[:])
			}
		}
	})
	if len(c.op.Args) == 3 {
		bias := c.arg(2)
		for r := range rows {
			addTo(y[r*n:(r+1)*n], bias)
		}
	}
	return nil
}

func addTo(y, x []float32) {
	x = x[:len(y)]
	for i := range y {
		y[i] += x[i]
	}
}

// dot4 returns the products of four rows with x. Even and odd elements have sums
// of their own: eight chains of additions hide the latency of one.
func dot4(a, b, c, d, x []float32) [4]float32 {
	n := len(x)
	a, b, c, d = a[:n], b[:n], c[:n], d[:n]
	var a0, a1, b0, b1, c0, c1, d0, d1 float32
	i := 0
	for ; i < n-1; i += 2 {
		x0, x1 := x[i], x[i+1]
		a0 += a[i] * x0
		a1 += a[i+1] * x1
		b0 += b[i] * x0
		b1 += b[i+1] * x1
		c0 += c[i] * x0
		c1 += c[i+1] * x1
		d0 += d[i] * x0
		d1 += d[i+1] * x1
	}
	if i < n {
		a0 += a[i] * x[i]
		b0 += b[i] * x[i]
		c0 += c[i] * x[i]
		d0 += d[i] * x[i]
	}
	return [4]float32{a0 + a1, b0 + b1, c0 + c1, d0 + d1}
}
