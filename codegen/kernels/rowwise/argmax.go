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

func ArgmaxCandidates(s *site.Site, _ *ir.Op) []site.Candidate {
	k, ok := matchArgmax(s)
	if !ok {
		return nil
	}
	if s.Target.FewKernels {
		k.vec = 1
	}
	return []site.Candidate{k.candidate(s.Target)}
}

// argmaxKernel is a group of argmax, whole or split and merged, advance, or both. The
// parts of a split are workgroups; the last to end merges them and goes on.
type argmaxKernel struct {
	logits  *ir.Value   // nil without argmax
	masks   []*ir.Value // masked and mask, or none
	among   *ir.Value   // op candidates of the logits, or nil
	part    *ir.Op      // the split, or nil
	counts  *ir.Value   // counters of the last-block reduction of its parts
	next    *ir.Value   // the choices; nil when nobody outside of the group reads them
	advance *ir.Op      // or nil
	rows    site.Extent // of the choices
	vec     int         // logits of one access
}

func matchArgmax(s *site.Site) (*argmaxKernel, bool) {
	k := &argmaxKernel{vec: 1}
	for _, op := range s.Group.Ops {
		if !k.take(s, op) {
			return nil, false
		}
	}
	var ok bool
	if k.next == nil || k.part != nil && k.counts == nil {
		return nil, false
	}
	if k.rows, ok = site.ExtentOf(s, k.next); !ok {
		return nil, false
	}
	if k.next.Type.Shape[0] == 1 {
		k.rows.N = nil // it stands for the last row, not for the first
	}
	if k.advance != nil && k.logits != nil && len(s.Outputs) == 0 {
		k.next = nil
	}
	if k.advance != nil && k.rows.N != nil && k.rows.N != k.advance.Args[4] {
		return nil, false
	}
	return k, true
}

// take adds an op of the group.
func (k *argmaxKernel) take(s *site.Site, op *ir.Op) bool {
	first := k.logits == nil && k.advance == nil
	switch op.Kind.Name {
	case "argmax":
		k.choose(op)
		k.next = op.Result
		return first
	case "argmax_split":
		k.choose(op)
		k.part, k.counts = op, site.Arrivals(s, 1)
		return first
	case "argmax_merge":
		k.next = op.Result
		return k.part != nil && op.Args[0] == k.part.Result
	case "advance":
		fits := k.advance == nil && (k.next == nil || k.next == op.Args[0])
		k.advance, k.next = op, op.Args[0]
		return fits
	}
	return false
}

// choose takes logits.
func (k *argmaxKernel) choose(op *ir.Op) {
	k.logits, k.masks = op.Args[0], op.Args[1:]
	if len(k.masks) > 2 {
		k.masks, k.among = op.Args[1:3], op.Args[3]
	}
	k.vec = site.Widest(int(k.logits.Type.Last()))
}

func (k *argmaxKernel) key() string {
	key := "argmax"
	if k.logits != nil {
		key += fmt.Sprintf(" choose v=%d", k.vec)
		if k.part != nil {
			key += " split"
			if n := k.together(); n > 1 {
				key += fmt.Sprintf("/%d", n)
			}
		}
		if len(k.masks) > 0 {
			key += " masked"
		}
		if k.among != nil {
			key += " among"
		}
		if k.next != nil {
			key += " next"
		}
	}
	if k.advance != nil {
		key += " advance"
	}
	return key + k.rows.Key()
}

// stepAccess is what advance does to its operands from token on.
var stepAccess = []kernel.Access{kernel.Write, kernel.ReadWrite, kernel.ReadWrite, kernel.ReadWrite, kernel.Write, kernel.ReadWrite}

func (k *argmaxKernel) candidate(t *target.Target) site.Candidate {
	c := site.Candidate{Kernel: k.key(), Grid: [3]int{k.splits(), 1, 1}}
	var meet []int
	if k.logits != nil {
		c.Work.Items = site.CeilDiv(int(k.logits.Type.Last()), k.splits())
		if k.among != nil {
			c.Work.Items = ir.CandidateParts
		}
	}
	if k.part != nil {
		c.Grid[1] = k.rows.Max
		meet = []int{0, 1}
		c.Cover = append(c.Cover, plans.Cover{Arg: "partial", Dims: []int{k.rows.Max, k.splits(), 2}, Tile: []int{1, 1, 2}, Axis: []int{1, 0, -1}})
	}
	cover := func(name string, dims ...int) {
		axis := make([]int, len(dims))
		for i := range axis {
			axis[i] = -1
		}
		c.Cover = append(c.Cover, plans.Cover{Arg: name, Dims: dims, Tile: dims, Axis: axis, Joined: meet})
	}
	if k.next != nil && k.logits != nil {
		cover("next", k.rows.Max)
	}
	if k.advance != nil {
		for _, name := range []string{"token", "pos", "slot"} {
			cover(name, k.rows.Max)
		}
		cover("n", 1)
		cover("count", 1)
		cover("out", min(k.ring(), k.rows.Max))
	}
	size := k.size(t)
	return site.Implement(c, "argmax", func(s *site.Signature) func(b *kernel.Builder) { return k.kernel(s, size) })
}

// size is the lanes of a workgroup.
func (k *argmaxKernel) size(t *target.Target) int {
	if k.logits == nil {
		return t.Wave
	}
	return min(site.CeilDiv(int(k.logits.Type.Last())/k.vec, t.Wave)*t.Wave, min(t.Workgroup, k.lanes())/t.Wave*t.Wave)
}

// ring is how many tokens a burst may write.
func (k *argmaxKernel) ring() int { return int(k.advance.Args[5].Type.Shape[0]) }

// splits is the workgroups that share a row.
func (k *argmaxKernel) splits() int {
	if k.part == nil {
		return 1
	}
	return k.part.Attrs.Int("splits")
}

// lanes is the most of a workgroup: the only one has all of the latency to hide.
func (k *argmaxKernel) lanes() int {
	if k.part == nil {
		return 1024
	}
	return 256
}

func (k *argmaxKernel) kernel(s *site.Signature, size int) func(b *kernel.Builder) {
	r := &argmaxRun{argmaxKernel: k}
	bounded := k.rows.N == nil || k.advance == nil // else @n is an operand of advance
	var extent site.StepRows
	if bounded {
		extent = k.rows.Declare(s)
	}
	if k.logits != nil {
		r.x, r.vocab = s.Read("logits", k.logits), s.U32("vocab", int(k.logits.Type.Last()), 32000, "logits of a row")
		if len(k.masks) > 0 {
			r.masked, r.mask = s.Read("masked", k.masks[0]), s.Read("mask", k.masks[1])
		}
		if k.among != nil {
			r.candidates = s.Read("candidates", k.among)
		}
	}
	if k.part != nil {
		r.partial, r.counts = s.Update("partial", k.part.Result), s.Update("arrivals", k.counts)
		r.splits = s.U32("splits", k.splits(), 1, "workgroups that share a row")
	}
	switch {
	case k.next != nil && k.logits == nil:
		r.chosen = s.Read("next", k.next)
	case k.next != nil:
		r.chosen = s.Write("next", k.next)
	}
	if k.advance != nil {
		for i, access := range stepAccess {
			r.step[i] = s.Arg(k.advance.Kind.Params[i+1], k.advance.Args[i+1], access)
		}
		r.ring = s.U32("ring", k.ring(), 64, "tokens of a burst, at most")
	}
	r.size = s.U32("workgroup", size, 1024, "lanes")
	return func(b *kernel.Builder) {
		r.b = b
		if bounded {
			r.bound = extent.Load(b)
		}
		b.Workgroup(r.size)
		if k.logits != nil {
			r.tops, r.indices = b.Shared(kernel.F32, r.size), b.Shared(kernel.U32, r.size)
		}
		r.run()
	}
}

const (
	// argmaxAhead is the accesses of a lane that wait for nothing.
	argmaxAhead = 8
	// argmaxRows is the rows of which a subgroup merges parts at once, at most.
	argmaxRows = 8
)

// argmaxRun is the kernel while it is built.
type argmaxRun struct {
	*argmaxKernel
	b           *kernel.Builder
	bound       kernel.Value // rows, but those of @n where advance writes it
	n, count    kernel.Value // of the step block, as they were
	x, chosen   *kernel.Buffer
	masked      *kernel.Buffer // nil without masks
	mask        *kernel.Buffer
	candidates  *kernel.Buffer // nil without
	partial     *kernel.Buffer
	counts      *kernel.Buffer
	splits      kernel.Value
	step        [6]*kernel.Buffer // token, pos, slot, n, out, count
	vocab, ring kernel.Value
	size        kernel.Value

	tops, indices *kernel.Array // of the subgroups
}

func (r *argmaxRun) run() {
	b := r.b
	if r.advance != nil && r.rows.N != nil {
		r.n = r.step[3].Load(kernel.U32, 0)
		r.bound = r.n
	}
	first := b.Eq(b.LocalID(), 0)
	if r.part != nil {
		r.chooseParts(first)
	}
	if r.advance != nil { // behind chooseParts: workgroups that are not the last one must not see what this one stores
		if r.rows.N == nil {
			r.n = r.step[3].Load(kernel.U32, 0)
		}
		r.count = r.step[5].Load(kernel.U32, 0)
	}
	switch {
	case r.part != nil && r.together() > 1:
		b.For(b.SubgroupID(), r.bound, b.Mul(b.NumSubgroups(), r.together()), r.finishRows)
	case r.part != nil:
		b.For(b.SubgroupID(), r.bound, b.NumSubgroups(), func(row kernel.Value) { r.finish(row, b.SubgroupElect(), r.merge) })
	default:
		b.For(0, r.bound, 1, func(row kernel.Value) { r.finish(row, first, r.chooseRow) })
	}
	if r.advance != nil {
		b.BarrierBuffers() // all have read the step block
		b.If(first, func() {
			r.step[5].Store(0, b.Add(r.count, r.bound))
			r.step[3].Store(0, r.bound)
		})
	}
}

// finish writes what choose returns for a row, in the lane that is to, and lets the row of
// the step block follow its source.
func (r *argmaxRun) finish(row, writes kernel.Value, choose func(row kernel.Value) kernel.Value) {
	at, seq := r.source(row, writes)
	next := choose(row)
	r.b.If(writes, func() { r.put(row, next, at, seq) })
}

// source loads position and sequence of the source of a row, in the lane that writes it.
func (r *argmaxRun) source(row, writes kernel.Value) (at, seq *kernel.Var) {
	b := r.b
	at, seq = b.Var(kernel.U32, 0), b.Var(kernel.U32, 0)
	if r.advance == nil {
		return at, seq
	}
	if r.rows.N == nil {
		row = b.Sub(r.n, 1)
	}
	b.If(writes, func() { // early, and in no other lane: it may come late, when the row is written
		at.Set(r.step[1].Load(kernel.U32, row))
		seq.Set(r.step[2].Load(kernel.U32, row))
	})
	return at, seq
}

// put writes a row.
func (r *argmaxRun) put(row, next kernel.Value, at, seq *kernel.Var) {
	b := r.b
	if r.logits != nil && r.next != nil {
		r.chosen.Store(row, next)
	}
	if r.advance != nil {
		r.step[0].Store(row, next)
		r.step[1].Store(row, b.Add(at.Get(), 1))
		r.step[2].Store(row, seq.Get())
		r.step[4].Store(b.Mod(b.Add(r.count, row), r.ring), next)
	}
}

// finishRows is finish of several rows of a subgroup, whose loads wait for each other else: first, and on.
func (r *argmaxRun) finishRows(first kernel.Value) {
	b := r.b
	var rows []kernel.Value
	var at, seq, tops, ids []*kernel.Var
	for j := range r.together() {
		row := b.Add(first, b.Mul(b.NumSubgroups(), j))
		a, s := r.source(row, b.And(b.SubgroupElect(), b.Lt(row, r.bound)))
		rows, at, seq = append(rows, row), append(at, a), append(seq, s)
		tops, ids = append(tops, b.Var(kernel.F32, math.Inf(-1))), append(ids, b.Var(kernel.U32, 0))
	}
	b.For(b.SubgroupLane(), r.splits, b.Div(r.size, b.NumSubgroups()), func(i kernel.Value) {
		var parts []kernel.Value
		for _, row := range rows {
			parts = append(parts, r.partOf(b.Min(row, b.Sub(r.bound, 1)), i))
		}
		for j, part := range parts {
			takeBest(b, tops[j], ids[j], b.Elem(part, 0), b.Convert(kernel.U32, b.Elem(part, 1)))
		}
	})
	for j, row := range rows {
		_, next := r.among(tops[j], ids[j])
		b.If(b.And(b.SubgroupElect(), b.Lt(row, r.bound)), func() { r.put(row, next, at[j], seq[j]) })
	}
}

// together is the rows that a subgroup merges at once.
func (k *argmaxKernel) together() int {
	return min(argmaxRows, site.CeilDiv(k.rows.Max, target.DecodeRows))
}

// chooseParts writes what the workgroup finds in its part of its row, and ends all
// workgroups but the last.
func (r *argmaxRun) chooseParts(first kernel.Value) {
	b := r.b
	step := b.Mul(b.Div(b.Add(b.Div(b.Sub(b.Add(r.vocab, r.splits), 1), r.splits), 3), 4), 4/r.vec)
	end := b.Div(r.vocab, r.vec)
	part, row := b.WorkgroupID(0), b.WorkgroupID(1)
	lo := b.Mul(part, step)
	top, index := r.choose(row, lo, b.Min(end, b.Add(lo, step)))
	b.If(b.And(first, b.Lt(row, r.bound)), func() {
		r.partial.Store(b.Add(b.Mul(row, r.splits), part), b.Vec(top, b.Convert(kernel.F32, index)))
	})
	// Workgroups of rows that the step has not arrive, too: they have read @n, which the last one writes.
	b.ReturnIf(b.Not(site.LastBlock(b, r.counts, b.U32(0), b.Mul(r.splits, b.NumWorkgroups(1)))))
}

// merge returns the smallest index of the largest number of all parts of a row, in all lanes
// of a subgroup.
func (r *argmaxRun) merge(row kernel.Value) kernel.Value {
	b := r.b
	_, index := r.best(r.splits, func(i kernel.Value) (kernel.Value, kernel.Value) {
		part := r.partOf(row, i)
		return b.Elem(part, 0), b.Convert(kernel.U32, b.Elem(part, 1))
	})
	return index
}

// partOf is what a part of a row has left: its largest number and that one's index.
func (r *argmaxRun) partOf(row, i kernel.Value) kernel.Value {
	return r.partial.Load(lane.F32x2, r.b.Add(r.b.Mul(row, r.splits), i))
}

// chooseRow is merge for a row that is not split, and a workgroup.
func (r *argmaxRun) chooseRow(row kernel.Value) kernel.Value {
	b := r.b
	if r.logits == nil {
		return r.chosen.Load(kernel.U32, row)
	}
	_, index := r.choose(row, b.U32(0), b.Div(r.vocab, r.vec))
	b.Barrier() // the next row takes the same shared memory
	return index
}

// choose returns the largest of a row's logits in some accesses that may be chosen, and its smallest index, in all
// lanes: -Inf and 0 if none is a number above -Inf.
func (r *argmaxRun) choose(row, lo, hi kernel.Value) (top, index kernel.Value) {
	b := r.b
	c := &chosen{argmaxRun: r, from: b.Mul(row, b.Div(r.vocab, r.vec)), lo: lo, hi: hi}
	for j := range c.most[:c.chains()] {
		c.most[j], c.at[j] = b.Var(kernel.F32, math.Inf(-1)), b.Var(kernel.U32, 0)
	}
	if r.masked == nil {
		c.scan(nil)
	} else {
		masked := r.masked.Load(kernel.U32, row)
		b.IfElse(b.Eq(masked, 0), func() { c.lookAmong(row) }, func() {
			words := b.Mul(b.Sub(masked, 1), b.Div(b.Add(r.vocab, 31), 32))
			c.scan(func(i kernel.Value) kernel.Value { return r.mask.Load(kernel.U32, b.Add(words, b.Shr(i, 5))) })
		})
	}
	for j := 1; j < c.chains(); j++ {
		v, i := c.most[j].Get(), c.at[j].Get()
		more := b.Or(b.Gt(v, c.most[0].Get()), b.And(b.Eq(v, c.most[0].Get()), b.Lt(i, c.at[0].Get())))
		c.most[0].Set(b.Select(more, v, c.most[0].Get()))
		c.at[0].Set(b.Select(more, i, c.at[0].Get()))
	}
	return r.ofSubgroups(r.among(c.most[0], c.at[0]))
}

// chainsInLines is how many numbers a lane compares without waiting for the one before, where lanes take neighbours.
const chainsInLines = 4

// chosen is what a lane has found in accesses lo to hi of a row, which begins at from.
type chosen struct {
	*argmaxRun
	from, lo, hi kernel.Value
	most, at     [chainsInLines]*kernel.Var
}

// chains is how many of most and at there are.
func (c *chosen) chains() int {
	if c.vec == 1 {
		return chainsInLines
	}
	return 1
}

// lookAmong is scan without a mask. The first candidates of the parts of a row are its largest logits, and the first
// lanes that look at the row have them all: unless one is NaN, which may hide others, or the largest is 0, of whose two
// forms candidates have the positive one first.
func (c *chosen) lookAmong(row kernel.Value) {
	if c.candidates == nil {
		c.scan(nil)
		return
	}
	b := c.b
	top, at, nan := b.Var(kernel.F32, math.Inf(-1)), b.Var(kernel.U32, 0), b.Var(kernel.Bool, false)
	from := b.Mul(row, ir.CandidateRow)
	b.For(b.SubgroupLane(), ir.CandidateParts, b.Div(c.size, b.NumSubgroups()), func(part kernel.Value) {
		first := b.Add(from, b.Mul(part, ir.CandidateWords))
		x := c.candidates.Load(kernel.F32, first)
		takeBest(b, top, at, x, c.candidates.Load(kernel.U32, b.Add(first, 1)))
		nan.Set(b.Or(nan.Get(), b.IsNaN(x)))
	})
	most := b.SubgroupMax(top.Get())
	b.IfElse(b.Or(b.SubgroupAny(nan.Get()), b.Eq(most, 0)), func() { c.scan(nil) }, func() {
		b.If(b.And(b.Eq(c.lo, 0), b.Eq(b.SubgroupID(), 0)), func() {
			c.most[0].Set(top.Get())
			c.at[0].Set(at.Get())
		})
	})
}

// scan looks at the logits; word gives that of the mask with a token's bit, if there is one.
func (c *chosen) scan(word func(i kernel.Value) kernel.Value) {
	if c.vec == 1 {
		c.scanLines(word)
		return
	}
	b := c.b
	b.For(b.Add(c.lo, b.LocalID()), c.hi, b.Mul(c.size, argmaxAhead), func(first kernel.Value) {
		var i, x, bits [argmaxAhead]kernel.Value
		for j := range x {
			// The last access may be seen again, which changes nothing.
			i[j] = b.Min(b.Add(first, b.Mul(c.size, j)), b.Sub(c.hi, 1))
			x[j] = c.x.Load(kernel.F32.Vec(c.vec), b.Add(c.from, i[j]))
		}
		for j := range x {
			i[j] = b.Mul(i[j], c.vec)
			if word != nil {
				bits[j] = word(i[j])
			}
		}
		for j := range x {
			for e, v := range lane.Elements(b, x[j]) {
				c.see(0, v, b.Add(i[j], e), bits[j], word != nil)
			}
		}
	})
}

// scanLines is scan where lanes take neighbours, so that none of the accesses gathers.
func (c *chosen) scanLines(word func(i kernel.Value) kernel.Value) {
	b := c.b
	b.For(c.lo, c.hi, b.Mul(c.size, chainsInLines), func(first kernel.Value) {
		for j := range chainsInLines {
			i := b.Add(first, b.Mul(c.size, j), b.LocalID())
			b.If(b.Lt(i, c.hi), func() {
				v := c.x.Load(kernel.F32, b.Add(c.from, i))
				if word == nil {
					c.see(j, v, i, kernel.Value{}, false)
				} else {
					c.see(j, v, i, word(i), true)
				}
			})
		}
	})
}

// see takes the logit of token i if it is larger than those before, and may be chosen. It never takes a NaN.
func (c *chosen) see(chain int, v, i, bits kernel.Value, masked bool) {
	b, most, at := c.b, c.most[chain], c.at[chain]
	more := b.Gt(v, most.Get())
	if masked {
		more = b.And(more, b.Ne(b.And(b.Shr(bits, b.And(i, 31)), 1), 0))
	}
	most.Set(b.Select(more, v, most.Get()))
	at.Set(b.Select(more, i, at.Get()))
}

// ofSubgroups returns the largest of what the subgroups of a workgroup have found and its smallest index, in all lanes.
func (r *argmaxRun) ofSubgroups(top, index kernel.Value) (kernel.Value, kernel.Value) {
	b := r.b
	b.If(b.SubgroupElect(), func() {
		r.tops.Store(b.SubgroupID(), top)
		r.indices.Store(b.SubgroupID(), index)
	})
	b.Barrier()
	return r.best(b.NumSubgroups(), func(i kernel.Value) (kernel.Value, kernel.Value) {
		return r.tops.Load(i), r.indices.Load(i)
	})
}

// best returns the largest of n numbers and its smallest index, in all lanes of a subgroup,
// which load them together: -Inf and 0 if none is above -Inf.
func (r *argmaxRun) best(n kernel.Value, load func(i kernel.Value) (v, index kernel.Value)) (top, index kernel.Value) {
	b := r.b
	most, at := b.Var(kernel.F32, math.Inf(-1)), b.Var(kernel.U32, 0)
	b.For(b.SubgroupLane(), n, b.Div(r.size, b.NumSubgroups()), func(i kernel.Value) {
		v, j := load(i)
		takeBest(b, most, at, v, j)
	})
	return r.among(most, at)
}

// takeBest takes a number and its index if it is larger than the most, or as large and its index smaller.
func takeBest(b *kernel.Builder, most, at *kernel.Var, v, index kernel.Value) {
	more := b.Or(b.Gt(v, most.Get()), b.And(b.Eq(v, most.Get()), b.Lt(index, at.Get())))
	most.Set(b.Select(more, v, most.Get()))
	at.Set(b.Select(more, index, at.Get()))
}

// among returns the largest of what the lanes of a subgroup have and its smallest index.
func (r *argmaxRun) among(most, at *kernel.Var) (top, index kernel.Value) {
	b := r.b
	top = b.SubgroupMax(most.Get())
	return top, b.SubgroupMin(b.Select(b.Eq(most.Get(), top), at.Get(), math.MaxInt32))
}
