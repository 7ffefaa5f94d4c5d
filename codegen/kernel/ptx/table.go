package ptx

import "github.com/zincc-dev/zincc/codegen/kernel"

// byKind is indexed by the scalar type of the operands.
type byKind [kernel.F32 + 1]string

func ints(s string) byKind  { return byKind{kernel.U32: s, kernel.I32: s} }
func float(s string) byKind { return byKind{kernel.F32: s} }

// plain has the operations that are one instruction an element, with its operands. Division,
// roots and powers of floats are the driver's fast ones: within 2 units in the last place. A quotient by more
// than 2 to the 126 and a power below 2 to the -126 are 0, as they may be through Vulkan.
var plain = map[kernel.Op]byKind{
	kernel.OpAdd:         {kernel.U32: "add.u32", kernel.I32: "add.s32", kernel.F32: "add.rn.f32"},
	kernel.OpSub:         {kernel.U32: "sub.u32", kernel.I32: "sub.s32", kernel.F32: "sub.rn.f32"},
	kernel.OpMul:         {kernel.U32: "mul.lo.u32", kernel.I32: "mul.lo.s32", kernel.F32: "mul.rn.f32"},
	kernel.OpDiv:         {kernel.U32: "div.u32", kernel.I32: "div.s32", kernel.F32: "div.approx.f32"},
	kernel.OpMod:         {kernel.U32: "rem.u32", kernel.I32: "rem.s32"},
	kernel.OpShl:         ints("shl.b32"),
	kernel.OpShr:         {kernel.U32: "shr.u32", kernel.I32: "shr.s32"},
	kernel.OpAnd:         {kernel.Bool: "and.pred", kernel.U32: "and.b32", kernel.I32: "and.b32"},
	kernel.OpOr:          {kernel.Bool: "or.pred", kernel.U32: "or.b32", kernel.I32: "or.b32"},
	kernel.OpXor:         ints("xor.b32"),
	kernel.OpMin:         {kernel.U32: "min.u32", kernel.I32: "min.s32", kernel.F32: "min.f32"},
	kernel.OpMax:         {kernel.U32: "max.u32", kernel.I32: "max.s32", kernel.F32: "max.f32"},
	kernel.OpNeg:         {kernel.I32: "neg.s32", kernel.F32: "neg.f32"},
	kernel.OpNot:         {kernel.Bool: "not.pred", kernel.U32: "not.b32", kernel.I32: "not.b32"},
	kernel.OpAbs:         {kernel.I32: "abs.s32", kernel.F32: "abs.f32"},
	kernel.OpFMA:         float("fma.rn.f32"),
	kernel.OpSqrt:        float("sqrt.approx.f32"),
	kernel.OpInverseSqrt: float("rsqrt.approx.f32"),
	kernel.OpExp2:        float(exp2),
	kernel.OpBitExtract:  {kernel.U32: "bfe.u32", kernel.I32: "bfe.s32"},

	kernel.OpEq:    {kernel.Bool: "xor.pred", kernel.U32: "setp.eq.u32", kernel.I32: "setp.eq.s32", kernel.F32: "setp.eq.f32"},
	kernel.OpNe:    {kernel.Bool: "xor.pred", kernel.U32: "setp.ne.u32", kernel.I32: "setp.ne.s32", kernel.F32: "setp.neu.f32"},
	kernel.OpLt:    {kernel.U32: "setp.lt.u32", kernel.I32: "setp.lt.s32", kernel.F32: "setp.lt.f32"},
	kernel.OpLe:    {kernel.U32: "setp.le.u32", kernel.I32: "setp.le.s32", kernel.F32: "setp.le.f32"},
	kernel.OpGt:    {kernel.U32: "setp.gt.u32", kernel.I32: "setp.gt.s32", kernel.F32: "setp.gt.f32"},
	kernel.OpGe:    {kernel.U32: "setp.ge.u32", kernel.I32: "setp.ge.s32", kernel.F32: "setp.ge.f32"},
	kernel.OpIsNaN: float("testp.notanumber.f32"),
}

// exp2 is the power of 2.
const exp2 = "ex2.approx.ftz.f32"

// fromTo is the type of a conversion's operand and of its result.
type fromTo struct{ from, to kernel.Type }

var conversions = map[fromTo]string{
	{kernel.U32, kernel.F32}: "cvt.rn.f32.u32",
	{kernel.I32, kernel.F32}: "cvt.rn.f32.s32",
	{kernel.F32, kernel.U32}: "cvt.rzi.u32.f32",
	{kernel.F32, kernel.I32}: "cvt.rzi.s32.f32",
}

// log2e is the logarithm of e to base 2: Exp is a power of 2.
const log2e = 0x3fb8aa3b
