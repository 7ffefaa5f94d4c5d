package matmul

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// rowsKernel computes a projection on a processor: a lane has a row of the weights, whose words
// lie interleaved (layout.Rows16), and x is the same in all lanes. Nothing is added up between lanes, but for types of
// floats (rows_along.go).
// A workgroup has 16 rows of the weights, and some rows of x, which are called columns here. It
// rounds x to fixed point in shared memory, once for all workgroups of a line of the grid. Then it takes the
// columns a few at a time, image by image of the weights, so that entries of every width add in one order. If x
// has 8 bits, and so many columns, it takes all of them panel by panel (panelRun).
//
// Experts' projections are the same kernel. At few rows a line of the grid has an expert of a row, at many a tile of
// rows that chose the same.
//
// The code is that of a type of weights, for one matrix or the two of a GLU. All else is constants that stay open:
// sizes, and which of norm, bias, activation and residuals there are. So few kernels serve all models.
type rowsKernel struct {
	*linearGroup
	p       *projection // the group's
	experts *routing    // of it; nil if there are none
	step    site.Extent
	columns int // at a time
	tile    int // of a workgroup, a multiple of columns

	unsigned bool // see Target.UnsignedDot
}

const (
	// rowsColumns is the columns at a time: their sums stay in registers.
	rowsColumns = 8
	// rowsAdds is the most residuals, which every kernel can add.
	rowsAdds = 2
	// laneRows is the rows of the weights of a workgroup: one a lane.
	laneRows = 16
)

// inRowsAlike reports whether the matrices of the group's projection are alike, and lie in whole rows of lanes if they
// are interleaved. Weights that are not are read row by row, with x as it is.
func (g *linearGroup) inRowsAlike() bool {
	p := g.projects[0]
	first := p.matrices[0]
	for _, w := range p.matrices {
		if w.value.Type.DType != first.value.Type.DType || (w.bias == nil) != (first.bias == nil) || w.rows != first.rows || w.from%laneRows != 0 && w.rows != nil {
			return false
		}
	}
	interleaved := first.rows != nil
	return (!interleaved || g.k%64 == 0) && p.fixed == (interleaved && g.fixed != nil)
}

// RowsWants asks for x in fixed point: 12 bits for few rows, 8 for many, which are 12 where the target is to be exact.
func RowsWants(s *site.Site, g *Group) []site.Rewrite {
	if g.fixed != nil || !g.inRowsAlike() || !g.inRows() {
		return nil
	}
	var ops []*ir.Op
	for _, op := range s.Group.Ops {
		if op.Kind.Name == "linear" || op.Kind.Name == "expert_linear" {
			ops = append(ops, op)
		}
	}
	switch {
	case g.exact || s.Target.Exact:
		return site.Fixed("fixed12", ops)
	case s.Target.Tiles:
		return site.Fixed("bfloat16", ops)
	}
	return site.Fixed("fixed8", ops)
}

func RowsCandidates(s *site.Site, g *Group) []site.Candidate {
	if !g.inRowsAlike() || g.inRows() && g.fixed == nil {
		return nil
	}
	k := rowsKernel{linearGroup: g, p: g.projects[0], experts: g.routing}
	most := 1 // columns that there are
	if k.experts != nil {
		k.step = k.experts.extent
		if k.sorted() {
			most = max(rowsColumns, k.lines()/k.count())
		}
	} else {
		var ok bool
		if k.step, ok = site.ExtentOf(s, k.p.result); !ok {
			return nil
		}
		most = k.step.Max
	}
	k.columns, k.unsigned = min(rowsColumns, most), s.Target.UnsignedDot
	switch {
	case k.tiles():
		k.columns = tileCols
	case !k.p.fixed && k.columns > 1: // of types that few models have, or few of their weights
		k.columns = rowsColumns / 2
	case k.bits == 8 && !k.unsigned: // registers are few
		k.columns = rowsColumns / 2
	}
	if !k.divide(s.Target, most) {
		return nil
	}
	return []site.Candidate{k.candidate()}
}

// tiles reports whether it multiplies tiles of bf16.
func (k rowsKernel) tiles() bool { return k.fixed != nil && k.bits == bf16Bits }

// outputs is the rows of each matrix that a workgroup has.
func (k rowsKernel) outputs() int {
	if k.tiles() && len(k.p.matrices) == 1 {
		return tileStrips * laneRows
	}
	return laneRows
}

// sorted reports whether columns are rows sorted by expert.
func (k rowsKernel) sorted() bool { return k.experts != nil && k.experts.order != nil }

// lines is the rows of the result: one for each expert of a row.
func (k rowsKernel) lines() int { return k.step.Max * max(1, k.p.slots) }

// count is the number of experts.
func (k rowsKernel) count() int { return int(k.p.matrices[0].value.Type.Shape[0]) }

// divide chooses the tile: rounding x costs as much as two times 16 rows of the weights, once for the workgroups that a
// thread takes at a time, and weights are taken apart again for the columns of every tile, which costs as much as 6
// columns.
func (k *rowsKernel) divide(t *target.Target, most int) bool {
	k.tile = k.columns
	if k.tiles() {
		if k.sorted() {
			most *= 2 // experts of as many rows as all of them have are rare
		}
		for k.tile < min(most, tileMost) && k.bytes(k.tile+tileCols) <= tileShared {
			k.tile += tileCols
		}
		return k.bytes(k.tile) <= t.Shared
	}
	if k.bits == 8 {
		k.tile = rowsColumns
	}
	for 2*k.tile <= 64 && k.tile < most && k.bytes(2*k.tile) <= t.Shared {
		k.tile *= 2
	}
	return k.bytes(k.tile) <= t.Shared
}

// group is the elements of x that share a scale.
func (k rowsKernel) group() int {
	if k.bits == 12 {
		return weight.ScaleElements(k.k)
	}
	return weight.FixedRun
}

// bytes is the shared memory of so many columns.
func (k rowsKernel) bytes(columns int) int {
	words := 3
	switch {
	case k.bits == 8:
		return k.panelBytes(columns)
	case k.tiles():
		return k.tileBytes(columns)
	case k.fixed != nil:
		words += k.k/2 + k.k/16 + k.k/k.group()
	}
	return 4 * (3 + words*columns + len(k.p.matrices)*k.columns*laneRows)
}

func (k rowsKernel) key() string {
	name, matrices := k.p.matrices[0].format.Name, ""
	if f := k.p.matrices[0].rows; f != nil {
		name = f.Name + fixedNames[k.bits]
		if k.bits == 12 && k.group() != weight.SuperElements {
			name += " fine"
		}
	}
	if len(k.p.matrices) > 1 {
		matrices = " glu"
	}
	if k.runsAlong() {
		name += " along"
	}
	adds := ""
	if n := k.adds(); n > rowsAdds {
		adds = fmt.Sprint(" adds=", n)
	}
	return fmt.Sprintf("rows %s%s cols=%d%s", name, matrices, k.columns, adds)
}

// adds is the most residuals that the kernel can add.
func (k rowsKernel) adds() int { return max(rowsAdds, len(k.p.residuals)) }

func (k rowsKernel) candidate() site.Candidate {
	c := site.Candidate{
		Kernel: k.key(),
		Order:  orders[k.bits],
		Shape:  fmt.Sprintf("%d of %d", k.columns, k.tile),
		Grid:   [3]int{site.CeilDiv(k.p.width, k.outputs()), site.CeilDiv(k.lines(), k.tile), 1},
		Cover: []plans.Cover{{
			Arg: "y", Dims: []int{k.lines(), k.p.width}, Tile: []int{k.tile, k.outputs()}, Axis: []int{1, 0},
		}},
	}
	if k.sorted() {
		c.Grid[1] = k.lines()/k.tile + min(k.count(), k.lines())
		c.Cover[0].Tile[0] = 0
	}
	return site.Implement(c, "rows", k.declare)
}

// orders names the orders of the sums, by the bits of x.
var orders = map[int]string{0: "rows0", 8: "panels8", 12: "rows12", bf16Bits: "tiles16"}

// rowsRun is the kernel while it is built. An argument that the site does not have is x, and a constant says so.
type rowsRun struct {
	rowsKernel
	b             *kernel.Builder
	x, gain, n, y *kernel.Buffer
	// Of experts: those of each row, and if rows are sorted by them, the rows, and where experts begin.
	ids, order, offsets *kernel.Buffer
	matrices            []weight.Matrix
	biases, adds        []*kernel.Buffer

	cols, width, size    kernel.Value // elements of a row of x and of the result, columns of a tile
	most                 kernel.Value // rows of the step; 0: as @n says
	last, norm, bias     kernel.Value // whether row n-1 of x alone counts; whether there is a norm, a bias
	residuals, act, rstd kernel.Value // how many, which, and what the norm adds to the mean
	slots, own           kernel.Value // experts of a row; 0: none. Whether x has a run for each
	inOrder, count       kernel.Value // whether rows are sorted by expert; the experts
	height               kernel.Value // rows of an expert
	from                 []kernel.Value

	// In shared memory: the first place of the tile, the end of places, the expert; by column the rows of x and of the
	// result.
	place, sources, targets *kernel.Array

	high, low *kernel.Array
	sums      *kernel.Array // of the integers of 16 elements
	scales    *kernel.Array
	rstds     *kernel.Array // by column
	products  *kernel.Array // of the columns at hand: by column, matrix and lane
	panels    *panelRun     // of x in 8 bits, of all columns of the tile
	tiled     *tilesRun     // of x in bf16, likewise
	depth     kernel.Value  // of tiles: elements that are taken apart at a time
}

func (k rowsKernel) declare(s *site.Signature) func(b *kernel.Builder) {
	r := &rowsRun{rowsKernel: k}
	flag := func(name string, has bool, unit string) kernel.Value {
		value := 0
		if has {
			value = 1
		}
		return s.U32(name, value, 0, unit)
	}
	or := func(v *ir.Value) *ir.Value {
		if v == nil {
			return k.x
		}
		return v
	}
	n, most := k.step.N, 0
	if n == nil {
		most = k.step.Max
	}
	if k.last {
		n = k.n
	}
	r.x, r.gain, r.n = s.Read("x", k.x), s.Read("gain", or(k.gain)), s.Read("n", or(n))
	for j, w := range k.p.matrices {
		m := weight.Matrix{Format: w.format, Buf: s.Read(matrixName("w", 0, j), w.value)}
		r.matrices, r.biases = append(r.matrices, m), append(r.biases, s.Read(matrixName("bias", 0, j), or(w.bias)))
	}
	for j := range k.adds() {
		var v *ir.Value
		if j < len(k.p.residuals) {
			v = k.p.residuals[j]
		}
		r.adds = append(r.adds, s.Read(matrixName("add", 0, j), or(v)))
	}
	var ids, order, offsets *ir.Value
	slots, own, count := 0, false, 0
	if e := k.experts; e != nil {
		ids, order, offsets = e.ids, e.order, e.offsets
		slots, own, count = e.slots, e.perSlot, k.count()
	}
	r.ids, r.order, r.offsets = s.Read("ids", or(ids)), s.Read("order", or(order)), s.Read("offsets", or(offsets))
	r.y = s.Write("y", k.p.result)
	r.cols, r.width = s.U32("k", k.k, 4096, "elements of a row of x"), s.U32("width", k.p.width, 4096, "elements of a row of the result")
	r.size, r.most = s.U32("tile", k.tile, k.columns, "rows of x of a workgroup"), s.U32("rows", most, 0, "rows of the step; 0: those of this one")
	r.last, r.norm = flag("last", k.last, "1: the last row of x alone"), flag("norm", k.gain != nil, "1: of x, behind it")
	r.bias, r.residuals = flag("bias", k.p.matrices[0].bias != nil, "1: there is one"), s.U32("adds", len(k.p.residuals), 0, "residuals")
	r.rstd = s.F32("eps", float64(k.eps), 1e-6, "added to the mean square")
	if len(k.p.matrices) > 1 {
		r.act = s.U32("act", slices.Index(lane.GLUs, k.p.act), 0, "activation, by its place in the table")
	}
	if k.tiles() {
		r.depth = s.U32("depth", tileDepth, tileDepth, "elements that are taken apart at a time")
	}
	r.slots, r.own = s.U32("slots", slots, 0, "experts of a row; 0: none"), flag("own", own, "1: x has a run for each expert of a row")
	r.inOrder, r.count = flag("sorted", k.sorted(), "1: rows are sorted by expert"), s.U32("experts", count, 0, "experts in the weights")
	height := k.p.width
	if k.experts != nil {
		height = int(k.p.matrices[0].value.Type.Shape[1])
	}
	r.height = s.U32("height", height, 4096, "rows of an expert in the weights")
	all := s.U32("all", height*max(1, count), 4096, "rows in the weights")
	for j, w := range k.p.matrices {
		r.from = append(r.from, s.U32(matrixName("from", 0, j), w.from, 0, "first row of an expert that counts"))
		r.matrices[j].Rows, r.matrices[j].Cols = all, r.cols
	}
	return r.build
}

// is is a condition from a constant.
func (r *rowsRun) is(flag kernel.Value) kernel.Value { return r.b.Ne(flag, 0) }

func (r *rowsRun) build(b *kernel.Builder) {
	r.b = b
	b.Workgroup(laneRows)
	words := func(n int) kernel.Value { return b.Mul(b.Div(r.cols, n), r.size) }
	switch r.bits {
	case 8:
		r.panels = newPanelRun(r)
	case bf16Bits:
		r.tiled = newTilesRun(r)
	case 12:
		r.high, r.sums, r.scales = b.Shared(kernel.U32, words(4)), b.Shared(kernel.I32, words(16)), b.Shared(kernel.F32, words(r.group()))
		r.low = b.Shared(kernel.U32, words(4))
	}
	r.rstds = b.Shared(kernel.F32, r.size)
	if r.products == nil {
		r.products = b.Shared(kernel.F32, len(r.matrices)*r.columns*laneRows)
	}
	r.place, r.sources, r.targets = b.Shared(kernel.U32, 3), b.Shared(kernel.U32, r.size), b.Shared(kernel.U32, r.size)
	b.Line(func() {
		r.find()
		b.Barrier()
		for n := range askedAhead {
			r.askFor(n)
		}
		b.For(0, r.columnsHere(), 1, func(c kernel.Value) {
			if r.tiled != nil {
				r.tiled.round(c, r.sources.Load(c))
			} else if r.fixed != nil {
				r.round(c, r.sources.Load(c))
			} else {
				r.scale(c, r.sources.Load(c))
			}
		})
	})
	b.Barrier()
	if r.panels != nil {
		r.panels.project(b.WorkgroupID(0), r.columnsHere())
		return
	}
	if r.tiled != nil {
		r.tiled.project(b.WorkgroupID(0), r.columnsHere())
		return
	}
	b.For(0, r.columnsHere(), r.columns, func(first kernel.Value) { r.project(b.WorkgroupID(0), first) })
}
