package lane

import "github.com/zincc-dev/zincc/codegen/kernel"

// HeadTeam is the lanes that share a head of so many elements, a multiple of 16, four neighbouring elements at a time:
// no more than the smallest subgroup has.
func HeadTeam(dim int) int {
	if dim%32 == 0 {
		return 8
	}
	return 4
}

// TeamSum returns the sum of all elements of v, vec4, of all lanes of a team.
func TeamSum(b *kernel.Builder, v kernel.Value, team int) kernel.Value {
	return Fold(b, Sum4(b, v), 1, team, func(x, y kernel.Value) kernel.Value { return b.Add(x, y) })
}

// TeamSquares returns the sum of the squares of a head, of which each lane of a team has the vec4 of list.
func TeamSquares(b *kernel.Builder, list []kernel.Value, team int) kernel.Value {
	sum := b.Mul(list[0], list[0])
	for _, v := range list[1:] {
		sum = b.FMA(v, v, sum)
	}
	return TeamSum(b, sum, team)
}

// HeadScale returns the factor of a norm of a head with such a sum of squares.
func HeadScale(b *kernel.Builder, squares kernel.Value, dim int, eps kernel.Value) kernel.Value {
	return b.InverseSqrt(b.Add(b.Div(squares, float64(dim)), eps))
}

// GatedHead returns four elements of a head, normed and gated.
func GatedHead(b *kernel.Builder, x, scale, gain, z kernel.Value) kernel.Value {
	return b.Mul(x, b.Splat(scale, 4), gain, EachElement(b, z, Activations["silu"]))
}
