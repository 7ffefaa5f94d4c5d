package matmul

import (
	"math"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
)

// Workers are as many workgroups as run at once. Each sorts the step's rows by expert, takes its share of all
// outputs of all experts, and has weights copied ahead of those that it multiplies, from the first to the last of its
// share. A workgroup for each part of an expert would have nothing under way until it has found its rows. The first
// ones on axis 0 of the grid have a tile of rows of the shared expert before, on axis 1 a part of its outputs.

// work is what a worker does.
func (k *expertWide) work(b *kernel.Builder, f *expertFinder, rows kernel.Value, alone func(), task func(p *projection) *expertWideTask) {
	r := task(k.routed)
	p := f.sort(b, rows, func(p panels) share {
		s := r.shareOf(p)
		for i := range r.stages - 1 {
			r.begin(s, b.Add(s.from, i), place{b.U32(uint32(i)), b.U32(0)})
		}
		return s
	})
	if k.shared != nil {
		b.If(b.Lt(b.WorkgroupID(0), k.sharedTiles()), alone)
	}
	r.computeBytes(f, p, r.shareOf(p)) // registers held until here would be spilled
}

// askForShared has the weights of the shared expert come to the cache before workers that multiply them load them one
// after the other.
func (k *expertWide) askForShared(b *kernel.Builder, p *projectArgs) {
	const line = 32 // words
	own, lanes := b.Add(b.Mul(k.worker(b), k.groups()*fragment.Lanes), b.LocalID()), k.workers[0]*k.workers[1]*k.groups()*fragment.Lanes
	for i, m := range p.matrices {
		w := k.shared.matrices[i].value.Type
		b.For(own, site.CeilDiv(int(w.DType.Bytes(int64(w.Shape[0]*w.Shape[1]))), 4*line), lanes, func(i kernel.Value) { m.Buf.Prefetch(b.Mul(i, line)) })
	}
}

// worker is the number of the worker.
func (k *expertWide) worker(b *kernel.Builder) kernel.Value {
	return b.Add(b.Mul(b.WorkgroupID(0), k.workers[1]), b.WorkgroupID(1))
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
	k.bytes, k.turns = true, wideTurns[0]
	k.bulk = t.CopiesRows() && k.rowsInBulk()
	const reserved = 1 << 10 // bytes of each workgroup
	room, perUnit := max(1, wideRoom/(k.groups()*fragment.Lanes)), 0
	for _, size := range byteSizes {
		k.stages, k.batch = size.stages, size.batch
		if perUnit = min(room, (t.SharedOptIn+reserved)/(k.sharedBytes()+reserved)); perUnit == room {
			break
		}
	}
	if perUnit == 0 {
		k.bytes, k.bulk, k.stages, k.batch = false, false, 0, wideBatch
		return false
	}
	k.workers = [2]int{t.Units * perUnit, 1}
	if k.shared != nil {
		k.shareOut(t.Units * perUnit)
	}
	return true
}

// byteSizes are the lines that the ring may have and the tiles whose sums wait, best first: a barrier for each batch
// costs more than a line less.
var byteSizes = []struct{ stages, batch int }{{4, 4}, {3, 4}, {4, 2}, {3, 2}, {2, 2}}

// shareOut chooses the tiles of a worker of the shared expert: few, but such that nearly all workers run at once.
func (k *expertWide) shareOut(workers int) {
	best, most := 0, math.MinInt
	for _, k.turns = range []int{8, 6, 4} {
		n := max(k.sharedTiles(), workers/k.parts(), 1)
		of := n * k.parts()
		if of > workers {
			of = -of
		}
		if of >= most {
			best, most, k.workers = k.turns, of, [2]int{n, k.parts()}
		}
	}
	k.turns = best
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

// sort makes the panels, in every workgroup. It calls begin when it knows them, but not yet their rows. It puts rows of
// those experts in order of which begin says that the worker has lines.
func (f *expertFinder) sort(b *kernel.Builder, rows kernel.Value, begin func(p panels) share) panels {
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
	b.For(b.LocalID(), f.experts, lanes, func(expert kernel.Value) {
		first, end := b.Shr(p.starts.Load(expert), 16), b.Shr(p.starts.Load(b.Add(expert, 1)), 16)
		b.For(first, end, 1, func(i kernel.Value) { p.list.Store(i, b.Or(expert, b.Shl(b.Sub(i, first), 16))) })
	})
	for i, id := range ids {
		b.If(live[i], func() {
			p.order.Store(b.Add(b.And(p.starts.Load(id), 0xffff), places[i].Get()), b.Add(b.LocalID(), i*lanes))
		})
	}
	b.Barrier()
	own := begin(p)
	for i, id := range ids { // workers must agree on the rows of a panel
		live[i] = b.And(live[i], f.has(b, own, b.Min(id, f.experts-1)))
		b.If(live[i], func() { places[i].Set(p.rank(b, id, b.Add(b.LocalID(), i*lanes))) })
	}
	b.Barrier()
	for i := range ids {
		b.If(live[i], func() { p.order.Store(places[i].Get(), b.Add(b.LocalID(), i*lanes)) })
	}
	b.Barrier()
	return p
}

// has reports whether a share has lines of an expert.
func (k *expertWide) has(b *kernel.Builder, s share, expert kernel.Value) kernel.Value {
	line := func(expert kernel.Value) kernel.Value { return b.Mul(b.Shr(s.starts.Load(expert), 16), k.lines()) }
	return b.And(b.Lt(line(expert), s.to), b.Gt(line(b.Add(expert, 1)), s.from))
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

// sharedWeight is the lines that the work of a worker for the shared expert is worth: its x, and tiles whose weights no
// ring brings. Where experts have few rows, lines wait for memory, and those weights do so longer.
func (k *expertWide) sharedWeight() int {
	n := (3 + k.turns*k.sharers()*5/2) / k.sharers()
	if k.columns() == byteColumns {
		n += 6
	}
	return n
}

// shareOf returns what the worker multiplies. Workers that have a part of the shared expert get less.
func (r *expertWideTask) shareOf(p panels) share {
	b, k := r.b, r.kernel
	all := b.Mul(b.Shr(p.starts.Load(b.U32(uint32(k.experts))), 16), k.lines())
	workers, shared, weight := k.workers[0]*k.workers[1], k.sharedTiles()*k.workers[1], k.sharedWeight()
	own := k.worker(b)
	total := b.Add(all, weight*shared)
	at := func(worker kernel.Value) kernel.Value {
		given := b.Mul(b.Min(worker, shared), weight)
		return b.Min(b.Sub(b.Max(b.Div(b.Mul(total, worker), workers), given), given), all)
	}
	return share{p, at(own), at(b.Add(own, 1))}
}

// computeBytes multiplies rows of the worker's share with their outputs. For a panel each subgroup rounds a block of
// x. Then all go through its lines, while the next ones are copied.
func (r *expertWideTask) computeBytes(f *expertFinder, p panels, s share) {
	b, k := r.b, r.kernel
	r.beginRing()
	r.sumsOwn = b.Add(r.sumsAt(r.member, r.own, r.quad), r.place)
	r.pairOrder = b.Select(b.Eq(b.And(r.quad, 1), 0), b.U32(0x4140), 0x4342)
	b.If(b.Lt(s.from, s.to), func() {
		of := k.lines()
		b.ForRolled(b.Div(s.from, of), b.Div(b.Add(s.to, of-1), of), 1, func(panel kernel.Value) {
			b.Barrier() // the panel before is finished
			r.open(f, p, panel)
			first := b.Mul(panel, of)
			from, to := b.Max(s.from, first), b.Min(s.to, b.Add(first, of))
			if r.sets = k.matrices(); r.sets == 1 {
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

// computePanel multiplies the rows of a panel, which fill so many sets, with the outputs of some lines. The sums of a
// batch of lines wait in shared memory until those of all blocks are there.
func (r *expertWideTask) computePanel(s share, from, to kernel.Value) {
	b, batch := r.b, r.kernel.batch
	xs := r.roundAll()
	b.ForRolled(from, to, batch, func(first kernel.Value) {
		sums := b.Mul(b.And(b.Div(b.Sub(first, from), batch), 1), batch) // batches take turns in two regions
		b.ForRolled(first, b.Min(b.Add(first, batch), to), 1, func(line kernel.Value) {
			r.keepLine(b.Add(sums, b.Sub(line, first)), r.multiplyLine(s, line, xs))
		})
		b.Barrier()
		r.finishLines(sums, first, to)
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

// roundAll rounds x of the panel, and leaves the norm's scales of its columns.
func (r *expertWideTask) roundAll() (xs []byteX) {
	var gains [weight.FixedRuns]kernel.Value
	for i := range r.sets {
		if i > 0 {
			r.b.SubgroupBarrier()
		}
		xs = append(xs, r.roundBytes(i, &gains))
	}
	if r.gain != nil {
		b := r.b
		b.Barrier()
		b.If(b.Lt(b.LocalID(), r.sets*byteColumns), func() { // there is a barrier before they are read
			r.rstd.Store(b.LocalID(), *r.columnScale(b.LocalID()))
		})
	}
	return xs
}
