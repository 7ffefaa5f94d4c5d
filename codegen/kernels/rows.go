package kernels

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/ir"
)

// Rows of a step. A value of T rows has room for Func.Rows of them; a step
// computes the first @n. The rest hold what earlier steps left there, so a kernel
// writes no row at or beyond @n and follows no position or slot of one. It loads
// @n along with what else it needs before it looks at any of it: a load that waits
// for another costs a stage of a decoded token a tenth of its time.

var (
	f32x4 = kernel.F32.Vec(4)
	f32x2 = kernel.F32.Vec(2)
	u32x2 = kernel.U32.Vec(2)
	u32x4 = kernel.U32.Vec(4)
)

// extent is the rows of a value in a site.
type extent struct {
	max int       // rows that it has room for
	n   *ir.Value // step value with the rows of this step; nil when it is max, as it is when that is 1
}

// extentOf returns the rows of v. It fails for values of T rows in a program
// without @n.
func extentOf(s *Site, v *ir.Value) (extent, bool) {
	if v.Type.Shape[0] != ir.T {
		return extent{max: int(v.Type.Shape[0])}, true
	}
	n := s.Program.Global("n")
	if s.Func.Rows == 1 && n != nil { // a step has one row at least
		return extent{max: 1}, true
	}
	return extent{max: s.Func.Rows, n: n}, n != nil
}

// key tells modules that read @n from those that do not.
func (e extent) key() string {
	if e.n == nil {
		return ""
	}
	return " n"
}

// operands are the operands that bound declares.
func (e extent) operands() []Operand {
	if e.n == nil {
		return nil
	}
	return []Operand{{"n", e.n, kernel.Read}}
}

// bound declares what it needs and returns the rows of this step.
func (e extent) bound(b *kernel.Builder) kernel.Value {
	if e.n == nil {
		return b.SpecU32("rows", 1)
	}
	return b.Arg("n", kernel.Read).Load(kernel.U32, 0)
}

// consts are the constants that bound declares.
func (e extent) consts() []ir.Const {
	if e.n == nil {
		return []ir.Const{{Name: "rows", Value: uint32(e.max)}}
	}
	return nil
}

// only returns the op of a group of one op of that name whose result others read.
func only(s *Site, name string) *ir.Op {
	if len(s.Group.Ops) != 1 || s.Group.Ops[0].Kind.Name != name {
		return nil
	}
	op := s.Group.Ops[0]
	if op.Result != nil && (len(s.Outputs) != 1 || s.Outputs[0] != op.Result) {
		return nil
	}
	return op
}

// widest returns the elements, 4, 2 or 1, of an access that divides width.
func widest(width int) int {
	for _, v := range []int{4, 2} {
		if width%v == 0 {
			return v
		}
	}
	return 1
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// xorLanes folds x over groups of lanes: n lanes, from those whose indices differ
// in the bit `from` up. n and from are powers of two.
func xorLanes(b *kernel.Builder, x kernel.Value, from, n int, fold func(x, y kernel.Value) kernel.Value) kernel.Value {
	for mask := from; mask < from*n; mask *= 2 {
		x = fold(x, b.SubgroupShuffleXor(x, mask))
	}
	return x
}

// addLanes adds x up over groups of lanes, as xorLanes does.
func addLanes(b *kernel.Builder, x kernel.Value, from, n int) kernel.Value {
	return xorLanes(b, x, from, n, func(x, y kernel.Value) kernel.Value { return b.Add(x, y) })
}

// dealSums adds each of a list of 2, 4, 8... values up over a team of lanes. The lanes exchange
// half of the sums that they have left, by the bits of member from the bit `from` on, until a
// lane is left with that of index member/from, modulo their number.
func dealSums(b *kernel.Builder, list []kernel.Value, member kernel.Value, from int) kernel.Value {
	for mask := from; len(list) > 1; mask *= 2 {
		upper := b.Ne(b.And(member, mask), 0)
		half := make([]kernel.Value, len(list)/2)
		for i := range half {
			low, high := list[2*i], list[2*i+1]
			half[i] = b.Add(b.Select(upper, high, low), b.SubgroupShuffleXor(b.Select(upper, low, high), mask))
		}
		list = half
	}
	return list[0]
}

// sum4 returns the sum of the elements of a vector of 4.
func sum4(b *kernel.Builder, x kernel.Value) kernel.Value {
	return b.Add(b.Add(b.Elem(x, 0), b.Elem(x, 1)), b.Add(b.Elem(x, 2), b.Elem(x, 3)))
}

// log2 returns the logarithm of a power of two.
func log2(n int) int {
	k := 0
	for ; n > 1; n /= 2 {
		k++
	}
	return k
}

// vars declares variables that hold words, as a loop carries them to its next
// iteration; getVars and setVars are their Get and Set.
func vars(b *kernel.Builder, words [][]kernel.Value) [][]*kernel.Var {
	list := make([][]*kernel.Var, len(words))
	for i, row := range words {
		for _, w := range row {
			list[i] = append(list[i], b.Var(w.Type(), w))
		}
	}
	return list
}

func getVars(held [][]*kernel.Var) [][]kernel.Value {
	list := make([][]kernel.Value, len(held))
	for i, row := range held {
		for _, v := range row {
			list[i] = append(list[i], v.Get())
		}
	}
	return list
}

func setVars(held [][]*kernel.Var, words [][]kernel.Value) {
	for i, row := range held {
		for j, v := range row {
			v.Set(words[i][j])
		}
	}
}
