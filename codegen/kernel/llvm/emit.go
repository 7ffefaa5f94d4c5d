package llvm

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/metadata"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// Lanes is the size of the subgroup: a vector has an element for each lane.
const Lanes = 16

// Ptr is LLVM's opaque pointer, which llir, of the time of LLVM 14, does not have. Its
// constructors of stores, addresses and atomics refuse it, so those are literals here.
type Ptr struct{}

func (*Ptr) String() string          { return "ptr" }
func (p *Ptr) LLString() string      { return p.String() }
func (*Ptr) Equal(u types.Type) bool { _, ok := u.(*Ptr); return ok }
func (*Ptr) Name() string            { return "" }
func (*Ptr) SetName(string)          {}

var ptr = &Ptr{}

// literal is a constant in LLVM's own words.
type literal struct {
	typ  types.Type
	text string
}

func (l literal) String() string   { return l.typ.String() + " " + l.text }
func (l literal) Type() types.Type { return l.typ }
func (l literal) Ident() string    { return l.text }

// place is an alloca as a value of type Ptr.
type place struct{ *ir.InstAlloca }

func (p place) String() string   { return "ptr " + p.Ident() }
func (p place) Type() types.Type { return ptr }

// emitter appends instructions to a block of a function. Operations work on scalars and on
// vectors, as LLVM's do.
type emitter struct {
	m     *ir.Module
	fn    *ir.Func
	entry *ir.Block // of allocas and of what is computed once
	cur   *ir.Block
	calls map[string]*ir.Func // declared intrinsics
	fixed *metadata.Attachment
}

func (e *emitter) do(i ir.Instruction) { e.cur.Insts = append(e.cur.Insts, i) }

// add appends an instruction and returns its result.
func add[I interface {
	ir.Instruction
	value.Value
}](e *emitter, i I) value.Value {
	e.do(i)
	return i
}

func (e *emitter) block() *ir.Block { return e.fn.NewBlock("") }

// goTo ends the block and goes on in another.
func (e *emitter) goTo(b *ir.Block) {
	e.cur.NewBr(b)
	e.cur = b
}

// once emits into the entry block.
func (e *emitter) once(f func()) {
	cur := e.cur
	e.cur = e.entry
	f()
	e.cur = cur
}

func vector(t types.Type, n int) types.Type { return types.NewVector(uint64(n), t) }

// wide returns the type of one t a lane.
func wide(t types.Type) types.Type { return vector(t, Lanes) }

// count returns the elements of a vector, 0 of a scalar.
func count(v value.Value) int {
	if t, ok := v.Type().(*types.VectorType); ok {
		return int(t.Len)
	}
	return 0
}

// like returns the scalar type t, or vectors of it where v is a vector.
func like(v value.Value, t types.Type) types.Type {
	if n := count(v); n > 0 {
		return vector(t, n)
	}
	return t
}

func repeated(t types.Type, n int, elem func(i int) string) literal {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = t.String() + " " + elem(i)
	}
	return literal{vector(t, n), "<" + strings.Join(parts, ", ") + ">"}
}

// k returns the integer x in the shape of v, of the type of its elements.
func (e *emitter) k(v value.Value, x int64) value.Value {
	elem := v.Type()
	if t, ok := elem.(*types.VectorType); ok {
		elem = t.ElemType
	}
	if t, ok := elem.(*types.IntType); ok && t.BitSize > 1 { // as a signed number
		x = x << (64 - t.BitSize) >> (64 - t.BitSize)
	}
	text := fmt.Sprint(x)
	if t, ok := v.Type().(*types.VectorType); ok {
		return repeated(t.ElemType, int(t.Len), func(int) string { return text })
	}
	if v.Type().Equal(types.I1) {
		text = []string{"false", "true"}[x&1]
	}
	return literal{v.Type(), text}
}

// kf is k for a float.
func (e *emitter) kf(v value.Value, x float64) value.Value {
	text := floatText(x)
	if t, ok := v.Type().(*types.VectorType); ok {
		return repeated(t.ElemType, int(t.Len), func(int) string { return text })
	}
	return literal{v.Type(), text}
}

// floatText is exact for floats and doubles: LLVM writes both as doubles.
func floatText(x float64) string { return fmt.Sprintf("0x%016X", math.Float64bits(x)) }

func i32(x int64) value.Value { return literal{types.I32, fmt.Sprint(int32(x))} }
func i64(x int64) value.Value { return literal{types.I64, fmt.Sprint(x)} }

var (
	ones  = repeated(types.I1, Lanes, func(int) string { return "true" })
	nones = repeated(types.I1, Lanes, func(int) string { return "false" })
	iota_ = repeated(types.I32, Lanes, func(i int) string { return fmt.Sprint(i) })
)

// splat returns the scalar x in all lanes.
func (e *emitter) splat(x value.Value) value.Value { return e.splatN(x, Lanes) }

func (e *emitter) splatN(x value.Value, n int) value.Value {
	if l, ok := x.(literal); ok {
		return repeated(l.typ, n, func(int) string { return l.text })
	}
	t := vector(x.Type(), n)
	one := add(e, ir.NewInsertElement(literal{t, "poison"}, x, i32(0)))
	return e.shuffle(one, one, n, func(int) int { return 0 })
}

// shuffle returns n elements of x and y, one after the other.
func (e *emitter) shuffle(x, y value.Value, n int, from func(i int) int) value.Value {
	mask := repeated(types.I32, n, func(i int) string { return fmt.Sprint(from(i)) })
	elem := x.Type().(*types.VectorType).ElemType
	return add(e, &ir.InstShuffleVector{X: x, Y: y, Mask: mask, Typ: types.NewVector(uint64(n), elem)})
}

func (e *emitter) extract(x value.Value, i value.Value) value.Value {
	return add(e, ir.NewExtractElement(x, i))
}

func (e *emitter) insert(x, v, i value.Value) value.Value {
	return add(e, ir.NewInsertElement(x, v, i))
}

func (e *emitter) plus(x, y value.Value) value.Value  { return add(e, ir.NewAdd(x, y)) }
func (e *emitter) minus(x, y value.Value) value.Value { return add(e, ir.NewSub(x, y)) }
func (e *emitter) times(x, y value.Value) value.Value { return add(e, ir.NewMul(x, y)) }
func (e *emitter) and(x, y value.Value) value.Value   { return add(e, ir.NewAnd(x, y)) }
func (e *emitter) or(x, y value.Value) value.Value    { return add(e, ir.NewOr(x, y)) }
func (e *emitter) xor(x, y value.Value) value.Value   { return add(e, ir.NewXor(x, y)) }
func (e *emitter) shl(x, y value.Value) value.Value   { return add(e, ir.NewShl(x, y)) }
func (e *emitter) lshr(x, y value.Value) value.Value  { return add(e, ir.NewLShr(x, y)) }
func (e *emitter) ashr(x, y value.Value) value.Value  { return add(e, ir.NewAShr(x, y)) }

func (e *emitter) icmp(p enum.IPred, x, y value.Value) value.Value {
	return add(e, ir.NewICmp(p, x, y))
}

func (e *emitter) fcmp(p enum.FPred, x, y value.Value) value.Value {
	return add(e, ir.NewFCmp(p, x, y))
}

func (e *emitter) choose(cond, x, y value.Value) value.Value {
	return add(e, &ir.InstSelect{Cond: cond, ValueTrue: x, ValueFalse: y, Typ: x.Type()})
}

func (e *emitter) not(x value.Value) value.Value {
	if x.Type().Equal(types.I1) {
		return e.xor(x, literal{types.I1, "true"})
	}
	if t, ok := x.Type().(*types.VectorType); ok && t.ElemType.Equal(types.I1) {
		return e.xor(x, ones)
	}
	return e.xor(x, e.k(x, -1))
}

func (e *emitter) bitcast(x value.Value, t types.Type) value.Value {
	if x.Type().Equal(t) {
		return x
	}
	return add(e, ir.NewBitCast(x, t))
}

func (e *emitter) zext(x value.Value, t types.Type) value.Value {
	return add(e, &ir.InstZExt{From: x, To: t})
}
func (e *emitter) sext(x value.Value, t types.Type) value.Value {
	return add(e, &ir.InstSExt{From: x, To: t})
}
func (e *emitter) trunc(x value.Value, t types.Type) value.Value {
	return add(e, &ir.InstTrunc{From: x, To: t})
}
func (e *emitter) freeze(x value.Value) value.Value {
	return add(e, &ir.InstFreeze{X: x, Typ: x.Type()})
}

// call calls an intrinsic, declared by its arguments' types.
func (e *emitter) call(name string, ret types.Type, args ...value.Value) value.Value {
	f, ok := e.calls[name]
	if !ok {
		var params []*ir.Param
		for _, a := range args {
			params = append(params, ir.NewParam("", a.Type()))
		}
		f = e.m.NewFunc(name, ret, params...)
		e.calls[name] = f
	}
	c := &ir.InstCall{Callee: f, Args: slices.Clone(args)}
	e.do(c)
	return c
}

// suffix is how intrinsics name a type: v16f32, i32.
func suffix(t types.Type) string {
	switch t := t.(type) {
	case *types.VectorType:
		return fmt.Sprintf("v%d%s", t.Len, suffix(t.ElemType))
	case *types.FloatType:
		return map[types.FloatKind]string{types.FloatKindFloat: "f32", types.FloatKindDouble: "f64", types.FloatKindHalf: "f16"}[t.Kind]
	case *Ptr:
		return "p0"
	}
	return t.String()
}

// same calls an intrinsic whose result has the type of its operands.
func (e *emitter) same(name string, args ...value.Value) value.Value {
	t := args[0].Type()
	return e.call("llvm."+name+"."+suffix(t), t, args...)
}

// alloca returns room for a t, made once.
func (e *emitter) alloca(t types.Type) place {
	a := &ir.InstAlloca{ElemType: t, Align: 64}
	e.entry.Insts = append([]ir.Instruction{a}, e.entry.Insts...)
	return place{a}
}

func (e *emitter) load(t types.Type, from value.Value, align int) value.Value {
	l := ir.NewLoad(t, from)
	l.Align = ir.Align(align)
	e.do(l)
	return l
}

func (e *emitter) store(x, to value.Value, align int) {
	e.do(&ir.InstStore{Src: x, Dst: to, Align: ir.Align(align)})
}

// get and set access an alloca.
func (e *emitter) get(p place) value.Value    { return e.load(p.ElemType, p, 0) }
func (e *emitter) set(p place, x value.Value) { e.store(x, p, 0) }

// at returns the address that lies some elements of t behind p; vectors of offsets give
// vectors of addresses.
func (e *emitter) at(t types.Type, p value.Value, offset value.Value) value.Value {
	var typ types.Type = ptr
	if n := max(count(offset), count(p)); n > 0 {
		typ = vector(ptr, n)
	}
	return add(e, &ir.InstGetElementPtr{ElemType: t, Src: p, Indices: []value.Value{offset}, Typ: typ})
}
