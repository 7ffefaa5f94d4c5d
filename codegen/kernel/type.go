package kernel

import "fmt"

// Type is the type of a Value: a scalar of 32 bits (or a truth value), or a
// vector of 2 or 4 of them. Types are comparable.
type Type uint32

// The scalar types. Bool has no layout in memory.
const (
	Bool Type = 1 + iota
	U32
	I32
	F32
)

// void is the type of a statement.
const void Type = 0

// A Type keeps the scalar in the low byte and the lanes of a vector in the next;
// the upper half is free for matrix shapes.
const laneShift = 8

var typeNames = [...]string{void: "void", Bool: "bool", U32: "u32", I32: "i32", F32: "f32"}

// Vec returns the vector type of n elements of the scalar type t. n is 1, 2 or
// 4; other types are refused where they are used.
func (t Type) Vec(n int) Type {
	if n == 1 {
		return t
	}
	return t | Type(uint8(n))<<laneShift
}

// Elem returns the scalar type of a vector's elements, and t for a scalar.
func (t Type) Elem() Type { return t & (1<<laneShift - 1) }

// Lanes returns the number of elements of a vector, and 1 for a scalar.
func (t Type) Lanes() int {
	if n := int(t >> laneShift); n > 0 {
		return n
	}
	return 1
}

// Size returns the bytes of a value in memory, which are also its alignment.
func (t Type) Size() int { return 4 * t.Lanes() }

// String returns u32, f32x4 and the like.
func (t Type) String() string {
	e := t.Elem()
	if int(e) >= len(typeNames) {
		return fmt.Sprintf("type(%#x)", uint32(t))
	}
	if t.Lanes() == 1 {
		return typeNames[e]
	}
	return fmt.Sprintf("%sx%d", typeNames[e], t.Lanes())
}

func (t Type) valid() bool {
	e, n := t.Elem(), t.Lanes()
	return e >= Bool && e <= F32 && (n == 1 && t == e || n == 2 || n == 4)
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
