package kernel

import (
	"math"

	"github.com/zincc-dev/zincc/ir/gguf"
)

// compute computes an operation of each lane on its own.
func (m *machine) compute(n *Node, active []bool) {
	if n.op == OpBuiltin {
		m.builtin(n)
		return
	}
	width := n.typ.Lanes()
	list := m.operands[n.number]
	if list == nil {
		list = m.operandsOf(n)
	}
	to, args := list[0], list[1:]
	typ := n.args[0].typ.Elem() // of a shift the first operand's counts, of a select the last's
	if n.op == OpSelect {
		typ = n.typ.Elem()
	}
	if together(n.op, typ, to, args) || regroup(n, to, args) {
		return
	}
	in := make([]uint32, len(args), 4) // but for vectors of more elements nothing has more operands
	for l := range m.lanes {
		if !active[l] {
			continue
		}
		switch n.op {
		case OpPackHalf:
			to[l] = uint32(gguf.F32ToF16(math.Float32frombits(args[0][2*l]))) | uint32(gguf.F32ToF16(math.Float32frombits(args[0][2*l+1])))<<16
		case OpFMAHalf:
			to[l] = fmaHalf(args[0][l], args[1][l], args[2][l])
		case OpPairHalves:
			shift := 16 * n.imm
			to[l] = args[0][l]>>shift&0xffff | args[1][l]>>shift<<16
		case OpPermute:
			to[l] = permute(args[0][l], args[1][l], args[2][l])
		case OpConvert:
			for e := range width {
				to[l*width+e] = convert(n.args[0].typ.Elem(), n.typ.Elem(), args[0][l*width+e])
			}
		default:
			for e := range width {
				for i := range args {
					in[i] = args[i][l*width+e]
				}
				to[l*width+e] = scalar(n.op, typ, in)
			}
		}
	}
}

// operandsOf returns where the values of n and of its operands are kept. They stay there.
func (m *machine) operandsOf(n *Node) [][]uint32 {
	list := [][]uint32{m.storage(n, n.typ.Lanes())}
	for _, a := range n.args {
		list = append(list, m.value(a))
	}
	m.operands[n.number] = list
	return list
}

func (m *machine) builtin(n *Node) {
	to := m.storage(n, 1)
	same := [NumBuiltins]int{
		NumSubgroups: (m.lanes + m.wave - 1) / m.wave,
		WorkgroupIDX: m.group[0], WorkgroupIDY: m.group[1], WorkgroupIDZ: m.group[2],
		NumWorkgroupsX: m.grid[0], NumWorkgroupsY: m.grid[1], NumWorkgroupsZ: m.grid[2],
	}[Builtin(n.imm)]
	for l := range to {
		switch Builtin(n.imm) {
		case SubgroupLane:
			to[l] = uint32(l % m.wave)
		case SubgroupID:
			to[l] = uint32(l / m.wave)
		case LocalID:
			to[l] = uint32(l)
		default:
			to[l] = uint32(same)
		}
	}
}

func convert(from, to Type, x uint32) uint32 {
	switch {
	case from == U32:
		return math.Float32bits(float32(x))
	case from == I32:
		return math.Float32bits(float32(int32(x)))
	case to == U32:
		return uint32(math.Float32frombits(x))
	}
	return uint32(int32(math.Float32frombits(x)))
}

func fmaHalf(x, y, z uint32) (pair uint32) {
	for shift := 0; shift < 32; shift += 16 {
		of := func(w uint32) float64 { return float64(gguf.F16ToF32(uint16(w >> shift))) }
		pair |= uint32(gguf.F32ToF16(float32(math.FMA(of(x), of(y), of(z))))) << shift
	}
	return pair
}

func permute(x, y, order uint32) (bytes uint32) {
	both := uint64(y)<<32 | uint64(x)
	for i := range 4 {
		nibble := order >> (4 * i)
		chosen := int8(both >> (8 * (nibble & 7)))
		if nibble&8 != 0 {
			chosen >>= 7
		}
		bytes |= uint32(uint8(chosen)) << (8 * i)
	}
	return bytes
}

// bitExtract is of scalars: kernels extract from no vectors.
func bitExtract(t Type, x, offset, count uint32) uint32 {
	if count == 0 {
		return 0
	}
	x = x << (32 - offset - count)
	if t == I32 {
		return uint32(int32(x) >> (32 - count))
	}
	return x >> (32 - count)
}

// floats are operations that give a float of floats.
var floats = [numOps]func(x, y, z float64) float64{
	OpAdd: func(x, y, z float64) float64 { return x + y }, OpSub: func(x, y, z float64) float64 { return x - y },
	OpMul: func(x, y, z float64) float64 { return x * y }, OpDiv: func(x, y, z float64) float64 { return x / y },
	OpMin: func(x, y, z float64) float64 {
		if y < x {
			return y
		}
		return x
	},
	OpMax: func(x, y, z float64) float64 {
		if x < y {
			return y
		}
		return x
	},
	OpNeg: func(x, y, z float64) float64 { return -x }, OpAbs: func(x, y, z float64) float64 { return math.Abs(x) },
	OpFMA:         func(x, y, z float64) float64 { return x*y + z },
	OpSqrt:        func(x, y, z float64) float64 { return math.Sqrt(x) },
	OpInverseSqrt: func(x, y, z float64) float64 { return 1 / math.Sqrt(x) },
	OpExp:         func(x, y, z float64) float64 { return math.Exp(x) }, OpExp2: func(x, y, z float64) float64 { return math.Exp2(x) },
}

// truths are operations that tell something of floats.
var truths = [numOps]func(x, y float64) bool{
	OpEq: func(x, y float64) bool { return x == y }, OpNe: func(x, y float64) bool { return x != y },
	OpLt: func(x, y float64) bool { return x < y }, OpLe: func(x, y float64) bool { return x <= y },
	OpGt: func(x, y float64) bool { return x > y }, OpGe: func(x, y float64) bool { return x >= y },
	OpIsNaN: func(x, y float64) bool { return x != x },
}

// scalar computes an operation on scalars of type t.
func scalar(o Op, t Type, in []uint32) uint32 {
	if t == F32 && o != OpSelect && o != OpBitcast {
		var a [3]float64
		for i, x := range in {
			a[i] = float64(math.Float32frombits(x))
		}
		if do := floats[o]; do != nil {
			return math.Float32bits(float32(do(a[0], a[1], a[2])))
		}
		if do := truths[o]; do != nil {
			if do(a[0], a[1]) {
				return 1
			}
			return 0
		}
	}
	switch o {
	case OpBitcast:
		return in[0]
	case OpAbs:
		return uint32(max(int32(in[0]), -int32(in[0])))
	case OpDotI8, OpDotU8:
		sum := int32(0)
		for shift := 0; shift < 32; shift += 8 {
			y := int32(int8(in[1] >> shift))
			if o == OpDotU8 {
				y &= 0xff
			}
			sum += int32(int8(in[0]>>shift)) * y
		}
		return uint32(sum)
	}
	v, _ := foldOp(o, t, in) // undefined operations give 0
	return v
}
