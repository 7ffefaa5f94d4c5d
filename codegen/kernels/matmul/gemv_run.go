package matmul

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// declareTile declares the kernel's own constant.
func (k gemv) declareTile(s *site.Signature) kernel.Value {
	return s.U32("tile", k.tile, 16, "rows of the weights of a workgroup")
}

// run declares the kernel's workgroup and shared memory.
func (k gemv) run(b *kernel.Builder, a *linearArgs, tile kernel.Value) *gemvRun {
	r := &gemvRun{gemv: k, b: b, a: a, tile: tile, lane: b.SubgroupLane()}
	r.member, r.subgroup, r.team = b.LocalID(), b.SubgroupID(), b.U32(0)
	if k.teams > 0 {
		lanes := k.wave * k.subgroups
		r.member, r.subgroup, r.team = b.Mod(b.LocalID(), lanes), b.Mod(b.SubgroupID(), k.subgroups), b.Div(b.SubgroupID(), k.subgroups)
		r.sharedX = newSharedX(b, k)
	}
	b.Workgroup(k.lanes())
	if k.early {
		for _, p := range k.projects {
			for len(r.residuals) < p.loads() {
				r.residuals = append(r.residuals, b.Var(kernel.F32, 0.0))
			}
			if p.ring != nil {
				r.residuals = p.ring.vars(b)
			}
		}
	}
	r.sums = b.Shared(kernel.F32, b.Mul(r.tile, k.columns*k.parts()))
	if k.brief && k.gain != nil && r.sharedX != nil && k.runs == 0 {
		r.rstds = b.Shared(kernel.F32, k.columns)
	}
	if k.gated != nil {
		r.headScales = b.Shared(kernel.F32, k.k/k.gated.dim)
	}
	switch {
	case k.gain != nil && k.fixed != nil:
		r.squares = b.Shared(kernel.F32, k.columns*k.squareGroups())
	case k.gain != nil:
		r.squares = b.Shared(kernel.F32, k.columns*k.subgroups)
	}
	return r
}

// gemvRun is the kernel while it is built.
type gemvRun struct {
	gemv
	b         *kernel.Builder
	a         *linearArgs
	tile      kernel.Value
	lane      kernel.Value   // in the subgroup
	member    kernel.Value   // the lane among those that share a row, and
	subgroup  kernel.Value   // the subgroup among theirs
	team      kernel.Value   // which they are
	sharedX   *sharedX       // nil if each has its own
	column    kernel.Value   // the workgroup's first
	starts    []kernel.Value // where its columns begin in x, in vec4
	p         *projectArgs
	from, end kernel.Value  // the rows of the workgroup
	residuals []*kernel.Var // what the lane's result is multiplied by and what is added to it, if that is loaded early
	// The sums of the subgroups: by matrix, row, column, chunk or subgroup; of the squares by
	// column, group or subgroup.
	sums, squares *kernel.Array
	headScales    *kernel.Array // the gated norm's, by head; nil if there is none
	rstds         *kernel.Array // the norm's scales by column, if they are found before the products; else nil
}

// stream goes through x for every batch.
func (r *gemvRun) stream() {
	b, p := r.b, r.p
	each := func(do func(n kernel.Value)) { b.For(r.from, r.end, r.batch, do) }
	if r.ahead {
		each = func(do func(n kernel.Value)) { do(r.from) }
	}
	each(func(n kernel.Value) {
		t := &gemvTile{b: b, a: r.a, p: p, columns: r.starts, squares: r.vars()}
		for j := range p.matrices {
			var rows []kernel.Value
			var sums [][]*kernel.Var
			for i := range r.batch {
				rows = append(rows, r.row(j, b.Add(n, i)))
				sums = append(sums, r.vars())
			}
			t.rows, t.sums = append(t.rows, rows), append(t.sums, sums)
		}
		for i, pass := range p.spec.passes() {
			if r.ahead {
				t.unitsAhead(r.units(p.spec), max(1, aheadRows/r.batch), r.unit, pass)
				continue
			}
			units := b.Div(r.a.k, p.matrices[pass[0]].Format.Unit)
			b.For(b.LocalID(), units, r.wave*r.subgroups, func(u kernel.Value) {
				if f := p.matrices[pass[0]].Format; f.DecodeOne != nil && r.columns >= loopColumns {
					t.unitInLoop(u, pass, i == 0)
				} else {
					t.unit(u, t.load(u, pass), pass, i == 0)
				}
			})
		}
		var sums []kernel.Value
		for m := range t.sums {
			for i := range t.sums[m] {
				for _, s := range t.sums[m][i] {
					sums = append(sums, s.Get())
				}
			}
		}
		r.reduce(sums, n)
		var squares []kernel.Value
		for _, s := range t.squares {
			squares = append(squares, s.Get())
		}
		r.reduceSquares(squares)
	})
}

// loadsAhead reports whether a workgroup of a wide step has one batch of a few units a lane.
func (k gemv) loadsAhead() bool {
	return k.tiled() && k.fixed == nil && k.batch == k.tile && !slices.ContainsFunc(k.projects, func(p *projection) bool {
		return len(p.passes()) > 1 || !k.exact(p) || k.units(p) > aheadUnits || p.unit() > 4
	})
}

// aheadUnits is the most units of a lane then, of 4 elements, aheadRows is how many units of rows it loads ahead.
const aheadUnits, aheadRows = 4, 16

// vars returns a sum for every column.
func (r *gemvRun) vars() []*kernel.Var {
	v := make([]*kernel.Var, r.columns)
	for c := range v {
		v[c] = r.b.Var(kernel.F32, 0.0)
	}
	return v
}

// row returns where row n of matrix j is, or the last row of the tile.
func (r *gemvRun) row(j int, n kernel.Value) kernel.Value {
	return r.p.row(r.b, j, r.b.Min(n, r.b.Sub(r.end, 1)))
}

// reduce adds up the sums of the batch from row n on over the subgroups, and
// stores them: by matrix, row, column, unit of the lane if they are kept apart.
func (r *gemvRun) reduce(sums []kernel.Value, n kernel.Value) {
	r.eachWave(len(sums), n, func(first, end int, store func(i, sum kernel.Value)) {
		r.transpose(sums[first:end], r.masks(), store)
	})
}

// reduceSupers is reduce for sums over super-blocks.
func (r *gemvRun) reduceSupers(sums []weight.SuperSum, n kernel.Value) {
	r.eachWave(len(sums), n, func(first, end int, store func(i, sum kernel.Value)) {
		some := padded(sums[first:end])
		left, masks := addSupers(r.b, r.lane, some, r.masks())
		sum := r.butterfly(left, masks)
		r.b.If(r.b.Lt(r.lane, end-first), func() { store(r.lane, sum) })
	})
}

// eachWave calls do for as many of count sums at a time as a subgroup has lanes, with what stores them.
func (r *gemvRun) eachWave(count int, n kernel.Value, do func(first, end int, store func(i, sum kernel.Value))) {
	b, perMatrix := r.b, r.batch*r.columns
	at := b.Mul(b.Sub(n, r.from), r.columns)
	units := count / (perMatrix * len(r.p.matrices))
	for first := 0; first < count; first += r.wave {
		do(first, min(count, first+r.wave), func(i, sum kernel.Value) {
			i = b.Add(i, first)
			unit := b.Mod(i, units)
			i = b.Div(i, units)
			m, rest := b.Div(i, perMatrix), b.Mod(i, perMatrix)
			to := b.Add(b.Mul(m, b.Mul(r.tile, r.columns)), at, rest)
			r.sums.Store(b.Add(b.Mul(b.Add(b.Mul(to, units), unit), r.subgroups), r.subgroup), sum)
		})
	}
}

func (r *gemvRun) reduceSquares(sums []kernel.Value) {
	if r.gain == nil || r.fixed != nil {
		return
	}
	r.transpose(sums, r.masks(), func(i, sum kernel.Value) {
		r.squares.Store(r.b.Add(r.b.Mul(i, r.subgroups), r.b.SubgroupID()), sum)
	})
}

// transpose adds up values over the subgroup, at most as many as it has lanes, and
// calls store for each in one lane. In every step neighbours, then pairs of lanes, and so
// on, exchange half of the values that they have left, so that all values together take
// hardly longer than one; the order of the additions is that of a butterfly, for any number
// of values.
func (r *gemvRun) transpose(values []kernel.Value, masks []int, store func(i, sum kernel.Value)) {
	b, count := r.b, len(values)
	laneID := r.lane // the number of the value that it gets
	if first := site.Log2(masks[0]); first > 0 {
		laneID = b.Or(b.Shr(laneID, first), b.Shl(b.And(laneID, masks[0]-1), site.Log2(r.wave)-first))
	}
	sum := r.butterfly(padded(values), masks)
	b.If(b.Lt(laneID, count), func() { store(laneID, sum) })
}

// padded repeats the first of values until their number is a power of two.
func padded[T any](values []T) []T {
	n := 1
	for n < len(values) {
		n *= 2
	}
	values = values[:len(values):len(values)]
	for len(values) < n {
		values = append(values, values[0])
	}
	return values
}

// butterfly is the steps of transpose, for as many values as a power of two.
func (r *gemvRun) butterfly(values []kernel.Value, masks []int) kernel.Value {
	b := r.b
	for ; len(values) > 1; masks = masks[1:] {
		upper := b.Ne(b.And(r.lane, masks[0]), 0)
		half := make([]kernel.Value, len(values)/2)
		for i := range half {
			low, high := values[2*i], values[2*i+1]
			half[i] = b.Add(b.Select(upper, high, low), b.SubgroupShuffleXor(b.Select(upper, low, high), masks[0]))
		}
		values = half
	}
	sum := values[0]
	for _, mask := range masks {
		sum = b.Add(sum, b.SubgroupShuffleXor(sum, mask))
	}
	return sum
}

// result returns row and column in the result of the i-th of the workgroup's results.
func (r *gemvRun) result(i kernel.Value) (row, col kernel.Value) {
	return r.b.Add(r.column, r.b.Mod(i, r.columns)), r.b.Add(r.from, r.b.Div(i, r.columns))
}

// total adds up the i-th n elements of an array in turn.
func (r *gemvRun) total(sums *kernel.Array, i kernel.Value, n int) kernel.Value {
	b := r.b
	i = b.Mul(i, n)
	sum := b.Var(kernel.F32, sums.Load(i))
	next := func(s kernel.Value) { sum.Set(b.Add(sum.Get(), sums.Load(b.Add(i, s)))) }
	if n > longSum {
		b.For(1, n, 1, next)
		return sum.Get()
	}
	for s := 1; s < n; s++ {
		next(b.U32(uint32(s)))
	}
	return sum.Get()
}

// scaleOf returns the norm's scale of a column, nil without a norm of whole rows.
func (r *gemvRun) scaleOf(column kernel.Value) *kernel.Value {
	var v kernel.Value
	switch {
	case r.rstds != nil:
		v = r.rstds.Load(column)
	case r.gain != nil && r.runs == 0:
		n := r.subgroups
		if r.fixed != nil {
			n = r.squareGroups()
		}
		v = r.a.rstd(r.b, r.total(r.squares, column, n))
	default:
		return nil
	}
	return &v
}

// sumsOf returns the sums of the i-th of the workgroup's results, by matrix.
func (r *gemvRun) sumsOf(i kernel.Value) (sums []kernel.Value) {
	for m := range r.p.matrices {
		sums = append(sums, r.total(r.sums, r.b.Add(i, r.b.Mul(r.tile, m*r.columns)), r.chunks(r.p.spec)))
	}
	return sums
}

// finish adds up the subgroups' sums and stores the results of the tile.
func (r *gemvRun) finish() {
	b := r.b
	results := b.Mul(b.Sub(r.end, r.from), r.columns)
	one := func(i kernel.Value) {
		column := b.Mod(i, r.columns)
		rstd := r.scaleOf(column)
		sums := r.sumsOf(i)
		row, col := r.result(i)
		var residuals []kernel.Value
		switch {
		case !r.early:
			residuals = r.p.loadResiduals(b, row, col)
		case r.p.ring != nil:
			residuals = lane.GetVars([][]*kernel.Var{r.residuals})[0]
		default:
			for j := range r.p.spec.loads() {
				residuals = append(residuals, r.residuals[j].Get())
			}
		}
		if r.p.ring == nil {
			r.p.store(b, sums, rstd, residuals, row, col)
			return
		}
		r.p.storeRing(b, func(back int) []kernel.Value {
			sums, rstd := sums, rstd
			if back > 0 {
				d := b.Min(column, back)
				sums, rstd = r.sumsOf(b.Sub(i, d)), r.scaleOf(b.Sub(column, d))
			}
			return normedBy(b, sums, rstd)
		}, residuals, row, col)
	}
	if r.early {
		b.If(b.Lt(b.LocalID(), results), func() { one(b.LocalID()) })
	} else {
		b.For(b.LocalID(), results, r.lanes(), one)
	}
}
