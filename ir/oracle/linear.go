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
	parts      []*matrix // once split has been called
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

// block returns rows i to i+lanes-1; rows from end on repeat the one before, and
// what is computed of them is to be dropped. buf has room for all of them.
func (w *matrix) block(i, end int, buf []float32) (rows [lanes][]float32) {
	for j := range rows {
		rows[j] = w.row(min(i+j, end-1), buf[j*w.cols:(j+1)*w.cols])
	}
	return rows
}

// keepIfCheap keeps w if the memory for it is left.
func (m *Machine) keepIfCheap(w *matrix) {
	if size := 4 * int64(w.rows) * int64(w.cols); w.kept == nil && size <= m.budget {
		m.budget -= size
		m.keep(w)
	}
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

// lanes is the number of rows that dot and axpy take at once. Six sums and their
// six products are what amd64's 15 free vector registers hold.
const lanes = 6

// linear takes a few weight rows at a time past all rows of x: a weight row is
// dequantized once a step, and an element of x is loaded once for all of them.
func linear(c *call) error {
	w, err := c.matrixOf(c.op.Args[1])
	if err != nil {
		return err
	}
	c.keepIfCheap(w)
	x, y, rows, k, n := c.arg(0), c.result(), c.rows(0), w.cols, w.rows
	c.parallel(ceilDiv(n, lanes), lanes*k*rows, func(worker, lo, hi int) {
		buf := c.scratchFor(worker, lanes*k)
		for i := lanes * lo; i < min(lanes*hi, n); i += lanes {
			block := w.block(i, n, buf)
			for r := range rows {
				s := dot(&block, x[r*k:(r+1)*k])
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

// dot returns the products of the rows of w with x. Each row has one chain of
// additions, broken every 256 elements to keep the rounding errors small.
func dot(w *[lanes][]float32, x []float32) (sums [lanes]float32) {
	for at := 0; at < len(x); at += 256 {
		x := x[at:min(at+256, len(x))]
		n := len(x)
		a, b, c := w[0][at:][:n], w[1][at:][:n], w[2][at:][:n]
		d, e, f := w[3][at:][:n], w[4][at:][:n], w[5][at:][:n]
		var sa, sb, sc, sd, se, sf float32
		for i, v := range x {
			sa += a[i] * v
			sb += b[i] * v
			sc += c[i] * v
			sd += d[i] * v
			se += e[i] * v
			sf += f[i] * v
		}
		for i, s := range [lanes]float32{sa, sb, sc, sd, se, sf} {
			sums[i] += s
		}
	}
	return sums
}

// axpy adds to y the rows of w, each times its scale.
func axpy(y []float32, w *[lanes][]float32, scale *[lanes]float32) {
	n := len(y)
	a, b, c, d, e, f := w[0][:n], w[1][:n], w[2][:n], w[3][:n], w[4][:n], w[5][:n]
	sa, sb, sc, sd, se, sf := scale[0], scale[1], scale[2], scale[3], scale[4], scale[5]
	for i := range y {
		y[i] += (sa*a[i] + sb*b[i]) + (sc*c[i] + sd*d[i]) + (se*e[i] + sf*f[i])
	}
}
