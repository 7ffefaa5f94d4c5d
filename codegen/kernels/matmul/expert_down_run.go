package matmul

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// downShape is how a subgroup takes the rows of a matrix: several at once, a team of
// lanes a row, each lane some units of it.
type downShape struct {
	format *weight.Format
	k      int // row length
	unit   int // elements of a unit
	team   int // lanes: a power of two
	units  int // of a lane, at most
	exact  bool
	fixed  bool // x is in fixed point
	part   bool // the row is a part of a longer one
}

// downShape is that of the experts' rows.
func (g *expertDown) downShape() downShape {
	if g.fixed == nil {
		return newDownShape(g.down.format, g.down.format.Unit, g.k, g.wave)
	}
	s := newDownShape(g.down.format, weight.DotUnitElements, g.k, g.wave)
	s.fixed = true
	return s
}

func newDownShape(format *weight.Format, unit, k, wave int) downShape {
	s, n := downShape{format: format, k: k, unit: unit, team: 1}, k/unit
	for s.team < wave && 2*s.team <= n {
		s.team *= 2
	}
	s.units = site.CeilDiv(n, s.team)
	s.exact = s.units*s.team == n
	return s
}

// resident reports whether a lane can keep its elements of x.
func (s downShape) resident() bool { return s.fixed || s.units*s.unit <= residentElements }

// ahead returns how many batches of rows are loaded before they are used: batches of one
// row each are many, and would wait for one another.
func (s downShape) ahead(wave int) int {
	if s.team == wave && s.units == 1 {
		return 4
	}
	return 1
}

func (s downShape) key(halves bool) string {
	key := s.format.Name
	if s.fixed {
		key += "*fixed"
		if halves && s.format.Bytes.Halves {
			key += "/halves"
		}
	}
	if s.resident() {
		key += fmt.Sprintf("/%d", s.units)
		if !s.exact {
			key += "-"
		}
	}
	return fmt.Sprintf("%s t=%d", key, s.team)
}

// downRun is the kernel while it is built.
type downRun struct {
	*expertDown
	args      downArgs
	b         *kernel.Builder
	row       kernel.Value // of the result
	from, end kernel.Value // the tile: elements of the row
	tile      kernel.Value
	parts     *kernel.Array // dot products, by member and element
	weigh     *kernel.Array // by slot
}

func (g *expertDown) kernel(s *site.Signature) func(b *kernel.Builder) {
	extent := g.extent.Declare(s)
	a := g.declare(s)
	r := &downRun{expertDown: g, args: a, tile: s.U32("tile", g.tile, 16, "elements of a row of the result of a workgroup")}
	return func(b *kernel.Builder) {
		r.b = b
		bound, width := extent.Load(b), a.width
		b.Workgroup(g.subgroups() * g.wave)
		r.parts = b.Shared(kernel.F32, b.Mul(r.tile, g.members()))
		r.weigh = b.Shared(kernel.F32, g.slots)

		r.row = b.WorkgroupID(1)
		r.from = b.Mul(b.WorkgroupID(0), r.tile)
		r.end = b.Min(b.Add(r.from, r.tile), width)
		element := b.Min(b.Add(r.from, b.LocalID()), b.Sub(width, 1)) // that the lane sums up
		terms := r.loadTerms(b.Add(b.Mul(r.row, width), element))
		b.ReturnIf(b.Ge(r.row, bound))
		r.members(func(i kernel.Value) {
			slot := b.Add(b.Mul(r.row, g.slots), i)
			id := a.ids.Load(kernel.U32, slot)
			m := weight.Matrix{Format: g.down.format, Buf: a.w, Rows: b.Mul(a.height, a.experts), Cols: a.k, Halves: g.halves}
			var bias func(n kernel.Value) kernel.Value
			if buf := a.bias; buf != nil {
				bias = func(n kernel.Value) kernel.Value {
					return buf.Load(kernel.F32, b.Add(b.Mul(id, width), b.Min(n, b.Sub(width, 1))))
				}
			}
			r.member(i, g.downShape(), m, a.x, b.Mul(slot, g.k/4), b.U32(0), b.Add(b.Mul(id, a.height), a.first), bias)
		})
		next := g.slots
		for i, t := range g.terms {
			if t.x == nil {
				continue
			}
			s := g.termShape(t)
			m := weight.Matrix{Format: t.w.format, Buf: a.terms[i].w, Rows: width, Cols: a.terms[i].k, Halves: g.halves}
			r.only(next, t.parts, func(at kernel.Value) {
				r.member(at, s, m, a.terms[i].x, b.Mul(r.row, t.k/4), b.Mul(b.Sub(at, next), s.k/s.unit), b.U32(0), nil)
			})
			next += t.parts
		}
		r.only(next, 1, func(kernel.Value) { r.routing() })
		b.Barrier()
		b.If(b.Lt(b.LocalID(), b.Sub(r.end, r.from)), func() {
			a.y.Store(b.Add(b.Mul(r.row, width), element), r.sum(terms))
		})
	}
}

// members runs body for each slot: in a subgroup each or, where there is one alone, in turn.
func (r *downRun) members(body func(i kernel.Value)) {
	b := r.b
	if r.alone {
		b.For(0, r.slots, 1, body)
		return
	}
	b.If(b.Lt(b.SubgroupID(), r.slots), func() { body(b.SubgroupID()) })
}

// only runs body in the n subgroups from that number on, if there are several, else n times.
func (r *downRun) only(i, n int, body func(at kernel.Value)) {
	b := r.b
	switch {
	case r.alone && n == 1:
		body(b.U32(uint32(i)))
	case r.alone:
		b.For(i, i+n, 1, body)
	case n == 1:
		b.If(b.Eq(b.SubgroupID(), i), func() { body(b.SubgroupID()) })
	default:
		b.If(b.And(b.Ge(b.SubgroupID(), i), b.Lt(b.SubgroupID(), i+n)), func() { body(b.SubgroupID()) })
	}
}

// routing computes the slots' weights.
func (r *downRun) routing() {
	b := r.b
	var list []kernel.Value
	if r.route == nil {
		first := b.Mul(r.row, r.slots)
		for i := range r.slots {
			list = append(list, r.args.weights.Load(kernel.F32, b.Add(first, i)))
		}
	} else {
		list = routeArgs{r.route, r.args.scores, r.args.ids, r.args.scales}.weights(b, r.row, r.slots, r.wave)
	}
	b.If(b.SubgroupElect(), func() {
		for i, w := range list {
			r.weigh.Store(i, w)
		}
	})
}

// loadTerms loads, by term, what is added to element i of the result, and in place of
// it the gate of a projection that has one.
func (r *downRun) loadTerms(i kernel.Value) []kernel.Value {
	list := make([]kernel.Value, len(r.terms))
	for j, t := range r.terms {
		switch {
		case t.x == nil:
			list[j] = r.args.terms[j].add.Load(kernel.F32, i)
		case t.gate != nil:
			list[j] = r.args.terms[j].gate.Load(kernel.F32, r.row)
		}
	}
	return list
}

// member computes the products of the tile's rows, counted from row base of m, with the row of x that begins at that
// column, in vec4, in one subgroup, as those of the member of that index: of units from the given one on. What bias
// returns for a row is added, if it is not nil.
func (r *downRun) member(index kernel.Value, s downShape, m weight.Matrix, x *kernel.Buffer, column, firstUnit, base kernel.Value, bias func(n kernel.Value) kernel.Value) {
	b := r.b
	laneID := b.Mod(b.SubgroupLane(), s.team)
	own := b.Div(b.SubgroupLane(), s.team) // of the rows at once
	to := b.Mul(index, r.tile)
	put := func(n, sum kernel.Value) {
		sum = lane.Sum(b, sum, s.alike(), s.team/s.alike())
		if bias != nil {
			sum = b.Add(sum, bias(n))
		}
		b.If(b.And(b.Eq(laneID, 0), b.Lt(n, r.end)), func() { r.parts.Store(b.Add(to, b.Sub(n, r.from)), sum) })
	}
	place := func(n kernel.Value) kernel.Value { return b.Add(base, b.Min(n, b.Sub(r.end, 1))) }
	rows := r.wave / s.team
	if !s.resident() {
		b.For(r.from, r.end, rows, func(first kernel.Value) {
			n := b.Add(first, own)
			t := &gemvTile{b: b, a: &linearArgs{group: &linearGroup{}, x: x}, p: &projectArgs{matrices: []weight.Matrix{m}},
				columns: []kernel.Value{column}, rows: [][]kernel.Value{{place(n)}}, sums: [][][]*kernel.Var{{{b.Var(kernel.F32, 0.0)}}}}
			b.For(laneID, s.k/s.unit, s.team, func(u kernel.Value) { t.unit(u, t.load(u, []int{0}), []int{0}, false) })
			put(n, t.sums[0][0][0].Get())
		})
		return
	}
	var units []kernel.Value
	for j := range s.units {
		u := b.Add(laneID, j*s.team)
		if !s.exact {
			u = b.Min(u, s.k/s.unit-1)
		}
		if s.part {
			u = b.Add(u, firstUnit)
		}
		units = append(units, u)
	}
	fetch := func(n kernel.Value) [][]kernel.Value {
		var words [][]kernel.Value
		for _, u := range units {
			words = append(words, s.fetch(b, m, place(n), u))
		}
		return words
	}
	if r.atOnce {
		r.memberAtOnce(s, r.batches(s), x, column, laneID, units[0], func(batch int) []kernel.Value { return fetch(b.Add(r.from, own, batch*rows))[0] },
			func(batch, sum kernel.Value) { r.parts.Store(b.Add(to, own, b.Mul(batch, rows)), sum) })
		return
	}
	var held [][][]*kernel.Var // the words of this batch of rows and the next ones
	for i := range s.ahead(r.wave) {
		held = append(held, lane.Vars(b, fetch(b.Add(r.from, own, i*rows))))
	}
	dot := r.dotFloats
	if s.fixed {
		dot = r.dotFixed
	}
	product := dot(s, x, column, laneID, units)
	b.For(r.from, r.end, rows, func(first kernel.Value) {
		n, words := b.Add(first, own), lane.GetVars(held[0])
		for i := range held[1:] {
			lane.SetVars(held[i], lane.GetVars(held[i+1]))
		}
		lane.SetVars(held[len(held)-1], fetch(b.Add(n, len(held)*rows))) // past the end the last row is loaded again
		put(n, product(words))
	})
}

// fetch loads the words of a unit of a row.
func (s downShape) fetch(b *kernel.Builder, m weight.Matrix, row, u kernel.Value) []kernel.Value {
	if s.fixed {
		return s.format.Bytes.Fetch(b, m, row, s.format.Bytes.Place(b, u))
	}
	return s.format.Fetch(b, m, row, u)
}

// dotFloats loads the lane's elements of x, and returns what its part of the product with the words of its units is.
func (r *downRun) dotFloats(s downShape, x *kernel.Buffer, column, laneID kernel.Value, units []kernel.Value) func(words [][]kernel.Value) kernel.Value {
	elements, totals := r.loadX(s, x, column, laneID, units)
	return func(words [][]kernel.Value) kernel.Value {
		b, sum := r.b, r.b.F32(0)
		for j, u := range units {
			for i, run := range s.format.Decode(b, words[j], u) {
				var part lane.Partial
				for v := range s.format.Run / 4 {
					codes := run.Codes(v)
					for e := range 4 {
						part.Product(b, b.Elem(codes, e), b.Elem(elements[j][i*s.format.Run/4+v], e))
					}
				}
				sum = into(part, b, s.format, sum, run, totals[j][i])
			}
		}
		return sum
	}
}

// loadX loads the lane's elements of x: by unit, as vec4, and sums of the runs if the
// format needs them. A lane without a unit gets zeros.
func (r *downRun) loadX(s downShape, x *kernel.Buffer, column, laneID kernel.Value, units []kernel.Value) (elements, totals [][]kernel.Value) {
	b, f := r.b, s.format
	for j, u := range units {
		begin := b.Add(column, b.Div(f.Begin(b, u), 4))
		var list, sums []kernel.Value
		for i := range f.Runs() {
			var sum lane.Partial
			for v := range f.Run / 4 {
				e := s.orZero(b, laneID, j, x.Load(lane.F32x4, b.Add(begin, f.At(i*f.Run/4+v)/4)))
				if f.Sums() {
					for c := range 4 {
						sum.Add(b, b.Elem(e, c))
					}
				}
				list = append(list, e)
			}
			sums = append(sums, sum.Sum)
		}
		elements, totals = append(elements, list), append(totals, sums)
	}
	return elements, totals
}

// sum returns the lane's element: the slots' products in rank order, then the terms, of which parts are added up
// before.
func (r *downRun) sum(terms []kernel.Value) kernel.Value {
	b := r.b
	part := func(member int) kernel.Value { return r.parts.Load(b.Add(b.Mul(r.tile, member), b.LocalID())) }
	y := b.Mul(r.weigh.Load(0), part(0))
	for s := 1; s < r.slots; s++ {
		y = b.FMA(r.weigh.Load(s), part(s), y)
	}
	member := r.slots
	for j, t := range r.terms {
		v := terms[j]
		if t.x != nil {
			v = part(member)
			for p := 1; p < t.parts; p++ {
				v = b.Add(v, part(member+p))
			}
			member += t.parts
			if t.gate != nil {
				v = lane.Logistic(b, v, terms[j])
			}
		}
		y = b.Add(y, v)
	}
	return y
}
