package attention

import (
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// AttentionWgmmaCandidates returns attention of many rows with products of four subgroups.
func AttentionWgmmaCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	k := matchAttentionWgmma(s, op)
	if k == nil || k.op.Args[0].Type.DType != ir.F16 {
		return nil
	}
	return []site.Candidate{k.candidate()}
}

// matchAttentionWgmma returns what computes the site's attention, but for the type of q.
func matchAttentionWgmma(s *site.Site, op *ir.Op) *wgmmaAttention {
	before, tile := beforeTile(s)
	prompt := matchPrompt(before, op)
	if prompt == nil || !s.Target.Groups {
		return nil
	}
	k := &wgmmaAttention{promptAttention: prompt}
	if !k.divide(s.Target) || !k.splitsAt(k.queryRows(), k.tileKV) || !k.takeTile(tile) || !k.takeMerge(s) {
		return nil
	}
	return k
}

// AttentionWgmmaWants is what it wants of the program around it.
func AttentionWgmmaWants(s *site.Site, op *ir.Op) []site.Rewrite {
	k := matchAttentionWgmma(s, op)
	if k == nil {
		return nil
	}
	return k.wants(s, k.queryRows(), k.tileKV, k.merges(s))
}

// wgmmaAttention is FlashAttention-3 (Shah et al., arXiv:2407.08608) with products of four subgroups, but that all
// lanes copy, too. A team of four subgroups has 64 rows of the tile: q and a tile of keys, in shared memory, give it
// the scores of all its positions, the lanes make weights of them where they are, and these, in registers, and a tile
// of values, in shared memory, give all dims. While the weights of a tile are made, those before are multiplied with
// their values. One team makes weights while the other multiplies: they meet at gates only, of which a turn is a tile.
//
// As in attention_coop weights are f16, relative to a score of their row, and all sums f32, in the device's order.
type wgmmaAttention struct {
	*promptAttention
	tileKV int // positions of a tile of the cache
	ahead  int // how many tiles of keys, and one less of values, come before they are needed; there is a buffer more
}

const (
	// teamRows are the rows of four subgroups.
	teamRows = kernel.GroupSide * fragment.Square
	// wgmmaTeams is the number of teams of a workgroup: as many as registers suffice for.
	wgmmaTeams = 2
	// sumSide is the columns of scores or sums that a matrix has.
	sumSide = 8
	// wgmmaHead is the width of the widest heads: a product has as many columns at most, whose sums a lane's registers
	// hold.
	wgmmaHead = 256
	// wgmmaRolled is the widest heads whose tiles are gone through one by one.
	wgmmaRolled = 128
	// wgmmaScores bounds what of the scores and the sums of a row a lane's registers hold.
	wgmmaScores = 320
)

// The gates.
const (
	filled = iota // the next keys, and the values of these weights, are there
	unused        // of the scores, and the weights before, no products are under way
	gates
)

// divide chooses the tile.
func (k *wgmmaAttention) divide(t *target.Target) bool {
	if k.headDim%fragment.Square != 0 || k.headDim > wgmmaHead || k.wave != 2*fragment.Square {
		return false
	}
	if k.kv != ir.F16 && k.headDim%(8*lineUnits) != 0 { // units of a line are shared out
		return false
	}
	k.tileKV = 2 * teamRows
	fits := func(ahead int) bool {
		k.ahead = ahead
		return k.tileKV+k.headDim <= wgmmaScores && 16*k.units()+8*gates+shareBytes <= max(t.Shared, t.SharedOptIn)
	}
	for k.tileKV > fragment.Square && !fits(1) {
		k.tileKV /= 2
	}
	return (!k.byTwos() && fits(2) || fits(1)) && k.lanes() <= t.Workgroup
}

// byTwos reports whether the loop over tiles goes by twos.
func (k *wgmmaAttention) byTwos() bool { return k.headDim > wgmmaRolled }

func (k *wgmmaAttention) lanes() int { return wgmmaTeams * kernel.GroupSide * k.wave }

func (k *wgmmaAttention) tileRows() int { return wgmmaTeams * teamRows }

// queryRows is the rows of q that the tile has heads of.
func (k *wgmmaAttention) queryRows() int { return k.tileRows() / k.fold }

// In shared memory lie, in units of 16 bytes, which have 8 dims: two or three tiles of keys, as many of values, and q.
// Each has a line of 64 dims of all positions, or rows, then one of the next 64.

const lineUnits = 8

// at returns where in a tile of so many positions unit u of position p lies.
func (k *wgmmaAttention) at(b *kernel.Builder, positions int, p, u kernel.Value) kernel.Value {
	return b.Add(b.Mul(b.Div(u, lineUnits), lineUnits*positions), b.Mul(p, lineUnits), b.Xor(b.Mod(u, lineUnits), b.Mod(p, lineUnits)))
}

// after returns, counted in order, where unit u of the first of so many positions lies.
func (k *wgmmaAttention) after(positions, u int) int {
	return u/lineUnits*lineUnits*positions + u%lineUnits
}

func (k *wgmmaAttention) octets() int { return k.headDim / 8 }

// tileSize is the units of a tile of so many positions.
func (k *wgmmaAttention) tileSize(positions int) int {
	return site.CeilDiv(k.octets(), lineUnits) * lineUnits * positions
}

func (k *wgmmaAttention) valuesAt() int { return (k.ahead + 1) * k.tileSize(k.tileKV) }

func (k *wgmmaAttention) queryAt() int { return 2 * k.valuesAt() }

func (k *wgmmaAttention) units() int { return k.queryAt() + k.tileSize(k.tileRows()) }

func (k *wgmmaAttention) candidate() site.Candidate {
	tile := fmt.Sprintf("%dx%d", k.tileRows(), k.tileKV)
	return k.tiled(k.shared(k.promptAttention.candidate("attention_wgmma", k.queryRows(), tile, tile, "", k.kernel), k.queryRows()))
}

// wgmmaAttentionRun is the kernel while it is built.
type wgmmaAttentionRun struct {
	*wgmmaAttention
	promptRun
	teamRow    kernel.Value  // first row of the team in the tile
	own, pair  kernel.Value  // the lane's first row of the tile, and its first column of eight
	factor     kernel.Value  // of the scores, to powers of two
	scores     []*kernel.Var // of a tile, 8 positions each
	weights    []*kernel.Var // of the tile before, 16 positions each
	sums       []*kernel.Var // 8 dims each
	ofRow      [2]wgmmaRow   // the lane's row, and that 8 below
	last       *kernel.Var   // where in values the last tile is
	gates      *kernel.Gates
	turn       *kernel.Var  // of both gates
	firstOfAll kernel.Value // position of the first row
}

// wgmmaRow is a row in the softmax.
type wgmmaRow struct {
	limit   kernel.Value // positions that it sees
	top     *kernel.Var  // what its weights are relative to
	fade    *kernel.Var  // factor of what was summed before the top has changed
	weight  *kernel.Var  // sum of the lane's weights
	largest *kernel.Var  // of a split: of the lane's scores
}

var (
	wgmmaSum    = kernel.F32.Matrix(fragment.Square, sumSide, kernel.Accumulator)
	wgmmaWeight = kernel.F16.Matrix(fragment.Square, fragment.Square, kernel.MatrixA)
)

func (k *wgmmaAttention) kernel(s *site.Signature) func(b *kernel.Builder) {
	r := &wgmmaAttentionRun{wgmmaAttention: k, promptRun: k.declarePrompt(s)}
	return func(b *kernel.Builder) {
		r.gates, r.turn = b.Gates(gates), b.Var(kernel.U32, 0)
		r.findTile(b, k.lanes(), k.units(), k.queryRows(), r.sumUp)
	}
}

// sumUp computes a tile, or splits of it; its first row has position first.
func (r *wgmmaAttentionRun) sumUp(first kernel.Value) {
	b, k := r.b, r.wgmmaAttention
	r.firstOfAll = first
	begin, size := r.span(first, k.tileKV), k.tileSize(k.tileKV)
	r.fill(r.k, begin, b.U32(0))
	r.fillDone()
	if k.ahead > 1 {
		second := b.Add(begin, k.tileKV)
		b.If(b.Lt(second, r.end), func() { r.fill(r.k, second, b.U32(uint32(size))) })
		r.fill(r.v, begin, b.U32(uint32(k.valuesAt())))
		r.fillDone()
	}
	r.start()
	b.CopyWait(k.ahead - 1)
	b.Barrier()
	r.score(b.U32(0))
	if k.ahead > 1 {
		r.arrived()
	}
	r.fetch(begin, b.U32(0), b.U32(uint32(k.ahead*size)))
	b.MatGroupWait(0)
	r.gates.Reach(unused)
	r.weigh(begin)
	r.keep()
	r.last = b.Var(kernel.U32, 0)
	r.tiles(b.Add(begin, k.tileKV))
	r.arrive()
	r.turn.Set(b.Xor(r.turn.Get(), 1)) // nobody has waited for the last one
	r.add(r.last.Get())
	b.MatGroupWait(0)
	r.meet(r.write)
}

// tiles goes through the tiles from position first on. For wide heads it takes them by twos, so that their places are
// constants; for heads of 128 that is no faster (docs/lab/prompts.md).
func (r *wgmmaAttentionRun) tiles(first kernel.Value) {
	b, size := r.b, r.tileSize(r.tileKV)
	if !r.byTwos() {
		b.ForRolled(first, r.end, r.tileKV, func(from kernel.Value) {
			before := r.last.Get()
			this := b.Select(b.Eq(before, r.ahead*size), b.U32(0), b.Add(before, size))
			r.step(from, this, before)
			r.cross(from, this)
			r.last.Set(this)
		})
		return
	}
	end := b.Max(r.end, first)
	count := b.Div(b.Add(b.Sub(end, first), r.tileKV-1), r.tileKV)
	even, odd := b.U32(0), b.U32(uint32(size))
	b.ForRolled(0, b.Div(count, 2), 1, func(i kernel.Value) {
		from := b.Add(first, b.Mul(i, 2*r.tileKV))
		r.step(from, odd, even)
		r.cross(from, odd)
		r.step(b.Add(from, r.tileKV), even, odd)
	})
	b.If(b.Eq(b.And(count, 1), 1), func() {
		r.step(b.Add(first, b.Mul(b.Sub(count, 1), r.tileKV)), odd, even)
		r.last.Set(odd)
	})
}

// step makes weights of the scores of the tile from `from` on, which is in this buffer, while the weights before are
// multiplied with their values, and the next keys and these values come.
func (r *wgmmaAttentionRun) step(from, this, other kernel.Value) {
	b := r.b
	turn := r.turn.Get()
	r.turn.Set(b.Xor(turn, 1))
	r.gates.Await(filled, turn)
	r.score(this)
	r.add(other)
	if r.ahead > 1 {
		r.arrived()
	}
	r.gates.Await(unused, turn)
	r.fetch(from, this, other)
	b.MatGroupWait(1)
	changed := r.weigh(from)
	b.MatGroupWait(0)
	r.gates.Reach(unused)
	b.If(changed, func() {
		for _, sum := range r.sums {
			for e := range 4 {
				sum.SetElem(e, b.Mul(sum.Elem(e), r.ofRow[e/2].fade.Get()))
			}
		}
	})
	r.keep()
}

// start loads q and clears the sums.
func (r *wgmmaAttentionRun) start() {
	b, octets := r.b, r.octets()
	b.For(b.LocalID(), r.tileRows()*octets, r.lanes(), func(i kernel.Value) {
		row, octet := b.Div(i, octets), b.Mod(i, octets)
		head := b.Add(b.Mul(b.Min(r.rowOf(row), r.lastRow), r.heads), r.head, b.Mod(row, r.fold))
		r.shared.Store(b.Add(r.wgmmaAttention.at(b, r.tileRows(), row, octet), r.queryAt()), r.q.Load(lane.U32x4, b.Add(b.Mul(head, octets), octet)))
	})
	r.factor = b.Mul(r.scale, math.Log2E)
	r.teamRow = b.Mul(b.Div(b.SubgroupID(), kernel.GroupSide), teamRows)
	r.own = b.Add(b.Mul(b.SubgroupID(), fragment.Square), b.Div(b.SubgroupLane(), 4))
	r.pair = b.Mul(b.Mod(b.SubgroupLane(), 4), 2)
	matrix := func() *kernel.Var { return b.Var(wgmmaSum, b.MatFill(wgmmaSum, 0)) }
	for range r.headDim / sumSide {
		r.sums = append(r.sums, matrix())
	}
	for range r.tileKV / sumSide {
		r.scores = append(r.scores, matrix())
	}
	for range r.tileKV / fragment.Square {
		r.weights = append(r.weights, b.Var(wgmmaWeight, b.MatPairs(wgmmaWeight, 0, 0, 0, 0)))
	}
	for i := range r.ofRow {
		row := r.rowOf(b.Add(r.own, 8*i))
		r.ofRow[i] = wgmmaRow{
			limit: b.Add(r.pos.Load(kernel.U32, b.Min(row, r.lastRow)), 1),
			top:   b.Var(kernel.F32, emptyScore), fade: b.Var(kernel.F32, 1), weight: b.Var(kernel.F32, 0),
		}
		if r.partial {
			r.ofRow[i].largest = b.Var(kernel.F32, emptyScore)
		}
	}
}

// fetch begins to copy the keys that are to come ahead of those from `from` on, and the values before these, as far as
// there are some. They go where the keys and values before were, which are in another buffer.
func (r *wgmmaAttentionRun) fetch(from, this, other kernel.Value) {
	b := r.b
	keys := b.Add(from, r.ahead*r.tileKV)
	b.If(b.Lt(keys, r.end), func() { r.fill(r.k, keys, other) })
	if r.ahead == 1 {
		r.fill(r.v, from, b.Add(this, r.valuesAt()))
	} else {
		values := b.Add(from, r.tileKV)
		third := b.Sub(3*r.tileSize(r.tileKV), b.Add(this, other))
		b.If(b.Lt(values, r.end), func() { r.fill(r.v, values, b.Add(third, r.valuesAt())) })
	}
	r.fillDone()
}

// arrived waits for what the lane has begun to copy, and says so.
func (r *wgmmaAttentionRun) arrived() {
	r.b.CopyWait(0)
	r.gates.Reach(filled)
}

// fill begins to copy the positions from `from` on.
func (r *wgmmaAttentionRun) fill(cache *kernel.Buffer, from, to kernel.Value) {
	if r.byRows() {
		r.fillRows(cache, from, to)
		return
	}
	b, octets := r.b, r.attentionShape.octets()
	units := r.octets() / octets
	n, tile := r.tileKV*units, r.headAt(from, r.tileKV)
	for first := 0; first < n; first += r.lanes() {
		item := b.Add(b.LocalID(), first)
		unit := func() {
			p, u := b.Div(item, units), b.Mod(item, units)
			if octets > 1 { // eight lanes have units of one line of two positions, which they store without meeting
				side := lineUnits / octets
				p, u = b.Mod(b.Div(item, side), r.tileKV), b.Add(b.Mul(b.Div(item, side*r.tileKV), side), b.Mod(item, side))
			}
			r.fillUnit(cache, tile, from, p, u, func(octet int) kernel.Value {
				at := u
				if octets > 1 {
					at = b.Add(b.Mul(u, octets), octet)
				}
				return b.Add(to, r.wgmmaAttention.at(b, r.tileKV, p, at))
			})
		}
		if n-first < r.lanes() {
			b.If(b.Lt(item, n), unit)
		} else {
			unit()
		}
	}
}

// byRows reports whether a lane can have the same unit of each of its positions, which lie side by side and to which
// the same order in a line applies.
func (k *wgmmaAttention) byRows() bool {
	units := k.octets()
	rows := k.lanes() / units
	sideBySide := k.kept.table == nil && k.kept.ring == 0 || k.kept.inPages(k.tileKV)
	return sideBySide && k.kv == ir.F16 && k.lanes()%units == 0 && rows%lineUnits == 0 && k.tileKV%rows == 0
}

// fillRows is fill by units of positions: what differs between those of a lane is constant, but for positions from end
// on, which are the last.
func (r *wgmmaAttentionRun) fillRows(cache *kernel.Buffer, from, to kernel.Value) {
	b, units := r.b, r.octets()
	p, u := b.Div(b.LocalID(), units), b.Mod(b.LocalID(), units)
	if r.of.partial {
		from = b.Min(from, b.Sub(r.end, 1)) // a split may have no positions
	}
	first, last := r.promptRun.at(b, r.headAt(from, r.tileKV), from).chunks, b.Sub(b.Sub(r.end, 1), from)
	to, first = b.Add(to, r.wgmmaAttention.at(b, r.tileKV, p, u)), b.Add(first, u)
	for row := 0; row < r.tileKV; row += r.lanes() / units {
		cache.Copy(lane.U32x4, r.shared, b.Add(to, row*lineUnits), b.Add(first, b.Mul(b.Min(b.Add(p, row), last), r.kvRow)))
	}
}

// arrive waits for what all lanes have begun to copy.
func (r *wgmmaAttentionRun) arrive() {
	r.b.CopyWait(0)
	r.b.Barrier()
}

// score begins to compute the products of q and a tile of keys.
func (r *wgmmaAttentionRun) score(keys kernel.Value) {
	b := r.b
	var list []kernel.GroupProduct
	for d := 0; d < r.octets(); d += 2 {
		list = append(list, kernel.GroupProduct{
			Rows: b.Add(b.Mul(r.teamRow, lineUnits), r.queryAt()+r.after(r.tileRows(), d)), At: b.Add(keys, r.after(r.tileKV, d))})
	}
	b.MatGroup(r.scores, true, r.shared, kernel.GroupLines{Left: true}, list...)
}

// add begins to add a tile of values, weighted, to the sums.
func (r *wgmmaAttentionRun) add(values kernel.Value) {
	b := r.b
	var list []kernel.GroupProduct
	for i, w := range r.weights {
		list = append(list, kernel.GroupProduct{A: w.Get(), At: b.Add(values, r.valuesAt()+i*fragment.Square*lineUnits)})
	}
	b.MatGroup(r.sums, false, r.shared, kernel.GroupLines{ByRow: true, Stride: lineUnits * r.tileKV}, list...)
}
