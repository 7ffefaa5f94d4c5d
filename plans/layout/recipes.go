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
	affine(ir.Q4_1, 32, affineBlock{quantsQ4_1, scaleF16, offsetF16}),
	affine(ir.Q5_0, 32, affineBlock{quantsQ5_0, scaleF16, nil}),
	affine(ir.Q5_1, 32, affineBlock{quantsQ5_1, scaleF16, offsetF16}),
	affine(ir.Q2_K, 16, affineBlock{quantsQ2_K, scaleQ2_K, offsetQ2_K}),
	affine(ir.Q3_K, 16, affineBlock{quantsQ3_K, scaleQ3_K, nil}),
	affine(ir.IQ4_NL, 32, affineBlock{quantsIQ4_NL, scaleF16, nil}),
	affine(ir.IQ4_XS, 32, affineBlock{quantsIQ4_XS, scaleIQ4_XS, nil}),
	affine(ir.MXFP4, 32, affineBlock{quantsMXFP4, scaleMXFP4, nil}),
	affine(ir.IQ1_S, 32, affineBlock{quantsIQ1_S, scaleIQ1_S, nil}),
	affine(ir.IQ1_M, 16, affineBlock{quantsIQ1_M, scaleIQ1_M, nil}),
	affine(ir.IQ2_XXS, 32, affineBlock{quantsIQ2_XXS, scaleIQ2_XXS, nil}),
	affine(ir.IQ2_XS, 16, affineBlock{quantsIQ2_XS, scaleIQ2_XS, nil}),
	affine(ir.IQ2_S, 16, affineBlock{quantsIQ2_S, scaleIQ2_S, nil}),
	affine(ir.IQ3_XXS, 32, affineBlock{quantsIQ3_XXS, scaleIQ3_XXS, nil}),
	affine(ir.IQ3_S, 32, affineBlock{quantsIQ3_S, scaleIQ3_S, nil}),
	affine(ir.TQ1_0, 32, affineBlock{quantsTQ1_0, scaleTQ1_0, nil}),
	affine(ir.TQ2_0, 32, affineBlock{quantsTQ2_0, scaleTQ2_0, nil}),
	affine(ir.Q1_0, 32, affineBlock{quantsQ1_0, scaleF16, nil}),
	affine(ir.Q2_0, 32, affineBlock{quantsQ2_0, scaleF16, nil}),
	affine(ir.NVFP4, 16, affineBlock{quantsNVFP4, scaleNVFP4, nil}),
}

func raw(d ir.DType, group int) Recipe {
	return Recipe{Name: "raw", DType: d, Format: d.String(), Group: group,
		fields: []field{{name: "data", size: d.BlockBytes()}}}
}

func planes(d ir.DType, group int, fields ...field) Recipe {
	return Recipe{Name: "planes", DType: d, Format: d.String(), Group: group, fields: fields}
}
