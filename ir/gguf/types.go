package gguf

import "github.com/zincc-dev/zincc/ir"

// ggmlType describes one tensor type number of the file format.
type ggmlType struct {
	name  string
	dtype ir.DType // Invalid: sized and named, but no arithmetic for it
	block int64    // elements in one block
	bytes int64    // bytes of one block
}

// ggmlTypes is indexed by the type number of the tensor table; rows without a
// name are numbers that no current file uses (ggml removed them or never gave
// them out). Source: enum ggml_type and the block structs of ggml.
var ggmlTypes = [...]ggmlType{
	0:  {"F32", ir.F32, 1, 4},
	1:  {"F16", ir.F16, 1, 2},
	2:  {"Q4_0", ir.Q4_0, 32, 18},
	3:  {"Q4_1", ir.Q4_1, 32, 20},
	6:  {"Q5_0", ir.Q5_0, 32, 22},
	7:  {"Q5_1", ir.Q5_1, 32, 24},
	8:  {"Q8_0", ir.Q8_0, 32, 34},
	9:  {"Q8_1", ir.Invalid, 32, 36},
	10: {"Q2_K", ir.Q2_K, 256, 84},
	11: {"Q3_K", ir.Q3_K, 256, 110},
	12: {"Q4_K", ir.Q4_K, 256, 144},
	13: {"Q5_K", ir.Q5_K, 256, 176},
	14: {"Q6_K", ir.Q6_K, 256, 210},
	15: {"Q8_K", ir.Invalid, 256, 292},
	16: {"IQ2_XXS", ir.IQ2_XXS, 256, 66},
	17: {"IQ2_XS", ir.IQ2_XS, 256, 74},
	18: {"IQ3_XXS", ir.IQ3_XXS, 256, 98},
	19: {"IQ1_S", ir.IQ1_S, 256, 50},
	20: {"IQ4_NL", ir.IQ4_NL, 32, 18},
	21: {"IQ3_S", ir.IQ3_S, 256, 110},
	22: {"IQ2_S", ir.IQ2_S, 256, 82},
	23: {"IQ4_XS", ir.IQ4_XS, 256, 136},
	24: {"I8", ir.I8, 1, 1},
	25: {"I16", ir.I16, 1, 2},
	26: {"I32", ir.I32, 1, 4},
	27: {"I64", ir.I64, 1, 8},
	28: {"F64", ir.F64, 1, 8},
	29: {"IQ1_M", ir.IQ1_M, 256, 56},
	30: {"BF16", ir.BF16, 1, 2},
	34: {"TQ1_0", ir.TQ1_0, 256, 54},
	35: {"TQ2_0", ir.TQ2_0, 256, 66},
	39: {"MXFP4", ir.MXFP4, 32, 17},
	40: {"NVFP4", ir.NVFP4, 64, 36},
	41: {"Q1_0", ir.Q1_0, 128, 18},
	42: {"Q2_0", ir.Q2_0, 64, 18},
}

// typeByNumber looks up a type number of the tensor table.
func typeByNumber(n uint32) (ggmlType, bool) {
	if uint64(n) >= uint64(len(ggmlTypes)) || ggmlTypes[n].name == "" {
		return ggmlType{}, false
	}
	return ggmlTypes[n], true
}

// numberOf returns the type number that the format uses for d.
func numberOf(d ir.DType) (uint32, bool) {
	for n, t := range ggmlTypes {
		if d != ir.Invalid && t.dtype == d {
			return uint32(n), true
		}
	}
	return 0, false
}
