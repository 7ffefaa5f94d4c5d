package kernel

// op is the operation of a node.
type op uint8

const (
	opConst   op = iota // imm: the bits
	opSpec              // imm: index into Func.Spec
	opBuiltin           // imm: a builtin
	opVec               // one operand an element

	// Element by element; the result has the type of the operands.
	opAdd
	opSub
	opMul
	opDiv
	opMod
	opShl
	opShr
	opAnd
	opOr
	opXor
	opMin
	opMax
	opNeg
	opNot
	opAbs
	opFMA
	opSqrt
	opInverseSqrt
	opExp
	opExp2
	opSelect
	opBitExtract

	// Element by element; the result is Bool.
	opEq
	opNe
	opLt
	opLe
	opGt
	opGe
	opIsNaN

	// Change of type.
	opConvert
	opBitcast
	opUnpackHalf
	opPackHalf
	opFMAHalf
	opPairHalves // imm: 0 for the lower halves, 1 for the upper
	opDotI8
	opDotU8
	opElem // vector, index

	// Between the lanes of a subgroup.
	opSubgroupAdd
	opSubgroupMax
	opSubgroupMin
	opSubgroupExclusiveAdd
	opSubgroupShuffle
	opSubgroupShuffleXor
	opSubgroupElect
	opSubgroupAny

	// Memory. imm of a buffer access: the argument; of a shared access: the
	// array. align is the known alignment of an access by word. A last operand of a
	// buffer access is the address of the argument, if it is one of several.
	opAddress
	opLoad        // index
	opStore       // index, value
	opLoad16      // index
	opStore16     // index, value
	opAtomicAdd   // index, value
	opAtomicMax   // index, value
	opAtomicLoad  // index
	opSharedLoad  // index
	opSharedStore // index, value
	opSharedElem  // index, element
	opSharedSet   // index, element, value
	opSharedAdd   // index, value
	opSharedMax   // index, value
	opVar         // initial value
	opVarGet      // var
	opVarSet      // var, value
	opBarrier     // imm: 1 if it orders buffers, too
	opSubgroupBarrier
	opFence

	// Cooperative matrices. imm of an access: the array. align is the Layout.
	opMatFill    // element
	opMatPairs   // words
	opMatLoad    // index, stride
	opMatStore   // index, stride, matrix
	opMatMulAdd  // a, b, c
	opMatTimes   // a, b
	opMatConvert // a
	opMatLength  // imm: the type
	opVarElem    // var, element
	opVarSetElem // var, element, value

	// Control. Regions are named after the operands.
	opIf       // condition; then, else
	opFor      // low, high, step; body, whose param is the counter
	opWhile    // ; condition (its result decides), body
	opBreakIf  // condition
	opReturnIf // condition
	opParam    // the counter of a for
	numOps
)

// opInfo is what the builder and the printer need to know of an operation.
type opInfo struct {
	name string
	// fold: of integers and truth values known at specialization time, the
	// result is known then too.
	fold bool
	// subgroup: the class of subgroup operations that a device must have.
	subgroup string
}

var ops = [numOps]opInfo{
	opConst:   {name: "const"},
	opSpec:    {name: "spec"},
	opBuiltin: {name: "builtin"},
	opVec:     {name: "vec"},

	opAdd:         {name: "add", fold: true},
	opSub:         {name: "sub", fold: true},
	opMul:         {name: "mul", fold: true},
	opDiv:         {name: "div", fold: true},
	opMod:         {name: "mod", fold: true},
	opShl:         {name: "shl", fold: true},
	opShr:         {name: "shr", fold: true},
	opAnd:         {name: "and", fold: true},
	opOr:          {name: "or", fold: true},
	opXor:         {name: "xor", fold: true},
	opMin:         {name: "min", fold: true},
	opMax:         {name: "max", fold: true},
	opNeg:         {name: "neg", fold: true},
	opNot:         {name: "not", fold: true},
	opAbs:         {name: "abs"},
	opFMA:         {name: "fma"},
	opSqrt:        {name: "sqrt"},
	opInverseSqrt: {name: "inverse_sqrt"},
	opExp:         {name: "exp"},
	opExp2:        {name: "exp2"},
	opSelect:      {name: "select", fold: true},
	opBitExtract:  {name: "bit_extract"},

	opEq:    {name: "eq", fold: true},
	opNe:    {name: "ne", fold: true},
	opLt:    {name: "lt", fold: true},
	opLe:    {name: "le", fold: true},
	opGt:    {name: "gt", fold: true},
	opGe:    {name: "ge", fold: true},
	opIsNaN: {name: "is_nan"},

	opConvert:    {name: "convert"},
	opBitcast:    {name: "bitcast"},
	opUnpackHalf: {name: "unpack_half"},
	opPackHalf:   {name: "pack_half"},
	opFMAHalf:    {name: "fma_half"},
	opPairHalves: {name: "pair_halves"},
	opDotI8:      {name: "dot_i8"},
	opDotU8:      {name: "dot_u8"},
	opElem:       {name: "elem"},

	opSubgroupAdd:          {name: "subgroup_add", subgroup: "arithmetic"},
	opSubgroupMax:          {name: "subgroup_max", subgroup: "arithmetic"},
	opSubgroupMin:          {name: "subgroup_min", subgroup: "arithmetic"},
	opSubgroupExclusiveAdd: {name: "subgroup_exclusive_add", subgroup: "arithmetic"},
	opSubgroupShuffle:      {name: "subgroup_shuffle", subgroup: "shuffle"},
	opSubgroupShuffleXor:   {name: "subgroup_shuffle_xor", subgroup: "shuffle"},
	opSubgroupElect:        {name: "subgroup_elect", subgroup: "basic"},
	opSubgroupAny:          {name: "subgroup_any", subgroup: "vote"},

	opAddress:     {name: "address"},
	opLoad:        {name: "load"},
	opStore:       {name: "store"},
	opLoad16:      {name: "load16"},
	opStore16:     {name: "store16"},
	opAtomicAdd:   {name: "atomic_add"},
	opAtomicMax:   {name: "atomic_max"},
	opAtomicLoad:  {name: "atomic_load"},
	opSharedLoad:  {name: "shared_load"},
	opSharedStore: {name: "shared_store"},
	opSharedElem:  {name: "shared_load_elem"},
	opSharedSet:   {name: "shared_store_elem"},
	opSharedAdd:   {name: "shared_atomic_add"},
	opSharedMax:   {name: "shared_atomic_max"},
	opVar:         {name: "var"},
	opVarGet:      {name: "get"},
	opVarSet:      {name: "set"},
	opBarrier:     {name: "barrier"},
	opFence:       {name: "fence"},

	opSubgroupBarrier: {name: "subgroup_barrier", subgroup: "basic"},

	opMatFill:    {name: "mat_fill"},
	opMatPairs:   {name: "mat_pairs"},
	opMatLoad:    {name: "mat_load"},
	opMatStore:   {name: "mat_store"},
	opMatMulAdd:  {name: "mat_mul_add"},
	opMatTimes:   {name: "mat_times"},
	opMatConvert: {name: "mat_convert"},
	opMatLength:  {name: "mat_length"},
	opVarElem:    {name: "get_elem"},
	opVarSetElem: {name: "set_elem"},

	opIf:       {name: "if"},
	opFor:      {name: "for"},
	opWhile:    {name: "while"},
	opBreakIf:  {name: "break_if"},
	opReturnIf: {name: "return_if"},
	opParam:    {name: "param"},
}

// builtin is a value that a lane finds when it starts.
type builtin uint8

const (
	subgroupLane builtin = iota
	subgroupID
	numSubgroups
	localID
	workgroupIDX
	workgroupIDY
	workgroupIDZ
	numWorkgroupsX
	numWorkgroupsY
	numWorkgroupsZ
	numBuiltins
)

var builtinNames = [numBuiltins]string{
	"subgroup_lane", "subgroup_id", "num_subgroups", "local_id",
	"workgroup_id.x", "workgroup_id.y", "workgroup_id.z",
	"num_workgroups.x", "num_workgroups.y", "num_workgroups.z",
}
