package kernels

// families is the kernel table. The order is that of the listing, not of
// preference: the strategy ranks the candidates of all of them.
var families = []Family{
	{"embed", "rows of a table, dequantized", embedCandidates},
	{"gemv", "projections of few rows: norm, weights of any format, bias, GLU, residual", gemvCandidates},
}
