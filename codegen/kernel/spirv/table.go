package spirv

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/spirv"
)

// instr is how an operation on one scalar type is said in SPIR-V: a core
// instruction, or one of GLSL.std.450.
type instr struct {
	op   spirv.Op
	glsl uint32
}

// byKind is indexed by the scalar type of the operands.
type byKind [kernel.F32 + 1]instr

func core(o spirv.Op) instr   { return instr{op: o} }
func glsl(ext uint32) instr   { return instr{op: spirv.OpExtInst, glsl: ext} }
func ints(o spirv.Op) byKind  { return byKind{kernel.U32: core(o), kernel.I32: core(o)} }
func float(ext uint32) byKind { return byKind{kernel.F32: glsl(ext)} }

func all(o spirv.Op) byKind {
	return byKind{kernel.Bool: core(o), kernel.U32: core(o), kernel.I32: core(o), kernel.F32: core(o)}
}

// plain has the operations whose operands are those of the SPIR-V instruction.
var plain = map[kernel.Op]byKind{
	kernel.OpAdd:         {kernel.U32: core(spirv.OpIAdd), kernel.I32: core(spirv.OpIAdd), kernel.F32: core(spirv.OpFAdd)},
	kernel.OpSub:         {kernel.U32: core(spirv.OpISub), kernel.I32: core(spirv.OpISub), kernel.F32: core(spirv.OpFSub)},
	kernel.OpMul:         {kernel.U32: core(spirv.OpIMul), kernel.I32: core(spirv.OpIMul), kernel.F32: core(spirv.OpFMul)},
	kernel.OpDiv:         {kernel.U32: core(spirv.OpUDiv), kernel.I32: core(spirv.OpSDiv), kernel.F32: core(spirv.OpFDiv)},
	kernel.OpMod:         {kernel.U32: core(spirv.OpUMod), kernel.I32: core(spirv.OpSRem)},
	kernel.OpShl:         ints(spirv.OpShiftLeftLogical),
	kernel.OpShr:         {kernel.U32: core(spirv.OpShiftRightLogical), kernel.I32: core(spirv.OpShiftRightArithmetic)},
	kernel.OpAnd:         {kernel.Bool: core(spirv.OpLogicalAnd), kernel.U32: core(spirv.OpBitwiseAnd), kernel.I32: core(spirv.OpBitwiseAnd)},
	kernel.OpOr:          {kernel.Bool: core(spirv.OpLogicalOr), kernel.U32: core(spirv.OpBitwiseOr), kernel.I32: core(spirv.OpBitwiseOr)},
	kernel.OpXor:         ints(spirv.OpBitwiseXor),
	kernel.OpMin:         {kernel.U32: glsl(spirv.GLSLUMin), kernel.I32: glsl(spirv.GLSLSMin), kernel.F32: glsl(spirv.GLSLFMin)},
	kernel.OpMax:         {kernel.U32: glsl(spirv.GLSLUMax), kernel.I32: glsl(spirv.GLSLSMax), kernel.F32: glsl(spirv.GLSLFMax)},
	kernel.OpNeg:         {kernel.I32: core(spirv.OpSNegate), kernel.F32: core(spirv.OpFNegate)},
	kernel.OpNot:         {kernel.Bool: core(spirv.OpLogicalNot), kernel.U32: core(spirv.OpNot), kernel.I32: core(spirv.OpNot)},
	kernel.OpAbs:         {kernel.I32: glsl(spirv.GLSLSAbs), kernel.F32: glsl(spirv.GLSLFAbs)},
	kernel.OpFMA:         float(spirv.GLSLFma),
	kernel.OpSqrt:        float(spirv.GLSLSqrt),
	kernel.OpInverseSqrt: float(spirv.GLSLInverseSqrt),
	kernel.OpExp:         float(spirv.GLSLExp),
	kernel.OpExp2:        float(spirv.GLSLExp2),
	kernel.OpSelect:      {kernel.Bool: core(spirv.OpSelect)}, // by the condition
	kernel.OpBitExtract:  {kernel.U32: core(spirv.OpBitFieldUExtract), kernel.I32: core(spirv.OpBitFieldSExtract)},

	kernel.OpEq:    {kernel.Bool: core(spirv.OpLogicalEqual), kernel.U32: core(spirv.OpIEqual), kernel.I32: core(spirv.OpIEqual), kernel.F32: core(spirv.OpFOrdEqual)},
	kernel.OpNe:    {kernel.Bool: core(spirv.OpLogicalNotEqual), kernel.U32: core(spirv.OpINotEqual), kernel.I32: core(spirv.OpINotEqual), kernel.F32: core(spirv.OpFUnordNotEqual)},
	kernel.OpLt:    {kernel.U32: core(spirv.OpULessThan), kernel.I32: core(spirv.OpSLessThan), kernel.F32: core(spirv.OpFOrdLessThan)},
	kernel.OpLe:    {kernel.U32: core(spirv.OpULessThanEqual), kernel.I32: core(spirv.OpSLessThanEqual), kernel.F32: core(spirv.OpFOrdLessThanEqual)},
	kernel.OpGt:    {kernel.U32: core(spirv.OpUGreaterThan), kernel.I32: core(spirv.OpSGreaterThan), kernel.F32: core(spirv.OpFOrdGreaterThan)},
	kernel.OpGe:    {kernel.U32: core(spirv.OpUGreaterThanEqual), kernel.I32: core(spirv.OpSGreaterThanEqual), kernel.F32: core(spirv.OpFOrdGreaterThanEqual)},
	kernel.OpIsNaN: {kernel.F32: core(spirv.OpIsNan)},

	kernel.OpBitcast:    all(spirv.OpBitcast),
	kernel.OpUnpackHalf: {kernel.U32: glsl(spirv.GLSLUnpackHalf2x16)},
}

// fromTo is the type of a conversion's operand and of its result.
type fromTo struct{ from, to kernel.Type }

var conversions = map[fromTo]spirv.Op{
	{kernel.U32, kernel.F32}: spirv.OpConvertUToF,
	{kernel.I32, kernel.F32}: spirv.OpConvertSToF,
	{kernel.F32, kernel.U32}: spirv.OpConvertFToU,
	{kernel.F32, kernel.I32}: spirv.OpConvertFToS,
}

// group is how a subgroup operation is said: the instruction by operand type,
// and whether a group operation stands between the scope and the operands.
type group struct {
	instr     byKind
	how       spirv.GroupOperation
	operation bool
}

var sums = byKind{
	kernel.U32: core(spirv.OpGroupNonUniformIAdd), kernel.I32: core(spirv.OpGroupNonUniformIAdd), kernel.F32: core(spirv.OpGroupNonUniformFAdd),
}

var groups = map[kernel.Op]group{
	kernel.OpSubgroupAdd: {sums, spirv.GroupOperationReduce, true},
	kernel.OpSubgroupMax: {byKind{
		kernel.U32: core(spirv.OpGroupNonUniformUMax), kernel.I32: core(spirv.OpGroupNonUniformSMax), kernel.F32: core(spirv.OpGroupNonUniformFMax),
	}, spirv.GroupOperationReduce, true},
	kernel.OpSubgroupMin: {byKind{
		kernel.U32: core(spirv.OpGroupNonUniformUMin), kernel.I32: core(spirv.OpGroupNonUniformSMin), kernel.F32: core(spirv.OpGroupNonUniformFMin),
	}, spirv.GroupOperationReduce, true},
	kernel.OpSubgroupExclusiveAdd: {sums, spirv.GroupOperationExclusiveScan, true},
	kernel.OpSubgroupShuffle:      {instr: all(spirv.OpGroupNonUniformShuffle)},
	kernel.OpSubgroupShuffleXor:   {instr: all(spirv.OpGroupNonUniformShuffleXor)},
	kernel.OpSubgroupElect:        {instr: byKind{kernel.Void: core(spirv.OpGroupNonUniformElect)}},
	kernel.OpSubgroupAny:          {instr: all(spirv.OpGroupNonUniformAny)},
}

var subgroupCapabilities = map[string]spirv.Capability{
	"basic":      spirv.CapabilityGroupNonUniform,
	"vote":       spirv.CapabilityGroupNonUniformVote,
	"arithmetic": spirv.CapabilityGroupNonUniformArithmetic,
	"shuffle":    spirv.CapabilityGroupNonUniformShuffle,
}

// input is where a builtin comes from: an input variable, and for those of three
// dimensions which.
type input struct {
	builtin spirv.BuiltIn
	vector  bool
	dim     uint32
}

var inputs = [kernel.NumBuiltins]input{
	kernel.SubgroupLane:   {builtin: spirv.BuiltInSubgroupLocalInvocationId},
	kernel.SubgroupID:     {builtin: spirv.BuiltInSubgroupId},
	kernel.NumSubgroups:   {builtin: spirv.BuiltInNumSubgroups},
	kernel.LocalID:        {builtin: spirv.BuiltInLocalInvocationIndex},
	kernel.WorkgroupIDX:   {spirv.BuiltInWorkgroupId, true, 0},
	kernel.WorkgroupIDY:   {spirv.BuiltInWorkgroupId, true, 1},
	kernel.WorkgroupIDZ:   {spirv.BuiltInWorkgroupId, true, 2},
	kernel.NumWorkgroupsX: {spirv.BuiltInNumWorkgroups, true, 0},
	kernel.NumWorkgroupsY: {spirv.BuiltInNumWorkgroups, true, 1},
	kernel.NumWorkgroupsZ: {spirv.BuiltInNumWorkgroups, true, 2},
}
