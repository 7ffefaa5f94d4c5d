package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
)

// rowTile is a tile of rows of x, and what a projection makes of them.
type rowTile struct {
	b      *kernel.Builder
	p      *projectArgs
	sorted *sortedRows  // where the rows are; nil if they are those of x and the results
	rows   kernel.Value // of this step, or where those of the tile's expert end
	row    kernel.Value // first of the tile
}

// leave ends workgroups without a row; where rows are sorted, those have ended.
func (t *rowTile) leave() {
	if t.sorted == nil {
		t.b.ReturnIf(t.b.Ge(t.row, t.rows))
	}
}

// source returns which row of x row r of the tile is. Rows beyond the last repeat it:
// their results are not stored.
func (t *rowTile) source(r kernel.Value) kernel.Value {
	r = t.b.Add(t.row, r)
	if t.sorted != nil {
		return t.sorted.source(r, t.rows)
	}
	return t.b.Min(r, t.b.Sub(t.rows, 1))
}

// finish loads what vec4 col of a row of the result needs besides its products v
// by matrix, and returns what computes and writes it if exists holds.
func (t *rowTile) finish(v []kernel.Value, row, col, exists kernel.Value) func() {
	b, p := t.b, t.p
	width := b.Div(p.width, 4)
	inside := b.And(exists, b.And(b.Lt(row, t.rows), b.Lt(col, width)))
	if t.sorted != nil {
		row = t.sorted.target(b.Min(row, b.Sub(t.rows, 1)))
	}
	at := b.Add(b.Mul(row, width), col)
	result := t.result(v, at, col, width, inside)
	return func() {
		b.If(inside, func() {
			if y := result(); p.spec.half {
				p.out.Store(at, lane.RoundHalf(b, y))
			} else {
				p.out.Store(at, y)
			}
		})
	}
}

// result loads what vec4 col of a row of the result, which has width vec4 and of which it is vec4 at of all rows, needs
// besides its products v by matrix, if it is inside, and returns what computes it.
func (t *rowTile) result(v []kernel.Value, at, col, width, inside kernel.Value) func() kernel.Value {
	b, p := t.b, t.p
	safe := b.Select(inside, at, 0)
	var biases, residuals []kernel.Value
	for _, buf := range p.bias {
		if buf != nil {
			biases = append(biases, buf.Load(lane.F32x4, b.Select(inside, p.biasAt(b, width, col), 0)))
		}
	}
	for _, r := range p.residuals {
		residuals = append(residuals, r.Load(lane.F32x4, safe))
	}
	return func() kernel.Value {
		for i := range v {
			if p.bias[i] != nil {
				v[i], biases = b.Add(v[i], biases[0]), biases[1:]
			}
		}
		y := v[0]
		if p.spec.act != "" {
			y = lane.GLU(b, p.spec.act, y)(v[1])
		}
		for _, r := range residuals {
			y = b.Add(y, r)
		}
		return y
	}
}
