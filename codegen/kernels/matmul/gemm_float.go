package matmul

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
)

// floatTile says how gemm_float computes a site. A lane has rows times outputs sums, and
// floatAcross lanes of a subgroup are side by side. All subgroups of a workgroup have the same
// tile of the result and share the elements of its rows.
type floatTile struct {
	rows, outputs, subgroups int
	// matrices: sums are made by matrices of TF32, see tf32x3Run.
	matrices bool
}

func (t floatTile) name() string {
	name := fmt.Sprintf("%dx%d subgroups=%d", t.rows, t.outputs, t.subgroups)
	if t.matrices {
		name += " tf32"
	}
	return name
}

// sumsKey is what the sums of a row depend on: which elements a subgroup has, and what multiplies them.
func (t floatTile) sumsKey() string {
	if t.matrices {
		return fmt.Sprintf("subgroups=%d tf32", t.subgroups)
	}
	return fmt.Sprintf("subgroups=%d", t.subgroups)
}

const (
	floatAcross = 8
	// floatDepth is how many elements of a row a subgroup takes at a time.
	floatDepth = 8
	// floatNarrow is the width of results that tiles would waste more for than they save.
	floatNarrow = 4
)

var floatTiles = []floatTile{
	{rows: 8, outputs: 8, subgroups: 4},
	{rows: 8, outputs: 4, subgroups: 8},
	{rows: 16, outputs: 4, subgroups: 8, matrices: true},
	{rows: 8, outputs: 4, subgroups: 16, matrices: true},
}

// gemmFloat computes a linear group of f32 weights for many rows of x. Such weights, as a
// router's, have few rows, so that tiles of the result which load little are too few for a
// device: the subgroups of a workgroup have the same tile, and what each has summed up over
// its elements is added at the end, as a tree. Both operands go through shared memory, where
// each subgroup has a place of two halves, one of which is filled while the other is
// multiplied, so that they need not wait for each other. Narrow results are left to subgroups
// whose lanes share a row, as those of gemm_lanes do.
type gemmFloat struct {
	*linearGroup
	floatTile
	from stepRows
	wave int
}

func GemmFloatCandidates(s *site.Site, g *Group) []site.Candidate {
	step, ok := g.floats(s)
	if !ok {
		return nil
	}
	var list []site.Candidate
	for _, t := range floatTiles {
		if k := (gemmFloat{g, t, step, s.Target.Wave}); k.fits(s.Target) {
			list = append(list, k.candidate())
		}
	}
	return list
}

// floats returns the rows of a step, if all weights are f32.
func (g *linearGroup) floats(s *site.Site) (stepRows, bool) {
	for _, p := range g.projects {
		if p.matrices[0].format.Layout.Name != "f32" {
			return stepRows{}, false
		}
	}
	return g.step(s)
}

// fits reports whether the workgroup fits the target, and whether its parts come out even. Subgroups of fewer lanes are
// a processor's, which has no registers for the sums and does not gain by shared memory.
func (k gemmFloat) fits(t *target.Target) bool {
	if k.matrices && (!t.TF32() || k.k%(tf32x3Depth*k.subgroups) != 0) {
		return false
	}
	return k.wave >= 2*floatAcross && k.threads() <= t.Workgroup && 16*k.sharedVec4()+4*k.tileRows() <= t.Shared &&
		k.k%(floatDepth*k.subgroups) == 0 && k.k%(4*k.wave) == 0 && k.tileRows()%k.subgroups == 0
}

func (k gemmFloat) threads() int { return k.wave * k.subgroups }

func (k gemmFloat) rowStride() int { return k.wave / floatAcross } // between rows of a lane

func (k gemmFloat) tileRows() int { return k.rowStride() * k.floatTile.rows }

func (k gemmFloat) tileOutputs() int { return floatAcross * k.outputs }

// half is the vec4 of a half of a subgroup's place in shared memory: rows of x, and behind them
// rows of weights.
func (k gemmFloat) half() int { return (k.tileRows() + k.tileOutputs()) * floatDepth / 4 }

// sharedVec4 is the vec4 of all places.
func (k gemmFloat) sharedVec4() int {
	if k.matrices {
		return k.wave * tf32x3Part / 4
	}
	return 2 * k.half() * k.subgroups
}

// outputsOf is how many outputs of projection i a workgroup has.
func (k gemmFloat) outputsOf(i int) int {
	if k.narrow(i) {
		return 1
	}
	return k.tileOutputs()
}

// narrow reports whether projection i is computed output by output.
func (k gemmFloat) narrow(i int) bool { return k.projects[i].width <= floatNarrow }

func (k gemmFloat) candidate() site.Candidate {
	shape := fmt.Sprintf("%dx%d of %s", k.tileRows(), k.tileOutputs(), k.floatTile.name())
	code := fmt.Sprintf("tile=%s w=%d", shape, k.wave)
	for i := range k.projects {
		if k.narrow(i) {
			code += fmt.Sprint(" narrow ", i)
		}
	}
	return product{family: "gemm_float", from: k.from, rows: k.tileRows(), outputs: k.outputsOf, code: code, shape: shape, sums: k.sumsKey(), tiling: k.tiling(), kernel: k.kernel}.candidate()
}

func (k gemmFloat) kernel(s *site.Signature) func(b *kernel.Builder) {
	firsts, _ := k.workgroupsBy(k.outputsOf)
	a, find := k.declare(s, false, firsts), k.from.declareRows(s)
	return func(b *kernel.Builder) {
		b.Workgroup(k.threads())
		r := &floatRun{gemmFloat: k, rowTile: find(b, a)(k.tileRows()), a: a, id: b.SubgroupID(), lane: b.SubgroupLane()}
		r.leave()
		r.place = b.Mul(r.id, 2*k.half())
		i := 0
		a.each(b, b.WorkgroupID(1), func(p *projectArgs, at kernel.Value) {
			if k.narrow(i) {
				r.column(p, at)
			} else if k.matrices {
				(&tf32x3Run{floatRun: r, p: p, col: b.Mul(at, k.tileOutputs())}).run()
			} else {
				r.tile(p, b.Mul(at, k.tileOutputs()))
			}
			i++
		})
	}
}

// floatRun is what the parts of the kernel share.
type floatRun struct {
	gemmFloat
	rowTile
	a        *linearArgs
	id, lane kernel.Value  // of the subgroup; in it
	shared   *kernel.Array // of tiles, nil until there is one
	place    kernel.Value  // where the subgroup's is in it
	parts    *kernel.Array // of columns, nil until there is one
}

// column computes output col of p.
func (r *floatRun) column(p *projectArgs, col kernel.Value) {
	if r.parts == nil {
		r.parts = r.b.Shared(kernel.F32, r.tileRows())
	}
	k := lanesGemm{r.linearGroup, lanesTile{rows: r.tileRows() / r.subgroups, outputs: 1, down: r.subgroups, across: 1, split: 1}, r.from, r.wave}
	row := r.b.Add(r.row, r.b.Mul(r.id, k.lanesTile.rows))
	k.store(r.b, p, k.products(r.b, r.a, p, r.rows, row, col), r.parts, r.rows, row, col)
}

// tile computes the tile of p whose first output is col.
func (r *floatRun) tile(p *projectArgs, col kernel.Value) {
	b := r.b
	if r.shared == nil {
		r.shared = b.Shared(lane.F32x4, r.sharedVec4())
	}
	sums := make([][]*kernel.Var, r.floatTile.rows)
	for i := range sums {
		for range r.outputs {
			sums[i] = append(sums[i], b.Var(kernel.F32, 0.0))
		}
	}
	length, stride := b.Div(r.a.k, 4), floatDepth/4*r.subgroups
	sources := r.sources(p, col)
	load := func(i kernel.Value) (list []kernel.Value) {
		i = b.Select(b.Lt(i, length), i, 0)
		for _, s := range sources {
			list = append(list, s.buf.Load(lane.F32x4, b.Add(s.at, i)))
		}
		return list
	}
	store := func(half kernel.Value, list []kernel.Value) {
		for j, v := range list {
			r.shared.Store(b.Add(sources[j].to, half), v)
		}
	}
	store(b.U32(0), load(b.U32(0)))
	var ahead []*kernel.Var
	for _, v := range load(b.U32(uint32(stride))) {
		ahead = append(ahead, b.Var(lane.F32x4, v))
	}
	half := b.Var(kernel.U32, 0)
	b.ForRolled(0, length, stride, func(i kernel.Value) {
		b.SubgroupBarrier()
		r.multiply(sums, b.Add(r.place, half.Get()))
		half.Set(b.Sub(r.half(), half.Get()))
		store(half.Get(), gets(ahead))
		sets(ahead, load(b.Add(i, 2*stride)))
	})
	r.add(slices.Concat(sums...))
	r.store(p, sums, col)
}

// floatSource is where a lane loads from, vec4 at of a buffer in the first iteration, and where in
// shared memory that belongs.
type floatSource struct {
	buf    *kernel.Buffer
	at, to kernel.Value
}

// sources returns what the lane loads in each iteration, of rows of x and of weights. Rows and
// outputs beyond the last repeat it.
func (r *floatRun) sources(p *projectArgs, col kernel.Value) (list []floatSource) {
	b := r.b
	const share = floatDepth / 4 // lanes that load a row
	part, line := b.Mod(r.lane, share), b.Div(r.lane, share)
	take := func(buf *kernel.Buffer, count, before int, first, end kernel.Value) {
		each := r.wave / share
		for from := 0; from < count; from += each {
			i := b.Add(line, from)
			if count < from+each {
				i = b.Min(i, count-1) // lanes that load and store the same
			}
			row := b.Min(b.Add(first, i), b.Sub(end, 1))
			list = append(list, floatSource{buf, b.Add(b.Mul(row, b.Div(r.a.k, 4)), b.Mul(r.id, share), part), b.Add(r.place, r.at(i, before, part))})
		}
	}
	take(r.a.x, r.tileRows(), 0, r.row, r.rows)
	take(p.matrices[0].Buf, r.tileOutputs(), r.tileRows(), col, p.width)
	return list
}

// at is where vec4 e of row i+more is in a half of the subgroup's place. The vec4 of a row change
// places from row to row, so that lanes that read neighbouring rows use different banks.
func (r *floatRun) at(i kernel.Value, more int, e kernel.Operand) kernel.Value {
	b := r.b
	const wide, period = floatDepth / 4, 8 // a bank line has 8 vec4
	turn := i
	if more%period != 0 {
		turn = b.Add(i, more)
	}
	return b.Add(b.Mul(i, wide), b.Xor(b.And(b.Shr(turn, site.Log2(period/wide)), wide-1), e), more*wide)
}

// multiply adds the products of what is at a place in shared memory.
func (r *floatRun) multiply(sums [][]*kernel.Var, place kernel.Value) {
	b := r.b
	row, col := b.Div(r.lane, floatAcross), b.Mod(r.lane, floatAcross)
	for e := range floatDepth / 4 {
		var ws []kernel.Value
		for c := range r.outputs {
			ws = append(ws, r.shared.Load(b.Add(place, r.at(col, r.tileRows()+c*floatAcross, e))))
		}
		for i, list := range sums {
			x := r.shared.Load(b.Add(place, r.at(row, i*r.rowStride(), e)))
			for c, sum := range list {
				v := sum.Get()
				for e := range 4 {
					v = b.FMA(b.Elem(x, e), b.Elem(ws[c], e), v)
				}
				sum.Set(v)
			}
		}
	}
}

// add adds the sums of all subgroups into those of the first, as many at a time as shared
// memory holds.
func (r *floatRun) add(sums []*kernel.Var) {
	b := r.b
	for half := r.subgroups / 2; half > 0; half /= 2 {
		n := min(len(sums), 4*(r.sharedVec4()/(half*r.wave)))
		for part := range slices.Chunk(sums, n) {
			at := func(id kernel.Value, j int) kernel.Value {
				return b.Add(b.Mul(b.Add(b.Mul(id, n/4), j), r.wave), r.lane)
			}
			b.Barrier()
			b.If(b.And(b.Ge(r.id, half), b.Lt(r.id, 2*half)), func() {
				for j := range len(part) / 4 {
					v := gets(part[4*j : 4*j+4])
					r.shared.Store(at(b.Sub(r.id, half), j), b.Vec(v[0], v[1], v[2], v[3]))
				}
			})
			b.Barrier()
			b.If(b.Lt(r.id, half), func() {
				for j := range len(part) / 4 {
					v := r.shared.Load(at(r.id, j))
					for e, sum := range part[4*j : 4*j+4] {
						sum.Set(b.Add(sum.Get(), b.Elem(v, e)))
					}
				}
			})
		}
	}
}

// store writes the results, which the first subgroup has.
func (r *floatRun) store(p *projectArgs, sums [][]*kernel.Var, col kernel.Value) {
	b := r.b
	b.If(b.Eq(r.id, 0), func() {
		for i, list := range sums {
			row := b.Add(r.row, b.Div(r.lane, floatAcross), i*r.rowStride())
			for c, sum := range list {
				n := b.Add(col, b.Mod(r.lane, floatAcross), c*floatAcross)
				b.If(b.And(b.Lt(row, r.rows), b.Lt(n, p.width)), func() {
					p.store(b, []kernel.Value{sum.Get()}, nil, p.loadResiduals(b, row, n), row, n)
				})
			}
		}
	})
}

// tiling is what the kernel does; narrow results do not count.
func (k gemmFloat) tiling() *site.Tiling {
	_, tiles := k.workgroupsBy(k.outputsOf)
	for i, p := range k.projects {
		if k.narrow(i) {
			tiles -= p.width
		}
	}
	return &site.Tiling{Name: k.floatTile.name(), K: k.k, Width: k.tiles(1), Rows: k.tileRows(), Across: tiles, TF32x3: k.matrices}
}
