package matmul

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/plans"
)

// gemmWide computes what gemmFixed does for 16 to 64 rows of x at once, so that weights are taken apart once for all
// of them. Each subgroup has 16 outputs, whose codes its lanes make; four subgroups multiply them together with x,
// which is in shared memory (wgmma). A workgroup has a part of x, a chunk of blocks that op pack12 has rounded, and
// goes through tiles of outputs. The dispatch behind adds parts, or one dispatch does all: see roundOwn, alone.
type gemmWide struct {
	gemmFixed
	shape wideShape
}

// wideShape is how a workgroup of gemm_wide is made.
type wideShape struct {
	columns, groups int // rows of x, subgroups
	sets            int // accumulators: while one is read, another is written
	// apart: the sums of a block wait in shared memory for those of its neighbour, since registers have no room.
	apart bool
	plain bool // for formats of which a run has a float scale
	pins  bool // all weights of the next block are loaded at once: registers have room for another one
}

var wideShapes = []wideShape{
	{64, 8, 2, false, false, false},
	{32, 16, 1, true, false, false},
	{32, 8, 2, false, false, false},
	{16, 16, 2, false, false, false},
	{16, 8, 2, false, false, false},
	{64, 8, 1, true, true, false},
	{32, 16, 1, true, true, false},
	{32, 12, 1, true, true, true},
	{32, 8, 2, true, true, true},
	{16, 16, 2, false, true, false},
	{16, 12, 2, false, true, false},
	{16, 8, 2, false, true, true},
}

// wideEach is the elements of a part.
const wideEach = fixedChunk * fixedBlock

func GemmWideCandidates(s *site.Site, g *Group) []site.Candidate {
	k := wideAt(s, g)
	switch {
	case k == nil:
	case g.packed == nil && !k.inParts(s.Target) && k.hasWorkspace(k.workspaceWidth()),
		g.packed != nil && g.packed.rows == g.rows && g.each == wideEach && k.bare() && slices.Equal(k.lanes(), g.packed.lanes):
		return []site.Candidate{k.candidate()}
	}
	return nil
}

// bare reports whether there are products and nothing else.
func (g *linearGroup) bare() bool {
	return !slices.ContainsFunc(g.projects, func(p *projection) bool { return !p.plain() || len(p.matrices) > 1 || p.matrices[0].bias != nil })
}

// wideAt returns what gemm_wide makes of the group, nil if it does not compute it.
func wideAt(s *site.Site, g *linearGroup) *gemmWide {
	if !s.Target.Groups || !g.exact || !g.fitsFixed(s.Target) {
		return nil
	}
	for _, p := range g.projects {
		if f := p.matrices[0].format.Fixed; !f.Super && !(plainRuns(f) && g.k >= plainLeast) {
			return nil
		}
	}
	k := wideOf(g, s.Target)
	if k == nil || k.bytes()+g.tables() > s.Target.SharedOptIn {
		return nil
	}
	if k.splits > 1 && g.packed == nil && !k.inParts(s.Target) {
		parts, _ := k.turnParts()
		if k.counts = site.Arrivals(s, k.workgroups()*k.tiles()*parts); k.counts == nil {
			return nil
		}
	}
	return k
}

// wideOf returns the kernel for the group, of the shape that goes through it in the least time; nil if it has too few
// rows.
func wideOf(g *linearGroup, t *target.Target) (best *gemmWide) {
	least, plain := 0, slices.ContainsFunc(g.projects, func(p *projection) bool { return !p.matrices[0].format.Fixed.Super })
	for _, shape := range wideShapes {
		if shape.plain != plain || g.rows%shape.columns != 0 || g.packed != nil && shape.columns != g.packed.columns || best != nil && best.columns() > shape.columns && (!shape.pins || shape.columns < mostWide/2) {
			continue
		}
		s := fixedTile{groups: shape.groups, splits: site.CeilDiv(g.k/fixedBlock, fixedChunk), room: shape.groups * fragment.Lanes, wide: shape.columns}
		most := max(len(g.projects), t.Units/(s.splits*g.rows/shape.columns)) // at once: each brings its x
		for tiles := together; ; tiles += together {
			s.series = nil
			for _, p := range g.projects { // those of finer scales have more products
				s.series = append(s.series, max(together, tiles/p.matrices[0].format.Fixed.Halves()/together*together))
			}
			k := &gemmWide{gemmFixed{linearGroup: g, fixedTile: s, direct: g.gain != nil}, shape}
			if k.workgroups() > most {
				continue
			}
			if time := k.time(tiles); best == nil || time <= least {
				best, least = k, time
			}
			break
		}
	}
	return best
}

// time is what a workgroup of so many tiles takes, in tiles.
func (k gemmWide) time(tiles int) int {
	time := tiles + k.turns()*wideTurn
	if k.shape.plain {
		time += wideRound * k.held() * k.wide / mostWide
	}
	return time
}

// mostWide is the most columns of a workgroup.
const mostWide = 64

// together is the subgroups that multiply together.
const together = 4

// wideTurn is what a turn takes besides its subgroups, as many of which take as long.
const wideTurn = 4

// wideRound is what it takes a workgroup to round a block of mostWide columns of x.
const wideRound = 4

// products is how many products of a block all turns of a workgroup have at most. One of a run with a float scale,
// whose accumulators take as many instructions, counts twice.
func (k gemmWide) products() (most int) {
	for i, p := range k.projects {
		f := p.matrices[0].format.Fixed
		products := f.Halves()
		if !f.Super {
			products = 2
		}
		most = max(most, site.CeilDiv(k.series[i], k.groups)*weight.FixedRuns*products)
	}
	return most
}

// turns is how many tiles a subgroup has at most.
func (k gemmWide) turns() int { return site.CeilDiv(slices.Max(k.series), k.groups) }

// held is the blocks of x that a workgroup has, two of which are multiplied after each other.
func (k gemmWide) held() int { return site.CeilDiv(min(k.blocks(), fixedChunk), 2) * 2 }

// bytes is the size of shared memory.
func (k gemmWide) bytes() int {
	n := 16*k.blocksOfX() + 8*k.scalePairs() + 16*k.ones() + 16*(k.held()+1) + 16*k.waiting()
	if k.gain != nil {
		n += 4 * k.wide * (1 + k.squaresOf())
	}
	return n
}

// scalePairs is the pairs of scales of x. In packed blocks each column has those of four.
func (k gemmWide) scalePairs() int {
	if k.packed != nil {
		return 2 * k.held() * k.wide
	}
	return k.held() * k.wide / 2
}

// blocksOfX is the vec4 of the codes and totals of x.
func (k gemmWide) blocksOfX() int { return wideVecs * k.held() * k.wide }

// ones is the vec4 of a matrix of ones behind them; none if no sums begin with it: see windows.
func (k gemmWide) ones() int {
	if k.shape.plain || k.wide <= 2*fixedColumns {
		return 0
	}
	return 2 * k.wide
}

// lanes are the layouts of x, of which a projection takes one.
func (k gemmWide) lanes() (list []string) {
	for _, p := range k.projects {
		if lanes := packedLanes(p.matrices[0].format.Fixed); !slices.Contains(list, lanes) {
			list = append(list, lanes)
		}
	}
	return list
}

// waiting is the vec4 of sums that wait in shared memory.
func (k gemmWide) waiting() int {
	if !k.shape.apart {
		return 0
	}
	return k.groups * fragment.Lanes * k.wide / fixedColumns
}

func (k gemmWide) candidate() site.Candidate {
	firsts, workgroups := k.workgroupsBy(k.outputsOf)
	name := fmt.Sprintf("columns=%d %s", k.wide, k.name())
	tiling := ""
	if k.packed != nil {
		tiling = "parts "
	}
	c := site.Candidate{
		Kernel: fmt.Sprintf("gemm_wide %s k=%d %s room=%d", k.key(), k.k, name, k.room) + k.tilesKey(),
		Order:  fixedOrder(fragment.Lanes),
		Shape:  "wide, " + name,
		Room:   k.room,
		Grid:   [3]int{workgroups, k.splits, k.tiles()},
		Tiling: &site.Tiling{Name: tiling + fmt.Sprintf("columns=%d groups=%d", k.wide, k.groups), K: k.k, Rows: k.wide, Across: workgroups, Subgroups: k.groups,
			Iterations: k.products(), Series: k.turns(), Splits: k.splits},
	}
	for i, p := range k.projects {
		y := plans.Cover{
			Arg:  fmt.Sprint("y", i),
			Dims: []int{k.rows, k.splits, p.width}, Tile: []int{k.wide, 1, k.outputsOf(i)},
			Axis: []int{k.tileAxis(), 1, 0}, First: []int{0, 0, firsts[i]},
		}
		if k.packed == nil {
			y.Dims, y.Tile, y.Axis, y.First = slices.Delete(y.Dims, 1, 2), slices.Delete(y.Tile, 1, 2), slices.Delete(y.Axis, 1, 2), y.First[1:]
			if k.splits > 1 {
				y.Joined = []int{1}
			}
		}
		c.Cover = append(c.Cover, y)
	}
	if k.packed == nil && k.splits > 1 {
		c.Cover = append(c.Cover, plans.Cover{Arg: "partial", Dims: []int{k.tiles(), k.chunks(), workgroups, k.left() * k.wide},
			Tile: []int{1, 1, 1, k.left() * k.wide}, Axis: []int{k.tileAxis(), 1, 0, -1}})
	}
	return site.Implement(c, "gemm_wide", func(s *site.Signature) func(b *kernel.Builder) { return k.kernel(s, firsts) })
}

func (k gemmWide) kernel(s *site.Signature, firsts []int) func(b *kernel.Builder) {
	a := k.declare(s, false, firsts)
	var series []kernel.Value
	for i, n := range k.series {
		series = append(series, s.U32(fmt.Sprint("series", i), n, 1, "tiles of outputs that a workgroup goes through"))
	}
	var split *fixedSplit
	if k.packed == nil {
		split = k.declareSplit(s)
	}
	return func(b *kernel.Builder) {
		b.Workgroup(k.room)
		a.join(b, b.WorkgroupID(0))
		if split != nil {
			split.index = b.WorkgroupID(1)
		}
		shared := newWideShared(b, k)
		each := func(do func(r *wideTask)) {
			a.each(b, b.WorkgroupID(0), func(p *projectArgs, at kernel.Value) {
				r := &wideTask{&fixedTask{gemmFixed: k.gemmFixed, b: b, a: a, p: p, split: split, columns: b.U32(uint32(k.wide)), format: p.spec.matrices[0].format.Fixed},
					shared, k}
				r.fixedTask.squares, r.fixedTask.rstd = shared.squares, shared.rstd
				r.pinned = true
				r.lane, r.group = b.SubgroupLane(), b.SubgroupID()
				r.place, r.quad = b.Shr(r.lane, 2), b.And(r.lane, 3)
				if k.tiles() > 1 {
					r.row = b.Mul(b.WorkgroupID(2), k.wide)
				}
				r.index = slices.Index(k.projects, p.spec)
				r.series = series[r.index]
				r.col = b.Mul(at, b.Mul(r.series, k.each()))
				do(r)
			})
		}
		each((*wideTask).inSeries)
	}
}

// wideShared is the shared memory of gemm_wide.
type wideShared struct {
	x             *kernel.Array    // codes and totals of blocks, see wideVecs; then ones
	scales        *kernel.Array    // of x: by block, two columns; if packed, by block, column, two of its four columns
	copies        *kernel.Arrivals // of blocks; of the scales of all of them; nil if the workgroup rounds x
	waiting       *kernel.Array    // sums of a block, by matrix, lane; nil if they wait in registers
	squares, rstd *kernel.Array    // of the norm, if the workgroup rounds x: see fixedShared
	arrived       *kernel.Array    // see site.Arrive: of parts of even and of odd number
}

func newWideShared(b *kernel.Builder, k gemmWide) wideShared {
	s := wideShared{x: b.Shared(kernel.U32.Vec(4), k.blocksOfX()+k.ones()), scales: b.Shared(kernel.U32.Vec(2), k.scalePairs())}
	if ones := k.ones(); ones > 0 {
		b.If(b.Lt(b.LocalID(), ones), func() {
			s.x.Store(b.Add(b.LocalID(), k.blocksOfX()), b.Splat(b.U32(weight.Half2(1)), 4))
		})
	}
	if k.packed != nil {
		s.copies = b.Arrivals(k.held() + 1) // is a barrier, behind which products see the ones
	}
	if k.packed == nil && k.splits > 1 {
		s.arrived = b.Shared(kernel.U32, 2)
	}
	if k.gain != nil {
		s.rstd, s.squares = b.Shared(kernel.F32, k.wide), b.Shared(kernel.F32, k.wide*k.squaresOf())
	}
	if k.shape.apart {
		s.waiting = b.Shared(kernel.F32.Vec(4), k.waiting())
	}
	return s
}

// wideProduct is a product of a block, of a run or, if scales are fine, of half of it. Accumulators take turns. One is
// not cleared between its steps: a step is multiplied by the difference of its scale and the one that follows it there.
// It is cleared before the sum could leave the mantissa of a window.
type wideProduct struct {
	slot, half int
	scale      int  // number of the step's scale
	clear      bool // the accumulator is cleared before it
	next       int  // number of the next scale of the accumulator; -1 if it is cleared before that
}

func wideProducts(f *weight.FixedFormat, sets int) (steps []wideProduct) {
	if !f.Super {
		return plainProducts()
	}
	const most = 1<<22 - 1 // magnitude of the sums in a window
	long := most / (max(f.Largest-f.Bias, f.Bias) * weight.FixedMost * 32 / f.Halves())
	since := make([]int, sets) // steps since an accumulator was cleared
	for slot := range weight.FixedRuns {
		for half := range f.Halves() {
			n := len(steps)
			s := wideProduct{slot, half, f.Run(slot)*f.Halves() + half, true, -1}
			if n >= sets && since[n%sets] < long {
				s.clear, steps[n-sets].next = false, s.scale
			} else {
				since[n%sets] = 0
			}
			since[n%sets]++
			steps = append(steps, s)
		}
	}
	return steps
}
