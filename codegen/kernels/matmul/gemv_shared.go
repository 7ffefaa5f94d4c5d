package matmul

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

const (
	// sharedColumns is the most columns that shared memory holds.
	sharedColumns = 4
	// sharedParts bounds the words of the sums there.
	sharedParts = 1536
	// wideLanes bounds the lanes of two teams beside which a unit has no other workgroup.
	wideLanes = 768
	// manyLanes is the lanes of teams of which each has fewer rows, in turns that wait for memory.
	manyLanes = 640
)

// rowsOfTeam is the rows that each team has if there are as many teams as run at once.
func (k gemv) rowsOfTeam(t *target.Target) int {
	return site.CeilDiv(k.tiles(1), t.Units*max(1, gemvLanes/(k.subgroups*k.wave)))
}

// inTeams returns the shapes of a kernel whose teams share x, best guess first; none if
// shared memory cannot hold x.
func (k gemv) inTeams(t *target.Target) []gemv {
	wide := k.wideTeams(t)
	if k.fixed == nil || 2*k.subgroups*k.wave > gemvLanes && !wide {
		return nil
	}
	fits := func() bool {
		return k.fits(k.columns) && k.columns*k.sharedBytes()+4*sharedParts+k.tables() <= t.Shared
	}
	for k.columns > 1 && (k.columns > sharedColumns || !fits() || k.rows%k.columns != 0) {
		k.columns--
	}
	if !fits() {
		return nil
	}
	k.resident = true
	perBatch := k.matrices() * k.columns
	most := max(1, min(4, gemvSums/perBatch))
	if !t.TakesFour(k.rowsOfTeam(t)) {
		most = min(2, most)
	}
	var list []gemv
	add := func(c gemv) {
		if c.tile > 0 && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	for _, each := range []int{2, 1} { // workgroups at once on each unit
		if each > 1 && wide {
			continue
		}
		for k.batch = most / each; k.batch > 0; k.batch /= 2 {
			c := k.team(t, each*t.Units, gemvLanes)
			add(c)
			if t.Thresholds.LoadsEarly && each == 1 && c.batch == most {
				c.tile -= c.batch * c.teams // some units have two workgroups, and teams a batch less
				add(c)
			}
		}
	}
	if k.rows > 1 {
		return list
	}
	if most = max(1, min(4, gemvSums/perBatch)); !t.TakesFour(2 * k.rowsOfTeam(t)) {
		most = min(2, most)
	}
	usual := len(list)
	for _, lanes := range []int{gemvLanes, manyLanes} {
		for k.batch = most; k.batch > 0; k.batch /= 2 {
			if c := k.team(t, t.Units, lanes); !slices.Contains(list[:usual], c) {
				c.timed = true
				add(c)
			}
		}
	}
	return list
}

// wideTeams reports whether two teams are more lanes than a unit should have, but not many more: half as many
// workgroups then round x.
func (k gemv) wideTeams(t *target.Target) bool {
	lanes := 2 * k.subgroups * k.wave
	return k.brief && lanes > gemvLanes && lanes <= min(wideLanes, t.Workgroup)
}

// team returns k with as many teams, of up to so many lanes, and rows of them, as that many workgroups take.
func (k gemv) team(t *target.Target, workgroups, lanes int) gemv {
	batches := site.CeilDiv(k.tiles(1), k.batch)
	workspace := sharedParts / (k.columns * k.parts() * k.batch) // for batches
	fit := min(lanes, t.Workgroup) / (k.subgroups * k.wave)
	if k.wideTeams(t) {
		fit = 2
	}
	k.teams = max(1, min(fit, site.CeilDiv(batches, workgroups), workspace))
	return k.spread(workgroups, batches, workspace)
}

// spread returns k with as many rows for each team as give that many workgroups; workspace is for batches.
func (k gemv) spread(workgroups, batches, workspace int) gemv {
	most := max(1, workspace/k.teams)
	each := site.CeilDiv(batches, workgroups*k.teams) // batches of a team
	rounds := site.CeilDiv(each, most)
	for each = site.CeilDiv(each, rounds); ; each++ { // a projection's last workgroup may have less to do
		k.tile = k.batch * k.teams * each
		if _, n := k.workgroups(); n <= rounds*workgroups || each >= most {
			return k
		}
	}
}

// sharedBytes is what a column takes: two bytes an element, scale and sum of each run, sums
// of its halves, the squares of a subgroup's elements, the norm's scale, those of gated heads.
func (k gemv) sharedBytes() int {
	bytes := 2*k.k + k.k/weight.FixedRun*8 + k.k/weight.FixedHalf*4 + k.squareGroups()*4 + 4
	if k.gated != nil {
		bytes += k.k / k.gated.dim * 4
	}
	return bytes
}

// sharedX is x in fixed point in shared memory, made once for all rows of the tile.
// Otherwise most instructions of a short matrix would round x, again for each row.
type sharedX struct {
	high, low *kernel.Array // four words a half run
	scales    *kernel.Array // scale and sum of a run
	halves    *kernel.Array // sum of a half, if a format has fine scales; else nil
}

func newSharedX(b *kernel.Builder, k gemv) *sharedX {
	halves, runs := k.k/weight.FixedHalf*k.columns, k.k/weight.FixedRun*k.columns
	x := &sharedX{high: b.Shared(lane.U32x4, halves), low: b.Shared(lane.U32x4, halves), scales: b.Shared(lane.F32x2, runs)}
	if slices.ContainsFunc(k.projects, func(p *projection) bool {
		return p.fixed && (p.matrices[0].format.Bytes.Fine || p.matrices[0].format.Bytes.Super)
	}) {
		x.halves = b.Shared(kernel.F32, halves)
	}
	return x
}

// makeShared rounds column c, eight elements at a time and a lane.
func (r *gemvRun) makeShared(c int) {
	b, x := r.b, r.sharedX
	group := weight.ScaleElements(r.k)
	lanes := min(r.wave, group/8) // that share a scale
	parts := group / (8 * lanes)  // of a lane
	count := r.k / (8 * parts)
	end, perGroup := count, r.wave/2 // lanes that share a sum of squares
	if r.gain != nil {
		end = site.CeilDiv(count, perGroup) * perGroup // the last group is filled up with zeros
	}
	round := func(at kernel.Value, ahead *eightLoads) {
		begin := at // the number of the lane's first eight
		if parts > 1 {
			begin = b.Add(b.Mul(b.Div(at, lanes), group/8), b.Mod(at, lanes))
		}
		var list [][]kernel.Value
		for p := range parts {
			i := b.Add(begin, p*lanes)
			var v, squares []kernel.Value
			for j := range 2 {
				from := i
				if end > count {
					from = b.Min(i, count-1)
				}
				e := r.gate(r.eightOfX(c, from, j, ahead), from, j, ahead)
				if end > count {
					e = b.Select(b.Lt(at, count), e, b.Splat(b.F32(0), 4))
				}
				if r.gain != nil {
					squares = append(squares, squareOf(b, e))
					e = b.Mul(e, r.eightOfGain(from, j, ahead))
				}
				v = append(v, e)
			}
			if r.gain != nil {
				sum := lane.Sum(b, b.Add(squares[0], squares[1]), 1, perGroup)
				b.If(b.Eq(b.Mod(i, perGroup), 0), func() { r.squares.Store(b.Add(b.Div(i, perGroup), c*r.squareGroups()), sum) })
			}
			list = append(list, v)
		}
		eighths := weight.EighthsFixed(b, list, lanes, weight.FixedLanes{Wave: r.wave, Brief: r.brief})
		if end == count {
			x.store(b, eighths, begin, lanes, c*r.k)
			return
		}
		b.If(b.Lt(at, count), func() { x.store(b, eighths, begin, lanes, c*r.k) })
	}
	switch turns := site.CeilDiv(count, r.lanes()); {
	case !r.brief || parts > 1 || end > count || turns > turnsAhead || turns > 1 && count%r.lanes() > 0:
		r.scaleHeads()
		b.For(b.LocalID(), end, r.lanes(), func(at kernel.Value) { round(at, nil) })
	case count < r.lanes():
		// All lanes load, so that all wait here for the dispatch before, and lanes that loaded nothing need no code for
		// it.
		ahead := r.loadEights(c, b.Min(b.LocalID(), count-1))[0]
		r.scaleHeads()
		some := b.Lt(b.LocalID(), count)
		if count%r.wave == 0 { // which all lanes of a subgroup agree on
			some = b.Lt(b.SubgroupID(), count/r.wave)
		}
		b.If(some, func() { round(b.LocalID(), ahead) })
	default:
		var list []kernel.Value
		for turn := range turns {
			list = append(list, b.Add(b.LocalID(), turn*r.lanes()))
		}
		aheads := r.loadEights(c, list...)
		r.scaleHeads()
		for turn, ahead := range aheads {
			round(list[turn], ahead)
		}
	}
}

// turnsAhead bounds the eights of a lane that are all loaded before the first is rounded.
const turnsAhead = 2

// eightLoads are the two vec4 of x of a lane's eight elements, of the norm's weights if there is a norm, and of what
// gates them.
type eightLoads struct{ x, gain, z [2]kernel.Value }

// loadEights loads the eights of column c with these numbers. The norm's weights come first, since they need not wait
// for the dispatch before.
func (r *gemvRun) loadEights(c int, numbers ...kernel.Value) []*eightLoads {
	list := make([]*eightLoads, len(numbers))
	for i, n := range numbers {
		list[i] = &eightLoads{}
		for j := range 2 {
			switch {
			case r.gain != nil:
				list[i].gain[j] = r.eightOfGain(n, j, nil)
			case r.gated != nil:
				list[i].gain[j] = r.gainOfHead(n, j)
			}
		}
	}
	for i, n := range numbers {
		for j := range 2 {
			list[i].x[j] = r.eightOfX(c, n, j, nil)
			if r.gated != nil {
				list[i].z[j] = r.gateOf(n, j)
			}
		}
	}
	return list
}

// eightOfX returns the j-th vec4 of the eight elements of x with number n of column c, and loads them if they were not
// loaded ahead.
func (r *gemvRun) eightOfX(c int, n kernel.Value, j int, ahead *eightLoads) kernel.Value {
	if ahead != nil {
		return ahead.x[j]
	}
	return r.a.x.Load(lane.F32x4, r.b.Add(r.starts[c], r.b.Mul(n, 2), j))
}

// eightOfGain is eightOfX for the norm's weights.
func (r *gemvRun) eightOfGain(n kernel.Value, j int, ahead *eightLoads) kernel.Value {
	if ahead != nil {
		return ahead.gain[j]
	}
	return r.a.gain.Load(lane.F32x4, r.b.Add(r.b.Mul(n, 2), j))
}

// store keeps what a lane has rounded: the eight elements with the number begin of the column from the given element
// on, and those a number of lanes apart.
func (x *sharedX) store(b *kernel.Builder, eighths []weight.FixedEighth, begin kernel.Value, lanes, from int) {
	for p, q := range eighths {
		i := b.Add(begin, p*lanes)
		half := b.Add(b.Div(i, 2), from/weight.FixedHalf)
		for j := range q.High {
			at := b.Add(b.Mul(b.And(i, 1), 2), j)
			x.high.StoreElem(half, at, q.High[j])
			x.low.StoreElem(half, at, q.Low[j])
		}
		b.If(b.Eq(b.And(i, 3), 0), func() { x.scales.Store(b.Shr(half, 1), b.Vec(q.Scale, q.Sum)) })
		if x.halves != nil {
			b.If(b.Eq(b.And(i, 1), 0), func() { x.halves.Store(half, q.HalfSum) })
		}
	}
}

// takeShared gives the lane its units.
func (r *gemvRun) takeShared(k *residentX) {
	b, x, f := r.b, r.sharedX, r.p.matrices[0].Format.Bytes
	for c := range r.columns {
		var units []weight.FixedUnit
		for j := range k.units {
			var unit weight.FixedUnit
			u := k.places[j]
			for h := range 2 {
				scaleOf := func(scale, half kernel.Value) kernel.Value { return r.orZero(r.normed(scale, half, c), j) }
				half := b.Add(u.Half, c*r.k/weight.FixedHalf+h*u.Stride)
				unit.High[h], unit.Low[h] = lane.Elements(b, x.high.Load(half)), lane.Elements(b, x.low.Load(half))
				switch {
				case f.Super:
					unit.Sums[h] = b.Convert(kernel.I32, r.orZero(x.halves.Load(half), j))
					if h == 0 {
						unit.Scales = []kernel.Value{scaleOf(b.Elem(x.scales.Load(b.Shr(half, 1)), 0), b.Add(u.Half, h*u.Stride))}
					}
				case f.Fine:
					scale := scaleOf(b.Elem(x.scales.Load(b.Shr(half, 1)), 0), b.Add(u.Half, h*u.Stride))
					unit.Scales, unit.Totals = append(unit.Scales, scale), append(unit.Totals, f.Total(b, scale, r.orZero(x.halves.Load(half), j)))
				case h == 0:
					run := x.scales.Load(b.Add(u.Run, c*r.k/weight.FixedRun))
					scale := scaleOf(b.Elem(run, 0), b.Mul(u.Run, weight.FixedRun/weight.FixedHalf))
					unit.Scales, unit.Totals = []kernel.Value{scale}, []kernel.Value{f.Total(b, scale, r.orZero(b.Elem(run, 1), j))}
				}
			}
			units = append(units, unit)
		}
		k.fixed = append(k.fixed, units)
	}
}

// orZero returns v, or 0 where the lane has no j-th unit.
func (r *gemvRun) orZero(v kernel.Value, j int) kernel.Value {
	if r.exact(r.p.spec) {
		return v
	}
	return r.b.Select(r.real(j), v, 0)
}

// A norm of runs has a factor for each run. A run is a whole number of the elements that share a scale of x,
// so the scales take the factor. That needs the squares when x is read, so only teams, which share both,
// have such a norm.

// NormsRuns reports whether projections of few rows can take in the norm of runs of a row that linear reads.
func NormsRuns(t *target.Target, norm, linear *ir.Op, rows int) bool {
	if !isWeightedRuns(norm) || t.FewKernels || !t.Dot {
		return false
	}
	k, w := int(norm.Result.Type.Last()), linear.Args[1]
	p := &projection{matrices: []*weights{{value: w, format: weight.FormatOf(t, w.Type.DType, k)}}, width: int(linear.Result.Type.Last()), fixed: true}
	g := &linearGroup{x: norm.Args[0], gain: norm.Args[1], runs: k / norm.Attrs.Int("group"), fixed: norm.Result, bits: 12, k: k, rows: rows, projects: []*projection{p}}
	return p.matrices[0].format != nil && p.matrices[0].format.Bytes != nil && g.normedRuns(t)
}

// normedRuns reports whether there are teams, and runs are what is added up and what has a scale, several times.
func (g *linearGroup) normedRuns(t *target.Target) bool {
	run := g.k / g.runs
	if g.fixed == nil || !weight.FitsDot(g.k) || run%weight.ScaleElements(g.k) != 0 || run%(4*t.Wave) != 0 {
		return false
	}
	if !g.allFixed() {
		return false
	}
	k := gemv{linearGroup: g, wave: t.Wave, columns: min(g.rows, target.DecodeRows), most: residentElements}
	k.share(t)
	return len(k.inTeams(t)) > 0
}

// normed returns the scale of x, of column c, with the factor of the run that a half belongs to.
func (r *gemvRun) normed(scale, half kernel.Value, c int) kernel.Value {
	if r.runs == 0 {
		return scale
	}
	b := r.b
	run := b.Div(half, r.k/r.runs/weight.FixedHalf)
	squares := r.squareGroups() / r.runs
	return b.Mul(scale, r.a.rstd(b, r.total(r.squares, b.Add(run, c*r.runs), squares)))
}
