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

func AttentionCoopCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	var list []site.Candidate
	for _, k := range matchAttentionCoop(s, op) {
		if k.op.Args[0].Type.DType == ir.F16 {
			list = append(list, k.candidate())
		}
	}
	return list
}

// matchAttentionCoop returns what computes the site's attention with cooperative
// matrices, but for the type of q, best guess first.
func matchAttentionCoop(s *site.Site, op *ir.Op) []*coopAttention {
	prompt := matchPrompt(s, op)
	if prompt == nil || s.Target.Matrix != (target.MatrixShape{Rows: fragment.Square, Cols: fragment.Square, Depth: fragment.Square}) {
		return nil
	}
	var list []*coopAttention
	for _, stays := range []bool{false, true} {
		k := &coopAttention{promptAttention: prompt, stays: stays}
		if (k.stays || !k.wide()) && k.divide(s.Target) && k.splitsAt(k.queryRows(), k.tileKV) {
			list = append(list, k)
		}
	}
	return list
}

// AttentionCoopWants is what the best guess wants.
func AttentionCoopWants(s *site.Site, op *ir.Op) []site.Rewrite {
	list := matchAttentionCoop(s, op)
	if len(list) == 0 {
		return nil
	}
	return list[0].wants(s, list[0].queryRows(), list[0].tileKV, 0)
}

// coopAttention is FlashAttention-2 (Dao, arXiv:2307.08691) with cooperative matrices
// of f16. q is f16, and so are the weights of the softmax, which are relative to a score
// of their row; all sums are f32, in the device's order.
//
// The rows of a step must be of one sequence. A team of subgroups has 16 rows of the tile;
// each of its sides computes the scores of its part of the positions, and the sums of
// its part of the dims.
type coopAttention struct {
	*promptAttention
	stays bool // q stays in shared memory, instead of in registers, and tiles are smaller

	teams   int
	sides   int // subgroups of a team
	tileKV  int // positions of the cache in a buffer
	buffers int // in shared memory: of two, one is filled while the other is used
}

// growth is the power of two by which a score may exceed the top of its row before the top
// and the sums change. f16 holds such weights, and most steps change nothing.
const growth = 8

// coopDims is the dims that a subgroup puts into shared memory at a time at the end.
const coopDims = 32

// divide chooses the tile.
func (k *coopAttention) divide(t *target.Target) bool {
	if k.wide() {
		return k.divideWide(t)
	}
	k.teams, k.sides, k.tileKV = 8, 1, 32
	if k.headDim > 128 {
		k.teams, k.sides = 4, 2
	}
	if k.stays {
		k.teams /= 2
	}
	fits := func(buffers int) bool {
		k.buffers = buffers
		return 16*k.units() <= t.Shared
	}
	for k.teams > 1 && (k.tileRows()/2 >= k.rows.Max*k.fold || !fits(1)) {
		k.teams /= 2
	}
	return k.headDim%(fragment.Square*k.sides) == 0 && k.headDim/k.sides <= 128 && k.wave == 2*fragment.Square &&
		(k.sides == 1 && fits(2) || fits(1)) && k.lanes() <= t.Workgroup
}

// wideHead is the width of the widest heads for which the lanes' registers hold what is fetched.
const wideHead = 256

// wide reports whether a buffer has a tile of k, and then, in its place, one of v, which may be the same. The next
// comes while this one is used, if there are two buffers.
func (k *coopAttention) wide() bool { return k.headDim > wideHead }

// same reports whether k and v are one cache.
func (k *coopAttention) same() bool { return k.op.Args[1] == k.op.Args[2] }

// divideWide is divide for wide heads.
func (k *coopAttention) divideWide(t *target.Target) bool {
	k.sides = 4
	k.teams, k.tileKV = 2, k.sides*fragment.Square
	fits := func(buffers int) bool {
		k.buffers = buffers
		return 16*k.units() <= max(t.Shared, t.SharedOptIn)
	}
	for k.teams > 1 && (k.tileRows()/2 >= k.rows.Max*k.fold || !fits(1)) {
		k.teams /= 2
	}
	return k.headDim%(fragment.Square*k.sides) == 0 && k.headDim/k.sides <= 144 && k.wave == 2*fragment.Square &&
		(k.same() && k.kv == ir.F16 && fits(2) || fits(1)) && k.lanes() <= t.Workgroup
}

func (k *coopAttention) subgroups() int { return k.teams * k.sides }

func (k *coopAttention) lanes() int { return k.subgroups() * k.wave }

// tileRows is the rows of the tile.
func (k *coopAttention) tileRows() int { return k.teams * fragment.Square }

// queryRows is the rows of q that the tile has heads of.
func (k *coopAttention) queryRows() int { return k.tileRows() / k.fold }

// In shared memory lie, in units of 16 bytes: for each buffer a tile of k and one of v;
// the weights of all teams; numbers of the rows of each subgroup; a vote of each subgroup;
// q, if it stays. Else it is where the buffers and weights will be; at the end the sums
// are there.

// stride is the units from row to row of q and the caches. Like other strides it is odd,
// so that 8 rows begin in different banks.
func (k *coopAttention) stride() int { return k.headDim/8 + 1 }

// values is where v begins in a buffer.
func (k *coopAttention) values() int {
	if k.wide() {
		return 0
	}
	return k.tileKV * k.stride()
}

func (k *coopAttention) bufferSize() int { return k.values() + k.tileKV*k.stride() }

func (k *coopAttention) weightsAt() int { return k.buffers * k.bufferSize() }

// weightStride is the units from row to row of the weights.
func (k *coopAttention) weightStride() int { return k.tileKV/8 + 1 }

// squareStride is the units from row to row of a square of 16 columns of f32, squareSize
// its size.
const (
	squareStride = fragment.Square/4 + 1
	squareSize   = fragment.Square * squareStride
)

// teamSize is what a team has for its weights, or its subgroups for a square each.
func (k *coopAttention) teamSize() int {
	return max(fragment.Square*k.weightStride(), k.sides*squareSize)
}

func (k *coopAttention) numbersAt() int {
	size := max(k.weightsAt()+k.teams*k.teamSize(), k.subgroups()*k.sumsSize())
	if !k.stays {
		size = max(size, k.tileRows()*k.stride())
	}
	return size
}

// numbers are kept of each row of a subgroup.
const (
	fades   = iota // factor of the row's sums
	tops           // what its weights are relative to, with the opposite sign
	results        // of a side, for the others
	numbers
)

func (k *coopAttention) votesAt() int {
	return k.numbersAt() + k.subgroups()*numbers*fragment.Square/4
}

func (k *coopAttention) queryAt() int {
	if !k.stays {
		return 0
	}
	return k.votesAt() + site.CeilDiv(k.subgroups(), 4)
}

func (k *coopAttention) units() int {
	if !k.stays {
		return k.votesAt() + site.CeilDiv(k.subgroups(), 4)
	}
	return k.queryAt() + k.tileRows()*k.stride()
}

// dims is how many dims a subgroup puts into shared memory at once at the end, in rows of
// sumStride; sumsSize is what 16 rows take.
func (k *coopAttention) dims() int { return min(coopDims, k.headDim/k.sides) }

func (k *coopAttention) sumStride() int { return k.dims()/4 + 1 }

func (k *coopAttention) sumsSize() int { return fragment.Square * k.sumStride() }

func (k *coopAttention) candidate() site.Candidate {
	form := ""
	switch {
	case k.wide() && k.same():
		form = " q kv"
	case k.stays:
		form = " q"
	}
	tile := fmt.Sprintf("%dx%dx%d", k.tileRows(), k.tileKV, k.buffers)
	return k.promptAttention.candidate("attention_coop", k.queryRows(), fmt.Sprintf("%s team=%dx%d", tile, k.sides, fragment.Square),
		fmt.Sprintf("%s team %d", tile, k.sides), form, k.kernel)
}

// coopAttentionRun is the kernel while it is built.
type coopAttentionRun struct {
	*coopAttention
	promptRun
	team, side kernel.Value
	teamRow    kernel.Value   // the lane's row of the team, which it shares with a neighbour
	member     kernel.Value   // 0 or 1: which of the two it is
	factor     kernel.Value   // of the scores, to powers of two
	query      []kernel.Value // 16 dims each, if it does not stay in shared memory
	sums       []*kernel.Var  // 16 dims of the side each
	coopRows
}

// coopRows are the rows of a team in the softmax. Matrices have 16 columns, in each of
// which is what belongs to some of the side's positions, or the same in all.
type coopRows struct {
	scores  []*kernel.Var // of a tile, 16 positions each
	limit   kernel.Value  // positions that the lane's row sees
	top     *kernel.Var   // what the weights of the lane's row are relative to
	under   *kernel.Var   // matrix of -top
	weight  *kernel.Var   // matrix of the sums of the weights
	largest *kernel.Var   // of a split: matrix of the largest scores
}

var (
	coopSum   = kernel.F32.Matrix(fragment.Square, fragment.Square, kernel.Accumulator)
	coopLeft  = kernel.F16.Matrix(fragment.Square, fragment.Square, kernel.MatrixA)
	coopRight = kernel.F16.Matrix(fragment.Square, fragment.Square, kernel.MatrixB)
)

func (k *coopAttention) kernel(s *site.Signature) func(b *kernel.Builder) {
	r := &coopAttentionRun{coopAttention: k, promptRun: k.declarePrompt(s)}
	return func(b *kernel.Builder) {
		r.findTile(b, k.lanes(), k.units(), k.queryRows(), r.sumUp)
	}
}

// sumUp computes a tile, whose first row has position first.
func (r *coopAttentionRun) sumUp(first kernel.Value) {
	b, k := r.b, r.coopAttention
	r.team, r.side = b.Div(b.SubgroupID(), k.sides), b.Mod(b.SubgroupID(), k.sides)
	r.teamRow, r.member = b.Div(b.SubgroupLane(), 2), b.Mod(b.SubgroupLane(), 2)
	begin := r.span(first, k.tileKV)
	r.start()
	switch {
	case k.wide():
		r.inPlace(begin, first)
	case k.buffers == 1:
		r.fetch(r.k, begin)(b.U32(0))
		r.alternate(begin, first)
	default:
		r.fetch(r.k, begin)(b.U32(0))
		r.ahead(begin, first)
	}
	b.Barrier()
	r.write()
}

// alternate has one buffer: while scores become weights, the next keys and these values
// come.
func (r *coopAttentionRun) alternate(begin, first kernel.Value) {
	b := r.b
	keys, values := b.U32(0), b.U32(uint32(r.values()))
	b.Barrier()
	b.For(begin, r.end, r.tileKV, func(from kernel.Value) {
		next := b.Add(from, r.tileKV)
		storeK, storeV := r.fetch(r.k, next), r.fetch(r.v, from)
		masked := r.masked(from, next, first)
		r.setScores(r.score(keys))
		vote := r.vote(masked)
		b.Barrier()
		storeK(keys)
		storeV(values)
		r.change(from, masked, vote())
		r.weigh()
		b.Barrier()
		r.add(values)
	})
}

// ahead computes the scores of the next tile while those of this one become weights, and
// votes on them while it waits for what it has fetched.
func (r *coopAttentionRun) ahead(begin, first kernel.Value) {
	b := r.b
	masked := func(from kernel.Value) kernel.Value { return r.masked(from, b.Add(from, r.tileKV), first) }
	b.Barrier()
	r.setScores(r.score(b.U32(0)))
	r.fetch(r.k, b.Add(begin, r.tileKV))(b.U32(uint32(r.bufferSize())))
	r.fetch(r.v, begin)(b.U32(uint32(r.values())))
	b.Barrier()
	buffer, changed := b.Var(kernel.U32, 0), b.Var(kernel.Bool, r.vote(masked(begin))())
	b.For(begin, r.end, r.tileKV, func(from kernel.Value) {
		next := b.Add(from, r.tileKV) // behind the last tile: nothing that is used
		storeK, storeV := r.fetch(r.k, b.Add(next, r.tileKV)), r.fetch(r.v, next)
		this := buffer.Get()
		other := b.Sub(r.bufferSize(), this)
		r.change(from, masked(from), changed.Get())
		scores := r.score(other)
		r.weigh()
		b.SubgroupBarrier()
		r.add(b.Add(this, r.values()))
		r.setScores(scores)
		changed.Set(r.vote(masked(next))())
		storeK(this)
		storeV(b.Add(other, r.values()))
		buffer.Set(other)
		b.Barrier()
	})
}

// sync makes what the team has put into shared memory seen by all of it.
func (r *coopAttentionRun) sync() {
	if r.sides == 1 {
		r.b.SubgroupBarrier()
	} else {
		r.b.Barrier()
	}
}

// start loads q and clears the sums.
func (r *coopAttentionRun) start() {
	b, octets := r.b, r.headDim/8
	b.For(b.LocalID(), r.tileRows()*octets, r.lanes(), func(i kernel.Value) {
		row, octet := b.Div(i, octets), b.Mod(i, octets)
		at := b.Add(b.Mul(b.Min(b.Add(r.row, b.Div(row, r.fold)), r.lastRow), r.heads), r.head, b.Mod(row, r.fold))
		r.shared.Store(b.Add(b.Mul(row, r.stride()), octet, r.queryAt()), r.q.Load(lane.U32x4, b.Add(b.Mul(at, octets), octet)))
	})
	b.Barrier()
	r.factor = b.Mul(r.scale, math.Log2E)
	for d := 0; d < r.headDim/fragment.Square && !r.stays; d++ {
		r.query = append(r.query, r.loadQuery(d))
	}
	for range r.headDim / r.sides / fragment.Square {
		r.sums = append(r.sums, r.matrix(0))
	}
	row := r.rowOf(r.inTile(r.teamRow))
	r.coopRows = coopRows{
		limit: b.Add(r.pos.Load(kernel.U32, b.Min(row, r.lastRow)), 1),
		top:   b.Var(kernel.F32, emptyScore), under: r.matrix(-emptyScore), weight: r.matrix(0),
	}
	if r.partial {
		r.largest = r.matrix(emptyScore)
	}
	for range r.tileKV / r.sides / fragment.Square {
		r.scores = append(r.scores, r.matrix(0))
	}
	b.Barrier()
}

// loadQuery loads 16 dims of q.
func (r *coopAttentionRun) loadQuery(d int) kernel.Value {
	b := r.b
	at := b.Add(b.Mul(r.team, fragment.Square*r.stride()), d*fragment.Square/8+r.queryAt())
	return r.shared.LoadMatrix(coopLeft, at, r.stride(), kernel.RowMajor)
}

// matrix returns a matrix whose elements are x.
func (r *coopAttentionRun) matrix(x float32) *kernel.Var {
	return r.b.Var(coopSum, r.b.MatFill(coopSum, x))
}

// inTile returns which row of the tile a row of the team is.
func (r *coopAttentionRun) inTile(row kernel.Value) kernel.Value {
	return r.b.Add(r.b.Mul(r.team, fragment.Square), row)
}

// fetch loads the positions from `from` on and returns what stores them into shared
// memory. Those from end on repeat the last.
func (r *coopAttentionRun) fetch(cache *kernel.Buffer, from kernel.Value) func(to kernel.Value) {
	b, octets := r.b, r.octets()
	units := r.headDim / 8 / octets
	var stores []func(to kernel.Value)
	n, tile := r.tileKV*units, r.headAt(from, r.tileKV)
	for first := 0; first < n; first += r.lanes() {
		item := b.Add(b.LocalID(), first)
		p, u := b.Div(item, units), b.Mod(item, units)
		at := r.at(b, tile, b.Min(b.Add(from, p), b.Sub(r.end, 1)))
		load := r.loadOctets(b, r.attentionShape, cache, at, u)
		store := func(to kernel.Value) {
			to = b.Add(to, b.Mul(p, r.stride()), b.Mul(u, octets))
			load(func(octet int, x kernel.Value) { r.shared.Store(b.Add(to, octet), x) })
		}
		if n-first < r.lanes() {
			whole := store
			store = func(to kernel.Value) { b.If(b.Lt(item, n), func() { whole(to) }) }
		}
		stores = append(stores, store)
	}
	return func(to kernel.Value) {
		for _, s := range stores {
			s(to)
		}
	}
}

// score computes the products of q and the side's positions.
func (r *coopAttentionRun) score(keys kernel.Value) []kernel.Value {
	b := r.b
	own := r.tileKV / r.sides
	from := b.Add(keys, b.Mul(r.side, own*r.stride()))
	scores := make([]kernel.Value, own/fragment.Square)
	for c := range scores {
		scores[c] = b.MatFill(coopSum, 0)
	}
	for d := range r.headDim / fragment.Square {
		var q kernel.Value
		if r.stays {
			q = r.loadQuery(d)
		} else {
			q = r.query[d]
		}
		for c := range scores {
			k := r.shared.LoadMatrix(coopRight, b.Add(from, c*fragment.Square*r.stride()+d*fragment.Square/8), r.stride(), kernel.ColumnMajor)
			scores[c] = b.MatMulAdd(q, k, scores[c])
		}
	}
	return scores
}

// setScores makes scores, 16 positions each, those of the tile.
func (r *coopAttentionRun) setScores(scores []kernel.Value) {
	for c, s := range scores {
		r.scores[c].Set(s)
	}
}

// add adds the weighted tile of v to the sums.
func (r *coopAttentionRun) add(values kernel.Value) {
	b := r.b
	weights := b.Add(b.Mul(r.team, r.teamSize()), r.weightsAt())
	values = b.Add(values, b.Mul(r.side, r.headDim/r.sides/8))
	for p := 0; p < r.tileKV; p += fragment.Square {
		w := r.shared.LoadMatrix(coopLeft, b.Add(weights, p/8), r.weightStride(), kernel.RowMajor)
		for d, sum := range r.sums {
			v := r.shared.LoadMatrix(coopRight, b.Add(values, p*r.stride()+d*fragment.Square/8), r.stride(), kernel.RowMajor)
			sum.Set(b.MatMulAdd(w, v, sum.Get()))
		}
	}
}
