package matmul

import (
	"fmt"
	"math/bits"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
)

// gemmShape is the tile of a workgroup: a lane has perLane rows of x, rowStride apart,
// times cols outputs, gemmColStride apart.
type gemmShape struct {
	lanes         int
	perLane, cols int
	loaders       int // lanes that load a row of x together
}

func (s gemmShape) rowStride() int { return s.lanes / gemmColStride } // lanes that differ in their rows

func (s gemmShape) tileRows() int { return s.rowStride() * s.perLane }

func (s gemmShape) outputs() int { return gemmColStride * s.cols }

// gemmOf is the tile of gemm for so many rows a lane, with as many lanes in a workgroup as
// the target allows. Each iteration of its loop takes 32 elements of the rows through shared memory.
func gemmOf(perLane int, t *target.Target) gemmShape {
	return gemmShape{lanes: min(gemmLanes, t.Workgroup), perLane: perLane, cols: gemmCols, loaders: 8}
}

const (
	gemmLanes     = 128
	gemmColStride = 16
	gemmRowStride = gemmLanes / gemmColStride
	gemmCols      = 4
	gemmOutputs   = gemmCols * gemmColStride
	gemmDepth     = 32
	// gemmStride is the vec4 from row to row in shared memory: one more than needed, so that
	// lanes that read 8 rows at once use different banks.
	gemmStride = gemmDepth/4 + 1
)

// gemm computes a linear group for many rows of x. The weights of a tile are
// dequantized into shared memory once. The sum of an element runs over its row in
// the order of the format's units, in one lane.
type gemm struct {
	*linearGroup
	from rowSource
	gemmShape
}

func GemmCandidates(s *site.Site, g *Group) []site.Candidate {
	if !g.alike() {
		return nil
	}
	step, ok := g.step(s)
	if !ok {
		return nil
	}
	var list []site.Candidate
	for _, n := range gemmRows(g, s.Target) {
		list = append(list, gemm{g, step, gemmOf(n, s.Target)}.candidate("gemm", (*gemmTile).run))
	}
	return list
}

// alike reports whether all projections have as many matrices and passes, so that
// they can share the loop. Others are not fused.
func (g *linearGroup) alike() bool {
	for _, p := range g.projects {
		if len(p.matrices) != len(g.projects[0].matrices) || len(p.passes()) != len(g.projects[0].passes()) {
			return false
		}
	}
	return true
}

// gemmRows returns how many rows a lane may compute, best guess first: the more,
// the less is loaded for each product, as long as there are rows and all units of
// the device have work.
func gemmRows(g *linearGroup, t *target.Target) []int {
	if t.Wave < 16 {
		// A processor: 4x4 sums fill its vector registers, and the loops of
		// smaller tiles, which its driver unrolls, compile slower.
		return []int{4}
	}
	n := 8
	for n > 2 && (g.gemmBytes(n) > t.Shared || g.rows <= gemmRowStride*n/2 || g.tiles(gemmOutputs)*site.CeilDiv(g.rows, gemmRowStride*n) < t.Units) {
		n /= 2
	}
	if n == 2 {
		return []int{n}
	}
	return []int{n, n / 2}
}

// gemmBytes is at most the shared memory of a tile whose lanes compute n rows: x, weights, and sums of squares.
func (g *linearGroup) gemmBytes(n int) int {
	return 16*gemmStride*(gemmRowStride*n+2*gemmOutputs) + 4*8*gemmRowStride*n + g.tables()
}

// candidate returns the group's candidate of a family with this tile; run emits its kernel behind what finds the tile.
func (k gemm) candidate(family string, run func(t *gemmTile)) site.Candidate {
	shape := fmt.Sprintf("%dx%d", k.tileRows(), k.outputs())
	return product{family: family, from: k.from, rows: k.tileRows(), outputs: each(k.outputs()), code: "tile=" + shape, shape: shape,
		kernel: func(s *site.Signature) func(b *kernel.Builder) {
			a, find := k.declare(s, false, k.firsts(k.outputs())), k.from.declareRows(s)
			return func(b *kernel.Builder) { run(k.tile(b, a, find)) }
		}}.candidate()
}

// gemmTile is what the parts of the kernel share.
type gemmTile struct {
	gemm
	rowTile
	a          *linearArgs
	lane       kernel.Value
	x          *kernel.Array     // the tile's rows, one after the other
	w          []*kernel.Array   // by matrix of a pass
	sums       [][][]*kernel.Var // by matrix, row, output
	squares    []*kernel.Var     // of the rows that the lane loads
	squareSums *kernel.Array     // by row and the lanes that load it
}

// tile finds the workgroup's tile, and of sorted rows those that the lane loads.
func (k gemm) tile(b *kernel.Builder, a *linearArgs, find rowFinder) *gemmTile {
	b.Workgroup(k.lanes)
	t := &gemmTile{gemm: k, a: a, rowTile: find(b, a)(k.tileRows())}
	t.lane = b.LocalID()
	t.leave()
	if t.sorted != nil {
		down := k.lanes / k.loaders // rows that are loaded at once
		for j := range k.tileRows() / down {
			r := b.Add(t.row, b.Shr(t.lane, bits.TrailingZeros(uint(k.loaders))), down*j)
			t.sorted.sources = append(t.sorted.sources, t.sorted.source(r, t.rows))
		}
	}
	return t
}

// run emits the kernel behind what finds the tile.
func (t *gemmTile) run() {
	b := t.b
	t.allocate()
	t.loop(func() kernel.Value { return b.Div(b.Add(t.a.k, gemmDepth-1), gemmDepth) }, func(p *projectArgs, at kernel.Value, pass []int, iteration kernel.Value, first bool) {
		f := p.matrices[pass[0]].Format
		u := b.Mul(iteration, gemmDepth/f.Unit)
		units := b.Div(t.a.k, f.Unit)
		t.loadX(f, u, units, first)
		for j, m := range pass {
			t.loadW(t.w[j], p, m, b.Mul(at, gemmOutputs), u, units)
		}
	}, t.multiply)
}

// gemmLoad puts what a pass multiplies in an iteration into shared memory, of tile at of a projection. The first pass
// adds up squares.
type gemmLoad func(p *projectArgs, at kernel.Value, pass []int, iteration kernel.Value, first bool)

// loop goes through a row in so many iterations, for each pass. Then the results are finished and written.
func (t *gemmTile) loop(iterations func() kernel.Value, load gemmLoad, multiply func(pass []int)) {
	b := t.b
	for i, pass := range t.a.projects[0].spec.passes() {
		b.For(0, iterations(), 1, func(iteration kernel.Value) {
			// The projections differ in how they load only.
			t.a.each(b, b.WorkgroupID(1), func(p *projectArgs, at kernel.Value) { load(p, at, pass, iteration, i == 0) })
			b.Barrier()
			multiply(pass)
			b.Barrier()
		})
	}
	scales := t.scales()
	t.a.each(b, b.WorkgroupID(1), func(p *projectArgs, at kernel.Value) { t.store(p, b.Mul(at, t.outputs()), scales) })
}

// allocate declares the shared arrays and the sums.
func (t *gemmTile) allocate() {
	b := t.b
	t.x = b.Shared(lane.F32x4, t.tileRows()*gemmStride)
	for range t.a.projects[0].spec.passes()[0] {
		t.w = append(t.w, b.Shared(lane.F32x4, gemmOutputs*gemmStride))
	}
	t.allocateSums()
}

func (t *gemmTile) allocateSums() {
	b := t.b
	t.sums = make([][][]*kernel.Var, len(t.a.projects[0].matrices))
	for m := range t.sums {
		t.sums[m] = make([][]*kernel.Var, t.perLane)
		for i := range t.sums[m] {
			for range t.cols {
				t.sums[m][i] = append(t.sums[m][i], b.Var(kernel.F32, 0.0))
			}
		}
	}
	if t.gain != nil {
		t.squareSums = b.Shared(kernel.F32, t.tileRows()*t.loaders)
		for range t.tileRows() * t.loaders / t.lanes {
			t.squares = append(t.squares, b.Var(kernel.F32, 0.0))
		}
	}
}

// loadX loads the next 32 elements of the tile's rows. 8 lanes load one row; rows
// and units that do not exist are zero.
func (t *gemmTile) loadX(f *weight.Format, u, units kernel.Value, first bool) {
	b := t.b
	perUnit := f.Unit / 4
	part := b.And(t.lane, 7)
	i := b.Mod(part, perUnit)
	mine := b.Add(u, b.Div(part, perUnit))
	// As format.at, for an i that is not known here.
	at := b.Add(b.Div(f.Begin(b, mine), 4), i)
	if f.Runs() > 1 {
		at = b.Add(at, b.Mul(b.Div(i, f.Run/4), (f.Stride-f.Run)/4))
	}
	down := t.lanes / t.loaders // rows that are loaded at once
	for j := range t.tileRows() / down {
		r := b.Add(b.Shr(t.lane, 3), down*j)
		row := b.Add(t.row, r)
		x := b.Var(lane.F32x4, 0.0)
		b.If(b.And(b.Lt(row, t.rows), b.Lt(mine, units)), func() {
			if t.sorted != nil {
				row = t.sorted.sources[j]
			}
			v := t.a.x.Load(lane.F32x4, b.Add(b.Mul(row, b.Div(t.a.k, 4)), at))
			if t.gain != nil && first {
				t.square(v, j)
			}
			if t.gain != nil {
				v = b.Mul(v, t.a.gain.Load(lane.F32x4, at))
			}
			x.Set(v)
		})
		t.x.Store(b.Add(b.Mul(r, gemmStride), part), x.Get())
	}
}

// square adds up the squares of v, of the j-th row that the lane loads.
func (t *gemmTile) square(v kernel.Value, j int) {
	for e := range 4 {
		s := t.b.Elem(v, e)
		t.squares[j].Set(t.b.FMA(s, s, t.squares[j].Get()))
	}
}

// loadW dequantizes the next 32 elements of the rows of matrix i from col on. A lane
// takes whole units. What does not exist repeats the last that does: its products
// are zero, or not stored.
func (t *gemmTile) loadW(to *kernel.Array, p *projectArgs, i int, col, u, units kernel.Value) {
	b, m := t.b, p.matrices[i]
	f := m.Format
	together := gemmDepth / f.Unit
	for from := 0; from < gemmOutputs*together; from += t.lanes {
		item := b.Add(t.lane, from)
		one := func() {
			n, j := b.Div(item, together), b.Mod(item, together)
			row := p.row(b, i, b.Min(b.Add(col, n), b.Sub(p.width, 1)))
			runs := f.Load(b, m, row, b.Min(b.Add(u, j), b.Sub(units, 1)))
			at := b.Add(b.Mul(n, gemmStride), b.Mul(j, f.Unit/4))
			for v := range f.Unit / 4 {
				i := f.Run / 4
				to.Store(b.Add(at, v), runs[v/i].Value(b, f, v%i))
			}
		}
		if gemmOutputs*together < from+t.lanes {
			b.If(b.Lt(item, gemmOutputs*together), one)
		} else {
			one()
		}
	}
}

// multiply adds the products of what is in shared memory.
func (t *gemmTile) multiply(pass []int) {
	b := t.b
	b.For(0, gemmDepth/4, 1, func(k kernel.Value) {
		rows := t.shared(t.x, b.Div(t.lane, gemmColStride), t.rowStride(), t.perLane, k)
		for j, m := range pass {
			cols := t.shared(t.w[j], b.Mod(t.lane, gemmColStride), gemmColStride, gemmCols, k)
			for r, x := range rows {
				for c, w := range cols {
					sum := t.sums[m][r][c]
					v := sum.Get()
					for e := range 4 {
						v = b.FMA(x[e], w[e], v)
					}
					sum.Set(v)
				}
			}
		}
	})
}

// shared returns vec4 k of count rows, stride apart.
func (t *gemmTile) shared(from *kernel.Array, row kernel.Value, stride, count int, k kernel.Value) [][4]kernel.Value {
	b := t.b
	list := make([][4]kernel.Value, count)
	at := b.Add(b.Mul(row, gemmStride), k)
	for i := range list {
		v := from.Load(b.Add(at, i*stride*gemmStride))
		for e := range 4 {
			list[i][e] = b.Elem(v, e)
		}
	}
	return list
}

// scales returns the norm's scales of the lane's rows, nil without norm.
func (t *gemmTile) scales() []*kernel.Value {
	b := t.b
	list := make([]*kernel.Value, t.perLane)
	if t.gain == nil {
		return list
	}
	for j, s := range t.squares {
		t.squareSums.Store(b.Add(t.lane, t.lanes*j), s.Get())
	}
	b.Barrier()
	for i := range list {
		at := b.Mul(b.Add(b.Div(t.lane, gemmColStride), t.rowStride()*i), t.loaders)
		squares := t.squareSums.Load(at)
		for j := 1; j < t.loaders; j++ {
			squares = b.Add(squares, t.squareSums.Load(b.Add(at, j)))
		}
		v := t.a.rstd(b, squares)
		list[i] = &v
	}
	return list
}

// store finishes and writes the lane's elements of p, whose first output is col.
func (t *gemmTile) store(p *projectArgs, col kernel.Value, scales []*kernel.Value) {
	b := t.b
	row := b.Add(t.row, b.Div(t.lane, gemmColStride))
	col = b.Add(col, b.Mod(t.lane, gemmColStride))
	for i, rstd := range scales {
		r := b.Add(row, t.rowStride()*i)
		target := r
		if t.sorted != nil {
			target = t.sorted.target(b.Min(r, b.Sub(t.rows, 1)))
		}
		for c := range t.cols {
			n := b.Add(col, gemmColStride*c)
			b.If(b.And(b.Lt(r, t.rows), b.Lt(n, p.width)), func() {
				var v []kernel.Value
				for m := range t.sums {
					v = append(v, t.sums[m][i][c].Get())
				}
				p.store(b, v, rstd, p.loadResiduals(b, target, n), target, n)
			})
		}
	}
}
