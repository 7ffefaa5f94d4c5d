package recurrent

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// ssdKernel is the state space model of Mamba2, token by token, with the state in registers: a workgroup has some
// columns of a head, the elements of x. A lane has one of them, of a part of the state's rows; lanes of other parts
// have the others. Tokens come in blocks, behind which the parts of their sums are added up.
//
// Where rows may be of different sequences there is a workgroup for each row, or each part; that of the
// first row of a sequence does the work of all of them.
type ssdKernel struct {
	*ssdGroup
	rows                      site.Extent
	heads, headDim, groups, n int
	mixes                     bool
	slots                     int
	columns, parts            int // of a workgroup
	ahead                     bool
	wave                      int
}

const (
	ssdLanes = 256           // of a workgroup, at most
	ssdWide  = 512           // of one that computes the convolution
	ssdBlock = ir.DeltaChunk // tokens
	ssdLeast = 8             // rows of the state that a lane has, at least, where there are as many
)

func SSDCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	g := matchSSD(s, op)
	if g == nil || !site.Indexable(s, op.Args[5], 1) {
		return nil
	}
	a := op.Attrs
	k := &ssdKernel{ssdGroup: g, heads: a.Int("heads"), headDim: a.Int("head_dim"), groups: a.Int("groups"), n: a.Int("state_dim"),
		mixes: s.Mixes() && s.Func.Part == 0, wave: s.Target.Wave, slots: int(op.Args[5].Type.Shape[0])}
	var ok bool
	if k.rows, ok = site.ExtentOf(s, op.Result); !ok || k.mixes && k.rows.Run > ssdBlock {
		return nil
	}
	lanes := ssdLanes
	if k.conv != nil {
		lanes = ssdWide
	}
	if !k.divide(s.Target.Wave, min(s.Target.Workgroup, lanes)) || k.conv != nil && !k.fitsAround(s) {
		return nil
	}
	k.ahead = k.onAhead(s.Target)
	return []site.Candidate{k.candidate()}
}

// divide chooses the columns and parts of a workgroup of so many lanes at most, whole subgroups.
func (k *ssdKernel) divide(wave, most int) bool {
	for k.columns = wave; k.headDim%k.columns != 0; k.columns /= 2 {
	}
	most = max(most, wave)
	for lanes := wave; lanes <= most; lanes *= 2 {
		parts := lanes / k.columns
		if k.n%parts != 0 || k.parts > 0 && k.n/parts < ssdLeast {
			break
		}
		k.parts = parts
	}
	return k.parts > 0
}

// held is the rows of the state that a lane has.
func (k *ssdKernel) held() int { return k.n / k.parts }

// block is the tokens of a block.
func (k *ssdKernel) block() int { return min(ssdBlock, k.rows.Run) }

// runs is up to how many sequences the rows of a step may have.
func (k *ssdKernel) runs() int {
	if k.mixes {
		return k.rows.Max
	}
	return 1
}

// vec is the elements of B and C that are loaded at once.
func (k *ssdKernel) vec() int {
	v := site.Widest(k.held())
	for (k.heads*k.headDim)%v != 0 || k.n%v != 0 {
		v /= 2
	}
	return v
}

func (k *ssdKernel) key() string {
	key := fmt.Sprintf("ssd hd=%d n=%d columns=%d parts=%d block=%d%s%s", k.headDim, k.n, k.columns, k.parts, k.block(), k.dt.key(k.op.Args[1]), k.ssdGroup.key())
	if k.ahead {
		key += " ahead"
	}
	if k.mixes {
		key += " runs" + k.rows.RunKey()
	}
	if k.slots > 1 {
		key += " slots"
	}
	if k.vec() != site.Widest(k.held()) {
		key += fmt.Sprintf(" v=%d", k.vec())
	}
	return key + runsKey(k.rows, k.wave) + k.rows.Key()
}

func (k *ssdKernel) candidate() site.Candidate {
	rows, runs, width := k.rows.Max/k.runs(), k.runs(), k.heads*k.headDim
	if k.rows.Part > 0 {
		rows, runs = tileOf(k.rows), partsOf(k.rows)
	}
	c := site.Candidate{
		Kernel: k.key(),
		Order:  fmt.Sprintf("ssd %dx%d", k.parts, k.held()),
		Parts:  k.rows.FollowsParts(ssdBlock),
		Grid:   [3]int{width / k.columns, runs, 1},
		Cover: []plans.Cover{
			{Arg: "y", Dims: []int{k.rows.Max, width}, Tile: []int{rows, k.columns}, Axis: []int{1, 0}},
			{Arg: "state", Dims: []int{runs, width, k.n}, Tile: []int{1, k.columns, k.n}, Axis: []int{1, 0, -1}}, // columns of all heads, whatever lies between them
		},
	}
	if k.mixes {
		c.Sequences = ir.ManySequences
	}
	if k.write != nil {
		c.Cover = append(c.Cover, plans.Cover{Arg: "ring", Dims: []int{k.rows.Max, k.channels()}, Tile: []int{rows, k.ringTile()}, Axis: []int{1, 0}})
	}
	return site.Implement(c, "ssd", k.kernel)
}

// ssdRun is the kernel while it is built.
type ssdRun struct {
	*ssdKernel
	b                  *kernel.Builder
	x, dts, slotBuffer *kernel.Buffer
	y, stateBuffer     *kernel.Buffer
	cut                cutArgs
	heads, perGroup    kernel.Value
	width              kernel.Value // of a row of x
	head, column, part kernel.Value // of the lane: column in the head
	bias, rate, skip   kernel.Value // of the head
	row, count         kernel.Value // the first row of the sequence, and how many
	slot               kernel.Value
	state              []*kernel.Var
	sums               *kernel.Array // by token, part and column
	firstB, firstC     kernel.Value
	blocks             ssdBlocks
	around             *ssdAround // nil if the dispatch has no convolution
}

func (k *ssdKernel) kernel(s *site.Signature) func(b *kernel.Builder) {
	r := &ssdRun{ssdKernel: k}
	extent := k.rows.Declare(s)
	r.x, r.dts = s.Read("x", k.x.x), s.Read("dt", k.dt.x)
	bias, rate, skip := s.Read("bias", k.op.Args[2]), s.Read("rate", k.op.Args[3]), s.Read("skip", k.op.Args[4])
	pos := s.Read("pos", k.op.Args[6])
	if k.slots > 1 {
		r.slotBuffer = s.Read("slot", k.op.Args[7])
	}
	r.stateBuffer, r.y = s.Update("state", k.op.Args[5]), s.Write("y", k.result())
	r.heads = s.U32("heads", k.heads, 1, "heads")
	r.perGroup = s.U32("per_group", k.heads/k.groups, 1, "heads that share B and C")
	r.cut = k.dt.declareCut(s, "x", k.op.Args[1])
	if k.conv != nil {
		r.around = r.declareAround(s, pos)
	}
	return func(b *kernel.Builder) {
		r.b = b
		b.Workgroup(k.columns * k.parts)
		n := extent.Load(b)
		r.sums = b.Shared(kernel.F32, k.block()*k.parts*k.columns)
		at := b.WorkgroupID(0)
		perHead := k.headDim / k.columns
		r.head = b.Div(at, perHead)
		r.column = b.Add(b.Mul(b.Mod(at, perHead), k.columns), b.Mod(b.LocalID(), k.columns))
		r.part = b.Div(b.LocalID(), k.columns)
		r.bias, r.rate, r.skip = bias.Load(kernel.F32, r.head), rate.Load(kernel.F32, r.head), skip.Load(kernel.F32, r.head)
		inner := b.Mul(r.heads, k.headDim)
		all := b.Mul(b.Div(r.heads, r.perGroup), k.n)
		r.width = b.Add(inner, b.Mul(all, 2))
		r.firstB = b.Add(inner, b.Mul(b.Div(r.head, r.perGroup), k.n), b.Mul(r.part, k.held()))
		r.firstC = b.Add(r.firstB, all)
		if k.asks {
			r.askFor()
		}
		r.findRows(n, pos)
		if k.conv != nil {
			r.takeAround()
			return
		}
		r.load(pos)
		if k.ahead {
			r.newBlocks()
			r.takeAhead()
			r.eachState(func(i int, at kernel.Value) { r.stateBuffer.Store(at, r.state[i].Get()) })
			return
		}
		b.ForRolled(0, r.count, k.block(), func(first kernel.Value) {
			live := b.Min(b.Sub(r.count, first), k.block())
			b.For(0, live, 1, func(token kernel.Value) { r.step(b.Add(r.row, first, token), token) })
			b.Barrier()
			r.addParts(b.Add(r.row, first), live, nil)
			b.Barrier()
		})
		r.eachState(func(i int, at kernel.Value) { r.stateBuffer.Store(at, r.state[i].Get()) })
	}
}

// findRows finds the rows of this workgroup, and ends it if there are none.
func (r *ssdRun) findRows(n kernel.Value, pos *kernel.Buffer) {
	b := r.b
	if r.rows.Part > 0 {
		run := runOf(b, r.rows, r.wave, n, b.WorkgroupID(1), pos, r.slotBuffer)
		r.row, r.slot, r.count = run.first, run.slot, b.Sub(run.end, run.first)
		return
	}
	r.row, r.slot, r.count = b.U32(0), b.U32(0), n
	if r.slotBuffer == nil {
		if r.runs() > 1 { // all rows are of one sequence
			b.ReturnIf(b.Gt(b.WorkgroupID(1), 0))
		}
		return
	}
	if r.runs() == 1 {
		r.slot = r.slotBuffer.Load(kernel.U32, r.row)
		return
	}
	r.row = b.WorkgroupID(1)
	r.slot = r.slotBuffer.Load(kernel.U32, r.row)
	before := r.slotBuffer.Load(kernel.U32, b.Sub(b.Max(r.row, 1), 1))
	same := b.Bool(true)
	r.count = b.U32(1)
	for i := 1; i < r.rows.Run; i++ {
		next := b.Add(r.row, i)
		same = b.And(same, b.Lt(next, n), b.Eq(r.slotBuffer.Load(kernel.U32, b.Min(next, r.runs()-1)), r.slot))
		r.count = b.Add(r.count, b.Select(same, b.U32(1), b.U32(0)))
	}
	b.ReturnIf(b.Or(b.Ge(r.row, n), b.And(b.Gt(r.row, 0), b.Eq(before, r.slot))))
}

// eachState calls do for the lane's elements of the state, and where they are.
func (r *ssdRun) eachState(do func(i int, at kernel.Value)) {
	b := r.b
	first := b.Add(b.Mul(b.Add(b.Mul(r.slot, r.heads), r.head), r.n), b.Mul(r.part, r.held()))
	for i := range r.held() {
		do(i, b.Add(b.Mul(b.Add(first, i), r.headDim), r.column))
	}
}

// load loads the state, which is 0 before position 0.
func (r *ssdRun) load(pos *kernel.Buffer) {
	b := r.b
	begins := b.Eq(pos.Load(kernel.U32, r.row), 0)
	r.eachState(func(_ int, at kernel.Value) {
		r.state = append(r.state, b.Var(kernel.F32, b.Select(begins, 0, r.stateBuffer.Load(kernel.F32, at))))
	})
}

// step is one token: it changes the state and leaves this lane's part of what it says.
func (r *ssdRun) step(row, token kernel.Value) {
	b := r.b
	from := b.Mul(row, r.width)
	x := r.x.Load(kernel.F32, b.Add(from, b.Mul(r.head, r.headDim), r.column))
	dt := r.dts.Load(kernel.F32, r.cut.at(b, row, r.head, r.heads, 1))
	t := lane.LogDecay(b, dt, r.bias, b.F32(1))
	vec := r.vec()
	many := func(first kernel.Value) func(i int) []kernel.Value {
		return func(i int) []kernel.Value {
			return lane.Elements(b, r.x.Load(kernel.F32.Vec(vec), b.Add(b.Div(b.Add(from, first), vec), i)))
		}
	}
	r.change(token, x, b.Exp(b.Mul(t, r.rate)), b.Mul(t, x), vec, many(r.firstB), many(r.firstC))
}

// change is a token of a block: it changes the state, whose rows of B and C ins and outs return, vec at a time, and
// leaves this lane's part of what it says.
func (r *ssdRun) change(token, x, decay, input kernel.Value, vec int, ins, outs func(i int) []kernel.Value) {
	b, sum := r.b, r.b.F32(0)
	for i := range r.held() / vec {
		in, out := ins(i), outs(i)
		for e := range vec {
			s := r.state[i*vec+e]
			s.Set(b.FMA(decay, s.Get(), b.Mul(input, in[e])))
			sum = b.FMA(out[e], s.Get(), sum)
		}
	}
	sum = b.Select(b.Eq(r.part, 0), b.FMA(r.skip, x, sum), sum)
	r.sums.Store(b.Add(b.Mul(token, r.parts*r.columns), b.LocalID()), sum)
}

// addParts adds up the parts of a block of tokens: a lane has a column of some of them. If gate is not nil, it makes
// results of the sums.
func (r *ssdRun) addParts(first, live kernel.Value, gate func(token, y kernel.Value) kernel.Value) {
	b := r.b
	b.For(r.part, live, r.parts, func(token kernel.Value) {
		at := b.Add(b.Mul(token, r.parts*r.columns), b.Mod(b.LocalID(), r.columns))
		sum := r.sums.Load(at)
		for p := 1; p < r.parts; p++ {
			sum = b.Add(sum, r.sums.Load(b.Add(at, p*r.columns)))
		}
		if gate != nil {
			sum = gate(token, sum)
		}
		r.y.Store(b.Add(b.Mul(b.Add(b.Mul(b.Add(first, token), r.heads), r.head), r.headDim), r.column), sum)
	})
}
