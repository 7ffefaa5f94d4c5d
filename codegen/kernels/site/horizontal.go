package site

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/plans"
)

// Horizontal returns one dispatch of two candidates with as many lanes, whose grids are lines: the workgroups of other
// follow those of c. prefix begins the names of other's arguments and constants. It has the order of other, and loads
// early what both may.
func Horizontal(c, other Candidate, prefix string) Candidate {
	first := c.Grid[0]
	joint := Candidate{
		Kernel: "horizontal " + c.Kernel + ", " + other.Kernel,
		Order:  other.Order,
		Shape:  c.Shape + ", " + other.Shape,
		Lanes:  other.Lanes,
		Rows:   other.Rows,
		Kept:   other.Kept,
		Timed:  other.Timed,
		Grid:   [3]int{first + other.Grid[0], 1, 1},
		Cover:  slices.Clone(c.Cover),
		Early:  true,
	}
	for _, cover := range other.Cover {
		cover.Arg, cover.First = prefix+cover.Arg, after(cover, first)
		joint.Cover = append(joint.Cover, cover)
	}
	return Implement(joint, "horizontal", func(s *Signature) func(b *kernel.Builder) {
		one := c.declare(s)
		s.prefix = prefix
		two := other.declare(s)
		from := s.U32("from", first, 1, "first workgroup of those beside")
		s.prefix = ""
		return func(b *kernel.Builder) {
			b.IfElse(b.Lt(b.WorkgroupID(0), from),
				func() { b.WorkgroupsFrom(b.U32(0), func() { one(b) }) },
				func() { b.WorkgroupsFrom(from, func() { two(b) }) })
		}
	})
}

// after returns the first workgroups of a cover behind so many others along the first axis of the grid.
func after(c plans.Cover, others int) []int {
	list := make([]int, len(c.Dims))
	copy(list, c.First)
	for i, axis := range c.Axis {
		if axis == 0 {
			list[i] += others
		}
	}
	return list
}
