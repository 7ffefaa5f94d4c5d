package recurrent

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func DeltaChunkCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	k := &deltaChunkKernel{}
	if k.lanes() > s.Target.Workgroup || !k.match(s, op) || !k.fits(s) {
		return nil
	}
	return []site.Candidate{k.candidate()}
}

// deltaChunkKernel is delta_chunk with what makes its operands:
//
//	[slice slice] [decay] [sigmoid] delta_chunk
//
// A workgroup has a chunk and a key head. A team of lanes has each row of k and of q, and
// multiplies it by all rows of k. Then a lane has a column of the matrices of a value head
// of that key head.
type deltaChunkKernel struct {
	chunkOp
	decay, sigmoid *ir.Op // nil if g or beta is an operand of the group
}

const chunkTeam = 8

func (k *deltaChunkKernel) match(s *site.Site, op *ir.Op) bool {
	m := k.matchOp(s, op, 2)
	if m == nil {
		return false
	}
	k.decay, k.sigmoid = m.maker(k.op.Args[2], "decay"), m.maker(k.op.Args[3], "sigmoid")
	return m.whole(k.op.Result)
}

// chunkOp is one of the two ops that make up the delta rule chunk by chunk.
type chunkOp struct {
	rows    site.Extent
	inputs  []cutInput // q, k and, of the rule, v
	op      *ir.Op
	headDim int
	keys    int // heads of q and k
	heads   int // of values
}

// matchOp takes op, and finds what its first inputs are slices of.
func (k *chunkOp) matchOp(s *site.Site, op *ir.Op, inputs int) *groupMatch {
	k.op = op
	m := &groupMatch{site: s, used: map[*ir.Op]bool{k.op: true}}
	for _, x := range k.op.Args[:inputs] {
		k.inputs = append(k.inputs, m.input(x))
	}
	a := k.op.Attrs
	k.headDim, k.keys, k.heads = a.Int("head_dim"), a.Int("k_heads"), a.Int("v_heads")
	var ok bool
	if k.rows, ok = site.ExtentOf(s, k.op.Result); !ok {
		return nil
	}
	return m
}

// input follows x back to an operand of the group.
func (m *groupMatch) input(x *ir.Value) cutInput {
	if op := m.maker(x, "slice"); op != nil {
		return cutInput{op.Args[0], op.Attrs.Int("first")}
	}
	return cutInput{x: x}
}

// quads reports whether a kernel can read the input 4 elements at a time.
func (in cutInput) quads() bool { return in.first%4 == 0 && in.x.Type.Last()%4 == 0 }

// each is the value heads of a key head.
func (k *deltaChunkKernel) each() int { return k.heads / k.keys }

func (k *deltaChunkKernel) lanes() int { return 2 * ir.DeltaChunk * chunkTeam }

func (k *deltaChunkKernel) fits(s *site.Site) bool {
	for _, in := range k.inputs {
		if !in.quads() {
			return false
		}
	}
	return k.headDim%(4*chunkTeam) == 0 && k.headDim <= deltaMax && k.each()*ir.DeltaChunk <= k.lanes() && s.Target.Wave%chunkTeam == 0 && k.lanes()%s.Target.Wave == 0
}

func (k *deltaChunkKernel) key() string {
	key := fmt.Sprintf("delta_chunk hd=%d each=%d", k.headDim, k.each())
	if k.decay != nil {
		key += " decay"
	}
	if k.sigmoid != nil {
		key += " sigmoid"
	}
	return key + k.rows.PartKey() + k.rows.Key()
}

// steps returns from which value heads a key head's are apart: value head i of it is
// key*keyStep + i*headStep.
func (k *deltaChunkKernel) steps() (keyStep, headStep int) {
	if k.op.Attrs.Str("map") == "div" {
		return k.each(), 1
	}
	return 1, k.keys
}

func (k *deltaChunkKernel) candidate() site.Candidate {
	cover := plans.Cover{Arg: "y", Dims: []int{k.rows.Max, k.each(), k.keys * ir.DeltaChunkWidth}, Tile: []int{ir.DeltaChunk, k.each(), ir.DeltaChunkWidth}, Axis: []int{0, -1, 1}}
	if k.op.Attrs.Str("map") == "div" {
		width := k.each() * ir.DeltaChunkWidth
		cover = plans.Cover{Arg: "y", Dims: []int{k.rows.Max, k.keys * width}, Tile: []int{ir.DeltaChunk, width}, Axis: []int{0, 1}}
	}
	return site.Implement(site.Candidate{
		Kernel: k.key(),
		Parts:  k.rows.FollowsParts(ir.DeltaChunk),
		Grid:   [3]int{site.CeilDiv(k.rows.Max, ir.DeltaChunk), k.keys, 1},
		Cover:  []plans.Cover{cover},
	}, "delta_chunk", k.kernel)
}

func (k *deltaChunkKernel) kernel(s *site.Signature) func(b *kernel.Builder) {
	r := &deltaChunkRun{deltaChunkKernel: k}
	extent := k.rows.Declare(s)
	r.q, r.k = s.Read("q", k.inputs[0].x), s.Read("k", k.inputs[1].x)
	r.scales = declareScales(s, k.decay, k.op.Args[2], k.sigmoid, k.op.Args[3])
	r.y = s.Write("y", k.op.Result)
	r.heads = s.U32("heads", k.heads, 1, "value heads")
	keyStep, headStep := k.steps()
	r.keyStep = s.U32("key_step", keyStep, 1, "value heads from that of a key head to that of the next")
	r.headStep = s.U32("head_step", headStep, 1, "value heads from one of a key head to its next")
	for i, name := range []string{"q", "k"} {
		r.firsts[i], r.widths[i] = k.inputs[i].declarePlace(s, name)
	}
	r.scale = s.F32("scale", k.op.Attrs.Float("scale"), 1, "factor of q")
	r.eps = s.F32("eps", k.op.Attrs.Float("eps"), 1e-6, "added to the sum of squares of q and k")
	if k.rows.Part > 0 {
		r.pos = s.Read("pos", k.op.Args[4])
	}
	return func(b *kernel.Builder) {
		r.b = b
		n := extent.Load(b)
		b.Workgroup(k.lanes())
		r.products = b.Shared(lane.F32x4, 2*ir.DeltaChunk*ir.DeltaChunk/4)
		r.lengths = b.Shared(kernel.F32, 2*ir.DeltaChunk)
		r.tokens = b.Shared(lane.F32x2, k.each()*ir.DeltaChunk)
		r.first = b.Mul(b.WorkgroupID(0), ir.DeltaChunk)
		r.live = n
		b.ReturnIf(b.Ge(r.first, n))
		r.live = b.Min(b.Sub(n, r.first), ir.DeltaChunk)
		if k.rows.Part > 0 { // dead rows have the position of the one before
			at := func(row kernel.Value) kernel.Value { return r.pos.Load(kernel.U32, row) }
			r.live = b.Add(b.Sub(at(b.Sub(b.Add(r.first, r.live), 1)), at(r.first)), 1)
		}
		r.multiply()
		mine := b.Lt(b.LocalID(), k.each()*ir.DeltaChunk)
		b.If(mine, r.prepare)
		b.Barrier()
		b.If(mine, r.solve)
	}
}

// deltaChunkRun is the kernel while it is built.
type deltaChunkRun struct {
	*deltaChunkKernel
	b                 *kernel.Builder
	q, k, y           *kernel.Buffer
	pos               *kernel.Buffer // nil without parts
	scales            deltaScales
	heads             kernel.Value
	keyStep, headStep kernel.Value
	firsts, widths    [2]kernel.Value // of q and k: where they start in a row, and its length
	scale, eps        kernel.Value
	first, live       kernel.Value  // rows of the chunk: the first, how many
	products          *kernel.Array // of rows of k, then of q, by rows of k
	lengths           *kernel.Array // of rows of k, then of q
	tokens            *kernel.Array // of value heads: log decay and beta of each row
}

// row returns row i of the chunk, or the last one.
func (r *deltaChunkRun) row(i kernel.Operand) kernel.Value {
	b := r.b
	return b.Add(r.first, b.Min(i, b.Sub(r.live, 1)))
}

// multiply puts the products and the lengths of rows into shared memory.
func (r *deltaChunkRun) multiply() {
	b := r.b
	mine, member := b.Div(b.LocalID(), chunkTeam), b.Mod(b.LocalID(), chunkTeam)
	at := func(input int, row kernel.Value) kernel.Value {
		from := b.Add(b.Mul(row, r.widths[input]), r.firsts[input], b.Mul(b.WorkgroupID(1), r.headDim))
		return b.Add(b.Div(from, 4), member)
	}
	isQ := b.Ge(mine, ir.DeltaChunk)
	own := b.Among([]*kernel.Buffer{r.k, r.q}, b.Select(isQ, b.U32(1), b.U32(0)))
	ownRow := r.row(b.Mod(mine, ir.DeltaChunk))
	ownAt := b.Select(isQ, at(0, ownRow), at(1, ownRow))
	var sums [ir.DeltaChunk + 1]kernel.Value
	for p := range r.headDim / (4 * chunkTeam) {
		x := own.Load(lane.F32x4, b.Add(ownAt, p*chunkTeam))
		for i := range sums {
			y := x
			if i < ir.DeltaChunk {
				y = r.k.Load(lane.F32x4, b.Add(at(1, r.row(b.U32(uint32(i)))), p*chunkTeam))
			}
			if p == 0 {
				sums[i] = b.Mul(x, y)
			} else {
				sums[i] = b.FMA(x, y, sums[i])
			}
		}
	}
	var list []kernel.Value
	for _, v := range sums {
		list = append(list, lane.Sum4(b, v))
	}
	square := lane.Sum(b, list[ir.DeltaChunk], 1, chunkTeam)
	b.If(b.Eq(member, 0), func() { r.lengths.Store(mine, b.Sqrt(b.Add(square, r.eps))) })
	product := lane.SumEach(b, list[:ir.DeltaChunk], member, 1)
	r.products.StoreElem(b.Div(b.LocalID(), 4), b.Mod(b.LocalID(), 4), product)
}

// head returns the value head of this lane.
func (r *deltaChunkRun) head() kernel.Value {
	b := r.b
	return b.Add(b.Mul(b.WorkgroupID(1), r.keyStep), b.Mul(b.Div(b.LocalID(), ir.DeltaChunk), r.headStep))
}

// prepare puts log decay and beta of a row and value head into shared memory: 0 of rows
// that the step lacks.
func (r *deltaChunkRun) prepare() {
	b, head := r.b, r.head()
	row := b.Mod(b.LocalID(), ir.DeltaChunk)
	at := b.Add(b.Mul(r.row(row), r.heads), head)
	beta := r.scales.beta.Load(kernel.F32, at)
	if r.sigmoid != nil {
		beta = lane.Sigmoid(b, beta)
	}
	g := r.scales.logDecay(b, at, head)
	g = b.Select(b.Lt(row, r.live), g, b.F32(0))
	r.tokens.Store(b.LocalID(), b.Vec(g, beta))
}

// solve computes a column of both matrices, and writes it, and the other numbers of a row.
// The column is of inverse(1 + L) first, and is multiplied by its beta where it is written.
func (r *deltaChunkRun) solve() {
	b, head := r.b, r.head()
	column := b.Mod(b.LocalID(), ir.DeltaChunk)
	tokens := b.Sub(b.LocalID(), column)
	var logs, beta, inverse, x [ir.DeltaChunk]kernel.Value
	own := b.F32(0) // logs of this lane's row
	for t := range logs {
		token := r.tokens.Load(b.Add(tokens, t))
		logs[t], beta[t] = b.Elem(token, 0), b.Elem(token, 1)
		if t > 0 {
			logs[t] = b.Add(logs[t-1], logs[t])
		}
		own = b.Select(b.Eq(column, t), logs[t], own)
		inverse[t] = b.Div(1.0, r.lengths.Load(t))
	}
	last := logs[ir.DeltaChunk-1]
	ownBeta := b.Elem(r.tokens.Load(b.LocalID()), 1)
	for t := range x {
		keys, queries := r.productsOf(t), r.productsOf(ir.DeltaChunk+t)
		x[t] = b.Select(b.Eq(column, t), b.F32(1), b.F32(0))
		says := b.F32(0)
		for i := range t {
			fade := b.Exp(b.Sub(logs[t], logs[i]))
			key := b.Mul(b.Elem(keys[i/4], i%4), fade, inverse[i], beta[t], inverse[t])
			x[t] = b.FMA(b.Neg(key), x[i], x[t])
			says = b.FMA(b.Mul(b.Elem(queries[i/4], i%4), fade, inverse[i]), x[i], says)
		}
		says = b.FMA(b.Mul(b.Elem(queries[t/4], t%4), inverse[t]), x[t], says)
		says = b.Mul(says, ownBeta, r.scale, b.Div(1.0, r.lengths.Load(ir.DeltaChunk+t)))
		change := b.Mul(x[t], ownBeta, inverse[t], b.Exp(b.Sub(last, logs[t])))
		b.If(b.Lt(b.U32(uint32(t)), r.live), func() {
			at := b.Add(b.Mul(b.Add(b.Mul(b.Add(r.first, t), r.heads), head), ir.DeltaChunkWidth), column)
			r.y.Store(at, change)
			r.y.Store(b.Add(at, ir.DeltaChunk), says)
		})
	}
	b.If(b.Lt(column, r.live), func() {
		fade := b.Exp(own)
		at := b.Add(b.Mul(b.Add(b.Mul(b.Add(r.first, column), r.heads), head), ir.DeltaChunkWidth/4), 2*ir.DeltaChunk/4)
		r.y.Store(at, b.Vec(b.Div(fade, r.lengths.Load(column)),
			b.Div(b.Mul(fade, r.scale), r.lengths.Load(b.Add(column, ir.DeltaChunk))), b.Exp(last), 0))
	})
}

// productsOf loads a row of the products.
func (r *deltaChunkRun) productsOf(row int) []kernel.Value {
	list := make([]kernel.Value, ir.DeltaChunk/4)
	for i := range list {
		list[i] = r.products.Load(row*len(list) + i)
	}
	return list
}
