package kernels

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// coopTile says what a workgroup and its subgroups compute. Outputs are counted
// over all matrices of a projection: a tile of gate and up has half of each.
type coopTile struct {
	rows, outputs       int // of a workgroup
	subRows, subOutputs int // of a subgroup
	// cost is what a workgroup takes for a projection of one and of two matrices,
	// in microseconds.
	cost [2]int
}

const (
	coopSide = 16 // of all matrices
	// coopDepth is the elements of a row that a step takes; octets are 8 of them.
	coopDepth  = 64
	coopOctets = coopDepth / 8
	// coopStride is the octets from row to row in shared memory: one more than
	// needed, so that 8 rows begin in different banks.
	coopStride = coopOctets + 1
)

// outStride is the octets' worth of f32 from row to row of the sums that a subgroup
// puts into shared memory at the end, 16 rows at a time.
func (t coopTile) outStride() int { return t.subOutputs/4 + 1 }

func (t coopTile) subgroups() int { return t.rows / t.subRows * (t.outputs / t.subOutputs) }

// shared is the octets of shared memory: rows of x, then of weights; at the end,
// sums.
func (t coopTile) shared() int {
	return max((t.rows+t.outputs)*coopStride, t.subgroups()*coopSide*t.outStride())
}

// gemmCoop computes a linear group for many rows of x with cooperative matrices. x is
// f16, and the dequantized weights are rounded to it; products are added in f32, in
// the device's order.
type gemmCoop struct {
	*linearGroup
	coopTile
	step extent
	wave int
}

func gemmCoopCandidates(s *Site) []Candidate {
	g := matchCoop(s)
	if g == nil || !g.half {
		return nil
	}
	step, ok := extentOf(s, g.projects[0].result)
	if !ok {
		return nil
	}
	var list []Candidate
	for _, t := range coopTiles(g, s.Target) {
		list = append(list, gemmCoop{g, t, step, s.Target.Wave}.candidate())
	}
	return list
}

// HalfInput returns the f32 value that the group's projections or its attention read, if
// gemm_coop, expert_coop or attention_coop computes the group once it is rounded to f16;
// else nil.
func HalfInput(s *Site) *ir.Value {
	if a := matchAttentionCoop(s); len(a) > 0 {
		if q := a[0].op.Args[0]; q.Type.DType == ir.F32 && q.Def != nil {
			return q
		}
		return nil
	}
	g := matchCoop(s)
	if e := matchExpertCoop(s); e != nil {
		g = e.linearGroup
	}
	if g != nil && !g.half && g.x.Def != nil {
		return g.x
	}
	return nil
}

// matchCoop returns the site's group if gemm_coop computes it but for the type of x.
func matchCoop(s *Site) *linearGroup {
	g := matchLinear(s)
	if g == nil || g.rows <= maxColumns || g.last || !g.inMatrices(s.Target) {
		return nil
	}
	return g
}

// inMatrices reports whether the target has the matrices for the group's shapes and
// formats.
func (g *linearGroup) inMatrices(t *target.Target) bool {
	if g.gain != nil || !g.alike() || g.k%coopDepth != 0 ||
		t.Matrix != (target.MatrixShape{Rows: coopSide, Cols: coopSide, Depth: coopSide}) {
		return false
	}
	for _, p := range g.projects {
		if p.width%4 != 0 {
			return false
		}
		for _, w := range p.matrices {
			if coopFormatOf(w.format.layout) == nil {
				return false
			}
		}
	}
	return true
}

// coopShapes are the tiles, with the costs of rows of 4096 elements of Q4_K on an
// H200. They depend little on how many workgroups an SM has.
var coopShapes = []coopTile{
	{rows: 128, outputs: 128, subRows: 64, subOutputs: 32, cost: [2]int{88, 99}},
	{rows: 128, outputs: 128, subRows: 64, subOutputs: 64, cost: [2]int{93, 82}},
	{rows: 64, outputs: 64, subRows: 32, subOutputs: 32, cost: [2]int{40, 40}},
	{rows: 32, outputs: 64, subRows: 16, subOutputs: 32, cost: [2]int{38, 28}},
	{rows: 32, outputs: 32, subRows: 16, subOutputs: 32, cost: [2]int{27, 27}},
}

// coopTiles returns the two best tiles for the group, first the best: those that
// cost least on the unit that gets most workgroups.
func coopTiles(g *linearGroup, t *target.Target) []coopTile {
	matrices := len(g.projects[0].matrices)
	cost := func(s coopTile) int {
		return s.cost[matrices-1] * ceilDiv(ceilDiv(g.rows, s.rows)*g.tiles(s.outputs/matrices), t.Units)
	}
	list := slices.Clone(coopShapes)
	slices.SortStableFunc(list, func(a, b coopTile) int { return cost(a) - cost(b) })
	return list[:2]
}

func (k gemmCoop) threads() int { return k.subgroups() * k.wave }

// each is the outputs of each matrix in a tile.
func (k gemmCoop) each() int { return k.outputs / len(k.projects[0].matrices) }

func (k gemmCoop) candidate() Candidate {
	firsts := k.firsts(k.each())
	c := Candidate{
		Kernel: fmt.Sprintf("gemm_coop %s%s tile=%dx%d subgroup=%dx%d", k.key(), k.step.key(),
			k.coopTile.rows, k.outputs, k.subRows, k.subOutputs),
		Build:    k.build,
		Operands: append(k.operands(false), k.step.operands()...),
		Grid:     [3]int{ceilDiv(k.linearGroup.rows, k.coopTile.rows), k.tiles(k.each()), 1},
		Consts:   append(k.consts(firsts), k.step.consts()...),
	}
	for i, p := range k.projects {
		c.Cover = append(c.Cover, plans.Cover{
			Arg:  fmt.Sprint("y", i),
			Dims: []int{k.linearGroup.rows, p.width}, Tile: []int{k.coopTile.rows, k.each()},
			Axis: []int{0, 1}, First: []int{0, firsts[i]},
		})
	}
	return c
}

// coopKernel is what the parts of the kernel of one projection share.
type coopKernel struct {
	gemmCoop
	b      *kernel.Builder
	a      *linearArgs
	p      *projectArgs
	sorted *sortedRows  // where the rows are; nil if they are those of x and the results
	rows   kernel.Value // of this step, or where those of the tile's expert end
	row    kernel.Value // first of the tile
	col    kernel.Value // first output of each matrix
	lane   kernel.Value
	shared *kernel.Array
	subRow kernel.Value      // the subgroup's first row in the tile
	subCol kernel.Value      // and its first output of each matrix
	sums   [][][]*kernel.Var // by matrix, row, output, in steps of 16
	sum    kernel.Type
}

func (k gemmCoop) build() (*kernel.Func, error) {
	return kernel.Build("gemm_coop", func(b *kernel.Builder) {
		a, rows := k.declare(b, false), k.step.bound(b)
		b.Workgroup(k.threads())
		row := b.Mul(b.WorkgroupID(0), k.coopTile.rows)
		b.ReturnIf(b.Ge(row, rows))
		k.emit(b, a, coopKernel{rows: rows, row: row})
	})
}

// emit emits the kernel behind what finds the tile, which tile says.
func (k gemmCoop) emit(b *kernel.Builder, a *linearArgs, tile coopKernel) {
	shared := b.Shared(u32x4, k.coopTile.shared())
	// Each projection has its own loop: its weights stay in registers from the
	// load to the next step, which a choice in between would make slower.
	a.each(b, b.WorkgroupID(1), func(p *projectArgs, at kernel.Value) {
		across := k.outputs / k.subOutputs
		t := tile
		t.gemmCoop, t.b, t.a, t.p, t.lane, t.shared = k, b, a, p, b.LocalID(), shared
		t.col = b.Mul(at, k.each())
		t.subRow = b.Mul(b.Div(b.SubgroupID(), across), k.subRows)
		t.subCol = b.Mul(b.Mod(b.SubgroupID(), across), k.subOutputs/len(p.matrices))
		t.sum = kernel.F32.Matrix(coopSide, coopSide, kernel.Accumulator)
		t.run()
	})
}

func (t *coopKernel) run() {
	b := t.b
	if t.sorted != nil {
		t.findSources()
	}
	t.sums = make([][][]*kernel.Var, len(t.p.matrices))
	for m := range t.sums {
		t.sums[m] = make([][]*kernel.Var, t.subRows/coopSide)
		for r := range t.sums[m] {
			for range t.subOutputs / len(t.sums) / coopSide {
				t.sums[m][r] = append(t.sums[m][r], b.Var(t.sum, b.MatFill(t.sum, 0)))
			}
		}
	}
	steps := b.Div(t.a.k, coopDepth)
	t.fetch(b.U32(0))()
	b.Barrier()
	b.For(0, steps, 1, func(step kernel.Value) {
		// The last step fetches again what it has.
		store := t.fetch(b.Min(b.Add(step, 1), b.Sub(steps, 1)))
		t.multiply()
		b.Barrier()
		store()
		b.Barrier()
	})
	t.store()
}

// fetch loads what a step needs and returns what stores it into shared memory.
func (t *coopKernel) fetch(step kernel.Value) func() {
	stores := []func(){t.fetchX(step)}
	for m := range t.p.matrices {
		stores = append(stores, t.fetchW(m, step))
	}
	return func() {
		for _, s := range stores {
			s()
		}
	}
}

// spread calls one for every item, of n, that this lane takes, and returns what
// calls what one returned. A lane takes neighbours, or else items that are as far
// apart as there are lanes, so that those of a subgroup are neighbours.
func (t *coopKernel) spread(n int, neighbours bool, one func(item kernel.Value) func()) func() {
	b := t.b
	count := ceilDiv(n, t.threads())
	first, step := t.lane, t.threads()
	if neighbours {
		first, step = b.Mul(t.lane, count), 1
	}
	var stores []func()
	for i := range count {
		item := b.Add(first, i*step)
		if n%t.threads() == 0 {
			stores = append(stores, one(item))
			continue
		}
		store := one(b.Min(item, n-1)) // what others have too, and store
		stores = append(stores, func() { b.If(b.Lt(item, n), store) })
	}
	return func() {
		for _, s := range stores {
			s()
		}
	}
}

// fetchX fetches the step's octets of the tile's rows; a lane takes the same of
// several rows. Rows beyond the last repeat it: their results are not stored.
func (t *coopKernel) fetchX(step kernel.Value) func() {
	b, i := t.b, 0
	return t.spread(t.coopTile.rows*coopOctets, false, func(item kernel.Value) func() {
		r, o := b.Div(item, coopOctets), b.Mod(item, coopOctets)
		row := b.Min(b.Add(t.row, r), b.Sub(t.rows, 1))
		if t.sorted != nil {
			row = t.sorted.sources[i]
			i++
		}
		x := t.a.x.Load(u32x4, b.Add(b.Mul(row, b.Div(t.a.k, 8)), b.Mul(step, coopOctets), o))
		return func() { t.shared.Store(b.Add(b.Mul(r, coopStride), o), octetOf(b, x)) }
	})
}

// findSources finds the rows of sorted slots that fetchX fetches.
func (t *coopKernel) findSources() {
	rows := *t.sorted
	rows.sources = nil
	t.sorted = &rows
	t.spread(t.coopTile.rows*coopOctets, false, func(item kernel.Value) func() {
		row := t.b.Add(t.row, t.b.Div(item, coopOctets))
		rows.sources = append(rows.sources, rows.source(row, t.rows))
		return func() {}
	})
}

// fetchW fetches the step's octets of the tile's rows of matrix m. Rows beyond the
// last repeat it.
func (t *coopKernel) fetchW(m int, step kernel.Value) func() {
	b, w := t.b, t.p.matrices[m]
	f := coopFormatOf(w.format.layout)
	return t.spread(t.each()*f.items, f.header, func(item kernel.Value) func() {
		n, part := b.Div(item, f.items), b.Mod(item, f.items)
		row := t.p.row(b, m, b.Min(b.Add(t.col, n), b.Sub(t.p.width, 1)))
		load := f.load(b, w, row, step, part)
		return func() {
			at := b.Add(b.Mul(n, coopStride), b.Mul(part, f.run), (t.coopTile.rows+m*t.each())*coopStride)
			for i, v := range load() {
				t.shared.Store(b.Add(at, i/f.run*f.stride+i%f.run), v)
			}
		}
	})
}

// multiply adds the products of what is in shared memory.
func (t *coopKernel) multiply() {
	b := t.b
	xs := kernel.F16.Matrix(coopSide, coopSide, kernel.MatrixA)
	ws := kernel.F16.Matrix(coopSide, coopSide, kernel.MatrixB)
	row := b.Mul(t.subRow, coopStride)
	col := b.Add(b.Mul(t.subCol, coopStride), t.coopTile.rows*coopStride)
	for k := 0; k < coopOctets; k += coopSide / 8 {
		var x []kernel.Value
		for r := range t.sums[0] {
			x = append(x, t.shared.LoadMatrix(xs, b.Add(row, r*coopSide*coopStride+k), coopStride, kernel.RowMajor))
		}
		for m := range t.sums {
			for c := range t.sums[m][0] {
				w := t.shared.LoadMatrix(ws, b.Add(col, (m*t.each()+c*coopSide)*coopStride+k), coopStride, kernel.ColumnMajor)
				for r := range t.sums[m] {
					sum := t.sums[m][r][c]
					sum.Set(b.MatMulAdd(x[r], w, sum.Get()))
				}
			}
		}
	}
}

// store finishes and writes the tile: every subgroup puts 16 rows of its sums at a
// time into shared memory, where its lanes find 4 neighbours each. All that is
// loaded for 16 rows is asked for before any of it is used.
func (t *coopKernel) store() {
	b := t.b
	own := t.subOutputs / len(t.sums) // outputs of each matrix
	mine := b.Mul(b.SubgroupID(), coopSide*t.outStride())
	for r := range t.sums[0] {
		if r > 0 {
			b.Barrier()
		}
		for m := range t.sums {
			for c, sum := range t.sums[m][r] {
				t.shared.StoreMatrix(b.Add(mine, (m*own+c*coopSide)/4), t.outStride(), kernel.RowMajor, sum.Get())
			}
		}
		b.Barrier()
		var stores []func()
		for from := 0; from < coopSide*own/4; from += t.wave {
			i := b.Add(b.SubgroupLane(), from)
			y, x := b.Div(i, own/4), b.Mod(i, own/4)
			row := b.Add(t.row, t.subRow, r*coopSide, y)
			col := b.Add(b.Div(b.Add(t.col, t.subCol), 4), x)
			var v []kernel.Value
			for m := range t.sums {
				at := b.Add(mine, b.Mul(y, t.outStride()), x, m*own/4)
				v = append(v, b.Bitcast(f32x4, t.shared.Load(at)))
			}
			stores = append(stores, t.finish(v, row, col))
		}
		for _, s := range stores {
			s()
		}
	}
}

// finish loads what vec4 col of a row of the result needs besides its products v
// by matrix, and returns what computes and writes it.
func (t *coopKernel) finish(v []kernel.Value, row, col kernel.Value) func() {
	b, p := t.b, t.p
	width := b.Div(p.width, 4)
	inside := b.And(b.Lt(row, t.rows), b.Lt(col, width))
	if t.sorted != nil {
		row = t.sorted.target(b.Min(row, b.Sub(t.rows, 1)))
	}
	at := b.Add(b.Mul(row, width), col)
	safe := b.Select(inside, at, 0)
	var biases, residuals []kernel.Value
	for _, buf := range p.bias {
		if buf != nil {
			biases = append(biases, buf.Load(f32x4, b.Select(inside, col, 0)))
		}
	}
	for _, r := range p.residuals {
		residuals = append(residuals, r.Load(f32x4, safe))
	}
	return func() {
		b.If(inside, func() {
			for i := range v {
				if p.bias[i] != nil {
					v[i], biases = b.Add(v[i], biases[0]), biases[1:]
				}
			}
			y := v[0]
			if p.spec.act != "" {
				y = b.Mul(activations[p.spec.act](b, y), v[1])
			}
			for _, r := range residuals {
				y = b.Add(y, r)
			}
			if p.spec.half {
				p.out.Store(at, roundHalf(b, y))
			} else {
				p.out.Store(at, y)
			}
		})
	}
}

// roundHalf returns a vec4 as four f16, clamped to their range.
func roundHalf(b *kernel.Builder, x kernel.Value) kernel.Value {
	x = b.Clamp(x, -65504.0, 65504.0)
	pair := func(i int) kernel.Operand { return b.PackHalf(b.Vec(b.Elem(x, i), b.Elem(x, i+1))) }
	return b.Vec(pair(0), pair(2))
}
