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
	// candidatesKept is the most accesses of which a lane keeps the logits. Of more it has candidatesAhead at a time, and
	// loads them again for the sums.
	candidatesKept, candidatesAhead = 8, 4
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
	vec   int // logits of one access
	size  int // lanes of a workgroup
	wave  int
	ahead int  // accesses of a lane that wait for nothing
	keeps bool // these are all of its accesses, and it keeps them
}

// arrange sets the lanes of a workgroup, which are those of whole runs, and what follows. A lane has about as many
// accesses in each turn.
func (k *candidatesKernel) arrange(t *target.Target) {
	k.wave = t.Wave
	k.size = max(1, min(t.Workgroup, candidateLanes)/ir.CandidateRun) * ir.CandidateRun
	n := site.CeilDiv(int(k.op.Args[0].Type.Last()), ir.CandidateParts*k.size*k.vec)
	if k.keeps = n <= candidatesKept; k.keeps {
		k.ahead = n
	} else {
		k.ahead = site.CeilDiv(n, site.CeilDiv(n, candidatesAhead))
	}
}

func (k *candidatesKernel) key() string {
	key := fmt.Sprintf("candidates v=%d/%d w=%dx%d", k.vec, k.ahead, k.subgroups(), k.wave)
	if k.keeps {
		key += " keeps"
	}
	return key + k.rows.Key()
}

func (k *candidatesKernel) subgroups() int { return k.size / k.wave }

func (k *candidatesKernel) kernel(s *site.Signature) func(b *kernel.Builder) {
	extent := k.rows.Declare(s)
	x, y := s.Read("x", k.op.Args[0]), s.Write("y", k.op.Result)
	vocab := s.U32("vocab", int(k.op.Args[0].Type.Last()), 32000, "logits of a row")
	lanes := s.U32("workgroup", k.size, candidateLanes, "lanes")
	return func(b *kernel.Builder) {
		b.Workgroup(lanes)
		r := &candidatesRun{candidatesKernel: k, b: b, x: x, y: y, vocab: vocab, lanes: lanes, part: b.WorkgroupID(0), row: b.WorkgroupID(1)}
		r.firsts, r.sumsOf = b.Shared(lane.U32x2, k.subgroups()*ir.CandidateKeep), b.Shared(lane.U32x2, k.subgroups())
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
	kept                    []logitsAt    // of the lane, if it keeps them
	firsts, sumsOf          *kernel.Array // of the subgroups: their first tokens in order, and their sums
	first, second           candidate     // of the lane, those that it has left
}

// logitsAt is an access: neighbours, from a token on, if there are such.
type logitsAt struct {
	id, there kernel.Value
	x         []kernel.Value
}

// nothing is behind all keys, leastKey that of -Inf.
const (
	nothing  = math.MaxUint32
	leastKey = 0xff800000
)

// run has each subgroup find its first tokens. Then the first subgroup finds those of all, beside the sums. Each lane
// knows its first two: it looks at its tokens anew once it has lost both.
func (r *candidatesRun) run() {
	b := r.b
	if r.keeps {
		r.kept = r.load(b.LocalID())
	}
	r.first, r.second = newCandidate(b), newCandidate(b)
	r.next(func(k, i kernel.Value) kernel.Value { return b.Bool(true) })
	own := b.Mul(b.SubgroupID(), ir.CandidateKeep)
	b.ForRolled(0, ir.CandidateKeep, 1, func(n kernel.Value) {
		k, i := r.among(r.first.key.Get(), r.first.id.Get())
		b.If(b.SubgroupElect(), func() { r.firsts.Store(b.Add(own, n), b.Vec(k, i)) })
		b.If(b.And(b.Eq(k, r.first.key.Get()), b.Eq(i, r.first.id.Get())), func() { r.lose(k, i) })
	})
	b.Barrier()
	to := b.Mul(b.Add(b.Mul(r.row, ir.CandidateParts), r.part), ir.CandidateWords)
	b.If(b.Eq(b.SubgroupID(), 0), func() { r.merge(to) })
	upper, lower := r.sums(b.Bitcast(kernel.F32, r.bits(r.top())))
	b.If(b.Eq(b.LocalID(), 0), func() {
		r.y.Store(b.Add(to, 2*ir.CandidateKeep), upper)
		r.y.Store(b.Add(to, 2*ir.CandidateKeep+1), lower)
	})
}

// lose takes a token, its first, from a lane.
func (r *candidatesRun) lose(k, i kernel.Value) {
	b := r.b
	r.first.set(r.second.key.Get(), r.second.id.Get())
	r.second.set(b.U32(nothing), b.U32(nothing))
	b.If(b.Eq(r.first.id.Get(), b.U32(nothing)), func() {
		r.next(func(k2, i2 kernel.Value) kernel.Value { return before(b, k, i, k2, i2) })
	})
}

// merge stores the first tokens of all subgroups, each behind the one before it.
func (r *candidatesRun) merge(to kernel.Value) {
	b, share := r.b, r.shareOf(1)
	last := candidate{b.Var(kernel.U32, 0), b.Var(kernel.U32, 0)}
	b.ForRolled(0, ir.CandidateKeep, 1, func(n kernel.Value) {
		key, id := b.U32(nothing), b.U32(nothing)
		for _, t := range share {
			is := b.And(b.Or(b.Eq(n, 0), before(b, last.key.Get(), last.id.Get(), t[0], t[1])), before(b, t[0], t[1], key, id))
			key, id = b.Select(is, t[0], key), b.Select(is, t[1], id)
		}
		last.set(r.among(key, id))
		b.If(b.SubgroupElect(), func() {
			k, at := last.key.Get(), b.Add(to, b.Mul(n, 2))
			r.y.Store(at, r.bits(k))
			r.y.Store(b.Add(at, 1), b.Select(b.Lt(k, b.U32(leastKey)), last.id.Get(), b.U32(0)))
		})
	})
}

// shareOf is a lane's share of every so many first tokens of all subgroups, with some again: keys and ids.
func (r *candidatesRun) shareOf(every int) (list [][2]kernel.Value) {
	b, n := r.b, r.subgroups()*ir.CandidateKeep/every
	for first := 0; first < n; first += r.wave {
		v := r.firsts.Load(b.Mul(b.Min(b.Add(b.SubgroupLane(), first), n-1), every))
		list = append(list, [2]kernel.Value{b.Elem(v, 0), b.Elem(v, 1)})
	}
	return list
}

// top is the least key of all tokens, in all lanes.
func (r *candidatesRun) top() kernel.Value {
	b, k := r.b, r.b.U32(nothing)
	for _, t := range r.shareOf(ir.CandidateKeep) {
		k = b.Min(k, t[0])
	}
	return b.SubgroupMin(k)
}

// bits are those of the logit with a key, or of -Inf, which are its key: the key of a key is the bits.
func (r *candidatesRun) bits(k kernel.Value) kernel.Value {
	b := r.b
	return b.Select(b.Lt(k, b.U32(leastKey)), r.key(k), b.U32(leastKey))
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

// each calls f with the tokens of a lane, their logits, and whether there are such.
func (r *candidatesRun) each(f func(id, x, there kernel.Value)) {
	b := r.b
	of := func(list []logitsAt) {
		for _, a := range list {
			for i, x := range a.x {
				f(b.Add(a.id, i), x, a.there)
			}
		}
	}
	if r.keeps {
		of(r.kept)
		return
	}
	accesses := b.Mul(b.Div(b.Add(r.vocab, ir.CandidateParts*ir.CandidateRun-1), ir.CandidateParts*ir.CandidateRun), ir.CandidateRun/r.vec)
	b.For(b.LocalID(), accesses, b.Mul(r.lanes, r.ahead), func(at kernel.Value) { of(r.load(at)) })
}

// load loads the accesses of a lane from one on.
func (r *candidatesRun) load(at kernel.Value) (list []logitsAt) {
	b := r.b
	from, each := b.Mul(r.row, r.vocab), ir.CandidateRun/r.vec
	first := b.Add(b.Mul(b.Add(b.Mul(b.Div(at, each), ir.CandidateParts), r.part), ir.CandidateRun), b.Mul(b.Mod(at, each), r.vec))
	for j := range r.ahead {
		id := b.Add(first, b.Mul(r.lanes, j*r.vec*ir.CandidateParts))
		at := b.Add(from, b.Min(id, b.Sub(r.vocab, r.vec)))
		list = append(list, logitsAt{id, b.Lt(id, r.vocab), lane.Elements(b, r.x.Load(kernel.F32.Vec(r.vec), b.Div(at, r.vec)))})
	}
	return list
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
	b.If(b.SubgroupElect(), func() { r.sumsOf.Store(b.SubgroupID(), b.Vec(us, ls)) })
	b.Barrier()
	upper, lower = b.U32(0), b.U32(0)
	for j := range r.subgroups() {
		v := r.sumsOf.Load(j)
		upper, lower = b.Add(upper, b.Elem(v, 0)), b.Add(lower, b.Elem(v, 1))
	}
	return upper, lower
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
