package matmul

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
)

// gemmCoop computes a linear group for many rows of x with cooperative matrices. x is
// f16, and the dequantized weights are rounded to it; products are added in f32, in
// the device's order.
type gemmCoop struct {
	*linearGroup
	coopTile
	from rowSource
	wave int
	// fence keeps the driver's compiler from loading the matrices of all products of an iteration
	// before the first: that takes registers, and products wait for loads.
	fence bool
}

func GemmCoopCandidates(s *site.Site, g *Group) []site.Candidate {
	step, ok := g.step(s)
	if !ok || !g.inMatrices(s.Target) {
		return nil
	}
	var list []site.Candidate
	for _, t := range coopTiles(g, s.Target) {
		k := gemmCoop{g, t, step, s.Target.Wave, s.Target.Fences()}
		list = append(list, k.product("gemm_coop", k.tiling()).candidate())
	}
	return list
}

// inMatrices reports whether the target has the matrices for the group's shapes and
// formats.
func (g *linearGroup) inMatrices(t *target.Target) bool {
	if !g.alike() || g.k%weight.CoopDepth != 0 ||
		t.Matrix != (target.MatrixShape{Rows: fragment.Square, Cols: fragment.Square, Depth: fragment.Square}) {
		return false
	}
	for _, p := range g.projects {
		if p.width%4 != 0 {
			return false
		}
		for _, w := range p.matrices {
			if w.format.Copy == nil {
				return false
			}
		}
	}
	return true
}

// span is the iterations of a block: what a loop takes in one go.
func (k gemmCoop) span() int {
	if k.k%(4*weight.CoopDepth) == 0 {
		return 4
	}
	return 1
}

// name is all that shapes the code, but for what is multiplied.
func (k gemmCoop) name() string {
	name := k.coopTile.name()
	if k.span() == 1 {
		name += " single iterations"
	}
	return name
}

func (k gemmCoop) fenceKey() string {
	if k.fence {
		return " fence"
	}
	return ""
}

func (k gemmCoop) threads() int { return k.groups * k.groupThreads() }

func (k gemmCoop) groupThreads() int { return k.subgroups() * k.wave }

// each is the outputs of each matrix in a tile.
func (k gemmCoop) each() int { return k.outputs / len(k.projects[0].matrices) }

func (k gemmCoop) product(family string, tiling *site.Tiling) product {
	return product{family: family, from: k.from, rows: k.coopTile.rows, outputs: each(k.each()),
		code: k.name() + k.fenceKey(), shape: k.name(), sums: fmt.Sprintf("groups=%d", k.groups), tiling: tiling, kernel: k.kernel}
}

// coopKernel is what the parts of the kernel of one projection share.
type coopKernel struct {
	gemmCoop
	rowTile
	a      *linearArgs
	col    kernel.Value // first output of each matrix
	group  kernel.Value
	lane   kernel.Value // in its group
	shared *kernel.Array
	region kernel.Value    // where that of the group begins
	subRow kernel.Value    // the subgroup's first row in the tile
	subCol kernel.Value    // and its first output, of those of all matrices
	sums   [][]*kernel.Var // by row and output, in strips of 16
	sum    kernel.Type
}

func (k gemmCoop) kernel(s *site.Signature) func(b *kernel.Builder) {
	a, find := k.declare(s, false, k.firsts(k.each())), k.from.declareRows(s)
	return func(b *kernel.Builder) {
		b.Workgroup(k.threads())
		tile := find(b, a)(k.coopTile.rows)
		if k.routing == nil {
			a.join(b, b.WorkgroupID(1))
		}
		tile.leave()
		shared := b.Shared(lane.U32x4, k.coopTile.shared())
		// Each projection has its own loop: its weights stay in registers from the
		// load to the next iteration, which a choice in between would make slower.
		a.each(b, b.WorkgroupID(1), func(p *projectArgs, at kernel.Value) {
			across := k.outputs / k.subOutputs
			tile.p = p
			t := coopKernel{gemmCoop: k, rowTile: tile, a: a, shared: shared}
			t.group, t.lane = b.Div(b.SubgroupID(), k.subgroups()), b.Mod(b.LocalID(), k.groupThreads())
			t.region = b.Mul(t.group, k.region())
			t.col = b.Mul(at, k.each())
			place := b.Mod(b.SubgroupID(), k.subgroups())
			t.subRow = b.Mul(b.Div(place, across), k.subRows)
			t.subCol = b.Mul(b.Mod(place, across), k.subOutputs)
			t.sum = kernel.F32.Matrix(fragment.Square, fragment.Square, kernel.Accumulator)
			t.run()
		})
	}
}

func (t *coopKernel) run() {
	b := t.b
	for range t.subRows / fragment.Square {
		var list []*kernel.Var
		for range t.subOutputs / fragment.Square {
			list = append(list, b.Var(t.sum, b.MatFill(t.sum, 0)))
		}
		t.sums = append(t.sums, list)
	}
	span := t.span()
	blocks := b.Div(t.a.k, span*weight.CoopDepth*t.groups) // of a group
	streams := t.streams()
	for _, s := range streams {
		s.start(b, t.group, span)
	}
	b.ForRolled(0, blocks, 1, func(i kernel.Value) {
		// The last block fetches itself again.
		block := b.Add(b.Mul(i, t.groups), t.group)
		next := b.Add(b.Mul(b.Min(b.Add(i, 1), b.Sub(blocks, 1)), t.groups), t.group)
		for p := range span {
			b.Barrier()
			for _, s := range streams {
				s.store(p)
			}
			for _, s := range streams {
				s.fetch(b, block, next, p, span)
			}
			b.Barrier()
			t.multiply()
		}
		for _, s := range streams {
			s.turn()
		}
	})
	t.store()
}

// stream is what a lane brings into shared memory, iteration by iteration: an item, loaded some
// iterations ahead.
type stream struct {
	weight.CoopItem
	write      func(octets []kernel.Value)
	ahead      int
	head, next []*kernel.Var   // of this block and the next one
	loaded     [][]*kernel.Var // by iteration, modulo ahead
}

// start loads what the first iterations need.
func (s *stream) start(b *kernel.Builder, block kernel.Value, span int) {
	s.ahead = min(s.ahead, span)
	vars := func(values []kernel.Value) []*kernel.Var {
		var list []*kernel.Var
		for _, v := range values {
			list = append(list, b.Var(v.Type(), v))
		}
		return list
	}
	if s.CoopItem.Head != nil {
		first := s.CoopItem.Head(block)
		s.head, s.next = vars(first), vars(first)
	}
	for p := range s.ahead {
		s.loaded = append(s.loaded, vars(s.Load(block, p)))
	}
}

// store puts iteration p of the block into shared memory.
func (s *stream) store(p int) {
	s.write(s.Octets(gets(s.head), gets(s.loaded[p%s.ahead]), p))
}

// fetch loads what is needed in some iterations, once iteration p of block is stored.
func (s *stream) fetch(b *kernel.Builder, block, next kernel.Value, p, span int) {
	if p == 0 && s.CoopItem.Head != nil {
		sets(s.next, s.CoopItem.Head(next))
	}
	if q := p + s.ahead; q < span {
		sets(s.loaded[p%s.ahead], s.Load(block, q))
	} else {
		sets(s.loaded[p%s.ahead], s.Load(next, q-span))
	}
}

// turn goes to the next block.
func (s *stream) turn() { sets(s.head, gets(s.next)) }

func gets(vars []*kernel.Var) []kernel.Value {
	var list []kernel.Value
	for _, v := range vars {
		list = append(list, v.Get())
	}
	return list
}

func sets(vars []*kernel.Var, values []kernel.Value) {
	for i, v := range vars {
		v.Set(values[i])
	}
}

// streams returns the lane's streams.
func (t *coopKernel) streams() []*stream {
	list := t.streamsX()
	for m := range t.p.matrices {
		list = append(list, t.streamsW(m)...)
	}
	return list
}

// packed reports whether the runs of an item, which lie apart in the row, lie together
// in shared memory, so that the lanes that store items use different banks. The
// order of the octets of an iteration is that of all matrices, and of x.
func (t *coopKernel) packed() bool {
	for _, m := range t.p.matrices {
		if m.Format.Copy.Stride == 0 {
			return false
		}
	}
	return true
}

// spread calls one for every item, of n, that this lane takes, with whether there is one.
// Those of a subgroup are neighbours.
func (t *coopKernel) spread(n int, one func(item kernel.Value, exists *kernel.Value) *stream) []*stream {
	b := t.b
	count := site.CeilDiv(n, t.groupThreads())
	var list []*stream
	for i := range count {
		item := b.Add(t.lane, i*t.groupThreads())
		if n%t.groupThreads() == 0 {
			list = append(list, one(item, nil))
			continue
		}
		exists := b.Lt(item, n)
		list = append(list, one(b.Min(item, n-1), &exists)) // what others have too
	}
	return list
}

// put stores octets of an iteration if exists holds.
func (t *coopKernel) put(exists *kernel.Value, at kernel.Value, place func(i int) int) func(octets []kernel.Value) {
	b := t.b
	return func(octets []kernel.Value) {
		all := func() {
			for i, v := range octets {
				t.shared.Store(b.Add(at, place(i)), v)
			}
		}
		if exists == nil {
			all()
		} else {
			b.If(*exists, all)
		}
	}
}

// streamsX returns the octets of the tile's rows; a lane takes the same of several
// rows.
func (t *coopKernel) streamsX() []*stream {
	b := t.b
	return t.spread(t.coopTile.rows*coopOctets, func(item kernel.Value, exists *kernel.Value) *stream {
		r, o := b.Div(item, coopOctets), b.Mod(item, coopOctets)
		from := b.Add(b.Mul(t.source(r), b.Div(t.a.k, 8)), o)
		if t.packed() {
			o = b.Or(b.And(o, 1), b.Shr(b.And(o, 4), 1), b.Shl(b.And(o, 2), 1))
		}
		return &stream{ahead: t.aheadX, write: t.put(exists, b.Add(t.region, b.Mul(r, coopStride), o), func(int) int { return 0 }),
			CoopItem: weight.CoopItem{
				Load: func(block kernel.Value, p int) []kernel.Value {
					return []kernel.Value{t.a.x.Load(lane.U32x4, b.Add(from, b.Mul(block, t.span()*coopOctets), p*coopOctets))}
				},
				Octets: func(_, loaded []kernel.Value, _ int) []kernel.Value {
					return []kernel.Value{weight.OctetOf(b, loaded[0])}
				},
			}}
	})
}

// streamsW returns the items of the tile's rows of matrix m. Rows beyond the last
// repeat it.
func (t *coopKernel) streamsW(m int) []*stream {
	b, w := t.b, t.p.matrices[m]
	f := w.Format.Copy
	d := weight.NewCoopDecoder(b, t.rows)
	return t.spread(t.each()*f.Items, func(item kernel.Value, exists *kernel.Value) *stream {
		n, part := b.Div(item, f.Items), b.Mod(item, f.Items)
		row := t.p.row(b, m, b.Min(b.Add(t.col, n), b.Sub(t.p.width, 1)))
		run, place := f.Run, func(i int) int { return i/f.Run*f.Stride + i%f.Run }
		if t.packed() {
			run, place = coopOctets/f.Items, func(i int) int { return i }
		}
		at := b.Add(t.region, b.Mul(n, coopStride), b.Mul(part, run), (t.coopTile.rows+m*t.each())*coopStride)
		s := &stream{ahead: t.ahead, write: t.put(exists, at, place), CoopItem: f.Open(d, w, row, part)}
		if load := s.CoopItem.Load; f.Span < t.span() {
			s.CoopItem.Load = func(block kernel.Value, p int) []kernel.Value {
				return load(b.Add(b.Mul(block, t.span()), p), 0)
			}
		}
		return s
	})
}

// multiply adds the products of what is in shared memory.
func (t *coopKernel) multiply() {
	b := t.b
	xs := kernel.F16.Matrix(fragment.Square, fragment.Square, kernel.MatrixA)
	ws := kernel.F16.Matrix(fragment.Square, fragment.Square, kernel.MatrixB)
	row := b.Add(t.region, b.Mul(t.subRow, coopStride))
	col := b.Add(t.region, b.Mul(t.subCol, coopStride), t.coopTile.rows*coopStride)
	for k := 0; k < coopOctets; k += fragment.Square / 8 {
		if k > 0 && t.fence {
			b.SubgroupBarrier()
		}
		var x []kernel.Value
		for r := range t.sums {
			x = append(x, t.shared.LoadMatrix(xs, b.Add(row, r*fragment.Square*coopStride+k), coopStride, kernel.RowMajor))
		}
		for c := range t.sums[0] {
			w := t.shared.LoadMatrix(ws, b.Add(col, c*fragment.Square*coopStride+k), coopStride, kernel.ColumnMajor)
			for r := range t.sums {
				sum := t.sums[r][c]
				sum.Set(b.MatMulAdd(x[r], w, sum.Get()))
			}
		}
	}
}

// store finishes and writes the tile: every subgroup puts 16 rows of its sums at a
// time into shared memory, where the lanes of the workgroup find 4 neighbours each, of
// all matrices and groups. All that is loaded for 16 rows is asked for before any of it
// is used.
func (t *coopKernel) store() {
	b := t.b
	down, across := t.coopTile.rows/t.subRows, t.outputs/t.subOutputs // subgroups of a group
	slot := fragment.Square * t.outStride()
	mine := b.Mul(b.SubgroupID(), slot)
	for r := range t.sums {
		b.Barrier()
		for c, sum := range t.sums[r] {
			t.shared.StoreMatrix(b.Add(mine, c*fragment.Square/4), t.outStride(), kernel.RowMajor, sum.Get())
		}
		b.Barrier()
		var stores []func()
		n := down * fragment.Square * t.each() / 4
		for from := 0; from < n; from += t.threads() {
			i := b.Add(b.LocalID(), from)
			exists := b.Lt(i, n)
			i = b.Min(i, n-1)
			y, x := b.Div(i, t.each()/4), b.Mod(i, t.each()/4)
			sub, y := b.Div(y, fragment.Square), b.Mod(y, fragment.Square)
			row := b.Add(t.row, b.Mul(sub, t.subRows), y, r*fragment.Square)
			col := b.Add(b.Div(t.col, 4), x)
			var v []kernel.Value
			for m := range t.p.matrices {
				n := b.Add(x, m*t.each()/4)
				at := b.Add(b.Mul(b.Add(b.Mul(sub, across), b.Div(n, t.subOutputs/4)), slot), b.Mul(y, t.outStride()), b.Mod(n, t.subOutputs/4))
				sum := b.Bitcast(lane.F32x4, t.shared.Load(at))
				for g := 1; g < t.groups; g++ {
					sum = b.Add(sum, b.Bitcast(lane.F32x4, t.shared.Load(b.Add(at, g*t.subgroups()*slot))))
				}
				v = append(v, sum)
			}
			stores = append(stores, t.finish(v, row, col, exists))
		}
		for _, s := range stores {
			s()
		}
	}
}
