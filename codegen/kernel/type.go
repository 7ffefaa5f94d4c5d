package kernel

import "fmt"

// Type is the type of a Value: a scalar of 32 bits (or a truth value), a vector of
// 2 or 4 of them, or a matrix that a subgroup holds together. Types are
// comparable.
type Type uint32

// The scalar types. Bool has no layout in memory.
const (
	Bool Type = 1 + iota
	U32
	I32
	F32
	F16 // of the elements of matrices only; PackHalf puts two into a U32
)

// Void is the type of a statement.
const Void Type = 0

// U16 is the element type with which Load16 and Store16 see a buffer.
const U16 Type = F16 + 1

// A Type keeps the scalar in the low byte and the lanes of a vector in the next.
// The upper half has the use, rows and columns of a matrix.
const (
	laneShift = 8
	useShift  = 16
	rowShift  = 18
	colShift  = 25
	maxSide   = 1<<7 - 1
)

var typeNames = [...]string{Void: "void", Bool: "bool", U32: "u32", I32: "i32", F32: "f32", F16: "f16", U16: "u16"}

// Vec returns the vector type of n elements of the scalar type t. n is 1, 2 or
// 4; other types are refused where they are used.
func (t Type) Vec(n int) Type {
	if n == 1 {
		return t
	}
	return t | Type(uint8(n))<<laneShift
}

// Use is the place of a matrix in MatMulAdd.
type Use uint32

// The uses: D = A x B + C, where C and D are accumulators.
const (
	MatrixA Use = 1 + iota
	MatrixB
	Accumulator
)

var useNames = [...]string{MatrixA: "a", MatrixB: "b", Accumulator: "acc"}

// Matrix returns the type of a cooperative matrix of rows x cols elements of type
// t, F16 or F32. Devices support certain shapes; others are refused where they
// are used.
func (t Type) Matrix(rows, cols int, use Use) Type {
	if rows < 1 || rows > maxSide || cols < 1 || cols > maxSide || use < MatrixA || use > Accumulator {
		return Void
	}
	return t | Type(use)<<useShift | Type(rows)<<rowShift | Type(cols)<<colShift
}

// Shape returns the arguments of Matrix; the use is 0 for other types.
func (t Type) Shape() (rows, cols int, use Use) {
	return int(t >> rowShift & maxSide), int(t >> colShift & maxSide), Use(t >> useShift & 3)
}

// IsMatrix reports whether t is a matrix that a subgroup holds.
func (t Type) IsMatrix() bool {
	_, _, use := t.Shape()
	return use != 0 && (t.Elem() == F16 || t.Elem() == F32) && t.Lanes() == 1
}

// Elem returns the scalar type of the elements of a vector or matrix, and t for a
// scalar.
func (t Type) Elem() Type { return t & (1<<laneShift - 1) }

// Lanes returns the number of elements of a vector, and 1 for a scalar.
func (t Type) Lanes() int {
	if n := int(uint8(t >> laneShift)); n > 0 {
		return n
	}
	return 1
}

// Size returns the bytes of a value in memory, which are also its alignment.
func (t Type) Size() int {
	if t == U16 {
		return 2
	}
	return 4 * t.Lanes()
}

// String returns u32, f32x4 and the like.
func (t Type) String() string {
	e := t.Elem()
	if int(e) >= len(typeNames) {
		return fmt.Sprintf("type(%#x)", uint32(t))
	}
	if t.IsMatrix() {
		rows, cols, use := t.Shape()
		return fmt.Sprintf("%s[%dx%d %s]", typeNames[e], rows, cols, useNames[use])
	}
	if t.Lanes() == 1 {
		return typeNames[e]
	}
	return fmt.Sprintf("%sx%d", typeNames[e], t.Lanes())
}

func (t Type) valid() bool {
	e, n := t.Elem(), t.Lanes()
	return e >= Bool && e <= F32 && t>>useShift == 0 && (n == 1 && t == e || n == 2 || n == 4)
}

// inMemory reports whether t can be loaded and stored.
func (t Type) inMemory() bool { return t.valid() && t.Elem() != Bool }

// kinds is a set of scalar types, for the operand rules.
type kinds uint8

const (
	kBool kinds = 1 << iota
	kU32
	kI32
	kF32

	kInt  = kU32 | kI32
	kNum  = kInt | kF32
	kBits = kInt | kBool
	kAny  = kNum | kBool
)

func (k kinds) has(t Type) bool { return t.valid() && k>>(t.Elem()-1)&1 == 1 }
