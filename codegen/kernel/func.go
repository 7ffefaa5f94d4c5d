package kernel

import (
	"fmt"
	"math"
)

// Func is a finished kernel: what a call site has to provide, and the body as a
// tree of regions, from which a back end lowers it.
type Func struct {
	Name string
	// Args are the buffers, in the order of their addresses in the push constants:
	// argument i is the 64-bit address at byte 8*i.
	Args []Arg
	// Spec are the specialization constants, by id.
	Spec []SpecConst
	// Features are the names of the Vulkan device features that the kernel
	// needs, sorted, such as shaderIntegerDotProduct.
	Features []string
	// Extensions are the names of the Vulkan device extensions that it needs,
	// sorted.
	Extensions []string
	// SubgroupOps are the classes of subgroup operations that it needs, sorted:
	// arithmetic, basic, shuffle, vote.
	SubgroupOps []string
	// Fragments: it uses MatPairs, and so relies on which lane holds which elements of a matrix.
	Fragments bool
	// Groups: it uses MatGroupAdd, which only PTX for sm_90a has.
	Groups bool
	// TF32: it uses MatElems, which only PTX for sm_80 and later has.
	TF32 bool
	// Bytes: it uses MatBytes, which only PTX for sm_80 and later has.
	Bytes bool
	// Lines: it uses MatGroup, so arrays must begin at a line that the hardware counts as line 0.
	Lines bool
	// Bulk: it uses Arrivals, which only PTX for sm_90 and later has.
	Bulk bool
	// Tiles: it uses tiles, which only processors with AMX have.
	Tiles bool

	workgroup *Node
	arrays    []*Array
	tables    []Constants
	specNodes []*Node // OpSpec, one for each of Spec
	body      *Region
	left      []*Node // out of the kernel, by Without
	nodes     int     // how many there are
}

// Access says what a kernel does with a buffer.
type Access uint8

// The ways to use a buffer. Memory that is read through a Read argument must not
// be written by the same dispatch, through whatever argument: a kernel that works
// in place declares one ReadWrite argument.
const (
	Read Access = 1 << iota
	Write
	ReadWrite = Read | Write
)

// String returns read, write or read_write.
func (a Access) String() string {
	switch a {
	case Read:
		return "read"
	case Write:
		return "write"
	case ReadWrite:
		return "read_write"
	}
	return fmt.Sprintf("access(%d)", uint8(a))
}

// Arg is one buffer.
type Arg struct {
	Name   string
	Access Access
}

// SpecConst is one specialization constant.
type SpecConst struct {
	ID      uint32 // the SpecId decoration: the order of declaration, from 0
	Name    string
	Type    Type   // U32 or F32
	Default uint32 // its bits
}

// Node is one operation. A node outside of all regions (region nil) is known at
// specialization time: a constant, a specialization constant, or an expression
// of them.
type Node struct {
	number  int // of the function, from 0: where an interpreter keeps its values
	op      Op
	typ     Type
	imm     uint32
	align   int
	args    []*Node
	regions []*Region
	region  *Region
	at      *callers // of accesses and barriers
	array   *Array   // of a copy
	line    bool     // of a copy, see Buffer.CopyLine
	ahead   bool     // of a load, see Buffer.Ahead; of a barrier, see SubgroupHint
}

func (n *Node) static() bool { return n.region == nil }

// Region is a list of nodes that run one after the other.
type Region struct {
	nodes []*Node
	param *Node // the counter of a for
	open  bool  // still being built: its values may be used
	hint  Hint
}

// Hint is the request of a for to the driver's compiler.
type Hint int

// The hints.
const (
	NoHint Hint = iota
	Unroll
	Rolled
)

var loopHints = [...]string{"", "unroll", "rolled"}

// SpecValues turns values by name into values by id, as a pipeline's
// specialization info and spirv.Specialize take them.
func (f *Func) SpecValues(byName map[string]uint32) (map[uint32]uint32, error) {
	byID := make(map[uint32]uint32, len(byName))
	for _, s := range f.Spec {
		if v, ok := byName[s.Name]; ok {
			byID[s.ID] = v
		}
	}
	if len(byID) != len(byName) {
		for name := range byName {
			if !f.hasSpec(name) {
				return nil, fmt.Errorf("kernel %s: no specialization constant %q", f.Name, name)
			}
		}
	}
	return byID, nil
}

func (f *Func) hasSpec(name string) bool {
	for _, s := range f.Spec {
		if s.Name == name {
			return true
		}
	}
	return false
}

// WorkgroupSize returns the invocations of a workgroup under the given
// specialization, by id; constants that spec lacks have their default.
func (f *Func) WorkgroupSize(spec map[uint32]uint32) (uint32, error) {
	n, err := f.eval(f.workgroup, spec)
	if err != nil {
		return 0, fmt.Errorf("kernel %s: workgroup size: %w", f.Name, err)
	}
	return n, nil
}

// SharedBytes returns the shared memory of a workgroup under the given
// specialization, by id; constants that spec lacks have their default.
func (f *Func) SharedBytes(spec map[uint32]uint32) (uint64, error) {
	var sum uint64
	for _, a := range f.arrays {
		n, err := f.eval(a.length, spec)
		if err != nil {
			return 0, fmt.Errorf("kernel %s: length of a shared array: %w", f.Name, err)
		}
		sum += uint64(n) * uint64(a.elem.Size())
	}
	return sum, nil
}

// eval computes a static scalar.
func (f *Func) eval(n *Node, spec map[uint32]uint32) (uint32, error) {
	switch n.op {
	case OpConst:
		return n.imm, nil
	case OpSpec:
		s := f.Spec[n.imm]
		if v, ok := spec[s.ID]; ok {
			return v, nil
		}
		return s.Default, nil
	}
	args := make([]uint32, len(n.args))
	for i, a := range n.args {
		var err error
		if args[i], err = f.eval(a, spec); err != nil {
			return 0, err
		}
	}
	return foldOp(n.op, n.args[0].typ, args)
}

// foldOp computes a foldable operation on scalars of type t, as SPIR-V defines
// it: integers wrap, Bool is 0 or 1.
func foldOp(o Op, t Type, a []uint32) (uint32, error) {
	truth := func(b bool) (uint32, error) {
		if b {
			return 1, nil
		}
		return 0, nil
	}
	less := func(x, y uint32) bool {
		if t == I32 {
			return int32(x) < int32(y)
		}
		return x < y
	}
	switch o {
	case OpAdd:
		return a[0] + a[1], nil
	case OpSub:
		return a[0] - a[1], nil
	case OpMul:
		return a[0] * a[1], nil
	case OpDiv, OpMod:
		return foldDiv(o, t, a[0], a[1])
	case OpShl, OpShr:
		return foldShift(o, t, a[0], a[1])
	case OpAnd:
		return a[0] & a[1], nil
	case OpOr:
		return a[0] | a[1], nil
	case OpXor:
		return a[0] ^ a[1], nil
	case OpMin, OpMax:
		if less(a[0], a[1]) == (o == OpMin) {
			return a[0], nil
		}
		return a[1], nil
	case OpNeg:
		return -a[0], nil
	case OpNot:
		if t == Bool {
			return a[0] ^ 1, nil
		}
		return ^a[0], nil
	case OpSelect:
		if a[0] != 0 {
			return a[1], nil
		}
		return a[2], nil
	case OpEq:
		return truth(a[0] == a[1])
	case OpNe:
		return truth(a[0] != a[1])
	case OpLt:
		return truth(less(a[0], a[1]))
	case OpLe:
		return truth(!less(a[1], a[0]))
	case OpGt:
		return truth(less(a[1], a[0]))
	case OpGe:
		return truth(!less(a[0], a[1]))
	}
	return 0, fmt.Errorf("%s of constants", ops[o].name)
}

func foldDiv(o Op, t Type, x, y uint32) (uint32, error) {
	switch {
	case y == 0:
		return 0, fmt.Errorf("%s by zero", ops[o].name)
	case t == I32 && int32(x) == math.MinInt32 && int32(y) == -1:
		return 0, fmt.Errorf("%s overflows", ops[o].name)
	case t == I32 && o == OpDiv:
		return uint32(int32(x) / int32(y)), nil
	case t == I32:
		return uint32(int32(x) % int32(y)), nil
	case o == OpDiv:
		return x / y, nil
	}
	return x % y, nil
}

func foldShift(o Op, t Type, x, n uint32) (uint32, error) {
	switch {
	case n > 31:
		return 0, fmt.Errorf("%s by %d", ops[o].name, n)
	case o == OpShl:
		return x << n, nil
	case t == I32:
		return uint32(int32(x) >> n), nil
	}
	return x >> n, nil
}
