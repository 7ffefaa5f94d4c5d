// Package fragment says how cooperative matrices are cut: their sizes, and which lane of a
// subgroup holds which element where targets promise it.
package fragment

// Square is the rows, columns and depth of the matrices that kernels of many rows multiply
// as a whole, without knowing which lane holds what.
const Square = 16

// Fragments are of mma.m16n8k16 of NVIDIA's PTX.
const (
	Side    = 16 // outputs of a matrix of weights, and its depth
	Columns = 8  // rows of x of a matrix
	// Lanes is the lanes that share a matrix: 8 places for rows, 4 lanes each.
	Lanes = 32
	// Sums is the elements of a matrix of sums that a lane holds.
	Sums = Side * Columns / Lanes
)
