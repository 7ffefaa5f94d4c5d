package ptx

import (
	"maps"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

func (l *lowering) region(r *kernel.Region) {
	for _, n := range r.Nodes() {
		if l.err != nil {
			return
		}
		l.node(n)
	}
}

// node lowers one operation. Those that are more than a row of a table are in special.
func (l *lowering) node(n *kernel.Node) {
	l.await(n)
	if l.fused[n] {
		return
	}
	if l.sum(n) || l.merged(n) || l.bytesOf(n) {
		return
	}
	if n.Op() == kernel.OpEq && n.Args()[0].Type().Elem() == kernel.Bool {
		l.same(n)
		return
	}
	if row, ok := plain[n.Op()]; ok {
		l.each(n, row[n.Args()[0].Type().Elem()])
		return
	}
	do := special[n.Op()]
	if do == nil {
		l.fail(n, "not known to PTX")
		return
	}
	do(l, n)
}

// special has the operations that plain has not.
var special = map[kernel.Op]func(l *lowering, n *kernel.Node){}

func init() {
	maps.Copy(special, map[kernel.Op]func(l *lowering, n *kernel.Node){
		kernel.OpBuiltin:    (*lowering).builtin,
		kernel.OpVec:        (*lowering).vec,
		kernel.OpElem:       (*lowering).elem,
		kernel.OpConvert:    (*lowering).convert,
		kernel.OpBitcast:    func(l *lowering, n *kernel.Node) { l.values[n] = l.value(n.Args()[0]) },
		kernel.OpSelect:     (*lowering).choose,
		kernel.OpExp:        (*lowering).exp,
		kernel.OpUnpackHalf: (*lowering).unpackHalf,
		kernel.OpPackHalf:   (*lowering).packHalf,
		kernel.OpFMAHalf:    (*lowering).fmaHalf,
		kernel.OpPairHalves: (*lowering).pairHalves,
		kernel.OpPermute:    (*lowering).permute,
		kernel.OpDotI8:      (*lowering).dot,
		kernel.OpDotU8:      (*lowering).dot,

		kernel.OpSubgroupAdd:          (*lowering).reduce,
		kernel.OpSubgroupMax:          (*lowering).reduce,
		kernel.OpSubgroupMin:          (*lowering).reduce,
		kernel.OpSubgroupExclusiveAdd: (*lowering).scan,
		kernel.OpSubgroupShuffle:      (*lowering).shuffle,
		kernel.OpSubgroupShuffleXor:   (*lowering).shuffle,
		kernel.OpSubgroupElect:        (*lowering).elect,
		kernel.OpSubgroupAny:          (*lowering).vote,

		kernel.OpAddress:     (*lowering).addressOf,
		kernel.OpLoad:        (*lowering).load,
		kernel.OpLoad16:      (*lowering).load,
		kernel.OpStore:       (*lowering).store,
		kernel.OpStore16:     (*lowering).store,
		kernel.OpAtomicAdd:   (*lowering).atomic,
		kernel.OpPrefetch:    func(l *lowering, n *kernel.Node) { l.do("prefetch.global.L2 %s", l.place(n)) },
		kernel.OpCopy:        (*lowering).copy,
		kernel.OpCopyGroup:   (*lowering).copyGroup,
		kernel.OpAwait:       func(l *lowering, n *kernel.Node) { l.awaitNow() },
		kernel.OpCopyWait:    (*lowering).copyWait,
		kernel.OpTable:       (*lowering).table,
		kernel.OpSharedLoad:  (*lowering).sharedLoad,
		kernel.OpSharedElem:  (*lowering).sharedLoad,
		kernel.OpSharedStore: (*lowering).sharedStore,
		kernel.OpSharedSet:   (*lowering).sharedStore,
		kernel.OpSharedAdd:   (*lowering).atomic,
		kernel.OpBulk:        (*lowering).bulk,
		kernel.OpArrivals:    (*lowering).arrivals,
		kernel.OpArrived:     (*lowering).arrived,
		kernel.OpDone:        (*lowering).done,
		kernel.OpFree:        (*lowering).free,
		kernel.OpGates:       (*lowering).gates,
		kernel.OpReach:       (*lowering).reach,
		kernel.OpReached:     (*lowering).reached,
		kernel.OpVar:         (*lowering).variable,
		kernel.OpVarGet:      (*lowering).get,
		kernel.OpVarSet:      (*lowering).set,

		kernel.OpBarrier:         (*lowering).barrier,
		kernel.OpPrefetchNext:    (*lowering).prefetchNext,
		kernel.OpSubgroupBarrier: func(l *lowering, n *kernel.Node) { l.do("bar.warp.sync -1") },
		kernel.OpFence:           func(l *lowering, n *kernel.Node) { l.do("fence.acq_rel.gpu") },

		kernel.OpIf:       (*lowering).branch,
		kernel.OpFor:      (*lowering).loop,
		kernel.OpReturnIf: (*lowering).returnIf,
	})
}

// each emits an instruction for each element.
func (l *lowering) each(n *kernel.Node, instr string) {
	typ := n.Args()[0].Type().Elem()
	class := words
	if n.Type().Elem() == kernel.Bool {
		class = conditions
	}
	args := make([][]operand, len(n.Args()))
	for i, a := range n.Args() {
		args[i] = l.value(a)
	}
	v := make([]operand, n.Type().Lanes())
	for e := range v {
		list, bits, known := make([]string, len(args)), make([]uint32, len(args)), true
		for i := range args {
			x := args[i][min(e, len(args[i])-1)] // offset and count of a bit field are scalars
			bits[i], known = x.bits, known && x.lit
			if typ == kernel.Bool {
				list[i] = l.held(x, typ)
			} else {
				list[i] = x.as(typ)
			}
		}
		if bits, ok := kernel.Fold(n.Op(), typ, bits); ok && known {
			v[e] = number(bits)
			continue
		}
		if len(args) == 2 && typ == kernel.U32 {
			if x, ok := l.divided(n.Op(), args[0][min(e, len(args[0])-1)], args[1][min(e, len(args[1])-1)]); ok {
				v[e] = x
				continue
			}
		}
		to := l.reg(class)
		l.do("%s %s, %s", instr, to, strings.Join(list, ", "))
		v[e] = register(to)
	}
	l.values[n] = v
}

// same lowers the comparison of conditions.
func (l *lowering) same(n *kernel.Node) {
	x, y := l.value(n.Args()[0]), l.value(n.Args()[1])
	v := make([]operand, len(x))
	for e := range v {
		differ := l.condition("xor.pred", "%s, %s", l.held(x[e], kernel.Bool), l.held(y[e], kernel.Bool))
		v[e] = l.condition("not.pred", "%s", differ.reg)
	}
	l.values[n] = v
}

func (l *lowering) builtin(n *kernel.Node) {
	l.values[n] = []operand{l.builtins[kernel.Builtin(n.Imm())]}
}

func (l *lowering) vec(n *kernel.Node) {
	var v []operand
	for _, a := range n.Args() {
		v = append(v, l.scalar(a))
	}
	l.values[n] = v
}

func (l *lowering) elem(n *kernel.Node) {
	l.values[n] = []operand{l.among(l.value(n.Args()[0]), l.scalar(n.Args()[1]), n.Type())}
}

// among returns element i of a list.
func (l *lowering) among(list []operand, i operand, t kernel.Type) operand {
	if i.lit {
		return list[min(int(i.bits), len(list)-1)]
	}
	found := list[0]
	for e, x := range list[1:] {
		found = l.selected(l.condition("setp.eq.u32", "%s, %d", i.reg, e+1), x, found, t)
	}
	return found
}

// selected returns x where the condition holds, else y.
func (l *lowering) selected(c, x, y operand, t kernel.Type) operand {
	switch {
	case c.lit && c.bits != 0 || x == y:
		return x
	case c.lit:
		return y
	case t != kernel.Bool:
		return l.word("selp.b32", "%s, %s, %s", x.as(kernel.U32), y.as(kernel.U32), c.reg)
	}
	first := l.condition("and.pred", "%s, %s", c.reg, l.held(x, t))
	not := l.condition("not.pred", "%s", c.reg)
	second := l.condition("and.pred", "%s, %s", not.reg, l.held(y, t))
	return l.condition("or.pred", "%s, %s", first.reg, second.reg)
}

func (l *lowering) choose(n *kernel.Node) {
	c, x, y := l.value(n.Args()[0]), l.value(n.Args()[1]), l.value(n.Args()[2])
	v := make([]operand, len(x))
	for e := range v {
		v[e] = l.selected(c[min(e, len(c)-1)], x[e], y[e], n.Type().Elem())
	}
	l.values[n] = v
}

func (l *lowering) convert(n *kernel.Node) {
	instr := conversions[fromTo{n.Args()[0].Type().Elem(), n.Type().Elem()}]
	var v []operand
	for _, x := range l.value(n.Args()[0]) {
		v = append(v, l.word(instr, "%s", x.as(n.Args()[0].Type().Elem())))
	}
	l.values[n] = v
}

func (l *lowering) exp(n *kernel.Node) {
	var v []operand
	for _, x := range l.value(n.Args()[0]) {
		exponent := l.word("mul.rn.f32", "%s, 0f%08X", x.as(kernel.F32), uint32(log2e))
		v = append(v, l.word(exp2, "%s", exponent.reg))
	}
	l.values[n] = v
}

// unpacked returns the two halves of a word as floats.
func (l *lowering) unpacked(word operand) []operand {
	lo, hi := l.reg(halves), l.reg(halves)
	l.do("mov.b32 {%s, %s}, %s", lo, hi, word.as(kernel.U32))
	return []operand{l.word("cvt.f32.f16", "%s", lo), l.word("cvt.f32.f16", "%s", hi)}
}

// packed rounds two floats to halves of a word.
func (l *lowering) packed(lo, hi operand) operand {
	if l.o.Arch >= 80 {
		return l.word("cvt.rn.f16x2.f32", "%s, %s", hi.as(kernel.F32), lo.as(kernel.F32))
	}
	x, y := l.reg(halves), l.reg(halves)
	l.do("cvt.rn.f16.f32 %s, %s", x, lo.as(kernel.F32))
	l.do("cvt.rn.f16.f32 %s, %s", y, hi.as(kernel.F32))
	return l.word("mov.b32", "{%s, %s}", x, y)
}

func (l *lowering) unpackHalf(n *kernel.Node) {
	l.values[n] = l.unpacked(l.scalar(n.Args()[0]))
}

func (l *lowering) packHalf(n *kernel.Node) {
	x := l.value(n.Args()[0])
	l.values[n] = []operand{l.packed(x[0], x[1])}
}

func (l *lowering) fmaHalf(n *kernel.Node) {
	var x [3]string
	for i, a := range n.Args() {
		x[i] = l.held(l.scalar(a), kernel.U32)
	}
	l.values[n] = []operand{l.word("fma.rn.f16x2", "%s, %s, %s", x[0], x[1], x[2])}
}

func (l *lowering) pairHalves(n *kernel.Node) {
	order := [2]uint32{0x5410, 0x7632}[n.Imm()]
	x, y := l.scalar(n.Args()[0]), l.scalar(n.Args()[1])
	l.values[n] = []operand{l.word("prmt.b32", "%s, %s, %d", x.as(kernel.U32), y.as(kernel.U32), order)}
}

func (l *lowering) permute(n *kernel.Node) {
	x, y, order := l.scalar(n.Args()[0]), l.scalar(n.Args()[1]), l.scalar(n.Args()[2])
	l.values[n] = []operand{l.word("prmt.b32", "%s, %s, %s", x.as(kernel.U32), y.as(kernel.U32), order.as(kernel.U32))}
}

func (l *lowering) variable(n *kernel.Node) {
	to := l.registers(n.Type())
	l.copyTo(to, l.value(n.Args()[0]), n.Type())
	l.values[n] = to
}

// get copies, as what is set later must not change it.
func (l *lowering) get(n *kernel.Node) {
	v := l.registers(n.Type())
	l.copyTo(v, l.value(n.Args()[0]), n.Type())
	l.values[n] = v
}

func (l *lowering) set(n *kernel.Node) {
	l.copyTo(l.value(n.Args()[0]), l.value(n.Args()[1]), n.Args()[0].Type())
}
