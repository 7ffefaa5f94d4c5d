package kernel

import (
	"fmt"
	"math"
	"path"
	"runtime"
	"sort"
	"strings"
)

// Value is a run-time value of one lane. Values are immutable, made by the
// methods of a Builder, and usable in the region (the body of a loop or of an
// if) that made them and in regions inside of it.
type Value struct{ n *Node }

// Type returns the type of the value.
func (v Value) Type() Type {
	if v.n == nil {
		return Void
	}
	return v.n.typ
}

// Operand is a Value, or a Go number or bool (int, int32, uint32, float32,
// float64, bool) that takes the type of the operation's other operands, or the
// type that the operation asks for; for a vector type it is repeated in each
// element. A number that the type cannot represent is an error; float64 is
// rounded to F32.
type Operand any

// Builder records a kernel. Its methods, and those of the Buffers, Arrays and
// Vars that it makes, append to the region that is being built. A mistake (an
// operand of the wrong type, a value used outside of its region, ...) does not
// panic: the first one becomes the error of Build, with the file and line of the
// call, and recording goes on with a value of the right type.
type Builder struct {
	f        *Func
	cur      *Region
	err      error
	names    map[string]bool
	statics  map[string]*Node
	features map[string]bool
	// extensions are of Vulkan, subgroup the classes of subgroup operations.
	extensions map[string]bool
	subgroup   map[string]bool
	// from is the first workgroup of those that count, see WorkgroupsFrom.
	from *Value
}

// Build runs body over a new Builder and returns the recorded kernel. The name is
// for people: of listings and errors.
func Build(name string, body func(b *Builder)) (*Func, error) {
	b := &Builder{
		f:        &Func{Name: name, body: &Region{open: true}},
		names:    map[string]bool{},
		statics:  map[string]*Node{},
		features: map[string]bool{"bufferDeviceAddress": true, "vulkanMemoryModel": true},
		subgroup: map[string]bool{}, extensions: map[string]bool{},
	}
	b.cur = b.f.body
	body(b)
	b.fillTables()
	b.f.body.open = false
	if b.err == nil && b.f.workgroup == nil {
		b.err = fmt.Errorf("no workgroup size")
	}
	if b.err == nil && len(b.f.Args) == 0 {
		b.err = fmt.Errorf("no arguments")
	}
	if b.err != nil {
		return nil, fmt.Errorf("kernel %s: %w", name, b.err)
	}
	b.f.Features = sortedKeys(b.features)
	b.f.Extensions = sortedKeys(b.extensions)
	b.f.SubgroupOps = sortedKeys(b.subgroup)
	b.f.number()
	return b.f, nil
}

// number numbers the nodes, those without a region, too, as operands have them.
func (f *Func) number() {
	seen := map[*Node]bool{}
	var visit func(n *Node)
	visit = func(n *Node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		n.number = f.nodes
		f.nodes++
		for _, a := range n.args {
			visit(a)
		}
		for _, r := range n.regions {
			visit(r.param)
		}
	}
	f.body.walk(visit)
}

func sortedKeys(m map[string]bool) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// Arg declares the next argument.
func (b *Builder) Arg(name string, access Access) *Buffer {
	if access < Read || access > ReadWrite {
		b.fail("argument %q: bad %v", name, access)
	}
	b.name("argument", name)
	b.f.Args = append(b.f.Args, Arg{Name: name, Access: access})
	return &Buffer{b: b, index: len(b.f.Args) - 1, access: access}
}

// SpecU32 declares the next specialization constant, of type U32.
func (b *Builder) SpecU32(name string, def uint32) Value {
	return b.spec(name, U32, def)
}

// SpecF32 declares the next specialization constant, of type F32.
func (b *Builder) SpecF32(name string, def float32) Value {
	return b.spec(name, F32, math.Float32bits(def))
}

func (b *Builder) spec(name string, t Type, bits uint32) Value {
	b.name("specialization constant", name)
	i := uint32(len(b.f.Spec))
	b.f.Spec = append(b.f.Spec, SpecConst{ID: i, Name: name, Type: t, Default: bits})
	n := &Node{op: OpSpec, typ: t, imm: i}
	b.f.specNodes = append(b.f.specNodes, n)
	return Value{n}
}

func (b *Builder) name(what, name string) {
	if name == "" || b.names[name] {
		b.fail("%s %q: the name is empty or taken", what, name)
	}
	b.names[name] = true
}

// Workgroup sets the number of invocations of a workgroup, which has one
// dimension: a Go int, or a Value known at specialization time. Every kernel
// sets it, to one number.
func (b *Builder) Workgroup(size Operand) {
	n := b.static("workgroup size", size)
	switch {
	case n == nil:
	case b.f.workgroup != nil && b.f.workgroup != n:
		b.fail("workgroup size set to two numbers")
	default:
		b.f.workgroup = n
	}
}

// WorkgroupSize returns what Workgroup has set, as U32.
func (b *Builder) WorkgroupSize() Value {
	if b.f.workgroup == nil {
		b.fail("workgroup size read before it is set")
		return b.poison(U32)
	}
	return Value{b.f.workgroup}
}

// static returns x as a U32 node known at specialization time, or nil.
func (b *Builder) static(what string, x Operand) *Node {
	v := b.operand(x, U32)
	if v.Type() != U32 || !v.n.static() {
		b.fail("%s: %v that is not known at specialization time", what, v.Type())
		return nil
	}
	if v.n.op == OpConst && v.n.imm == 0 {
		b.fail("%s: 0", what)
		return nil
	}
	return v.n
}

// fail records the first mistake, with the place of the caller's call.
func (b *Builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf("%s: %s", callSite(), fmt.Sprintf(format, args...))
	}
}

// callSite returns folder/file.go:line of the innermost frame outside of this
// package.
func callSite() string {
	self := ownFrame()
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, self) {
			return path.Join(path.Base(path.Dir(f.File)), path.Base(f.File)) + fmt.Sprintf(":%d", f.Line)
		}
		if !more {
			return "unknown place"
		}
	}
}

// ownFrame returns the prefix of the names of this package's functions.
func ownFrame() string {
	pc, _, _, _ := runtime.Caller(0)
	name := runtime.FuncForPC(pc).Name()
	return strings.TrimSuffix(name, "ownFrame")
}

// poison stands for the result of an operation that was refused.
func (b *Builder) poison(t Type) Value { return Value{&Node{op: OpConst, typ: t}} }

// visible checks that v may be used in the current region.
func (b *Builder) visible(v Value) Value {
	switch {
	case v.n == nil:
		b.fail("the zero Value as operand")
		return b.poison(U32)
	case v.n.region != nil && !v.n.region.open:
		b.fail("%s used outside of the region that made it", ops[v.n.op].name)
		return b.poison(v.n.typ)
	}
	return v
}

// operand returns x as a Value; a Go number takes the type t.
func (b *Builder) operand(x Operand, t Type) Value {
	if v, ok := x.(Value); ok {
		return b.visible(v)
	}
	if !t.valid() {
		b.fail("%v of type %v", x, t)
		return b.poison(t)
	}
	bits, ok := literal(x, t.Elem())
	if !ok {
		b.fail("%T %v as %v", x, x, t)
	}
	e := b.constant(t.Elem(), bits)
	if t.Lanes() == 1 {
		return e
	}
	return b.Splat(e, t.Lanes())
}

// literal returns the bits of a Go number as the scalar type t.
func literal(x any, t Type) (uint32, bool) {
	var f float64
	switch x := x.(type) {
	case bool:
		if t != Bool {
			return 0, false
		}
		if x {
			return 1, true
		}
		return 0, true
	case int:
		f = float64(x)
	case int32:
		f = float64(x)
	case uint32:
		f = float64(x)
	case float32:
		f = float64(x)
		if t != F32 {
			return 0, false
		}
	case float64:
		f = x
		if t != F32 {
			return 0, false
		}
		return math.Float32bits(float32(f)), true
	default:
		return 0, false
	}
	switch t {
	case U32:
		return uint32(f), f >= 0 && f <= math.MaxUint32
	case I32:
		return uint32(int32(f)), f >= math.MinInt32 && f <= math.MaxInt32
	case F32:
		return math.Float32bits(float32(f)), float64(float32(f)) == f || f != f
	}
	return 0, false
}

// same returns the operands as Values of one type, which has one of the kinds.
// The first Value decides the type.
func (b *Builder) same(o Op, k kinds, xs ...Operand) []*Node {
	t := Void
	for _, x := range xs {
		if v, ok := x.(Value); ok {
			t = b.visible(v).Type()
			break
		}
	}
	if t == Void {
		b.fail("%s of Go numbers only: compute it in Go", ops[o].name)
		t = U32
	}
	ns := make([]*Node, len(xs))
	for i, x := range xs {
		ns[i] = b.operand(x, t).n
		if ns[i].typ != t {
			b.fail("%s of %v and %v", ops[o].name, t, ns[i].typ)
		}
	}
	if !k.has(t) {
		b.fail("%s of %v", ops[o].name, t)
	}
	return ns
}

// typed returns x as a node of type t.
func (b *Builder) typed(o Op, x Operand, t Type) *Node {
	v := b.operand(x, t)
	if v.Type() != t {
		b.fail("%s: operand of type %v, want %v", ops[o].name, v.Type(), t)
		return b.poison(t).n
	}
	return v.n
}

// need records a Vulkan device feature.
func (b *Builder) need(feature string) { b.features[feature] = true }

// add appends a node to the current region.
func (b *Builder) add(n *Node) Value {
	n.region = b.cur
	if n.op.placed() {
		n.at = here()
	}
	b.cur.nodes = append(b.cur.nodes, n)
	if c := ops[n.op].subgroup; c != "" {
		b.subgroup[c] = true
	}
	return Value{n}
}

// emit makes the result of an operation: at specialization time if that is
// possible, else in the current region.
func (b *Builder) emit(o Op, t Type, args ...*Node) Value {
	if !ops[o].fold || t.Lanes() > 1 {
		return b.add(&Node{op: o, typ: t, args: args})
	}
	bits := make([]uint32, len(args))
	literals := true
	for i, a := range args {
		// Floats are left to the device: SPIR-V cannot fold them.
		if !a.static() || a.typ == F32 || a.typ.Lanes() > 1 {
			return b.add(&Node{op: o, typ: t, args: args})
		}
		bits[i] = a.imm
		literals = literals && a.op == OpConst
	}
	if !literals {
		return b.staticNode(o, t, args)
	}
	v, err := foldOp(o, args[0].typ, bits)
	if err != nil {
		b.fail("%v", err)
	}
	return b.constant(t, v)
}

// staticNode returns the one node of a static expression.
func (b *Builder) staticNode(o Op, t Type, args []*Node) Value {
	key := fmt.Sprintf("op %d %d", o, t)
	for _, a := range args {
		key += fmt.Sprintf(" %p", a)
	}
	n, ok := b.statics[key]
	if !ok {
		n = &Node{op: o, typ: t, args: args}
		b.statics[key] = n
	}
	return Value{n}
}

func (b *Builder) constant(t Type, bits uint32) Value {
	key := fmt.Sprintf("%d %d", t, bits)
	n, ok := b.statics[key]
	if !ok {
		n = &Node{op: OpConst, typ: t, imm: bits}
		b.statics[key] = n
	}
	return Value{n}
}
