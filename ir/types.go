package ir

import (
	"fmt"
	"strconv"
	"strings"
)

// Dim is one extent of a shape: a positive number or a symbol.
type Dim int64

// The symbolic dims.
const (
	T Dim = -1 // rows in this step
	L Dim = -2 // rows of one sequence slot's KV cache
)

func (d Dim) String() string {
	switch d {
	case T:
		return "T"
	case L:
		return "L"
	}
	return strconv.FormatInt(int64(d), 10)
}

// Class says where a value lives and who may write it.
type Class uint8

const (
	Arena  Class = iota // scratch of one step, placed by lifetime
	Weight              // tensor of the model file, read only
	Table               // read-only data computed at load from attributes
	KV                  // key or value cache, kept between steps
	State               // recurrent state, kept between steps
	Step                // step block: what changes from one step to the next
	IO                  // results that the host reads, such as logits
	numClasses
)

var classNames = [numClasses]string{"arena", "weight", "table", "kv", "state", "step", "io"}

func (c Class) String() string { return classNames[c] }

func parseClass(s string) (Class, bool) {
	for c, n := range classNames {
		if n == s {
			return Class(c), true
		}
	}
	return 0, false
}

// Type is the element type and shape of a value.
type Type struct {
	DType DType
	Shape []Dim
}

// MakeType returns the type dtype[shape...].
func MakeType(d DType, shape ...Dim) Type { return Type{d, shape} }

func (t Type) String() string {
	var b strings.Builder
	b.WriteString(t.DType.String())
	b.WriteByte('[')
	for i, d := range t.Shape {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(d.String())
	}
	b.WriteByte(']')
	return b.String()
}

// Equal reports whether both types have the same dtype and shape.
func (t Type) Equal(u Type) bool {
	if t.DType != u.DType || len(t.Shape) != len(u.Shape) {
		return false
	}
	for i := range t.Shape {
		if t.Shape[i] != u.Shape[i] {
			return false
		}
	}
	return true
}

// Last is the innermost dim, the one that is contiguous in memory.
func (t Type) Last() Dim { return t.Shape[len(t.Shape)-1] }

// Positions is the number of rows of a sequence in a cache or ring of type t when L is ctx.
func (t Type) Positions(ctx int) int {
	if t.Shape[1] == L {
		return ctx
	}
	return int(t.Shape[1])
}

// Place is the row of a cache or ring of type t in which a sequence's position lies when L is ctx, but of a cache in
// pages (see PageTable.Row): what has fewer rows than there are positions is a ring.
func (t Type) Place(ctx, sequence, position int) int {
	rows := t.Positions(ctx)
	return sequence*rows + position%rows
}

// Elements is the number of elements when T is rows and L is ctx. It fails when
// the product does not fit 62 bits.
func (t Type) Elements(rows, ctx int) (int64, error) {
	n := int64(1)
	for _, d := range t.Shape {
		e := int64(d)
		switch d {
		case T:
			e = int64(rows)
		case L:
			e = int64(ctx)
		}
		if e <= 0 || n > (1<<62)/e {
			return 0, fmt.Errorf("type %s with T=%d, L=%d: size out of range", t, rows, ctx)
		}
		n *= e
	}
	return n, nil
}

// Bytes is Elements in bytes.
func (t Type) Bytes(rows, ctx int) (int64, error) {
	n, err := t.Elements(rows, ctx)
	if err != nil {
		return 0, err
	}
	if last := t.Last(); t.DType.IsQuantized() && (last <= 0 || int64(last)%int64(t.DType.Block()) != 0) {
		return 0, fmt.Errorf("type %s: rows are not whole blocks of %d", t, t.DType.Block())
	}
	if n > (1<<62)/8 {
		return 0, fmt.Errorf("type %s: size out of range", t)
	}
	return t.DType.Bytes(n), nil
}
