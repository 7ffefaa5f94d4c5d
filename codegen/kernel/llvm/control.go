package llvm

import (
	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
	"github.com/zincc-dev/zincc/codegen/kernel"
)

// results has what lowers an operation to its value, by element; acts what lowers one that has none, or several forms.
// Others are computed lane by lane.
var (
	results map[kernel.Op]func(l *lowering, n *kernel.Node, s *scope) []value.Value
	acts    map[kernel.Op]func(l *lowering, n *kernel.Node, s *scope)
)

func init() {
	type result = func(l *lowering, n *kernel.Node, s *scope) []value.Value
	one := func(of func(l *lowering, n *kernel.Node, s *scope) value.Value) result {
		return func(l *lowering, n *kernel.Node, s *scope) []value.Value { return []value.Value{of(l, n, s)} }
	}
	atomic := func(of func(l *lowering, n *kernel.Node) access, op enum.AtomicOp) result {
		return one(func(l *lowering, n *kernel.Node, s *scope) value.Value { return l.atomic(n, of(l, n), op, s) })
	}
	words := func(of func(l *lowering, n *kernel.Node) access) result {
		return func(l *lowering, n *kernel.Node, s *scope) []value.Value { return l.words(of(l, n), s) }
	}
	buffer, shared := (*lowering).bufferOf, (*lowering).sharedOf
	results = map[kernel.Op]result{
		kernel.OpVec:  (*lowering).vec,
		kernel.OpElem: one(func(l *lowering, n *kernel.Node, _ *scope) value.Value { return l.pick(n) }),
		kernel.OpUnpackHalf: func(l *lowering, n *kernel.Node, _ *scope) []value.Value {
			return l.unpackHalf(l.operand(n.Args()[0], 0, l.varying[n]))
		},
		kernel.OpPackHalf: one(func(l *lowering, n *kernel.Node, _ *scope) value.Value {
			return l.packHalf(l.elem(n.Args()[0], 0), l.elem(n.Args()[0], 1))
		}),
		kernel.OpSubgroupAdd:          (*lowering).reduce,
		kernel.OpSubgroupMax:          (*lowering).reduce,
		kernel.OpSubgroupMin:          (*lowering).reduce,
		kernel.OpSubgroupExclusiveAdd: (*lowering).before,
		kernel.OpSubgroupShuffle:      (*lowering).shuffled,
		kernel.OpSubgroupShuffleXor:   (*lowering).shuffled,
		kernel.OpSubgroupElect:        one(func(l *lowering, _ *kernel.Node, s *scope) value.Value { return l.elect(s) }),
		kernel.OpSubgroupAny: one(func(l *lowering, n *kernel.Node, s *scope) value.Value {
			return l.anyLane(l.among(s.mask, l.lanes(n.Args()[0], 0)))
		}),
		kernel.OpAddress:    (*lowering).address,
		kernel.OpLoad:       words(buffer),
		kernel.OpLoad16:     (*lowering).load16,
		kernel.OpTable:      words((*lowering).tableOf),
		kernel.OpSharedLoad: words(shared),
		kernel.OpSharedElem: words(shared),
		kernel.OpAtomicAdd:  atomic(buffer, enum.AtomicOpAdd),
		kernel.OpSharedAdd:  atomic(shared, enum.AtomicOpAdd),
		kernel.OpVarGet:     (*lowering).getVar,
	}
	acts = map[kernel.Op]func(l *lowering, n *kernel.Node, s *scope){
		kernel.OpBuiltin:      (*lowering).builtin,
		kernel.OpStore:        (*lowering).storeBuffer,
		kernel.OpStore16:      (*lowering).storeBuffer,
		kernel.OpSharedStore:  (*lowering).storeShared,
		kernel.OpSharedSet:    (*lowering).storeShared,
		kernel.OpPrefetch:     (*lowering).prefetchWords,
		kernel.OpVar:          (*lowering).variable,
		kernel.OpVarSet:       (*lowering).setVar,
		kernel.OpFence:        (*lowering).fence,
		kernel.OpTileZero:     (*lowering).tileOp,
		kernel.OpTileLoad:     (*lowering).tileOp,
		kernel.OpTileStore:    (*lowering).tileOp,
		kernel.OpTileMulAdd:   (*lowering).tileOp,
		kernel.OpIf:           (*lowering).branch,
		kernel.OpFor:          (*lowering).forLoop,
		kernel.OpReturnIf:     (*lowering).leave,
		kernel.OpBarrier:      (*lowering).nothing, // one subgroup, in lock step
		kernel.OpAwait:        (*lowering).nothing, // dispatches do not overlap
		kernel.OpPrefetchNext: (*lowering).nothing,

		kernel.OpSubgroupBarrier: (*lowering).nothing,
	}
}

// node lowers one operation.
func (l *lowering) node(n *kernel.Node, s *scope) {
	if act := acts[n.Op()]; act != nil {
		act(l, n, s)
		return
	}
	if result := results[n.Op()]; result != nil {
		l.values[n] = result(l, n, s)
		return
	}
	if sum, ok := l.shortDot(n); ok {
		l.shorts[n] = sum
		return
	}
	if n.Op() == kernel.OpAdd && l.addShort(n) {
		return
	}
	l.values[n] = l.compute(n, s)
}

func (l *lowering) nothing(*kernel.Node, *scope) {}

func (l *lowering) vec(n *kernel.Node, _ *scope) []value.Value {
	out := make([]value.Value, len(n.Args()))
	for i, a := range n.Args() {
		out[i] = l.operand(a, 0, l.varying[n])
	}
	return out
}

// address returns the halves of an argument's address.
func (l *lowering) address(n *kernel.Node, _ *scope) []value.Value {
	whole := add(l.emitter, &ir.InstPtrToInt{From: l.argument(n.Imm()), To: types.I64})
	return []value.Value{l.trunc(whole, types.I32), l.trunc(l.lshr(whole, i64(32)), types.I32)}
}

func (l *lowering) load16(n *kernel.Node, s *scope) []value.Value {
	v := l.words(l.bufferOf(n), s)[0]
	return []value.Value{l.zext(v, like(v, types.I32))}
}

func (l *lowering) storeBuffer(n *kernel.Node, s *scope) {
	v := n.Args()[1]
	l.write(l.bufferOf(n), s, l.varying[v], func(e int, varying bool) value.Value {
		w := l.operand(v, e, varying)
		if n.Op() == kernel.OpStore16 {
			w = l.trunc(w, like(w, types.I16))
		}
		return w
	})
}

func (l *lowering) storeShared(n *kernel.Node, s *scope) {
	v := n.Args()[len(n.Args())-1]
	l.write(l.sharedOf(n), s, l.varying[v], func(e int, varying bool) value.Value { return l.operand(v, e, varying) })
}

func (l *lowering) prefetchWords(n *kernel.Node, _ *scope) {
	l.prefetch(l.uniform(l.bufferOf(n)), l.f.Args[n.Imm()].Access)
}

func (l *lowering) fence(*kernel.Node, *scope) {
	l.do(ir.NewFence(enum.AtomicOrderingSequentiallyConsistent))
}

func (l *lowering) getVar(n *kernel.Node, _ *scope) (list []value.Value) {
	for _, p := range l.vars[n.Args()[0]] {
		list = append(list, l.get(p))
	}
	return list
}

func (l *lowering) builtin(n *kernel.Node, _ *scope) {
	v := value.Value(i32(0))
	switch b := kernel.Builtin(n.Imm()); b {
	case kernel.SubgroupLane, kernel.LocalID:
		v = iota_
		l.strides[n] = 1
	case kernel.NumSubgroups:
		v = i32(1)
	case kernel.WorkgroupIDX, kernel.WorkgroupIDY, kernel.WorkgroupIDZ:
		v = l.ids[b-kernel.WorkgroupIDX]
		if n.Ahead() {
			v = l.workgroupAhead(v, n.Distance())
		}
	case kernel.NumWorkgroupsX, kernel.NumWorkgroupsY, kernel.NumWorkgroupsZ:
		v = l.gridSize(int(b - kernel.NumWorkgroupsX))
	}
	l.values[n] = []value.Value{v}
}

// workgroupAhead returns the place in its line of the workgroup that is n behind that at x, if this call comes to it,
// else x.
func (l *lowering) workgroupAhead(x value.Value, n int) value.Value {
	there := l.plus(x, i32(int64(n)))
	comes := l.icmp(enum.IPredULT, l.plus(l.at64, i64(int64(n))), l.end)
	inLine := l.icmp(enum.IPredULT, there, l.gridSize(0))
	return l.choose(l.and(comes, inLine), there, x)
}

// pick returns an element of a vector, by an index that may be known only at run time.
func (l *lowering) pick(n *kernel.Node) value.Value {
	v, i := n.Args()[0], n.Args()[1]
	if c, ok := l.known(i); ok {
		return l.operand(v, int(c)%v.Type().Lanes(), l.varying[n])
	}
	index := l.operand(i, 0, l.varying[n])
	out := l.operand(v, 0, l.varying[n])
	for e := 1; e < v.Type().Lanes(); e++ {
		out = l.choose(l.icmp(enum.IPredEQ, index, l.k(index, int64(e))), l.operand(v, e, l.varying[n]), out)
	}
	return out
}

func (l *lowering) variable(n *kernel.Node, _ *scope) {
	init := n.Args()[0]
	for e := range n.Type().Lanes() {
		t := elemType(n.Type())
		if l.varying[n] {
			t = wide(t)
		}
		p := l.alloca(t)
		l.vars[n] = append(l.vars[n], p)
		l.set(p, l.operand(init, e, l.varying[n]))
	}
}

func (l *lowering) setVar(n *kernel.Node, s *scope) {
	v, x := n.Args()[0], n.Args()[1]
	for e, p := range l.vars[v] {
		to := l.operand(x, e, l.varying[v])
		if l.partial[n] && s.mask != nil {
			to = l.choose(s.mask, to, l.get(p))
		}
		l.set(p, to)
	}
}

// simple reports whether a region may run in lanes that should not: it is short, and neither accesses memory
// nor leaves.
func simple(r *kernel.Region) bool {
	for _, n := range r.Nodes() {
		switch op := n.Op(); {
		case op == kernel.OpVar || op == kernel.OpVarGet || op == kernel.OpVarSet:
		case len(n.Regions()) > 0 || op >= kernel.OpSubgroupAdd:
			return false
		}
	}
	return len(r.Nodes()) <= 16
}

func (l *lowering) branch(n *kernel.Node, s *scope) {
	cond := n.Args()[0]
	if !l.parting[n] {
		then, merge := l.block(), l.block()
		otherwise := merge
		if len(n.Regions()) > 1 {
			otherwise = l.block()
		}
		c := l.scalar(cond)
		if n.Ahead() {
			c = l.newLine()
		}
		l.cur.NewCondBr(c, then, otherwise)
		for i, b := range []*ir.Block{then, otherwise}[:len(n.Regions())] {
			l.cur = b
			l.region(n.Regions()[i], &scope{mask: s.mask, end: merge})
			l.goTo(merge)
		}
		l.cur = merge
		return
	}
	c := l.lanes(cond, 0)
	for i, r := range n.Regions() {
		if i == 1 {
			c = l.not(c)
		}
		inner := &scope{mask: l.among(s.mask, c)}
		if simple(r) {
			l.region(r, inner)
			continue
		}
		body, merge := l.block(), l.block()
		inner.end = merge
		l.cur.NewCondBr(l.anyLane(inner.mask), body, merge)
		l.cur = body
		l.region(r, inner)
		l.goTo(merge)
		l.cur = merge
	}
}

// newLine holds in the first workgroup of a call and of a line.
func (l *lowering) newLine() value.Value {
	begins := add(l.emitter, ir.NewURem(l.at64, l.zext(l.gridSize(0), types.I64)))
	return l.or(l.icmp(enum.IPredEQ, l.at64, l.first), l.icmp(enum.IPredEQ, begins, i64(0)))
}

// leave lets lanes return.
func (l *lowering) leave(n *kernel.Node, s *scope) {
	if !l.parting[n] {
		stay := l.block()
		l.cur.NewCondBr(l.scalar(n.Args()[0]), l.next, stay)
		l.cur = stay
		return
	}
	l.set(l.gone, l.or(l.get(l.gone), l.among(s.mask, l.lanes(n.Args()[0], 0))))
}

func (l *lowering) forLoop(n *kernel.Node, s *scope) {
	body := n.Regions()[0]
	param, lo, hi, step := body.Param(), n.Args()[0], n.Args()[1], n.Args()[2]
	step1, run := l.strides[lo]
	if !l.varying[lo] {
		step1, run = 0, true
	}
	run = run && !l.varying[step]
	// The counter is that of lane 0 where the lanes keep their distance, else one for each.
	var counter place
	if run {
		counter = l.alloca(types.I64)
		l.set(counter, l.index(lo))
	} else {
		counter = l.alloca(wide(types.I32))
		l.set(counter, l.lanes(lo, 0))
	}
	head, inside, exit := l.block(), l.block(), l.block()
	l.goTo(head)
	i := l.get(counter)
	value, first := i, i
	if run {
		first = l.trunc(i, types.I32)
		value = first
		l.counters[param] = i
		if l.varying[param] {
			value = l.plus(l.splat(first), repeatedStep(step1))
			l.strides[param] = step1
		}
	}
	l.values[param] = listOf(value)
	mask := s.mask
	if l.returns[n] {
		mask = l.remaining(mask)
	}
	if l.parting[n] {
		bound := l.operand(hi, 0, true)
		less := l.icmp(enum.IPredULT, l.lanes(param, 0), bound)
		mask = l.among(mask, less)
		any := l.anyLane(mask)
		if run && step1 >= 0 && !l.varying[hi] && s.mask == nil && !l.returns[n] {
			any = l.icmp(enum.IPredULT, first, l.scalar(hi)) // lane 0 stays longest
		}
		l.cur.NewCondBr(any, inside, exit)
	} else {
		l.cur.NewCondBr(l.icmp(enum.IPredULT, first, l.scalar(hi)), inside, exit)
	}
	l.cur = inside
	l.region(body, &scope{mask: mask, end: exit})
	if run {
		l.set(counter, l.plus(i, l.zext(l.scalar(step), types.I64)))
	} else {
		l.set(counter, l.plus(i, l.lanes(step, 0)))
	}
	l.cur.NewBr(head)
	l.cur = exit
}

func listOf(v value.Value) []value.Value { return []value.Value{v} }

// repeatedStep is what the lanes have more than the first.
func repeatedStep(step int64) value.Value {
	return repeated(types.I32, Lanes, func(i int) string { return i32(step * int64(i)).Ident() })
}
