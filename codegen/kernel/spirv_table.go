package kernel

import "github.com/zincc-dev/zincc/spirv"

// instr is how an operation on one scalar type is said in SPIR-V: a core
// instruction, or one of GLSL.std.450.
type instr struct {
	op   spirv.Op
	glsl uint32
}

// byKind is indexed by the scalar type of the operands.
type byKind [F32 + 1]instr

func core(o spirv.Op) instr   { return instr{op: o} }
func glsl(ext uint32) instr   { return instr{op: spirv.OpExtInst, glsl: ext} }
func ints(o spirv.Op) byKind  { return byKind{U32: core(o), I32: core(o)} }
func float(ext uint32) byKind { return byKind{F32: glsl(ext)} }

func all(o spirv.Op) byKind {
	return byKind{Bool: core(o), U32: core(o), I32: core(o), F32: core(o)}
}

// plain has the operations whose operands are those of the SPIR-V instruction.
var plain = map[op]byKind{
	opAdd:         {U32: core(spirv.OpIAdd), I32: core(spirv.OpIAdd), F32: core(spirv.OpFAdd)},
	opSub:         {U32: core(spirv.OpISub), I32: core(spirv.OpISub), F32: core(spirv.OpFSub)},
	opMul:         {U32: core(spirv.OpIMul), I32: core(spirv.OpIMul), F32: core(spirv.OpFMul)},
	opDiv:         {U32: core(spirv.OpUDiv), I32: core(spirv.OpSDiv), F32: core(spirv.OpFDiv)},
	opMod:         {U32: core(spirv.OpUMod), I32: core(spirv.OpSRem)},
	opShl:         ints(spirv.OpShiftLeftLogical),
	opShr:         {U32: core(spirv.OpShiftRightLogical), I32: core(spirv.OpShiftRightArithmetic)},
	opAnd:         {Bool: core(spirv.OpLogicalAnd), U32: core(spirv.OpBitwiseAnd), I32: core(spirv.OpBitwiseAnd)},
	opOr:          {Bool: core(spirv.OpLogicalOr), U32: core(spirv.OpBitwiseOr), I32: core(spirv.OpBitwiseOr)},
	opXor:         ints(spirv.OpBitwiseXor),
	opMin:         {U32: glsl(spirv.GLSLUMin), I32: glsl(spirv.GLSLSMin), F32: glsl(spirv.GLSLFMin)},
	opMax:         {U32: glsl(spirv.GLSLUMax), I32: glsl(spirv.GLSLSMax), F32: glsl(spirv.GLSLFMax)},
	opNeg:         {I32: core(spirv.OpSNegate), F32: core(spirv.OpFNegate)},
	opNot:         {Bool: core(spirv.OpLogicalNot), U32: core(spirv.OpNot), I32: core(spirv.OpNot)},
	opAbs:         {I32: glsl(spirv.GLSLSAbs), F32: glsl(spirv.GLSLFAbs)},
	opFMA:         float(spirv.GLSLFma),
	opSqrt:        float(spirv.GLSLSqrt),
	opInverseSqrt: float(spirv.GLSLInverseSqrt),
	opExp:         float(spirv.GLSLExp),
	opExp2:        float(spirv.GLSLExp2),
	opSelect:      {Bool: core(spirv.OpSelect)}, // by the condition
	opBitExtract:  {U32: core(spirv.OpBitFieldUExtract), I32: core(spirv.OpBitFieldSExtract)},

	opEq:    {Bool: core(spirv.OpLogicalEqual), U32: core(spirv.OpIEqual), I32: core(spirv.OpIEqual), F32: core(spirv.OpFOrdEqual)},
	opNe:    {Bool: core(spirv.OpLogicalNotEqual), U32: core(spirv.OpINotEqual), I32: core(spirv.OpINotEqual), F32: core(spirv.OpFUnordNotEqual)},
	opLt:    {U32: core(spirv.OpULessThan), I32: core(spirv.OpSLessThan), F32: core(spirv.OpFOrdLessThan)},
	opLe:    {U32: core(spirv.OpULessThanEqual), I32: core(spirv.OpSLessThanEqual), F32: core(spirv.OpFOrdLessThanEqual)},
	opGt:    {U32: core(spirv.OpUGreaterThan), I32: core(spirv.OpSGreaterThan), F32: core(spirv.OpFOrdGreaterThan)},
	opGe:    {U32: core(spirv.OpUGreaterThanEqual), I32: core(spirv.OpSGreaterThanEqual), F32: core(spirv.OpFOrdGreaterThanEqual)},
	opIsNaN: {F32: core(spirv.OpIsNan)},

	opBitcast:    all(spirv.OpBitcast),
	opUnpackHalf: {U32: glsl(spirv.GLSLUnpackHalf2x16)},
	opPackHalf:   float(spirv.GLSLPackHalf2x16),
}

// fromTo is the type of a conversion's operand and of its result.
type fromTo struct{ from, to Type }

var conversions = map[fromTo]spirv.Op{
	{U32, F32}: spirv.OpConvertUToF,
	{I32, F32}: spirv.OpConvertSToF,
	{F32, U32}: spirv.OpConvertFToU,
	{F32, I32}: spirv.OpConvertFToS,
}

// group is how a subgroup operation is said: the instruction by operand type,
// and whether a group operation stands between the scope and the operands.
type group struct {
	instr     byKind
	how       spirv.GroupOperation
	operation bool
}

var sums = byKind{
	U32: core(spirv.OpGroupNonUniformIAdd), I32: core(spirv.OpGroupNonUniformIAdd), F32: core(spirv.OpGroupNonUniformFAdd),
}

var groups = map[op]group{
	opSubgroupAdd: {sums, spirv.GroupOperationReduce, true},
	opSubgroupMax: {byKind{
		U32: core(spirv.OpGroupNonUniformUMax), I32: core(spirv.OpGroupNonUniformSMax), F32: core(spirv.OpGroupNonUniformFMax),
	}, spirv.GroupOperationReduce, true},
	opSubgroupMin: {byKind{
		U32: core(spirv.OpGroupNonUniformUMin), I32: core(spirv.OpGroupNonUniformSMin), F32: core(spirv.OpGroupNonUniformFMin),
	}, spirv.GroupOperationReduce, true},
	opSubgroupExclusiveAdd: {sums, spirv.GroupOperationExclusiveScan, true},
	opSubgroupShuffle:      {instr: all(spirv.OpGroupNonUniformShuffle)},
	opSubgroupShuffleXor:   {instr: all(spirv.OpGroupNonUniformShuffleXor)},
	opSubgroupElect:        {instr: byKind{void: core(spirv.OpGroupNonUniformElect)}},
	opSubgroupAny:          {instr: all(spirv.OpGroupNonUniformAny)},
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

var inputs = [numBuiltins]input{
	subgroupLane:   {builtin: spirv.BuiltInSubgroupLocalInvocationId},
	subgroupID:     {builtin: spirv.BuiltInSubgroupId},
	numSubgroups:   {builtin: spirv.BuiltInNumSubgroups},
	localID:        {builtin: spirv.BuiltInLocalInvocationIndex},
	workgroupIDX:   {spirv.BuiltInWorkgroupId, true, 0},
	workgroupIDY:   {spirv.BuiltInWorkgroupId, true, 1},
	workgroupIDZ:   {spirv.BuiltInWorkgroupId, true, 2},
	numWorkgroupsX: {spirv.BuiltInNumWorkgroups, true, 0},
	numWorkgroupsY: {spirv.BuiltInNumWorkgroups, true, 1},
	numWorkgroupsZ: {spirv.BuiltInNumWorkgroups, true, 2},
}
