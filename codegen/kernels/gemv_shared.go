package kernels

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
)

const (
	// sharedColumns is the columns that there is room for in shared memory.
	sharedColumns = 4
	// sharedParts bounds the words of the sums there.
	sharedParts = 1536
	// sharedRows is how many rows of a team are too many for the barrier to pay: gate and up
	// of qwen3-8b, 23, gain 1.5 % on an H200, its output head, 288, loses 8 %.
	sharedRows = 32
	// deepRows is from how many rows of a team on four at a time are faster than two.
	deepRows = 16
)

// rowsOfTeam is the rows that each team has if there are as many teams as run at once.
func (k gemv) rowsOfTeam(t *target.Target) int {
	return ceilDiv(k.tiles(1), t.Units*max(1, gemvLanes/(k.subgroups*k.wave)))
}

// inTeams returns the shapes of a kernel whose teams share x, best guess first; none if
// there is no room for x. With a norm there must be room for all columns that a workgroup of
// any entry has, for then the squares of x are added in another order.
func (k gemv) inTeams(t *target.Target) []gemv {
	columns := sharedColumns
	if k.gain == nil {
		columns = min(columns, k.columns)
	}
	fits := columns*k.sharedBytes()+4*sharedParts <= t.Shared
	if k.fixed == nil || k.k/4%k.wave != 0 || 2*k.subgroups*k.wave > gemvLanes || !fits || !k.fits(1) {
		return nil
	}
	k.resident = true
	for k.columns > sharedColumns || !k.fits(k.columns) || k.rows%k.columns != 0 {
		k.columns--
	}
	perBatch := k.matrices() * k.columns
	k.batch = max(1, min(4, gemvSums/perBatch))
	if k.rowsOfTeam(t) < deepRows {
		k.batch = min(2, k.batch)
	}
	var list []gemv
	for ; k.batch > 0; k.batch /= 2 {
		batches := ceilDiv(k.tiles(1), k.batch)
		room := sharedParts / (perBatch * k.subgroups * k.batch) // for batches
		k.teams = max(1, min(min(gemvLanes, t.Lanes())/(k.subgroups*k.wave), ceilDiv(batches, t.Units), room))
		most := max(1, room/k.teams)
		each := ceilDiv(batches, t.Units*k.teams) // batches of a team
		each = ceilDiv(each, ceilDiv(each, most)) // in as many rounds as it takes
		k.tile = k.batch * k.teams * each
		list = append(list, k)
	}
	return list
}

// sharedBytes is what a column takes: two bytes an element, scale and sum of each run, the
// squares of a subgroup's elements.
func (k gemv) sharedBytes() int { return 2*k.k + k.k/fixedRun*8 + k.k/k.wave }

// sharedX is x in fixed point in shared memory, made once for all rows of the tile: of the
// instructions of a short matrix most would otherwise be those that round x, again for each
// row.
type sharedX struct {
	high, low *kernel.Array // four words a run
	scales    *kernel.Array // scale and sum of a run
	// squares has the sums of the squares of what a subgroup took at once; nil without norm.
	squares *kernel.Array
}

func newSharedX(b *kernel.Builder, k gemv) *sharedX {
	runs := k.k / fixedRun * k.columns
	x := &sharedX{high: b.Shared(u32x4, runs), low: b.Shared(u32x4, runs), scales: b.Shared(f32x2, runs)}
	if k.gain != nil {
		x.squares = b.Shared(kernel.F32, k.k/4/k.wave*k.columns)
	}
	return x
}

// keepShared is keep with x in fixed point from shared memory.
func (r *gemvRun) keepShared(each func(do func())) {
	held := map[*projectArgs]*heldWords{}
	for i := range r.a.projects {
		if p := &r.a.projects[i]; p.spec.fixed {
			held[p] = r.roomFor(p)
		}
	}
	each(func() { // before x, which is nearer
		if r.p.spec.fixed {
			held[r.p].set(r.first(r.place()))
		}
	})
	for c := range r.columns {
		r.makeShared(c)
	}
	r.b.Barrier()
	each(func() {
		k := r.place()
		if r.p.spec.fixed {
			r.takeShared(k)
		} else {
			held[r.p] = newWords(r.b, r.first(k))
			r.loadX(k)
		}
		r.products(k, held[r.p])
	})
}

// roomFor returns where to keep words of a projection.
func (r *gemvRun) roomFor(p *projectArgs) *heldWords {
	var zeros []kernel.Value
	for _, t := range p.spec.matrices[0].format.dot.words {
		zero := r.b.U32(0)
		if t.Elem() == kernel.F32 {
			zero = r.b.F32(0)
		}
		if t.Lanes() > 1 {
			zero = r.b.Splat(zero, t.Lanes())
		}
		zeros = append(zeros, zero)
	}
	return newWords(r.b, slices.Repeat([][][]kernel.Value{slices.Repeat([][]kernel.Value{zeros}, r.units(p.spec))}, r.batch*len(p.matrices)))
}

// makeShared rounds column c, four elements a lane and four lanes a run.
func (r *gemvRun) makeShared(c int) {
	b, x := r.b, r.sharedX
	quads := r.k / 4
	b.For(b.LocalID(), quads, r.lanes(), func(i kernel.Value) {
		v := r.a.x.Load(f32x4, b.Add(r.starts[c], i))
		if r.gain != nil {
			gain := r.a.gain.Load(f32x4, i)
			var square partial
			for e := range 4 {
				square.product(b, b.Elem(v, e), b.Elem(v, e))
			}
			sum := square.sum
			for mask := r.wave / 2; mask > 0; mask /= 2 {
				sum = b.Add(sum, b.SubgroupShuffleXor(sum, mask))
			}
			b.If(b.SubgroupElect(), func() { x.squares.Store(b.Add(b.Div(i, r.wave), c*quads/r.wave), sum) })
			v = b.Mul(v, gain)
		}
		q := quarterFixed(b, v)
		run, quarter := b.Add(b.Div(i, 4), c*r.k/fixedRun), b.And(i, 3)
		x.high.StoreElem(run, quarter, q.high)
		x.low.StoreElem(run, quarter, q.low)
		b.If(b.Eq(quarter, 0), func() { x.scales.Store(run, b.Vec(q.scale, q.total)) })
	})
}

// takeShared gives the lane its runs.
func (r *gemvRun) takeShared(k *residentX) {
	b, x, f := r.b, r.sharedX, r.p.matrices[0].format.dot
	for c := range r.columns {
		var columns [][]fixed
		for j, u := range k.units {
			first := b.Add(b.Div(f.begin(b, u), fixedRun), c*r.k/fixedRun)
			var runs []fixed
			for i := range f.runs() {
				at := b.Add(first, i*f.stride/fixedRun)
				run := fixed{high: elements(b, x.high.Load(at)), low: elements(b, x.low.Load(at))}
				scale := x.scales.Load(at)
				if !r.exact(r.p.spec) {
					scale = b.Select(r.real(j), scale, b.Splat(b.F32(0), 2))
				}
				run.scale, run.total = b.Elem(scale, 0), b.Elem(scale, 1)
				runs = append(runs, run)
			}
			columns = append(columns, runs)
		}
		k.fixed = append(k.fixed, columns)
	}
}

// rstd returns the scale of the norm of a column.
func (x *sharedX) rstd(r *gemvRun, column kernel.Value) kernel.Value {
	b, n := r.b, r.k/4/r.wave
	var sum partial
	for i := range n {
		sum.add(b, x.squares.Load(b.Add(b.Mul(column, n), i)))
	}
	return r.a.rstd(b, sum.sum)
}
