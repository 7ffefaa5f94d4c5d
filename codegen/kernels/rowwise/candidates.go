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
	// candidateLanes is the most of a workgroup, which has as many places for candidates.
	candidateLanes = 512
	// candidatesKept is the most accesses of which a lane keeps the logits. Of more it has candidatesAhead at a time,
	// and loads them again.
	candidatesKept, candidatesAhead = 8, 4
	// candidateRoom is the lanes of a unit that registers suffice for.
	candidateRoom = 3 * candidateLanes
)

// CandidatesCandidates offers a workgroup for each part of a row of logits.
func CandidatesCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	rows, ok := site.ExtentOf(s, op.Result)
	if !ok {
		return nil
	}
	k := &candidatesKernel{op: op, rows: rows, vec: site.Widest(int(op.Args[0].Type.Last()))}
	k.arrange(s.Target)
	c := site.Candidate{Kernel: k.key(), Room: candidateRoom, Grid: [3]int{ir.CandidateParts, rows.Max, 1},
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

// arrange sets the lanes of a workgroup, which are those of whole runs and a power of two, so that groups come out
// even, and what follows. A lane has about as many accesses in each turn.
func (k *candidatesKernel) arrange(t *target.Target) {
	k.wave = t.Wave
	k.size = ir.CandidateRun
	for 2*k.size <= min(t.Workgroup, candidateLanes) {
		k.size *= 2
	}
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
		r.firsts, r.sumsOf = b.Shared(kernel.F32, k.subgroups()*k.groups()), b.Shared(lane.U32x2, k.subgroups())
		r.count, r.list = b.Shared(kernel.U32, 1), b.Shared(lane.U32x2, lanes)
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
	firsts, sumsOf          *kernel.Array // the largest logits of groups; the sums of subgroups
	count, list             *kernel.Array // how many tokens may be candidates; keys and ids of as many as there is room for
}

// logitsAt is an access: neighbours from a token on, -Inf where there are none.
type logitsAt struct {
	id    kernel.Value
	x     []kernel.Value
	there *kernel.Value // whether there are; nil if so
}

// nothing is behind all keys, leastKey that of -Inf.
const (
	nothing  = math.MaxUint32
	leastKey = 0xff800000
)

// run has CandidateKeep groups of lanes find their largest logits. No candidate has less than the least of these: all
// tokens from there on, some 22, and NaNs, are listed, and each finds its place. If there is no room for so many, one
// subgroup looks at all.
func (r *candidatesRun) run() {
	b := r.b
	if r.keeps {
		r.kept = r.load(b.LocalID(), r.lanes, r.ahead)
	}
	r.findFirsts()
	b.If(b.Eq(b.LocalID(), 0), func() { r.count.Store(0, b.U32(0)) })
	b.Barrier()
	top, least, nan := r.bounds()
	r.each(func(a logitsAt) { r.note(a, least) })
	upper, lower := r.sums(top, b.And(b.Not(nan), b.Lt(b.Abs(top), math.Inf(1))))
	n := r.count.Load(0)
	to := b.Mul(b.Add(b.Mul(r.row, ir.CandidateParts), r.part), ir.CandidateWords)
	b.IfElse(b.Le(n, r.lanes), func() { r.place(n, to) }, func() {
		b.If(b.Eq(b.SubgroupID(), 0), func() { r.search(to) })
	})
	b.If(b.Eq(b.LocalID(), 0), func() {
		r.y.Store(b.Add(to, 2*ir.CandidateKeep), upper)
		r.y.Store(b.Add(to, 2*ir.CandidateKeep+1), lower)
	})
}

// groups is how many a subgroup has.
func (k *candidatesKernel) groups() int { return max(1, ir.CandidateKeep/k.subgroups()) }

// findFirsts leaves the largest logits of the groups, or NaN for one that has any.
func (r *candidatesRun) findFirsts() {
	b, next, groups := r.b, 0, r.groups()
	most, nan := make([]*kernel.Var, groups), make([]*kernel.Var, groups)
	for i := range most {
		most[i], nan[i] = b.Var(kernel.F32, math.Inf(-1)), b.Var(kernel.Bool, false)
	}
	r.each(func(a logitsAt) {
		for _, x := range a.x {
			i := next % groups
			most[i].Set(b.Max(most[i].Get(), x))
			nan[i].Set(b.Or(nan[i].Get(), b.IsNaN(x)))
			next++
		}
	})
	for i := range most {
		any := b.SubgroupAny(nan[i].Get())
		x := b.SubgroupMax(b.Select(any, 0, most[i].Get()))
		b.If(b.SubgroupElect(), func() { r.firsts.Store(b.Add(b.Mul(b.SubgroupID(), groups), i), b.Select(any, math.NaN(), x)) })
	}
}

// bounds are the largest of the groups' logits, the least of them, and whether there are NaNs, which do not count.
func (r *candidatesRun) bounds() (top, least, nan kernel.Value) {
	b, each := r.b, min(r.wave, ir.CandidateKeep)
	top, nan = b.F32(float32(math.Inf(-1))), b.Bool(false)
	least = b.F32(float32(math.Inf(1)))
	for first := 0; first < r.subgroups()*r.groups(); first += each {
		x := r.firsts.Load(b.Add(b.Mod(b.SubgroupLane(), each), first))
		nan = b.Or(nan, b.IsNaN(x))
		x = b.Select(b.IsNaN(x), math.Inf(1), x)
		top, least = b.Max(top, x), b.Min(least, x)
	}
	if each == ir.CandidateKeep { // there are as many if a lane's are one
		least = top
	}
	return b.SubgroupMax(top), b.SubgroupMin(least), b.SubgroupAny(nan)
}

// note lists the tokens of an access with logits from least on, and with NaN.
func (r *candidatesRun) note(a logitsAt, least kernel.Value) {
	b, is, some := r.b, make([]kernel.Value, len(a.x)), r.b.Bool(false)
	for i, x := range a.x {
		is[i] = b.Not(b.Lt(x, least))
		some = b.Or(some, is[i])
	}
	if a.there != nil {
		some = b.And(some, *a.there)
	}
	b.If(some, func() {
		n := b.U32(0)
		for i := range is {
			n = b.Add(n, b.Select(is[i], b.U32(1), b.U32(0)))
		}
		at := r.count.AtomicAdd(0, n)
		for i, x := range a.x {
			b.If(b.And(is[i], b.Lt(at, r.lanes)), func() { r.list.Store(at, b.Vec(r.key(x), b.Add(a.id, i))) })
			at = b.Add(at, b.Select(is[i], b.U32(1), b.U32(0)))
		}
	})
}

// place stores the candidates among n listed tokens, each in a lane, which counts those before it.
func (r *candidatesRun) place(n, to kernel.Value) {
	b, own := r.b, r.b.LocalID()
	b.IfElse(b.Lt(own, n), func() {
		v, rank := r.list.Load(own), b.Var(kernel.U32, 0)
		k, i := b.Elem(v, 0), b.Elem(v, 1)
		b.For(0, n, 1, func(j kernel.Value) {
			o := r.list.Load(j)
			rank.Set(b.Add(rank.Get(), b.Select(before(b, b.Elem(o, 0), b.Elem(o, 1), k, i), b.U32(1), b.U32(0))))
		})
		b.If(b.Lt(rank.Get(), ir.CandidateKeep), func() { r.put(to, rank.Get(), k, i) })
	}, func() {
		b.If(b.Lt(own, ir.CandidateKeep), func() { r.put(to, own, b.U32(leastKey), b.U32(0)) })
	})
}

// search has the lanes of a subgroup find and store the candidates, each behind the one before it.
func (r *candidatesRun) search(to kernel.Value) {
	b := r.b
	key, id := b.Var(kernel.U32, 0), b.Var(kernel.U32, 0)
	b.ForRolled(0, ir.CandidateKeep, 1, func(n kernel.Value) {
		most, at := b.Var(kernel.U32, uint32(nothing)), b.Var(kernel.U32, uint32(nothing))
		b.ForRolled(b.SubgroupLane(), r.accesses(), r.wave, func(access kernel.Value) {
			for _, a := range r.load(access, b.U32(0), 1) {
				for j, x := range a.x {
					k, i := r.key(x), b.Add(a.id, j)
					is := b.And(b.Or(b.Eq(n, 0), before(b, key.Get(), id.Get(), k, i)), before(b, k, i, most.Get(), at.Get()))
					most.Set(b.Select(is, k, most.Get()))
					at.Set(b.Select(is, i, at.Get()))
				}
			}
		})
		key.Set(b.SubgroupMin(most.Get()))
		id.Set(b.SubgroupMin(b.Select(b.Eq(most.Get(), key.Get()), at.Get(), b.U32(nothing))))
		b.If(b.SubgroupElect(), func() { r.put(to, n, key.Get(), id.Get()) })
	})
}

// put stores a candidate; one of -Inf has no token.
func (r *candidatesRun) put(to, place, k, i kernel.Value) {
	b, at := r.b, r.b.Add(to, r.b.Mul(place, 2))
	some := b.Lt(k, b.U32(leastKey))
	r.y.Store(at, b.Select(some, r.other(k), b.U32(leastKey))) // the key of a key is the bits, and those of -Inf are its key
	r.y.Store(b.Add(at, 1), b.Select(some, i, b.U32(0)))
}

// key is the order of op candidates.
func (r *candidatesRun) key(x kernel.Value) kernel.Value {
	return r.b.Select(r.b.IsNaN(x), r.b.U32(0), r.other(r.b.Bitcast(kernel.U32, x)))
}

// other is the key of a number's bits, and the bits of a key.
func (r *candidatesRun) other(bits kernel.Value) kernel.Value {
	b := r.b
	return b.Select(b.Lt(bits, b.U32(1<<31)), b.Xor(bits, b.U32(math.MaxInt32)), bits)
}

// before reports whether the first of two tokens is likelier.
func before(b *kernel.Builder, key, id, key2, id2 kernel.Value) kernel.Value {
	return b.Or(b.Lt(key, key2), b.And(b.Eq(key, key2), b.Lt(id, id2)))
}

// each calls f with the accesses of a lane.
func (r *candidatesRun) each(f func(a logitsAt)) {
	b := r.b
	of := func(list []logitsAt) {
		for _, a := range list {
			f(a)
		}
	}
	if r.keeps {
		of(r.kept)
		return
	}
	b.For(b.LocalID(), r.accesses(), b.Mul(r.lanes, r.ahead), func(at kernel.Value) { of(r.load(at, r.lanes, r.ahead)) })
}

// accesses is how many the part has, and maybe some behind the row.
func (r *candidatesRun) accesses() kernel.Value {
	b := r.b
	return b.Mul(b.Div(b.Add(r.vocab, ir.CandidateParts*ir.CandidateRun-1), ir.CandidateParts*ir.CandidateRun), ir.CandidateRun/r.vec)
}

// load loads n accesses of the part from one on, every step-th. A step is whole runs.
func (r *candidatesRun) load(at, step kernel.Value, n int) (list []logitsAt) {
	b := r.b
	from, each := b.Mul(r.row, r.vocab), ir.CandidateRun/r.vec
	first := b.Add(b.Mul(b.Add(b.Mul(b.Div(at, each), ir.CandidateParts), r.part), ir.CandidateRun), b.Mul(b.Mod(at, each), r.vec))
	var loaded []kernel.Value
	for j := range n {
		a := logitsAt{id: b.Add(first, b.Mul(step, j*r.vec*ir.CandidateParts))}
		at := b.Add(from, b.Min(a.id, b.Sub(r.vocab, r.vec)))
		list, loaded = append(list, a), append(loaded, r.x.Load(kernel.F32.Vec(r.vec), b.Div(at, r.vec)))
	}
	for j := range list {
		a := &list[j]
		a.x = lane.Elements(b, loaded[j])
		if r.keeps && j < r.ahead-1 && n > 1 {
			continue
		}
		there := b.Lt(a.id, r.vocab)
		a.there = &there
		for i, x := range a.x {
			a.x[i] = b.Select(there, x, math.Inf(-1))
		}
	}
	return list
}

// sums are those of the weights' upper and lower 16 bits: 0 unless the largest logit is a number.
func (r *candidatesRun) sums(top, number kernel.Value) (upper, lower kernel.Value) {
	b := r.b
	u, l := b.Var(kernel.U32, 0), b.Var(kernel.U32, 0)
	b.If(number, func() {
		r.each(func(a logitsAt) {
			for _, x := range a.x {
				w := r.weight(b.Sub(x, top))
				u.Set(b.Add(u.Get(), b.Shr(w, 16)))
				l.Set(b.Add(l.Get(), b.And(w, 1<<16-1)))
			}
		})
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

// weight is ir.CandidateWeight of a number.
func (r *candidatesRun) weight(x kernel.Value) kernel.Value {
	b := r.b
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
