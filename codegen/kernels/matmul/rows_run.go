package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// columnsHere is the columns of the workgroup.
func (r *rowsRun) columnsHere() kernel.Value {
	first, end := r.place.Load(0), r.place.Load(1)
	return r.b.Min(r.b.Sub(r.b.Max(end, first), first), r.size)
}

// expert is that of the columns; 0 where there are none.
func (r *rowsRun) expert() kernel.Value { return r.place.Load(2) }

// group16 returns where the 16 rows of a matrix are, in such groups, which are the at-th of those that count.
func (r *rowsRun) group16(m int, at kernel.Value) kernel.Value {
	b := r.b
	groups := b.Div(b.Add(r.height, laneRows-1), laneRows) // of an expert
	return b.Add(b.Mul(r.expert(), groups), b.Div(r.from[m], laneRows), at)
}

// find finds the columns of a line of the grid, and their expert.
func (r *rowsRun) find() {
	b, line := r.b, r.b.WorkgroupID(1)
	count := r.n.Load(kernel.U32, 0) // no number if n is not there, but then nobody looks at it
	first, end := b.Var(kernel.U32, b.Mul(line, r.size)), b.Var(kernel.U32, b.Select(b.Eq(r.most, 0), count, r.most))
	expert := b.Var(kernel.U32, 0)
	b.If(r.is(r.slots), func() {
		end.Set(b.Mul(end.Get(), r.slots))
		b.IfElse(r.is(r.inOrder), func() {
			first.Set(0)
			end.Set(0)
			before := b.Var(kernel.U32, 0) // tiles of the experts before
			b.For(0, r.count, 1, func(e kernel.Value) {
				from, to := r.offsets.Load(kernel.U32, e), r.offsets.Load(kernel.U32, b.Add(e, 1))
				tiles := b.Div(b.Sub(b.Add(b.Sub(to, from), r.size), 1), r.size)
				mine := b.Sub(line, before.Get()) // wraps in tiles before
				b.If(b.Lt(mine, tiles), func() {
					first.Set(b.Add(from, b.Mul(mine, r.size)))
					end.Set(to)
					expert.Set(e)
				})
				before.Set(b.Add(before.Get(), tiles))
			})
		}, func() {
			b.If(b.Lt(line, end.Get()), func() { expert.Set(r.ids.Load(kernel.U32, line)) })
		})
	})
	b.If(b.Eq(b.LocalID(), 0), func() {
		for i, v := range []*kernel.Var{first, end, expert} {
			r.place.Store(i, v.Get())
		}
	})
	b.For(b.LocalID(), r.size, laneRows, func(c kernel.Value) {
		row := b.Var(kernel.U32, b.Max(b.Min(b.Add(first.Get(), c), b.Sub(end.Get(), 1)), first.Get()))
		b.If(b.And(r.is(r.inOrder), b.Lt(first.Get(), end.Get())), func() { row.Set(r.order.Load(kernel.U32, row.Get())) })
		r.targets.Store(c, row.Get())
		b.If(b.And(r.is(r.slots), b.Not(r.is(r.own))), func() { row.Set(b.Div(row.Get(), b.Max(r.slots, 1))) })
		r.sources.Store(c, b.Select(r.is(r.last), b.Sub(count, 1), row.Get()))
	})
}

// round puts a column of x into shared memory in fixed point. A lane takes 4 neighbours of 64 elements.
func (r *rowsRun) round(c, source kernel.Value) {
	b, laneID := r.b, r.b.LocalID()
	row := b.Mul(source, b.Div(r.cols, 4))
	squares := b.Var(kernel.F32, 0.0)
	group := r.group()
	chunk := max(group, 64) / 4 // vec4 of a round
	most := map[int]float32{12: weight.FixedMost, 8: fixed8Max}[r.bits]
	b.For(0, b.Div(r.cols, 4), chunk, func(from kernel.Value) {
		var parts []*kernel.Var
		for j := range chunk / laneRows {
			parts = append(parts, b.Var(lane.F32x4, r.x.Load(lane.F32x4, b.Add(row, from, j*laneRows, laneID))))
		}
		b.If(r.is(r.norm), func() {
			for j, p := range parts {
				r.square(squares, p.Get())
				p.Set(b.Mul(p.Get(), r.gain.Load(lane.F32x4, b.Add(from, j*laneRows, laneID))))
			}
		})
		var x []kernel.Value
		for _, p := range parts {
			x = append(x, p.Get())
		}
		largest := weight.Largest(b, x)
		if group == weight.FixedRun {
			largest = lane.Fold(b, largest, 1, group/4, func(x, y kernel.Value) kernel.Value { return b.Max(x, y) })
		} else {
			largest = b.SubgroupMax(largest)
		}
		inverse := b.Select(b.Gt(largest, 1e-30), b.Div(b.F32(most), b.Max(largest, 1e-30)), 0)
		scale := b.Mul(largest, 1/most)
		if r.panels != nil {
			r.panels.keep(c, b.Div(from, panelWords), bytesOf(b, x[0], inverse), scale)
			return
		}
		at := b.Add(b.Mul(c, b.Div(r.cols, 4)), from)
		var sums []kernel.Value
		for j, v := range x {
			sums = append(sums, r.keep(v, inverse, b.Add(at, j*laneRows, laneID)))
		}
		r.keepSums(sums, at)
		if group == weight.FixedRun {
			b.If(b.Eq(b.And(laneID, 7), 0), func() { r.scales.Store(b.Shr(b.Add(at, laneID), 3), scale) })
		} else {
			b.If(b.Eq(laneID, 0), func() { r.scales.Store(b.Div(at, group/4), scale) })
		}
	})
	r.normed(c, squares)
}

// scale finds the factor of the products of a column that is not rounded.
func (r *rowsRun) scale(c, source kernel.Value) {
	b := r.b
	row, squares := b.Mul(source, b.Div(r.cols, 4)), b.Var(kernel.F32, 0.0)
	b.If(r.is(r.norm), func() {
		b.For(b.LocalID(), b.Div(r.cols, 4), laneRows, func(i kernel.Value) {
			r.square(squares, r.x.Load(lane.F32x4, b.Add(row, i)))
		})
	})
	r.normed(c, squares)
}

// square adds the squares of four elements.
func (r *rowsRun) square(to *kernel.Var, v kernel.Value) {
	s := to.Get()
	for e := range 4 {
		s = r.b.FMA(r.b.Elem(v, e), r.b.Elem(v, e), s)
	}
	to.Set(s)
}

// normed keeps the scale of the norm of a column, 1 without one.
func (r *rowsRun) normed(c kernel.Value, squares *kernel.Var) {
	b := r.b
	mean := b.Div(b.SubgroupAdd(squares.Get()), b.Convert(kernel.F32, r.cols))
	rstd := b.Select(r.is(r.norm), b.InverseSqrt(b.Add(mean, r.rstd)), 1.0)
	b.If(b.Eq(b.LocalID(), 0), func() { r.rstds.Store(c, rstd) })
}

// keep rounds four elements, keeps their bytes at a word and returns the sum of the integers, times the negative bias
// of codes that have one.
func (r *rowsRun) keep(v, inverse, at kernel.Value) kernel.Value {
	b := r.b
	ones := b.U32(0x01010101)
	high, low := weight.FixedWords(b, v, inverse)
	r.high.Store(at, high)
	r.low.Store(at, low)
	sum := b.Add(b.Shl(b.DotU8(high, ones), 8), b.DotU8(low, ones))
	if bias := r.p.matrices[0].rows.Panel.Bias; bias != 0 {
		sum = b.Mul(sum, -bias)
	}
	return sum
}

// keepSums keeps sums of integers, of words from one on, of which lanes have those of 4 elements: the sum of each 16
// elements, or where codes have least values, by leastWords, those of each 32.
func (r *rowsRun) keepSums(sums []kernel.Value, word kernel.Value) {
	b, laneID := r.b, r.b.LocalID()
	at := b.Shr(word, 2)
	if r.least() {
		r.sums.Store(b.Add(at, laneID), b.Bitcast(kernel.I32, r.leastWords(sums)))
		return
	}
	halves := laneRows / 4 // of 16 elements, of a word of all lanes
	sum := lane.SumEach(b, sums, laneID, 1)
	sum = lane.Sum(b, sum, len(sums), halves/len(sums))
	if len(sums) < halves {
		b.If(b.Eq(b.And(laneID, halves-1), 0), func() { r.sums.Store(b.Add(at, b.Div(laneID, halves)), sum) })
		return
	}
	// A lane has the sum of word lane%4 of all lanes, and of the lane/4-th 16 elements there.
	r.sums.Store(b.Add(at, laneID), b.SubgroupShuffle(sum, b.Or(b.Shl(b.And(laneID, 3), 2), b.Shr(laneID, 2))))
}

// least reports whether codes have least values.
func (r *rowsRun) least() bool { return r.p.matrices[0].rows.Panel.Least }

// leastDigits is the bytes of a sum of 32 integers, as a number of signed digits to the base of 256.
const leastDigits = 3

// leastWords returns the sums of an image's 8 runs as words, 4 lanes to a digit, the lowest one first: the first two
// lanes of these have the first four runs, the others the last.
func (r *rowsRun) leastWords(sums []kernel.Value) kernel.Value {
	b, laneID := r.b, r.b.LocalID()
	bit := func(n int) kernel.Value { return b.And(b.Shr(laneID, n), 1) }
	// A lane has run 2*(lane%4) + lane/8: bits 1, 0 and 3 of its number are those of the run.
	rest := lane.Sum(b, lane.SumEach(b, sums, laneID, 1), 4, 2)
	place := b.Add(b.Mul(bit(0), 16), b.Mul(bit(3), 8))
	var words [leastDigits]kernel.Value
	for i := range words {
		w := b.Shl(b.And(b.Bitcast(kernel.U32, rest), 0xff), place)
		for _, other := range []int{1, 8} {
			w = b.Or(w, b.SubgroupShuffleXor(w, other))
		}
		words[i] = w
		rest = b.Shr(b.Add(rest, 128), 8)
	}
	// Bit 1 says which runs; it is to be bit 1 still.
	return b.Select(b.Lt(laneID, 4), words[0], b.Select(b.Lt(laneID, 8), words[1], words[2]))
}

// leasts returns the sum over the runs of an image of a column of their sums times bytes of two words.
func (r *rowsRun) leasts(image kernel.Value, bytes [2]kernel.Value) kernel.Value {
	b := r.b
	var sum kernel.Value
	for digit := leastDigits - 1; digit >= 0; digit-- {
		for half, w := range bytes {
			d := b.DotU8(b.Bitcast(kernel.U32, r.sums.Load(b.Add(image, 4*digit+2*half))), w)
			switch {
			case sum == kernel.Value{}:
				sum = d
			case half == 0:
				sum = b.Add(d, b.Shl(sum, 8))
			default:
				sum = b.Add(d, sum)
			}
		}
	}
	return sum
}

// bytesOf rounds four elements to bytes of a word.
func bytesOf(b *kernel.Builder, v, inverse kernel.Value) kernel.Value {
	n := b.Bitcast(lane.U32x4, b.FMA(v, b.Splat(inverse, 4), b.Splat(b.F32(3<<22), 4)))
	even := b.Or(b.And(b.Elem(n, 0), 0xff), b.Shl(b.And(b.Elem(n, 2), 0xff), 16))
	odd := b.Or(b.And(b.Elem(n, 1), 0xff), b.Shl(b.And(b.Elem(n, 3), 0xff), 16))
	return b.Or(even, b.Shl(odd, 8))
}

// project computes 16 rows of the weights, from row 16*at on, for the columns from first on.
func (r *rowsRun) project(at, first kernel.Value) {
	b := r.b
	r.askFor(askedAhead)
	col := b.Add(b.Mul(at, laneRows), b.LocalID())
	sums := make([][]*kernel.Var, len(r.matrices))
	for m := range r.matrices {
		for range r.columns {
			sums[m] = append(sums[m], b.Var(kernel.F32, 0.0))
		}
		switch {
		case r.fixed != nil:
			r.images(m, r.group16(m, at), first, sums[m])
		case r.runsAlong():
			r.along(m, at, first, sums[m])
		default:
			row := b.Add(b.Mul(r.expert(), r.height), r.from[m], b.Min(col, b.Sub(r.width, 1)))
			r.floats(m, row, first, sums[m])
		}
	}
	for m, list := range sums {
		for c, sum := range list {
			r.products.Store(r.product(m, b.U32(uint32(c))), sum.Get())
		}
	}
	b.Barrier()
	r.storeAll(at, first, b.Min(b.Sub(r.columnsHere(), first), r.columns))
	b.Barrier()
}

// askedAhead is how many workgroups before it writes a line a thread asks for it. Where another thread has read what
// was there, and its cache is far from this one's, the line comes as late as two or three workgroups of short rows
// take.
const askedAhead = 3

// askFor asks for the line that a workgroup further on writes. With more columns than one, workgroups take long enough.
func (r *rowsRun) askFor(workgroups int) {
	b := r.b
	if r.columns == 1 {
		r.y.Prefetch(b.Add(b.Mul(r.targets.Load(0), r.width), b.Mul(b.WorkgroupAhead(workgroups), laneRows)))
	}
}

// product returns where the lane's product of a matrix and the c-th of the columns at hand is.
func (r *rowsRun) product(m int, c kernel.Value) kernel.Value {
	b := r.b
	return b.Add(b.Mul(b.Add(b.Mul(c, len(r.matrices)), m), laneRows), b.LocalID())
}

// storeAll writes 16 rows, from row 16*at on, of some columns from first on, whose products are those at hand. It is a
// loop, as activations are long.
func (r *rowsRun) storeAll(at, first, columns kernel.Value) {
	b := r.b
	col := b.Add(b.Mul(at, laneRows), b.LocalID())
	b.For(0, columns, 1, func(c kernel.Value) {
		b.If(b.Lt(col, r.width), func() {
			var list []*kernel.Var
			for m := range r.matrices {
				list = append(list, b.Var(kernel.F32, r.products.Load(r.product(m, c))))
			}
			r.store(list, b.Add(first, c), col)
		})
	})
}

// store writes element col of a column, whose products with the matrices are sums.
func (r *rowsRun) store(sums []*kernel.Var, column, col kernel.Value) {
	b := r.b
	rstd := r.rstds.Load(column)
	for i, s := range sums {
		s.Set(b.Mul(s.Get(), rstd)) // 1 where there is no norm
		b.If(r.is(r.bias), func() {
			s.Set(b.Add(s.Get(), r.biases[i].Load(kernel.F32, b.Add(b.Mul(r.expert(), r.width), col))))
		})
	}
	y := sums[0]
	if len(sums) > 1 {
		y = b.Var(kernel.F32, 0.0)
		for i, act := range lane.GLUs {
			b.If(b.Eq(r.act, i), func() { y.Set(lane.GLU(b, act, sums[0].Get())(sums[1].Get())) })
		}
	}
	at := b.Add(b.Mul(r.targets.Load(column), r.width), col)
	for i, add := range r.adds {
		b.If(b.Gt(r.residuals, i), func() { y.Set(b.Add(y.Get(), add.Load(kernel.F32, at))) })
	}
	r.y.Store(at, y.Get())
}

// images adds the products of a matrix whose rows are interleaved.
func (r *rowsRun) images(m int, at, first kernel.Value, sums []*kernel.Var) {
	b, f := r.b, r.p.matrices[m].rows
	images := b.Div(r.cols, f.Cols)
	words := b.Div(r.cols, 4)
	b.For(0, images, 1, func(i kernel.Value) {
		from := b.Mul(b.Add(b.Mul(at, images), i), f.Words*laneRows)
		x := b.Mul(i, f.Cols/4) // word
		column := func(c int) kernel.Value { return b.Add(b.Mul(b.Add(first, c), words), x) }
		list := f.Product(b, weight.RowsImage{
			Word: func(k kernel.Value) kernel.Value {
				return r.matrices[m].Buf.Load(kernel.U32, b.Add(from, b.Mul(k, laneRows), b.LocalID()))
			},
			Columns:  r.columns,
			Unsigned: r.unsigned,
			X: weight.RowsX{
				Dot: func(c int, word kernel.Value, codes []kernel.Value, start kernel.Value) kernel.Value {
					at := b.Add(column(c), word)
					high := b.Shl(r.dot(f, r.high, at, codes, kernel.Value{}), 8)
					if start == (kernel.Value{}) || r.unsigned {
						return b.Add(high, r.dot(f, r.low, at, codes, start))
					}
					// Products are added in 16 bits as long as there is nothing else.
					return b.Add(b.Add(high, r.dot(f, r.low, at, codes, kernel.Value{})), start)
				},
				Leasts: func(c int, bytes [2]kernel.Value) kernel.Value { return r.leasts(b.Shr(column(c), 2), bytes) },
				Sum: func(c int, half kernel.Value) kernel.Value {
					return r.sums.Load(b.Add(b.Shr(column(c), 2), half))
				},
				Scale: func(c int, run kernel.Value) kernel.Value {
					return r.scales.Load(b.Div(b.Add(column(c), b.Mul(run, 8)), r.group()/4))
				},
				Whole: r.group() == weight.SuperElements && f.Cols == weight.SuperElements,
			},
		})
		for c, s := range sums {
			s.Set(b.Add(s.Get(), list[c]))
		}
	})
}

// dot adds the products of codes and the bytes from a word of x on to sum, which may be none.
func (r *rowsRun) dot(f *weight.RowsFormat, x *kernel.Array, word kernel.Value, codes []kernel.Value, sum kernel.Value) kernel.Value {
	b := r.b
	for j, code := range codes {
		bytes := x.Load(b.Add(word, j))
		d := b.DotU8(bytes, code)
		if f.Signed {
			d = b.DotI8(bytes, code)
		}
		if sum != (kernel.Value{}) {
			d = b.Add(d, sum)
		}
		sum = d
	}
	return sum
}

// floats adds the products of a matrix that lies row by row with x as it is.
func (r *rowsRun) floats(m int, row, first kernel.Value, sums []*kernel.Var) {
	b, matrix := r.b, r.matrices[m]
	f := matrix.Format
	var columns []kernel.Value
	for c := range sums {
		source := r.sources.Load(b.Min(b.Add(first, c), b.Sub(r.columnsHere(), 1)))
		columns = append(columns, b.Mul(source, b.Div(r.cols, 4)))
	}
	b.For(0, b.Div(r.cols, f.Unit), 1, func(u kernel.Value) {
		runs := f.Load(b, matrix, row, u)
		begin := b.Div(f.Begin(b, u), 4)
		for i := range f.Unit / 4 {
			w := runs[4*i/f.Run].Value(b, f, i%(f.Run/4))
			at := b.Add(begin, f.At(i)/4)
			gain := b.Var(lane.F32x4, 1.0)
			b.If(r.is(r.norm), func() { gain.Set(r.gain.Load(lane.F32x4, at)) })
			w = b.Mul(w, gain.Get())
			for c, s := range sums {
				x := r.x.Load(lane.F32x4, b.Add(columns[c], at))
				for e := range 4 {
					s.Set(b.FMA(b.Elem(w, e), b.Elem(x, e), s.Get()))
				}
			}
		}
	})
}
