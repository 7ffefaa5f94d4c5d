package lane

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
)

// RoundHalf returns a vec4 as four f16, clamped to their range.
func RoundHalf(b *kernel.Builder, x kernel.Value) kernel.Value {
	x = b.Clamp(x, -65504.0, 65504.0)
	pair := func(i int) kernel.Operand { return b.PackHalf(b.Vec(b.Elem(x, i), b.Elem(x, i+1))) }
	return b.Vec(pair(0), pair(2))
}
