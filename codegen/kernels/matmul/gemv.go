package matmul

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// gemv computes a linear group for few rows of x, which are called columns here: a row is
// one of the weights. The lanes of a workgroup share
// out the units of a row and take the rows of the workgroup's tile one batch after
// the other; the next batch is loaded before the present one is used. A lane keeps
// its elements of x, if they are few, or else loads them for every batch.
//
// Each lane sums over its units, then the lanes of a subgroup add up, neighbours first,
// then the subgroups in turn: with as many subgroups a row, entries of every width give the
// same bits. For a group in fixed point all shapes give the same bits: a row is chunks of
// 32 elements for each lane of a subgroup, which are added in turn, whichever subgroups
// have them.
type gemv struct {
	*linearGroup
	wave, subgroups int
	batch           int // rows of the weights, for each matrix of a projection
	tile            int // a multiple of batch
	resident        bool
	columns         int // of a workgroup
	// teams of subgroups take rows of the tile in turn, if they share x in fixed point;
	// else 0: all subgroups take a row together.
	teams int
	most  int // elements of x that a lane may keep
	// timed: see site.Candidate.
	timed bool
	// early: no lane has more than one result, and loads what is added to it before the products.
	early bool
	// ahead: each lane loads its first weights before x, for which it may have to wait.
	ahead bool
	brief bool // target.Target.Brief
	// aside: it shares a dispatch with another kernel, and waits for the dispatch before at the latest in front of its
	// stores.
	aside bool
	// barrier: a barrier keeps the driver's compiler from loading x before the first weights.
	barrier bool
}

func GemvCandidates(s *site.Site, g *Group) []site.Candidate {
	if g.runs > 0 && !g.normedRuns(s.Target) || g.gated != nil && !g.allFixed() || g.ringed() && !g.wholeStep(s.Target) {
		return nil
	}
	var list []site.Candidate
	shapes := gemvShapes(g, s.Target)
	if o := g.inChunks(s); o != nil {
		shapes = append(shapes, gemvChunks(o, s.Target)...)
	}
	for _, k := range shapes {
		if (g.runs > 0 || g.gated != nil) && k.teams == 0 || g.ringed() && k.columns != k.rows {
			continue
		}
		list = append(list, k.candidate())
	}
	return list
}

// inChunks returns a group of several rows of which no weights are multiplied as bytes as one in fixed point, so that
// its sums are added in that order: in a step of one row the same projections share a group with others in fixed point.
// It is nil where they do not.
func (g *linearGroup) inChunks(s *site.Site) *linearGroup {
	if !s.Target.Fragments || !s.Target.Dot || g.fixed != nil || g.rows <= 2 || g.last || g.runs > 0 || g.gated != nil || g.ringed() || !weight.FitsDot(g.k) {
		return nil
	}
	for _, p := range g.projects {
		if len(p.matrices) > 1 || p.matrices[0].format.Bytes != nil || !floatWithFixed(s.Program, p.matrices[0].value) {
			return nil
		}
	}
	o := *g
	o.fixed, o.bits = new(ir.Value), 12
	return &o
}

// floatWithFixed reports whether a step of one row multiplies with a weight in a group that also has an x in fixed
// point.
func floatWithFixed(p *ir.Program, weight *ir.Value) bool {
	for _, f := range p.Funcs {
		for _, g := range f.Groups {
			fixed := slices.ContainsFunc(g.Ops, func(op *ir.Op) bool { return op.Kind.Name == "fixed12" })
			if f.Rows == 1 && fixed && slices.Contains(g.Inputs(), weight) {
				return true
			}
		}
	}
	return false
}

// gemvChunks returns the shapes of such a group. Of few columns a workgroup has one row, whose elements all lanes load
// at once, since few workgroups have all of the work. Of many it has more of both: a column that is loaded for each row
// comes from the L2 cache as often.
func gemvChunks(g *linearGroup, t *target.Target) (list []gemv) {
	for _, k := range gemvShapes(g, t) {
		if wide := k; len(list) == 0 && g.rows > target.DecodeRows && g.rows%target.DecodeRows == 0 {
			wide.batch, wide.tile, wide.teams = chunkRows, chunkRows, 0
			wide.finish(t)
			list = append(list, wide)
		}
		k.batch, k.tile = 1, 1
		k.finish(t)
		if k.teams == 0 && !slices.ContainsFunc(list, func(o gemv) bool { return o.subgroups == k.subgroups && o.columns == k.columns }) {
			list = append(list, k)
		}
	}
	return list
}

// chunkRows is the rows that a lane multiplies with all of many columns.
const chunkRows = 4

// chunked reports whether a group in fixed point has no projection in fixed point: see inChunks.
func (k gemv) chunked() bool {
	return k.fixed != nil && !slices.ContainsFunc(k.projects, func(p *projection) bool { return p.fixed })
}

const (
	// gemvElements is the elements of a row that a lane should have.
	gemvElements = 32
	// gemvSubgroups bounds the subgroups of a workgroup.
	gemvSubgroups = 16
	// residentElements is the most elements of x that a lane keeps. manyElements is the same for shapes of more
	// columns, for lanes that have many registers: see sized.
	residentElements = 96
	manyElements     = 160
	// gemvLanes is the lanes of a compute unit that gemv wants at work: with as
	// many registers as it takes, no more fit.
	gemvLanes = 512
	// gemvRows bounds the rows of a workgroup, so that the last ones to end do not
	// end late.
	gemvRows = 128
	// gemvParts bounds the words of shared memory.
	gemvParts = 4096
	// loopColumns is the least number of columns for which the runs of a unit are in a loop.
	loopColumns = 3
	// longSum is the least number of terms for which finish has a loop; processors have that many.
	longSum = 48
	// gemvSums bounds the sums of a lane.
	gemvSums = 48
	// tiledLanes is the lanes of a unit that run at once where each has many columns. Of more workgroups each takes
	// more rows, so that all do.
	tiledLanes = 384
)

// gemvShapes returns shapes, best guess first: with the subgroups that share chooses and
// with others.
func gemvShapes(g *linearGroup, t *target.Target) []gemv {
	k := gemv{linearGroup: g, wave: t.Wave, columns: min(g.rows, target.DecodeRows), most: residentElements, brief: t.Brief}
	k.share(t)
	list := k.shapes(t)
	if own := k.sized(t); g.fixed != nil && len(own) > 0 {
		wide := k
		wide.most = manyElements
		for _, w := range wide.sized(t) {
			// Weights are taken apart once for more columns. Those that spill are refused.
			if w.columns > own[0].columns && w.batch <= 2 {
				list = append(list, w)
			}
		}
	}
	for _, n := range k.otherSubgroups(t) {
		k.subgroups = n
		other := k.shapes(t)
		list = append(list, other[:min(1, len(other))]...) // its best guess
		if g.rows == 1 && len(other) > 1 {
			other[1].timed = true
			list = append(list, other[1]) // with other rows at a time
		}
	}
	for i := range list {
		list[i].finish(t)
	}
	return list
}

// finish sets what follows from the rest of a shape.
func (k *gemv) finish(t *target.Target) {
	k.ahead = t.Thresholds.LoadsEarly && k.loadsAhead()
	k.early = k.resident && k.adds() && k.tile*k.columns <= k.lanes()
	k.barrier = k.fixed != nil && k.teams == 0 && k.subgroups <= t.Thresholds.BarrierSubgroups
}

// shapes returns the shapes with k's subgroups, best guess first.
func (k gemv) shapes(t *target.Target) []gemv {
	own, teams := k.sized(t), k.inTeams(t)
	if !t.SharesX(k.rowsOfTeam(t)) || k.wideTeams(t) {
		return append(own, teams...)
	}
	return append(teams, own...)
}

// sized returns the shapes whose subgroups take a row together: with other rows at a time,
// then with other tiles.
func (k gemv) sized(t *target.Target) []gemv {
	matrices := k.matrices()
	k.resident = k.fits(k.columns)
	if k.fixed != nil {
		for k.columns > 1 && (!k.fits(k.columns) || k.rows%k.columns != 0) {
			k.columns--
		}
		if k.resident = k.fits(k.columns); !k.resident {
			return nil
		}
	}
	most := max(1, min(4, gemvSums/(k.columns*matrices)))
	if t.Thresholds.LoadsEarly && k.tiled() && k.fixed == nil && matrices == 1 && k.tiles(most)*(k.rows/k.columns)*k.subgroups*t.Wave > t.Units*tiledLanes {
		most *= 2
	}
	k.batch = most
	tile := k.batch
	if k.resident {
		// As many workgroups as run at once, or a multiple of that.
		workgroups := t.Units * site.CeilDiv(gemvLanes, k.subgroups*t.Wave)
		rounds := site.CeilDiv(k.tiles(1), workgroups*gemvRows)
		tile = site.CeilDiv(k.tiles(1), workgroups*rounds)
		if tile < gemvRows/2 {
			// Less code: what a stage executes has to come to the compute units first.
			k.batch = min(k.batch, 2)
		}
	}
	for k.tiles(tile) > site.MaxGrid {
		tile *= 2
	}
	var list []gemv
	add := func(batch, tile int) {
		c := k
		c.batch = batch
		c.tile = site.CeilDiv(min(tile, gemvParts/(c.columns*c.parts())), batch) * batch
		same := func(o gemv) bool { return o.batch == c.batch && o.tile == c.tile }
		if c.tiles(c.tile) <= site.MaxGrid && !slices.ContainsFunc(list, same) {
			list = append(list, c)
		}
	}
	add(k.batch, tile)
	for batch := most; batch > 0; batch /= 2 {
		add(batch, tile)
	}
	if k.resident {
		add(k.batch, (tile+1)/2)
		add(k.batch, 2*tile)
		if k.columns > 1 { // which all have to be loaded before the first row
			add(k.batch, 4*tile)
		}
	}
	return list
}

// lanes is the number of lanes of a workgroup.
func (k gemv) lanes() int { return k.wave * k.subgroups * max(1, k.teams) }

// matrices is the most of a projection.
func (k gemv) matrices() int {
	n := 1
	for _, p := range k.projects {
		n = max(n, len(p.matrices))
	}
	return n
}

// otherSubgroups returns other numbers of subgroups than k's that leave no lane without a unit. For a group in fixed
// point it adds those that leave few without one.
func (k gemv) otherSubgroups(t *target.Target) []int {
	var list []int
	add := func(n int, fills bool) {
		if fills && n != k.subgroups && n <= t.Workgroup/k.wave && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	for _, n := range []int{k.subgroups / 2, k.subgroups / 3, 2 * k.subgroups} {
		unit := 0
		for _, p := range k.projects {
			unit = max(unit, p.unit())
		}
		add(n, n > 0 && n*k.wave*unit <= k.k && k.k%(n*k.wave*unit) == 0)
	}
	if k.fixed == nil || t.FewShapes() {
		return list
	}
	chunk := gemvElements * k.wave
	chunks := site.CeilDiv(k.k, chunk)
	for turns := 1; turns <= fewTurns; turns++ {
		n := site.CeilDiv(chunks, turns)
		add(n, 16*k.k >= 15*n*turns*chunk)
	}
	return list
}

// fewTurns bounds the units of a row that a lane has.
const fewTurns = 3

// fixedOrder names the order of the sums of a group in fixed point.
func fixedOrder(wave int) string { return fmt.Sprintf("fixed w%d", wave) }

// order names the order of the sums: it follows from the lanes that share a row.
func (k gemv) order() string {
	if k.fixed != nil {
		return fixedOrder(k.wave)
	}
	return fmt.Sprintf("gemv %dx%d", k.subgroups, k.wave)
}

// shape names the rest.
func (k gemv) shape() string {
	s := fmt.Sprintf("%d of %d rows", k.batch, k.tile)
	if k.fixed != nil {
		s = fmt.Sprintf("%dx%d, ", k.subgroups, k.wave) + s
	}
	switch {
	case k.teams > 0:
		s += fmt.Sprintf(", %d teams", k.teams)
	case k.most > residentElements:
		s += fmt.Sprintf(", %d columns", k.columns)
	}
	return s
}

// share chooses how many subgroups share a row. A row that is too long for one turn of the most gets the fewest that
// need no more turns: 16 subgroups would take two turns for 17 chunks, as 9 do.
func (k *gemv) share(t *target.Target) {
	most, chunks := max(1, min(gemvSubgroups, t.Workgroup/t.Wave)), site.CeilDiv(k.k, gemvElements*t.Wave)
	k.subgroups = site.CeilDiv(chunks, site.CeilDiv(chunks, most))
}

// inFixed returns the group with projections marked whose matrices can be multiplied with an x in fixed point, and the
// ops of these.
func (g *linearGroup) inFixed(s *site.Site) (*linearGroup, []*ir.Op) {
	fixed := map[*ir.Value]bool{} // weights
	marked := *g
	marked.projects = nil
	for _, of := range g.projects {
		p := new(projection)
		*p = *of
		marked.projects = append(marked.projects, p)
		p.fixed = len(p.passes()) == 1 && p.matrices[0].format.Bytes != nil
		for _, w := range p.matrices {
			fixed[w.value] = p.fixed
		}
	}
	var ops []*ir.Op
	for _, op := range s.Group.Ops {
		if (op.Kind.Name == "linear" || op.Kind.Name == "expert_linear") && fixed[op.Args[1]] {
			ops = append(ops, op)
		}
	}
	return &marked, ops
}

// fits reports whether a lane can keep its elements of that many columns of x. In
// fixed point they take 5 registers where they take 8 in f32.
func (k gemv) fits(columns int) bool {
	for _, p := range k.projects {
		if len(p.passes()) > 1 || k.kept(p, columns) > k.most {
			return false
		}
	}
	return true
}

// kept is the elements of so many columns that a lane keeps for p, counted as registers of f32.
func (k gemv) kept(p *projection, columns int) int {
	n := k.units(p) * p.unit() * columns
	if p.fixed {
		n = n * 5 / 8
	}
	return n
}

// unit is the elements of a unit of the projection's first matrix.
func (p *projection) unit() int {
	if p.fixed {
		return weight.DotUnitElements
	}
	return p.matrices[0].format.Unit
}

// chunks returns how many sums of a row, of each matrix of p, are left for finish.
func (k gemv) chunks(p *projection) int {
	if k.fixed != nil {
		return k.subgroups * k.units(p) / k.together(p)
	}
	return k.subgroups
}

// parts is the most sums that all matrices of a projection leave for finish, for a row and a column.
func (k gemv) parts() int {
	n := 0
	for _, p := range k.projects {
		n = max(n, len(p.matrices)*k.chunks(p))
	}
	return n
}

// units returns how many units of a row of p a lane has, at most.
func (k gemv) units(p *projection) int {
	n := k.together(p)
	return site.CeilDiv(k.k, p.unit()*n*k.subgroups*k.wave) * n
}

// together is how many units, a subgroup's lanes apart, a lane adds up: of a group in fixed
// point those of a chunk, else all of them.
func (k gemv) together(p *projection) int {
	if k.fixed == nil {
		return 1
	}
	return weight.DotUnitElements / p.unit()
}

// exact reports whether all lanes have that many units.
func (k gemv) exact(p *projection) bool {
	return k.units(p)*p.unit()*k.subgroups*k.wave == k.k
}

// tiled reports whether other workgroups have the rest of the columns.
func (k gemv) tiled() bool { return k.columns < k.rows }

// name is the key of the module.
func (k gemv) name() string {
	words := []string{"gemv", k.key(), fmt.Sprintf("cols=%d r=%d w=%dx%d", k.columns, k.batch, k.subgroups, k.wave)}
	if k.teams > 0 {
		words[2] += fmt.Sprintf("x%d", k.teams)
	}
	if k.chunked() {
		words[2] += " chunks"
	}
	if k.early {
		words = append(words, "early")
	}
	if k.barrier {
		words = append(words, "barrier")
	}
	if k.fixed == nil && k.tiled() {
		words = append(words, "tiled")
	}
	if k.ahead {
		words = append(words, fmt.Sprintf("ahead %d", k.units(k.projects[0])))
	}
	if k.resident || k.chunked() {
		units := "x"
		for _, p := range k.projects {
			units += fmt.Sprintf(" %d", k.units(p))
			if !k.exact(p) {
				units += fmt.Sprint("-", k.k)
			}
		}
		words = append(words, units)
	}
	return strings.Join(words, " ")
}

// inFloat reports whether p reads x as it is, beside others in fixed point.
func (k gemv) inFloat(p *projection) bool { return k.fixed != nil && !p.fixed }

// floatRows bounds the rows of a workgroup for such a projection, whose rows have more bytes
// and are not loaded ahead.
func (k gemv) floatRows() int { return max(2*k.teams, 4) }

// tileOf returns the rows of p that a workgroup has.
func (k gemv) tileOf(p *projection) int {
	if k.inFloat(p) {
		return min(k.tile, k.floatRows())
	}
	return k.tile
}

// outputsOf is tileOf of the i-th projection.
func (k gemv) outputsOf(i int) int { return k.tileOf(k.projects[i]) }

// workgroups returns the first of each projection, and how many there are.
func (k gemv) workgroups() (firsts []int, n int) { return k.workgroupsBy(k.outputsOf) }

func (k gemv) candidate() site.Candidate {
	firsts, workgroups := k.workgroups()
	kept := 0
	for _, p := range k.projects {
		if k.resident && k.teams == 0 {
			kept = max(kept, k.kept(p, k.columns))
		}
	}
	c := site.Candidate{
		Kernel: k.name(),
		Order:  k.order(),
		Shape:  k.shape(),
		Lanes:  k.lanes(),
		Rows:   k.rows,
		Kept:   kept,
		Timed:  k.timed,
		Early:  k.chunked(), EarlyOf: "x",
		Grid:  [3]int{workgroups, k.rows / k.columns, 1},
		Cover: k.covers(k.rows, k.columns, 1, k.outputsOf),
	}
	if k.ringed() {
		ring := c.Cover[0]
		ring.Arg, c.Sequences = "ring", ir.ManySequences
		c.Cover = append(c.Cover, ring)
	}
	return site.Implement(c, "gemv", func(s *site.Signature) func(b *kernel.Builder) { return k.kernel(s, firsts) })
}

func (k gemv) kernel(s *site.Signature, firsts []int) func(b *kernel.Builder) {
	a, rows := k.declare(s, k.last, firsts), k.declareTile(s)
	return func(b *kernel.Builder) {
		r := k.run(b, a, rows)
		if k.fixed != nil || k.tiled() {
			r.column = b.Mul(b.WorkgroupID(1), k.columns)
		} else {
			r.column = b.U32(0)
		}
		for c := range k.columns {
			r.starts = append(r.starts, b.Mul(b.Div(r.a.k, 4), b.Add(r.column, c)))
		}
		if k.last {
			r.starts[0] = b.Mul(b.Sub(r.a.n.Load(kernel.U32, 0), 1), b.Div(r.a.k, 4))
		}
		r.a.join(b, b.WorkgroupID(0))
		each := func(do func()) {
			r.a.each(b, b.WorkgroupID(0), func(p *projectArgs, at kernel.Value) {
				r.p = p
				tile := r.tile
				if k.inFloat(p.spec) {
					tile = b.Min(tile, k.floatRows())
				}
				r.from = b.Mul(at, tile)
				r.end = b.Min(b.Add(r.from, tile), p.width)
				do()
			})
		}
		switch {
		case k.fixed != nil:
			r.keepFixed(each)
		case k.resident:
			each(r.keep)
		default:
			each(r.stream)
		}
		if k.aside {
			b.Await() // before branches
		}
		b.PrefetchNext()
		b.Barrier() // outside of ifs, as cases must have it
		each(r.finish)
	}
}
