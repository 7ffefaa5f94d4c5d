package kernel

// Convert returns the number x as type t, which has as many elements. U32 and
// I32 keep the bits, F32 to integer truncates (and is undefined out of range),
// integer to F32 rounds to nearest, Bool becomes 0 or 1.
func (b *Builder) Convert(t Type, x Value) Value {
	x = b.visible(x)
	from := x.Type()
	switch {
	case !kNum.has(t) || t.Lanes() != from.Lanes():
		b.fail("convert %v to %v", from, t)
		return b.poison(t)
	case from == t:
		return x
	case from.Elem() == Bool:
		return b.Select(x, b.operand(1, t), b.operand(0, t))
	case kInt.has(from) && kInt.has(t):
		return b.Bitcast(t, x)
	}
	return b.emit(OpConvert, t, x.n)
}

// Bitcast returns the bits of x as type t, which has as many elements.
func (b *Builder) Bitcast(t Type, x Value) Value {
	x = b.visible(x)
	from := x.Type()
	switch {
	case !kNum.has(t) || !kNum.has(from) || t.Lanes() != from.Lanes():
		b.fail("bitcast %v to %v", from, t)
		return b.poison(t)
	case from == t:
		return x
	case x.n.op == OpConst:
		return b.constant(t, x.n.imm)
	}
	return b.emit(OpBitcast, t, x.n)
}

// RoundsHalf is Vulkan's name of what a kernel needs that rounds to f16: without it the device chooses how.
const RoundsHalf = "shaderRoundingModeRTEFloat16"

// UnpackHalf returns the two f16 in the U32 x as F32.Vec(2), the lower half
// first.
func (b *Builder) UnpackHalf(x Value) Value {
	return b.emit(OpUnpackHalf, F32.Vec(2), b.typed(OpUnpackHalf, x, U32))
}

// PackHalf returns the two elements of the F32.Vec(2) x as f16 in a U32, the
// first in the lower half, rounded to nearest even. The kernel then needs RoundsHalf
// and the feature shaderFloat16.
func (b *Builder) PackHalf(x Value) Value {
	b.need("shaderFloat16")
	b.need(RoundsHalf)
	return b.emit(OpPackHalf, U32, b.typed(OpPackHalf, x, F32.Vec(2)))
}

// FMAHalf returns x*y + z of the pairs of f16 in the U32 x, y and z, as a pair of
// f16 in a U32, with one rounding where the device has the instruction. The kernel
// then needs RoundsHalf and the feature shaderFloat16.
func (b *Builder) FMAHalf(x, y, z Operand) Value {
	b.need("shaderFloat16")
	b.need(RoundsHalf)
	return b.emit(OpFMAHalf, U32, b.typed(OpFMAHalf, x, U32), b.typed(OpFMAHalf, y, U32), b.typed(OpFMAHalf, z, U32))
}

// PairHalves returns the lower halves of the U32 x and y as one word, x in the lower half, and
// their upper halves likewise. The kernel then needs the feature shaderFloat16.
func (b *Builder) PairHalves(x, y Operand) (lower, upper Value) {
	b.need("shaderFloat16")
	var pairs [2]Value
	for i := range pairs {
		pairs[i] = b.add(&Node{op: OpPairHalves, typ: U32, imm: uint32(i), args: []*Node{b.typed(OpPairHalves, x, U32), b.typed(OpPairHalves, y, U32)}})
	}
	return pairs[0], pairs[1]
}

// Permute returns four of the eight bytes of the U32 x and y, numbered from the lowest byte of x. Nibble i of
// order chooses byte i: its lowest three bits are the number of the byte; if the fourth bit is set, byte i is
// eight copies of that byte's sign bit. The upper half of order has no effect.
func (b *Builder) Permute(x, y, order Operand) Value {
	return b.emit(OpPermute, U32, b.typed(OpPermute, x, U32), b.typed(OpPermute, y, U32), b.typed(OpPermute, order, U32))
}

// DotI8 returns the sum, as I32, of the products of the four signed bytes in
// each of the U32 x and y. The kernel then needs the feature
// shaderIntegerDotProduct.
func (b *Builder) DotI8(x, y Operand) Value {
	b.need("shaderIntegerDotProduct")
	return b.emit(OpDotI8, I32, b.typed(OpDotI8, x, U32), b.typed(OpDotI8, y, U32))
}

// DotU8 is DotI8 for unsigned bytes in y.
func (b *Builder) DotU8(x, y Operand) Value {
	b.need("shaderIntegerDotProduct")
	return b.emit(OpDotU8, I32, b.typed(OpDotU8, x, U32), b.typed(OpDotU8, y, U32))
}

// Vec returns the vector of 2 or 4 scalars of one type.
func (b *Builder) Vec(elems ...Operand) Value {
	if len(elems) != 2 && len(elems) != 4 {
		b.fail("vec of %d elements", len(elems))
		return b.poison(F32.Vec(4))
	}
	n := b.same(OpVec, kAny, elems...)
	if t := n[0].typ; t.Lanes() > 1 {
		b.fail("vec of %v", t)
		return b.poison(t)
	}
	return b.vec(n)
}

// Splat returns the vector of n (2 or 4) times the scalar x.
func (b *Builder) Splat(x Value, n int) Value {
	elems := make([]Operand, n)
	for i := range elems {
		elems[i] = x
	}
	return b.Vec(elems...)
}

func (b *Builder) vec(elems []*Node) Value {
	t := elems[0].typ.Vec(len(elems))
	for _, e := range elems {
		if !e.static() {
			return b.add(&Node{op: OpVec, typ: t, args: elems})
		}
	}
	return b.staticNode(OpVec, t, elems)
}

// Elem returns element i of the vector v: a Go int, or a U32 known only at run
// time, which is slower.
func (b *Builder) Elem(v Value, i Operand) Value {
	v = b.visible(v)
	t := v.Type()
	n := b.typed(OpElem, i, U32)
	switch {
	case t.Lanes() == 1:
		b.fail("element of %v", t)
		return b.poison(t.Elem())
	case n.op == OpConst && n.imm >= uint32(t.Lanes()):
		b.fail("element %d of %v", n.imm, t)
		return b.poison(t.Elem())
	case n.op == OpConst && v.n.op == OpVec:
		return Value{v.n.args[n.imm]}
	}
	return b.emit(OpElem, t.Elem(), v.n, n)
}
