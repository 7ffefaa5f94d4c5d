package oracle

import (
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/ir"
)

// tableKinds maps the attribute kind of a table global to the function that fills
// it: out has ctx rows of width elements.
var tableKinds = map[string]func(a ir.Attrs, out []float32, width int) error{
	"rope": ropeTable,
}

// Table computes the elements of the table global v, f32[L, width] with L = ctx.
// Every runtime uploads the same elements.
func Table(v *ir.Value, ctx int) ([]float32, error) {
	fill := tableKinds[v.Attrs.Str("kind")]
	if v.Class != ir.Table || fill == nil {
		return nil, fmt.Errorf("unknown kind of table %q", v.Attrs.Str("kind"))
	}
	t := v.Type
	if t.DType != ir.F32 || len(t.Shape) != 2 || t.Shape[0] != ir.L {
		return nil, fmt.Errorf("table %s is not f32[L, width]", t)
	}
	n, err := words(t, 1, ctx)
	if err != nil {
		return nil, err
	}
	out := make([]float32, n)
	return out, fill(v.Attrs, out, width(v))
}

// ropeTable sets row p to the pairs (cos, sin)(p * freqs[i]) * mscale, computed in
// float64: float32 loses the fast frequencies at large p.
func ropeTable(a ir.Attrs, out []float32, width int) error {
	freqs, mscale := a.Floats("freqs"), a.Float("mscale")
	if 2*len(freqs) != width {
		return fmt.Errorf("%d frequencies for rows of %d", len(freqs), width)
	}
	for i := 0; i < len(out); i += 2 {
		sin, cos := math.Sincos(float64(i/width) * freqs[i%width/2])
		out[i], out[i+1] = float32(cos*mscale), float32(sin*mscale)
	}
	return nil
}
