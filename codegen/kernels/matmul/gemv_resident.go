package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// residentX is the elements of x that a lane keeps, by column, unit of the lane.
// A lane without a unit repeats the last one, with zeros for x.
type residentX struct {
	units  []kernel.Value
	places []weight.DotPlace    // if they are in fixed point
	x      [][][]kernel.Value   // vec4 of the unit, in its order
	total  [][][]kernel.Value   // sums of x over the runs, if the format needs them
	fixed  [][]weight.FixedUnit // in their stead for a projection in fixed point
}

// keep goes through the tile's rows with x in registers.
func (r *gemvRun) keep() {
	k := r.place()
	next := newWords(r.b, r.first(k)) // before x, which is nearer
	r.loadX(k)
	r.products(k, next)
}

// place finds the lane's units.
func (r *gemvRun) place() *residentX {
	b, k := r.b, &residentX{}
	for j := range r.units(r.p.spec) {
		u := r.unit(j)
		if !r.exact(r.p.spec) {
			u = b.Min(u, b.Sub(b.Div(r.a.k, r.p.spec.unit()), 1))
		}
		k.units = append(k.units, u)
		if r.p.spec.fixed {
			k.places = append(k.places, r.placeOf(u))
		}
	}
	return k
}

// unit returns the lane's j-th unit, which may be beyond the last.
func (r *gemvRun) unit(j int) kernel.Value {
	b, n := r.b, r.together(r.p.spec)
	if n == 1 {
		return b.Add(r.member, j*r.wave*r.subgroups)
	}
	return b.Add(b.Mul(r.subgroup, n*r.wave), r.lane, j/n*n*r.wave*r.subgroups+j%n*r.wave)
}

// first loads the lane's words of the team's first rows, and what is added to its result
// if that is loaded early.
func (r *gemvRun) first(k *residentX) [][][]kernel.Value {
	words := r.fetch(k, r.b.Add(r.from, r.b.Mul(r.team, r.batch)))
	r.startResiduals()
	return words
}

// startResiduals loads what is added to the lane's result, if that is loaded early.
func (r *gemvRun) startResiduals() {
	b := r.b
	if !r.early {
		return
	}
	last := b.Sub(b.Mul(b.Sub(r.end, r.from), r.columns), 1)
	row, col := r.result(b.Min(b.LocalID(), last))
	for j, v := range r.p.loadResiduals(b, row, col) {
		r.residuals[j].Set(v)
	}
}

// products goes through the team's rows of the tile.
func (r *gemvRun) products(k *residentX, next *heldWords) {
	b, step := r.b, r.batch*max(1, r.teams)
	dot, super := r.dot, false
	if r.p.spec.fixed {
		dot, super = r.dotFixed, r.p.matrices[0].Format.Bytes.Super
	}
	b.For(b.Add(r.from, b.Mul(r.team, r.batch)), r.end, step, func(n kernel.Value) {
		words := next.get()
		// Not only if there is a next batch: NVIDIA's compiler moves a branch behind
		// what does not need it. Past the end the last row is loaded again.
		next.set(r.fetch(k, b.Add(n, step)))
		if super {
			var sums []weight.SuperSum
			for _, w := range words {
				sums = append(sums, r.dotSuper(k, w)...)
			}
			r.reduceSupers(sums, n)
			return
		}
		var sums []kernel.Value
		for _, w := range words {
			sums = append(sums, dot(k, w)...)
		}
		r.reduce(sums, n)
	})
}

// loadX loads the lane's elements of x, and adds up what depends on x alone.
func (r *gemvRun) loadX(k *residentX) {
	b, f := r.b, r.p.matrices[0].Format
	var squares []kernel.Value
	for _, column := range r.starts {
		var square lane.Partial
		var x, total [][]kernel.Value
		for j, u := range k.units {
			begin := b.Div(f.Begin(b, u), 4)
			var xs, totals []kernel.Value
			for i := range f.Runs() {
				var sum lane.Partial
				for v := range f.Run / 4 {
					at := b.Add(begin, f.At(i*f.Run/4+v)/4)
					x := r.element(column, at, j)
					if r.gain != nil {
						for e := range 4 {
							square.Product(b, b.Elem(x, e), b.Elem(x, e))
						}
						x = b.Mul(x, r.a.gain.Load(lane.F32x4, at))
					}
					if f.Sums() {
						for e := range 4 {
							sum.Add(b, b.Elem(x, e))
						}
					}
					xs = append(xs, x)
				}
				totals = append(totals, sum.Sum)
			}
			x, total = append(x, xs), append(total, totals)
		}
		k.x, k.total = append(k.x, x), append(k.total, total)
		squares = append(squares, square.Sum)
	}
	r.reduceSquares(squares)
}

// element loads a vec4 of x, of the lane's j-th unit.
func (r *gemvRun) element(column, at kernel.Value, j int) kernel.Value {
	b := r.b
	x := r.a.x.Load(lane.F32x4, b.Add(column, at))
	if !r.exact(r.p.spec) {
		x = b.Select(r.real(j), x, b.Splat(b.F32(0), 4))
	}
	return x
}

// real reports whether the lane has a j-th unit.
func (r *gemvRun) real(j int) kernel.Value {
	b := r.b
	return b.Lt(r.unit(j), b.Div(r.a.k, r.p.spec.unit()))
}

// fetch loads the lane's units of the batch from row n on: by matrix and row, unit.
func (r *gemvRun) fetch(k *residentX, n kernel.Value) [][][]kernel.Value {
	var all [][][]kernel.Value
	for j, m := range r.p.matrices {
		for i := range r.batch {
			row := r.row(j, r.b.Add(n, i))
			var units [][]kernel.Value
			for j, u := range k.units {
				if r.p.spec.fixed {
					units = append(units, m.Format.Bytes.Fetch(r.b, m, row, k.places[j]))
				} else {
					units = append(units, m.Format.Fetch(r.b, m, row, u))
				}
			}
			all = append(all, units)
		}
	}
	return all
}

// dot returns the lane's part of the product of a row with each column: the sum over its
// units, in the order of gemvTile.unit.
func (r *gemvRun) dot(k *residentX, words [][]kernel.Value) []kernel.Value {
	b, f := r.b, r.p.matrices[0].Format
	var sums []kernel.Value
	for range r.starts {
		sums = append(sums, b.F32(0))
	}
	for j, u := range k.units {
		for i, run := range f.Decode(b, words[j], u) {
			part := make([]lane.Partial, len(sums))
			for v := range f.Run / 4 {
				codes := run.Codes(v)
				for e := range 4 {
					for c := range sums {
						part[c].Product(b, b.Elem(codes, e), b.Elem(k.x[c][j][i*f.Run/4+v], e))
					}
				}
			}
			for c := range sums {
				sums[c] = into(part[c], b, f, sums[c], run, k.total[c][j][i])
			}
		}
	}
	return sums
}

// heldWords are fetched words that a loop carries to its next iteration.
type heldWords struct{ vars [][][]*kernel.Var }

func newWords(b *kernel.Builder, words [][][]kernel.Value) *heldWords {
	h := &heldWords{}
	for _, units := range words {
		var row [][]*kernel.Var
		for _, unit := range units {
			var vars []*kernel.Var
			for _, w := range unit {
				vars = append(vars, b.Var(w.Type(), w))
			}
			row = append(row, vars)
		}
		h.vars = append(h.vars, row)
	}
	return h
}

func (h *heldWords) get() [][][]kernel.Value {
	var words [][][]kernel.Value
	for _, units := range h.vars {
		var row [][]kernel.Value
		for _, unit := range units {
			var values []kernel.Value
			for _, v := range unit {
				values = append(values, v.Get())
			}
			row = append(row, values)
		}
		words = append(words, row)
	}
	return words
}

func (h *heldWords) set(words [][][]kernel.Value) {
	for i, units := range h.vars {
		for j, unit := range units {
			for k, v := range unit {
				v.Set(words[i][j][k])
			}
		}
	}
}
