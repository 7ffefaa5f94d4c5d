package ptx

import (
	"fmt"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

func (l *lowering) addressOf(n *kernel.Node) {
	lo, hi := l.reg(words), l.reg(words)
	l.do("mov.b64 {%s, %s}, %s", lo, hi, l.addresses[int(n.Imm())])
	l.values[n] = []operand{register(lo), register(hi)}
}

// place writes the address that a buffer access accesses.
func (l *lowering) place(n *kernel.Node) string {
	elem, _ := n.View()
	base := l.addresses[int(n.Imm())]
	if through := n.Through(); through != nil {
		v := l.value(through)
		base = l.reg(addresses)
		l.do("mov.b64 %s, {%s, %s}", base, l.held(v[0], kernel.U32), l.held(v[1], kernel.U32))
	}
	i := l.scalar(n.Args()[0])
	if i.lit && uint64(i.bits)*uint64(elem.Size()) < 1<<30 {
		return offset(base, uint64(i.bits)*uint64(elem.Size()))
	}
	index, near := l.parted(n.Args()[0])
	at := l.reg(addresses)
	l.do("mad.wide.u32 %s, %s, %d, %s", at, index.as(kernel.U32), elem.Size(), base)
	return offset(at, uint64(near)*uint64(elem.Size()))
}

// parted takes the numbers out of an index: accesses that differ only in them have one address.
func (l *lowering) parted(n *kernel.Node) (index operand, near uint32) {
	terms, numbers := n.Sum()
	for _, x := range numbers {
		near += l.scalar(x).bits
	}
	if near == 0 || near >= kernel.NearNumbers {
		return l.scalar(n), 0
	}
	index = l.scalar(terms[0])
	for _, t := range terms[1:] {
		index = l.word("add.u32", "%s, %s", index.as(kernel.U32), l.scalar(t).as(kernel.U32))
	}
	return index, near
}

func offset(base string, n uint64) string {
	if n == 0 {
		return "[" + base + "]"
	}
	return fmt.Sprintf("[%s+%d]", base, n)
}

// width says how many words of which type an access moves.
func width(t kernel.Type) string {
	switch {
	case t == kernel.U16:
		return "u16"
	case t.Lanes() == 1:
		return "b32"
	}
	return fmt.Sprintf("v%d.b32", t.Lanes())
}

// list writes registers as an instruction takes several.
func list(v []operand) string {
	if len(v) == 1 {
		return v[0].reg
	}
	var names []string
	for _, o := range v {
		names = append(names, o.reg)
	}
	return "{" + strings.Join(names, ", ") + "}"
}

// load reads what nobody writes while a kernel runs through the cache that need not know; not before
// the wait: the driver's compiler moves such loads behind it.
func (l *lowering) load(n *kernel.Node) {
	elem, _ := n.View()
	at := l.place(n)
	v := l.registers(n.Type())
	space := "global"
	switch {
	case !l.waited && l.loadsEarly(n):
		space = "relaxed.gpu.global" // an older value may lie in the L1 cache
	case !l.waited:
		space = "weak.global" // which is what global means, but can be told from it
	case n.Ahead() && l.steady(n): // others are moved behind products
		space = "relaxed.gpu.global"
	case l.unchanging(n):
		space = "global.nc"
	}
	if l.o.Overlap && l.o.EvictFirst && l.steady(n) && elem.Size() >= evictFirstSize {
		space += once
	}
	l.do("ld.%s.%s %s, %s", space, width(elem), list(v), at)
	l.values[n] = v
}

// Weights that a step of few rows reads once, in a row, are the first to leave the L1 cache, and bring the rest of
// their 128 bytes to the L2 cache. Loads of fewer bytes are of scales and tables, which others read, too.
const once, evictFirstSize = ".L1::evict_first.L2::128B", 8

// copyArch is the first architecture that copies to shared memory while lanes go on.
const copyArch = 80

// copy goes past the first cache where it may. Older architectures load and store.
func (l *lowering) copy(n *kernel.Node) {
	view, _ := n.View()
	from := l.place(n)
	to := offset(l.sharedAt(n.Array(), n.Args()[1]))
	switch {
	case l.o.Arch < copyArch:
		v := l.registers(view)
		l.do("ld.global.%s %s, %s", width(view), list(v), from)
		l.do("st.shared.%s %s, %s", width(view), to, list(v))
	case view.Size() == 16:
		line := ""
		if n.WholeLine() {
			line = ".L2::128B"
		}
		l.do("cp.async.cg.shared.global%s %s, %s, 16", line, to, from)
	default:
		l.do("cp.async.ca.shared.global %s, %s, %d", to, from, view.Size())
	}
}

func (l *lowering) copyGroup(*kernel.Node) {
	if l.o.Arch >= copyArch {
		l.do("cp.async.commit_group")
	}
}

func (l *lowering) copyWait(n *kernel.Node) {
	if l.o.Arch >= copyArch {
		l.do("cp.async.wait_group %d", n.Imm())
	}
}

// unchanging reports whether an access is of memory that nobody writes from the kernel's begin to its end. Where the
// kernel before still runs at the begin, only constants are; behind a wait that is first of all, what is read beyond a
// branch is, too. Without a branch between, the driver's compiler would move such a load before the wait.
func (l *lowering) unchanging(n *kernel.Node) bool {
	return l.f.Args[n.Imm()].Access == kernel.Read && (!l.o.Overlap || l.o.WaitFirst && l.branched || l.steady(n))
}

func (l *lowering) constant(arg int) bool { return l.o.Constant != nil && l.o.Constant(arg) }

func (l *lowering) store(n *kernel.Node) {
	elem, _ := n.View()
	at := l.place(n)
	v := l.value(n.Args()[1])
	l.do("st.global.%s %s, %s", width(elem), at, list(l.heldAll(v, elem)))
}

func (l *lowering) heldAll(v []operand, t kernel.Type) []operand {
	all := make([]operand, len(v))
	for i, o := range v {
		all[i] = register(l.held(o, t))
	}
	return all
}

var atomics = map[kernel.Op]string{
	kernel.OpAtomicAdd: "atom.relaxed.gpu.global.add.u32",
	kernel.OpSharedAdd: "atom.relaxed.cta.shared.add.u32",
}

// atomic orders nothing but itself.
func (l *lowering) atomic(n *kernel.Node) {
	var at string
	if n.Op() == kernel.OpSharedAdd {
		at = l.element(n, 1)
	} else {
		at = l.place(n)
	}
	l.values[n] = []operand{l.word(atomics[n.Op()], "%s, %s", at, l.held(l.scalar(n.Args()[1]), kernel.U32))}
}

// element writes the address in a shared array: of the first indices operands.
func (l *lowering) element(n *kernel.Node, indices int) string {
	at, near := l.sharedAt(int(n.Imm()), n.Args()[0])
	if indices == 1 {
		return offset(at, near)
	}
	e := l.scalar(n.Args()[1])
	if e.lit {
		return offset(at, near+4*uint64(e.bits))
	}
	return offset(l.word("mad.lo.u32", "%s, 4, %s", e.reg, l.word("mov.u32", "%s", at).reg).reg, near)
}

// sharedAt writes the address of an element of a shared array, a symbol or a register, and the bytes behind it that the
// numbers of the index are.
func (l *lowering) sharedAt(array int, index *kernel.Node) (at string, near uint64) {
	base, size := l.names[array], uint64(l.f.Arrays()[array].Elem().Size())
	if i := l.scalar(index); i.lit {
		return base, uint64(i.bits) * size
	}
	i, numbers := l.parted(index)
	return l.shared(array, i), uint64(numbers) * size
}

// shared writes the address of an element of a shared array: a symbol and a number, or a register.
func (l *lowering) shared(array int, i operand) string {
	base, size := l.names[array], l.f.Arrays()[array].Elem().Size()
	if i.lit {
		return fmt.Sprintf("%s+%d", base, uint64(i.bits)*uint64(size))
	}
	return l.word("mad.lo.u32", "%s, %d, %s", i.reg, size, l.word("mov.u32", "%s", base).reg).reg
}

// table reads constants of the module.
func (l *lowering) table(n *kernel.Node) {
	base, at := l.reg(addresses), l.reg(addresses)
	l.do("mov.u64 %s, t%d", base, n.Imm())
	l.do("mad.wide.u32 %s, %s, 4, %s", at, l.held(l.scalar(n.Args()[0]), kernel.U32), base)
	l.values[n] = []operand{l.word("ld.global.nc.u32", "[%s]", at)}
}

// tables declares the constants of the module.
func (l *lowering) tables() string {
	var b strings.Builder
	for i, t := range l.f.Tables() {
		fmt.Fprintf(&b, ".global .align 16 .b32 t%d[%d] = {", i, len(t.Words))
		for k, w := range t.Words {
			if k > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%d", w)
		}
		b.WriteString("};\n")
	}
	return b.String()
}

func (l *lowering) sharedLoad(n *kernel.Node) {
	at := l.element(n, len(n.Args()))
	v := l.registers(n.Type())
	l.do("ld.shared.%s %s, %s", width(n.Type()), list(v), at)
	l.values[n] = v
}

func (l *lowering) sharedStore(n *kernel.Node) {
	last := len(n.Args()) - 1
	t := n.Args()[last].Type()
	at := l.element(n, last)
	l.do("st.shared.%s %s, %s", width(t), at, list(l.heldAll(l.value(n.Args()[last]), t)))
}

// barrier also orders what the lanes of the workgroup wrote, to buffers too.
func (l *lowering) barrier(*kernel.Node) {
	if l.f.Groups { // products of groups read what lanes have written
		l.do("fence.proxy.async.shared::cta")
	}
	if l.size <= Wave {
		l.do("bar.warp.sync -1")
		return
	}
	l.do("bar.sync 0")
}
