package llvm

import (
	"math"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
	"github.com/zincc-dev/zincc/codegen/kernel"
)

// reduction is an operation over the active lanes: what idle lanes have for it, and how two are folded.
type reduction struct {
	idle func(t kernel.Type) uint32
	fold kernel.Op
}

var reductions = map[kernel.Op]reduction{
	kernel.OpSubgroupAdd: {func(t kernel.Type) uint32 {
		if t == kernel.F32 {
			return 1 << 31 // -0, as x + -0 is x
		}
		return 0
	}, kernel.OpAdd},
	kernel.OpSubgroupMax: {func(t kernel.Type) uint32 {
		return map[kernel.Type]uint32{kernel.F32: math.Float32bits(float32(math.Inf(-1))), kernel.I32: 1 << 31}[t]
	}, kernel.OpMax},
	kernel.OpSubgroupMin: {func(t kernel.Type) uint32 {
		return map[kernel.Type]uint32{kernel.F32: math.Float32bits(float32(math.Inf(1))), kernel.I32: math.MaxInt32, kernel.U32: math.MaxUint32}[t]
	}, kernel.OpMin},
}

func (l *lowering) fold(op kernel.Op, t kernel.Type, x, y value.Value) value.Value {
	if op == kernel.OpAdd {
		if t == kernel.F32 {
			return add(l.emitter, ir.NewFAdd(x, y))
		}
		return l.plus(x, y)
	}
	return elementwise[op](l, nil, t, []value.Value{x, y})
}

// reduce folds the active lanes: the upper half onto the lower, and so on. The result is scalar.
func (l *lowering) reduce(n *kernel.Node, s *scope) []value.Value {
	how, t := reductions[n.Op()], n.Type().Elem()
	out := make([]value.Value, n.Type().Lanes())
	for e := range out {
		x := l.lanes(n.Args()[0], e)
		if s.mask != nil {
			x = l.choose(s.mask, x, l.splat(constantOf(t, how.idle(t))))
		}
		for half := Lanes / 2; half > 0; half /= 2 {
			upper := l.shuffle(x, x, Lanes, func(i int) int { return (i + half) % Lanes })
			x = l.fold(how.fold, t, x, upper)
		}
		out[e] = l.extract(x, i32(0))
	}
	return out
}

// before returns the sum over the active lanes before each, added from the first on.
func (l *lowering) before(n *kernel.Node, s *scope) []value.Value {
	t := n.Type().Elem()
	out := make([]value.Value, n.Type().Lanes())
	for e := range out {
		x := l.lanes(n.Args()[0], e)
		if s.mask != nil {
			x = l.choose(s.mask, x, l.splat(constantOf(t, reductions[kernel.OpSubgroupAdd].idle(t))))
		}
		sum, list := constantOf(t, 0), value.Value(literal{x.Type(), "zeroinitializer"})
		for lane := range int64(Lanes - 1) {
			sum = l.fold(kernel.OpAdd, t, sum, l.extract(x, i32(lane)))
			list = l.insert(list, sum, i32(lane+1))
		}
		out[e] = list
	}
	return out
}

// shuffled returns the x of the lane that each lane names.
func (l *lowering) shuffled(n *kernel.Node, _ *scope) []value.Value {
	from, by := n.Args()[0], n.Args()[1]
	out := make([]value.Value, n.Type().Lanes())
	for e := range out {
		switch c, known := l.known(by); {
		case !l.varying[from]:
			out[e] = l.elem(from, e)
		case n.Op() == kernel.OpSubgroupShuffle && !l.varying[by]:
			out[e] = l.extract(l.lanes(from, e), l.and(l.scalar(by), i32(Lanes-1)))
		case n.Op() == kernel.OpSubgroupShuffleXor && known:
			x := l.lanes(from, e)
			out[e] = l.shuffle(x, x, Lanes, func(i int) int { return i ^ int(c)&(Lanes-1) })
		default:
			lane := l.lanes(by, 0)
			if n.Op() == kernel.OpSubgroupShuffleXor {
				lane = l.xor(lane, iota_)
			}
			out[e] = l.permute(l.lanes(from, e), l.and(lane, l.k(lane, Lanes-1)))
		}
	}
	return out
}

// permute picks elements by index, through memory where the machine has no instruction for it.
func (l *lowering) permute(x, lane value.Value) value.Value {
	t := x.Type().(*types.VectorType)
	if t.ElemType.Equal(types.I1) {
		wider := l.permute(l.zext(x, wide(types.I32)), lane)
		return l.icmp(enum.IPredNE, wider, l.k(wider, 0))
	}
	if l.machine.permute {
		words := l.bitcast(x, wide(types.I32))
		return l.bitcast(l.call("llvm.x86.avx512.permvar.si.512", wide(types.I32), words, lane), x.Type())
	}
	room := l.alloca(t)
	l.set(room, x)
	out := value.Value(literal{t, "poison"})
	for i := range int64(Lanes) {
		from := l.at(t.ElemType, room, l.zext(l.extract(lane, i32(i)), types.I64))
		out = l.insert(out, l.load(t.ElemType, from, 4), i32(i))
	}
	return out
}

// elect holds in the first active lane.
func (l *lowering) elect(s *scope) value.Value {
	return l.icmp(enum.IPredEQ, l.splat(l.firstLane(s.mask)), iota_)
}
