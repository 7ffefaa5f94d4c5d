package ptx

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
)

// together reports whether all lanes of each subgroup come to an operation, and come at once.
func (l *lowering) together() bool {
	return !l.apart && !l.uniform.leaves && l.size%Wave == 0
}

// mask returns the lanes that come to an operation between lanes.
func (l *lowering) mask() string {
	if l.together() {
		return "-1"
	}
	mask := l.reg(words)
	l.do("activemask.b32 %s", mask)
	return mask
}

// reductions are the instructions of a step, and of all lanes at once where there is one
// (sm_80 and later); identity is what changes nothing.
var reductions = map[kernel.Op]byKind{
	kernel.OpSubgroupAdd: {kernel.U32: "add.u32", kernel.I32: "add.s32", kernel.F32: "add.rn.f32"},
	kernel.OpSubgroupMax: {kernel.U32: "max.u32", kernel.I32: "max.s32", kernel.F32: "max.f32"},
	kernel.OpSubgroupMin: {kernel.U32: "min.u32", kernel.I32: "min.s32", kernel.F32: "min.f32"},
}

var together = map[kernel.Op]byKind{
	kernel.OpSubgroupAdd: {kernel.U32: "redux.sync.add.u32", kernel.I32: "redux.sync.add.s32"},
	kernel.OpSubgroupMax: {kernel.U32: "redux.sync.max.u32", kernel.I32: "redux.sync.max.s32"},
	kernel.OpSubgroupMin: {kernel.U32: "redux.sync.min.u32", kernel.I32: "redux.sync.min.s32"},
}

// reduce adds by halves: of lanes 16 apart, 8, 4, 2, 1. All lanes get the same bits, as sums
// of two do not depend on their order.
func (l *lowering) reduce(n *kernel.Node) {
	t, mask := n.Type().Elem(), l.mask()
	var v []operand
	for _, x := range l.value(n.Args()[0]) {
		held := l.held(x, t)
		switch at := together[n.Op()][t]; {
		case at != "" && l.o.Arch >= 80:
			v = append(v, l.word(at, "%s, %s", held, mask))
		case mask != "-1":
			v = append(v, l.reduceSome(n, held, mask))
		default:
			for apart := Wave / 2; apart > 0; apart /= 2 {
				other := l.word("shfl.sync.bfly.b32", "%s, %d, 31, -1", held, apart)
				held = l.word(reductions[n.Op()][t], "%s, %s", held, other.reg).reg
			}
			v = append(v, register(held))
		}
	}
	l.values[n] = v
}

// reduceSome goes through the lanes of the mask one after the other.
func (l *lowering) reduceSome(n *kernel.Node, held, mask string) operand {
	t := n.Type().Elem()
	left := l.word("mov.b32", "%s", mask)
	first := l.lowest(left.reg)
	sum := l.word("shfl.sync.idx.b32", "%s, %s, 31, %s", held, first, mask)
	again, end := l.label(), l.label()
	l.mark(again)
	one := l.word("sub.u32", "%s, 1", left.reg)
	l.do("and.b32 %s, %s, %s", left.reg, left.reg, one.reg)
	l.jump(l.condition("setp.eq.u32", "%s, 0", left.reg), end)
	other := l.word("shfl.sync.idx.b32", "%s, %s, 31, %s", held, l.lowest(left.reg), mask)
	l.do("%s %s, %s, %s", reductions[n.Op()][t], sum.reg, sum.reg, other.reg)
	l.do("bra %s", again)
	l.mark(end)
	return sum
}

// lowest returns the number of the lowest bit that is set.
func (l *lowering) lowest(bits string) string {
	turned := l.word("brev.b32", "%s", bits)
	return l.word("bfind.shiftamt.u32", "%s", turned.reg).reg
}

// scan sums what lanes below have, step by step twice as far.
func (l *lowering) scan(n *kernel.Node) {
	if !l.together() {
		l.fail(n, "some lanes do not come to it")
		return
	}
	t := n.Type().Elem()
	lane := l.builtins[kernel.SubgroupLane].reg
	var v []operand
	for _, x := range l.value(n.Args()[0]) {
		sum := l.held(x, t)
		for apart := 1; apart < Wave; apart *= 2 {
			other, inside := l.reg(words), l.reg(conditions)
			l.do("shfl.sync.up.b32 %s|%s, %s, %d, 0, -1", other, inside, sum, apart)
			added := l.word(reductions[kernel.OpSubgroupAdd][t], "%s, %s", sum, other)
			sum = l.word("selp.b32", "%s, %s, %s", added.reg, sum, inside).reg
		}
		before := l.word("shfl.sync.up.b32", "%s, 1, 0, -1", sum)
		v = append(v, l.selected(l.condition("setp.eq.u32", "%s, 0", lane), number(0), before, t))
	}
	l.values[n] = v
}

func (l *lowering) shuffle(n *kernel.Node) {
	how := "idx"
	if n.Op() == kernel.OpSubgroupShuffleXor {
		how = "bfly"
	}
	t, mask, lane := n.Type().Elem(), l.mask(), l.scalar(n.Args()[1])
	var v []operand
	for _, x := range l.value(n.Args()[0]) {
		if t == kernel.Bool {
			x = l.selected(x, number(1), number(0), kernel.U32)
		}
		got := l.word("shfl.sync."+how+".b32", "%s, %s, 31, %s", l.held(x, kernel.U32), lane.as(kernel.U32), mask)
		if t == kernel.Bool {
			got = l.condition("setp.ne.u32", "%s, 0", got.reg)
		}
		v = append(v, got)
	}
	l.values[n] = v
}

func (l *lowering) elect(n *kernel.Node) {
	first := "0"
	if !l.together() {
		first = l.lowest(l.mask())
	}
	l.values[n] = []operand{l.condition("setp.eq.u32", "%s, %s", l.builtins[kernel.SubgroupLane].reg, first)}
}

func (l *lowering) vote(n *kernel.Node) {
	x := l.scalar(n.Args()[0])
	l.values[n] = []operand{l.condition("vote.sync.any.pred", "%s, %s", l.held(x, kernel.Bool), l.mask())}
}
