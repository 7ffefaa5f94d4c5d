package llvm

import (
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
	"github.com/zincc-dev/zincc/codegen/kernel"
)

// Dot products of bytes. Where a machine has no instruction that adds them to sums of 32 bits, products of x and codes
// of few bits are added in 16 bits first, as far as no sum of them can leave those.

// codeBits returns bits that an integer may have set, each byte by the same rules: all that are not known to
// be 0. It looks through what takes codes out of words.
func codeBits(n *kernel.Node) uint32 {
	args := n.Args()
	switch n.Op() {
	case kernel.OpConst:
		return n.Imm()
	case kernel.OpAnd:
		return codeBits(args[0]) & codeBits(args[1])
	case kernel.OpOr:
		return codeBits(args[0]) | codeBits(args[1])
	case kernel.OpShl, kernel.OpShr:
		if by := args[1]; by.Op() == kernel.OpConst && by.Imm() < 32 {
			if n.Op() == kernel.OpShl {
				return codeBits(args[0]) << by.Imm()
			}
			if n.Type() == kernel.U32 {
				return codeBits(args[0]) >> by.Imm()
			}
		}
	}
	return 0xffffffff
}

// mostCode is the largest byte that a word of codes can have.
func mostCode(n *kernel.Node) int64 {
	most := uint32(0)
	for bits := codeBits(n); bits != 0; bits >>= 8 {
		most = max(most, bits&0xff)
	}
	return int64(most)
}

// shortSum is a sum of products that nobody has read yet: rest, of 32 bits, unless it is nil, and pairs, of
// 16 bits, two a lane.
type shortSum struct {
	rest, pairs value.Value
	most        int64 // the largest magnitude that pairs can have
}

// whole returns the sum in 32 bits.
func (l *lowering) whole(s shortSum) value.Value {
	t := vector(types.I16, 2*Lanes)
	sum := l.halves(wide(types.I32), "llvm.x86.avx2.pmadd.wd", s.pairs, repeated(types.I16, 2*Lanes, func(int) string { return "1" }), t)
	if s.rest != nil {
		return l.plus(s.rest, sum)
	}
	return sum
}

// shortDot is a dot product of x, signed, and codes in 16 bits, if the machine does that and no product of two pairs
// can leave 16 bits.
func (l *lowering) shortDot(n *kernel.Node) (shortSum, bool) {
	if !l.machine.pairs || n.Op() != kernel.OpDotU8 || !l.varying[n] {
		return shortSum{}, false
	}
	most := 2 * 128 * mostCode(n.Args()[1])
	if most > 1<<15-1 {
		return shortSum{}, false
	}
	bytes, short := vector(types.I8, 4*Lanes), vector(types.I16, 2*Lanes)
	x, codes := l.bitcast(l.lanes(n.Args()[0], 0), bytes), l.bitcast(l.lanes(n.Args()[1], 0), bytes)
	return shortSum{pairs: l.halves(short, "llvm.x86.avx2.pmadd.ub.sw", codes, x, bytes), most: most}, true
}

// halves calls an instruction of 256 bits on both halves of x and y, of type of.
func (l *lowering) halves(to types.Type, name string, x, y value.Value, of types.Type) value.Value {
	n, m := int(of.(*types.VectorType).Len)/2, int(to.(*types.VectorType).Len)/2
	part := vector(to.(*types.VectorType).ElemType, m)
	var list [2]value.Value
	for i := range list {
		half := func(v value.Value) value.Value { return l.shuffle(v, v, n, func(j int) int { return n*i + j }) }
		list[i] = l.call(name, part, half(x), half(y))
	}
	return l.shuffle(list[0], list[1], 2*m, func(i int) int { return i })
}

// short returns a sum in 16 bits, if the value is one that its reader alone has not read yet.
func (l *lowering) short(n *kernel.Node) (shortSum, bool) {
	s, ok := l.shorts[n]
	return s, ok && l.uses[n] == 1
}

// addShort adds a product to a sum, in 16 bits as far as it fits. It reports whether there is such a product.
func (l *lowering) addShort(n *kernel.Node) bool {
	x, ok := l.short(n.Args()[0])
	y, yok := l.short(n.Args()[1])
	switch {
	case !ok || !yok || x.rest != nil:
		return false
	case x.most+y.most > 1<<15-1:
		y = shortSum{rest: l.whole(y), pairs: x.pairs, most: x.most}
	default:
		y.pairs, y.most = l.plus(x.pairs, y.pairs), x.most+y.most
	}
	l.shorts[n] = y
	return true
}

// instruction is that of the machine which adds a dot product to a sum, nil if it has none.
func (l *lowering) instruction(n *kernel.Node) func(sum, x, codes value.Value) value.Value {
	m := l.machine
	switch {
	case m.signed != nil && (n.Op() == kernel.OpDotI8 || mostCode(n.Args()[1]) < 128):
		return func(sum, x, codes value.Value) value.Value { return m.signed(l.emitter, sum, x, codes) }
	case m.dot != nil && n.Op() == kernel.OpDotU8:
		return func(sum, x, codes value.Value) value.Value { return m.dot(l.emitter, sum, codes, x) }
	}
	return nil
}

// dot sums the products of four bytes of each word: the first signed, the second signed or not.
func (l *lowering) dot(n *kernel.Node, _ kernel.Type, a []value.Value) value.Value {
	x, y := a[0], a[1]
	if count(x) == 0 {
		x, y = l.splat(x), l.splat(y)
		return l.extract(l.dotLanes(n, x, y), i32(0))
	}
	return l.dotLanes(n, x, y)
}

func (l *lowering) dotLanes(n *kernel.Node, x, y value.Value) value.Value {
	zero := l.k(x, 0)
	if add := l.instruction(n); add != nil {
		return add(zero, x, y)
	}
	if l.machine.dot == nil {
		return l.dotPairs(x, y, n.Op() == kernel.OpDotU8)
	}
	// With 128 more, x is not negative.
	return l.minus(l.machine.dot(l.emitter, zero, l.xor(x, l.k(x, 0x80808080)), y), l.machine.dot(l.emitter, zero, l.k(x, 0x80808080), y))
}

// dotPairs is for machines without dot products of bytes: products of 16 bits, in pairs.
func (l *lowering) dotPairs(x, y value.Value, unsigned bool) value.Value {
	n := 2 * count(x)
	short := vector(types.I16, n)
	xs, ys := l.bitcast(x, short), l.bitcast(y, short)
	eight := l.k(xs, 8)
	signedLow := func(v value.Value) value.Value { return l.ashr(l.shl(v, eight), eight) }
	lowY, highY := signedLow(ys), l.ashr(ys, eight)
	if unsigned {
		lowY, highY = l.and(ys, l.k(ys, 255)), l.lshr(ys, eight)
	}
	return l.plus(l.pairSum(signedLow(xs), lowY), l.pairSum(l.ashr(xs, eight), highY))
}

// pairSum returns x[2i]*y[2i] + x[2i+1]*y[2i+1] of 16 bits as 32, in a form in which LLVM finds
// the instruction for it.
func (l *lowering) pairSum(x, y value.Value) value.Value {
	n := count(x)
	long := vector(types.I32, n)
	p := l.times(l.sext(x, long), l.sext(y, long))
	even := l.shuffle(p, p, n/2, func(i int) int { return 2 * i })
	odd := l.shuffle(p, p, n/2, func(i int) int { return 2*i + 1 })
	return l.plus(even, odd)
}
