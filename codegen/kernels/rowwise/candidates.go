package rowwise

import (
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

const (
	// candidateLanes is the most of a workgroup.
	candidateLanes = 256
	// candidatesAhead is the most accesses of a lane that wait for nothing. To 151,936 tokens it has 5.
	candidatesAhead = 5
)

// CandidatesCandidates offers a workgroup for each part of a row of logits.
func CandidatesCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	rows, ok := site.ExtentOf(s, op.Result)
	if !ok {
		return nil
	}
	k := &candidatesKernel{op: op, rows: rows, vec: site.Widest(int(op.Args[0].Type.Last()))}
	k.arrange(s.Target)
	c := site.Candidate{Kernel: k.key(), Grid: [3]int{ir.CandidateParts, rows.Max, 1},
		Work:  site.Work{Items: site.CeilDiv(int(op.Args[0].Type.Last()), ir.CandidateParts)},
		Cover: []plans.Cover{{Arg: "y", Dims: []int{rows.Max, ir.CandidateParts, ir.CandidateWords}, Tile: []int{1, 1, ir.CandidateWords}, Axis: []int{1, 0, -1}}}}
	return []site.Candidate{site.Implement(c, "candidates", k.kernel)}
}

type candidatesKernel struct {
	op    *ir.Op
	rows  site.Extent
	vec   int  // logits of one access
	size  int  // lanes of a workgroup
	ahead int  // accesses of a lane that wait for nothing
	few   bool // a subgroup has a lane for each subgroup of the workgroup
}

// arrange sets the lanes of a workgroup, which are those of whole runs, and what follows. A lane has about as many
// accesses in each turn.
func (k *candidatesKernel) arrange(t *target.Target) {
	k.size = max(1, min(t.Workgroup, candidateLanes)/ir.CandidateRun) * ir.CandidateRun
	n := site.CeilDiv(int(k.op.Args[0].Type.Last()), ir.CandidateParts*k.size*k.vec)
	k.ahead = site.CeilDiv(n, site.CeilDiv(n, candidatesAhead))
	k.few = k.size <= t.Wave*t.Wave
}

func (k *candidatesKernel) key() string {
	key := fmt.Sprintf("candidates v=%d/%d", k.vec, k.ahead)
	if k.few {
		key += " few"
	}
	return key + k.rows.Key()
}

func (k *candidatesKernel) kernel(s *site.Signature) func(b *kernel.Builder) {
	extent := k.rows.Declare(s)
	x, y := s.Read("x", k.op.Args[0]), s.Write("y", k.op.Result)
	vocab := s.U32("vocab", int(k.op.Args[0].Type.Last()), 32000, "logits of a row")
	lanes := s.U32("workgroup", k.size, candidateLanes, "lanes")
	return func(b *kernel.Builder) {
		b.Workgroup(lanes)
		r := &candidatesRun{candidatesKernel: k, b: b, x: x, y: y, vocab: vocab, lanes: lanes, part: b.WorkgroupID(0), row: b.WorkgroupID(1)}
		r.keys, r.ids = b.Shared(kernel.U32, b.Mul(lanes, 2)), b.Shared(kernel.U32, b.Mul(lanes, 2))
		rows := extent.Load(b)
		b.ReturnIf(b.Ge(r.row, rows))
		r.run()
	}
}

// candidatesRun is the kernel while it is built.
type candidatesRun struct {
	*candidatesKernel
	b                       *kernel.Builder
	x, y                    *kernel.Buffer
	vocab, lanes, part, row kernel.Value
	keys, ids               *kernel.Array // of the subgroups, in every other round in the second half
	first, second           candidate     // of the lane, those that it has left
}

// nothing is behind all keys, leastKey that of -Inf.
const (
	nothing  = math.MaxUint32
	leastKey = 0xff800000
)

// run finds the first of what the subgroups have left, again and again. Each lane knows its first two: it looks at its
// tokens anew once it has lost both. A subgroup looks at its lanes anew once it has lost its first.
func (r *candidatesRun) run() {
	b := r.b
	r.first, r.second = newCandidate(b), newCandidate(b)
	top := b.Var(kernel.F32, math.Inf(-1))
	r.next(func(k, i kernel.Value) kernel.Value { return b.Bool(true) })
	first := b.Eq(b.LocalID(), 0)
	to := b.Mul(b.Add(b.Mul(r.row, ir.CandidateParts), r.part), ir.CandidateWords)
	ours := newCandidate(b)
	ours.set(r.among(r.first.key.Get(), r.first.id.Get()))
	b.ForRolled(0, ir.CandidateKeep, 1, func(n kernel.Value) {
		k, i := r.best(ours, b.Mul(b.And(n, 1), r.lanes))
		some := b.Lt(k, b.U32(leastKey))
		bits := b.Select(some, r.key(k), b.U32(leastKey)) // the key of a key is the bits, and those of -Inf are its key
		top.Set(b.Select(b.Eq(n, 0), b.Bitcast(kernel.F32, bits), top.Get()))
		b.If(first, func() {
			at := b.Add(to, b.Mul(n, 2))
			r.y.Store(at, bits)
			r.y.Store(b.Add(at, 1), b.Select(some, i, b.U32(0)))
		})
		lost := b.And(b.Eq(k, ours.key.Get()), b.Eq(i, ours.id.Get()))
		b.If(b.And(lost, b.Lt(n, ir.CandidateKeep-1)), func() { r.lose(k, i, ours) })
	})
	upper, lower := r.sums(top.Get())
	b.If(first, func() {
		r.y.Store(b.Add(to, 2*ir.CandidateKeep), upper)
		r.y.Store(b.Add(to, 2*ir.CandidateKeep+1), lower)
	})
}

// lose takes a token, the subgroup's first, from its lane.
func (r *candidatesRun) lose(k, i kernel.Value, ours candidate) {
	b := r.b
	b.If(b.And(b.Eq(k, r.first.key.Get()), b.Eq(i, r.first.id.Get())), func() {
		r.first.set(r.second.key.Get(), r.second.id.Get())
		r.second.set(b.U32(nothing), b.U32(nothing))
		b.If(b.Eq(r.first.id.Get(), b.U32(nothing)), func() {
			r.next(func(k2, i2 kernel.Value) kernel.Value { return before(b, k, i, k2, i2) })
		})
	})
	ours.set(r.among(r.first.key.Get(), r.first.id.Get()))
}

// key is the order of op candidates of a number that is not NaN, by its bits.
func (r *candidatesRun) key(bits kernel.Value) kernel.Value {
	b := r.b
	return b.Select(b.Lt(bits, b.U32(1<<31)), b.Xor(bits, b.U32(math.MaxInt32)), bits)
}

// candidate is a token of a lane; nothing, if it has none.
type candidate struct{ key, id *kernel.Var }

func newCandidate(b *kernel.Builder) candidate {
	return candidate{b.Var(kernel.U32, uint32(nothing)), b.Var(kernel.U32, uint32(nothing))}
}

func (c candidate) set(key, id kernel.Value) {
	c.key.Set(key)
	c.id.Set(id)
}

// before reports whether the first of two tokens is likelier.
func before(b *kernel.Builder, key, id, key2, id2 kernel.Value) kernel.Value {
	return b.Or(b.Lt(key, key2), b.And(b.Eq(key, key2), b.Lt(id, id2)))
}

// next finds the first two of a lane's tokens for which want holds, of which it knows none. Their ids ascend, so that
// of equal keys the first stays.
func (r *candidatesRun) next(want func(key, id kernel.Value) kernel.Value) {
	b := r.b
	r.each(func(i, x, there kernel.Value) {
		k := b.Select(b.IsNaN(x), b.U32(0), r.key(b.Bitcast(kernel.U32, x)))
		is := b.And(there, want(k, i))
		k = b.Select(is, k, b.U32(nothing))
		key, id, key2, id2 := r.first.key.Get(), r.first.id.Get(), r.second.key.Get(), r.second.id.Get()
		isFirst, isSecond := b.Lt(k, key), b.Lt(k, key2)
		r.second.set(b.Select(isFirst, key, b.Select(isSecond, k, key2)), b.Select(isFirst, id, b.Select(isSecond, i, id2)))
		r.first.set(b.Select(isFirst, k, key), b.Select(isFirst, i, id))
	})
}

// each calls f with the tokens of a lane, their logits, and whether there are such. Lanes are whole runs.
func (r *candidatesRun) each(f func(id, x, there kernel.Value)) {
	b := r.b
	runs := b.Div(b.Add(r.vocab, ir.CandidateRun-1), ir.CandidateRun)
	mine := b.Div(b.Add(b.Sub(runs, r.part), ir.CandidateParts-1), ir.CandidateParts) // of these
	mine = b.Select(b.Lt(r.part, runs), mine, b.U32(0))
	from := b.Mul(r.row, r.vocab)
	each := ir.CandidateRun / r.vec // accesses of a run
	b.For(b.LocalID(), b.Mul(mine, each), b.Mul(r.lanes, r.ahead), func(at kernel.Value) {
		first := b.Add(b.Mul(b.Add(b.Mul(b.Div(at, each), ir.CandidateParts), r.part), ir.CandidateRun), b.Mul(b.Mod(at, each), r.vec))
		id, there, x := make([]kernel.Value, r.ahead), make([]kernel.Value, r.ahead), make([][]kernel.Value, r.ahead)
		for j := range x {
			id[j] = b.Add(first, b.Mul(r.lanes, j*r.vec*ir.CandidateParts))
			there[j] = b.Lt(id[j], r.vocab)
			at := b.Add(from, b.Min(id[j], b.Sub(r.vocab, r.vec)))
			x[j] = lane.Elements(b, r.x.Load(kernel.F32.Vec(r.vec), b.Div(at, r.vec)))
		}
		for j := range x {
			for i, v := range x[j] {
				f(b.Add(id[j], i), v, there[j])
			}
		}
	})
}

// best is the first of what all subgroups have, in all lanes. It takes shared memory from `from` on, which the next
// round does not take.
func (r *candidatesRun) best(ours candidate, from kernel.Value) (k, i kernel.Value) {
	b := r.b
	b.If(b.SubgroupElect(), func() {
		at := b.Add(from, b.SubgroupID())
		r.keys.Store(at, ours.key.Get())
		r.ids.Store(at, ours.id.Get())
	})
	b.Barrier()
	if r.few { // further lanes repeat the last
		at := b.Add(from, b.Min(b.SubgroupLane(), b.Sub(b.NumSubgroups(), 1)))
		return r.among(r.keys.Load(at), r.ids.Load(at))
	}
	most, at := b.Var(kernel.U32, uint32(nothing)), b.Var(kernel.U32, uint32(nothing))
	b.ForRolled(b.SubgroupLane(), b.NumSubgroups(), b.Div(r.lanes, b.NumSubgroups()), func(j kernel.Value) {
		v, n := r.keys.Load(b.Add(from, j)), r.ids.Load(b.Add(from, j))
		is := before(b, v, n, most.Get(), at.Get())
		most.Set(b.Select(is, v, most.Get()))
		at.Set(b.Select(is, n, at.Get()))
	})
	return r.among(most.Get(), at.Get())
}

// among is the first of what the lanes of a subgroup have.
func (r *candidatesRun) among(key, id kernel.Value) (k, i kernel.Value) {
	b := r.b
	k = b.SubgroupMin(key)
	return k, b.SubgroupMin(b.Select(b.Eq(key, k), id, b.U32(nothing)))
}

// sums are those of the weights' upper and lower 16 bits.
func (r *candidatesRun) sums(top kernel.Value) (upper, lower kernel.Value) {
	b := r.b
	u, l := b.Var(kernel.U32, 0), b.Var(kernel.U32, 0)
	r.each(func(_, x, there kernel.Value) {
		w := b.Select(there, r.weight(b.Sub(x, top)), b.U32(0))
		u.Set(b.Add(u.Get(), b.Shr(w, 16)))
		l.Set(b.Add(l.Get(), b.And(w, 1<<16-1)))
	})
	us, ls := b.SubgroupAdd(u.Get()), b.SubgroupAdd(l.Get())
	from := b.Mul(r.lanes, ir.CandidateKeep%2) // as in one round more
	b.If(b.SubgroupElect(), func() {
		at := b.Add(from, b.SubgroupID())
		r.keys.Store(at, us)
		r.ids.Store(at, ls)
	})
	b.Barrier()
	u, l = b.Var(kernel.U32, 0), b.Var(kernel.U32, 0)
	b.For(from, b.Add(from, b.NumSubgroups()), 1, func(j kernel.Value) {
		u.Set(b.Add(u.Get(), r.keys.Load(j)))
		l.Set(b.Add(l.Get(), r.ids.Load(j)))
	})
	return u.Get(), l.Get()
}

// weight is ir.CandidateWeight.
func (r *candidatesRun) weight(x kernel.Value) kernel.Value {
	b := r.b
	x = b.Select(b.IsNaN(x), b.F32(-2*ir.CandidateBits), x)
	y := b.Min(b.Mul(b.Neg(x), float64(float32(math.Log2E))), float64(ir.CandidateBits+2))
	n := b.Convert(kernel.U32, y)
	f := b.Sub(y, b.Convert(kernel.F32, n))
	last := len(ir.CandidateExp2) - 1
	p := b.F32(ir.CandidateExp2[last])
	for i := last - 1; i >= 0; i-- {
		p = b.Add(b.Mul(p, f), float64(ir.CandidateExp2[i]))
	}
	w := b.Shl(b.Convert(kernel.U32, b.Mul(p, float64(1<<24))), 32-1-24)
	return b.Select(b.Gt(n, ir.CandidateBits), b.U32(0), b.Shr(w, b.Min(n, ir.CandidateBits)))
}
