// Package llvm lowers kernels to LLVM IR for processors. A workgroup is one subgroup of 16
// lanes, whose values are the elements of vectors; values that are the same in all lanes
// stay scalar. LLVM splits the vectors for machines whose registers are shorter.
//
// A lowered kernel is a function that calls nothing:
//
//	void kernel(const void *const *args, const u32 *consts, const u32 *grid,
//	            u64 first, u64 end, void *scratch)
//
// args has the address of each argument; consts the specialization constants by id; grid three
// numbers. It computes workgroups first to end, counted along x, then y, then z. scratch is
// the shared memory of one workgroup, Func.SharedBytes, aligned to 64.
package llvm

import (
	"fmt"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/metadata"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
	"github.com/zincc-dev/zincc/codegen/kernel"
)

// Symbol is the name of the function of a lowered kernel.
const Symbol = "kernel"

// Lower returns the kernel for a machine in LLVM's words. Constants of spec are fixed in the code, by
// id, others are read at run time; see Fixed. The size of a workgroup has to be 16 under spec.
func Lower(f *kernel.Func, spec map[uint32]uint32, machine *Machine) (text string, err error) {
	size, err := f.WorkgroupSize(spec)
	if err != nil {
		return "", err
	}
	if size != Lanes {
		return "", fmt.Errorf("kernel %s: a workgroup has %d lanes: processors take one subgroup of %d", f.Name, size, Lanes)
	}
	l := &lowering{
		emitter: &emitter{m: ir.NewModule(), calls: map[string]*ir.Func{}}, analysis: analyze(f),
		f: f, spec: spec, machine: machine,
		values: map[*kernel.Node][]value.Value{}, wides: map[wideKey]value.Value{}, strides: map[*kernel.Node]int64{}, counters: map[*kernel.Node]value.Value{}, vars: map[*kernel.Node][]place{}, tables: map[uint32]bool{},
		shorts: map[*kernel.Node]shortSum{},
	}
	l.module()
	if l.err != nil {
		return "", fmt.Errorf("kernel %s: %w", f.Name, l.err)
	}
	return l.m.String(), nil
}

// Fixed are those of the constants that the code must have: the size of a workgroup, if that is one.
func Fixed(f *kernel.Func, spec map[uint32]uint32) map[uint32]uint32 {
	size := f.Workgroup()
	if size.Op() != kernel.OpSpec {
		return nil
	}
	id := f.Spec[size.Imm()].ID
	if v, ok := spec[id]; ok {
		return map[uint32]uint32{id: v}
	}
	return nil
}

// lowering is one kernel while it is lowered.
type lowering struct {
	*emitter
	*analysis
	f       *kernel.Func
	spec    map[uint32]uint32
	machine *Machine
	err     error

	args, consts, grid, first, end, scratch value.Value

	values   map[*kernel.Node][]value.Value // by element; scalars, or vectors of a lane each where they vary
	wides    map[wideKey]value.Value        // scalars repeated in all lanes, of the region at hand
	strides  map[*kernel.Node]int64         // of integers that vary: from lane to lane
	counters map[*kernel.Node]value.Value   // of loops, in 64 bits, in lane 0
	vars     map[*kernel.Node][]place
	shorts   map[*kernel.Node]shortSum // sums of which values holds nothing before they are read
	shared   []value.Value
	tables   map[uint32]bool // those that are declared
	ids      [3]value.Value  // of the workgroup
	at64     value.Value     // its number in the grid

	gone place     // lanes that have returned
	next *ir.Block // behind the body
}

type wideKey struct {
	n     *kernel.Node
	e     int
	block *ir.Block
}

// scope is what is known while a region is lowered.
type scope struct {
	mask value.Value // of the active lanes; nil: all
	end  *ir.Block   // where to go when no lane is left
}

func (l *lowering) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf(format, args...)
	}
}

func (l *lowering) module() {
	l.m.TargetTriple = l.machine.triple()
	l.fixed = &metadata.Attachment{Name: "invariant.load", Node: &metadata.Tuple{MetadataID: -1}}
	param := func(name string, t types.Type, attrs ...ir.ParamAttribute) *ir.Param {
		p := ir.NewParam(name, t)
		p.Attrs = attrs
		return p
	}
	alone := []ir.ParamAttribute{enum.ParamAttrNoAlias, enum.ParamAttrNoCapture}
	params := []*ir.Param{param("args", ptr, alone...), param("consts", ptr, alone...), param("grid", ptr, alone...),
		param("first", types.I64), param("end", types.I64), param("scratch", ptr, append(alone, ir.Align(64))...)}
	l.fn = l.m.NewFunc(Symbol, types.Void, params...)
	l.fn.FuncAttrs = []ir.FuncAttribute{enum.FuncAttrNoUnwind, ir.AttrString("no-builtins"),
		ir.AttrPair{Key: "prefer-vector-width", Value: "512"}, ir.AttrPair{Key: "min-legal-vector-width", Value: "512"}}
	l.args, l.consts, l.grid, l.first, l.end, l.scratch = params[0], params[1], params[2], params[3], params[4], params[5]
	l.entry = l.fn.NewBlock("entry")
	l.cur = l.entry
	l.arrays()

	// A loop over the workgroups.
	l.gone = l.alloca(wide(types.I1))
	counter := l.alloca(types.I64)
	head, body, done := l.block(), l.block(), l.block()
	l.next = l.block()
	l.cur = head
	at := l.get(counter)
	head.NewCondBr(l.icmp(enum.IPredULT, at, l.end), body, done)
	if l.f.Tiles {
		l.configureTiles()
		l.cur = done
		l.releaseTiles()
	}
	done.NewRet(nil)

	l.cur = body
	l.set(l.gone, nones)
	l.at64 = at
	l.place3(at)
	l.region(l.f.Body(), &scope{end: l.next})
	l.cur.NewBr(l.next)

	l.cur = l.next
	l.set(counter, l.plus(at, i64(1)))
	l.next.NewBr(head)

	l.cur = l.entry
	l.set(counter, l.first)
	l.entry.NewBr(head)
}

// arrays finds the shared arrays in the scratch memory: those of longer elements first, so that all
// are aligned without gaps.
func (l *lowering) arrays() {
	list := l.f.Arrays()
	l.shared = make([]value.Value, len(list))
	offset := value.Value(i64(0))
	for _, size := range []int{16, 8, 4} {
		for i, a := range list {
			if a.Elem().Size() != size {
				continue
			}
			l.shared[i] = l.at(types.I8, l.scratch, offset)
			offset = l.plus(offset, l.times(l.zext(l.scalar(a.Length()), types.I64), i64(int64(size))))
		}
	}
}

// place3 finds the place of workgroup `at` in the grid.
func (l *lowering) place3(at value.Value) {
	used := [3]bool{}
	l.f.Body().Walk(func(n *kernel.Node) {
		if b := int(n.Imm()) - int(kernel.WorkgroupIDX); n.Op() == kernel.OpBuiltin && b >= 0 && b < 3 {
			used[b] = true
		}
	})
	rest := l.trunc(at, types.I32)
	for i := range l.ids {
		size := l.gridSize(i)
		if !used[0] && !used[1] && !used[2] {
			break
		}
		if i == 2 || !used[1] && !used[2] {
			l.ids[i] = rest
			if i == 0 { // more rows than one are counted all the same
				l.ids[i] = add(l.emitter, ir.NewURem(rest, size))
			}
			break
		}
		l.ids[i] = add(l.emitter, ir.NewURem(rest, size))
		rest = add(l.emitter, ir.NewUDiv(rest, size))
	}
}

// gridSize is read in the entry block, and never 0.
func (l *lowering) gridSize(dim int) (size value.Value) {
	l.once(func() {
		load := ir.NewLoad(types.I32, l.at(types.I32, l.grid, i64(int64(dim))))
		load.Align = 4
		l.do(load)
		size = l.same("umax", load, i32(1))
	})
	return size
}

func (l *lowering) region(r *kernel.Region, s *scope) {
	for _, n := range r.Nodes() {
		l.node(n, s)
		if l.leaves[n] {
			l.missing(n, s)
		}
	}
}

// missing takes lanes out that may have returned.
func (l *lowering) missing(n *kernel.Node, s *scope) {
	s.mask = l.remaining(s.mask)
	stay := l.block()
	l.cur.NewCondBr(l.anyLane(s.mask), stay, s.end)
	l.cur = stay
}

// loopAround returns the innermost loop around a region, nil if there is none.
func (l *lowering) loopAround(r *kernel.Region) *kernel.Node {
	for {
		p, ok := l.parents[r]
		if !ok {
			return nil
		}
		if p.node.Op() == kernel.OpFor {
			return p.node
		}
		r = p.region
	}
}

// remaining returns the lanes of a mask that have not returned.
func (l *lowering) remaining(mask value.Value) value.Value {
	return l.among(mask, l.not(l.get(l.gone)))
}

// among returns the lanes of a mask (nil: all) in which cond holds. What cond is in other lanes
// does not matter, even if it is undefined.
func (l *lowering) among(mask, cond value.Value) value.Value {
	if count(cond) == 0 {
		cond = l.splat(cond)
	}
	if mask == nil {
		return cond
	}
	return l.choose(mask, cond, nones)
}

func (l *lowering) anyLane(mask value.Value) value.Value {
	if mask == nil {
		return literal{types.I1, "true"}
	}
	bits := l.bitcast(l.freeze(mask), types.I16)
	return l.icmp(enum.IPredNE, bits, l.k(bits, 0))
}

// full returns a mask as a vector.
func full(mask value.Value) value.Value {
	if mask == nil {
		return ones
	}
	return mask
}

// elemType is how a scalar is held.
func elemType(t kernel.Type) types.Type {
	switch t.Elem() {
	case kernel.Bool:
		return types.I1
	case kernel.F32:
		return types.Float
	}
	return types.I32
}

// elem returns element e of a value as a scalar, which must not vary.
func (l *lowering) elem(n *kernel.Node, e int) value.Value {
	if s, ok := l.shorts[n]; ok {
		delete(l.shorts, n)
		l.values[n] = []value.Value{l.whole(s)}
	}
	v, ok := l.values[n]
	if !ok {
		l.once(func() { v = l.static(n) })
		l.values[n] = v
	}
	return v[e]
}

func (l *lowering) scalar(n *kernel.Node) value.Value { return l.elem(n, 0) }

// lanes returns element e of a value, one for each lane.
func (l *lowering) lanes(n *kernel.Node, e int) value.Value {
	v := l.elem(n, e)
	if l.varying[n] {
		return v
	}
	if _, ok := v.(literal); ok {
		return l.splat(v)
	}
	key := wideKey{n, e, l.cur}
	w, ok := l.wides[key]
	if !ok {
		w = l.splat(v)
		l.wides[key] = w
	}
	return w
}

// operand returns element e of a value in the shape of a result that varies or not. Values of one
// element serve for every element.
func (l *lowering) operand(n *kernel.Node, e int, varying bool) value.Value {
	if n.Type().Lanes() == 1 {
		e = 0
	}
	if varying {
		return l.lanes(n, e)
	}
	return l.elem(n, e)
}

// static computes what is known before a kernel runs.
func (l *lowering) static(n *kernel.Node) []value.Value {
	switch n.Op() {
	case kernel.OpConst:
		return []value.Value{constantOf(n.Type(), n.Imm())}
	case kernel.OpSpec:
		s := l.f.Spec[n.Imm()]
		if v, ok := l.spec[s.ID]; ok {
			return []value.Value{constantOf(s.Type, v)}
		}
		v := ir.NewLoad(elemType(s.Type), l.at(types.I32, l.consts, i64(int64(s.ID))))
		v.Align = 4
		v.Metadata = append(v.Metadata, l.fixed)
		l.do(v)
		return []value.Value{v}
	case kernel.OpVec:
		var list []value.Value
		for _, a := range n.Args() {
			list = append(list, l.scalar(a))
		}
		return list
	}
	if v, ok := l.folded(n); ok {
		return []value.Value{constantOf(n.Type(), v)}
	}
	return l.compute(n, nil)
}

// folded computes a static scalar of constants that are all fixed.
func (l *lowering) folded(n *kernel.Node) (uint32, bool) {
	var fixed func(n *kernel.Node) bool
	fixed = func(n *kernel.Node) bool {
		if n.Op() == kernel.OpSpec {
			_, ok := l.spec[l.f.Spec[n.Imm()].ID]
			return ok
		}
		for _, a := range n.Args() {
			if !fixed(a) {
				return false
			}
		}
		return true
	}
	if !fixed(n) {
		return 0, false
	}
	v, err := l.f.Eval(n, l.spec)
	if err != nil {
		l.fail("%v", err)
	}
	return v, err == nil
}

func constantOf(t kernel.Type, bits uint32) value.Value {
	switch t.Elem() {
	case kernel.Bool:
		return literal{types.I1, []string{"false", "true"}[bits&1]}
	case kernel.F32:
		return literal{types.Float, floatBits(bits)}
	}
	return i32(int64(int32(bits)))
}
