package ptx

import (
	"math/bits"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

// The driver's compiler takes a division as it stands: by a number that is known, too, it computes
// a reciprocal with the unit for functions, some 100 cycles in a row.

// divided returns the quotient or the remainder of x by a number that is known.
func (l *lowering) divided(op kernel.Op, x, y operand) (operand, bool) {
	if op != kernel.OpDiv && op != kernel.OpMod || x.lit || !y.lit || y.bits == 0 {
		return operand{}, false
	}
	d, shift := y.bits, bits.TrailingZeros32(y.bits)
	switch whole := d&(d-1) == 0; {
	case d == 1 && op == kernel.OpDiv:
		return x, true
	case d == 1:
		return number(0), true
	case whole && op == kernel.OpDiv:
		return l.word("shr.u32", "%s, %d", x.reg, shift), true
	case whole:
		return l.word("and.b32", "%s, %d", x.reg, d-1), true
	}
	q := l.quotient(x, d)
	if op == kernel.OpDiv {
		return q, true
	}
	// x - q*d, where numbers wrap.
	return l.word("mad.lo.u32", "%s, %d, %s", q.reg, -d, x.reg), true
}

// quotient divides by d, which is no power of two, without a division.
func (l *lowering) quotient(x operand, d uint32) operand {
	factor, shift := reciprocal(d)
	high := l.word("mul.hi.u32", "%s, %d", x.reg, factor)
	rest := l.word("sub.u32", "%s, %s", x.reg, high.reg)
	half := l.word("shr.u32", "%s, 1", rest.reg)
	sum := l.word("add.u32", "%s, %s", high.reg, half.reg)
	return l.word("shr.u32", "%s, %d", sum.reg, shift)
}

// reciprocal returns 2^(32+n)/d rounded up, without its highest bit, and n-1, where 2^n is the next
// power of two above d: with high = x*factor>>32 the quotient is (high + (x-high)>>1) >> (n-1)
// (Granlund and Montgomery, Division by Invariant Integers using Multiplication, 1994, figure 4.1).
func reciprocal(d uint32) (factor uint32, shift int) {
	n := bits.Len32(d)
	return uint32((uint64(1)<<n-uint64(d))<<32/uint64(d)) + 1, n - 1
}
