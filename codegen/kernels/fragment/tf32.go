package fragment

import "github.com/zincc-dev/zincc/codegen/kernel"

// Matrices of mma.m16n8k8, whose products take the 11 bits of mantissa of TF32.
var (
	TF32Left  = kernel.F32.Matrix(Side, Columns, kernel.MatrixA)
	TF32Right = kernel.F32.Matrix(Columns, Columns, kernel.MatrixB)
	TF32Sum   = kernel.F32.Matrix(Side, Columns, kernel.Accumulator)
)

// Split is a matrix of f32 as the sum of two of TF32: high parts, then low ones.
type Split [2]kernel.Value

// SplitTF32 returns the matrix of type TF32Left or TF32Right of which the lane holds these elements.
func SplitTF32(b *kernel.Builder, t kernel.Type, elems ...kernel.Value) Split {
	var high, low []kernel.Operand
	for _, x := range elems {
		h, l := b.SplitTF32(x)
		high, low = append(high, h), append(low, l)
	}
	return Split{b.MatElems(t, high...), b.MatElems(t, low...)}
}

// TF32x3 lists the pairs of parts whose products add up to a product of f32, small ones first. It leaves out the
// product of the low parts, which is 2^-22 of the whole or less.
var TF32x3 = [3][2]int{{1, 0}, {0, 1}, {0, 0}}

// AddTo returns sum + x*y.
func (x Split) AddTo(b *kernel.Builder, sum kernel.Value, y Split) kernel.Value {
	for _, part := range TF32x3 {
		sum = b.MatMulAdd(x[part[0]], y[part[1]], sum)
	}
	return sum
}
