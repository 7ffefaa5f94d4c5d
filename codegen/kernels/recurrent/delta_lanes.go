package recurrent

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
)

// deltaLanes is the kernel on a processor, whose workgroup has the lanes of a subgroup and all columns of a head: a
// lane has a dim of each part of the key dims. It takes 16 columns at a time, which stay in the first cache for a block
// of tokens, and changes the state where it lies. Products with k and q leave a sum in each lane for each of the
// columns; then the lanes exchange them, so that each has that of a column.
type deltaLanes struct {
	*deltaRun
	inputs  *kernel.Array // q, k and v of a block, by token
	results *kernel.Array // by token and column
	deltas  *kernel.Array // of the columns at hand
}

// deltaWide is the lanes, and the columns at a time.
const deltaWide = 16

func newDeltaLanes(r *deltaRun) *deltaLanes {
	f32 := func(n int) *kernel.Array { return r.b.Shared(kernel.F32, n) }
	r.tokens = r.b.Shared(lane.F32x2, r.block())
	return &deltaLanes{deltaRun: r, inputs: f32(r.block() * 3 * r.headDim), results: f32(r.block() * r.width()), deltas: f32(deltaWide)}
}

func (r *deltaLanes) run() {
	b := r.b
	r.findRows()
	if r.write != nil {
		r.writeRing()
	}
	if r.deltaKernel.rows.Run <= r.block() {
		r.blockFrom(r.row)
		return
	}
	b.For(0, r.rows, r.block(), r.blockFrom)
}

// dims is how many dims of a head a lane has.
func (r *deltaLanes) dims() int { return r.headDim / deltaWide }

// at returns where the lane's dim of a part of an input (0 to 2 for q, k, v) of a token is.
func (r *deltaLanes) at(token kernel.Value, input, part int) kernel.Value {
	b := r.b
	return b.Add(b.Mul(token, 3*r.headDim), input*r.headDim+part*deltaWide, b.LocalID())
}

// vector returns the lane's dims of an input of a token.
func (r *deltaLanes) vector(token kernel.Value, input int) (list []kernel.Value) {
	for part := range r.dims() {
		list = append(list, r.inputs.Load(r.at(token, input, part)))
	}
	return list
}

// blockFrom runs the block of tokens from row first on.
func (r *deltaLanes) blockFrom(first kernel.Value) {
	b := r.b
	live := b.Min(b.Sub(b.Add(r.last, 1), first), r.block())
	b.For(0, live, 1, func(token kernel.Value) { r.load(token, b.Add(first, token)) })
	b.Barrier()
	if r.norm != nil {
		b.For(0, live, 1, r.normalize)
		b.Barrier()
	}
	begun := b.Or(b.Gt(r.pos.Load(kernel.U32, r.row), 0), b.Gt(first, r.row))
	b.For(0, r.width(), deltaWide, func(column kernel.Value) {
		b.For(0, live, 1, func(token kernel.Value) { r.change(token, column, b.Or(begun, b.Gt(token, 0))) })
	})
	b.Barrier()
	b.For(0, live, 1, func(token kernel.Value) { r.store(token, b.Add(first, token)) })
	b.Barrier()
}

// load puts q, k and v of a row into shared memory, and decay and beta.
func (r *deltaLanes) load(token, row kernel.Value) {
	b := r.b
	for input := range r.firsts {
		for part := range r.dims() {
			r.inputs.Store(r.at(token, input, part), r.element(row, input, b.Add(b.LocalID(), part*deltaWide)))
		}
	}
	at := b.Add(b.Mul(row, r.heads), r.head)
	beta := r.deltaBuffers.scales.beta.Load(kernel.F32, at)
	if r.sigmoid != nil {
		beta = lane.Sigmoid(b, beta)
	}
	fade := b.Exp(r.deltaBuffers.scales.logDecay(b, at, r.head))
	b.If(b.Eq(b.LocalID(), 0), func() { r.tokens.Store(token, b.Vec(fade, beta)) })
}

// element returns a dim of q, k or v.
func (r *deltaLanes) element(row kernel.Value, input int, dim kernel.Value) kernel.Value {
	b := r.b
	channel := b.Add(r.from[input], dim)
	if r.conv != nil {
		return r.conv.at(b, row, channel)
	}
	return r.deltaBuffers.inputs[input].Load(kernel.F32, b.Add(b.Mul(row, r.widths[input]), channel))
}

// length2 returns the sum of the squares of all lanes' elements.
func (r *deltaLanes) length2(list []kernel.Value) kernel.Value {
	var sum lane.Partial
	for _, v := range list {
		sum.Product(r.b, v, v)
	}
	return r.b.SubgroupAdd(sum.Sum)
}

// normalize divides q and k of a token by their lengths.
func (r *deltaLanes) normalize(token kernel.Value) {
	b := r.b
	for input := range 2 {
		list := r.vector(token, input)
		scale := b.InverseSqrt(b.Add(r.length2(list), r.eps))
		for part, v := range list {
			r.inputs.Store(r.at(token, input, part), b.Mul(v, scale))
		}
	}
}

// change lets a token change 16 columns of the state, which is 0 before it has begun, and keeps what it says.
func (r *deltaLanes) change(token, column, begun kernel.Value) {
	b := r.b
	t := r.tokens.Load(token)
	decay, beta := b.Elem(t, 0), b.Elem(t, 1)
	head := b.Mul(b.Add(b.Mul(b.Add(b.Mul(r.slot, r.heads), r.head), r.headDim), column), r.headDim)
	place := func(c, part int) kernel.Value { return b.Add(head, c*r.headDim+part*deltaWide, b.LocalID()) }
	load := func(c, part int) kernel.Value {
		return b.Select(begun, r.stateBuffer.Load(kernel.F32, place(c, part)), 0)
	}
	q, k := r.vector(token, 0), r.vector(token, 1)
	var dots, says []kernel.Value
	for c := range deltaWide {
		var dot lane.Partial
		for part, x := range k {
			dot.Product(b, load(c, part), x)
		}
		dots = append(dots, dot.Sum)
	}
	dot := b.Mul(lane.SumEach(b, dots, b.LocalID(), 1), decay)
	v := r.inputs.Load(b.Add(b.Mul(token, 3*r.headDim), 2*r.headDim, column, b.LocalID()))
	r.deltas.Store(b.LocalID(), b.Mul(beta, b.Sub(v, dot)))
	b.Barrier()
	for c := range deltaWide {
		delta := r.deltas.Load(c)
		var said lane.Partial
		for part, x := range k {
			s := b.FMA(delta, x, b.Mul(load(c, part), decay))
			r.stateBuffer.Store(place(c, part), s)
			said.Product(b, s, q[part])
		}
		says = append(says, said.Sum)
	}
	y := b.Mul(lane.SumEach(b, says, b.LocalID(), 1), r.scale)
	r.results.Store(b.Add(b.Mul(token, r.width()), column, b.LocalID()), y)
	b.Barrier()
}

// store writes the results of a row.
func (r *deltaLanes) store(token, row kernel.Value) {
	b := r.b
	var list []kernel.Value
	for part := range r.dims() {
		list = append(list, r.results.Load(b.Add(b.Mul(token, r.width()), part*deltaWide, b.LocalID())))
	}
	scale := b.F32(1)
	if r.gated != nil {
		scale = b.InverseSqrt(b.Add(b.Div(r.length2(list), float64(r.headDim)), r.gatedEps))
	}
	for part, y := range list {
		dim := b.Add(b.LocalID(), part*deltaWide)
		at := b.Add(b.Mul(b.Add(b.Mul(row, r.heads), r.head), r.headDim), dim)
		if r.gated != nil {
			z := lane.Activations["silu"](b, r.z.Load(kernel.F32, at))
			y = b.Mul(b.Mul(y, scale), b.Mul(r.gain.Load(kernel.F32, dim), z))
		}
		r.yBuffer.Store(at, y)
	}
}

// onLanes reports whether the target is a processor.
func (k *deltaKernel) onLanes(s *site.Site) bool {
	return k.parts == 1 && s.Target.Workgroup == deltaWide && s.Target.Wave == deltaWide
}
