package kernel

import "fmt"

// Op is the operation of a node.
type Op uint8

// The operations, with their operands and what Node.Imm says.

const (
	OpConst   Op = iota // imm: the bits
	OpSpec              // imm: index into Func.Spec
	OpBuiltin           // imm: a Builtin
	OpVec               // one operand an element

	// Element by element; the result has the type of the operands.
	OpAdd
	OpSub
	OpMul
	OpDiv
	OpMod
	OpShl
	OpShr
	OpAnd
	OpOr
	OpXor
	OpMin
	OpMax
	OpNeg
	OpNot
	OpAbs
	OpFMA
	OpSqrt
	OpInverseSqrt
	OpExp
	OpExp2
	OpSelect
	OpBitExtract

	// Element by element; the result is Bool.
	OpEq
	OpNe
	OpLt
	OpLe
	OpGt
	OpGe
	OpIsNaN

	// Change of type.
	OpConvert
	OpBitcast
	OpUnpackHalf
	OpPackHalf
	OpFMAHalf
	OpPairHalves // imm: 0 for the lower halves, 1 for the upper
	OpPermute    // two words, order
	OpDotI8
	OpDotU8
	OpElem // vector, index

	// Between the lanes of a subgroup.
	OpSubgroupAdd
	OpSubgroupMax
	OpSubgroupMin
	OpSubgroupExclusiveAdd
	OpSubgroupShuffle
	OpSubgroupShuffleXor
	OpSubgroupElect
	OpSubgroupAny

	// Memory. imm of a buffer access: the argument; of a shared access: the
	// array. align is the known alignment of an access by word. A last operand of a
	// buffer access is the address of the argument, if it is one of several.
	OpAddress
	OpLoad        // index
	OpStore       // index, value
	OpLoad16      // index
	OpStore16     // index, value
	OpAtomicAdd   // index, value
	OpPrefetch    // index
	OpCopy        // index, index of what array has
	OpSharedLoad  // index
	OpSharedStore // index, value
	OpSharedElem  // index, element
	OpSharedSet   // index, element, value
	OpSharedAdd   // index, value
	OpTable       // index; imm: the table
	OpBulk        // index in the buffer, in the array, slot; three constants; see Node.Bulk
	OpArrivals    // imm: the array of slots, align: how many they are
	OpArrived     // slot, turn; imm: the array of slots
	OpDone        // slot; imm: the array of slots, align: how many they are
	OpFree        // slot, turn; likewise
	OpGates       // imm: the array of gates, align: how many they are
	OpReach       // imm: the array of gates, align: the gate
	OpReached     // turn; likewise
	OpVar         // initial value
	OpVarGet      // var
	OpVarSet      // var, value
	OpBarrier     // imm: 1 if it orders buffers, too
	OpSubgroupBarrier
	OpFence
	OpAwait
	OpPrefetchNext
	OpCopyGroup
	OpCopyWait // imm: how many groups may be left

	// Cooperative matrices. imm of an access: the array. align is the Layout.
	OpMatFill      // element
	OpMatPairs     // words
	OpMatElems     // elements
	OpMatLoad      // index, stride
	OpMatStore     // index, stride, matrix
	OpMatMulAdd    // a, b, c
	OpMatBytes     // a, b
	OpMatTimes     // a, b
	OpMatConvert   // a
	OpMatLength    // imm: the type
	OpMatGroupAdd  // two constants; a, index by product; vars. imm: the array, align: the products. See Node.Group
	OpMatGroupWait // imm: how many may be left
	OpVarElem      // var, element
	OpVarSetElem   // var, element, value

	// Tiles; see Node.Tile.
	OpTileZero
	OpTileLoad   // index, stride; imm: the array
	OpTileStore  // index, stride; imm: the array
	OpTileMulAdd // sums, x, y

	// Control. Regions are named after the operands.
	OpIf       // condition; then, else
	OpFor      // low, high, step; body, whose param is the counter
	OpReturnIf // condition
	OpParam    // the counter of a for
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
	OpConst:   {name: "const"},
	OpSpec:    {name: "spec"},
	OpBuiltin: {name: "builtin"},
	OpVec:     {name: "vec"},

	OpAdd:         {name: "add", fold: true},
	OpSub:         {name: "sub", fold: true},
	OpMul:         {name: "mul", fold: true},
	OpDiv:         {name: "div", fold: true},
	OpMod:         {name: "mod", fold: true},
	OpShl:         {name: "shl", fold: true},
	OpShr:         {name: "shr", fold: true},
	OpAnd:         {name: "and", fold: true},
	OpOr:          {name: "or", fold: true},
	OpXor:         {name: "xor", fold: true},
	OpMin:         {name: "min", fold: true},
	OpMax:         {name: "max", fold: true},
	OpNeg:         {name: "neg", fold: true},
	OpNot:         {name: "not", fold: true},
	OpAbs:         {name: "abs"},
	OpFMA:         {name: "fma"},
	OpSqrt:        {name: "sqrt"},
	OpInverseSqrt: {name: "inverse_sqrt"},
	OpExp:         {name: "exp"},
	OpExp2:        {name: "exp2"},
	OpSelect:      {name: "select", fold: true},
	OpBitExtract:  {name: "bit_extract"},

	OpEq:    {name: "eq", fold: true},
	OpNe:    {name: "ne", fold: true},
	OpLt:    {name: "lt", fold: true},
	OpLe:    {name: "le", fold: true},
	OpGt:    {name: "gt", fold: true},
	OpGe:    {name: "ge", fold: true},
	OpIsNaN: {name: "is_nan"},

	OpConvert:    {name: "convert"},
	OpBitcast:    {name: "bitcast"},
	OpUnpackHalf: {name: "unpack_half"},
	OpPackHalf:   {name: "pack_half"},
	OpFMAHalf:    {name: "fma_half"},
	OpPairHalves: {name: "pair_halves"},
	OpPermute:    {name: "permute"},
	OpDotI8:      {name: "dot_i8"},
	OpDotU8:      {name: "dot_u8"},
	OpElem:       {name: "elem"},

	OpSubgroupAdd:          {name: "subgroup_add", subgroup: "arithmetic"},
	OpSubgroupMax:          {name: "subgroup_max", subgroup: "arithmetic"},
	OpSubgroupMin:          {name: "subgroup_min", subgroup: "arithmetic"},
	OpSubgroupExclusiveAdd: {name: "subgroup_exclusive_add", subgroup: "arithmetic"},
	OpSubgroupShuffle:      {name: "subgroup_shuffle", subgroup: "shuffle"},
	OpSubgroupShuffleXor:   {name: "subgroup_shuffle_xor", subgroup: "shuffle"},
	OpSubgroupElect:        {name: "subgroup_elect", subgroup: "basic"},
	OpSubgroupAny:          {name: "subgroup_any", subgroup: "vote"},

	OpAddress:     {name: "address"},
	OpLoad:        {name: "load"},
	OpStore:       {name: "store"},
	OpLoad16:      {name: "load16"},
	OpStore16:     {name: "store16"},
	OpAtomicAdd:   {name: "atomic_add"},
	OpPrefetch:    {name: "prefetch"},
	OpCopy:        {name: "copy"},
	OpSharedLoad:  {name: "shared_load"},
	OpSharedStore: {name: "shared_store"},
	OpSharedElem:  {name: "shared_load_elem"},
	OpSharedSet:   {name: "shared_store_elem"},
	OpSharedAdd:   {name: "shared_atomic_add"},
	OpTable:       {name: "table"},
	OpBulk:        {name: "bulk_copy"},
	OpArrivals:    {name: "arrivals"},
	OpArrived:     {name: "arrived"},
	OpDone:        {name: "done"},
	OpFree:        {name: "free"},
	OpGates:       {name: "gates"},
	OpReach:       {name: "reach"},
	OpReached:     {name: "reached"},
	OpVar:         {name: "var"},
	OpVarGet:      {name: "get"},
	OpVarSet:      {name: "set"},
	OpBarrier:     {name: "barrier"},
	OpFence:       {name: "fence"},
	OpAwait:       {name: "await"},
	OpCopyGroup:   {name: "copy_group"},
	OpCopyWait:    {name: "copy_wait"},

	OpPrefetchNext:    {name: "prefetch_next"},
	OpSubgroupBarrier: {name: "subgroup_barrier", subgroup: "basic"},

	OpMatFill:      {name: "mat_fill"},
	OpMatPairs:     {name: "mat_pairs"},
	OpMatElems:     {name: "mat_elems"},
	OpMatLoad:      {name: "mat_load"},
	OpMatStore:     {name: "mat_store"},
	OpMatMulAdd:    {name: "mat_mul_add"},
	OpMatBytes:     {name: "mat_bytes"},
	OpMatTimes:     {name: "mat_times"},
	OpMatConvert:   {name: "mat_convert"},
	OpMatLength:    {name: "mat_length"},
	OpMatGroupAdd:  {name: "mat_group_add"},
	OpMatGroupWait: {name: "mat_group_wait"},
	OpVarElem:      {name: "get_elem"},
	OpVarSetElem:   {name: "set_elem"},

	OpTileZero:   {name: "tile_zero"},
	OpTileLoad:   {name: "tile_load"},
	OpTileStore:  {name: "tile_store"},
	OpTileMulAdd: {name: "tile_mul_add"},

	OpIf:       {name: "if"},
	OpFor:      {name: "for"},
	OpReturnIf: {name: "return_if"},
	OpParam:    {name: "param"},
}

// String returns the operation as listings have it, such as shared_load.
func (o Op) String() string {
	if o >= numOps {
		return fmt.Sprintf("op(%d)", uint8(o))
	}
	return ops[o].name
}

// Builtin is a value that a lane has when it starts.
type Builtin uint8

// The builtins, see the methods of Builder of these names.
const (
	SubgroupLane Builtin = iota
	SubgroupID
	NumSubgroups
	LocalID
	WorkgroupIDX
	WorkgroupIDY
	WorkgroupIDZ
	NumWorkgroupsX
	NumWorkgroupsY
	NumWorkgroupsZ
	NumBuiltins
)

var builtinNames = [NumBuiltins]string{
	"subgroup_lane", "subgroup_id", "num_subgroups", "local_id",
	"workgroup_id.x", "workgroup_id.y", "workgroup_id.z",
	"num_workgroups.x", "num_workgroups.y", "num_workgroups.z",
}
