// Package device holds what is stated of devices: the curves that were fitted to one, and the facts of kernels that
// curves and rooflines take.
package device

import "math"

// Tiling describes a tiled matrix product, as far as its time depends on it. These are facts of the kernel; a device's
// curve, or package strategy by a roofline, derives seconds from them.
type Tiling struct {
	Name       string // tells the tiles of a family apart
	K          int    // elements of a row of x
	Width      int    // outputs of all projections
	Matrices   int    // of a projection
	Rows       int    // rows of x of a workgroup
	Cases      []int  // for up to how many rows it has code of its own, ascending; nil: it multiplies Rows
	Across     int    // workgroups side by side for the outputs of all projections
	Outputs    int    // of a workgroup
	Wide       int    // outputs of a subgroup
	Subgroups  int    // of a workgroup
	Late       int    // of Across, tiles of half the rows, which begin last
	Groups     int    // groups of them, which share the elements of a row
	Ahead      int    // iterations from the load of weights to their use
	Iterations int    // iterations of a workgroup over its elements of a row
	Series     int    // tiles of outputs of a workgroup, one after the other
	Splits     int    // workgroups that share the elements of a row
	TF32x3     bool   // a product of f32 is three of TF32, on matrices
	Slots      int    // experts of a row; 0 where there are none
	Experts    int
}

// Work is what the time of a kernel that is no tiled product depends on besides its bytes and operations, as far as its
// family says. Zero values say nothing.
type Work struct {
	Workgroups int   // that have something to do, even behind few positions; 0: all of the grid
	Items      int   // that a workgroup looks at: logits, or weights
	Readers    int   // workgroups that read each cached position
	Again      int64 // bytes that workgroups read, each of them on its own, and all but the first from a cache
}

// Multiplied is how many rows a workgroup computes in a step of so many.
func (t *Tiling) Multiplied(rows int) int {
	for _, n := range t.Cases {
		if rows <= n {
			return n
		}
	}
	return t.Rows
}

// Tiles is how many tiles the rows of a step fill.
func (t *Tiling) Tiles(rows int) int { return (rows + t.Rows - 1) / t.Rows }

// Rounds is how many rounds of workgroups so many units take.
func Rounds(workgroups, units int) int { return (workgroups + units - 1) / units }

// Chosen is how many experts get a row, if each is as likely as any other.
func (t *Tiling) Chosen(rows int) float64 {
	slots, experts := float64(rows*t.Slots), float64(t.Experts)
	return experts * (1 - math.Exp(-slots/experts))
}

// ExpertTiles is how many tiles experts' rows fill: all experts that get a row have one, if they get few.
func (t *Tiling) ExpertTiles(rows int) float64 {
	return max(t.Chosen(rows), float64(rows*t.Slots)/float64(t.Rows))
}
