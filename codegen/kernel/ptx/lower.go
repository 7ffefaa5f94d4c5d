// Package ptx lowers kernels to PTX, the assembly text that NVIDIA's driver compiles.
//
// A module has one entry point and is for one pipeline: specialization constants are numbers in
// the text. Registers are virtual and, but for conditions and addresses, have 32 bits without a
// type. Every rounding is written in its instruction, so that the driver fuses nothing.
package ptx

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

// Entry is the name of the entry point of every module.
const Entry = "kernel"

// Wave is the lanes of a subgroup, which PTX calls a warp.
const Wave = 32

// Options say for what a kernel is lowered.
type Options struct {
	// Arch is the compute capability without the dot: 90 for sm_90.
	Arch int
	// Spec has the values of the specialization constants, by id; others have their default.
	Spec map[uint32]uint32
	// Constant reports whether an argument is memory that no dispatch writes: weights and
	// tables. Nil: none is known to be.
	Constant func(arg int) bool
	// EarlyLoads reports whether a kernel that overlaps loads an argument, no constant, before it waits: the dispatch
	// before does not write it, and has LateTrigger.
	EarlyLoads func(arg int) bool
	// LateTrigger has a kernel that overlaps let the next one begin only when it has waited itself.
	LateTrigger bool
	// EvictFirst: where kernels overlap, constants of 8 bytes and more, whatever they are, are loaded as read once:
	// their lines are the first to leave the L1 cache. For which kernels that pays was measured.
	EvictFirst bool
	// Common: the driver's compiler is told that the lanes of a subgroup have its number in common. For which kernels
	// that pays was measured.
	Common bool
	// Room is the lanes of a unit that registers are to suffice for; 0: the driver's compiler chooses.
	Room uint32
	// Ahead is what a kernel that overlaps prefetches into the L2 cache before it waits, or behind its own weights,
	// with all lanes of a grid of Grid workgroups.
	Ahead []Ahead
	Grid  int
	// Overlap has the kernel begin while the one before it still runs, and wait for it before it
	// touches memory that is neither Constant nor among EarlyLoads.
	Overlap bool
	// WaitFirst: one that overlaps waits first of all, so that what it only reads may take the read-only cache.
	WaitFirst bool
}

// version returns the version of PTX that first knows an architecture and all that kernels use.
func version(arch int) string {
	switch {
	case arch >= 120:
		return "8.7"
	case arch >= 100:
		return "8.6"
	}
	return "7.8"
}

// Lower returns the module of a kernel. The same kernel and options give the same text.
func Lower(f *kernel.Func, o Options) (string, error) {
	l := &lowering{f: f, o: o, values: map[*kernel.Node][]operand{}, addresses: map[int]string{}, builtins: map[kernel.Builtin]operand{}}
	if err := l.module(); err != nil {
		return "", fmt.Errorf("kernel %s: %w", f.Name, err)
	}
	return l.out.String(), nil
}

// lowering writes one kernel as a module.
type lowering struct {
	f *kernel.Func
	o Options

	out  strings.Builder
	code strings.Builder // the body
	size uint32          // lanes of a workgroup
	// values are the elements of a node's result, or the words of a matrix that a lane holds; of
	// a variable its registers.
	values    map[*kernel.Node][]operand
	addresses map[int]string // registers of the arguments' addresses
	names     []string       // of the shared arrays
	builtins  map[kernel.Builtin]operand
	uniform   *uniformity
	apart     bool                  // lanes of a subgroup may be elsewhere
	fused     map[*kernel.Node]bool // dot products that the sum they go into computes
	counts    [len(classes)]int
	labels    int
	waited    bool // all lanes have waited for the kernel before
	ended     bool // the kernel has said where its weights end
	branched  bool // a branch stands between the begin and here
	err       error
}

// classes are the kinds of registers.
var classes = [...]struct{ prefix, typ string }{{"%r", "b32"}, {"%p", "pred"}, {"%d", "b64"}, {"%h", "b16"}}

const (
	words = iota
	conditions
	addresses
	halves
)

func (l *lowering) reg(class int) string {
	l.counts[class]++
	return fmt.Sprintf("%s%d", classes[class].prefix, l.counts[class]-1)
}

func (l *lowering) label() string {
	l.labels++
	return fmt.Sprintf("L%d", l.labels)
}

// do writes an instruction.
func (l *lowering) do(format string, args ...any) {
	l.code.WriteByte('\t')
	fmt.Fprintf(&l.code, format, args...)
	l.code.WriteString(";\n")
}

func (l *lowering) mark(label string) {
	l.code.WriteString(label + ":\n")
	l.branched = true
}

// fail records the first error.
func (l *lowering) fail(n *kernel.Node, format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf("%v: %s", n.Op(), fmt.Sprintf(format, args...))
	}
}

func (l *lowering) module() error {
	f := l.f
	var err error
	if l.size, err = f.WorkgroupSize(l.o.Spec); err != nil {
		return err
	}
	target, err := l.target()
	if err != nil {
		return err
	}
	arrays, err := l.arrays()
	if err != nil {
		return err
	}
	l.uniform = analyze(f, l.o.Spec)
	l.fused = fuse(f)
	l.begin()
	l.prologue()
	l.region(f.Body())
	l.awaitNow()
	l.do("ret")
	if l.err == nil && !l.ended && slices.ContainsFunc(l.o.Ahead, func(a Ahead) bool { return a.After }) {
		l.err = errors.New("prefetches behind its weights, but does not say where they end")
	}
	if l.err != nil {
		return l.err
	}
	w := &l.out
	fmt.Fprintf(w, "%s.address_size 64\n\n// %s\n", target, strings.ReplaceAll(f.Name, "\n", " "))
	w.WriteString(l.tables())
	if arrays.asked > 0 {
		fmt.Fprintf(w, ".extern .shared .align %d .b8 %s[]; // %d\n", max(l.alignment(), coreMatrix), asked, arrays.asked)
	}
	fmt.Fprintf(w, ".visible .entry %s(", Entry)
	for i := range f.Args {
		if i > 0 {
			w.WriteString(", ")
		}
		fmt.Fprintf(w, ".param .u64 a%d", i)
	}
	fmt.Fprintf(w, ")\n.reqntid %d, 1, 1\n", l.size)
	if n := l.o.Room / l.size; n > 1 {
		fmt.Fprintf(w, ".minnctapersm %d\n", n)
	}
	w.WriteString("{\n")
	for i, c := range classes {
		if n := l.counts[i]; n > 0 {
			fmt.Fprintf(w, "\t.reg .%s %s<%d>;\n", c.typ, c.prefix, n)
		}
	}
	w.WriteString(arrays.declared)
	w.WriteString(l.code.String())
	w.WriteString("}\n")
	return nil
}

// MostDeclared is the bytes of shared arrays that a module may declare. With more it has them from who
// launches it, who has to ask for them.
const MostDeclared = 48 << 10

// asked is the name of memory that is asked for; arrays in it begin at multiples of as many bytes as copies move and
// matrices, those of descriptors, too, want. Those of a kernel with matrices in lines begin where the order of lines
// does.
const (
	asked   = "asked"
	aligned = 16
)

// sharedArrays are the declarations of shared arrays, or the bytes that are asked for.
type sharedArrays struct {
	declared string
	asked    uint64
}

// alignment is that of shared arrays.
func (l *lowering) alignment() int {
	switch {
	case l.f.Lines:
		return eightLines
	case l.f.Groups:
		return coreMatrix
	}
	return aligned
}

// arrays declares the shared arrays and names them. In memory that is asked for, those of wide elements are
// first and those that leave the next unaligned are last, so that nothing lies between and the bytes are those that
// Func.SharedBytes counts. Lines are of elements of 16 bytes: arrays of narrower ones need no more than these.
func (l *lowering) arrays() (list sharedArrays, err error) {
	var b strings.Builder
	arrays, align, step := l.f.Arrays(), l.alignment(), uint64(aligned)
	if l.f.Lines {
		step = eightLines
	}
	order, sizes := make([]int, len(arrays)), make([]uint64, len(arrays))
	for i, a := range arrays {
		n, err := l.f.Eval(a.Length(), l.o.Spec)
		if err != nil {
			return list, fmt.Errorf("length of a shared array: %w", err)
		}
		order[i], sizes[i] = i, uint64(n)*uint64(a.Elem().Size())
		list.asked += sizes[i]
		fmt.Fprintf(&b, "\t.shared .align %d .b8 s%d[%d];\n", align, i, sizes[i])
		l.names = append(l.names, fmt.Sprintf("s%d", i))
	}
	if list.asked <= MostDeclared {
		return sharedArrays{declared: b.String()}, nil
	}
	uneven := func(i int) int { return int(min(sizes[i]%step, 1)) }
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Or(uneven(i)-uneven(j), arrays[j].Elem().Size()-arrays[i].Elem().Size())
	})
	at := uint64(0)
	for _, i := range order {
		need := step
		if arrays[i].Elem().Size() < aligned {
			need = aligned
		}
		if at%need != 0 {
			return list, fmt.Errorf("%d bytes of shared arrays, of which more than one is no multiple of %d bytes", list.asked, need)
		}
		l.names[i] = fmt.Sprintf("%s+%d", asked, at)
		at += sizes[i]
	}
	return list, nil
}

// prologue loads what the body needs of the arguments and of the lane's place.
func (l *lowering) prologue() {
	args, places := map[int]bool{}, map[kernel.Builtin]bool{}
	subgroups := false
	l.f.Body().Walk(func(n *kernel.Node) {
		if _, ok := n.View(); ok && n.Through() == nil {
			args[int(n.Imm())] = true
		}
		if n.Op() == kernel.OpBuiltin {
			places[kernel.Builtin(n.Imm())] = true
		}
		switch n.Op() {
		case kernel.OpArrivals, kernel.OpGates:
			places[kernel.LocalID] = true
		case kernel.OpDone, kernel.OpReach:
			subgroups = true
		case kernel.OpSubgroupElect, kernel.OpSubgroupExclusiveAdd, kernel.OpMatLoad, kernel.OpMatStore:
			subgroups = true
		}
	})
	for _, a := range l.o.Ahead {
		args[a.Arg] = true
	}
	for i := range l.f.Args {
		if args[i] {
			l.addresses[i] = l.reg(addresses)
			l.do("ld.param.u64 %s, [a%d]", l.addresses[i], i)
		}
	}
	lane := places[kernel.SubgroupLane] || subgroups
	if places[kernel.LocalID] || lane || places[kernel.SubgroupID] {
		l.builtins[kernel.LocalID] = l.special("%tid.x")
	}
	if lane {
		l.builtins[kernel.SubgroupLane] = l.word("and.b32", "%s, 31", l.builtins[kernel.LocalID].reg)
	}
	if places[kernel.SubgroupID] {
		l.builtins[kernel.SubgroupID] = l.word("shr.u32", "%s, 5", l.builtins[kernel.LocalID].reg)
		if l.o.Common && l.size%Wave == 0 {
			// From one lane: so the driver's compiler knows that it is the same in all, and makes no code for lanes
			// that are at different places of what depends on it.
			l.builtins[kernel.SubgroupID] = l.word("shfl.sync.idx.b32", "%s, 0, 31, -1", l.builtins[kernel.SubgroupID].reg)
		}
	}
	l.builtins[kernel.NumSubgroups] = number((l.size + Wave - 1) / Wave)
	for _, b := range dimensions {
		if places[b.builtin] {
			l.builtins[b.builtin] = l.special(b.name)
		}
	}
}

var dimensions = []struct {
	builtin kernel.Builtin
	name    string
}{
	{kernel.WorkgroupIDX, "%ctaid.x"}, {kernel.WorkgroupIDY, "%ctaid.y"}, {kernel.WorkgroupIDZ, "%ctaid.z"},
	{kernel.NumWorkgroupsX, "%nctaid.x"}, {kernel.NumWorkgroupsY, "%nctaid.y"}, {kernel.NumWorkgroupsZ, "%nctaid.z"},
}

func (l *lowering) special(name string) operand { return l.word("mov.u32", "%s", name) }
