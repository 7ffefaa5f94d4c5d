package llvm

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
	"github.com/zincc-dev/zincc/codegen/kernel"
)

// access is a load or store of elements of some words each, of 32 or 16 bits.
type access struct {
	base    value.Value // address of element 0; of a varying argument one for each lane
	index   *kernel.Node
	index2  *kernel.Node // of a word in the element
	words   int          // of an element
	taken   int          // of them, by the access
	word    types.Type   // of memory
	align   int
	reading bool // of memory that nobody writes
	node    *kernel.Node
}

// argument returns the address of a buffer.
func (l *lowering) argument(i uint32) (address value.Value) {
	l.once(func() {
		load := ir.NewLoad(ptr, l.at(ptr, l.args, i64(int64(i))))
		load.Align = 8
		load.Metadata = append(load.Metadata, l.fixed)
		l.do(load)
		address = load
	})
	return address
}

// bufferOf describes an access to a buffer.
func (l *lowering) bufferOf(n *kernel.Node) access {
	view, _ := n.View()
	a := access{node: n, index: n.Args()[0], words: view.Lanes(), taken: view.Lanes(), word: elemType(view), align: n.Align(),
		reading: l.f.Args[n.Imm()].Access == kernel.Read && !n.Ahead()}
	if view == kernel.U16 {
		a.word = types.I16
	}
	through := n.Through()
	if through == nil {
		a.base = l.argument(n.Imm())
		return a
	}
	half := func(e int) value.Value {
		v := l.elem(through, e)
		return l.zext(v, like(v, types.I64))
	}
	low, high := half(0), half(1)
	a.base = add(l.emitter, &ir.InstIntToPtr{From: l.or(low, l.shl(high, l.k(high, 32))), To: like(low, ptr)})
	return a
}

// sharedOf describes an access to a shared array.
func (l *lowering) sharedOf(n *kernel.Node) access {
	elem := l.f.Arrays()[n.Imm()].Elem()
	a := access{base: l.shared[n.Imm()], index: n.Args()[0], words: elem.Lanes(), taken: elem.Lanes(), word: elemType(elem), align: elem.Size()}
	if n.Op() == kernel.OpSharedElem || n.Op() == kernel.OpSharedSet {
		a.index2, a.taken, a.align = n.Args()[1], 1, 4
	}
	return a
}

// tableOf describes a read of constants, which lie behind the code.
func (l *lowering) tableOf(n *kernel.Node) access {
	name := fmt.Sprintf("table%d", n.Imm())
	words := l.f.Tables()[n.Imm()].Words
	if !l.tables[n.Imm()] {
		l.tables[n.Imm()] = true
		var list []constant.Constant
		for _, w := range words {
			list = append(list, constant.NewInt(types.I32, int64(int32(w))))
		}
		g := l.m.NewGlobalDef(name, constant.NewArray(types.NewArray(uint64(len(words)), types.I32), list...))
		g.Immutable, g.Linkage, g.UnnamedAddr, g.Align = true, enum.LinkagePrivate, enum.UnnamedAddrUnnamedAddr, 64
	}
	return access{base: literal{ptr, "@" + name}, node: n, index: n.Args()[0], words: 1, taken: 1, word: types.I32, align: 4}
}

func (l *lowering) varies(a access) bool {
	return count(a.base) > 0 || l.varying[a.index] || a.index2 != nil && l.varying[a.index2]
}

// uniform returns the address of an access that is the same in all lanes.
func (l *lowering) uniform(a access) value.Value {
	return l.behind(a, a.base, l.index(a.index), func() value.Value { return l.index(a.index2) })
}

// scattered returns the address of each lane.
func (l *lowering) scattered(a access) value.Value {
	wider := func(n *kernel.Node) value.Value { return l.sext(l.lanes(n, 0), wide(types.I64)) }
	return l.behind(a, a.base, wider(a.index), func() value.Value { return wider(a.index2) })
}

// behind returns the address of an element, or of a word of it.
func (l *lowering) behind(a access, base, offset value.Value, index2 func() value.Value) value.Value {
	if a.index2 != nil {
		offset = l.plus(l.times(offset, l.k(offset, int64(a.words))), index2())
		return l.at(a.word, base, offset)
	}
	if a.words > 1 {
		return l.at(types.NewArray(uint64(a.words), a.word), base, offset)
	}
	return l.at(a.word, base, offset)
}

// run returns the address of lane 0 of an access whose lanes lie one after the other.
func (l *lowering) run(a access) (value.Value, bool) {
	if count(a.base) > 0 || a.index2 != nil {
		return nil, false
	}
	s, ok := l.strides[a.index]
	if !ok || s != 1 {
		return nil, false
	}
	return l.behind(a, a.base, l.index(a.index), nil), true
}

// words returns what an access reads, a value for each word.
func (l *lowering) words(a access, s *scope) []value.Value {
	if !l.varies(a) {
		from := l.uniform(a)
		if a.taken == 1 {
			return []value.Value{l.plain(a, a.word, from, a.align)}
		}
		v := l.plain(a, vector(a.word, a.taken), from, a.align)
		return l.parts(v)
	}
	if from, ok := l.run(a); ok {
		n := a.taken * Lanes
		var v value.Value
		if s.mask == nil {
			v = l.plain(a, vector(a.word, n), from, a.align)
			if a.reading && l.loopAround(l.homes[a.node]) != nil && a.taken == 1 {
				l.ahead(from)
			}
		} else {
			v = l.masked(vector(a.word, n), from, a.align, l.stretched(s.mask, a.taken))
		}
		if a.taken == 1 {
			return []value.Value{v}
		}
		list := make([]value.Value, a.taken)
		for e := range list {
			list[e] = l.shuffle(v, v, Lanes, func(i int) int { return i*a.taken + e })
		}
		return list
	}
	from := l.scattered(a)
	t := wide(a.word)
	list := make([]value.Value, a.taken)
	for e := range list {
		at := from
		if e > 0 {
			at = l.at(a.word, from, i64(int64(e)))
		}
		name := fmt.Sprintf("llvm.masked.gather.%s.v%dp0", suffix(t), Lanes)
		list[e] = l.call(name, t, at, i32(int64(min(a.align, 4))), full(s.mask), literal{t, "zeroinitializer"})
	}
	return list
}

// aheadBytes is how far ahead of a line that a loop reads of what nobody writes the line is asked for that a
// later turn will read. Processors that fetch ahead themselves lose a stream at each page, and between 0.5
// and 1.7 KB all that were tried are as fast, but for those of which Machines says otherwise.
const aheadBytes = 1 << 10

// ahead asks for a line that is as far on.
func (l *lowering) ahead(from value.Value) {
	l.prefetch(l.at(types.I8, from, i64(cmp.Or(l.machine.ahead, aheadBytes))), kernel.Read)
}

// prefetch asks for a line: to be brought into the second cache, or into the first, for this thread alone, if the
// kernel does nothing but write it. Else a store waits until other threads, which have read what was there, have given
// the line up.
func (l *lowering) prefetch(line value.Value, access kernel.Access) {
	write, near := int64(0), int64(2)
	if access == kernel.Write {
		write, near = 1, 3
		l.need(l.machine.writes())
	}
	l.call("llvm.prefetch.p0", types.Void, line, i32(write), i32(near), i32(1))
}

// need has the function compiled with a feature beside those of the machine.
func (l *lowering) need(feature string) {
	attribute := ir.AttrPair{Key: "target-features", Value: feature}
	if feature != "" && !slices.Contains(l.fn.FuncAttrs, ir.FuncAttribute(attribute)) {
		l.fn.FuncAttrs = append(l.fn.FuncAttrs, attribute)
	}
}

func (l *lowering) plain(a access, t types.Type, from value.Value, align int) value.Value {
	v := ir.NewLoad(t, from)
	v.Align = ir.Align(align)
	if a.reading {
		v.Metadata = append(v.Metadata, l.fixed)
	}
	l.do(v)
	return v
}

func (l *lowering) masked(t types.Type, from value.Value, align int, mask value.Value) value.Value {
	return l.call("llvm.masked.load."+suffix(t)+".p0", t, from, i32(int64(align)), mask, literal{t, "zeroinitializer"})
}

// stretched repeats each lane of a mask.
func (l *lowering) stretched(mask value.Value, times int) value.Value {
	if times == 1 {
		return mask
	}
	return l.shuffle(mask, mask, Lanes*times, func(i int) int { return i / times })
}

// parts returns the elements of a vector.
func (l *lowering) parts(v value.Value) []value.Value {
	list := make([]value.Value, count(v))
	for i := range list {
		list[i] = l.extract(v, i32(int64(i)))
	}
	return list
}

// joined is the reverse of parts.
func (l *lowering) joined(list []value.Value) value.Value {
	if len(list) == 1 {
		return list[0]
	}
	v := value.Value(literal{vector(list[0].Type(), len(list)), "poison"})
	for i, x := range list {
		v = l.insert(v, x, i32(int64(i)))
	}
	return v
}

// write stores the words of a value; get returns word e, of a lane each if asked so.
func (l *lowering) write(a access, s *scope, varying bool, get func(e int, varying bool) value.Value) {
	list := make([]value.Value, a.taken)
	if !l.varies(a) {
		lane := value.Value(nil)
		for e := range list {
			list[e] = get(e, varying)
			if varying { // one lane alone may store here
				if lane == nil {
					lane = l.firstLane(s.mask)
				}
				list[e] = l.extract(list[e], lane)
			}
		}
		l.store(l.joined(list), l.uniform(a), a.align)
		return
	}
	for e := range list {
		list[e] = get(e, true)
	}
	if to, ok := l.run(a); ok {
		v := l.interleaved(list)
		if s.mask == nil {
			l.store(v, to, a.align)
			return
		}
		mask := l.stretched(s.mask, a.taken)
		l.call("llvm.masked.store."+suffix(v.Type())+".p0", types.Void, v, to, i32(int64(a.align)), mask)
		return
	}
	to := l.scattered(a)
	for e, v := range list {
		at := to
		if e > 0 {
			at = l.at(a.word, to, i64(int64(e)))
		}
		name := fmt.Sprintf("llvm.masked.scatter.%s.v%dp0", suffix(v.Type()), Lanes)
		l.call(name, types.Void, v, at, i32(int64(min(a.align, 4))), full(s.mask))
	}
}

// interleaved returns the words of lane 0, then those of lane 1, and so on.
func (l *lowering) interleaved(list []value.Value) value.Value {
	n := len(list)
	switch n {
	case 1:
		return list[0]
	case 2:
		return l.shuffle(list[0], list[1], 2*Lanes, func(i int) int { return i%2*Lanes + i/2 })
	}
	join := func(x, y value.Value) value.Value {
		return l.shuffle(x, y, 2*Lanes, func(i int) int { return i })
	}
	return l.shuffle(join(list[0], list[1]), join(list[2], list[3]), 4*Lanes, func(i int) int { return i%4*Lanes + i/4 })
}

// firstLane returns the index of the first active lane.
func (l *lowering) firstLane(mask value.Value) value.Value {
	if mask == nil {
		return i32(0)
	}
	bits := l.bitcast(l.freeze(mask), types.I16)
	return l.and(l.zext(l.call("llvm.cttz.i16", types.I16, bits, literal{types.I1, "false"}), types.I32), i32(Lanes-1))
}

// eachLane runs body for every active lane, one after the other.
func (l *lowering) eachLane(mask value.Value, body func(lane value.Value)) {
	rest := l.alloca(types.I16)
	l.set(rest, l.bitcast(l.freeze(full(mask)), types.I16))
	head, inner, done := l.block(), l.block(), l.block()
	l.goTo(head)
	bits := l.get(rest)
	head.NewCondBr(l.icmp(enum.IPredNE, bits, l.k(bits, 0)), inner, done)
	l.cur = inner
	lane := l.and(l.zext(l.call("llvm.cttz.i16", types.I16, bits, literal{types.I1, "false"}), types.I32), i32(Lanes-1))
	body(lane)
	l.set(rest, l.and(bits, l.minus(bits, l.k(bits, 1))))
	l.goTo(head)
	l.cur = done
}

// atomic adds or takes the maximum, lane by lane, and returns what was there.
func (l *lowering) atomic(n *kernel.Node, a access, op enum.AtomicOp, s *scope) value.Value {
	was := l.alloca(wide(types.I32))
	l.set(was, literal{wide(types.I32), "zeroinitializer"})
	var to value.Value
	if l.varies(a) {
		to = l.scattered(a)
	} else {
		to = l.uniform(a)
	}
	by := l.lanes(n.Args()[1], 0)
	l.eachLane(s.mask, func(lane value.Value) {
		at, x := to, l.extract(by, lane)
		if count(to) > 0 {
			at = l.extract(to, lane)
		}
		old := add(l.emitter, &ir.InstAtomicRMW{Op: op, Dst: at, X: x, Ordering: enum.AtomicOrderingMonotonic, Typ: types.I32})
		l.set(was, l.insert(l.get(was), old, lane))
	})
	return l.get(was)
}
