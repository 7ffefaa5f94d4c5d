package ir

import "math"

// StepSize is the size of a step, as far as the work and the errors of ops depend on it.
type StepSize struct {
	Rows      int
	Sequences int // that the rows are of
	Positions int // that a row attends to, at most
}

// rows is the number of rows of a value of type t.
func (s StepSize) rows(t Type) int64 {
	if t.Shape[0] == T {
		return int64(s.Rows)
	}
	return int64(t.Shape[0])
}

// visible is how many positions the rows of q see together behind empty caches: a row sees
// itself and the rows before it in its sequence.
func (s StepSize) visible(q Type) int64 {
	if q.Shape[0] != T {
		return int64(q.Shape[0]) * int64(s.Rows) // the last row
	}
	n := int64(s.Sequences)
	each := (int64(s.Rows) + n - 1) / n
	return n * each * (each + 1) / 2
}

// Flops counts the floating-point operations of an op at full rows: behind empty caches, and
// for each position that they hold.
type Flops func(op *Op, s StepSize) (n, perPosition int64)

// noFlops is of ops whose operations are few beside the bytes that they move.
func noFlops(*Op, StepSize) (int64, int64) { return 0, 0 }

// productFlops is of y = W x, with W[outputs, inputs] for each row.
func productFlops(op *Op, s StepSize) (int64, int64) {
	w := op.Args[1].Type.Shape
	return 2 * s.rows(op.Args[0].Type) * int64(w[0]) * int64(w[1]), 0
}

func expertFlops(op *Op, s StepSize) (int64, int64) {
	return 2 * s.rows(op.Args[0].Type) * int64(op.Result.Type.Last()) * int64(op.Args[1].Type.Last()), 0
}

// attentionFlops counts two products of head_dim for each head and position.
func attentionFlops(op *Op, s StepSize) (int64, int64) {
	each := 4 * int64(op.Attrs.Int("heads")) * int64(op.Attrs.Int("head_dim"))
	q := op.Args[0].Type
	if w := int64(op.Attrs.Int("window")); w > 0 { // as if it were full
		return each * w * s.rows(q), 0
	}
	return each * s.visible(q), each * s.rows(q)
}

// deltaFlops counts so many operations for each element of the state and row.
func deltaFlops(each int64) Flops {
	return func(op *Op, s StepSize) (int64, int64) {
		d := int64(op.Attrs.Int("head_dim"))
		return each * s.rows(op.Args[2].Type) * int64(op.Attrs.Int("v_heads")) * d * d, 0
	}
}

// chunkFlops counts the products of a row's key and query with the keys of its chunk.
func chunkFlops(op *Op, s StepSize) (int64, int64) {
	return 4 * s.rows(op.Args[0].Type) * int64(op.Attrs.Int("k_heads")) * DeltaChunk * int64(op.Attrs.Int("head_dim")), 0
}

// Error is the contribution of an op to the error that a device may have in an element. Devices add in
// different orders, so one part is the number of products and squares behind the element, weighted by the effect of
// their errors. The other part is the rounding of the op, relative to the largest of the rounded numbers.
type Error func(op *Op, s StepSize) (terms int, rounding float64)

// exact is of ops that add nothing up: what they compute is right to a few units in the last
// place on every device.
func exact(*Op, StepSize) (int, float64) { return 0, 0 }

// attrTerms is of ops that reduce as many elements as an attribute says.
func attrTerms(name string) Error {
	return func(op *Op, _ StepSize) (int, float64) { return op.Attrs.Int(name), 0 }
}

// rowTerms is of products with rows of a matrix.
func rowTerms(op *Op, _ StepSize) (int, float64) { return int(op.Args[1].Type.Last()), 0 }

// exponentTerms weighs errors that are in an exponent.
const exponentTerms = 16

// attentionTerms: an error of a score is in an exponent.
func attentionTerms(op *Op, s StepSize) (int, float64) {
	n := s.Positions
	if w := op.Attrs.Int("window"); w > 0 {
		n = min(n, w)
	}
	dim := op.Attrs.Int("head_dim")
	if wide := op.Attrs.Float("scale") * math.Sqrt(float64(dim)); wide > 1 {
		dim = int(float64(dim) * wide)
	}
	return exponentTerms * (dim + n), 0
}

// deltaTerms: every row adds its error to the state, and its decay is an exponential.
func deltaTerms(op *Op, s StepSize) (int, float64) {
	return op.Attrs.Int("head_dim") + exponentTerms*s.Rows, 0
}

// chunkTerms: exponents are running sums of log decays.
func chunkTerms(op *Op, _ StepSize) (int, float64) {
	return op.Attrs.Int("head_dim") + exponentTerms*DeltaChunk*(DeltaChunk+1)/2, 0
}

func chunkedTerms(op *Op, s StepSize) (int, float64) { return op.Attrs.Int("head_dim") + s.Rows, 0 }

// fixedRounding is of fixed point of so many bits: what lies between two numbers may be rounded
// to either.
func fixedRounding(bits int) Error {
	return func(*Op, StepSize) (int, float64) { return 0, 2 / float64(int64(1)<<bits) }
}

// bfloatRounding is of bf16, to which readers may round their weights, too. It is what verification tolerates of f16,
// whose mantissa is three bits longer.
func bfloatRounding(*Op, StepSize) (int, float64) { return 0, 8.0 / (1 << 8) }
