package kernel

import "math"

// U32 returns a constant. Most operations take a Go number directly.
func (b *Builder) U32(x uint32) Value { return b.constant(U32, x) }

// F32 returns a constant; infinities are welcome.
func (b *Builder) F32(x float32) Value { return b.constant(F32, math.Float32bits(x)) }

// Bool returns a constant.
func (b *Builder) Bool(x bool) Value {
	bits, _ := literal(x, Bool)
	return b.constant(Bool, bits)
}

// Operations on numbers work element by element on vectors. Integers wrap.
// Floating point add, subtract, multiply and divide are never fused: the same
// expression gives the same bits in every module; only FMA fuses.

func (b *Builder) unary(o Op, k kinds, x Operand) Value {
	n := b.same(o, k, x)
	return b.emit(o, n[0].typ, n...)
}

func (b *Builder) binary(o Op, k kinds, x, y Operand) Value {
	n := b.same(o, k, x, y)
	return b.emit(o, n[0].typ, n...)
}

func (b *Builder) fold(o Op, k kinds, x, y Operand, more []Operand) Value {
	v := b.binary(o, k, x, y)
	for _, m := range more {
		v = b.binary(o, k, v, m)
	}
	return v
}

// Add returns x + y + ..., summed from left to right.
func (b *Builder) Add(x, y Operand, more ...Operand) Value { return b.fold(OpAdd, kNum, x, y, more) }

// Sub returns x - y.
func (b *Builder) Sub(x, y Operand) Value { return b.binary(OpSub, kNum, x, y) }

// Mul returns x * y * ..., multiplied from left to right.
func (b *Builder) Mul(x, y Operand, more ...Operand) Value { return b.fold(OpMul, kNum, x, y, more) }

// Div returns x / y. Integers truncate, and are undefined for y = 0; floats are
// within 2.5 units in the last place.
func (b *Builder) Div(x, y Operand) Value { return b.binary(OpDiv, kNum, x, y) }

// Mod returns the remainder of Div, with the sign of x, for integers.
func (b *Builder) Mod(x, y Operand) Value { return b.binary(OpMod, kInt, x, y) }

// FMA returns x*y + z, with one rounding where the device has the instruction, as
// GPUs do, and with two elsewhere (llvmpipe).
func (b *Builder) FMA(x, y, z Operand) Value {
	n := b.same(OpFMA, kF32, x, y, z)
	return b.emit(OpFMA, n[0].typ, n...)
}

// Min returns the lesser of x and y; of a NaN and a number, either.
func (b *Builder) Min(x, y Operand) Value { return b.binary(OpMin, kNum, x, y) }

// Max returns the greater of x and y; of a NaN and a number, either.
func (b *Builder) Max(x, y Operand) Value { return b.binary(OpMax, kNum, x, y) }

// Clamp returns Min(Max(x, lo), hi).
func (b *Builder) Clamp(x, lo, hi Operand) Value { return b.Min(b.Max(x, lo), hi) }

// And is bitwise for integers, logical for Bool.
func (b *Builder) And(x, y Operand, more ...Operand) Value { return b.fold(OpAnd, kBits, x, y, more) }

// Or is bitwise for integers, logical for Bool.
func (b *Builder) Or(x, y Operand, more ...Operand) Value { return b.fold(OpOr, kBits, x, y, more) }

// Xor is bitwise.
func (b *Builder) Xor(x, y Operand) Value { return b.binary(OpXor, kInt, x, y) }

// Not is bitwise for integers, logical for Bool.
func (b *Builder) Not(x Operand) Value { return b.unary(OpNot, kBits, x) }

// Shl returns x << n, for 0 <= n < 32. n may be U32 or I32.
func (b *Builder) Shl(x, n Operand) Value { return b.shift(OpShl, x, n) }

// Shr returns x >> n, for 0 <= n < 32: logical for U32, arithmetic for I32. n may
// be U32 or I32.
func (b *Builder) Shr(x, n Operand) Value { return b.shift(OpShr, x, n) }

func (b *Builder) shift(o Op, x, n Operand) Value {
	v := b.same(o, kInt, x)[0]
	by := b.operand(n, v.typ).n
	if !kInt.has(by.typ) || by.typ.Lanes() != v.typ.Lanes() {
		b.fail("%s of %v by %v", ops[o].name, v.typ, by.typ)
	}
	return b.emit(o, v.typ, v, by)
}

// BitExtract returns count bits of x from bit offset on, zero-extended for U32,
// sign-extended for I32. offset and count are U32.
func (b *Builder) BitExtract(x, offset, count Operand) Value {
	n := b.same(OpBitExtract, kInt, x)[0]
	return b.emit(OpBitExtract, n.typ, n, b.typed(OpBitExtract, offset, U32), b.typed(OpBitExtract, count, U32))
}

// Neg returns -x, for I32 and F32.
func (b *Builder) Neg(x Operand) Value { return b.unary(OpNeg, kI32|kF32, x) }

// Abs returns the magnitude of x, for I32 and F32.
func (b *Builder) Abs(x Operand) Value { return b.unary(OpAbs, kI32|kF32, x) }

// Sqrt returns the square root.
func (b *Builder) Sqrt(x Operand) Value { return b.unary(OpSqrt, kF32, x) }

// InverseSqrt returns 1/sqrt(x).
func (b *Builder) InverseSqrt(x Operand) Value { return b.unary(OpInverseSqrt, kF32, x) }

// Exp returns e to the x.
func (b *Builder) Exp(x Operand) Value { return b.unary(OpExp, kF32, x) }

// Exp2 returns 2 to the x.
func (b *Builder) Exp2(x Operand) Value { return b.unary(OpExp2, kF32, x) }

// Select returns x where cond holds, else y. cond is Bool, or for vectors a Bool
// vector of as many elements.
func (b *Builder) Select(cond, x, y Operand) Value {
	n := b.same(OpSelect, kAny, x, y)
	c := b.operand(cond, Bool)
	if lanes := n[0].typ.Lanes(); c.Type() == Bool && lanes > 1 {
		c = b.Splat(c, lanes)
	}
	if c.Type() != Bool.Vec(n[0].typ.Lanes()) {
		b.fail("select of %v by %v", n[0].typ, c.Type())
	}
	return b.emit(OpSelect, n[0].typ, c.n, n[0], n[1])
}

func (b *Builder) compare(o Op, k kinds, x, y Operand) Value {
	n := b.same(o, k, x, y)
	return b.emit(o, Bool.Vec(n[0].typ.Lanes()), n...)
}

// Eq returns x == y as Bool. No comparison but Ne holds for a NaN.
func (b *Builder) Eq(x, y Operand) Value { return b.compare(OpEq, kAny, x, y) }

// Ne returns x != y as Bool.
func (b *Builder) Ne(x, y Operand) Value { return b.compare(OpNe, kAny, x, y) }

// Lt returns x < y as Bool.
func (b *Builder) Lt(x, y Operand) Value { return b.compare(OpLt, kNum, x, y) }

// Le returns x <= y as Bool.
func (b *Builder) Le(x, y Operand) Value { return b.compare(OpLe, kNum, x, y) }

// Gt returns x > y as Bool.
func (b *Builder) Gt(x, y Operand) Value { return b.compare(OpGt, kNum, x, y) }

// Ge returns x >= y as Bool.
func (b *Builder) Ge(x, y Operand) Value { return b.compare(OpGe, kNum, x, y) }

// IsNaN returns whether x is not a number.
func (b *Builder) IsNaN(x Operand) Value { return b.predicate(OpIsNaN, x) }

func (b *Builder) predicate(o Op, x Operand) Value {
	n := b.same(o, kF32, x)
	return b.emit(o, Bool.Vec(n[0].typ.Lanes()), n...)
}
