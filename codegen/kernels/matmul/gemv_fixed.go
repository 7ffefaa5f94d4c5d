package matmul

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// keepFixed is keep for a group in fixed point.
func (r *gemvRun) keepFixed(each func(do func())) {
	held := map[*projectArgs]*heldWords{}
	for i := range r.a.projects {
		if p := &r.a.projects[i]; p.spec.fixed {
			held[p] = r.workspaceFor(p)
		}
	}
	each(func() { // before x, which is nearer
		if r.p.spec.fixed {
			held[r.p].set(r.first(r.place()))
		}
	})
	if r.sharedX != nil {
		for c := range r.columns {
			r.makeShared(c)
		}
		r.b.Barrier()
		r.scaleColumns()
	} else if r.barrier {
		r.b.Barrier()
	}
	each(func() {
		if !r.p.spec.fixed {
			r.loop()
			return
		}
		k := r.place()
		if r.sharedX != nil {
			r.takeShared(k)
		} else {
			r.loadFixed(k)
		}
		r.products(k, held[r.p])
	})
}

// scaleColumns has the last subgroup find the norm's scales, for which others need not wait. Behind the products it
// would be the last work of a workgroup, done by all lanes that store results.
func (r *gemvRun) scaleColumns() {
	if r.rstds == nil {
		return
	}
	b := r.b
	b.If(b.Eq(b.SubgroupID(), r.lanes()/r.wave-1), func() {
		for c := range r.columns {
			rstd := r.a.rstd(b, r.total(r.squares, b.U32(uint32(c)), r.squareGroups()))
			b.If(b.SubgroupElect(), func() { r.rstds.Store(c, rstd) })
		}
	})
}

// floatUnits is the units of a row that loop loads at once, of all columns; chunkUnits is the same where no lane keeps
// anything else.
const (
	floatUnits = 4
	chunkUnits = 16
)

// loop goes through the rows of a projection that reads x as it is, in a loop: registers for its elements of x would
// allow fewer lanes. Beside others in fixed point it takes one at a time.
func (r *gemvRun) loop() {
	b, n := r.b, r.together(r.p.spec)
	r.startResiduals()
	if r.sharedX == nil && r.gain != nil {
		r.sumSquares()
	}
	f := r.p.matrices[0].Format
	units := b.Div(r.a.k, f.Unit)
	most, batch := floatUnits, r.batch
	if r.chunked() {
		most = chunkUnits
	} else {
		r.batch = 1
	}
	atOnce := max(1, min(n, most/r.columns))
	b.For(b.Add(r.from, b.Mul(r.team, r.batch)), r.end, r.batch*max(1, r.teams), func(row kernel.Value) {
		t := &gemvTile{b: b, a: r.a, p: r.p, columns: r.starts}
		pass := r.p.spec.passes()[0]
		var sums [][]kernel.Value // by matrix, row, column: of the chunks
		for j := range pass {
			var rows []kernel.Value
			for i := range r.batch {
				rows = append(rows, r.row(j, b.Add(row, i)))
			}
			t.rows = append(t.rows, rows)
		}
		for range len(pass) * r.batch * r.columns {
			sums = append(sums, nil)
		}
		for chunk := range r.units(r.p.spec) / n {
			t.sums = nil
			for range pass {
				t.sums = append(t.sums, nil)
				for range r.batch {
					t.sums[len(t.sums)-1] = append(t.sums[len(t.sums)-1], r.vars())
				}
			}
			b.ForRolled(0, n, atOnce, func(first kernel.Value) {
				var at []kernel.Value
				var loaded [][][][]weight.Run
				for j := range atOnce {
					u := b.Add(r.unit(chunk*n), b.Mul(b.Add(first, j), r.wave))
					if !r.exact(r.p.spec) {
						b.If(b.Lt(u, units), func() { t.unit(u, t.load(u, pass), pass, false) })
						continue
					}
					at, loaded = append(at, u), append(loaded, t.load(u, pass))
				}
				for j, u := range at {
					t.unit(u, loaded[j], pass, false)
				}
			})
			for i, s := range slices.Concat(slices.Concat(t.sums...)...) {
				sums[i] = append(sums[i], s.Get())
			}
		}
		r.reduce(slices.Concat(sums...), row)
	})
	r.batch = batch
}

// workspaceFor returns where to keep words of a projection.
func (r *gemvRun) workspaceFor(p *projectArgs) *heldWords {
	var zeros []kernel.Value
	for _, t := range p.spec.matrices[0].format.Bytes.Words {
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

// wide reports whether the lanes' units are those of placeWide.
func (r *gemvRun) wide() bool {
	return r.p.spec.fixed && r.exact(r.p.spec) && r.p.matrices[0].Format.Bytes.Wide()
}

// placeOf returns where unit u is.
func (r *gemvRun) placeOf(u kernel.Value) weight.DotPlace {
	f := r.p.matrices[0].Format.Bytes
	if r.wide() {
		return f.PlaceWide(r.b, u, r.wave)
	}
	return f.Place(r.b, u)
}

// masks are those of the lanes that add up one after the other: neighbours first, in the order of
// their runs.
func (r *gemvRun) masks() []int {
	list := masks(1, r.wave)
	if r.wide() {
		list = append(list[1:], list[0])
	}
	return list
}

// masks returns the powers of two from `from` to below the end.
func masks(from, end int) (list []int) {
	for mask := from; mask < end; mask *= 2 {
		list = append(list, mask)
	}
	return list
}

// loadFixed loads the lane's elements of x and rounds them to fixed point.
func (r *gemvRun) loadFixed(k *residentX) {
	b, f := r.b, r.p.matrices[0].Format.Bytes
	for c, column := range r.starts {
		var units []weight.FixedUnit
		for j, u := range k.places {
			var x, halves [2][]kernel.Value
			for h := range halves {
				for v := range weight.FixedHalf / 4 {
					at := b.Add(b.Mul(u.Half, weight.FixedHalf/4), h*u.Stride*weight.FixedHalf/4+v)
					e := r.element(column, at, j)
					x[h] = append(x[h], e)
					if r.gain != nil {
						e = b.Mul(e, r.a.gain.Load(lane.F32x4, at))
					}
					halves[h] = append(halves[h], e)
				}
			}
			if r.gain != nil {
				r.addSquares(c, j, u, x)
			}
			units = append(units, f.ToFixed(b, halves, weight.FixedLanes{Group: weight.ScaleElements(r.k), Wide: r.wide(), Wave: r.wave, Odd: r.odd(), Brief: r.brief}))
		}
		k.fixed = append(k.fixed, units)
	}
}

// odd is true in lanes of odd number.
func (r *gemvRun) odd() kernel.Value { return r.b.Ne(r.b.And(r.lane, 1), 0) }

// dotFixed is dot for an x in fixed point.
func (r *gemvRun) dotFixed(k *residentX, words [][]kernel.Value) []kernel.Value {
	b, f := r.b, r.p.matrices[0].Format.Bytes
	sums := make([][]kernel.Value, len(r.starts))
	for j, u := range k.units {
		w := f.Decode(b, words[j], u)
		for c := range sums {
			sums[c] = append(sums[c], f.Product(b, w, k.fixed[c][j], r.odd()))
		}
	}
	return slices.Concat(sums...)
}

// dotSuper is dotFixed for formats with super-blocks.
func (r *gemvRun) dotSuper(k *residentX, words [][]kernel.Value) []weight.SuperSum {
	b, f := r.b, r.p.matrices[0].Format.Bytes
	sums := make([][]weight.SuperSum, len(r.starts))
	for j, u := range k.units {
		w := f.Decode(b, words[j], u)
		for c := range sums {
			sums[c] = append(sums[c], f.SuperProduct(b, w, k.fixed[c][j]))
		}
	}
	return slices.Concat(sums...)
}

// addSupers adds up the lanes' parts of super-blocks as transpose does, and returns what is left to add: sums over
// super-blocks and the masks of lanes that have others.
func addSupers(b *kernel.Builder, laneID kernel.Value, values []weight.SuperSum, masks []int) ([]kernel.Value, []int) {
	const lanes = weight.SuperElements / weight.DotUnitElements
	for ; len(masks) > 0 && masks[0] < lanes; masks = masks[1:] {
		mask := masks[0]
		upper := b.Ne(b.And(laneID, mask), 0)
		add := func(low, high kernel.Value) kernel.Value {
			if low == (kernel.Value{}) {
				return low
			}
			return b.Add(b.Select(upper, high, low), b.SubgroupShuffleXor(b.Select(upper, low, high), mask))
		}
		choose := func(low, high kernel.Value) kernel.Value {
			if low == high {
				return low
			}
			return b.Select(upper, high, low)
		}
		if len(values) == 1 {
			v := &values[0]
			v.Products = b.Add(v.Products, b.SubgroupShuffleXor(v.Products, mask))
			if v.Mins != (kernel.Value{}) {
				v.Mins = b.Add(v.Mins, b.SubgroupShuffleXor(v.Mins, mask))
			}
		} else {
			half := make([]weight.SuperSum, len(values)/2)
			for i := range half {
				x, y := values[2*i], values[2*i+1]
				half[i] = weight.SuperSum{Products: add(x.Products, y.Products), Mins: add(x.Mins, y.Mins), Header: choose(x.Header, y.Header), ScaleX: choose(x.ScaleX, y.ScaleX)}
			}
			values = half
		}
	}
	var sums []kernel.Value
	for _, v := range values {
		sums = append(sums, v.Number(b))
	}
	return sums, masks
}

// Beside an x in fixed point, squares of x are added up in one order, too: four elements,
// then as many fours as a subgroup has lanes, by pairs, then these groups in turn.

// squareGroups is how many groups a column has.
func (k gemv) squareGroups() int { return site.CeilDiv(k.k/4, k.wave) }

// squareOf returns the sum of the squares of four elements.
func squareOf(b *kernel.Builder, v kernel.Value) kernel.Value {
	var square lane.Partial
	for e := range 4 {
		square.Product(b, b.Elem(v, e), b.Elem(v, e))
	}
	return square.Sum
}

// addSquares adds up the squares of the lane's j-th unit, at u, of column c, four vec4 a half,
// over the lanes that have the rest of its groups.
func (r *gemvRun) addSquares(c, j int, u weight.DotPlace, halves [2][]kernel.Value) {
	b := r.b
	var sums [2]kernel.Value
	for h, v := range halves {
		sums[h] = b.Add(b.Add(squareOf(b, v[0]), squareOf(b, v[1])), b.Add(squareOf(b, v[2]), squareOf(b, v[3])))
	}
	// Bit i of the number of a half is bit i of the lane. From the bit on that tells the
	// lane's two halves apart, it is bit i-1.
	both := 0
	bits, own := site.Log2(r.wave/4), site.Log2(u.Stride)
	for i := range bits {
		switch {
		case i == own:
			sums[0] = b.Add(sums[0], sums[1])
			both = 1
		case both == 1:
			sums[0] = lane.Sum(b, sums[0], 1<<(i-1), 2)
		default:
			for h := range sums {
				sums[h] = lane.Sum(b, sums[h], 1<<i, 2)
			}
		}
	}
	perGroup := r.wave / 4 // halves
	first := b.Eq(b.Mod(u.Half, perGroup), 0)
	if !r.exact(r.p.spec) {
		first = b.And(first, r.real(j))
	}
	b.If(first, func() {
		for h := range 2 - both {
			group := b.Div(b.Add(u.Half, h*u.Stride), perGroup)
			r.squares.Store(b.Add(group, c*r.squareGroups()), sums[h])
		}
	})
}

// sumSquares adds up the squares of all columns in a pass of its own.
func (r *gemvRun) sumSquares() {
	b, quads := r.b, r.k/4
	load := func(c int, i kernel.Value) kernel.Value {
		v := r.a.x.Load(lane.F32x4, b.Add(r.starts[c], b.Min(i, quads-1)))
		if quads%r.wave != 0 {
			v = b.Select(b.Lt(i, quads), v, b.Splat(b.F32(0), 4))
		}
		return v
	}
	add := func(c int, i, v kernel.Value) {
		sum := lane.Sum(b, squareOf(b, v), 1, r.wave)
		b.If(b.SubgroupElect(), func() { r.squares.Store(b.Add(b.Div(i, r.wave), c*r.squareGroups()), sum) })
	}
	if n := r.squareGroups() / r.subgroups; r.chunked() && r.squareGroups()%r.subgroups == 0 { // there is time for nothing that waits for loads twice
		most := max(1, r.wave/n) // columns, of which a lane gets one sum
		for first := 0; first < r.columns; first += most {
			columns := min(most, r.columns-first)
			var squares []kernel.Value
			for turn := range n {
				for c := range columns {
					squares = append(squares, squareOf(b, load(first+c, b.Add(r.member, turn*r.subgroups*r.wave))))
				}
			}
			r.transpose(squares, masks(1, r.wave), func(i, sum kernel.Value) {
				group := b.Add(r.subgroup, b.Mul(b.Div(i, columns), r.subgroups))
				r.squares.Store(b.Add(group, b.Mul(b.Add(b.Mod(i, columns), first), r.squareGroups())), sum)
			})
		}
		return
	}
	for c := range r.columns {
		b.For(r.member, r.squareGroups()*r.wave, r.subgroups*r.wave, func(i kernel.Value) { add(c, i, load(c, i)) })
	}
}
