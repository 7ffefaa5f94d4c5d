package matmul

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// Pack12Candidates round rows: a workgroup takes a block of eight rows.
func Pack12Candidates(s *site.Site, op *ir.Op) []site.Candidate {
	rows, ok := site.ExtentOf(s, op.Args[0])
	if !ok || !s.Target.Groups {
		return nil
	}
	k := packingOf(s.Group.Ops, rows.Max)
	if k == nil {
		return nil
	}
	c := site.Candidate{
		Kernel: fmt.Sprintf("%s columns=%d", k.key(), k.columns) + rows.Key(),
		Grid:   [3]int{k.k / fixedBlock, k.columns / fixedColumns, k.tiles},
		Cover:  k.covers(),
	}
	return []site.Candidate{site.Implement(c, "pack12", func(s *site.Signature) func(b *kernel.Builder) {
		extent, x := rows.Declare(s), s.Read("x", op.Args[0])
		a := k.declare(s)
		return func(b *kernel.Builder) {
			bound := extent.Load(b)
			b.Workgroup(blockRoom)
			l := newBlockLane(b, bound, k.columns)
			a.pack(l, b.WorkgroupID(0), l.load(x, a.width, b.WorkgroupID(0)))
		}
	})}
}

// covers says what workgroups write. Each has a block of eight rows: axis 0 has blocks, 1 and 2 have rows.
func (k *packing) covers() []plans.Cover {
	blocks := k.k / fixedBlock
	list := []plans.Cover{{Arg: "packed", Dims: []int{len(k.lanes), k.tiles, blocks, packedVecs, k.columns, 4},
		Tile: []int{len(k.lanes), 1, 1, packedVecs, fixedColumns, 4}, Axis: []int{-1, 2, 0, -1, 1, -1}}}
	if k.squares != nil {
		list = append(list, plans.Cover{Arg: "squares", Dims: []int{k.tiles, k.columns, 2 * blocks}, Tile: []int{1, fixedColumns, 2}, Axis: []int{2, 1, 0}})
	}
	return list
}
