package recurrent

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/target"
)

// All that a block of tokens needs besides the state can be loaded before the state is ready: while one block changes
// the state, the workgroup loads the next, each of its lanes a part, and one lane a token computes the token's decay.

// onAhead reports whether blocks are loaded ahead. The lane's rows of the state are whole units of four elements.
func (k *ssdKernel) onAhead(t *target.Target) bool {
	return !t.FewKernels && !k.mixes && k.rows.Max > ssdBlock && k.held()%4 == 0 && k.heads*k.headDim%4 == 0 && k.block() <= k.lanes() &&
		k.aheadBytes() <= t.Shared
}

// aheadBytes is the shared memory of blocks and of the lanes' sums.
func (k *ssdKernel) aheadBytes() int {
	return 4*(2*k.block()*(4*k.rowQuads()+k.columns+2)) + 4*k.block()*k.lanes()
}

func (k *ssdKernel) lanes() int { return k.columns * k.parts }

// ssdBlocks are two blocks in shared memory: one is used while the other comes. Which one of two, counts in what it
// holds.
type ssdBlocks struct {
	rows   *kernel.Array // by block and token: B, then C, in units of four
	xs     *kernel.Array // by block, token and column
	scales *kernel.Array // by block and token: the decay, and the factor of x; of tokens behind the last, those that change nothing
}

func (r *ssdRun) newBlocks() {
	r.blocks = ssdBlocks{
		rows: r.b.Shared(lane.F32x4, 2*r.block()*r.rowQuads()), xs: r.b.Shared(kernel.F32, 2*r.block()*r.columns),
		scales: r.b.Shared(kernel.F32, 2*r.block()*2),
	}
}

// rowQuads is the units of B and C of a token.
func (k *ssdKernel) rowQuads() int { return 2 * k.n / 4 }

// takeAhead takes all tokens.
func (r *ssdRun) takeAhead() {
	b := r.b
	r.fetch(b.U32(0))(b.U32(0))
	b.Barrier()
	buffer := b.Var(kernel.U32, 0)
	b.ForRolled(0, r.count, r.block(), func(first kernel.Value) {
		this := buffer.Get()
		other := b.Sub(1, this)
		store := r.fetch(b.Add(first, r.block()))
		for token := range r.block() {
			r.take(b.Add(b.Mul(this, r.block()), token), b.U32(uint32(token)))
		}
		store(other)
		buffer.Set(other)
		b.Barrier()
		r.addParts(b.Add(r.row, first), b.Min(b.Sub(r.count, first), r.block()), nil)
		b.Barrier()
	})
}

// fetch loads the block whose first token is `first` and returns what stores it. Tokens behind the last one repeat it.
func (r *ssdRun) fetch(first kernel.Value) func(block kernel.Value) {
	b := r.b
	var stores []func(block kernel.Value)
	each := func(n int, load func(item, token, row kernel.Value, i kernel.Value) func(block kernel.Value)) {
		for from := 0; from < r.block()*n; from += r.lanes() {
			item := b.Add(b.LocalID(), from)
			token := b.Div(item, n)
			row := b.Add(r.row, b.Min(b.Add(first, b.Min(token, r.block()-1)), b.Sub(r.count, 1)))
			whole := load(item, token, row, b.Mod(item, n))
			store := whole
			if r.block()*n-from < r.lanes() {
				store = func(block kernel.Value) { b.If(b.Lt(item, r.block()*n), func() { whole(block) }) }
			}
			stores = append(stores, store)
		}
	}
	inner := b.Mul(r.heads, r.headDim)
	all := b.Mul(b.Div(r.heads, r.perGroup), r.n)
	group := b.Add(inner, b.Mul(b.Div(r.head, r.perGroup), r.n))
	each(r.rowQuads(), func(item, _, row, i kernel.Value) func(block kernel.Value) {
		at := b.Add(b.Mul(row, r.width), group, b.Select(b.Lt(i, r.n/4), 0, b.Sub(all, r.n)))
		v := r.x.Load(lane.F32x4, b.Add(b.Div(at, 4), i))
		return func(block kernel.Value) {
			r.blocks.rows.Store(b.Add(b.Mul(block, r.block()*r.rowQuads()), item), v)
		}
	})
	each(r.columns, func(item, _, row, i kernel.Value) func(block kernel.Value) {
		column := b.Sub(r.column, b.Mod(b.LocalID(), r.columns))
		v := r.x.Load(kernel.F32, b.Add(b.Mul(row, r.width), b.Mul(r.head, r.headDim), b.Add(column, i)))
		return func(block kernel.Value) { r.blocks.xs.Store(b.Add(b.Mul(block, r.block()*r.columns), item), v) }
	})
	each(1, func(item, token, row, _ kernel.Value) func(block kernel.Value) {
		dt := r.dts.Load(kernel.F32, r.cut.at(b, row, r.head, r.heads, 1))
		t := lane.LogDecay(b, dt, r.bias, b.F32(1))
		dead := b.Ge(b.Add(first, token), r.count)
		decay := b.Select(dead, 1, b.Exp(b.Mul(t, r.rate)))
		return func(block kernel.Value) {
			at := b.Mul(b.Add(b.Mul(block, r.block()), item), 2)
			r.blocks.scales.Store(at, decay)
			r.blocks.scales.Store(b.Add(at, 1), b.Select(dead, 0, t))
		}
	})
	return func(block kernel.Value) {
		for _, s := range stores {
			s(block)
		}
	}
}

// take is step for the token-th of a block, which lies at `at` among those of both.
func (r *ssdRun) take(at, token kernel.Value) {
	b := r.b
	x := r.blocks.xs.Load(b.Add(b.Mul(at, r.columns), b.Mod(b.LocalID(), r.columns)))
	decay, t := r.blocks.scales.Load(b.Mul(at, 2)), r.blocks.scales.Load(b.Add(b.Mul(at, 2), 1))
	first := b.Add(b.Mul(at, r.rowQuads()), b.Mul(r.part, r.held()/4))
	many := func(i int) []kernel.Value { return lane.Elements(b, r.blocks.rows.Load(b.Add(first, i))) }
	r.change(token, x, decay, b.Mul(t, x), 4, many, func(i int) []kernel.Value { return many(r.n/4 + i) })
}
