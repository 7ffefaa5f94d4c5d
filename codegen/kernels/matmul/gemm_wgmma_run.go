package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// groupedX is x in shared memory as four subgroups multiply it: some octets of a block at a time, which
// are a chunk, in three buffers. While one is multiplied, maybe still the one before, too, the third is filled.
//
// A lane brings units: of a row the octet o of all four lanes that share a row of weights, so that it has whole
// pieces of 16 bytes of what is multiplied: of each of the four one word.
type groupedX struct {
	*fragmentRun
	units []groupedUnit
	held  []*kernel.Var // of the next unit
	here  *kernel.Var   // where the buffer of the chunk that is multiplied begins
}

// groupedUnit is where a lane's unit lies in its row, and where it goes in a buffer.
type groupedUnit struct{ from, to kernel.Value }

const (
	groupedBuffers = 3
	// octetPad spreads what lanes store of two neighbour octets of four rows over the banks of shared memory.
	octetPad = 4
)

// chunkOctets are the octets of a chunk, of each of the four lanes that share a row of weights.
func (k gemmFragment) chunkOctets() int { return groupedRows / k.tileRows() }

// groupedRows is the rows of a chunk times its octets.
const groupedRows = 512

// octetStride is the vec4 of an octet of all rows in a buffer.
func (k gemmFragment) octetStride() int { return 4*k.tileRows() + octetPad }

// groupedBuffer is the vec4 of a buffer.
func (k gemmFragment) groupedBuffer() int { return k.chunkOctets() * k.octetStride() }

// unitsOf is the units that a lane brings of a chunk.
func (k gemmFragment) unitsOf() int { return groupedRows / k.threads() }

// groupX shares out the units of a chunk: neighbours have neighbour octets, then four rows.
func (t *fragmentRun) groupX() *groupedX {
	b := t.b
	x := &groupedX{fragmentRun: t}
	for i := range t.unitsOf() {
		id := b.Add(b.LocalID(), i*t.threads())
		rows := b.Shr(id, 1)
		r, o := b.Mod(rows, t.tileRows()), b.Or(b.And(id, 1), b.Mul(b.Div(rows, t.tileRows()), 2))
		from := b.Add(b.Mul(t.source(r), b.Div(t.a.k, 8)), t.sharing.Octet(b, b.U32(0), o, 0))
		if t.split != nil {
			from = b.Add(from, b.Mul(t.split.split, t.blocksOf(), weight.FragmentBlock/8))
		}
		x.units = append(x.units, groupedUnit{from, b.Add(b.Mul(o, t.octetStride()), r)})
	}
	return x
}

// fetch loads unit u of the chunk that begins at octet o, counted from the i-th block, if there are as many
// blocks; of tiles in series they begin anew.
func (x *groupedX) fetch(i, blocks kernel.Value, o, u int) []kernel.Value {
	b := x.b
	i = b.Add(i, o/fragmentOctets)
	from := x.units[u].from
	switch {
	case x.series > 1:
		i = b.Mod(i, blocks)
	case o >= fragmentOctets:
		i = b.Min(i, b.Sub(blocks, 1))
	}
	from = b.Add(from, b.Mul(i, weight.FragmentBlock/8))
	var list []kernel.Value
	for quad := range 4 {
		at := x.sharing.Octet(b, b.U32(uint32(quad)), b.U32(uint32(o%4)), o/4%weight.FragmentSteps)
		list = append(list, x.a.x.Load(lane.U32x4, b.Add(from, at)))
	}
	return list
}

// put stores unit u of a chunk whose buffer begins at base.
func (x *groupedX) put(base kernel.Value, u int, octets []kernel.Value) {
	b := x.b
	for i, v := range octets {
		octets[i] = weight.OctetOf(b, v)
	}
	for j := range 4 {
		var words []kernel.Operand
		for _, v := range octets {
			words = append(words, b.Elem(v, j))
		}
		x.shared.Store(b.Add(base, x.units[u].to, j*x.tileRows()), b.Vec(words...))
	}
}

// start fills the first buffer and loads the first unit of the second.
func (x *groupedX) start() {
	b := x.b
	blocks := x.blocksOf()
	var all [][]kernel.Value
	for u := range x.units {
		all = append(all, x.fetch(b.U32(0), blocks, 0, u))
	}
	for u, octets := range all {
		x.put(b.U32(0), u, octets)
	}
	for _, v := range x.fetch(b.U32(0), blocks, x.chunkOctets(), 0) {
		x.held = append(x.held, b.Var(lane.U32x4, v))
	}
	x.here = b.Var(kernel.U32, 0)
}

// after returns the buffer behind the one that begins at base.
func (x *groupedX) after(base kernel.Value) kernel.Value {
	b := x.b
	return b.Select(b.Eq(base, (groupedBuffers-1)*x.groupedBuffer()), 0, b.Add(base, x.groupedBuffer()))
}

// bring does the lane's part of the next chunk while octet o of the block is multiplied.
func (x *groupedX) bring(at fragmentAt, o int) {
	chunk, each := x.chunkOctets(), x.chunkOctets()/len(x.units)
	if o%each != 0 {
		return
	}
	u := o % chunk / each
	x.put(x.after(x.here.Get()), u, gets(x.held))
	next := o - o%chunk + chunk
	if u++; u == len(x.units) {
		u, next = 0, next+chunk
	}
	sets(x.held, x.fetch(at.i, at.blocks, next, u))
}

// runGrouped goes through the blocks, with x as four subgroups multiply it. While one octet is multiplied, the weights
// of the next are made.
func (t *fragmentRun) runGrouped(series kernel.Value) {
	b := t.b
	items := t.items(t.col, nil)
	x := t.groupX()
	x.start()
	first := t.firstBlock()
	head, held := heads(items, first).held(b), words(items, first, 0).held(b)
	t.blocks(series, func(at fragmentAt) {
		items, next := items, t.items(at.nextCol, at.more)
		if t.series > 1 {
			items = t.items(at.col, nil)
		}
		for p := range weight.FragmentSteps {
			after, block, q := items, at.block, p+1
			if q == weight.FragmentSteps {
				after, block, q = next, at.next, 0
			}
			scales, loaded := head.gets().scales(items, p), held.gets()
			for o := range 4 {
				n := 4*p + o
				if n%t.chunkOctets() == 0 {
					b.Barrier() // the chunk is there, and the one before the last is done with
				}
				t.octetGrouped(items, scales, loaded, x, n)
				x.bring(at, n)
				if o == 3 {
					head.sets(heads(after, block))
					held.sets(words(after, block, q))
				}
				b.MatGroupWait(len(items))
				if (n+1)%t.chunkOctets() == 0 {
					x.here.Set(x.after(x.here.Get()))
				}
			}
		}
	})
}

// octetGrouped has the products of octet n of a block made.
func (t *fragmentRun) octetGrouped(items [][2]weight.FragmentItem, scales, loaded fragmentWords, x *groupedX, n int) {
	b := t.b
	ws := kernel.F16.Matrix(fragment.Side, fragment.Side, kernel.MatrixA)
	at := b.Add(x.here.Get(), n%t.chunkOctets()*t.octetStride())
	for i, pair := range items {
		lo := pair[0].Octet(scales[i][0], loaded[i][0], n%4)
		hi := pair[1].Octet(scales[i][1], loaded[i][1], n%4)
		var list []kernel.GroupProduct
		for e := range 2 {
			a := b.MatPairs(ws, b.Elem(lo, 2*e), b.Elem(lo, 2*e+1), b.Elem(hi, 2*e), b.Elem(hi, 2*e+1))
			list = append(list, kernel.GroupProduct{A: a, At: b.Add(at, 2*e*t.tileRows())})
		}
		b.MatGroupAdd(t.sums[i], t.shared, t.tileRows(), list...)
	}
}
