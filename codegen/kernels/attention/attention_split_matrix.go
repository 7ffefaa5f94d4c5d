package attention

import (
	"math"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// matrixSums are rangeSums with cooperative matrices that lanes put together. A subgroup takes
// 16 positions at a time, two tiles of 8.
//
// Scores are q (16 rows: four heads, twice the upper f16 of their elements and twice the lower)
// by the keys of a tile (8 columns), 16 dims at a time. A lane then has the scores of one head
// and of two positions of each tile, and that is how lanes hold the second factor of 16 dims of
// the values (rows) by the weights (8 columns): weights stay where they are. Its columns are the upper
// f16 of the weights of the four heads and the lower, so that nothing is rounded to f16. Which dims
// and positions make up a matrix is free: those that a lane has lie together in the cache.
//
// A workgroup of eight heads has four more where the first four are twice, and the lower parts of the weights in a
// second matrix. If it is wide both are added to the same sums, else to sums of their own, as in a workgroup of four;
// then the tops of four heads each change together, too.
//
// A lane's place is that among 8, its quad that among the four lanes of one place.
type matrixSums struct {
	*splitRun
	place, quad kernel.Value
	base        cachedHead
	end, last   kernel.Value  // of the positions in the caches: the first beyond them, the last
	queries     *kernel.Array // by 16 dims, head, quad: what lanes hold of q
	sum         []*kernel.Var // by 16 dims
	lower       []*kernel.Var // of the lower parts, if the workgroup is doubled
	top, weight *kernel.Var   // of the place's head; scores are powers of two here

	// For four heads: the part of a weight in the lane's column is one factor of its upper bits and another of the
	// whole.
	ofUpper, ofWhole kernel.Value

	// The row's own position, which the group writes to the caches, is apart from those in them:
	// the subgroup that makes q of a head has its score. own is what lanes keep of that q.
	own     []*kernel.Var
	kept    int           // of own, while the kernel is built
	ownTops *kernel.Array // by head
	attends kernel.Value  // the position is one of the split's

	nextKeys, nextValues [][]*kernel.Var // of the next turn, if they are loaded ahead

	stagedKeys, stagedValues *stagedTile  // the same, if they are copied ahead
	cachedEnd                kernel.Value // of all of the workgroup's splits, if they are in turns

	// Other rows of the step may be among the positions.
	other    kernel.Value    // whether the lane has a row of the sequence
	otherPos kernel.Value    // of that row
	rowPos   kernel.Value    // the same, if it is one of the split's; else beyond all positions
	tileRows [2]kernel.Value // by four bits, which rows of the step, from 1 on, the positions of a turn are
}

const (
	// aheadHead is the elements of the widest heads whose keys and values of a turn fit in registers beside those of
	// the one before.
	aheadHead = 128
	// eightsHead is the elements of heads of which a workgroup may have eight, see isWide.
	eightsHead = 256
	// matrixHeads is the most heads of a workgroup for which columns hold both parts.
	matrixHeads = 4
	// wideShift is how far below the largest score the top lies, as a power of two, where lower parts are not in
	// lowerUnit: few weights are subnormal then, and all stay in the range of f16.
	wideShift = 7
	// emptyTop is the top before the first score: far above those of no position.
	emptyTop = emptyScore / 2
	// lowerUnit is the unit of the lower parts, the rest that f16 rounds off, which would often be subnormal.
	lowerUnit = 1.0 / 2048
	// upperBits masks the bits of a float that its upper f16 has.
	upperBits = 0xffffe000
)

// onMatrices reports whether matrixSums computes it. Where the group writes the caches, the
// workgroups of a KV head share that.
func (k *splitKernel) onMatrices(t *target.Target) bool {
	blocks := k.headDim / scaled
	return t.Fragments && t.Wave == fragment.Lanes && k.headDim%64 == 0 && k.headDim <= 256 && k.chains.vec == 4 &&
		(k.kv == ir.F16 || k.scaled() != nil && (k.kept.ring > 0 || k.kept.page > 0 || k.ctx%4 == 0)) && (!k.fresh() || blocks%(k.group/MatrixShare(k.op, k.ctx, t)) == 0)
}

// MatrixShare is how many heads of a group share a workgroup on matrices, in a plan of so many positions.
func MatrixShare(op *ir.Op, ctx int, t *target.Target) int {
	if isWide(op, ctx, t) {
		return 2 * matrixHeads
	}
	return shareOf(op.Attrs.Int("heads")/op.Attrs.Int("kv_heads"), matrixHeads)
}

// isWide reports whether workgroups have twice the heads, so that units read the cache once.
func isWide(op *ir.Op, ctx int, t *target.Target) bool {
	a := op.Attrs
	if w := a.Int("window"); w > 0 {
		ctx = min(ctx, w)
	}
	return t.EightHeadsFrom > 0 && ctx >= t.EightHeadsFrom && t.SharedOptIn > t.Shared && a.Int("head_dim") == eightsHead && a.Int("heads")/a.Int("kv_heads")%(2*matrixHeads) == 0
}

// columns are the heads of the matrices' columns.
func (k *splitKernel) columns() int {
	if k.eights() {
		return 2 * matrixHeads
	}
	return matrixHeads
}

func newMatrixSums(of *splitRun, laneID kernel.Value) *matrixSums {
	b := of.b
	r := &matrixSums{splitRun: of, place: b.Shr(laneID, 2), quad: b.And(laneID, 3), base: of.cachedBase()}
	r.bound()
	if r.fresh() {
		for range site.CeilDiv(r.headDim/4, r.wave) {
			r.own = append(r.own, b.Var(lane.F32x4, b.Splat(b.F32(0), 4)))
		}
		r.ownTops = b.Shared(kernel.F32, site.CeilDiv(r.share, 4)*4) // whole 16 bytes, as arrays that are asked for
		r.findOthers(laneID)
		r.takeOthers()
	}
	r.queries = b.Shared(lane.U32x4, r.headDim/fragment.Side*r.share*4)
	if r.ahead {
		from := r.firstOf()
		r.nextKeys, r.nextValues = lane.Vars(b, r.keys(from).rows()), lane.Vars(b, r.values(from).rows())
	}
	if r.asks {
		r.askFor(r.firstOf(), laneID)
	}
	if r.copies {
		r.stage()
	}
	return r
}

// bound finds which of the split's positions are in the caches, and whether it has the row's own.
func (r *matrixSums) bound() {
	b := r.b
	r.end, r.last = r.hi, b.Sub(r.hi, 1)
	if r.fresh() {
		r.attends = b.Gt(r.hi, r.at)
		r.end = b.Min(r.hi, r.at)
		r.last = b.Sub(b.Max(r.end, b.Add(r.lo, 1)), 1) // of none the first, which is not used
	}
}

// askFor asks for the keys and values of the 16 positions from first on, while q is made: a lane for a line. Where
// other splits have positions, too, memory has enough to do.
func (r *matrixSums) askFor(first, laneID kernel.Value) {
	const line = 128
	b := r.b
	words := r.chunkWords()
	lines := site.CeilDiv(4*words*r.headDim/chunk, line)
	alone := b.And(b.Eq(r.split, 0), b.Gt(r.hi, r.at))
	tile := r.headAt(first)
	for i := range site.CeilDiv(lines*fragment.Side, r.wave) {
		at := b.Add(laneID, i*r.wave)
		p := b.Add(first, b.Div(at, lines))
		word := b.Add(b.Mul(r.attentionArgs.at(b, tile, p).chunks, words), b.Mul(b.Mod(at, lines), line/4))
		b.If(b.And(alone, b.Lt(p, r.end)), func() {
			r.k.Prefetch(word)
			r.v.Prefetch(word)
		})
	}
}

// firstOf is the first of the subgroup's positions.
func (r *matrixSums) firstOf() kernel.Value {
	return r.b.Add(r.lo, r.b.Mul(r.b.SubgroupID(), fragment.Side))
}

// query keeps a multiple of q whose product with a key is the score as a power of two.
func (r *matrixSums) query(h, j, v kernel.Value) {
	b := r.b
	v = b.Clamp(b.Mul(v, b.Splat(b.Mul(r.scale, math.Log2E), 4)), -65504.0, 65504.0)
	if r.fresh() {
		r.own[r.kept].Set(v)
		r.kept++
	}
	upper0, lower0 := splitHalves(b, b.Elem(v, 0), b.Elem(v, 1))
	upper1, lower1 := splitHalves(b, b.Elem(v, 2), b.Elem(v, 3))
	matrix := b.Add(b.Mul(b.Shr(j, 3), 2), b.And(j, 1))
	r.queries.Store(b.Add(b.Mul(matrix, 4*r.share), b.Mul(h, 4), b.And(b.Shr(j, 1), 3)), b.Vec(upper0, lower0, upper1, lower1))
}

// noQuery is query of a head that another workgroup has.
func (r *matrixSums) noQuery(h kernel.Value) {
	b := r.b
	n := r.headDim / fragment.Side * 4
	for i := range site.CeilDiv(n, r.wave) {
		at := b.Add(b.SubgroupLane(), i*r.wave)
		r.queries.Store(b.Add(b.Mul(b.Shr(at, 2), 4*r.share), b.Mul(h, 4), b.And(at, 3)), b.Splat(b.U32(0), 4))
	}
}

// splitHalves returns the upper bits of x and y as a pair of f16, and the rest, in lowerUnit, as
// another. The upper bits are not those that PackHalf leaves: NVIDIA's compiler takes UnpackHalf of
// PackHalf for what was packed.
func splitHalves(b *kernel.Builder, x, y kernel.Value) (upper, lower kernel.Value) {
	var parts [2][]kernel.Operand
	for _, x := range []kernel.Value{x, y} {
		bits := b.Bitcast(kernel.F32, b.And(b.Bitcast(kernel.U32, x), uint32(upperBits)))
		parts[0], parts[1] = append(parts[0], bits), append(parts[1], b.Mul(b.Sub(x, bits), 1/lowerUnit))
	}
	return b.PackHalf(b.Vec(parts[0]...)), b.PackHalf(b.Vec(parts[1]...))
}

func (r *matrixSums) start() {
	b := r.b
	if r.fresh() {
		b.If(b.Lt(b.SubgroupID(), r.share), r.scoreOwn)
	}
	r.top, r.weight = b.Var(kernel.F32, emptyTop), b.Var(kernel.F32, 0)
	if !r.eights() {
		isLower := b.Ge(r.place, matrixHeads)
		r.ofUpper, r.ofWhole = b.Select(isLower, b.F32(-1/lowerUnit), b.F32(1)), b.Select(isLower, b.F32(1/lowerUnit), b.F32(0))
	}
	sums := kernel.F32.Matrix(fragment.Side, fragment.Columns, kernel.Accumulator)
	for range r.headDim / fragment.Side {
		r.sum = append(r.sum, b.Var(sums, b.MatFill(sums, 0)))
		if r.doubled {
			r.lower = append(r.lower, b.Var(sums, b.MatFill(sums, 0)))
		}
	}
}

func (r *matrixSums) attend() {
	b := r.b
	step := r.subgroups * fragment.Side
	b.ForRolled(r.firstOf(), r.end, step, func(from kernel.Value) {
		if r.ahead {
			r.attendAhead(from, b.Add(from, step))
			return
		}
		r.findRows(from)
		if r.copies {
			r.attendStaged(from)
			return
		}
		scores := r.scores(from, r.keys(from))
		values := r.values(from)
		r.addValues(values, r.weigh(scores))
	})
}

// attendAhead finds the keys and values of a turn loaded, and loads those of the next turn right behind their last use.
func (r *matrixSums) attendAhead(from, next kernel.Value) {
	b := r.b
	scores := r.scores(from, r.tileOf(r.nextKeys))
	more := b.Lt(next, r.end)
	b.If(more, func() { lane.SetVars(r.nextKeys, r.keys(next).rows()) })
	r.addValues(r.tileOf(r.nextValues), r.weigh(scores))
	b.If(more, func() { lane.SetVars(r.nextValues, r.values(next).rows()) })
}

// scores returns those of the place's head and the positions from 4*quad on; those past the
// end have emptyScore.
func (r *matrixSums) scores(from kernel.Value, keys tileWords) (list [4]kernel.Value) {
	b := r.b
	qs := kernel.F16.Matrix(fragment.Side, fragment.Side, kernel.MatrixA)
	ks := kernel.F16.Matrix(fragment.Side, fragment.Columns, kernel.MatrixB)
	sums := kernel.F32.Matrix(fragment.Side, fragment.Columns, kernel.Accumulator)
	var tiles [2]*kernel.Var
	for i := range tiles {
		tiles[i] = b.Var(sums, b.MatFill(sums, 0))
	}
	take := func(scale func(i int) kernel.Value) { // adds up what tiles have
		for i := range list {
			t, e := tiles[i/2], i%2
			s := b.FMA(t.Elem(e+2), lowerUnit, t.Elem(e))
			switch {
			case scale == nil:
				list[i] = s
			case list[i] == kernel.Value{}:
				list[i] = b.Mul(s, scale(i))
			default:
				list[i] = b.FMA(s, scale(i), list[i])
			}
			if e == 1 && scale != nil {
				t.Set(b.MatFill(sums, 0))
			}
		}
	}
	laneID := b.Add(b.Mul(b.Mod(b.And(r.place, r.columns()-1), r.share), 4), r.quad)
	for m := range r.headDim / fragment.Side {
		w := r.queries.Load(b.Add(laneID, m*4*r.share))
		q := b.MatPairs(qs, b.Elem(w, 0), b.Elem(w, 2), b.Elem(w, 1), b.Elem(w, 3))
		for i, t := range tiles {
			x, y := r.keyPairs(keys.words[i], m)
			t.Set(b.MatMulAdd(q, b.MatPairs(ks, x, y), t.Get()))
		}
		if keys.scales != nil && m%2 == 1 {
			take(func(i int) kernel.Value { return keys.scale(b, m/2, i) })
		}
	}
	if keys.scales == nil {
		take(nil)
	}
	for i := range list {
		list[i] = b.Select(r.within(from, i), list[i], emptyScore)
	}
	return list
}

// within reports whether the i-th of the lane's positions is one.
func (r *matrixSums) within(from kernel.Value, i int) kernel.Value {
	p := r.b.Add(from, r.b.Mul(r.quad, 4), i)
	return r.inWindow(r.b.Lt(p, r.end), p)
}

// weigh returns the weights of the positions with such scores. A subgroup takes new tops only
// if a score exceeds one by growth.
func (r *matrixSums) weigh(scores [4]kernel.Value) (weights [4]kernel.Value) {
	b := r.b
	most := b.Max(b.Max(scores[0], scores[1]), b.Max(scores[2], scores[3]))
	over := float32(growth)
	if r.wide {
		over += wideShift
	}
	exceeds := b.Gt(most, b.Add(r.top.Get(), over))
	grows := exceeds
	var half [2]kernel.Value // of doubled workgroups, whether tops of the first and of the last four heads change
	if r.doubled {
		last := b.Ge(r.place, matrixHeads)
		half[0], half[1] = b.SubgroupAny(b.And(exceeds, b.Not(last))), b.SubgroupAny(b.And(exceeds, last))
		grows = b.Or(half[0], half[1])
	}
	b.If(b.SubgroupAny(grows), func() {
		if r.wide {
			most = b.Sub(most, float32(wideShift))
		}
		old := r.top.Get()
		top := b.Max(old, lane.Fold(b, most, 1, 4, func(x, y kernel.Value) kernel.Value { return b.Max(x, y) }))
		if r.doubled {
			top = b.Select(b.Select(b.Ge(r.place, matrixHeads), half[1], half[0]), top, old)
		}
		fade := b.Exp2(b.Sub(old, top))
		r.top.Set(top)
		r.weight.Set(b.Mul(r.weight.Get(), fade))
		var fades [2]kernel.Value // of the heads of the columns that the lane has
		for e := range fades {
			fades[e] = b.SubgroupShuffle(fade, b.Add(b.Mul(r.quad, 8), 4*e))
		}
		for _, s := range slices.Concat(r.sum, r.lower) {
			for i := range fragment.Sums {
				s.SetElem(i, b.Mul(s.Elem(i), fades[i%2]))
			}
		}
	})
	for i, s := range scores {
		weights[i] = b.Exp2(b.Sub(s, r.top.Get()))
	}
	r.weight.Set(b.Add(r.weight.Get(), b.Add(b.Add(weights[0], weights[1]), b.Add(weights[2], weights[3]))))
	return weights
}

// addValues adds values with such weights to the sums.
func (r *matrixSums) addValues(values tileWords, weights [4]kernel.Value) {
	b := r.b
	vs := kernel.F16.Matrix(fragment.Side, fragment.Side, kernel.MatrixA)
	var w []kernel.Value
	for m, sum := range r.sum {
		switch {
		case values.scales == nil && m == 0:
			w = r.weightMatrices(weights)
		case values.scales != nil && m%2 == 0:
			var scaledWeights [4]kernel.Value
			for i, x := range weights { // past the end scales may be anything
				scaledWeights[i] = b.Mul(x, b.Select(b.Gt(x, 0), values.scale(b, m/2, i), 0))
			}
			w = r.weightMatrices(scaledWeights)
		}
		var pairs [4]kernel.Value
		for i := range pairs {
			pairs[i] = r.valuePair(values.words[i], m)
		}
		even, odd := b.PairHalves(pairs[0], pairs[1])
		even2, odd2 := b.PairHalves(pairs[2], pairs[3])
		v := b.MatPairs(vs, even, even2, odd, odd2)
		for i, w := range w {
			to := sum
			if r.doubled && i == 0 {
				to = r.lower[m]
			}
			to.Set(b.MatMulAdd(v, w, to.Get()))
		}
	}
}

// weightMatrices has in a lane the parts, see splitHalves, that its column has of the weights: of eight heads the upper
// and the lower ones, in a matrix each.
func (r *matrixSums) weightMatrices(weights [4]kernel.Value) []kernel.Value {
	b := r.b
	if r.eights() {
		upper := func(x kernel.Value) kernel.Value {
			return b.Bitcast(kernel.F32, b.And(b.Bitcast(kernel.U32, x), uint32(upperBits)))
		}
		lower := func(x kernel.Value) kernel.Value {
			if x = b.Sub(x, upper(x)); r.doubled {
				x = b.Mul(x, 1/lowerUnit)
			}
			return x
		}
		return []kernel.Value{r.pairsOf(weights, lower), r.pairsOf(weights, upper)}
	}
	part := func(x kernel.Value) kernel.Value { // its upper bits, or 1/lowerUnit times the rest
		bits := b.Bitcast(kernel.F32, b.And(b.Bitcast(kernel.U32, x), uint32(upperBits)))
		return b.FMA(bits, r.ofUpper, b.Mul(x, r.ofWhole))
	}
	return []kernel.Value{r.pairsOf(weights, part)}
}

// pairsOf is the matrix of what part returns of the lane's four of 16 positions.
func (r *matrixSums) pairsOf(weights [4]kernel.Value, part func(x kernel.Value) kernel.Value) kernel.Value {
	b := r.b
	var words []kernel.Operand
	for i := 0; i < len(weights); i += 2 {
		words = append(words, b.PackHalf(b.Vec(part(weights[i]), part(weights[i+1]))))
	}
	return b.MatPairs(kernel.F16.Matrix(fragment.Side, fragment.Columns, kernel.MatrixB), words...)
}

// store adds up the parts, which columns 4 apart have: of each eight dims that two lanes have of
// a head, one takes the first four and the other the last. With eight heads a lane has both.
func (r *matrixSums) store(to subgroupSums, from kernel.Value) {
	b, quads := r.b, r.headDim/4
	first := b.Mul(b.SubgroupID(), r.together())
	weight := lane.Fold(b, r.weight.Get(), 1, 4, func(x, y kernel.Value) kernel.Value { return b.Add(x, y) })
	h := r.place
	if r.eights() {
		h = b.Sub(h, from) // those before are beyond all heads
	}
	b.If(b.And(b.Eq(r.quad, 0), b.Lt(h, r.together())), func() {
		to.tops.Store(b.Add(first, h), b.Mul(r.top.Get(), math.Ln2))
		to.weights.Store(b.Add(first, h), weight)
	})
	if r.eights() {
		r.storeEights(to, first, b.Sub(b.Mul(r.quad, 2), from))
		return
	}
	lower := b.Shr(r.quad, 1)
	isLower := b.Ne(lower, 0)
	unit := b.Select(isLower, lowerUnit, b.F32(1))
	for j := range r.headDim / 64 {
		var kept [2][]kernel.Operand // by head
		for m := range 2 {
			for i := range fragment.Sums {
				x, y := b.Mul(r.sum[4*j+m].Elem(i), unit), b.Mul(r.sum[4*j+m+2].Elem(i), unit)
				sum := b.Add(b.Select(isLower, y, x), b.SubgroupShuffleXor(b.Select(isLower, x, y), 2))
				kept[i%2] = append(kept[i%2], sum)
			}
		}
		for e, v := range kept {
			h := b.Add(b.Mul(b.And(r.quad, 1), 2), e)
			quad := b.Add(r.quadOf(lower), 16*j)
			b.If(b.Lt(h, r.share), func() { to.sums.Store(b.Add(b.Mul(b.Add(first, h), quads), quad), b.Vec(v...)) })
		}
	}
}

// storeEights stores the lane's sums of heads h and h+1, unless they are others than those that are kept.
func (r *matrixSums) storeEights(to subgroupSums, first, h kernel.Value) {
	b, quads := r.b, r.headDim/4
	sum := func(m, e int) kernel.Value {
		if r.doubled {
			return b.Add(r.sum[m].Elem(e), b.Mul(r.lower[m].Elem(e), lowerUnit))
		}
		return r.sum[m].Elem(e)
	}
	b.If(b.Lt(h, r.together()), func() {
		for e := range 2 {
			at := b.Mul(b.Add(first, h, e), quads)
			for m := 0; m < len(r.sum); m += 2 {
				quad := b.Add(r.quadOf(b.U32(uint32(m/2%2))), m/4*16)
				to.sums.Store(b.Add(at, quad), b.Vec(sum(m, e), sum(m, e+2), sum(m+1, e), sum(m+1, e+2)))
			}
		}
	})
}
