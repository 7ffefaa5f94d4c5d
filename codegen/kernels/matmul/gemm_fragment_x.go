package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// keptX is x in the registers of the lanes that multiply it: a block of each row.
type keptX struct {
	*fragmentRun
	octets [][][]kernel.Value // by iteration, octet, 8 rows
}

func (x *keptX) start(block kernel.Value) {
	b := x.b
	var from []kernel.Value // where rows begin, in octets
	for c := range x.tileRows() / fragment.Columns {
		row := b.Mul(x.source(b.Add(x.place, c*fragment.Columns)), b.Div(x.a.k, 8))
		from = append(from, b.Add(row, b.Mul(block, weight.FragmentBlock/8)))
	}
	for p := range weight.FragmentIterations {
		var iteration [][]kernel.Value
		for o := range 4 {
			at := x.sharing.Octet(b, x.quad, b.U32(uint32(o)), p)
			var rows []kernel.Value
			for _, row := range from {
				rows = append(rows, x.a.x.Load(lane.U32x4, b.Add(row, at)))
			}
			iteration = append(iteration, rows)
		}
		x.octets = append(x.octets, iteration)
	}
	for _, iteration := range x.octets { // all is loaded before any of it is waited for
		for _, rows := range iteration {
			for c := range rows {
				rows[c] = weight.FragmentOctet(b, rows[c])
			}
		}
	}
}

func (x *keptX) octet(_ fragmentAt, p, o int) func(rows int) kernel.Value {
	return func(rows int) kernel.Value { return x.octets[p][o][rows] }
}

// stagedX is x in shared memory, a block at a time. Each subgroup brings its own.
type stagedX struct {
	*fragmentRun
	region kernel.Value // of the subgroup
	items  []stagedItem
	held   []*kernel.Var // of the next iteration
}

// stagedItem is an octet of x that a lane brings, of every iteration.
type stagedItem struct {
	from, to kernel.Value // in x, in the region
	quad, o  kernel.Value // whose octet it is
}

// strideX is the vec4 from an octet of all rows to the next in shared memory, such that
// two begin in different banks.
func (k gemmFragment) strideX() int { return k.tileRows()*4 + 4 }

// regionX is the vec4 of an iteration of x.
func (k gemmFragment) regionX() int { return 4 * k.strideX() }

// stagedVec4 is that of all iterations of a block, of all groups.
func (k gemmFragment) stagedVec4() int { return k.groups * weight.FragmentIterations * k.regionX() }

// stageX shares out the octets of an iteration to the lanes of the subgroup.
func (t *fragmentRun) stageX() *stagedX {
	b := t.b
	list := &stagedX{fragmentRun: t, region: b.Mul(t.group, weight.FragmentIterations*t.regionX())}
	for from := 0; from < t.tileRows()*weight.FragmentBlock/weight.FragmentIterations/8; from += t.wave {
		// Neighbours have the neighbour octet, then that of the next lane of four, then
		// the next row.
		id := b.Add(b.SubgroupLane(), from)
		r := b.Shr(id, 3)
		x := stagedItem{quad: b.And(b.Shr(id, 1), 3), o: b.Or(b.And(id, 1), b.Shl(b.Div(r, t.tileRows()), 1))}
		r = b.Mod(r, t.tileRows())
		x.from = b.Mul(t.source(r), b.Div(t.a.k, 8))
		x.to = b.Add(b.Mul(x.o, t.strideX()), b.Mul(r, 4), x.quad)
		list.items = append(list.items, x)
	}
	return list
}

// fetch loads a lane's octets of iteration p of a block.
func (x *stagedX) fetch(block kernel.Value, p int) []kernel.Value {
	b := x.b
	block = b.Mul(block, weight.FragmentBlock/8)
	var list []kernel.Value
	for _, i := range x.items {
		list = append(list, x.a.x.Load(lane.U32x4, b.Add(i.from, block, x.sharing.Octet(b, i.quad, i.o, p))))
	}
	return list
}

func (x *stagedX) start(block kernel.Value) {
	for _, v := range x.fetch(block, 0) {
		x.held = append(x.held, x.b.Var(lane.U32x4, v))
	}
}

func (x *stagedX) octet(block fragmentAt, p, o int) func(rows int) kernel.Value {
	b := x.b
	at := b.Add(x.region, p*x.regionX())
	if o == 0 {
		// All lanes are through with what was here: since then there was an iteration with a barrier.
		for j, i := range x.items {
			x.shared.Store(b.Add(at, i.to), weight.FragmentOctet(b, x.held[j].Get()))
		}
		sets(x.held, x.fetch(block.after(p)))
		b.SubgroupBarrier()
	}
	at = b.Add(at, b.SubgroupLane())
	return func(rows int) kernel.Value {
		return x.shared.Load(b.Add(at, o*x.strideX()+rows*4*fragment.Columns))
	}
}
