// Package recurrent has the families of layers with a state: the gated delta rule and the
// causal convolution before it.
package recurrent

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func DeltaCandidates(s *site.Site, op *ir.Op) (list []site.Candidate) {
	for _, k := range deltaKernels(s, op) {
		list = append(list, k.candidate())
	}
	return list
}

// DeltaHorizontal are the candidates with their lanes, for other workgroups beside them.
func DeltaHorizontal(s *site.Site, op *ir.Op) (list []site.Candidate) {
	for _, k := range deltaKernels(s, op) {
		c := k.candidate()
		c.Lanes = k.lanes()
		list = append(list, c)
	}
	return list
}

func deltaKernels(s *site.Site, op *ir.Op) (list []*deltaKernel) {
	g := matchDelta(s, op)
	if g == nil {
		return nil
	}
	for _, parts := range []int{4, 2, 1} {
		k := &deltaKernel{deltaGroup: g, parts: parts}
		k.wide = k.onLanes(s)
		if k.manyRuns() && s.Target.BoundsRegisters() {
			k.room = 2 * k.lanes()
		}
		k.every = k.everyRow(s.Target)
		if k.fits(s) {
			list = append(list, k)
		}
	}
	return list
}

// deltaGroup is a dispatch group around a deltanet, with any of the ops that make
// its operands and use its result:
//
//	[conv1d [conv_write]] slice... [l2norm l2norm] [decay] [sigmoid] deltanet [gated_rmsnorm]
type deltaGroup struct {
	rows    site.Extent
	inputs  [3]cutInput // q, k, v
	norm    *ir.Op      // an l2norm of q, if both q and k have one
	conv    *ir.Op      // of the rows that q, k and v are slices of, or nil
	write   *ir.Op      // conv_write of the same rows, or nil
	decay   *ir.Op      // nil if the log decay is an operand of the group
	sigmoid *ir.Op      // nil if beta is an operand of the group
	delta   *ir.Op
	gated   *ir.Op // gated_rmsnorm of the result, or nil
	headDim int
	keys    int  // heads of q and k
	heads   int  // heads of v
	run     int  // neighbours among the value heads that share a key head
	log     int  // R of the state's log; 0: it has none
	defers  bool // rows of many sequences leave updates there
	wave    int
	mixes   bool // rows may be of several sequences, without parts
	asks    bool // for what it will load, before it waits for the dispatch before
}

// cutInput is q, k or v: elements from first on of rows of x.
type cutInput struct {
	x     *ir.Value
	first int
}

func matchDelta(s *site.Site, op *ir.Op) *deltaGroup {
	g := &deltaGroup{delta: op}
	a := g.delta.Attrs
	g.headDim, g.keys, g.heads, g.run = a.Int("head_dim"), a.Int("k_heads"), a.Int("v_heads"), 1
	if a.Str("map") == "div" {
		g.run = g.heads / g.keys
	}
	g.log, g.defers = ir.DeltaLog(g.delta.Args[5].Type), a.Int("defer") > 0
	g.wave, g.mixes = s.Target.Wave, s.Mixes() && s.Func.Part == 0
	m := &groupMatch{site: s, used: map[*ir.Op]bool{g.delta: true}}
	if !g.matchInputs(m) || !g.matchAround(m) || !m.whole(g.result()) {
		return nil
	}
	var ok bool
	if g.rows, ok = site.ExtentOf(s, g.delta.Result); !ok || !g.indexable(s) {
		return nil
	}
	g.asks = s.Target.Thresholds.LoadsEarly && g.rows.Max == 1 && g.slots() == 1 && !g.defers
	return g
}

// groupMatch remembers which ops of a group have found their place.
type groupMatch struct {
	site *site.Site
	used map[*ir.Op]bool
}

// whole reports whether all ops of the group have found their place, and make nothing but the result.
func (m *groupMatch) whole(result *ir.Value) bool {
	return len(m.used) == len(m.site.Group.Ops) && len(m.site.Outputs) == 1 && m.site.Outputs[0] == result
}

// maker returns the op of the group that makes v, if it has that name.
func (m *groupMatch) maker(v *ir.Value, name string) *ir.Op {
	if v.Def == nil || v.Def.Kind.Name != name || !slices.Contains(m.site.Group.Ops, v.Def) {
		return nil
	}
	m.used[v.Def] = true
	return v.Def
}

// matchInputs follows q, k and v back to operands of the group.
func (g *deltaGroup) matchInputs(m *groupMatch) bool {
	var norms, convs [3]*ir.Op
	for i := range g.inputs {
		x, in := g.delta.Args[i], &g.inputs[i]
		if norms[i] = m.maker(x, "l2norm"); norms[i] != nil {
			x = norms[i].Args[0]
		}
		if op := m.maker(x, "slice"); op != nil {
			x, in.first = op.Args[0], op.Attrs.Int("first")
		}
		if convs[i] = m.maker(x, "conv1d"); convs[i] != nil {
			x = convs[i].Args[0]
		}
		in.x = x
	}
	g.norm, g.conv = norms[0], convs[0]
	if convs[1] != g.conv || convs[2] != g.conv || norms[2] != nil || (norms[1] == nil) != (g.norm == nil) {
		return false
	}
	for _, op := range norms[:2] {
		if op != nil && (op.Attrs.Int("group") != g.headDim || op.Attrs.Float("eps") != g.norm.Attrs.Float("eps")) {
			return false
		}
	}
	return g.conv == nil || slices.Equal(g.conv.Args[3:], g.delta.Args[6:])
}

// matchAround finds the ops that make decay and beta, use the result and write
// the ring.
func (g *deltaGroup) matchAround(m *groupMatch) bool {
	g.decay, g.sigmoid = m.maker(g.delta.Args[3], "decay"), m.maker(g.delta.Args[4], "sigmoid")
	for i, op := range m.site.Group.Ops {
		switch op.Kind.Name {
		case "conv_write":
			if g.conv == nil || g.write != nil || i < slices.Index(m.site.Group.Ops, g.conv) ||
				op.Args[0] != g.conv.Args[0] || !slices.Equal(op.Args[1:], g.conv.Args[2:]) {
				return false
			}
			g.write, m.used[op] = op, true
		case "gated_rmsnorm":
			if g.gated != nil || op.Args[0] != g.delta.Result || op.Attrs.Int("group") != g.headDim {
				return false
			}
			g.gated, m.used[op] = op, true
		}
	}
	return true
}

func (g *deltaGroup) result() *ir.Value {
	if g.gated != nil {
		return g.gated.Result
	}
	return g.delta.Result
}

// indexable reports whether the kernel can address the state and the ring, and
// reads no row of the ring that it writes: those that a step reads and those that
// it writes are neighbours, fewer than the ring has.
func (g *deltaGroup) indexable(s *site.Site) bool {
	if !site.Indexable(s, g.delta.Args[5], 4) {
		return false
	}
	if g.conv == nil {
		return true
	}
	ring := g.conv.Args[2]
	return site.Indexable(s, ring, 1) && g.rows.Exact && g.rows.Run+g.taps()-1 <= int(ring.Type.Shape[1])
}

func (g *deltaGroup) taps() int { return int(g.conv.Args[1].Type.Last()) }

// joint reports whether q, k and v are parts of the same rows.
func (g *deltaGroup) joint() bool {
	return g.inputs[0].x == g.inputs[1].x && g.inputs[1].x == g.inputs[2].x
}

func (g *deltaGroup) key() string {
	key := ""
	for _, part := range []struct {
		name string
		is   bool
	}{{"joint", g.joint()}, {"write", g.write != nil}, {"norm", g.norm != nil}, {"decay", g.decay != nil},
		{"sigmoid", g.sigmoid != nil}, {"gated", g.gated != nil}} {
		if part.is {
			key += " " + part.name
		}
	}
	if g.conv != nil {
		key += fmt.Sprintf(" taps=%d", g.taps())
	}
	if g.slots() > 1 {
		key += " slots"
	}
	if g.log > 0 {
		key += fmt.Sprintf(" log=%d", g.log)
	}
	if g.defers {
		key += " defers"
	}
	if g.asks {
		key += " asks"
	}
	return key + g.rows.Key()
}

// slots is how many have a state.
func (g *deltaGroup) slots() int { return int(g.delta.Args[5].Type.Shape[0]) }

// stateRows is the rows that the state has of a head: one for each value dim, and its log.
func (g *deltaGroup) stateRows() int { return g.headDim + 2*g.log }

// deltaBuffers are the arguments of a deltaGroup's kernel; nil where there are none.
type deltaBuffers struct {
	inputs               [3]*kernel.Buffer // q, k and v, the same if they are joint
	weight, ring         *kernel.Buffer
	scales               deltaScales
	pos, slots, gain, z  *kernel.Buffer
	stateBuffer, yBuffer *kernel.Buffer
}

func (g *deltaGroup) declare(s *site.Signature) deltaBuffers {
	var d deltaBuffers
	if g.joint() {
		x := s.Read("x", g.inputs[0].x)
		d.inputs = [3]*kernel.Buffer{x, x, x}
	} else {
		for i, in := range g.inputs {
			d.inputs[i] = s.Read(g.delta.Kind.Params[i], in.x)
		}
	}
	if g.conv != nil {
		d.weight = s.Read("weight", g.conv.Args[1])
		if g.write != nil {
			d.ring = s.Update("ring", g.conv.Args[2])
		} else {
			d.ring = s.Read("ring", g.conv.Args[2])
		}
	}
	d.scales = declareScales(s, g.decay, g.delta.Args[3], g.sigmoid, g.delta.Args[4])
	d.pos = s.Read("pos", g.delta.Args[6])
	if g.slots() > 1 {
		d.slots = s.Read("slot", g.delta.Args[7])
	}
	if g.gated != nil {
		d.gain, d.z = s.Read("gain", g.gated.Args[1]), s.Read("z", g.gated.Args[2])
	}
	d.stateBuffer, d.yBuffer = s.Update("state", g.delta.Args[5]), s.Write("y", g.result())
	return d
}

// deltaScales are the buffers of log decay and beta of rows and value heads.
type deltaScales struct {
	g           *kernel.Buffer // nil where decay computes it
	a, dt, rate *kernel.Buffer
	beta        *kernel.Buffer // or what its sigmoid is of
}

// declareScales declares what makes log decay, g or what decay computes, and beta, or what sigmoid
// computes.
func declareScales(s *site.Signature, decay *ir.Op, g *ir.Value, sigmoid *ir.Op, beta *ir.Value) deltaScales {
	var d deltaScales
	if decay != nil {
		d.a, d.dt, d.rate = s.Read("a", decay.Args[0]), s.Read("dt", decay.Args[1]), s.Read("rate", decay.Args[2])
	} else {
		d.g = s.Read("g", g)
	}
	if sigmoid != nil {
		beta = sigmoid.Args[0]
	}
	d.beta = s.Read("beta", beta)
	return d
}

// logDecay loads the log decay of a value head; a row's own part lies at `at`.
func (d deltaScales) logDecay(b *kernel.Builder, at, head kernel.Value) kernel.Value {
	if d.g != nil {
		return d.g.Load(kernel.F32, at)
	}
	return lane.LogDecay(b, d.a.Load(kernel.F32, at), d.dt.Load(kernel.F32, head), d.rate.Load(kernel.F32, head))
}

// declarePlace declares where an input of so many elements a row begins in it.
func (in cutInput) declarePlace(s *site.Signature, name string) (first, width kernel.Value) {
	return s.U32(name+"_first", in.first, 0, "first element of a row that counts"), s.U32(name+"_width", int(in.x.Type.Last()), 128, "elements of a row")
}

// deltaKernel is the gated delta rule, token by token, with the state in
// registers: a workgroup has a value head, or a part of its value columns. The
// key dims of a column are shared by a team of lanes, 4 neighbours at a time; each
// team has 2 columns. Tokens come in blocks of up to 8, whose operands are prepared
// together.
//
// Where rows may be of different sequences there is a workgroup for each row; that of the
// first row of a sequence does the work of all of them.
type deltaKernel struct {
	*deltaGroup
	parts int  // workgroups of a head
	wide  bool // see deltaLanes
	// room is the lanes of a unit that registers must suffice for: two workgroups, where there are many; 0: no bound.
	room int
	// every is how many workgroups share the rows of a head in turn, see deltaTurns; 0: each has one.
	every int
}

const (
	deltaColumns = 2             // of a team
	deltaBlock   = ir.DeltaChunk // tokens
	deltaUnit    = 16
	deltaMax     = 256
)

// team is the lanes that share a column.
func (k *deltaKernel) team() int { return lane.HeadTeam(k.headDim) }

// held is the accesses of 4 elements of a column that a lane of its team holds.
func (k *deltaKernel) held() int { return k.headDim / (4 * k.team()) }

// width is the value columns of a workgroup.
func (k *deltaKernel) width() int { return k.headDim / k.parts }

// teams is the number of teams of a workgroup.
func (k *deltaKernel) teams() int { return k.width() / deltaColumns }

func (k *deltaKernel) lanes() int {
	if k.wide {
		return deltaWide
	}
	return k.teams() * k.team()
}

// runs is up to how many sequences the rows of a step may have.
func (k *deltaKernel) runs() int {
	if k.mixes {
		return k.rows.Max
	}
	return 1
}

// block is the tokens that are prepared together. Where more sequences have rows than one has, most have one.
func (k *deltaKernel) block() int {
	if k.manyRuns() {
		return 1
	}
	return min(deltaBlock, k.rows.Run)
}

// manyRuns reports whether a step may have more rows than one sequence has.
func (k *deltaKernel) manyRuns() bool { return k.mixes && !k.wide && k.rows.Max > k.rows.Run }

// sharedBytes is what build declares: q, k and v of a block, its results, and
// what else it has of each token.
func (k *deltaKernel) sharedBytes() int {
	bytes := k.block() * 4 * (3*k.headDim + k.width() + 2)
	if k.wide {
		bytes += 4 * deltaWide
	}
	return bytes
}

// fits reports whether the target runs the kernel. A head is divided only where
// units would idle, and not if its norm or the update of its row, which one workgroup leaves, needs all of its columns.
// Lanes that change the state where it lies know no log: plans of processors have none.
func (k *deltaKernel) fits(s *site.Site) bool {
	t := s.Target
	if k.wide && k.log > 0 || k.mixes && k.rows.Run > deltaBlock || k.rows.Part > 0 && (k.wide || k.conv != nil || k.write != nil) {
		return false
	}
	if k.headDim%deltaUnit != 0 || k.headDim > deltaMax || k.parts > 1 && (k.gated != nil || k.defers || k.heads*k.parts > t.Units || k.width()%(2*deltaUnit) != 0) {
		return false
	}
	return t.Wave%k.team() == 0 && k.lanes() > 0 && k.lanes()%t.Wave == 0 && k.teams()*deltaColumns == k.width() && k.lanes() <= t.Workgroup && k.sharedBytes() <= t.Shared
}

func (k *deltaKernel) key() string {
	whole := ""
	if k.whole() {
		whole = " whole"
	}
	if k.mixes {
		whole += " runs" + k.rows.RunKey()
		if k.manyRuns() && k.rows.Run != deltaBlock {
			whole += fmt.Sprintf(" run=%d", k.rows.Run)
		}
	}
	whole += runsKey(k.rows, k.wave)
	if k.wide {
		whole += " lanes"
	}
	if k.room > 0 {
		whole += fmt.Sprintf(" room=%d", k.room)
	}
	if k.every > 0 {
		whole += fmt.Sprintf(" every=%d", k.every)
	}
	if (k.asks || k.every > 0) && k.write != nil && k.ringAccesses() > 1 {
		whole += fmt.Sprintf(" ring=%d", k.ringAccesses())
	}
	return fmt.Sprintf("delta hd=%d parts=%d block=%d%s%s", k.headDim, k.parts, k.block(), whole, k.deltaGroup.key())
}

func (k *deltaKernel) candidate() site.Candidate {
	c := site.Candidate{
		Kernel: k.key(),
		Shape:  fmt.Sprintf("%d parts", k.parts),
		Early:  k.asks || k.every > 0,
		Room:   k.room,
		Parts:  k.rows.FollowsParts(ir.DeltaChunk),
		Grid:   [3]int{k.heads * k.parts, k.runs() * partsOf(k.rows), 1},
		Cover: []plans.Cover{
			k.cover("y", k.rows.Max, []int{k.heads * k.headDim}, []int{k.width()}),
			k.cover("state", k.runs(), []int{k.heads * k.headDim, k.headDim}, []int{k.width(), k.headDim}),
		},
	}
	if k.every > 0 {
		c.Grid[1] = k.every
	}
	if k.mixes {
		c.Sequences = ir.ManySequences
	}
	if k.write != nil {
		c.Cover = append(c.Cover, k.cover("ring", k.rows.Max, []int{k.ringWidth()}, []int{k.ringTile()}))
	}
	return site.Implement(c, "delta", k.kernel)
}

// cover says that a workgroup writes its rows of an output, of each a tile of the first of dims.
func (k *deltaKernel) cover(arg string, rows int, dims, tile []int) plans.Cover {
	c := plans.Cover{Arg: arg, Dims: []int{rows}, Tile: []int{rows / k.runs()}, Axis: []int{1}}
	if k.rows.Part > 0 {
		c.Tile[0] = tileOf(k.rows)
		if arg == "state" {
			c.Dims[0], c.Tile[0] = partsOf(k.rows), 1
		}
	}
	if k.every > 0 { // every so many rows
		c.Dims, c.Tile, c.Axis = []int{rows / k.every, k.every}, []int{rows / k.every, 1}, []int{-1, 1}
	}
	c.Dims, c.Tile, c.Axis = append(c.Dims, dims...), append(c.Tile, tile...), append(c.Axis, 0)
	for len(c.Axis) < len(c.Dims) {
		c.Axis = append(c.Axis, -1)
	}
	return c
}

// ringWidth is the channels of the ring, and ringTile those that a workgroup writes.
func (k *deltaKernel) ringWidth() int { return int(k.write.Args[0].Type.Last()) }

func (k *deltaKernel) ringTile() int {
	n := site.CeilDiv(k.ringWidth(), k.heads*k.parts)
	if k.manyRuns() { // turns copy fours of channels
		n = site.CeilDiv(n, 4) * 4
	}
	return n
}

// ringAccesses is how many of them a lane writes.
func (k *deltaKernel) ringAccesses() int { return site.CeilDiv(k.ringTile(), k.lanes()) }
