package llvm

import (
	"math"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
	"github.com/zincc-dev/zincc/codegen/kernel"
)

func floatBits(bits uint32) string { return floatText(float64(math.Float32frombits(bits))) }

// compute computes an operation of each lane on its own, element by element.
func (l *lowering) compute(n *kernel.Node, s *scope) []value.Value {
	varying := l.varying[n]
	out := make([]value.Value, n.Type().Lanes())
	args := make([]value.Value, len(n.Args()))
	kind := n.Args()[0].Type().Elem()
	if n.Op() == kernel.OpSelect {
		kind = n.Type().Elem()
	}
	do := elementwise[n.Op()]
	if do == nil {
		l.fail("%v is not for processors", n.Op())
		return poisons(n.Type(), varying)
	}
	for e := range out {
		for i, a := range n.Args() {
			args[i] = l.operand(a, e, varying)
		}
		out[e] = do(l, n, kind, args)
	}
	if varying && len(out) == 1 {
		l.stride(n)
	}
	return out
}

func poisons(t kernel.Type, varying bool) []value.Value {
	list := make([]value.Value, t.Lanes())
	for i := range list {
		typ := elemType(t)
		if varying {
			typ = wide(typ)
		}
		list[i] = literal{typ, "poison"}
	}
	return list
}

type elementFunc func(l *lowering, n *kernel.Node, t kernel.Type, a []value.Value) value.Value

var elementwise [256]elementFunc

func init() {
	for op, f := range map[kernel.Op]elementFunc{
		kernel.OpAdd: (*lowering).sum,
		kernel.OpSub: (*lowering).difference,
		kernel.OpMul: (*lowering).product,
		kernel.OpDiv: (*lowering).quotient,
		kernel.OpMod: (*lowering).quotient,
		kernel.OpShl: bits((*emitter).shl, (*emitter).shl),
		kernel.OpShr: bits((*emitter).lshr, (*emitter).ashr),
		kernel.OpAnd: bits((*emitter).and, (*emitter).and),
		kernel.OpOr:  bits((*emitter).or, (*emitter).or),
		kernel.OpXor: bits((*emitter).xor, (*emitter).xor),
		kernel.OpMin: least(enum.FPredOLT, false, "umin", "smin"),
		kernel.OpMax: least(enum.FPredOLT, true, "umax", "smax"),
		kernel.OpNeg: (*lowering).negated,
		kernel.OpNot: func(l *lowering, _ *kernel.Node, _ kernel.Type, a []value.Value) value.Value { return l.not(a[0]) },
		kernel.OpAbs: (*lowering).absolute,
		kernel.OpFMA: func(l *lowering, _ *kernel.Node, _ kernel.Type, a []value.Value) value.Value {
			return l.same("fma", a...)
		},
		kernel.OpSqrt: func(l *lowering, _ *kernel.Node, _ kernel.Type, a []value.Value) value.Value {
			return l.same("sqrt", a[0])
		},
		kernel.OpInverseSqrt: func(l *lowering, _ *kernel.Node, _ kernel.Type, a []value.Value) value.Value {
			d := l.double(a[0])
			return l.float(add(l.emitter, ir.NewFDiv(l.kf(d, 1), l.same("sqrt", d))))
		},
		kernel.OpExp:  func(l *lowering, _ *kernel.Node, _ kernel.Type, a []value.Value) value.Value { return l.exp(a[0]) },
		kernel.OpExp2: func(l *lowering, _ *kernel.Node, _ kernel.Type, a []value.Value) value.Value { return l.exp2(a[0]) },
		kernel.OpSelect: func(l *lowering, _ *kernel.Node, _ kernel.Type, a []value.Value) value.Value {
			return l.choose(a[0], a[1], a[2])
		},
		kernel.OpBitExtract: (*lowering).bitExtract,
		kernel.OpEq:         compare(enum.IPredEQ, enum.IPredEQ, enum.FPredOEQ),
		kernel.OpNe:         compare(enum.IPredNE, enum.IPredNE, enum.FPredUNE),
		kernel.OpLt:         compare(enum.IPredULT, enum.IPredSLT, enum.FPredOLT),
		kernel.OpLe:         compare(enum.IPredULE, enum.IPredSLE, enum.FPredOLE),
		kernel.OpGt:         compare(enum.IPredUGT, enum.IPredSGT, enum.FPredOGT),
		kernel.OpGe:         compare(enum.IPredUGE, enum.IPredSGE, enum.FPredOGE),
		kernel.OpIsNaN: func(l *lowering, _ *kernel.Node, _ kernel.Type, a []value.Value) value.Value {
			return l.fcmp(enum.FPredUNO, a[0], a[0])
		},
		kernel.OpConvert: (*lowering).convert,
		kernel.OpBitcast: func(l *lowering, n *kernel.Node, _ kernel.Type, a []value.Value) value.Value {
			return l.bitcast(a[0], like(a[0], elemType(n.Type())))
		},
		kernel.OpDotI8: (*lowering).dot,
		kernel.OpDotU8: (*lowering).dot,
		kernel.OpFMAHalf: func(l *lowering, _ *kernel.Node, _ kernel.Type, a []value.Value) value.Value {
			return l.fmaHalf(a)
		},
		kernel.OpPermute: func(l *lowering, _ *kernel.Node, _ kernel.Type, a []value.Value) value.Value {
			return l.permuteBytes(a[0], a[1], a[2])
		},
		kernel.OpPairHalves: func(l *lowering, n *kernel.Node, _ kernel.Type, a []value.Value) value.Value {
			low := l.k(a[0], 0xffff)
			if n.Imm() == 0 {
				return l.or(l.and(a[0], low), l.shl(a[1], l.k(a[1], 16)))
			}
			return l.or(l.lshr(a[0], l.k(a[0], 16)), l.and(a[1], l.k(a[1], -65536)))
		},
	} {
		elementwise[op] = f
	}
}

func (l *lowering) difference(_ *kernel.Node, t kernel.Type, a []value.Value) value.Value {
	if t == kernel.F32 {
		return add(l.emitter, ir.NewFSub(a[0], a[1]))
	}
	return l.minus(a[0], a[1])
}

func (l *lowering) product(_ *kernel.Node, t kernel.Type, a []value.Value) value.Value {
	if t == kernel.F32 {
		return add(l.emitter, ir.NewFMul(a[0], a[1]))
	}
	return l.times(a[0], a[1])
}

func (l *lowering) negated(_ *kernel.Node, t kernel.Type, a []value.Value) value.Value {
	if t == kernel.F32 {
		return add(l.emitter, ir.NewFNeg(a[0]))
	}
	return l.minus(l.k(a[0], 0), a[0])
}

func (l *lowering) absolute(_ *kernel.Node, t kernel.Type, a []value.Value) value.Value {
	if t == kernel.F32 {
		return l.same("fabs", a[0])
	}
	return l.same("smax", a[0], l.minus(l.k(a[0], 0), a[0]))
}

// permuteBytes takes the bytes one by one.
func (l *lowering) permuteBytes(x, y, order value.Value) (bytes value.Value) {
	k := func(n int64) value.Value { return l.k(order, n) }
	set := func(nibble value.Value, bit int64) value.Value {
		return l.icmp(enum.IPredNE, l.and(nibble, k(bit)), k(0))
	}
	bytes = k(0)
	for i := range int64(4) {
		nibble := l.lshr(order, k(4*i))
		left := l.shl(l.and(l.not(nibble), k(3)), k(3))
		top := l.shl(l.choose(set(nibble, 4), y, x), left) // the byte is the highest
		chosen := l.lshr(l.choose(set(nibble, 8), l.ashr(top, k(31)), top), k(24))
		bytes = l.or(bytes, l.shl(chosen, k(8*i)))
	}
	return bytes
}

// bits is an operation on integers and truth values, unsigned and signed.
func bits(unsigned, signed func(e *emitter, x, y value.Value) value.Value) elementFunc {
	return func(l *lowering, _ *kernel.Node, t kernel.Type, a []value.Value) value.Value {
		if t == kernel.I32 {
			return signed(l.emitter, a[0], a[1])
		}
		return unsigned(l.emitter, a[0], a[1])
	}
}

func compare(unsigned, signed enum.IPred, float enum.FPred) elementFunc {
	return func(l *lowering, _ *kernel.Node, t kernel.Type, a []value.Value) value.Value {
		switch t {
		case kernel.F32:
			return l.fcmp(float, a[0], a[1])
		case kernel.I32:
			return l.icmp(signed, a[0], a[1])
		}
		return l.icmp(unsigned, a[0], a[1])
	}
}

// least is a minimum or maximum: of floats, the second where it is more so, else the first.
func least(p enum.FPred, most bool, unsigned, signed string) elementFunc {
	return func(l *lowering, _ *kernel.Node, t kernel.Type, a []value.Value) value.Value {
		switch {
		case t == kernel.F32 && most:
			return l.choose(l.fcmp(p, a[0], a[1]), a[1], a[0])
		case t == kernel.F32:
			return l.choose(l.fcmp(p, a[1], a[0]), a[1], a[0])
		case t == kernel.I32:
			return l.same(signed, a...)
		}
		return l.same(unsigned, a...)
	}
}

// sum adds; a dot product that nobody else wants adds for itself.
func (l *lowering) sum(n *kernel.Node, t kernel.Type, a []value.Value) value.Value {
	if t == kernel.F32 {
		return add(l.emitter, ir.NewFAdd(a[0], a[1]))
	}
	for i, arg := range n.Args() {
		if op := arg.Op(); (op == kernel.OpDotU8 || op == kernel.OpDotI8) && l.varying[arg] && l.uses[arg] == 1 {
			if add := l.instruction(arg); add != nil {
				return add(a[1-i], l.lanes(arg.Args()[0], 0), l.lanes(arg.Args()[1], 0))
			}
		}
	}
	return l.plus(a[0], a[1])
}

// quotient divides or takes the remainder. Where the divisor is 0 or the quotient overflows, the
// result is some number: nothing faults.
func (l *lowering) quotient(n *kernel.Node, t kernel.Type, a []value.Value) value.Value {
	mod := n.Op() == kernel.OpMod
	x, y := a[0], a[1]
	switch t {
	case kernel.F32:
		return add(l.emitter, ir.NewFDiv(x, y))
	case kernel.I32:
		// Doubles hold all of these exactly, and no quotient lies so close below an integer as to round to it.
		return l.divide(x, y, mod, false)
	}
	if c, ok := n.Args()[1], n.Args()[1].Op() == kernel.OpConst; ok && c.Imm() != 0 {
		if mod {
			return add(l.emitter, ir.NewURem(x, y))
		}
		return add(l.emitter, ir.NewUDiv(x, y))
	}
	if count(x) == 0 {
		y = l.same("umax", y, i32(1))
		if mod {
			return add(l.emitter, ir.NewURem(x, y))
		}
		return add(l.emitter, ir.NewUDiv(x, y))
	}
	return l.divide(x, y, mod, true)
}

// divide divides integers as doubles, which processors do in vectors.
func (l *lowering) divide(x, y value.Value, mod, unsigned bool) value.Value {
	t := like(x, types.Double)
	to := func(v value.Value) value.Value {
		if unsigned {
			return add(l.emitter, ir.NewUIToFP(v, t))
		}
		return add(l.emitter, ir.NewSIToFP(v, t))
	}
	q := add(l.emitter, ir.NewFDiv(to(x), to(y)))
	var i value.Value
	if wider := like(x, types.I64); unsigned {
		i = l.trunc(l.freeze(add(l.emitter, ir.NewFPToSI(q, wider))), x.Type())
	} else {
		i = l.freeze(add(l.emitter, ir.NewFPToSI(q, x.Type())))
	}
	if mod {
		return l.minus(x, l.times(i, y))
	}
	return i
}

func (l *lowering) bitExtract(n *kernel.Node, t kernel.Type, a []value.Value) value.Value {
	x, offset, count := a[0], a[1], a[2]
	width := l.k(x, 32)
	up := l.minus(l.minus(width, offset), count)
	down := l.minus(width, count)
	shift := (*emitter).lshr
	if t == kernel.I32 {
		shift = (*emitter).ashr
	}
	none := l.icmp(enum.IPredEQ, count, l.k(x, 0))
	down = l.choose(none, l.k(x, 0), down)
	up = l.choose(none, l.k(x, 0), up)
	return l.choose(none, l.k(x, 0), shift(l.emitter, l.shl(x, up), down))
}

func (l *lowering) convert(n *kernel.Node, from kernel.Type, a []value.Value) value.Value {
	to := like(a[0], elemType(n.Type()))
	switch {
	case from == kernel.U32:
		return add(l.emitter, ir.NewUIToFP(a[0], to))
	case from == kernel.I32:
		return add(l.emitter, ir.NewSIToFP(a[0], to))
	case n.Type().Elem() == kernel.U32:
		return l.freeze(add(l.emitter, ir.NewFPToUI(a[0], to)))
	}
	return l.freeze(add(l.emitter, ir.NewFPToSI(a[0], to)))
}

func (l *lowering) double(x value.Value) value.Value {
	return add(l.emitter, ir.NewFPExt(x, like(x, types.Double)))
}

func (l *lowering) float(x value.Value) value.Value {
	return add(l.emitter, ir.NewFPTrunc(x, like(x, types.Float)))
}

// halfOf returns half i of words as f16.
func (l *lowering) halfOf(x value.Value, i int64) value.Value {
	w := l.lshr(x, l.k(x, 16*i))
	return l.bitcast(l.trunc(w, like(x, types.I16)), like(x, types.Half))
}

func (l *lowering) unpackHalf(x value.Value) []value.Value {
	var pair []value.Value
	for i := range int64(2) {
		h := l.halfOf(x, i)
		pair = append(pair, add(l.emitter, ir.NewFPExt(h, like(x, types.Float))))
	}
	return pair
}

// packHalf rounds two floats to f16, to the nearest even.
func (l *lowering) packHalf(x, y value.Value) value.Value {
	bits := func(v value.Value) value.Value {
		h := add(l.emitter, ir.NewFPTrunc(v, like(v, types.Half)))
		return l.zext(l.bitcast(h, like(v, types.I16)), like(v, types.I32))
	}
	low, high := bits(x), bits(y)
	return l.or(low, l.shl(high, l.k(high, 16)))
}

// fmaHalf computes with doubles, in which a product of f16 is exact.
func (l *lowering) fmaHalf(a []value.Value) value.Value {
	var halves [2]value.Value
	for i := range halves {
		var d [3]value.Value
		for j, x := range a {
			d[j] = l.double(add(l.emitter, ir.NewFPExt(l.halfOf(x, int64(i)), like(x, types.Float))))
		}
		halves[i] = l.float(l.same("fma", d[0], d[1], d[2]))
	}
	return l.packHalf(halves[0], halves[1])
}

// The exponentials reduce to |r| <= ln(2)/2, where polynomials are within 0.1 units in the last
// place, and scale by a power of two in two steps, so that small results are right too.

var expSeries = []float32{0.0013926203828305006, 0.008363194763660431, 0.041666556149721146, 0.16666576266288757, 0.5}
var exp2Series = []float32{0.00015453182277269661, 0.0013390886597335339, 0.009618082083761692, 0.055503569543361664, 0.24022650718688965, 0.6931471824645996}

func (l *lowering) horner(r value.Value, series []float32) value.Value {
	p := l.kf(r, float64(series[0]))
	for _, c := range series[1:] {
		p = l.same("fma", p, r, l.kf(r, float64(c)))
	}
	return p
}

func (l *lowering) clamp(x value.Value, lo, hi float64) value.Value {
	low, high := l.kf(x, lo), l.kf(x, hi)
	x = l.choose(l.fcmp(enum.FPredOLT, x, low), low, x)
	return l.choose(l.fcmp(enum.FPredOLT, high, x), high, x)
}

// scale returns p * 2^n for a whole number n.
func (l *lowering) scale(p, n value.Value) value.Value {
	i := l.freeze(add(l.emitter, ir.NewFPToSI(n, like(n, types.I32))))
	half := l.ashr(i, l.k(i, 1))
	for _, by := range []value.Value{half, l.minus(i, half)} {
		power := l.bitcast(l.shl(l.plus(by, l.k(by, 127)), l.k(by, 23)), p.Type())
		p = add(l.emitter, ir.NewFMul(p, power))
	}
	return p
}

func (l *lowering) exp(x value.Value) value.Value {
	x = l.clamp(x, -105, 90)
	n := l.same("rint", add(l.emitter, ir.NewFMul(x, l.kf(x, float64(float32(math.Log2E))))))
	r := l.same("fma", n, l.kf(x, -0.693115234375), x)
	r = l.same("fma", n, l.kf(x, float64(float32(-3.194618329871446e-05))), r)
	p := l.same("fma", l.horner(r, expSeries), add(l.emitter, ir.NewFMul(r, r)), r)
	return l.scale(add(l.emitter, ir.NewFAdd(p, l.kf(p, 1))), n)
}

func (l *lowering) exp2(x value.Value) value.Value {
	x = l.clamp(x, -152, 130)
	n := l.same("rint", x)
	r := add(l.emitter, ir.NewFSub(x, n))
	return l.scale(l.same("fma", l.horner(r, exp2Series), r, l.kf(r, 1)), n)
}

// stride finds how far the lanes of a varying integer are apart, if they all are as far. Where they
// are not, it has none.
func (l *lowering) stride(n *kernel.Node) {
	if e := n.Type(); e != kernel.U32 && e != kernel.I32 {
		return
	}
	of := func(a *kernel.Node) (int64, bool) {
		if !l.varying[a] {
			return 0, true
		}
		s, ok := l.strides[a]
		return s, ok
	}
	args := n.Args()
	x, ok := of(args[0])
	y, yok := x, true
	if len(args) > 1 {
		y, yok = of(args[1])
	}
	if !ok || !yok {
		return
	}
	switch n.Op() {
	case kernel.OpAdd:
		l.strides[n] = x + y
	case kernel.OpSub:
		l.strides[n] = x - y
	case kernel.OpMul:
		for i, by := range args {
			if c, ok := l.known(by); ok {
				l.strides[n] = []int64{y, x}[i] * int64(int32(c))
			}
		}
	case kernel.OpShl:
		if c, ok := l.known(args[1]); ok && c < 31 {
			l.strides[n] = x << c
		}
	case kernel.OpBitcast:
		if args[0].Type() != kernel.F32 {
			l.strides[n] = x
		}
	}
}

// index returns an integer in 64 bits, in lane 0 if it varies, for an address: kernels index
// below 2^31, so sums and products do not wrap, and LLVM may take constants out of them.
func (l *lowering) index(n *kernel.Node) value.Value {
	if v, ok := l.counters[n]; ok {
		return v
	}
	if !n.Static() {
		switch args := n.Args(); n.Op() {
		case kernel.OpBuiltin:
			if l.varying[n] {
				return i64(0)
			}
		case kernel.OpAdd:
			return l.plus(l.index(args[0]), l.index(args[1]))
		case kernel.OpSub:
			return l.minus(l.index(args[0]), l.index(args[1]))
		case kernel.OpMul:
			return l.times(l.index(args[0]), l.index(args[1]))
		case kernel.OpShl:
			return l.shl(l.index(args[0]), l.index(args[1]))
		case kernel.OpBitcast:
			if args[0].Type() != kernel.F32 {
				return l.index(args[0])
			}
		}
	}
	return l.sext(l.scalar(n), types.I64)
}

// known returns a static scalar whose constants are all fixed.
func (l *lowering) known(n *kernel.Node) (uint32, bool) {
	if !n.Static() {
		return 0, false
	}
	return l.folded(n)
}
