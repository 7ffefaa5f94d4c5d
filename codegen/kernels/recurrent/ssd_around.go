package recurrent

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

// ssdGroup is a dispatch group around an ssd, of few rows with the convolution that makes its x, or without:
//
//	[slice] ssd
//	[slice] conv1d [[slice] conv_write] [slice] ssd [[slice] glu]
//
// Each workgroup computes the convolution of what it reads: its columns of x, B and C of the group.
type ssdGroup struct {
	op          *ir.Op
	x, dt, z    cutInput // of the convolution if there is one; of op; of the gate
	conv, write *ir.Op   // nil if the group has none
	gate        *ir.Op   // glu of z and the result, or nil
	asks        bool     // for state and ring, before it waits for the dispatch before
}

// matchSSD returns the site's group as an ssdGroup, nil if it is none.
func matchSSD(s *site.Site, op *ir.Op) *ssdGroup {
	g := &ssdGroup{op: op}
	m := &groupMatch{site: s, used: map[*ir.Op]bool{g.op: true}}
	g.dt, g.x = m.input(g.op.Args[1]), cutInput{x: g.op.Args[0]}
	if g.conv = m.maker(g.op.Args[0], "conv1d"); g.conv != nil {
		if !slices.Equal(g.conv.Args[3:5], g.op.Args[6:8]) {
			return nil
		}
		g.x = m.input(g.conv.Args[0])
		g.matchAround(m)
	}
	for _, in := range []cutInput{g.x, g.dt, g.z} {
		if in.x != nil && in.x.Def != nil && slices.Contains(s.Group.Ops, in.x.Def) {
			return nil
		}
	}
	if !m.whole(g.result()) {
		return nil
	}
	return g
}

// matchAround finds what writes the ring of the convolution, and the gate.
func (g *ssdGroup) matchAround(m *groupMatch) {
	ops := m.site.Group.Ops
	for i, op := range ops {
		switch op.Kind.Name {
		case "conv_write":
			if g.write == nil && i > slices.Index(ops, g.conv) && m.input(op.Args[0]) == g.x && slices.Equal(op.Args[1:], g.conv.Args[2:5]) {
				g.write, m.used[op] = op, true
			}
		case "glu":
			if g.gate == nil && op.Args[1] == g.op.Result && op.Args[0] != g.op.Result {
				g.z = m.input(op.Args[0])
				g.gate, m.used[op] = op, true
			}
		}
	}
}

func (g *ssdGroup) result() *ir.Value {
	if g.gate != nil {
		return g.gate.Result
	}
	return g.op.Result
}

// taps is the number of taps of the convolution, and channels the elements of its rows.
func (g *ssdGroup) taps() int     { return int(g.conv.Args[1].Type.Last()) }
func (g *ssdGroup) channels() int { return int(g.op.Args[0].Type.Last()) }

func (g *ssdGroup) convolution() convKernel {
	return convKernel{taps: g.taps(), linear: g.conv.Attrs.Str("act") == "none"}
}

// key says what is around the ssd.
func (g *ssdGroup) key() string {
	if g.conv == nil {
		return ""
	}
	key := fmt.Sprintf(" conv taps=%d%s", g.taps(), g.x.key(g.conv.Args[0]))
	if g.convolution().linear {
		key += " linear"
	}
	if len(g.conv.Args) > 5 {
		key += " bias"
	}
	if g.write != nil {
		key += " write"
	}
	if g.gate != nil {
		key += " " + g.gate.Attrs.Str("act") + g.z.key(g.gate.Args[0])
	}
	if g.asks {
		key += " asks"
	}
	return key
}

// fitsAround reports whether the kernel can have the convolution: it takes all rows as one block, and the target has
// the shared memory; a row of the ring that a step reads is none that it writes.
func (k *ssdKernel) fitsAround(s *site.Site) bool {
	ring, t := k.conv.Args[2], s.Target
	k.asks = t.Thresholds.LoadsEarly && k.rows.Max == 1 && k.slots == 1
	return !t.FewKernels && k.rows.Exact && k.rows.Run <= ssdBlock && k.rows.Run+k.taps()-1 <= int(ring.Type.Shape[1]) && site.Indexable(s, ring, 1) &&
		k.n%4 == 0 && k.held()%4 == 0 && 4*k.block()*(k.items()+2+k.lanes()) <= t.Shared
}

// items is the elements of a token's convolution that a workgroup reads: B, C and its columns of x.
func (k *ssdKernel) items() int { return 2*k.n + k.columns }

// ringTile is the channels of the ring that a workgroup writes.
func (k *ssdKernel) ringTile() int { return site.CeilDiv(k.channels(), k.heads*k.headDim/k.columns) }

// ssdAround are the arguments and constants of what is around the ssd.
type ssdAround struct {
	conv     *convArgs
	pos, z   *kernel.Buffer
	zCut     cutArgs
	ringPart kernel.Value
}

func (r *ssdRun) declareAround(s *site.Signature, pos *kernel.Buffer) *ssdAround {
	a := &ssdAround{pos: pos}
	a.conv = &convArgs{convKernel: r.convolution(), x: r.x, weight: s.Read("weight", r.conv.Args[1]), pos: pos, slot: r.slotBuffer,
		alone: r.rows.Max == 1, cut: r.ssdGroup.x.declareCut(s, "conv", r.conv.Args[0])}
	if r.write != nil {
		a.conv.ring = s.Update("ring", r.conv.Args[2])
		a.ringPart = s.U32("ring_tile", r.ringTile(), 128, "channels that a workgroup writes into the ring")
	} else {
		a.conv.ring = s.Read("ring", r.conv.Args[2])
	}
	a.conv.depth = declareDepth(s, r.conv.Args[2])
	if len(r.conv.Args) > 5 {
		a.conv.bias = s.Read("conv_bias", r.conv.Args[5])
	}
	if r.gate != nil {
		a.z, a.zCut = s.Read("z", r.ssdGroup.z.x), r.ssdGroup.z.declareCut(s, "z", r.gate.Args[0])
	}
	return a
}

// askFor asks for the workgroup's part of the state and for its channels in the ring, of the one slot: a lane for a
// line of 128 bytes. While the dispatch before runs, memory brings them.
func (r *ssdRun) askFor() {
	b := r.b
	const line = 32 // words
	each := site.CeilDiv(r.columns, line)
	column := b.Sub(r.column, b.Mod(b.LocalID(), r.columns))
	b.For(b.LocalID(), r.n*each, r.lanes(), func(i kernel.Value) {
		row := b.Add(b.Mul(r.head, r.n), b.Div(i, each))
		r.stateBuffer.Prefetch(b.Add(b.Mul(row, r.headDim), column, b.Mul(b.Mod(i, each), line)))
	})
	lines := site.CeilDiv(r.items(), line)
	b.For(b.LocalID(), b.Mul(r.around.conv.depth, lines), r.lanes(), func(i kernel.Value) {
		channel := r.channel(b.Min(b.Mul(b.Mod(i, lines), line), r.items()-1))
		r.around.conv.ring.Prefetch(b.Add(b.Mul(b.Div(i, lines), r.width), channel))
	})
}

// channel returns the channel of an item: of B, of C, or of x.
func (r *ssdRun) channel(item kernel.Value) kernel.Value {
	b := r.b
	inner := b.Mul(r.heads, r.headDim)
	all := b.Mul(b.Div(r.heads, r.perGroup), r.n)
	inGroup := b.Add(inner, b.Mul(b.Div(r.head, r.perGroup), r.n), item, b.Select(b.Lt(item, r.n), 0, b.Sub(all, r.n)))
	column := b.Sub(r.column, b.Mod(b.LocalID(), r.columns))
	return b.Select(b.Lt(item, 2*r.n), inGroup, b.Add(b.Mul(r.head, r.headDim), column, b.Sub(item, 2*r.n)))
}

// convItem is an element of the convolution that a lane computes.
type convItem struct {
	at, token, i, channel, bias kernel.Value
	weights                     []kernel.Value
}

// takeAround takes all tokens, which are one block.
func (r *ssdRun) takeAround() {
	b, a := r.b, r.around
	a.conv.width = r.width
	r.blocks = ssdBlocks{rows: b.Shared(lane.F32x4, r.block()*r.rowQuads()), xs: b.Shared(kernel.F32, r.block()*r.columns), scales: b.Shared(kernel.F32, r.block()*2)}
	items := r.convItems() // weights come first: they wait for nothing
	r.load(a.pos)
	gate := r.gates()
	last := b.Sub(b.Add(r.row, r.count), 1)
	for _, it := range items {
		bias := &it.bias
		if a.conv.bias == nil {
			bias = nil
		}
		v := a.conv.sum(b, b.Min(b.Add(r.row, it.token), last), it.channel, it.weights, bias)
		b.If(b.Lt(it.at, r.block()*r.items()), func() { r.keep(it, v) })
	}
	first := r.lanes() - r.block() // the lanes that have the least of the convolution
	b.If(b.Ge(b.LocalID(), first), func() {
		token := b.Sub(b.LocalID(), first)
		dt := r.dts.Load(kernel.F32, r.cut.at(b, b.Min(b.Add(r.row, token), last), r.head, r.heads, 1))
		t := lane.LogDecay(b, dt, r.bias, b.F32(1))
		r.blocks.scales.Store(b.Mul(token, 2), b.Exp(b.Mul(t, r.rate)))
		r.blocks.scales.Store(b.Add(b.Mul(token, 2), 1), t)
	})
	if r.write != nil {
		r.writeRing()
	}
	b.Barrier()
	if r.block() == 1 {
		r.take(b.U32(0), b.U32(0))
	} else {
		b.For(0, r.count, 1, func(token kernel.Value) { r.take(token, token) })
	}
	r.eachState(func(i int, at kernel.Value) { r.stateBuffer.Store(at, r.state[i].Get()) })
	b.Barrier()
	r.addParts(r.row, r.count, gate)
}

// convItems finds the lane's items, and loads what they have of weights. Those behind the last repeat it.
func (r *ssdRun) convItems() (list []convItem) {
	b, conv, total := r.b, r.around.conv, r.block()*r.items()
	for from := 0; from < total; from += r.lanes() {
		at := b.Add(b.LocalID(), from)
		some := b.Min(at, total-1)
		it := convItem{at: at, token: b.Div(some, r.items()), i: b.Mod(some, r.items())}
		it.channel = r.channel(it.i)
		if it.weights = conv.weights(b, it.channel); conv.bias != nil {
			it.bias = conv.bias.Load(kernel.F32, it.channel)
		}
		list = append(list, it)
	}
	return list
}

// keep puts an element of the convolution into shared memory.
func (r *ssdRun) keep(it convItem, v kernel.Value) {
	b := r.b
	b.IfElse(b.Lt(it.i, 2*r.n), func() {
		r.blocks.rows.StoreElem(b.Add(b.Mul(it.token, r.rowQuads()), b.Div(it.i, 4)), b.Mod(it.i, 4), v)
	}, func() { r.blocks.xs.Store(b.Add(b.Mul(it.token, r.columns), b.Sub(it.i, 2*r.n)), v) })
}

// gates returns what multiplies a result of the lane, of the token-th of the block: if it has one at most, that is
// loaded now. It is nil without a gate.
func (r *ssdRun) gates() func(token, y kernel.Value) kernel.Value {
	if r.gate == nil {
		return nil
	}
	b, a, act := r.b, r.around, r.gate.Attrs.Str("act")
	load := func(token kernel.Value) kernel.Value {
		row := b.Add(r.row, b.Min(token, b.Sub(r.count, 1)))
		return a.z.Load(kernel.F32, a.zCut.at(b, row, b.Add(b.Mul(r.head, r.headDim), r.column), b.Mul(r.heads, r.headDim), 1))
	}
	if r.parts < r.block() {
		return func(token, y kernel.Value) kernel.Value { return lane.GLU(b, act, load(token))(y) }
	}
	z := load(r.part)
	return func(_, y kernel.Value) kernel.Value { return lane.GLU(b, act, z)(y) }
}

// writeRing copies this workgroup's channels of its rows into the ring.
func (r *ssdRun) writeRing() {
	b, c, tile := r.b, r.around.conv, r.around.ringPart
	b.For(b.LocalID(), b.Mul(r.count, tile), r.lanes(), func(i kernel.Value) {
		row, channel := b.Add(r.row, b.Div(i, tile)), b.Add(b.Mul(b.WorkgroupID(0), tile), b.Mod(i, tile))
		b.If(b.Lt(channel, c.width), func() {
			at := b.Add(b.Mul(c.slotOf(b, row), c.depth), b.Mod(c.pos.Load(kernel.U32, row), c.depth))
			c.ring.Store(b.Add(b.Mul(at, c.width), channel), c.x.Load(kernel.F32, c.cut.at(b, row, channel, c.width, 1)))
		})
	})
}
