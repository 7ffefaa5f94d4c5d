// Package fragment has the shapes of cooperative matrices, and which lane of a
// subgroup holds which element on targets that promise it.
package fragment

// Square is the rows, columns and depth of the matrices that kernels of many rows multiply
// without knowing which lane holds which element.
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
