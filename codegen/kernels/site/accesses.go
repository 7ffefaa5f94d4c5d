package site

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/plans"
)

// RowsALane returns how many rows of a step a lane may take, up to most, so that there are
// workgroups for all units.
func (a Accesses) RowsALane(rows, most int, t *target.Target) int {
	grid := a.Grid(rows)
	for most > 1 && grid[0]*CeilDiv(rows, most) < 2*t.Units {
		most /= 2
	}
	return most
}

// Accesses is the shape of a kernel that handles each access of a row by
// itself: grid axis 0 tiles the row, axis 1 counts the rows.
type Accesses struct {
	Vec, size, width int
}

func AccessesOf(width int, t *target.Target) Accesses {
	return Accesses{Vec: Widest(width), size: min(t.Workgroup, 256) / t.Wave * t.Wave, width: width}
}

func (a Accesses) Grid(rows int) [3]int {
	return [3]int{CeilDiv(a.width, a.Vec*a.size), rows, 1}
}

func (a Accesses) Cover(rows int) []plans.Cover {
	return []plans.Cover{{Arg: "y", Dims: []int{rows, a.width}, Tile: []int{1, a.Vec * a.size}, Axis: []int{1, 0}}}
}

// Declare declares the length of a row and the size of a workgroup.
func (a Accesses) Declare(s *Signature) AccessArgs {
	return AccessArgs{s.U32("width", a.width, 4096, "elements of a row"), s.U32("workgroup", a.size, 256, "lanes"), a.Vec}
}

// AccessArgs are accesses in a kernel.
type AccessArgs struct {
	width, size kernel.Value
	vec         int
}

// Each sets the workgroup and runs body for each access i of the n accesses of a row.
func (a AccessArgs) Each(b *kernel.Builder, body func(i, n kernel.Value)) {
	b.Workgroup(a.size)
	n := b.Div(a.width, a.vec)
	i := b.Add(b.Mul(b.WorkgroupID(0), a.size), b.LocalID())
	b.If(b.Lt(i, n), func() { body(i, n) })
}
