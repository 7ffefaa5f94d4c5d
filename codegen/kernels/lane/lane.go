// Package lane has helpers for elements and sums in the lanes of a subgroup:
// vectors, reductions, activations, conversions.
package lane

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
)

// Elements returns the elements of a vector, or the scalar itself.
func Elements(b *kernel.Builder, v kernel.Value) []kernel.Value {
	if v.Type().Lanes() == 1 {
		return []kernel.Value{v}
	}
	out := make([]kernel.Value, v.Type().Lanes())
	for i := range out {
		out[i] = b.Elem(v, i)
	}
	return out
}

// Vector is the inverse of Elements.
func Vector(b *kernel.Builder, list []kernel.Operand) kernel.Value {
	if len(list) == 1 {
		return list[0].(kernel.Value)
	}
	return b.Vec(list...)
}

// Splat returns the vector of n times x, or x itself for n = 1.
func Splat(b *kernel.Builder, x kernel.Value, n int) kernel.Value {
	if n == 1 {
		return x
	}
	return b.Splat(x, n)
}

// EachElement returns f of each element of a vector or scalar.
func EachElement(b *kernel.Builder, v kernel.Value, f func(b *kernel.Builder, x kernel.Value) kernel.Value) kernel.Value {
	var out []kernel.Operand
	for _, x := range Elements(b, v) {
		out = append(out, f(b, x))
	}
	return Vector(b, out)
}

// The vectors of a load.
var (
	F32x4 = kernel.F32.Vec(4)
	F32x2 = kernel.F32.Vec(2)
	U32x2 = kernel.U32.Vec(2)
	U32x4 = kernel.U32.Vec(4)
)

// Fold folds x over groups of lanes: n lanes, from those whose indices differ
// in the bit `from` up. n and from are powers of two.
func Fold(b *kernel.Builder, x kernel.Value, from, n int, fold func(x, y kernel.Value) kernel.Value) kernel.Value {
	for mask := from; mask < from*n; mask *= 2 {
		x = fold(x, b.SubgroupShuffleXor(x, mask))
	}
	return x
}

// Sum adds x up over groups of lanes, as Fold does.
func Sum(b *kernel.Builder, x kernel.Value, from, n int) kernel.Value {
	return Fold(b, x, from, n, func(x, y kernel.Value) kernel.Value { return b.Add(x, y) })
}

// SumEach adds up each of 2, 4, 8... values over a team of lanes. In each round the lanes exchange
// half of their remaining sums, by the bits of member from bit `from` on. In the end a
// lane has the sum of index member/from, modulo the number of values.
func SumEach(b *kernel.Builder, list []kernel.Value, member kernel.Value, from int) kernel.Value {
	for mask := from; len(list) > 1; mask *= 2 {
		upper := b.Ne(b.And(member, mask), 0)
		half := make([]kernel.Value, len(list)/2)
		for i := range half {
			half[i] = exchange(b, list[2*i], list[2*i+1], upper, mask)
		}
		list = half
	}
	return list[0]
}

// exchange adds two values up over lanes that differ in the bits of mask: those where it is set have the sum of high
// then, others that of low.
func exchange(b *kernel.Builder, low, high, upper kernel.Value, mask int) kernel.Value {
	return b.Add(b.Select(upper, high, low), b.SubgroupShuffleXor(b.Select(upper, low, high), mask))
}

// Joiner is SumEach for values that are computed one after the other; it keeps few of them at a time.
type Joiner struct{ sums []joined }

// joined is the sum of 2^level values.
type joined struct {
	v     kernel.Value
	level int
}

// Add adds the next value. member is the lane's place in the team, whose lanes lie beside each other.
func (j *Joiner) Add(b *kernel.Builder, v, member kernel.Value) {
	next := joined{v, 0}
	for n := len(j.sums) - 1; n >= 0 && j.sums[n].level == next.level; n-- {
		mask := 1 << next.level
		next = joined{exchange(b, j.sums[n].v, next.v, b.Ne(b.And(member, mask), 0), mask), next.level + 1}
		j.sums = j.sums[:n]
	}
	j.sums = append(j.sums, next)
}

// Sum returns the lane's sum, after as many values as the team has lanes.
func (j *Joiner) Sum() kernel.Value { return j.sums[0].v }

// Sum4 returns the sum of the elements of a vector of 4.
func Sum4(b *kernel.Builder, x kernel.Value) kernel.Value {
	return b.Add(b.Add(b.Elem(x, 0), b.Elem(x, 1)), b.Add(b.Elem(x, 2), b.Elem(x, 3)))
}

// Vars declares variables that hold words, as a loop carries them to its next
// iteration; GetVars and SetVars are their Get and Set.
func Vars(b *kernel.Builder, words [][]kernel.Value) [][]*kernel.Var {
	list := make([][]*kernel.Var, len(words))
	for i, row := range words {
		for _, w := range row {
			list[i] = append(list[i], b.Var(w.Type(), w))
		}
	}
	return list
}

func GetVars(held [][]*kernel.Var) [][]kernel.Value {
	list := make([][]kernel.Value, len(held))
	for i, row := range held {
		for _, v := range row {
			list[i] = append(list[i], v.Get())
		}
	}
	return list
}

func SetVars(held [][]*kernel.Var, words [][]kernel.Value) {
	for i, row := range held {
		for j, v := range row {
			v.Set(words[i][j])
		}
	}
}
