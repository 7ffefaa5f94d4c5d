package attention

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
)

func (k *splitKernel) kernel(s *site.Signature) func(b *kernel.Builder) {
	r := &splitRun{splitKernel: k, maker: headMaker{headsGroup: k.chains}}
	r.attentionArgs = attentionArgs{extent: k.rows.Declare(s), gate: k.gate.declare(s)}
	r.declareCaches(k.attentionShape, s, k.op, k.cacheAccess())
	r.maker.declare(s)
	for i := range k.chains.chains {
		r.chains = append(r.chains, r.maker.declareChain(s, i))
	}
	if k.merge != nil {
		r.partial, r.arrivals = s.Update("partial", k.op.Result), s.Update("arrivals", k.counts)
		r.splits = s.U32("splits", k.splits(), 1, "workgroups that share the positions")
		r.block = s.U32("block", k.op.Attrs.Int("block"), 1, "positions that a split has or has not")
		if k.least() > 0 {
			r.least = s.U32("least", k.least(), 1, "positions of a split, but for the last one")
		}
	}
	r.y = s.Write("y", k.result)
	return r.run
}

// run is the kernel's body.
func (r *splitRun) run(b *kernel.Builder) {
	k := r.splitKernel
	r.b, r.maker.b = b, b
	r.begin(b, k.attentionShape)
	if k.merge == nil {
		r.splits, r.block = b.U32(1), b.U32(1)
	}
	b.Workgroup(k.subgroups * k.wave)
	writer := r.takePlace()
	laneID := b.SubgroupLane()
	r.findRow()
	r.takePositions(writer)
	if k.early() {
		r.maker.at = r.at
		r.maker.loadTurns()
	}
	switch {
	case k.matrices:
		r.sums = newMatrixSums(r, laneID)
	case k.lanes:
		r.sums = newLaneSums(r)
	default:
		r.sums = newTeamSums(r, laneID)
	}
	if k.waits {
		b.Await()
		if k.early() {
			r.eachEarly(r.maker.loadHead)
		}
	}
	r.makeHeads(writer)
	if k.writer() {
		b.ReturnIf(writer)
	}
	b.Barrier()
	if k.inTurns() {
		r.attendInTurns()
		return
	}
	r.attend()
}

// takePlace sets the workgroup's row, split and first head. It returns whether the workgroup writes the caches.
func (r *splitRun) takePlace() (writer kernel.Value) {
	b, k := r.b, r.splitKernel
	r.row, r.split = b.WorkgroupID(1), b.WorkgroupID(2)
	writer = b.Bool(false)
	if k.fresh() {
		writer = b.Eq(r.split, 0)
	}
	if k.writer() {
		r.split = b.Select(writer, r.splits, b.Sub(r.split, 1)) // a split without positions
	}
	r.head = b.Mul(b.WorkgroupID(0), k.share)
	return writer
}

// findRow loads the row's position and slot, and what is loaded early around that.
func (r *splitRun) findRow() {
	k := r.splitKernel
	if k.early() {
		r.eachEarly(func(c *chainArgs, _, when kernel.Value) { r.maker.loadGains(c, when) })
	}
	r.findRun()
	r.at = r.pos.Load(kernel.U32, r.row)
	r.slot = r.attentionArgs.slot.Load(kernel.U32, r.row)
	if k.early() && !k.waits {
		r.eachEarly(r.maker.loadHead)
	}
}

// takePositions sets the positions of the split. Workgroups without any return, but for the writer.
func (r *splitRun) takePositions(writer kernel.Value) {
	b, k := r.b, r.splitKernel
	n := b.Add(r.at, 1)
	round := b.Mul(r.splits, r.block)
	r.length = n
	if k.attentionShape.window > 0 {
		align := r.block
		if k.merge == nil {
			align = b.U32(scaled) // the scales of four positions are loaded at once
		}
		r.seen = r.first(b, r.at)
		r.from = r.firstIn(b, r.at, align)
		r.length = b.Sub(n, r.from)
	}
	r.step = b.Mul(b.Div(b.Sub(b.Add(r.length, round), 1), round), r.block)
	if k.least() > 0 {
		r.step = b.Max(r.step, r.least)
	}
	if k.merge == nil {
		r.step = r.length
	}
	r.lo = b.Mul(r.split, r.step)
	if k.halves() {
		r.inHalves = b.Ge(r.step, r.length)
		r.lo = b.Select(b.And(r.inHalves, b.Eq(r.split, 1)), 0, r.lo)
	}
	if k.attentionShape.window > 0 {
		r.lo = b.Add(r.from, r.lo)
	}
	r.hi = b.Min(n, b.Add(r.lo, r.step))
	idle := b.Ge(r.lo, n)
	if k.inTurns() {
		r.hi = n // of all turns
		idle = b.Or(idle, b.Ge(r.split, k.sharersOf(b, r.length)))
	}
	dead := b.Or(b.Ge(r.row, r.attentionArgs.rows), b.Ge(r.at, r.ctx)) // beyond the step or the cache
	if k.writer() {
		idle = b.And(idle, b.Not(writer))
	}
	b.ReturnIf(b.Or(dead, idle))
}

// attend adds up the split, and the last split to end merges all.
func (r *splitRun) attend() {
	b, k := r.b, r.splitKernel
	r.sums.start()
	if k.wide {
		r.loadGates()
	}
	r.sums.attend()
	var active, alone kernel.Value
	if k.least() > 0 {
		alone = b.Ge(r.step, r.length)
	} else {
		active = b.Div(b.Sub(b.Add(r.length, r.step), 1), r.step)
		alone = b.Eq(active, 1)
	}
	r.sums.finish(alone)
	if k.merge == nil {
		return
	}
	b.ReturnIf(alone)
	if k.least() > 0 {
		active = b.Div(b.Sub(b.Add(r.length, r.step), 1), r.step)
	}
	index := b.Add(b.Mul(r.row, b.NumWorkgroups(0)), b.WorkgroupID(0))
	if k.wide {
		r.mergeTwice(r.arrivals, index, active)
		return
	}
	b.If(site.LastBlock(b, r.arrivals, index, active), func() { r.sums.mergeSplits(active) })
}

// rangeSums adds up the positions that a subgroup has of a split. When it is made, it loads the
// first of them, for they are farthest away.
type rangeSums interface {
	// query keeps access j of the q of the h-th head, in shared memory.
	query(h, j, v kernel.Value)
	// start takes q from there.
	start()
	// attend runs over the positions.
	attend()
	// finish writes the split's sums, or the result if the split is alone.
	finish(alone kernel.Value)
	// mergeSplits adds up the sums of the splits that have some, in their order, and writes the result.
	mergeSplits(active kernel.Value)
}

// splitRun is the kernel while it is built.
type splitRun struct {
	*splitKernel
	attentionArgs
	b                *kernel.Builder
	maker            headMaker
	chains           []*chainArgs // of q, k and v
	splits, block    kernel.Value // splits, and positions that one has or has not
	least            kernel.Value // positions of a split, but for the last one
	partial, y       *kernel.Buffer
	arrivals         *kernel.Buffer // counters of the last-block reduction
	row, head, split kernel.Value   // head is the first of share
	runFrom          kernel.Value   // see findRun
	from, length     kernel.Value   // the first position that a split may have, and how many there are
	step             kernel.Value   // positions of a split
	stride           kernel.Value   // between splits of the workgroup, in splits, if they are in turns
	lo, hi           kernel.Value   // positions of the split
	inHalves         kernel.Value   // see halves
	seen             kernel.Value   // the first that the row sees, if it has a window
	sums             rangeSums
	kept             subgroupSums
	gates            []kernel.Value // of the lane's items, if they are loaded before the positions

	// In shared memory: k and v of the step's rows.
	freshK, freshV freshRows
	at, slot       kernel.Value // of the row
}

// cachedBase returns where the workgroup's KV head is in the caches.
func (r *splitRun) cachedBase() cachedHead {
	return r.cachedHead(r.b, r.slot, r.b.Div(r.head, r.group))
}

// inWindow is within where the row sees position p.
func (r *splitRun) inWindow(within, p kernel.Value) kernel.Value {
	if r.attentionShape.window == 0 {
		return within
	}
	return r.b.And(within, r.b.Ge(p, r.seen))
}
