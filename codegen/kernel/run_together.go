package kernel

import (
	"math"

	"github.com/zincc-dev/zincc/ir/gguf"
)

// together computes the operations that kernels have most of, of scalars of type t, for all lanes and elements at
// once, which is several times as fast as one at a time. What comes of it in lanes that are not
// active nobody may use. It returns false for other operations.
func together(o Op, t Type, to []uint32, args [][]uint32) bool {
	if len(args) == 0 || len(args[0]) != len(to) {
		return false
	}
	x := args[0]
	if o == OpBitcast {
		copy(to, x)
		return true
	}
	if do := floats[o]; len(args) == 1 && t == F32 && do != nil {
		for i := range to {
			to[i] = math.Float32bits(float32(do(float64(math.Float32frombits(x[i])), 0, 0)))
		}
		return true
	}
	if len(args) == 3 {
		return three(o, t, to, x, args[1], args[2])
	}
	if len(args) != 2 || len(args[1]) != len(to) {
		return false
	}
	y := args[1][:len(x)]
	to = to[:len(x)]
	if t == F32 {
		return floatPairs(o, to, x, y)
	}
	return wordPairs(o, t, to, x, y)
}

// regroup makes vectors of scalars and scalars of vectors, for all lanes as together does.
func regroup(n *Node, to []uint32, args [][]uint32) bool {
	switch n.op {
	case OpVec:
		for e, x := range args {
			for l, v := range x {
				to[l*len(args)+e] = v
			}
		}
	case OpElem:
		x, width := args[0], n.args[0].typ.Lanes()
		if at := n.args[1]; at.op == OpConst {
			e := int(at.imm) % width
			for l := range to {
				to[l] = x[e]
				e += width
			}
			break
		}
		for l, at := range args[1] {
			to[l] = x[l*width+int(at)%width]
		}
	case OpUnpackHalf:
		width := n.typ.Lanes()
		for l, w := range args[0] {
			for e := range width {
				to[l*width+e] = math.Float32bits(gguf.F16ToF32(uint16(w >> (16 * e))))
			}
		}
	case OpBitExtract:
		for l, x := range args[0] {
			to[l] = bitExtract(n.typ, x, args[1][l], args[2][l])
		}
	default:
		return false
	}
	return true
}

func three(o Op, t Type, to, x, y, z []uint32) bool {
	if len(y) != len(to) || len(z) != len(to) {
		return false
	}
	switch {
	case o == OpSelect:
		for i := range to {
			if x[i] != 0 {
				to[i] = y[i]
			} else {
				to[i] = z[i]
			}
		}
	case o == OpFMA && t == F32: // as floats has it: rounded to float64 in between
		for i := range to {
			sum := float64(float64(math.Float32frombits(x[i]))*float64(math.Float32frombits(y[i]))) + float64(math.Float32frombits(z[i]))
			to[i] = math.Float32bits(float32(sum))
		}
	default:
		return false
	}
	return true
}

// floatPairs rounds once: a sum, difference or product of two float32 rounds from float64 to float32 as it
// does at once.
func floatPairs(o Op, to, x, y []uint32) bool {
	switch o {
	case OpAdd:
		for i := range to {
			to[i] = math.Float32bits(math.Float32frombits(x[i]) + math.Float32frombits(y[i]))
		}
	case OpSub:
		for i := range to {
			to[i] = math.Float32bits(math.Float32frombits(x[i]) - math.Float32frombits(y[i]))
		}
	case OpMul:
		for i := range to {
			to[i] = math.Float32bits(math.Float32frombits(x[i]) * math.Float32frombits(y[i]))
		}
	default:
		a := func(i int) float64 { return float64(math.Float32frombits(x[i])) }
		b := func(i int) float64 { return float64(math.Float32frombits(y[i])) }
		do, is := floats[o], truths[o]
		for i := range to {
			switch {
			case do != nil:
				to[i] = math.Float32bits(float32(do(a(i), b(i), 0)))
			case is != nil:
				to[i] = truth(is(a(i), b(i)))
			default:
				return false
			}
		}
	}
	return true
}

// wordPairs leaves what can be undefined, such as a division by 0, to scalar.
func wordPairs(o Op, t Type, to, x, y []uint32) bool {
	switch o {
	case OpAdd:
		for i := range to {
			to[i] = x[i] + y[i]
		}
	case OpSub:
		for i := range to {
			to[i] = x[i] - y[i]
		}
	case OpMul:
		for i := range to {
			to[i] = x[i] * y[i]
		}
	case OpDotI8:
		for i := range to {
			a, b := x[i], y[i]
			sum := int32(int8(a))*int32(int8(b)) + int32(int8(a>>8))*int32(int8(b>>8)) +
				int32(int8(a>>16))*int32(int8(b>>16)) + int32(int8(a>>24))*int32(int8(b>>24))
			to[i] = uint32(sum)
		}
	default:
		return bitPairs(o, t, to, x, y) || comparedPairs(o, t, to, x, y)
	}
	return true
}

// bitPairs is wordPairs of operations on bits.
func bitPairs(o Op, t Type, to, x, y []uint32) bool {
	switch {
	case o == OpAnd:
		for i := range to {
			to[i] = x[i] & y[i]
		}
	case o == OpOr:
		for i := range to {
			to[i] = x[i] | y[i]
		}
	case o == OpXor:
		for i := range to {
			to[i] = x[i] ^ y[i]
		}
	case o == OpShl:
		for i := range to {
			to[i] = x[i] << y[i] & inRange(y[i])
		}
	case o == OpShr && t != I32:
		for i := range to {
			to[i] = x[i] >> y[i] & inRange(y[i])
		}
	default:
		return false
	}
	return true
}

// comparedPairs is wordPairs of comparisons.
func comparedPairs(o Op, t Type, to, x, y []uint32) bool {
	switch {
	case o == OpEq:
		for i := range to {
			to[i] = truth(x[i] == y[i])
		}
	case o == OpNe:
		for i := range to {
			to[i] = truth(x[i] != y[i])
		}
	case t != U32:
		return false
	case o == OpLt || o == OpGe:
		for i := range to {
			to[i] = truth((x[i] < y[i]) == (o == OpLt))
		}
	case o == OpMin:
		for i := range to {
			to[i] = min(x[i], y[i])
		}
	case o == OpMax:
		for i := range to {
			to[i] = max(x[i], y[i])
		}
	default:
		return false
	}
	return true
}

// inRange is all bits, or none for a shift that is undefined.
func inRange(shift uint32) uint32 {
	if shift > 31 {
		return 0
	}
	return ^uint32(0)
}

func truth(is bool) uint32 {
	if is {
		return 1
	}
	return 0
}
