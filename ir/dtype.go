package ir

import "fmt"

// DType is the element type of a value or the block format of a weight.
// Block formats keep the names and layouts of ggml.
type DType uint8

// The element types, in the order of the dtype table.
const (
	Invalid DType = iota
	F32
	F16
	BF16
	F64
	I8
	I16
	I32
	I64
	Q4_0
	Q4_1
	Q5_0
	Q5_1
	Q8_0
	Q2_K
	Q3_K
	Q4_K
	Q5_K
	Q6_K
	IQ4_NL
	IQ4_XS
	MXFP4
	IQ1_S
	IQ1_M
	IQ2_XXS
	IQ2_XS
	IQ2_S
	IQ3_XXS
	IQ3_S
	TQ1_0
	TQ2_0
	Q1_0
	Q2_0
	NVFP4
	numDTypes
)

type dtypeInfo struct {
	name  string
	block int // elements in one block
	bytes int // bytes of one block
}

var dtypes = [numDTypes]dtypeInfo{
	Invalid: {"invalid", 1, 0},
	F32:     {"f32", 1, 4},
	F16:     {"f16", 1, 2},
	BF16:    {"bf16", 1, 2},
	F64:     {"f64", 1, 8},
	I8:      {"i8", 1, 1},
	I16:     {"i16", 1, 2},
	I32:     {"i32", 1, 4},
	I64:     {"i64", 1, 8},
	Q4_0:    {"q4_0", 32, 18},
	Q4_1:    {"q4_1", 32, 20},
	Q5_0:    {"q5_0", 32, 22},
	Q5_1:    {"q5_1", 32, 24},
	Q8_0:    {"q8_0", 32, 34},
	Q2_K:    {"q2_k", 256, 84},
	Q3_K:    {"q3_k", 256, 110},
	Q4_K:    {"q4_k", 256, 144},
	Q5_K:    {"q5_k", 256, 176},
	Q6_K:    {"q6_k", 256, 210},
	IQ4_NL:  {"iq4_nl", 32, 18},
	IQ4_XS:  {"iq4_xs", 256, 136},
	MXFP4:   {"mxfp4", 32, 17},
	IQ1_S:   {"iq1_s", 256, 50},
	IQ1_M:   {"iq1_m", 256, 56},
	IQ2_XXS: {"iq2_xxs", 256, 66},
	IQ2_XS:  {"iq2_xs", 256, 74},
	IQ2_S:   {"iq2_s", 256, 82},
	IQ3_XXS: {"iq3_xxs", 256, 98},
	IQ3_S:   {"iq3_s", 256, 110},
	TQ1_0:   {"tq1_0", 256, 54},
	TQ2_0:   {"tq2_0", 256, 66},
	Q1_0:    {"q1_0", 128, 18},
	Q2_0:    {"q2_0", 64, 18},
	NVFP4:   {"nvfp4", 64, 36},
}

// String returns the lower-case name that .zir text uses, such as "q4_k".
func (d DType) String() string {
	if d >= numDTypes {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypes[d].name
}

// ParseDType is the inverse of String.
func ParseDType(s string) (DType, bool) {
	for d := Invalid + 1; d < numDTypes; d++ {
		if dtypes[d].name == s {
			return d, true
		}
	}
	return Invalid, false
}

// DTypes returns every valid type in table order.
func DTypes() []DType {
	all := make([]DType, 0, numDTypes-1)
	for d := Invalid + 1; d < numDTypes; d++ {
		all = append(all, d)
	}
	return all
}

// Block is the number of elements that share one block; 1 for plain types.
func (d DType) Block() int { return dtypes[d].block }

// BlockBytes is the size of one block in bytes.
func (d DType) BlockBytes() int { return dtypes[d].bytes }

// IsQuantized reports whether elements can only be read a block at a time.
func (d DType) IsQuantized() bool { return dtypes[d].block > 1 }

// Bytes returns the size of n elements; n must be a multiple of Block.
func (d DType) Bytes(n int64) int64 { return n / int64(d.Block()) * int64(d.BlockBytes()) }

// Computable reports whether weights of type d can be multiplied: the float types
// and every block format.
func Computable(d DType) bool {
	return d == F32 || d == F16 || d == BF16 || d.IsQuantized()
}
