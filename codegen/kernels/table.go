package kernels

// families is the kernel table. The order is that of the listing, not of
// preference: the strategy ranks the candidates of all of them.
var families = []Family{
	{"embed", "rows of a table, dequantized", embedCandidates},
	{"gemm_fixed", "projections of 3 to 8 rows in fixed point: norm, weights, bias, GLU, residual, with cooperative matrices of f16 into which lanes put the weights themselves", gemmFixedCandidates},
	{"gemv", "projections of few rows: norm, weights of any format, bias, GLU, residual", gemvCandidates},
	{"gemm_dealt", "the same of more rows, with cooperative matrices of f16 into which lanes put the weights themselves", gemmDealtCandidates},
	{"gemm_coop", "the same of many rows, with cooperative matrices of f16", gemmCoopCandidates},
	{"gemm_lanes", "the same of many rows, with weights of f32: the lanes of a subgroup share the elements of a row", gemmLanesCandidates},
	{"gemm", "the same of many rows, in tiles through shared memory", gemmCandidates},
	{"gemm_dot", "the same of many rows, with x in 8-bit fixed point and dot products of bytes, in tiles through shared memory", gemmDotCandidates},
	{"expert_gemv", "projections of the experts that a router chooses, row by row: top-k, norm, weights of any format, GLU, shared experts", expertGemvCandidates},
	{"expert_gemm", "the same for rows sorted by expert, in tiles through shared memory", expertGemmCandidates},
	{"expert_dot", "expert_gemm with x in 8-bit fixed point and dot products of bytes", expertDotCandidates},
	{"expert_dealt", "expert_gemm for few rows of each expert, with matrices as those of gemm_dealt", expertDealtCandidates},
	{"expert_coop", "expert_gemm with cooperative matrices of f16", expertCoopCandidates},
	{"expert_sort", "rows and slots in the order of their experts: one subgroup an expert", expertSortCandidates},
	{"expert_down", "the experts' results, weighted and summed in rank order, with a shared expert's and the residual: one row at a time", expertDownCandidates},
	{"router", "top-k or the weights of the chosen on its own: one subgroup a row", routerCandidates},
	{"expert_sum", "the experts' results, summed in rank order, with a gated shared expert's and the residual, element by element", expertSumCandidates},
	{"heads", "slices, norm and rotary embedding of the heads of q and k, and the writes of k and v into their caches", headsCandidates},
	{"attention_split", "attention of a few rows with what makes q, k and v and writes the caches, each row over parts of the cache that the last part merges: one workgroup a row, KV head and split", attentionSplitCandidates},
	{"attention_merge", "the splits of attention of many rows combined, and gated: one workgroup a row and head", attentionMergeCandidates},
	{"attention_coop", "the same of many rows of one sequence, with cooperative matrices of f16: one workgroup a tile of rows and heads that share a KV head", attentionCoopCandidates},
	{"attention_tiled", "causal attention of many rows of one sequence: one workgroup a tile of rows and head, the cache in tiles through shared memory", attentionTiledCandidates},
	{"delta", "gated DeltaNet: convolution, norms, recurrence and gated norm, one workgroup a value head", deltaCandidates},
	{"conv", "causal convolution over positions and the ring of past rows, each on its own", convCandidates},
	{"argmax", "the choice of the largest logit and what it does to the step block: one workgroup, or several that share a row, of which the last goes on", argmaxCandidates},
	{"rownorm", "a norm of its own: one workgroup a row and group", rowNormCandidates},
	{"elementwise", "an add, a gate, a slice and the like on its own", elementwiseCandidates},
}
