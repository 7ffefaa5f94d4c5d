package attention

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// splitKernel is a group of the form
//
//	[slice, norm and rope of q and k, or q of two parts] [kvwrite of k and v] (attention | attention_split attention_merge) [[head_slice] gate]
//
// of a few rows. It is attention with the online softmax of Milakov and Gimelshein
// (arXiv:1805.02867) over a range of positions that is divided once more, among the
// subgroups of a workgroup and the teams of lanes in them. A team holds one cached
// row, 8 elements a lane and part; all heads that share the row use it where it is.
// Ranges, and so the order of all sums, depend on the row's position alone. Splits
// without positions do nothing. The last of the others to end merges them all.
//
// Where the group writes the caches, workgroups make k and v of the step's rows
// themselves as far as they attend to them, and one more workgroup, the first, writes them; on
// matrices the first split does. A workgroup may read such a row in the cache, even while
// it is written, but does not use it. Where lanes have dims, the only workgroup that attends to the only row writes
// it, and reads it there.
type splitKernel struct {
	attentionShape
	op     *ir.Op
	chains *headsGroup // of q, k and v, or of q alone
	merge  *ir.Op      // or nil
	result *ir.Value
	counts *ir.Value // counters of the last-block reduction of the splits

	matrices  bool // see matrixSums
	ahead     bool // loads keys and values a turn ahead, see matrixSums
	waits     bool // for the dispatch before only behind the first of them
	copies    bool // or copies them ahead, see stages
	asks      bool // or asks for its first ones before it makes q, see matrixSums.askFor
	lanes     bool // see laneSums
	share     int  // heads of a workgroup
	wide      bool // they are twice as many as elsewhere on matrices, see matrixSums
	doubled   bool // the same, with the bits of half as many
	team      int  // lanes of a team: a power of two
	parts     int  // chunks of a head that a lane holds
	subgroups int
	mergers   int // parts of a workgroup that merge splits, each some of them
	units     int // of the target
}

const (
	// splitRegisters bounds the chunks that a lane holds of q, and of the sums.
	// With 8 an H200 takes half as long again for heads of 128, 2.6 times as long
	// for heads of 256, though the cache is read half as often.
	splitRegisters = 4
	// emptyScore is the maximum of a range without positions.
	emptyScore = float32(-1e30)
)

func AttentionSplitCandidates(s *site.Site, _ *ir.Op) []site.Candidate {
	k := matchSplit(s)
	if k == nil {
		return nil
	}
	return []site.Candidate{k.candidate()}
}

func matchSplit(s *site.Site) *splitKernel {
	k := &splitKernel{}
	h := &headsGroup{ctx: s.Program.Ctx, wave: s.Target.Wave}
	var joined []*ir.Op
	if i := slices.IndexFunc(s.Group.Ops, func(op *ir.Op) bool { return op.Kind.Name == "head_join" }); i >= 0 {
		q := h.addLatent(s, s.Group.Ops[i])
		if q == nil {
			return nil
		}
		joined = q.latent.ops
	}
	heads, rest := k.sort(s.Group.Ops, joined)
	if k.op == nil || (k.op.Kind.Name == "attention_split") != (k.merge != nil) || k.merge != nil && k.merge.Args[0] != k.op.Result {
		return nil
	}
	last := k.op
	if k.merge != nil {
		last = k.merge
	}
	var gate headGate
	if gate, k.result = gateOf(s, last, rest); k.result == nil || k.merge != nil && k.op.Attrs.Int("rows") != 1 {
		return nil
	}
	var ok bool
	if k.attentionShape, ok = attentionOf(s, k.op, gate); !ok || !k.rows.Exact || !k.takeHeads(s, h, heads) || !k.shape(s) {
		return nil
	}
	return k
}

// sort finds attention and merge among the ops of a group. heads are those that prepare q, k and v, rest are the
// others; joined are in neither.
func (k *splitKernel) sort(ops, joined []*ir.Op) (heads, rest []*ir.Op) {
	for _, op := range ops {
		if slices.Contains(joined, op) {
			continue
		}
		switch op.Kind.Name {
		case "attention", "attention_split":
			k.op = op
		case "attention_merge":
			k.merge = op
		case "rmsnorm", "rope", "hadamard", "kvwrite":
			heads = append(heads, op)
		default:
			rest = append(rest, op)
		}
	}
	rest = slices.DeleteFunc(rest, func(op *ir.Op) bool { // slices of what is normed or rotated
		of := op.Kind.Name == "head_slice" && (k.op != nil && op.Result == k.op.Args[0] ||
			slices.ContainsFunc(heads, func(h *ir.Op) bool { return h.Args[0] == op.Result }))
		if of {
			heads = append([]*ir.Op{op}, heads...)
		}
		return of
	})
	return heads, rest
}

// shape decides how lanes and subgroups share the work; false if they cannot.
func (k *splitKernel) shape(s *site.Site) bool {
	if k.merge != nil && len(k.merge.Args) > 1 {
		k.sinks = k.merge.Args[1]
	}
	k.matrices, k.lanes = k.onMatrices(s.Target), k.onLanes(s.Target)
	early := k.matrices && s.Target.Thresholds.LoadsEarly && k.rows.Max == 1
	k.ahead = early && k.headDim <= aheadHead
	k.waits = k.ahead && s.Target.Overlaps()
	k.asks = early && !k.ahead
	k.divide(s.Target)
	if k.lanes && (k.fresh() && !k.freshOnLanes() || k.attentionShape.gate.half) {
		return false
	}
	k.mergers, k.units = 1, s.Target.Units
	if k.wide && k.together()*k.headDim/4 != k.subgroups*k.wave { // see mergeKept
		return false
	}
	if lanes, quads := k.subgroups*k.wave, k.share*k.headDim/4; s.Target.Thresholds.LoadsEarly && k.merge != nil && lanes%quads == 0 {
		if n := lanes / quads; n <= k.subgroups { // each keeps its sums where a subgroup had them
			k.mergers = n
		}
	}
	if k.merge != nil {
		k.counts = site.Arrivals(s, k.rows.Max*k.heads/k.share)
	}
	k.copies = k.stages(s.Target)
	k.waits = k.waits || k.copies && s.Target.Overlaps()
	return k.subgroups != 0 && (k.merge == nil || k.counts != nil)
}

// takeHeads makes the chains of the ops before the attention, beside that of h, if it has one.
func (k *splitKernel) takeHeads(s *site.Site, h *headsGroup, ops []*ir.Op) bool {
	h.rows = k.rows
	for _, op := range ops {
		if !h.add(op) {
			return false
		}
	}
	chain := func(is func(c *headChain) bool) *headChain {
		if i := slices.IndexFunc(h.chains, is); i >= 0 {
			return h.chains[i]
		}
		return nil
	}
	q := chain(func(c *headChain) bool { return c.cache == nil && c.last == k.op.Args[0] })
	if q == nil {
		q = &headChain{x: k.op.Args[0], parts: 1, last: k.op.Args[0]}
		h.chains = append(h.chains, q)
	}
	list := []*headChain{q}
	if len(h.chains) > 1 {
		list = append(list, chain(func(c *headChain) bool { return c.cache == k.op.Args[1] }),
			chain(func(c *headChain) bool { return c.cache == k.op.Args[2] }))
	}
	if len(h.chains) != len(list) || slices.Contains(list, nil) || !h.sameDim(k.headDim) {
		return false
	}
	h.chains = list
	for i, c := range list {
		heads := k.heads
		if i > 0 {
			heads /= k.group
		}
		rows, ok := site.ExtentOf(s, c.x)
		if !ok || rows != k.rows || c.width() != heads*k.headDim || c.x.Type.DType != ir.F32 || slices.Contains(s.Group.Ops, c.x.Def) {
			return false
		}
	}
	h.vec = h.access(s.Target)
	k.chains = h
	if q.latent != nil && !q.fits(h) {
		return false
	}
	return site.Same(&h.pos, k.op.Args[3]) && site.Same(&h.slot, k.op.Args[4]) && h.vec > 1 && h.cachesFit(s)
}

// fresh reports whether the group writes the caches, and writer whether a workgroup of its own
// does; if not, on matrices the workgroups of a KV head's first split do, each of a part of the head.
func (k *splitKernel) fresh() bool { return len(k.chains.chains) > 1 }

func (k *splitKernel) writer() bool { return k.fresh() && !k.matrices && !k.lanes }

// early reports whether heads are loaded before q is made: ahead of the position or, if waits, behind the first keys
// and values.
func (k *splitKernel) early() bool {
	return (k.ahead || k.asks) && k.share <= k.subgroups && k.chains.turnsInLanes()
}

// sharers is the workgroups of a KV head.
func (k *splitKernel) sharers() int { return k.group / k.share }

// divide chooses team, parts, share and subgroups: as many subgroups as hide the
// latency of the loads, 0 if even one does not fit.
func (k *splitKernel) divide(t *target.Target) {
	chunks := k.headDim / chunk
	for k.team = 1; k.team < min(chunks, k.wave); k.team *= 2 {
	}
	k.parts = site.CeilDiv(chunks, k.team)
	k.share = shareOf(k.group, min(splitRegisters/k.parts, k.team))
	switch {
	case k.matrices:
		k.share, k.wide = MatrixShare(k.op, k.ctx, t), isWide(k.op, k.ctx, t)
	case k.lanes:
		k.share = shareOf(k.group, laneRegisters*lanesWide/k.headDim)
	}
	k.double(t)
	room := t.Shared
	if k.wide || k.doubled {
		room = t.SharedOptIn
	}
	for n := splitSubgroups; n > 0; n /= 2 {
		if k.sharedBytes(n) <= room && n*k.wave <= t.Workgroup {
			k.subgroups = n
			return
		}
	}
}

// sharedBytes is what a workgroup of so many subgroups has in shared memory: q, k and v of the longest run that there
// can be at any width, the subgroups' sums, arrivals.
func (k *splitKernel) sharedBytes(subgroups int) int {
	fresh := int(k.kv.Bytes(int64(2 * target.DecodeRows * k.headDim)))
	if k.scaled() != nil {
		fresh = 2 * target.DecodeRows * (k.headDim/4 + k.headDim/scaled) * 4 // what four neighbours have is a word, and a scale
	}
	return 4*k.headDim*k.share + fresh + subgroups*k.together()*4*(k.headDim+2) + 4
}

// together is how many of the workgroup's heads subgroups add up at a time, in shared memory.
func (k *splitKernel) together() int {
	if k.eights() {
		return matrixHeads
	}
	return k.share
}

// eights reports whether workgroups have eight heads on matrices.
func (k *splitKernel) eights() bool { return k.wide || k.doubled }

// halves reports whether the first two workgroups of a KV head have half of its heads each where one split would have
// all positions: what makes q, k and v, and what adds up subgroups, would take twice as long in one.
func (k *splitKernel) halves() bool { return k.wide && k.least() > 0 && k.splits() > 1 }

// shareOf returns how many heads of a group, which have a KV head in common, share a workgroup if it takes `most`.
func shareOf(group, most int) int {
	share := min(group, max(1, most))
	for group%share != 0 {
		share--
	}
	return share
}

// splitSubgroups is the most subgroups of a workgroup.
const splitSubgroups = 8

// splitAhead is the positions that a team loads at once, one round before it uses them.
// With 4 the code is longer, which costs an H200 more than fewer rounds save it.
const splitAhead = 2

func (k *splitKernel) splits() int {
	if k.merge == nil {
		return 1
	}
	return k.op.Attrs.Int("splits")
}

// least is the positions of a split, at least, where that is more than block.
func (k *splitKernel) least() int {
	if k.merge == nil {
		return 0
	}
	return k.op.Attrs.Int("least")
}

func (k *splitKernel) key() string {
	key := fmt.Sprintf("attention_split %s hd=%d g=%d w=%dx%d", k.kv, k.headDim, k.share, k.subgroups, k.wave)
	switch {
	case k.matrices:
		key += " matrices"
	case k.lanes:
		key += " lanes"
	}
	switch {
	case k.ahead:
		key += " ahead"
	case k.copies:
		key += " copies"
	case k.asks:
		key += " asks"
	}
	if k.doubled {
		key += " doubled"
	}
	if k.waits {
		key += " waits"
	}
	if k.merge == nil {
		key += " whole"
	}
	if k.matrices && k.inPages() {
		key += " tiles"
	}
	if k.least() > 0 {
		key += " least"
	}
	if k.inTurns() {
		key += fmt.Sprintf(" apart=%d", k.apart())
	}
	if k.mergers > 1 {
		key += fmt.Sprintf(" mergers=%d", k.mergers)
	}
	if (k.fresh() || k.merge != nil && !k.lanes) && k.rows.Max > 1 {
		key += fmt.Sprintf(" rows=%d", k.rows.Max)
	}
	if k.chains.rope != nil {
		key += fmt.Sprintf(" %s/%d", k.chains.rope.Attrs.Str("kind"), k.chains.rope.Attrs.Int("n_rot"))
	}
	for _, c := range k.chains.chains {
		key += " " + c.key()
	}
	return key + k.attentionShape.key()
}

// cacheAccess is what the kernel does to the caches.
func (k *splitKernel) cacheAccess() kernel.Access {
	if k.fresh() {
		return kernel.ReadWrite
	}
	return kernel.Read
}

// work counts the workgroups that have something to do behind few positions.
func (k *splitKernel) work() site.Work {
	readers := k.sharers()
	if k.doubled {
		readers *= 2 // half of the heads multiply behind the other half
	}
	return site.Work{Workgroups: k.pairs() * min(k.apart(), max(1, k.roomFor())), Readers: readers}
}

func (k *splitKernel) candidate() site.Candidate {
	rows, heads, splits, workgroups := k.rows.Max, k.heads, k.splits(), k.heads/k.share
	c := site.Candidate{
		Kernel: k.key(),
		Early:  k.waits,
		Work:   k.work(),
		Grid:   [3]int{workgroups, rows, k.apart()}, // rows of a sequence find in the L2 cache what others have read

		Sequences: ir.ManySequences,
	}
	first := 0 // split on its axis
	if k.writer() {
		first = 1
	}
	y := plans.Cover{Arg: "y", Dims: []int{rows, 1, heads * k.headDim}, Tile: []int{1, 1, k.share * k.headDim}, Axis: []int{1, 2, 0}, First: []int{0, first, 0}}
	if k.merge != nil {
		y = plans.Cover{Arg: "y", Dims: []int{rows, heads * k.headDim}, Tile: []int{1, k.share * k.headDim}, Axis: []int{1, 0}, Joined: []int{2}}
		partial := plans.Cover{Arg: "partial", Dims: []int{rows, heads, splits, k.headDim + 2}, Tile: []int{1, k.share, 1, k.headDim + 2}, Axis: []int{1, 0, 2, -1}, First: []int{0, 0, first, 0}}
		if k.inTurns() {
			partial.Tile[2] = 0 // where a row has ended, nobody does
		}
		c.Cover = append(c.Cover, partial)
	}
	c.Cover = append(c.Cover, y)
	if k.fresh() {
		cover := plans.Cover{Dims: []int{rows, 1, heads / k.group * k.headDim}, Tile: []int{1, 1, k.headDim / k.sharers()}, Axis: []int{1, 2, 0}}
		switch {
		case k.writer():
			cover.Tile[2] = k.headDim
			c.Grid[2]++
		case k.lanes && k.merge != nil: // the split that has the row's position
			cover = plans.Cover{Dims: []int{rows, heads / k.group * k.headDim}, Tile: []int{1, k.headDim}, Axis: []int{1, 0}, Joined: []int{2}}
		}
		for _, cover.Arg = range []string{"k", "v"} {
			c.Cover = append(c.Cover, cover)
		}
	}
	return site.Implement(c, "attention_split", k.kernel)
}
