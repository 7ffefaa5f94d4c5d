package oracle

import (
	"context"
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/ir"
)

// tableKinds maps the attribute kind of a table global to the function that fills
// it: out has rows of width elements, of which the first is that of position at.
var tableKinds = map[string]func(a ir.Attrs, out []float32, at, width int) error{
	"rope": ropeTable,
}

// Table computes the elements of the table global v, f32[L, width] with L = positions.
// Every runtime uploads the same elements.
func Table(ctx context.Context, v *ir.Value, positions int) ([]float32, error) {
	fill := tableKinds[v.Attrs.Str("kind")]
	if v.Class != ir.Table || fill == nil {
		return nil, fmt.Errorf("unknown kind of table %q", v.Attrs.Str("kind"))
	}
	t := v.Type
	if t.DType != ir.F32 || len(t.Shape) != 2 || t.Shape[0] != ir.L {
		return nil, fmt.Errorf("table %s is not f32[L, width]", t)
	}
	n, err := words(t, 1, positions)
	if err != nil {
		return nil, err
	}
	out := make([]float32, n)
	for at := 0; at < positions; at += tablePart {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rows := out[at*width(v) : min(at+tablePart, positions)*width(v)]
		if err := fill(v.Attrs, rows, at, width(v)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// tablePart is the rows between looks at the context.
const tablePart = 4096

// ropeTable sets the row of position p to the pairs (cos, sin)(p * freqs[i]) * mscale, computed in
// float64: float32 loses the fast frequencies at large p. With heat, they are multiplied by
// 1 + heat * ln(floor(p/length) + 1).
func ropeTable(a ir.Attrs, out []float32, at, width int) error {
	freqs, mscale := a.Floats("freqs"), a.Float("mscale")
	if 2*len(freqs) != width {
		return fmt.Errorf("%d frequencies for rows of %d", len(freqs), width)
	}
	heat, length := a.Float("heat"), a.Float("length")
	for i := 0; i < len(out); i += 2 {
		p := float64(at + i/width)
		sin, cos := math.Sincos(p * freqs[i%width/2])
		m := mscale
		if heat != 0 {
			m *= 1 + heat*math.Log(math.Floor(p/length)+1)
		}
		out[i], out[i+1] = float32(cos*m), float32(sin*m)
	}
	return nil
}
