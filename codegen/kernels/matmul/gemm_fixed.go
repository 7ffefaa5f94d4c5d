package matmul

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// gemmFixed computes a linear group for up to 8 rows of x, which it calls columns, in fixed point with
// cooperative matrices of f16, on devices whose fragments are known. A column has the bits that gemv gives
// it: codes and integers of x are exact in f16, sums of their products are exact in f32, and their
// multiples are added in the same order.
//
// A matrix of weights is 16 outputs and half a run of 32 elements, one of x the same half of
// 8 columns. Each subgroup has a block of 8 runs, whose x its lanes keep, for all tiles of the workgroup.
type gemmFixed struct {
	*linearGroup
	fixedTile
	// counts are the counters of the last-block reduction of split-K products, else nil.
	counts *ir.Value
	// direct: lanes load the norm's weights where they multiply with them, since shared memory cannot hold them.
	direct bool
}

// fixedTile says what a workgroup computes. A tile is 16 outputs, counted over all matrices of a
// projection, as in coopTile.
type fixedTile struct {
	groups int   // subgroups
	splits int   // workgroups that share the elements of a row
	series []int // tiles of a workgroup, one after the other, by projection
	stages int   // tiles in the staging buffer, 0 if weights come to registers
	room   int   // lanes of a unit that registers must suffice for; 0: the driver's compiler chooses
	wide   int   // rows of x of a workgroup of gemm_wide; else 0
}

const (
	fixedSide    = 16 // outputs of a matrix
	fixedColumns = 8
	fixedBlock   = weight.FixedRuns * 32
	fixedChunk   = 4 // blocks whose sums are added as a tree
	// fixedGroups bounds the subgroups of a unit: more leave a lane too few registers.
	fixedGroups = 16
)

func GemmFixedCandidates(s *site.Site, g *Group) []site.Candidate {
	k := fixedAt(s, g)
	if k == nil || !k.hasWorkspace(k.workspaceWidth()) {
		return nil
	}
	list := []site.Candidate{k.candidate()}
	for _, r := range k.stagings(s.Target) {
		k.stages = r.Tiles
		c := k.candidate()
		c.Staging = r
		list = append(list, c)
	}
	return list
}

// fixedAt returns what gemm_fixed makes of the group, nil if it does not compute it.
func fixedAt(s *site.Site, g *linearGroup) *gemmFixed {
	if !g.fitsFixed(s.Target) {
		return nil
	}
	k := &gemmFixed{linearGroup: g, fixedTile: fixedTileOf(g, s.Target)}
	k.direct = k.gain != nil && k.sharedSizes().bytes() > s.Target.Shared
	if k.sharedSizes().bytes()+g.tables() > max(s.Target.Shared, s.Target.SharedOptIn) {
		return nil
	}
	if k.splits > 1 {
		if k.counts = site.Arrivals(s, k.workgroups()*k.tiles()); k.counts == nil {
			return nil
		}
	}
	return k
}

// workgroups is the number of workgroups of a split.
func (k gemmFixed) workgroups() int {
	_, n := k.workgroupsBy(k.outputsOf)
	return n
}

// fitsFixed reports whether gemm_fixed computes the group.
func (g *linearGroup) fitsFixed(t *target.Target) bool {
	if !t.Fragments || t.Wave != fragment.Lanes ||
		g.rows > fixedColumns && (!g.exact || g.rows%fixedColumns != 0) || g.k%fixedBlock != 0 || !g.alike() {
		return false
	}
	for _, p := range g.projects {
		if !p.fixed {
			return false
		}
		for _, w := range p.matrices {
			f := w.format.Fixed
			if f == nil || f != p.matrices[0].format.Fixed {
				return false
			}
		}
	}
	return true
}

// fixedTileOf returns the tile for the group. Rows that are too long for a workgroup are shared by several, each with a
// chunk where a unit holds several of them: one multiplies while another waits at a barrier, and no subgroup is without
// a block where rows are no multiple of what workgroups take (docs/lab/hybrids.md).
func fixedTileOf(g *linearGroup, t *target.Target) fixedTile {
	blocks := g.k / fixedBlock
	s := fixedTile{groups: blocks, splits: site.CeilDiv(blocks, fixedGroups)}
	if s.splits > 1 {
		s.groups = site.CeilDiv(site.CeilDiv(blocks, fixedChunk), s.splits) * fixedChunk
		if t.BoundsRegisters() {
			s.groups, s.room = fixedChunk, fixedGroups*fragment.Lanes
		}
		s.splits = site.CeilDiv(blocks, s.groups)
	}
	most := max(len(g.projects), t.Units*(fixedGroups/s.groups)/s.splits) // workgroups at once
	// All workgroups should have to read about as much.
	for share := fixedSide * fixedBlock / 2; ; share += fixedSide * fixedBlock / 16 {
		s.series = nil
		for _, p := range g.projects {
			s.series = append(s.series, max(1, share/int(p.matrices[0].value.Type.DType.Bytes(fixedSide*fixedBlock))))
		}
		if k := (gemmFixed{linearGroup: g, fixedTile: s}); k.workgroups() <= most {
			return s
		}
	}
}

func (t fixedTile) name() string {
	s := fmt.Sprintf("groups=%d", t.groups)
	if t.splits > 1 {
		s += fmt.Sprintf(" splits=%d series=%d", t.splits, t.series)
	}
	if t.stages > 0 {
		s += fmt.Sprintf(" stages=%d", t.stages)
	}
	return s
}

// turns is how many regions for sums tiles take turns in.
func (t fixedTile) turns() int { return min(2, slices.Max(t.series)) }

// widest is the most rows of x that the kernel is made for.
func (k gemmFixed) widest() int {
	if k.room > 0 || k.wide > 0 {
		return k.columns()
	}
	return fixedColumns
}

// each is the outputs of each matrix of a tile.
func (k gemmFixed) each() int { return fixedSide / len(k.projects[0].matrices) }

// outputsOf is the outputs of each matrix of a workgroup of projection i.
func (k gemmFixed) outputsOf(i int) int { return k.series[i] * k.each() }

// blocks and chunks count those of a row.
func (k gemmFixed) blocks() int { return k.k / fixedBlock }

func (k gemmFixed) chunks() int { return site.CeilDiv(k.blocks(), fixedChunk) }

func (k gemmFixed) candidate() site.Candidate {
	firsts, workgroups := k.workgroupsBy(k.outputsOf)
	roomKey, roomFor := "", ""
	if k.room > 0 {
		roomKey, roomFor = fmt.Sprintf(" columns=%d room=%d", k.widest(), k.room), fmt.Sprintf(", room for %d", k.room)
	}
	c := site.Candidate{
		Kernel: fmt.Sprintf("gemm_fixed %s k=%d %s turns=%d", k.key(), k.k, k.name(), k.turns()) + k.gainsKey() + roomKey + k.tilesKey(),
		Order:  fixedOrder(fragment.Lanes),
		Shape:  "matrices, " + k.name() + roomFor,
		Rows:   k.rows,
		Room:   k.room,
		Early:  k.splits == 1 && k.tiles() > 1, EarlyOf: "x",
		Grid: [3]int{workgroups, k.splits, k.tiles()},
		Work: site.Work{Again: 4 * int64(workgroups*k.rows*k.k)}, // x in f32
	}
	for i, p := range k.projects {
		y := plans.Cover{
			Arg:  fmt.Sprint("y", i),
			Dims: []int{k.rows, p.width}, Tile: []int{k.columns(), k.outputsOf(i)},
			Axis: []int{k.tileAxis(), 0}, First: []int{0, firsts[i]},
		}
		if k.splits > 1 {
			y.Joined = []int{1}
		}
		c.Cover = append(c.Cover, y)
	}
	if k.splits > 1 {
		c.Cover = append(c.Cover, plans.Cover{Arg: "partial", Dims: []int{k.rows, k.chunks(), workgroups, k.left()},
			Tile: []int{k.columns(), k.groups / fixedChunk, 1, k.left()}, Axis: []int{k.tileAxis(), 1, 0, -1}})
	}
	return site.Implement(c, "gemm_fixed", func(s *site.Signature) func(b *kernel.Builder) { return k.kernel(s, firsts) })
}

// columns is the rows of x that a workgroup has, and tiles how many times as many there are, on an axis of the grid.
func (k gemmFixed) columns() int {
	if k.wide > 0 {
		return k.wide
	}
	return min(k.rows, fixedColumns)
}

func (k gemmFixed) tiles() int { return k.rows / k.columns() }

func (k gemmFixed) tileAxis() int {
	if k.tiles() > 1 {
		return 2
	}
	return -1
}

func (k gemmFixed) tilesKey() string {
	if k.tiles() > 1 {
		return " tiled"
	}
	return ""
}

func (k gemmFixed) gainsKey() string {
	if k.direct {
		return " gains=direct"
	}
	return ""
}

func (k gemmFixed) kernel(s *site.Signature, firsts []int) func(b *kernel.Builder) {
	a, columns := k.declare(s, false, firsts), s.U32("columns", k.columns(), fixedColumns, "rows of x that a workgroup has")
	var series []kernel.Value
	for i, n := range k.series {
		series = append(series, s.U32(fmt.Sprint("series", i), n, 1, "tiles of outputs that a workgroup goes through"))
	}
	split := k.declareSplit(s)
	return func(b *kernel.Builder) {
		b.Workgroup(k.groups * fragment.Lanes)
		a.join(b, b.WorkgroupID(0))
		if split != nil {
			split.index = b.WorkgroupID(1)
		}
		shared, staging := newFixedShared(b, k), newFixedStaging(b, k)
		each := func(do func(r *fixedTask)) {
			a.each(b, b.WorkgroupID(0), func(p *projectArgs, at kernel.Value) {
				r := &fixedTask{gemmFixed: k, b: b, a: a, p: p, fixedShared: shared, staging: staging, split: split, columns: columns, format: p.spec.matrices[0].format.Fixed}
				r.lane, r.group = b.SubgroupLane(), b.SubgroupID()
				r.held = r.group
				r.place, r.quad = b.Shr(r.lane, 2), b.And(r.lane, 3)
				if k.tiles() > 1 {
					r.row = b.Mul(b.WorkgroupID(2), fixedColumns)
				}
				r.index = slices.Index(k.projects, p.spec) // projections that are joined have the same series
				r.series = series[r.index]
				r.col = b.Mul(at, b.Mul(r.series, k.each()))
				do(r)
			})
		}
		each((*fixedTask).inSeries)
		if split != nil {
			b.ReturnIf(b.Not(site.LastBlock(b, split.arrivals, split.counter(b, k), b.U32(uint32(k.splits)))))
			each((*fixedTask).addUp)
		}
	}
}
