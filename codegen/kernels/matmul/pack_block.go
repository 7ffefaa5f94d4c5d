package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
)

// Of a block of packed x there are, for each column, vec4 of codes, by run, half of it and half of a matrix, then of
// totals, upper and lower ones by half of a matrix; behind these wideVecs one of the scales of four columns.
const (
	wideTotals = ir.PackCodes
	wideVecs   = ir.PackScales
	packedVecs = wideVecs + 1
)

// packedLanes says how products with weights of a format read x: see op pack12.
func packedLanes(f *weight.FixedFormat) string {
	word := func(is bool, yes, no string) string {
		if is {
			return yes
		}
		return no
	}
	odd := f.Super && f.Exponents[0] != f.Exponents[1] // then products in all slots have the same exponent
	return word(f.Apart, "a", "n") + word(odd, "o", "-") + word(f.Super && f.Stored(), word(f.Fine, "h", "w"), "-")
}

// A row of a block is sixteen lanes', each of which has every sixteenth vec4 of it.
const (
	blockLanes = 16
	blockVecs  = fixedBlock / 4 / blockLanes
	blockRoom  = fixedColumns * blockLanes // lanes of a workgroup, which has a block of eight rows
)

// blockLane is what a lane has of a block of a row.
type blockLane struct {
	b     *kernel.Builder
	lane  kernel.Value // of the sixteen
	row   kernel.Value // of the step
	there kernel.Value // whether the step has that row
}

// newBlockLane finds the lane's row of so many: axis 2 of the grid has them by columns, axis 1 these by eight.
func newBlockLane(b *kernel.Builder, rows kernel.Value, columns int) blockLane {
	group := b.Add(b.Mul(b.WorkgroupID(2), columns/fixedColumns), b.WorkgroupID(1))
	row := b.Add(b.Mul(group, fixedColumns), b.Div(b.LocalID(), blockLanes))
	return blockLane{b, b.Mod(b.LocalID(), blockLanes), row, b.Lt(row, rows)}
}

// vec is which vec4 of the block the lane's n-th is.
func (l blockLane) vec(n int) kernel.Value { return l.b.Add(l.lane, n*blockLanes) }

// load loads the lane's part of block at of its row.
func (l blockLane) load(x *kernel.Buffer, width, at kernel.Value) (list [blockVecs]kernel.Value) {
	b := l.b
	from := b.Add(b.Mul(l.row, b.Div(width, 4)), b.Mul(at, fixedBlock/4))
	for n := range list {
		list[n] = x.Load(lane.F32x4, b.Add(from, l.vec(n)))
	}
	return list
}

// squares adds up the squares of each 128 elements: of four neighbours one after the other, then in pairs of
// neighbours, as gemm_fixed does.
func (l blockLane) squares(x [blockVecs]kernel.Value) (sums []kernel.Value) {
	b := l.b
	var list []kernel.Value
	for _, v := range x {
		var sum lane.Partial
		for e := range 4 {
			sum.Product(b, b.Elem(v, e), b.Elem(v, e))
		}
		all := sum.Sum
		for mask := 1; mask < blockLanes; mask *= 2 {
			all = b.Add(all, b.SubgroupShuffleXor(all, mask))
		}
		list = append(list, all)
	}
	for i := 0; i < len(list); i += 2 {
		sums = append(sums, b.Add(list[i], list[i+1]))
	}
	return sums
}

// packing is what op pack12 and the op squares beside it leave, and how.
type packing struct {
	op, squares *ir.Op // squares is nil if nobody wants them
	lanes       []ir.PackLanes
	columns     int // rows that lie together
	tiles, k    int // how many times as many there are, elements of a row
}

// packingOf returns the packing of the ops of a group from one on, which are nothing else; nil if they are something
// else.
func packingOf(ops []*ir.Op, rows int) *packing {
	p, err := ir.PackedOf(ops[0])
	if err != nil || p.Rows != rows || len(ops) > 2 || len(ops) == 2 && (ops[1].Kind.Name != "squares" || ops[1].Args[0] != ops[0].Args[0]) {
		return nil
	}
	k := &packing{op: ops[0], lanes: p.Lanes, columns: p.Columns, tiles: p.Rows / p.Columns, k: p.Blocks * fixedBlock}
	if len(ops) > 1 {
		k.squares = ops[1]
	}
	return k
}

// key says what shapes the code.
func (k *packing) key() string {
	key := "pack12 " + k.op.Attrs.Str("lanes")
	if len(k.op.Args) > 1 {
		key += " gain"
	}
	if k.squares != nil {
		key += " squares"
	}
	return key
}

// packArgs are its arguments and constants in a kernel.
type packArgs struct {
	*packing
	gain, y, sums  *kernel.Buffer
	width, tilesOf kernel.Value
}

func (k *packing) declare(s *site.Signature) *packArgs {
	a := &packArgs{packing: k}
	if len(k.op.Args) > 1 {
		a.gain = s.Read("gain", k.op.Args[1])
	}
	a.y = s.Write("packed", k.op.Result)
	if k.squares != nil {
		a.sums = s.Write("squares", k.squares.Result)
	}
	a.width, a.tilesOf = s.U32("width", k.k, 4096, "elements of a row"), s.U32("tiles", k.tiles, 1, "how many times as many rows as lie together")
	return a
}

// pack rounds block at of a row, and leaves it in all layouts. Rows that the step does not have are zeros.
func (a *packArgs) pack(l blockLane, at kernel.Value, x [blockVecs]kernel.Value) {
	b := l.b
	if a.sums != nil {
		sums := l.squares(x)
		b.If(b.And(l.there, b.Eq(l.lane, 0)), func() {
			for n, sum := range sums {
				a.sums.Store(b.Add(b.Mul(l.row, b.Div(a.width, fixedBlock/len(sums))), b.Mul(at, len(sums)), n), sum)
			}
		})
	}
	for n, v := range x {
		if a.gain != nil {
			v = b.Mul(v, a.gain.Load(lane.F32x4, b.Add(b.Mul(at, fixedBlock/4), l.vec(n))))
		}
		x[n] = b.Select(b.Splat(l.there, 4), v, b.Splat(b.F32(0), 4))
	}
	most := lane.Fold(b, weight.Largest(b, x[:]), 1, blockLanes, func(x, y kernel.Value) kernel.Value { return b.Max(x, y) })
	inverse, whole := b.Splat(weight.InverseScale(b, most), 4), b.Splat(b.F32(3<<22), 4)
	for n, v := range x {
		x[n] = b.Sub(b.FMA(v, inverse, whole), whole)
	}
	scale := b.Bitcast(kernel.U32, b.Mul(most, 1.0/weight.FixedMost))
	for i, lanes := range a.lanes {
		tile := b.Add(b.Div(l.row, a.columns), b.Mul(a.tilesOf, i))
		first := b.Mul(b.Add(b.Mul(tile, b.Div(a.width, fixedBlock)), at), a.columns*packedVecs)
		column := b.Mod(l.row, a.columns)
		put := func(vec, column, word kernel.Value, v kernel.Value) {
			a.y.Store(b.Add(b.Mul(b.Add(first, b.Mul(vec, a.columns), column), 4), word), v)
		}
		l.putCodes(x, lanes, func(vec, word, v kernel.Value) { put(vec, column, word, v) })
		l.putTotals(x, lanes, func(vec, word, v kernel.Value) { put(vec, column, word, v) })
		b.If(b.Lt(l.lane, 4), func() {
			put(b.U32(wideVecs), b.Add(b.And(column, ^uint32(3)), l.lane), b.And(column, 3), scale)
		})
	}
}

// half is whether a lane's elements are of runs of odd number, and within which of the run's vec4 they are.
func (l blockLane) half() (odd, within kernel.Value) {
	return l.b.Shr(l.lane, 3), l.b.And(l.lane, 7)
}

// putCodes puts integers of the lane.
func (l blockLane) putCodes(x [blockVecs]kernel.Value, lanes ir.PackLanes, put func(vec, word, v kernel.Value)) {
	b := l.b
	odd, within := l.half()
	i, word := b.And(within, 1), b.Shr(within, 1)
	if lanes.Apart {
		i, word = b.Shr(within, 2), weight.ApartQuad(b, b.And(within, 3))
	}
	vec := b.Add(b.Mul(odd, 4), b.Mul(i, 2))
	for n, v := range x {
		if lanes.Odd { // exact
			v = b.Mul(v, b.Splat(b.Select(b.Eq(odd, 0), b.F32(1), b.F32(1.0/16)), 4))
		}
		for h := range 2 {
			put(b.Add(vec, 8*n+h), word, b.PackHalf(b.Vec(b.Elem(v, h), b.Elem(v, h+2))))
		}
	}
}

// putTotals puts digits of the totals of runs, or of halves of runs.
func (l blockLane) putTotals(x [blockVecs]kernel.Value, lanes ir.PackLanes, put func(vec, word, v kernel.Value)) {
	b := l.b
	odd, within := l.half()
	first := b.Shr(l.lane, 2) // half of a matrix that lanes 0 to 7 put
	if lanes.Totals == 0 {
		b.If(b.Lt(l.lane, 8), func() {
			for i := range 2 {
				put(b.Add(first, wideTotals+2*i), b.And(l.lane, 3), b.U32(0))
			}
		})
		return
	}
	across := fixedBlock / 4 / lanes.Totals // lanes of a total
	var words [blockVecs][2]kernel.Value
	for n, v := range x {
		sum := lane.Sum(b, lane.Sum4(b, v), 1, across)
		words[n][0], words[n][1] = digits(b, [2]kernel.Value{sum, b.SubgroupShuffleXor(sum, across)})
	}
	if lanes.Totals == 16 {
		b.If(b.Eq(within, 0), func() {
			for n, digits := range words {
				for i, w := range digits {
					put(b.U32(uint32(wideTotals+2*i+n/2)), b.Add(odd, n%2*2), w)
				}
			}
		})
		return
	}
	b.If(b.Lt(l.lane, 8), func() {
		for i := range 2 {
			w := words[0][i]
			for n := 1; n < len(words); n++ {
				w = b.Select(b.Eq(b.And(l.lane, 3), n), words[n][i], w)
			}
			put(b.Add(first, wideTotals+2*i), b.And(l.lane, 3), b.Select(b.Eq(first, 0), w, b.U32(0)))
		}
	})
}
