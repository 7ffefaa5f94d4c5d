package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
)

// Workers are as many workgroups as run at once. Each sorts the step's rows by expert, takes its share of all
// outputs of all experts, and copies weights ahead of those that it multiplies, from the first to the last of its
// share. A workgroup for each part of an expert would have nothing under way until it has found its rows. The first
// ones on axis 0 of the grid have a tile of rows of the shared expert before, on axis 1 a part of its outputs.

// work is what a worker does.
func (k *expertWide) work(b *kernel.Builder, f *expertFinder, rows kernel.Value, alone func(), task func(p *projection) *expertWideTask) {
	p := f.sort(b, rows)
	if k.shared != nil {
		b.If(b.Lt(b.WorkgroupID(0), k.sharedTiles()), func() {
			alone()
			b.Barrier() // copies come in the place of sums
		})
	}
	task(k.routed).computeBytes(f, p)
}

// lines is how many lines of tiles the outputs of an expert are: in a line each subgroup has one.
func (k *expertWide) lines() int { return site.CeilDiv(k.routed.width, k.groups()*k.each()) }

// whole reports whether no tile goes beyond the last output.
func (k *expertWide) whole() bool { return k.bytes && k.routed.width%(k.groups()*k.each()) == 0 }

func (k *expertWide) wholeKey() string {
	if k.whole() {
		return " whole"
	}
	return ""
}

// columns is the rows of an expert that are taken at a time: more where experts have more on average.
func (k *expertWide) columns() int {
	if k.rows*k.expertGroup.slots < byteColumns/2*k.experts {
		return byteColumns
	}
	return fixedColumns
}

// chooseBytes reports whether workers with products of bytes compute the group, and chooses them: as many as run
// at once.
func (k *expertWide) chooseBytes(t *target.Target) bool {
	if k.top != nil || !k.copies(t) || !k.routed.matrices[0].format.Fixed.Super || k.rows*k.expertGroup.slots >= 1<<16 {
		return false
	}
	k.bytes, k.stages = true, wideStages
	const reserved = 1 << 10 // bytes of each workgroup
	perUnit := min(max(1, wideRoom/(k.groups()*fragment.Lanes)), (t.SharedOptIn+reserved)/(k.sharedBytes()+reserved))
	if perUnit == 0 || k.shared != nil && 8*k.sumsSize() > k.stagingSize() {
		k.bytes, k.stages = false, 0
		return false
	}
	k.turns = wideTurns[0]
	k.workers = [2]int{t.Units * perUnit, 1}
	if k.shared != nil {
		k.workers[1] = k.parts()
		k.workers[0] = max(k.sharedTiles(), k.workers[0]/k.parts(), 1)
	}
	return true
}

// mostPanels is the most panels that a step can have. A panel is some rows of an expert, of those that are taken
// at a time.
func (k *expertWide) mostPanels() int {
	slots := k.rows * k.expertGroup.slots
	return slots/k.columns() + min(k.experts, slots)
}

// panels are the rows that chose an expert, by expert, in shared memory.
type panels struct {
	starts *kernel.Array // where the rows of an expert begin in order, and in the upper half its panels in list; then the ends
	order  *kernel.Array // rows of the result
	list   *kernel.Array // panels: the expert, and in the upper half which of its panels
}

// panelSizes are the words of panels' arrays, whole vec4.
func (k *expertWide) panelSizes() (sizes [3]int) {
	for i, n := range []int{k.experts + 1, k.rows * k.expertGroup.slots, k.mostPanels()} {
		sizes[i] = site.CeilDiv(n, 4) * 4
	}
	return
}

// sort makes the panels, in every workgroup.
func (f *expertFinder) sort(b *kernel.Builder, rows kernel.Value) panels {
	slots, lanes, sizes := f.rows*f.expertGroup.slots, f.groups()*fragment.Lanes, f.panelSizes()
	p := panels{b.Shared(kernel.U32, sizes[0]), b.Shared(kernel.U32, sizes[1]), b.Shared(kernel.U32, sizes[2])}
	var ids, live []kernel.Value
	var places []*kernel.Var // in order
	for from := 0; from < slots; from += lanes {
		at := b.Add(b.LocalID(), from)
		id := f.from.Load(kernel.U32, b.Min(at, slots-1))
		ids, live = append(ids, id), append(live, b.And(b.Lt(at, b.Mul(rows, f.slots)), b.Lt(id, f.experts)))
	}
	b.For(b.LocalID(), f.experts, lanes, func(i kernel.Value) { p.starts.Store(i, 0) })
	b.Barrier()
	for i, id := range ids {
		place := b.Var(kernel.U32, 0)
		b.If(live[i], func() { place.Set(p.starts.AtomicAdd(id, 1)) })
		places = append(places, place)
	}
	b.Barrier()
	b.If(b.Eq(b.SubgroupID(), 0), func() { f.addUp(b, p) })
	b.Barrier()
	for i, id := range ids {
		b.If(live[i], func() {
			p.order.Store(b.Add(b.And(p.starts.Load(id), 0xffff), places[i].Get()), b.Add(b.LocalID(), i*lanes))
		})
	}
	b.Barrier()
	for i, id := range ids { // workers must agree on the rows of a panel
		b.If(live[i], func() { places[i].Set(p.rank(b, id, b.Add(b.LocalID(), i*lanes))) })
	}
	b.Barrier()
	for i := range ids {
		b.If(live[i], func() { p.order.Store(places[i].Get(), b.Add(b.LocalID(), i*lanes)) })
	}
	b.For(b.LocalID(), f.experts, lanes, func(expert kernel.Value) {
		first, end := b.Shr(p.starts.Load(expert), 16), b.Shr(p.starts.Load(b.Add(expert, 1)), 16)
		b.For(first, end, 1, func(i kernel.Value) { p.list.Store(i, b.Or(expert, b.Shl(b.Sub(i, first), 16))) })
	})
	b.Barrier()
	return p
}

// rank returns the place of a row among those of its expert, in order.
func (p panels) rank(b *kernel.Builder, expert, row kernel.Value) kernel.Value {
	start := b.And(p.starts.Load(expert), 0xffff)
	rank := b.Var(kernel.U32, start)
	b.For(start, b.And(p.starts.Load(b.Add(expert, 1)), 0xffff), 1, func(i kernel.Value) {
		rank.Set(b.Add(rank.Get(), b.Select(b.Lt(p.order.Load(i), row), b.U32(1), 0)))
	})
	return rank.Get()
}

// addUp makes starts of counts, in one subgroup.
func (f *expertFinder) addUp(b *kernel.Builder, p panels) {
	each := site.CeilDiv(f.experts, fragment.Lanes)
	first, own := b.Mul(b.SubgroupLane(), each), b.U32(0)
	var sizes []kernel.Value // rows and panels
	for i := range each {
		e := b.Add(first, i)
		count := b.Select(b.Lt(e, f.experts), p.starts.Load(b.Min(e, f.experts-1)), 0)
		size := b.Or(count, b.Shl(b.Div(b.Add(count, f.columns()-1), f.columns()), 16))
		sizes, own = append(sizes, size), b.Add(own, size)
	}
	b.SubgroupBarrier() // all have read the counts
	start := b.SubgroupExclusiveAdd(own)
	for i, size := range sizes {
		e := b.Add(first, i)
		b.If(b.Le(e, f.experts), func() { p.starts.Store(e, start) })
		start = b.Add(start, size)
	}
	if each*fragment.Lanes == f.experts {
		b.If(b.Eq(b.SubgroupLane(), fragment.Lanes-1), func() { p.starts.Store(f.experts, start) })
	}
}

// sharedWeight is the lines that the tiles of a workgroup of the shared expert are worth.
const sharedWeight = 2

// shareOf returns what the worker multiplies. Workers that have a part of the shared expert get less.
func (r *expertWideTask) shareOf(p panels) byteShare {
	b, k := r.b, r.kernel
	all := b.Mul(b.Shr(p.starts.Load(b.U32(uint32(k.experts))), 16), k.cutsOfPanel())
	workers, shared, weight := k.workers[0]*k.workers[1], k.sharedTiles()*k.workers[1], sharedWeight*k.cuts()
	own := b.Add(b.Mul(b.WorkgroupID(0), k.workers[1]), b.WorkgroupID(1))
	total := b.Add(all, weight*shared)
	at := func(worker kernel.Value) kernel.Value {
		given := b.Mul(b.Min(worker, shared), weight)
		return b.Min(b.Sub(b.Max(b.Div(b.Mul(total, worker), workers), given), given), all)
	}
	return byteShare{p, at(own), at(b.Add(own, 1))}
}

// computeBytes multiplies rows of the worker's share with their outputs. For a panel each subgroup rounds a block of
// x for all of them. Then it goes through its tiles, block by block, while the next ones are copied.
func (r *expertWideTask) computeBytes(f *expertFinder, p panels) {
	b, k := r.b, r.kernel
	s, of := r.shareOf(p), k.cutsOfPanel()
	b.If(b.Lt(s.from, s.to), func() {
		for i := range r.stages - 1 {
			r.copyStep(s, b.Add(b.Mul(s.from, k.stepsOfCut()), i))
		}
		b.ForRolled(b.Div(s.from, of), b.Div(b.Add(s.to, of-1), of), 1, func(panel kernel.Value) {
			b.Barrier() // all have read x of the panel before
			r.open(f, p, panel)
			first := b.Mul(panel, of)
			from, to := b.Max(s.from, first), b.Min(s.to, b.Add(first, of))
			if r.sets = k.matrices(); r.sets == 1 || !k.few() {
				r.computePanel(s, from, to)
				return
			}
			b.IfElse(b.Le(r.columns, byteColumns), func() {
				r.sets = 1
				r.computePanel(s, from, to)
			}, func() {
				r.sets = k.matrices()
				r.computePanel(s, from, to)
			})
		})
	})
}

// computePanel multiplies the rows of a panel, which fill so many sets, with the outputs of some cuts.
func (r *expertWideTask) computePanel(s byteShare, from, to kernel.Value) {
	b := r.b
	scales := r.roundAll()
	b.ForRolled(from, to, 1, func(cut kernel.Value) {
		piece := r.pieceAt(s, cut)
		compute := func() { r.finishPiece(piece, r.joined(piece, r.addBlocks(s, piece)), scales) }
		if r.kernel.cuts() == 1 {
			compute()
		} else {
			b.If(b.Eq(cut, piece.cut), compute) // others came with that one
		}
	})
}

// open makes the rows of a panel those of the task.
func (r *expertWideTask) open(f *expertFinder, p panels, panel kernel.Value) {
	b, k := r.b, r.kernel
	entry := p.list.Load(panel)
	expert := b.And(entry, 0xffff)
	first := b.Add(b.And(p.starts.Load(expert), 0xffff), b.Mul(b.Shr(entry, 16), k.columns()))
	r.p.expert = &expert
	r.columns = b.Min(b.Sub(b.And(p.starts.Load(b.Add(expert, 1)), 0xffff), first), k.columns())
	r.result = func(column kernel.Value) kernel.Value { return p.order.Load(b.Add(first, column)) }
	r.rowAt = r.result
	if !k.perSlot {
		r.rowAt = func(column kernel.Value) kernel.Value { return b.Div(r.result(column), f.slots) }
	}
}

// roundAll rounds x of the panel, and returns the norm's scales of the lane's columns, nil without norm.
func (r *expertWideTask) roundAll() (scales []*kernel.Value) {
	b, k := r.b, r.kernel
	gains := r.ownGains(r.own)
	for i := range r.sets {
		if k.sharers() > 1 {
			b.If(b.Eq(r.member, i%k.sharers()), func() { r.roundBytes(i, nil) })
			continue
		}
		r.roundBytes(i, gains)
		gains = nil // they are in shared memory
	}
	b.Barrier()
	for i := range r.sets {
		scales = append(scales, r.columnScale(b.Add(r.quad, i*byteColumns)))
	}
	return scales
}

// copyStep begins to copy the block of a step, if there is one.
func (r *expertWideTask) copyStep(s byteShare, step kernel.Value) {
	b, k := r.b, r.kernel
	expert, cut := r.p.expert, b.Div(step, k.stepsOfCut())
	b.If(b.Lt(cut, s.to), func() {
		of := b.And(s.list.Load(b.Div(cut, k.cutsOfPanel())), 0xffff)
		r.p.expert = &of
		piece := r.pieceAt(s, cut)
		r.copyBlock(r.tileCol(piece), b.Add(piece.block, b.Sub(step, b.Mul(piece.cut, k.stepsOfCut()))), step)
	})
	b.CopyGroup()
	r.p.expert = expert
}

// stepSums waits for the i-th block of a piece, begins to copy one ahead, and returns the lane's sums.
func (r *expertWideTask) stepSums(s byteShare, piece bytePiece, i kernel.Value) [][2]kernel.Value {
	b, k := r.b, r.kernel
	step, block := b.Add(b.Mul(piece.cut, k.stepsOfCut()), i), b.Add(piece.block, i)
	b.CopyWait(r.stages - 2)
	b.SubgroupBarrier() // the block is there, and all have read the one before it, in whose place another comes
	r.copyStep(s, b.Add(step, r.stages-1))
	rows := r.rowsAt(r.tileCol(piece), nil)
	var xs []byteX
	for i := range r.sets {
		of := b.Add(block, i*k.blocks())
		totals := r.bytes.totals.Load(b.Add(b.Mul(of, fragment.Lanes), r.lane))
		xs = append(xs, byteX{
			codes: func(run int) [2]kernel.Value {
				v := r.bytes.codes.Load(b.Add(b.Mul(of, weight.FixedRuns*fragment.Lanes), run*fragment.Lanes, r.lane))
				return [2]kernel.Value{b.Elem(v, 0), b.Elem(v, 1)}
			},
			scale:  r.bytes.scales.Load(b.Add(b.Mul(of, byteColumns), r.quad)),
			totals: b.MatPairs(xMatrix, b.Elem(totals, 0), b.Elem(totals, 1)),
		})
	}
	return r.byteBlock(rows, r.copied(rows, block, step), xs)
}
