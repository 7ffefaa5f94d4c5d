package matmul

import (
	"math"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// fixedX is a block of x of all columns in fixed point, as integers in f16.
type fixedX struct {
	codes  func(run int) [2]kernel.Value // matrices by half of a run that the lanes have
	scale  [2]kernel.Value               // of the lane's two columns of sums
	totals [2]kernel.Value               // of super-blocks: see totalsOf; else they are in shared memory
}

// xMatrix is half a run of x: of 8 columns.
var xMatrix = kernel.F16.Matrix(fixedSide, fixedColumns, kernel.MatrixB)

// ownGains loads the norm's weights of a block, some in each lane of the subgroup. It comes before the loads of x, for
// which lanes may wait.
func (r *fixedTask) ownGains(block kernel.Value) (gains []kernel.Value) {
	if r.gain == nil || r.direct {
		return nil
	}
	b := r.b
	for i := 0; i < fixedBlock/4; i += fragment.Lanes {
		gains = append(gains, r.a.gain.Load(lane.F32x4, b.Add(b.Mul(block, fixedBlock/4), i, r.lane)))
	}
	return gains
}

// keepGains puts what ownGains loaded into shared memory, where the subgroup's block begins at first.
func (r *fixedTask) keepGains(first kernel.Value, gains []kernel.Value) {
	if r.direct {
		return
	}
	b := r.b
	for i, v := range gains {
		r.gains.Store(b.Add(first, i*fragment.Lanes, r.lane), v)
	}
	b.SubgroupBarrier()
}

// gainsAt returns how a lane reads a norm's weight, from shared memory or directly. own is where the lane's begin in
// its block, from where they do in all.
func (r *fixedTask) gainsAt(first, own, from kernel.Value) func(i int) kernel.Value {
	b := r.b
	if r.direct {
		return func(i int) kernel.Value { return r.a.gain.Load(lane.F32x4, b.Add(from, i)) }
	}
	at := b.Add(first, own)
	return func(i int) kernel.Value { return r.gains.Load(b.Add(at, i)) }
}

// roundX rounds a block of x as op fixed12 does.
func (r *fixedTask) roundX(block kernel.Value, gains []kernel.Value) fixedX {
	b := r.b
	column := b.Min(r.place, b.Sub(r.columns, 1)) // further ones repeat the last
	loaded := r.loadX(block, column, r.place, gains)
	codes := make([][2]kernel.Value, weight.FixedRuns)
	x := fixedX{codes: func(run int) [2]kernel.Value { return codes[run] }}
	scale, sums := r.rounded(loaded, func(scale kernel.Value) {
		for c := range x.scale {
			x.scale[c] = b.SubgroupShuffle(scale, b.Add(b.Mul(r.quad, 8), 4*c))
		}
	}, func(run, i int, n kernel.Value) { codes[run][i] = b.MatPairs(xMatrix, r.pairs(n)...) })
	if r.format.Super {
		for i, w := range r.totalsOf(sums) {
			x.totals[i] = b.MatPairs(xMatrix, w[0], w[1])
		}
	} else {
		r.keepTerms(scale, sums)
	}
	return x
}

// loadX loads the lane's elements of a block of a column of x, times the norm's weights. Squares are left for column
// counts, if there is one.
func (r *fixedTask) loadX(block, column, counts kernel.Value, gains []kernel.Value) (loaded [][2]kernel.Value) {
	b := r.b
	row := b.Mul(r.rowOf(column), b.Div(r.a.k, 4))
	own, next := b.Mul(r.quad, 2), 1 // of a block the lane's first vec4, and from its first of a run to its second
	if r.format.Apart {
		own, next = weight.ApartQuad(b, r.quad), 4
	}
	from := b.Add(b.Mul(block, fixedBlock/4), own)
	for run := range weight.FixedRuns {
		var v [2]kernel.Value
		for i := range v {
			v[i] = r.a.x.Load(lane.F32x4, b.Add(row, from, run*8+i*next))
		}
		loaded = append(loaded, v)
	}
	if r.gain != nil {
		first := b.Mul(r.group, fixedBlock/4)
		r.keepGains(first, gains)
		r.sumSquares(loaded, block, counts)
		gain := r.gainsAt(first, own, from)
		for i := range loaded {
			for j := range loaded[i] {
				loaded[i][j] = b.Mul(loaded[i][j], gain(i*8+j*next))
			}
		}
	}
	return loaded
}

// rounded rounds what loadX has loaded. It returns the scale of the block and the sums of the lane's integers, by run
// and, if scales are fine, half of it, and gives scale to begin and the integers of four elements to put.
func (r *fixedTask) rounded(loaded [][2]kernel.Value, begin func(scale kernel.Value), put func(run, i int, n kernel.Value)) (scale kernel.Value, sums [][]kernel.Value) {
	b := r.b
	var all []kernel.Value
	for _, v := range loaded {
		all = append(all, v[:]...)
	}
	most := lane.Fold(b, weight.Largest(b, all), 1, 4, func(x, y kernel.Value) kernel.Value { return b.Max(x, y) })
	inverse, whole := b.Splat(weight.InverseScale(b, most), 4), b.Splat(b.F32(3<<22), 4)
	scale = b.Mul(most, 1.0/weight.FixedMost)
	begin(scale)
	for run, v := range loaded {
		totals := make([]kernel.Value, r.format.Halves())
		for i := range v {
			n := b.Sub(b.FMA(v[i], inverse, whole), whole)
			put(run, i, n)
			if h := i % len(totals); i == h {
				totals[h] = lane.Sum4(b, n)
			} else {
				totals[h] = b.Add(totals[h], lane.Sum4(b, n))
			}
		}
		sums = append(sums, totals)
	}
	return scale, sums
}

// pairs returns the words of the matrix of which the lane holds the four elements of v, in the order of codes.
func (r *fixedTask) pairs(v kernel.Value) []kernel.Operand {
	b := r.b
	pair := func(i int) kernel.Value { return b.PackHalf(b.Vec(b.Elem(v, i), b.Elem(v, i+2))) }
	return []kernel.Operand{pair(0), pair(1)}
}

// sumSquares adds up the squares of each 128 elements: of four neighbours one after the other,
// then in pairs of neighbours.
// The lane's column is the one that counts.
func (r *fixedTask) sumSquares(x [][2]kernel.Value, block, column kernel.Value) {
	b := r.b
	var runs []kernel.Value
	for _, v := range x {
		var quads [2]kernel.Value
		for i := range v {
			var sum lane.Partial
			for e := range 4 {
				sum.Product(b, b.Elem(v[i], e), b.Elem(v[i], e))
			}
			quads[i] = sum.Sum
		}
		across := func(s kernel.Value, masks ...int) kernel.Value {
			for _, mask := range masks {
				s = b.Add(s, b.SubgroupShuffleXor(s, mask))
			}
			return s
		}
		if r.format.Apart {
			runs = append(runs, b.Add(across(quads[0], 2, 1), across(quads[1], 2, 1)))
		} else {
			runs = append(runs, across(b.Add(quads[0], quads[1]), 1, 2))
		}
	}
	const each = squaredRuns
	b.If(b.Eq(r.quad, 0), func() {
		for i := 0; i < len(runs); i += each {
			at, sum := b.Add(b.Mul(block, weight.FixedRuns/each), i/each), pairwise(b, runs[i:i+each])
			switch {
			case r.split == nil:
				r.squares.Store(b.Add(b.Mul(column, r.k/(32*each)), at), sum)
				continue
			case r.wide > 0: // see leaveSquares
				r.squares.Store(b.Add(b.Mul(column, fixedSquares), b.Mod(at, fixedSquares)), sum)
				continue
			}
			b.If(b.And(b.Lt(column, r.columns), r.real), func() {
				i := b.Add(b.Mod(at, fixedSquares), r.left()-fixedSquares)
				r.split.partial.Store(r.leftAt(column, b.Div(at, fixedSquares), i), sum)
			})
		}
	})
}

// squaredRuns is the runs whose squares are one sum: 128 elements.
const squaredRuns = 4

// pairwise adds values, a power of two of them, in pairs of neighbours, then pairs of those.
func pairwise(b *kernel.Builder, values []kernel.Value) kernel.Value {
	for len(values) > 1 {
		var sums []kernel.Value
		for i := 0; i < len(values); i += 2 {
			sums = append(sums, b.Add(values[i], values[i+1]))
		}
		values = sums
	}
	return values[0]
}

// fixedShared is the shared memory of gemm_fixed. Each subgroup has its own copy of what
// belongs to a block.
type fixedShared struct {
	sums *kernel.Array // of 16 outputs and 8 columns as lanes hold them: by turn, part, 16 outputs, column of a lane
	// totals of x, by run and two columns: scales of both and totals of both; if scales of weights
	// are fine, totals of first halves and of second ones, and scales apart.
	totals, scales *kernel.Array
	// terms of weights, by slot, vector of them, row of a matrix of 8.
	terms         *kernel.Array
	squares, rstd *kernel.Array // of the norm: sums of 128 elements by column; by column
	gains         *kernel.Array // of the norm: vec4 of the subgroup's block
}

// fixedSizes are the elements of the arrays.
type fixedSizes struct{ sums, totals, scales, terms, squares, rstd, gains int }

// sharedSizes returns sizes that do for all projections.
func (k gemmFixed) sharedSizes() (n fixedSizes) {
	n.sums = k.turns() * k.groups * fixedSums
	for _, p := range k.projects {
		f := p.matrices[0].format.Fixed
		if f.Super {
			continue
		}
		n.totals, n.terms = k.groups*weight.FixedRuns*4, max(n.terms, k.groups*weight.FixedRuns*f.Vectors()*8)
		if f.Fine {
			n.scales = n.totals
		}
	}
	if k.gain != nil {
		if k.splits == 1 {
			n.squares = fixedColumns * k.k / 128
		}
		n.rstd = fixedColumns
		if !k.direct {
			n.gains = k.groups * fixedBlock / 4
		}
	}
	return n
}

// bytes is the size of all arrays, with what lies between them.
func (n fixedSizes) bytes() int {
	const between = 16
	return 8*(n.sums+n.scales) + 16*(n.totals+n.terms+n.gains) + 4*(n.squares+n.rstd) + 7*between
}

func newFixedShared(b *kernel.Builder, k gemmFixed) fixedShared {
	n := k.sharedSizes()
	array := func(t kernel.Type, n int) *kernel.Array {
		if n == 0 {
			return nil
		}
		return b.Shared(t, n)
	}
	return fixedShared{
		sums:   array(lane.F32x2, n.sums),
		totals: array(lane.F32x4, n.totals), terms: array(lane.F32x4, n.terms),
		scales:  array(lane.F32x2, n.scales),
		squares: array(kernel.F32, n.squares), rstd: array(kernel.F32, n.rstd), gains: array(lane.F32x4, n.gains),
	}
}

// keepTerms puts scales and sums of the lane's column, by run, into shared memory.
func (r *fixedTask) keepTerms(scale kernel.Value, sums [][]kernel.Value) {
	b, f := r.b, r.format
	for run := range sums {
		for h, sum := range sums[run] {
			if !f.Offset {
				continue
			}
			// Exact, whichever way it is added.
			sum = lane.Fold(b, sum, 1, 4, func(x, y kernel.Value) kernel.Value { return b.Add(x, y) })
			if f.Bias != 0 {
				sums[run][h] = b.Mul(sum, -math.Ldexp(float64(f.Bias), f.Exponents[0])) // exact
			} else {
				sums[run][h] = b.Mul(scale, sum)
			}
		}
	}
	column := b.And(r.place, 1)
	b.If(b.Eq(r.quad, 0), func() {
		for run := range sums {
			at := b.Add(b.Mul(r.held, weight.FixedRuns*4), run*4, b.Shr(r.place, 1))
			if f.Fine {
				r.scales.StoreElem(at, column, scale)
			} else {
				r.totals.StoreElem(at, column, scale)
			}
			for h, sum := range sums[run] {
				if f.Offset {
					r.totals.StoreElem(at, b.Add(column, 2*(h+2-len(sums[run]))), sum)
				}
			}
		}
	})
}

// xTerms are scale and, by half of a run, total of the two columns that a lane has sums of: what
// offsets are multiplied by or, of biased formats, what is added to products.
type xTerms struct {
	scale  [2]kernel.Value
	totals [][2]kernel.Value
}

func (r *fixedTask) xTerms(run int) (x xTerms) {
	b, f := r.b, r.format
	at := b.Add(b.Mul(r.held, weight.FixedRuns*4), run*4, r.quad)
	pair := func(v kernel.Value, from int) [2]kernel.Value {
		return [2]kernel.Value{b.Elem(v, from), b.Elem(v, from+1)}
	}
	if f.Fine {
		x.scale = pair(r.scales.Load(at), 0)
		if f.Offset {
			v := r.totals.Load(at)
			x.totals = [][2]kernel.Value{pair(v, 0), pair(v, 2)}
		}
		return
	}
	v := r.totals.Load(at)
	return xTerms{pair(v, 0), [][2]kernel.Value{pair(v, 2)}}
}

// scaleColumns computes the scales of the norm. All lanes have come to a barrier behind
// sumSquares, and come to one behind this.
func (r *fixedTask) scaleColumns() {
	b := r.b
	b.If(b.Lt(b.LocalID(), max(r.wide, fixedColumns)), func() {
		n := r.k / 128
		sum := r.squares.Load(b.Mul(b.LocalID(), n))
		for i := 1; i < n; i++ {
			sum = b.Add(sum, r.squares.Load(b.Add(b.Mul(b.LocalID(), n), i)))
		}
		r.rstd.Store(b.LocalID(), r.a.rstd(b, sum))
	})
}
