package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/target"
)

// gemm_dot is gemm for an x in 8-bit fixed point, whose products with the codes of the
// weights are dot products of four bytes. The tile's elements of x are rounded on their
// way into shared memory. Each iteration of the loop takes 64 elements of the rows: two
// blocks of 32, each of two halves of 16. A block of x has a scale and, for weights with
// an offset, sums; a row of the weights has a scale and an offset for each block, or
// for each half.
//
//	sum += scale of x * (scale * dot product + offset * sum of x)
const (
	dotDepth  = 64
	dotBlock  = 32 // the elements of x that share a scale: those of op fixed8
	dotBlocks = dotDepth / dotBlock
	// dotStride is the vec4 from row to row in shared memory: see gemmStride.
	dotStride = dotDepth/weight.FixedHalf + 1
	fixed8Max = 127
)

func GemmDotCandidates(s *site.Site, g *Group) []site.Candidate {
	step, ok := g.step(s)
	if !ok || !g.inBytes() {
		return nil
	}
	var list []site.Candidate
	for _, shape := range dotShapes(g, s.Target) {
		list = append(list, gemm{g, step, shape}.candidate("gemm_dot", runDot))
	}
	return list
}

// inBytes reports whether all matrices may be multiplied with an x in 8-bit fixed point.
func (g *linearGroup) inBytes() bool {
	if !g.alike() || !weight.FitsDot(g.k) {
		return false
	}
	for _, p := range g.projects {
		for _, w := range p.matrices {
			if w.format.Bytes == nil || g.fixed != nil && !p.fixed {
				return false
			}
		}
	}
	return true
}

// dotShape is the tile of 16, 32, 64 or 128 rows. The more outputs it has, the less its
// rounding and decoding count. Registers bound the outputs where workgroups are small and
// load more in each lane.
func (g *linearGroup) dotShape(rows int) gemmShape {
	s := gemmShape{lanes: min(4*rows, 256), cols: 8, loaders: dotDepth / weight.FixedHalf}
	if s.lanes < 256 && len(g.projects[0].matrices) > 1 {
		s.cols = 4
	}
	s.perLane = rows / s.rowStride()
	return s
}

// processorDot is the tile for a processor, whose compiler takes long for many sums.
var processorDot = gemmShape{lanes: 64, perLane: 4, cols: 2, loaders: dotDepth / weight.FixedHalf}

// subgroupDot is that of one subgroup.
var subgroupDot = gemmShape{lanes: 16, perLane: 4, cols: 2, loaders: dotDepth / weight.FixedHalf}

// dotShapes returns the tiles, best guess first: as many rows as there are, as long as
// all units of the device have work, or half of them; or twice as many, if the lanes have
// registers for their sums.
func dotShapes(g *linearGroup, t *target.Target) []gemmShape {
	if t.Wave < 16 {
		return []gemmShape{processorDot}
	}
	busy := func(rows int) bool {
		return g.rows > rows/2 && g.tiles(g.dotShape(rows).outputs())*site.CeilDiv(g.rows, rows) >= t.Units
	}
	rows := 64
	for rows > 16 && !busy(rows) {
		rows /= 2
	}
	list := []gemmShape{g.dotShape(rows)}
	if rows > 16 {
		list = append(list, g.dotShape(rows/2))
	}
	if len(g.projects[0].matrices) == 1 && rows == 64 && busy(128) {
		list = append(list, g.dotShape(128))
	}
	return list
}

// dotTile is a gemmTile whose shared arrays hold bytes.
type dotTile struct {
	*gemmTile
	fine, offset bool // of any projection
	x            *kernel.Array
	xScales      *kernel.Array // by row, block
	xSums        *kernel.Array // by row, block, half
	w            []*kernel.Array
	scales       []*kernel.Array // by output, block and, if they are fine, half
	offsets      []*kernel.Array
}

// runDot emits the kernel behind what finds the tile.
func runDot(g *gemmTile) {
	t := &dotTile{gemmTile: g}
	t.allocate()
	t.loop(func() kernel.Value { return t.b.Div(t.a.k, dotDepth) }, func(p *projectArgs, at kernel.Value, pass []int, iteration kernel.Value, first bool) {
		t.loadX(p.matrices[pass[0]].Format.Bytes, iteration, first)
		for j, m := range pass {
			t.loadW(j, p, m, t.b.Mul(at, t.outputs()), iteration)
		}
	}, t.multiply)
}

func (t *dotTile) allocate() {
	b := t.b
	for _, p := range t.projects {
		for _, w := range p.matrices {
			f := w.format.Bytes
			t.fine, t.offset = t.fine || f.Fine, t.offset || f.Offset && f.Bias == 0
		}
	}
	t.x = b.Shared(lane.U32x4, t.tileRows()*dotStride)
	t.xScales = b.Shared(kernel.F32, t.tileRows()*dotBlocks)
	if t.offset {
		t.xSums = b.Shared(kernel.F32, t.tileRows()*dotBlocks*2)
	}
	for range t.projects[0].passes()[0] {
		t.w = append(t.w, b.Shared(lane.U32x4, t.outputs()*dotStride))
		t.scales = append(t.scales, b.Shared(kernel.F32, t.outputs()*dotBlocks*t.parts()))
		if t.offset {
			t.offsets = append(t.offsets, b.Shared(kernel.F32, t.outputs()*dotBlocks*t.parts()))
		}
	}
	t.allocateSums()
}

// parts is how many scales a block of the weights has.
func (t *dotTile) parts() int {
	if t.fine {
		return 2
	}
	return 1
}

// loadX rounds the next 64 elements of the tile's rows. Two lanes load a block; rows that
// do not exist are zero.
func (t *dotTile) loadX(f *weight.DotFormat, iteration kernel.Value, first bool) {
	b := t.b
	block, half := b.And(b.Shr(t.lane, 1), 1), b.And(t.lane, 1)
	begin := blockBegin(f, b, iteration, block)
	at := b.Add(b.Div(begin, 4), b.Mul(half, weight.FixedHalf/4))
	down := t.lanes / t.loaders
	for j := range t.tileRows() / down {
		r := b.Add(b.Div(t.lane, t.loaders), down*j)
		row := b.Add(t.row, r)
		var x []*kernel.Var
		for range weight.FixedHalf / 4 {
			x = append(x, b.Var(lane.F32x4, 0.0))
		}
		b.If(b.Lt(row, t.rows), func() {
			if t.sorted != nil {
				row = t.sorted.sources[j]
			}
			from := b.Add(b.Mul(row, b.Div(t.a.k, 4)), at)
			for i := range x {
				v := t.a.x.Load(lane.F32x4, b.Add(from, i))
				if t.gain != nil && first {
					t.square(v, j)
				}
				if t.gain != nil {
					v = b.Mul(v, t.a.gain.Load(lane.F32x4, b.Add(at, i)))
				}
				x[i].Set(v)
			}
		})
		var values []kernel.Value
		for _, v := range x {
			values = append(values, v.Get())
		}
		codes, scale := toBytes(b, values)
		t.x.Store(b.Add(b.Mul(r, dotStride), b.Mul(block, 2), half), codes)
		b.If(b.Eq(half, 0), func() { t.xScales.Store(b.Add(b.Mul(r, dotBlocks), block), scale) })
		if t.offset {
			t.xSums.Store(b.Add(b.Mul(r, dotBlocks*2), b.Mul(block, 2), half), b.Convert(kernel.F32, byteSum(b, codes)))
		}
	}
}

// blockBegin returns the first element of a block of an iteration.
func blockBegin(f *weight.DotFormat, b *kernel.Builder, iteration, block kernel.Value) kernel.Value {
	if f.Whole() {
		return b.Add(b.Mul(iteration, dotDepth), b.Mul(block, dotBlock))
	}
	return b.Add(b.Mul(f.Place(b, b.Mul(iteration, 2)).Half, weight.FixedHalf), b.Mul(block, f.Stride))
}

// toBytes rounds 16 elements of x, half of a block whose other half the neighbour lane
// has, as op fixed8 does.
func toBytes(b *kernel.Builder, x []kernel.Value) (codes, scale kernel.Value) {
	most := b.F32(0)
	for _, v := range x {
		for e := range 4 {
			most = b.Max(most, b.Abs(b.Elem(v, e)))
		}
	}
	most = b.Max(most, b.SubgroupShuffleXor(most, 1))
	// Below, x counts as 0: see toFixed.
	inverse := b.Select(b.Gt(most, 1e-30), b.Div(b.F32(fixed8Max), b.Max(most, 1e-30)), 0)
	var words []kernel.Operand
	for _, v := range x {
		// In the low bits of 3*2^22 + n is n.
		n := b.Bitcast(lane.U32x4, b.FMA(v, b.Splat(inverse, 4), b.Splat(b.F32(3<<22), 4)))
		even := b.Or(b.And(b.Elem(n, 0), 0xffff), b.Shl(b.Elem(n, 2), 16))
		odd := b.Or(b.And(b.Elem(n, 1), 0xffff), b.Shl(b.Elem(n, 3), 16))
		words = append(words, b.Or(b.And(even, 0x00ff00ff), b.Shl(b.And(odd, 0x00ff00ff), 8)))
	}
	return b.Vec(words...), b.Mul(most, 1.0/fixed8Max)
}

// byteSum returns the sum of the 16 signed bytes of a U32.Vec(4).
func byteSum(b *kernel.Builder, codes kernel.Value) kernel.Value {
	sum := b.DotI8(b.Elem(codes, 0), b.U32(0x01010101))
	for i := 1; i < 4; i++ {
		sum = b.Add(b.DotI8(b.Elem(codes, i), b.U32(0x01010101)), sum)
	}
	return sum
}

// loadW takes the next 64 elements of the rows of matrix i from col on apart, into place
// to of the shared arrays. A lane takes whole units; a step has two. Rows that do
// not exist repeat the last that does: they are not stored.
func (t *dotTile) loadW(to int, p *projectArgs, i int, col, iteration kernel.Value) {
	b, m := t.b, p.matrices[i]
	f := m.Format.Bytes
	for from := 0; from < t.outputs()*2; from += t.lanes {
		item := b.Add(t.lane, from)
		n, j := b.Div(item, 2), b.Mod(item, 2)
		row := p.row(b, i, b.Min(b.Add(col, n), b.Sub(p.width, 1)))
		u := b.Add(b.Mul(iteration, 2), j)
		unit := f.Decode(b, f.Fetch(b, m, row, f.Place(b, u)), u)
		for h, codes := range unit.Codes {
			var words []kernel.Operand
			for _, c := range codes {
				if h == 1 && unit.Times16 {
					c = b.Shr(c, 4)
				}
				if f.Bias != 0 {
					// No carries: the codes are less than 2*bias.
					c = b.Xor(b.Add(c, uint32(128-f.Bias)*0x01010101), uint32(0x80808080))
				}
				words = append(words, c)
			}
			at := b.Add(b.U32(uint32(2*h)), j) // block h, half j
			if f.Whole() {
				at = b.Add(b.Mul(j, 2), h)
			}
			t.w[to].Store(b.Add(b.Mul(n, dotStride), at), b.Vec(words...))
		}
		t.storeScales(to, f, n, j, unit.Scales())
	}
}

// storeScales keeps the scales of unit j of an iteration: of half j of both blocks, or of both halves
// of block j if that is a unit or, if they are not fine, of block j.
func (t *dotTile) storeScales(to int, f *weight.DotFormat, n, j kernel.Value, scales []weight.DotScale) {
	b := t.b
	keep := func(block, part kernel.Value, s weight.DotScale) {
		at := b.Add(b.Mul(n, dotBlocks*t.parts()), b.Mul(block, t.parts()), part)
		t.scales[to].Store(at, s.Scale)
		if t.offset {
			offset := b.F32(0)
			if f.Offset && f.Bias == 0 {
				offset = s.Offset
			}
			t.offsets[to].Store(at, offset)
		}
	}
	if f.Fine {
		for h, s := range scales {
			if f.Whole() {
				keep(j, b.U32(uint32(h)), s)
			} else {
				keep(b.U32(uint32(h)), j, s)
			}
		}
		return
	}
	for part := range t.parts() {
		keep(j, b.U32(uint32(part)), scales[0])
	}
}

// multiply adds the products of what is in shared memory.
func (t *dotTile) multiply(pass []int) {
	b := t.b
	b.ForUnroll(0, dotBlocks, 1, func(block kernel.Value) {
		var rows []dotBlockX
		for r := range t.perLane {
			rows = append(rows, t.rowBlock(b.Add(b.Div(t.lane, gemmColStride), t.rowStride()*r), block))
		}
		for j, m := range pass {
			for c := range t.cols {
				w := t.outputBlock(j, b.Add(b.Mod(t.lane, gemmColStride), gemmColStride*c), block)
				for r, x := range rows {
					sum := t.sums[m][r][c]
					sum.Set(b.FMA(x.scale, t.product(w, x), sum.Get()))
				}
			}
		}
	})
}

// dotBlockX is a block of a row of x, or of a row of the weights, with what it has for each
// half.
type dotBlockX struct {
	codes [2]kernel.Value
	scale kernel.Value
	sums  []kernel.Value
}

type dotBlockW struct {
	codes           [2]kernel.Value
	scales, offsets []kernel.Value
}

func (t *dotTile) rowBlock(row, block kernel.Value) dotBlockX {
	b := t.b
	at := b.Add(b.Mul(row, dotStride), b.Mul(block, 2))
	x := dotBlockX{codes: [2]kernel.Value{t.x.Load(at), t.x.Load(b.Add(at, 1))},
		scale: t.xScales.Load(b.Add(b.Mul(row, dotBlocks), block))}
	if t.offset {
		at := b.Mul(b.Add(b.Mul(row, dotBlocks), block), 2)
		x.sums = []kernel.Value{t.xSums.Load(at), t.xSums.Load(b.Add(at, 1))}
		if !t.fine {
			x.sums = []kernel.Value{b.Add(x.sums[0], x.sums[1])}
		}
	}
	return x
}

func (t *dotTile) outputBlock(j int, n, block kernel.Value) dotBlockW {
	b := t.b
	at := b.Add(b.Mul(n, dotStride), b.Mul(block, 2))
	w := dotBlockW{codes: [2]kernel.Value{t.w[j].Load(at), t.w[j].Load(b.Add(at, 1))}}
	at = b.Mul(b.Add(b.Mul(n, dotBlocks), block), t.parts())
	for i := range t.parts() {
		w.scales = append(w.scales, t.scales[j].Load(b.Add(at, i)))
		if t.offset {
			w.offsets = append(w.offsets, t.offsets[j].Load(b.Add(at, i)))
		}
	}
	return w
}

// product returns the product of two blocks, without the scale of x.
func (t *dotTile) product(w dotBlockW, x dotBlockX) kernel.Value {
	b := t.b
	var dots []kernel.Value // by part
	for half := range 2 {
		for e := range 4 {
			d := b.DotI8(b.Elem(w.codes[half], e), b.Elem(x.codes[half], e))
			if i := len(dots) - 1; e == 0 && (t.fine || half == 0) {
				dots = append(dots, d)
			} else {
				dots[i] = b.Add(d, dots[i])
			}
		}
	}
	sum := b.Mul(w.scales[0], b.Convert(kernel.F32, dots[0]))
	for i := 1; i < len(dots); i++ {
		sum = b.FMA(w.scales[i], b.Convert(kernel.F32, dots[i]), sum)
	}
	for i := range w.offsets {
		sum = b.FMA(w.offsets[i], x.sums[i], sum)
	}
	return sum
}
