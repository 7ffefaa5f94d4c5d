package layout

import "github.com/zincc-dev/zincc/ir"

// recipes is the layout table. Fields within a block are as in the file; see
// package gguf for their bits.
var recipes = []Recipe{
	raw(ir.F32, 1),
	raw(ir.F16, 1),
	raw(ir.BF16, 1),
	raw(ir.Q4_K, 32),
	raw(ir.Q5_K, 32),
	planes(ir.Q4_0, 32,
		field{name: "q", size: 16, from: 2}, // byte j: element j in the low nibble, j+16 in the high
		field{name: "d", size: 2, from: 0}), // f16
	planes(ir.Q8_0, 32,
		field{name: "q", size: 32, from: 2}, // int8
		field{name: "d", size: 2, from: 0}), // f16
	planes(ir.Q6_K, 16,
		field{name: "ql", size: 128, from: 0},
		field{name: "qh", size: 64, from: 128},
		field{name: "scales", size: 16, from: 192}, // int8, one for 16 elements
		field{name: "d", size: 2, from: 208}),      // f16
	packed(ir.Q4_1, 32,
		spread("q", ir.Q4_1, 0, 4, nibblesFrom(4)),
		field{name: "dm", size: 4, from: 0}), // f16 d, f16 m
	packed(ir.Q5_0, 32,
		spread("q", ir.Q5_0, 0, 4, fifths(2, 6)),
		spread("h", ir.Q5_0, 4, 1, fifths(2, 6)),
		field{name: "d", size: 2, from: 0}),
	packed(ir.Q5_1, 32,
		spread("q", ir.Q5_1, 0, 4, fifths(4, 8)),
		spread("h", ir.Q5_1, 4, 1, fifths(4, 8)),
		field{name: "dm", size: 4, from: 0}),
	packed(ir.Q2_K, 16,
		spread("q", ir.Q2_K, 0, 2, quarters(16)),
		field{name: "scales", size: 16, from: 0}, // nibbles of scale and minimum
		field{name: "dm", size: 4, from: 80}),
	packed(ir.Q3_K, 16,
		spread("q", ir.Q3_K, 0, 2, codesQ3_K),
		spread("h", ir.Q3_K, 2, 1, codesQ3_K),
		each("scales", 16, 1, scaleQ3_K), // 6 bits in a byte
		field{name: "d", size: 2, from: 108}),
	packed(ir.IQ4_NL, 32,
		spread("q", ir.IQ4_NL, 0, 4, nibblesFrom(2)),
		field{name: "d", size: 2, from: 0}),
	packed(ir.IQ4_XS, 32,
		spread("q", ir.IQ4_XS, 0, 4, nibblesFrom(8)),
		each("scales", 8, 1, scaleIQ4_XS), // 6 bits in a byte
		field{name: "d", size: 2, from: 0}),
	packed(ir.MXFP4, 32,
		spread("q", ir.MXFP4, 0, 4, nibblesFrom(1)),
		field{name: "e", size: 1, from: 0}),
	packed(ir.NVFP4, 16,
		spread("q", ir.NVFP4, 0, 4, codesNVFP4),
		field{name: "scales", size: 4, from: 0}),
	packed(ir.Q1_0, 32,
		spread("q", ir.Q1_0, 0, 1, bitsFrom(2, 1)),
		field{name: "d", size: 2, from: 0}),
	packed(ir.Q2_0, 32,
		spread("q", ir.Q2_0, 0, 2, bitsFrom(2, 2)),
		field{name: "d", size: 2, from: 0}),
	packed(ir.TQ2_0, 32,
		spread("q", ir.TQ2_0, 0, 2, quarters(0)),
		field{name: "d", size: 2, from: 64}),
	ternary(),
	packed(ir.IQ2_XXS, 32,
		field{name: "q", size: 64, from: 2}, // of a run, four indices, then signs and scale
		field{name: "d", size: 2, from: 0}),
	packed(ir.IQ2_XS, 16,
		field{name: "q", size: 64, from: 2}, // of a run, four indices with signs
		field{name: "scales", size: 8, from: 66},
		field{name: "d", size: 2, from: 0}),
	packed(ir.IQ2_S, 16,
		each("q", 8, 8, func(dst, b []byte, g int) { copy(dst[copy(dst, b[2+4*g:][:4]):], b[34+4*g:][:4]) }), // four indices, four bytes of signs
		each("h", 8, 2, func(dst, b []byte, g int) { dst[0], dst[1] = b[66+g], b[74+g] }),                    // high bits, scales
		field{name: "d", size: 2, from: 0}),
	packed(ir.IQ3_XXS, 32,
		field{name: "q", size: 64, from: 2},
		field{name: "signs", size: 32, from: 66}, // and scale
		field{name: "d", size: 2, from: 0}),
	packed(ir.IQ3_S, 32,
		field{name: "q", size: 64, from: 2},
		field{name: "signs", size: 32, from: 74},
		field{name: "h", size: 8, from: 66},
		field{name: "scales", size: 4, from: 106},
		field{name: "d", size: 2, from: 0}),
	packed(ir.IQ1_S, 32,
		field{name: "q", size: 32, from: 2},
		field{name: "h", size: 16, from: 34},
		field{name: "d", size: 2, from: 0}),
	packed(ir.IQ1_M, 16,
		field{name: "q", size: 32, from: 0},
		field{name: "h", size: 16, from: 32},
		field{name: "scales", size: 8, from: 48}),
}

func raw(d ir.DType, group int) Recipe {
	return Recipe{Name: "raw", DType: d, Format: d.String(), Group: group,
		fields: []field{{name: "data", size: d.BlockBytes()}}}
}

func planes(d ir.DType, group int, fields ...field) Recipe {
	return Recipe{Name: "planes", DType: d, Format: d.String(), Group: group, fields: fields}
}
