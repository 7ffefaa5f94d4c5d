package site

// Tiling describes a tiled matrix product, as far as its time depends on it. These are facts of the
// kernel; package strategy derives seconds from them.
type Tiling struct {
	Name      string // tells the tiles of a family apart
	K         int    // elements of a row of x
	Width     int    // outputs of all projections
	Matrices  int    // of a projection
	Rows      int    // rows of x of a workgroup
	Cases     []int  // for up to how many rows it has code of its own, ascending; nil: it multiplies Rows
	Across    int    // workgroups side by side for the outputs of all projections
	Outputs   int    // of a workgroup
	Wide      int    // outputs of a subgroup
	Subgroups int    // of a workgroup
	Groups    int    // groups of them, which share the elements of a row
	Ahead     int    // steps from the load of weights to their use
	Steps     int    // steps of a workgroup over its elements of a row
	Series    int    // tiles of outputs of a workgroup, one after the other
	Splits    int    // workgroups that share the elements of a row
	Slots     int    // experts of a row; 0 where there are none
	Experts   int
}
