package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// Products of bytes: codes of super-blocks are bytes without being unpacked to f16, and an integer of x is two
// digits, x = 256*high + low. A matrix has 8 columns of x: both digits of byteColumns rows, side by side, so that
// a lane has the sums of both. They are the integers that superBlock has, and so are the results.

// byteColumns is the rows of x of a matrix of bytes.
const byteColumns = fixedColumns / 2

// byteX is a block of x of byteColumns columns.
type byteX struct {
	codes  [weight.FixedRuns][2]kernel.Value // of the digit and row that the lane has, by half of a run
	scale  kernel.Value                      // of the lane's column of sums
	totals kernel.Value                      // see totalsOf: of a row the upper part, then the lower one
}

// matrices is how many matrices of byteColumns columns the kernel takes at a time.
func (k *expertWide) matrices() int { return k.columns() / byteColumns }

// panelBytes is the size of panels.
func (k *expertWide) panelBytes() (n int) {
	for _, words := range k.panelSizes() {
		n += 4 * words
	}
	return n
}

// roundBytes rounds the subgroup's block of the i-th byteColumns columns of x as op fixed12 does: of the two lanes
// that have the digits of the same elements, each rounds half of them, and gives the other its digit.
func (r *expertWideTask) roundBytes(i int, gains *[weight.FixedRuns]kernel.Value) (x byteX) {
	b := r.b
	half, column := b.And(r.place, 1), b.Shr(r.place, 1)
	low, row := b.Eq(half, 1), b.Add(column, i*byteColumns)
	loaded := r.loadHalf(row, half, b.Min(row, b.Sub(r.columns, 1)), gains) // further columns repeat the last
	most := lane.Fold(b, weight.Largest(b, loaded), 1, pairLanes, func(x, y kernel.Value) kernel.Value { return b.Max(x, y) })
	inverse, whole := b.Splat(weight.InverseScale(b, most), 4), b.Splat(b.F32(3<<22+128), 4)
	x.scale = b.SubgroupShuffle(b.Mul(most, 1.0/weight.FixedMost), b.Mul(r.quad, pairLanes))
	var sums []kernel.Value
	for run, v := range loaded {
		n := b.FMA(v, inverse, whole) // its low 16 bits are 256*high + low + 128
		sums = append(sums, lane.Sum4(b, b.Sub(n, whole)))
		n = b.Bitcast(lane.U32x4, n)
		first, last := b.Permute(b.Elem(n, 0), b.Elem(n, 1), 0x5140), b.Permute(b.Elem(n, 2), b.Elem(n, 3), 0x5140)
		high, lows := b.Permute(first, last, 0x7632), b.Xor(b.Permute(first, last, 0x5410), uint32(0x80808080))
		own, given := b.Select(low, lows, high), b.Select(low, high, lows)
		got := b.SubgroupShuffleXor(given, pairLanes/2)
		x.codes[run] = [2]kernel.Value{b.Select(low, got, own), b.Select(low, own, got)}
	}
	totals := r.byteTotals(low, sums)
	x.totals = b.MatPairs(xMatrix, totals[0], totals[1])
	return x
}

// pairLanes is the lanes that have the digits of a row's block of x.
const pairLanes = 8

// loadHalf loads, of each run of the block of a column of x, the lane's elements of one half, times the norm's
// weights.
func (r *expertWideTask) loadHalf(row, half, column kernel.Value, gains *[weight.FixedRuns]kernel.Value) (loaded []kernel.Value) {
	b := r.b
	own, next := b.Mul(r.quad, 2), 1
	if r.format.Apart {
		own, next = weight.ApartQuad(b, r.quad), 4
	}
	own = b.Add(own, b.Mul(half, next))
	from := b.Add(b.Mul(r.own, fixedBlock/4), own)
	first := b.Add(b.Mul(r.rowOf(column), b.Div(r.a.k, 4)), from)
	for run := range weight.FixedRuns {
		loaded = append(loaded, r.a.x.Load(lane.F32x4, b.Add(first, run*8)))
	}
	if r.gain == nil {
		return loaded
	}
	if gains[0].Type() == kernel.Void {
		for run := range gains {
			gains[run] = r.a.gain.Load(lane.F32x4, b.Add(from, run*8))
		}
	}
	r.sumSquaresOf(loaded, row)
	for i, gain := range gains {
		loaded[i] = b.Mul(loaded[i], gain)
	}
	return loaded
}

// sumSquaresOf is sumSquares of what loadHalf has loaded.
func (r *expertWideTask) sumSquaresOf(loaded []kernel.Value, row kernel.Value) {
	b := r.b
	var runs []kernel.Value
	for _, v := range loaded {
		var sum lane.Partial
		for e := range 4 {
			sum.Product(b, b.Elem(v, e), b.Elem(v, e))
		}
		masks := []int{pairLanes / 2, 1, 2} // both halves first
		if r.format.Apart {
			masks = []int{2, 1, pairLanes / 2}
		}
		of := sum.Sum
		for _, mask := range masks {
			of = b.Add(of, b.SubgroupShuffleXor(of, mask))
		}
		runs = append(runs, of)
	}
	b.If(b.Eq(b.And(r.lane, pairLanes-1), 0), func() {
		for i := 0; i < len(runs); i += squaredRuns {
			at := b.Add(b.Mul(r.own, weight.FixedRuns/squaredRuns), i/squaredRuns)
			r.squares.Store(b.Add(b.Mul(row, r.k/(32*squaredRuns)), at), pairwise(b, runs[i:i+squaredRuns]))
		}
	})
}

// byteTotals returns the words of the matrix of totals of x, of the lane's half of each run: upper parts of totals
// in the lane of the upper digit, lower parts in the other.
func (r *expertWideTask) byteTotals(low kernel.Value, sums []kernel.Value) (words []kernel.Value) {
	b := r.b
	other := func(x kernel.Value) kernel.Value { return b.SubgroupShuffleXor(x, pairLanes/2) }
	var lists [][]kernel.Value
	if r.format.Fine {
		var all []kernel.Value
		for _, own := range sums {
			got := other(own)
			all = append(all, b.Select(low, got, own), b.Select(low, own, got))
		}
		lists = [][]kernel.Value{all[:weight.FixedRuns], all[weight.FixedRuns:]}
	} else {
		for i, own := range sums {
			sums[i] = b.Add(own, other(own)) // exact
		}
		lists = [][]kernel.Value{sums}
	}
	for _, list := range lists {
		upper, lower := digits(r.b, r.share(list))
		words = append(words, b.Select(low, lower, upper))
	}
	if len(words) == 1 {
		words = append(words, b.U32(0))
	}
	return words
}

// byteBlock is superBlock of bytes: it returns the lane's sums of both rows of the block, of its column of each x.
func (r *expertWideTask) byteBlock(rows fixedRows, words [2][]kernel.Value, xs []byteX) (sums [][2]kernel.Value) {
	b := r.b
	var scales [2]weight.SuperScales
	for h := range scales {
		scales[h] = rows[h].Super(words[h])
	}
	minimums := b.MatPairs(weightMatrix, r.minimumPairs(scales)...)
	shift := r.format.Exponents[1] - r.format.Exponents[0]
	totals := make([][2][4]kernel.Value, len(xs)) // of codes as they are, and of those that are multiplied
	for slot := range weight.FixedRuns {
		run, multiplied := r.format.Run(slot), 0
		if shift > 0 {
			multiplied = slot % 2
		}
		first, second := rows[0].Bytes(words[0], slot), rows[1].Bytes(words[1], slot)
		for i, x := range xs {
			for h, products := range r.byteProducts(first, second, x.codes[run]) {
				for e := range 4 {
					s, total := r.scaleByte(scales[e/2].Scales, run*r.format.Halves()+h), &totals[i][multiplied][e]
					*total = weight.Plus(b, *total, b.Mul(s, b.Elem(products, e)))
				}
			}
		}
	}
	for i, x := range xs {
		rests := r.byteMinimums(scales, minimums, x)
		if shift > 0 {
			for e, n := range totals[i][1] {
				totals[i][0][e] = b.Add(totals[i][0][e], b.Bitcast(kernel.U32, b.Shr(b.Bitcast(kernel.I32, n), shift))) // exact
			}
		}
		var own [2]kernel.Value
		for h, of := range scales {
			n := b.Add(b.Shl(totals[i][0][2*h], 8), totals[i][0][2*h+1])
			if of.Mins == nil {
				n = b.Sub(n, rests[h])
			}
			own[h] = b.Mul(b.Mul(of.Factor, x.scale), b.Convert(kernel.F32, b.Bitcast(kernel.I32, n)))
			if of.Mins != nil {
				own[h] = b.FMA(of.Offset, b.Mul(x.scale, rests[h]), own[h])
			}
		}
		sums = append(sums, own)
	}
	return sums
}

// byteProducts returns the products of two rows' codes in a slot and x: of a run or, if scales are fine, of its
// halves.
func (r *expertWideTask) byteProducts(first, second, x [2]kernel.Value) (products []kernel.Value) {
	b := r.b
	if !r.format.Fine {
		return []kernel.Value{b.MatBytes(b.Vec(first[0], first[1], second[0], second[1]), b.Vec(x[0], x[1]))}
	}
	for half := range x {
		products = append(products, b.MatBytes(b.Vec(first[half], second[half]), x[half]))
	}
	return products
}

// byteMinimums is minimums of a lane's column, for both rows.
func (r *expertWideTask) byteMinimums(scales [2]weight.SuperScales, minimums kernel.Value, x byteX) (sums [2]kernel.Value) {
	b := r.b
	begin := float32(0)
	if scales[0].Mins == nil {
		begin = window(0)
	}
	parts := r.elems(b.MatMulAdd(minimums, x.totals, b.MatFill(sumMatrix, begin)))
	for h := range sums {
		sums[h] = r.rest(scales[h], parts[2*h], parts[2*h+1])
	}
	return sums
}
