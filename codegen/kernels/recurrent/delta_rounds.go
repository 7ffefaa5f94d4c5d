package recurrent

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
)

// inRounds is the kernel of a workgroup that takes its columns in rounds: the state is in memory between
// the blocks of tokens.
func (r *deltaRun) inRounds() {
	b := r.b
	if r.write != nil {
		r.writeRing()
	}
	if r.deltaKernel.rows.Max <= r.block() {
		r.roundsFrom(r.row)
		return
	}
	b.For(0, r.rows, r.block(), r.roundsFrom)
}

// roundsFrom runs the block of tokens from row first on.
func (r *deltaRun) roundsFrom(first kernel.Value) {
	b := r.b
	live := b.Min(b.Sub(b.Add(r.last, 1), first), r.block())
	r.load(first)
	b.Barrier()
	if r.norm != nil {
		r.normalize()
		b.Barrier()
	}
	begun := b.Or(b.Gt(r.pos.Load(kernel.U32, r.row), 0), b.Gt(first, r.row))
	b.For(0, r.rounds, 1, func(round kernel.Value) {
		r.round, r.state = round, [deltaColumns][]*kernel.Var{}
		r.eachState(func(c, _ int, at kernel.Value) {
			s := b.Select(b.Splat(begun, 4), r.stateBuffer.Load(lane.F32x4, at), 0)
			r.state[c] = append(r.state[c], b.Var(lane.F32x4, s))
		})
		b.For(0, live, 1, r.step)
		r.storeState()
	})
	b.Barrier()
	r.results4(first, live)
}

// load puts q, k and v of a block of tokens into shared memory, and decay and beta. Rows past the
// end repeat the last one.
func (r *deltaRun) load(first kernel.Value) {
	b, d := r.b, r.headDim
	row := func(token kernel.Value) kernel.Value { return b.Min(b.Add(first, token), r.last) }
	b.For(b.LocalID(), r.block()*3*d, r.lanes(), func(at kernel.Value) {
		token, input, i := b.Div(at, 3*d), b.Mod(b.Div(at, d), 3), b.Mod(at, d)
		r.inputs.StoreElem(b.Div(at, 4), b.Mod(at, 4), r.input(row(token), input, i))
	})
	r.decay, r.beta = b.Var(kernel.F32, 0), b.Var(kernel.F32, 0)
	r.scales(row(b.Min(b.LocalID(), r.block()-1)))
	r.keepScales()
}

// results4 writes the results of a block, four elements a lane at a time.
func (r *deltaRun) results4(first, live kernel.Value) {
	b, quads := r.b, r.width()/4
	b.For(b.LocalID(), b.Mul(live, quads), r.lanes(), func(i kernel.Value) {
		token, quad := b.Div(i, quads), b.Mod(i, quads)
		at := b.Add(b.Mul(b.Add(b.Mul(b.Add(first, token), r.heads), r.head), r.headDim/4), quad)
		y := r.results.Load(i)
		if r.gated != nil {
			_, squares := r.squares4(r.results, b.Mul(token, quads))
			scale := b.InverseSqrt(b.Add(b.Div(squares, float64(r.headDim)), r.gatedEps))
			z, gain := r.z.Load(lane.F32x4, at), r.gain.Load(lane.F32x4, quad)
			y = b.Mul(y, b.Splat(scale, 4), gain, lane.EachElement(b, z, lane.Activations["silu"]))
		}
		r.yBuffer.Store(at, y)
	})
}
