package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// sharedVec4 is the vec4 of shared memory of a workgroup, of all devices with fragments.
const sharedVec4 = 48 << 10 / 16

// pooledX is x in shared memory, for all subgroups of the workgroup: some octets of a block
// of each group at a time, in two buffers. While one is multiplied, the other is filled.
type pooledX struct {
	*fragmentRun
	items []pooledItem
	held  []*kernel.Var // of the step after the next
}

// pooledItem is an octet of x that a lane brings, of every iteration.
type pooledItem struct {
	from, to kernel.Value  // in the row, beside what is the same for all lanes; in a buffer
	exists   *kernel.Value // nil if it does for all lanes
}

// fragmentOctets are the octets of a block that a lane multiplies.
const fragmentOctets = 4 * weight.FragmentIterations

// depth is how many of them x is brought for at a time.
func (k gemmFragment) depth() int {
	depth := fragmentOctets
	for depth > 1 && 2*k.groups*depth*4*k.tileRows() > k.space() {
		depth /= 2
	}
	return depth
}

// xBuffer is the vec4 of a buffer of x.
func (k gemmFragment) xBuffer() int { return k.groups * k.depth() * 4 * k.tileRows() }

// pooledVec4 is that of both buffers.
func (k gemmFragment) pooledVec4() int { return 2 * k.xBuffer() }

// poolX distributes the octets of an iteration to the lanes of the workgroup: neighbours have
// neighbour octets of a row, then those of the next one.
func (t *fragmentRun) poolX() *pooledX {
	b := t.b
	list := &pooledX{fragmentRun: t}
	fixed := map[int]bool{t.sharing.Iteration: t.depth() < 8, t.sharing.O[1]: t.depth() < 4, t.sharing.O[0]: t.depth() < 2}
	for from := 0; from < t.xBuffer(); from += t.threads() {
		id := b.Add(b.LocalID(), from)
		var item pooledItem
		if from+t.threads() > t.xBuffer() {
			exists := b.Lt(id, t.xBuffer())
			item.exists, id = &exists, b.Min(id, t.xBuffer()-1)
		}
		octet := b.U32(0) // of the block
		for bit := range 5 {
			if !fixed[bit] {
				octet = b.Or(octet, b.Shl(b.And(id, 1), bit))
				id = b.Shr(id, 1)
			}
		}
		r, group := b.Mod(id, t.tileRows()), b.Div(id, t.tileRows())
		item.from = b.Add(b.Mul(t.source(r), b.Div(t.a.k, 8)), b.Mul(group, weight.FragmentBlock/8), octet)
		if t.split != nil {
			item.from = b.Add(item.from, b.Mul(t.split.split, t.blocksOf(), t.groups*weight.FragmentBlock/8))
		}
		laneID, o := t.sharing.Place(b, octet)
		item.to = b.Add(b.Mul(b.Add(b.Mul(group, t.depth()), o), 4*t.tileRows()), swizzle(b, b.Add(b.Mul(r, 4), laneID), o))
		list.items = append(list.items, item)
	}
	return list
}

// swizzle spreads what lanes store of neighbour octets over the banks of shared memory.
func swizzle(b *kernel.Builder, place, octet kernel.Value) kernel.Value {
	return b.Xor(place, b.Or(b.Shl(b.And(octet, 1), 2), b.And(octet, 2)))
}

// fetch loads the octets that are multiplied from octet o on, counted from the i-th block
// of each group, if there are as many blocks; of tiles in series they begin anew.
func (x *pooledX) fetch(i, blocks kernel.Value, o int) []kernel.Value {
	b := x.b
	i = b.Add(i, o/fragmentOctets)
	if x.series > 1 {
		i = b.Mod(i, blocks)
	}
	at := b.Add(b.Mul(i, x.groups*weight.FragmentBlock/8), x.sharing.Octet(b, b.U32(0), b.U32(uint32(o%4)), o/4%weight.FragmentIterations))
	var list []kernel.Value
	for _, item := range x.items {
		from := b.Add(item.from, at)
		if o >= fragmentOctets && x.series == 1 {
			from = b.Select(b.Lt(i, blocks), from, 0)
		}
		list = append(list, x.a.x.Load(lane.U32x4, from))
	}
	return list
}

// put stores what was loaded of iteration i, counted over all blocks.
func (x *pooledX) put(i kernel.Value, octets []kernel.Value) {
	b := x.b
	at := x.buffer(i)
	for j, item := range x.items {
		store := func() { x.shared.Store(b.Add(item.to, at), weight.FragmentOctet(b, octets[j])) }
		if item.exists != nil {
			b.If(*item.exists, store)
		} else {
			store()
		}
	}
}

// buffer returns where that of iteration i begins.
func (x *pooledX) buffer(i kernel.Value) kernel.Value { return x.b.Mul(x.b.And(i, 1), x.xBuffer()) }

func (x *pooledX) start(kernel.Value) {
	b := x.b
	blocks := x.blocksOf()
	first := x.fetch(b.U32(0), blocks, 0)
	for _, v := range x.fetch(b.U32(0), blocks, x.depth()) {
		x.held = append(x.held, b.Var(lane.U32x4, v))
	}
	x.put(b.U32(0), first)
}

func (x *pooledX) octet(at fragmentAt, p, o int) func(rows int) kernel.Value {
	b := x.b
	o += 4 * p
	iteration := b.U32(uint32(o / x.depth()))
	if x.depth() == fragmentOctets {
		iteration = at.iteration
	}
	switch o % x.depth() {
	case 0:
		b.Barrier() // the buffer is full, and all are through with the other one
		if x.depth() > 1 {
			break
		}
		fallthrough
	case x.depth() / 2: // while others multiply
		x.put(b.Add(iteration, 1), gets(x.held))
		sets(x.held, x.fetch(at.i, at.blocks, o-o%x.depth()+2*x.depth()))
	}
	o %= x.depth()
	mine := b.Add(b.Mul(x.group, x.depth()*4*x.tileRows()), swizzle(b, b.SubgroupLane(), b.U32(uint32(o))), x.buffer(iteration))
	return func(rows int) kernel.Value {
		return x.shared.Load(b.Add(mine, (o*x.tileRows()+rows*fragment.Columns)*4))
	}
}
