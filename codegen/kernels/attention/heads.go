package attention

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func HeadsCandidates(s *site.Site, _ *ir.Op) []site.Candidate {
	h, ok := matchLatent(s)
	if !ok {
		h, ok = matchHeads(s)
	}
	if !ok {
		return nil
	}
	return []site.Candidate{h.candidate(s)}
}

// headChain is what happens to the heads of one projection.
type headChain struct {
	x      *ir.Value // rows of heads
	parts  int       // runs of a head in x
	part   int       // which of them this is
	norm   bool
	gain   *ir.Value // weight of the norm, or nil
	rope   bool
	table  int          // of the rotation: which of the group's
	after  bool         // the norm comes behind the rotation
	turns  bool         // blocks are turned, behind all of that
	half   bool         // rounded to f16, in the arena
	last   *ir.Value    // the end of the chain so far
	cache  *ir.Value    // where it goes; nil for the arena
	kept   kept         // how that keeps positions
	latent *latentHeads // if the heads are of two parts, of which x has the first
}

func (c *headChain) width() int {
	if c.latent != nil {
		return int(c.last.Type.Last())
	}
	return int(c.x.Type.Last()) / c.parts
}

// plain reports whether the chain's end is x itself.
func (c *headChain) plain() bool { return c.last == c.x }

func (c *headChain) key() string {
	var does []string
	if c.parts > 1 {
		does = append(does, "slice")
	}
	norm := "norm"
	if c.gain == nil {
		norm = "unit" // a norm without weight
	}
	if c.latent != nil {
		norm += c.latent.key()
	}
	switch {
	case c.norm && !c.after:
		does = append(does, norm)
	case c.latent != nil:
		does = append(does, "join"+c.latent.key())
	}
	if c.rope && c.table > 0 {
		does = append(does, fmt.Sprint("rope", c.table))
	} else if c.rope {
		does = append(does, "rope")
	}
	if c.after {
		does = append(does, norm)
	}
	if c.turns {
		does = append(does, "hadamard")
	}
	if c.cache != nil {
		does = append(does, c.cache.Type.DType.String())
	}
	if c.half {
		does = append(does, "half")
	}
	return "[" + strings.Join(does, " ") + "]"
}

// headsGroup is a group of per-head ops as chains, with what they share.
type headsGroup struct {
	chains     []*headChain
	rows       site.Extent
	headDim    int
	norm       *ir.Op // any of the norms, or nil
	rope       *ir.Op // any of the rotations, or nil
	pos, slot  *ir.Value
	tables     []*ir.Value // of the rotations
	ctx        int
	kept       kept // of the caches
	wave       int
	side, down int // subgroups of a workgroup: heads of a row, and rows
	vec        int // elements of one access: a lane holds whole pairs, or partners at the same place of two accesses
}

// matchHeads reads the group as chains of head_slice, norm, rope and kvwrite.
func matchHeads(s *site.Site) (*headsGroup, bool) {
	h := &headsGroup{ctx: s.Program.Ctx, wave: s.Target.Wave}
	for _, op := range s.Group.Ops {
		if !h.add(op) {
			return nil, false
		}
	}
	if len(h.chains) == 0 || len(s.Group.Ops) == 1 && h.norm != nil {
		return nil, false // a lone norm is a rownorm
	}
	if h.headDim == 0 {
		h.headDim = h.chains[0].width()
	}
	var results []*ir.Value
	for _, c := range h.chains {
		if c.width()%h.headDim != 0 || c.x.Type.Shape[0] != h.chains[0].x.Type.Shape[0] || slices.Contains(s.Group.Ops, c.x.Def) {
			return nil, false
		}
		if c.cache == nil {
			results = append(results, c.last)
		}
	}
	slices.SortFunc(results, func(a, b *ir.Value) int { return a.ID - b.ID })
	outputs := slices.SortedFunc(slices.Values(s.Outputs), func(a, b *ir.Value) int { return a.ID - b.ID })
	var ok bool
	h.rows, ok = site.ExtentOf(s, h.chains[0].x)
	h.vec = h.access(s.Target)
	return h, ok && slices.Equal(results, outputs) && h.vec > 0 && h.cachesFit(s)
}

// add appends op to the chain that ends in its operand.
func (h *headsGroup) add(op *ir.Op) bool {
	x, take := op.Args[0], headSteps[op.Kind.Name]
	if take == nil {
		return false
	}
	i := slices.IndexFunc(h.chains, func(c *headChain) bool { return c.last == x && c.cache == nil && !c.half })
	if i >= 0 && h.chains[i].turns && op.Kind.Name != "kvwrite" && op.Kind.Name != "half" {
		return false
	}
	if i < 0 {
		i = len(h.chains)
		h.chains = append(h.chains, &headChain{x: x, parts: 1, last: x})
	}
	return take(h, h.chains[i], op)
}

// headSteps are the ops of chains.
var headSteps = map[string]func(h *headsGroup, c *headChain, op *ir.Op) bool{
	"head_slice": (*headsGroup).addSlice,
	"rmsnorm":    (*headsGroup).addNorm,
	"rope":       (*headsGroup).addRope,
	"half":       (*headsGroup).addHalf,
	"hadamard":   (*headsGroup).addHadamard,
	"kvwrite":    (*headsGroup).addWrite,
}

func (h *headsGroup) addSlice(c *headChain, op *ir.Op) bool {
	if c.last != c.x {
		return false
	}
	c.parts, c.part = op.Attrs.Int("parts"), op.Attrs.Int("part")
	c.last = op.Result
	return h.sameDim(op.Attrs.Int("head_dim"))
}

func (h *headsGroup) addNorm(c *headChain, op *ir.Op) bool {
	if c.norm || h.norm != nil && h.norm.Attrs.Float("eps") != op.Attrs.Float("eps") {
		return false
	}
	h.norm, c.norm, c.after = op, true, c.rope
	c.last = op.Result
	if len(op.Args) > 1 {
		c.gain = op.Args[1]
	}
	return (c.gain == nil || c.gain.Type.DType == ir.F32 && int(c.gain.Type.Last()) == op.Attrs.Int("group")) && h.sameDim(op.Attrs.Int("group"))
}

func (h *headsGroup) addRope(c *headChain, op *ir.Op) bool {
	if c.rope || h.rope != nil && (h.rope.Attrs.Str("kind") != op.Attrs.Str("kind") || h.rope.Attrs.Int("n_rot") != op.Attrs.Int("n_rot")) {
		return false
	}
	h.rope, c.rope = op, true
	c.last = op.Result
	h.rotateBy(c, op.Args[2])
	return h.sameDim(op.Attrs.Int("head_dim")) && site.Same(&h.pos, op.Args[1])
}

// addHalf rounds what was rotated or turned; other families round the rest.
func (h *headsGroup) addHalf(c *headChain, op *ir.Op) bool {
	c.half, c.last = true, op.Result
	return c.rope || c.turns
}

func (h *headsGroup) addHadamard(c *headChain, op *ir.Op) bool {
	c.turns, c.last = true, op.Result
	return op.Attrs.Int("group") == scaled
}

func (h *headsGroup) addWrite(c *headChain, op *ir.Op) bool {
	c.cache, c.kept = op.Args[3], keptOf(op, op.Args[3])
	return site.Same(&h.pos, op.Args[1]) && site.Same(&h.slot, op.Args[2])
}

// rotateBy gives a chain its table, which is as wide as those of others.
func (h *headsGroup) rotateBy(c *headChain, table *ir.Value) {
	if c.table = slices.Index(h.tables, table); c.table < 0 {
		c.table = len(h.tables)
		h.tables = append(h.tables, table)
	}
}

func (h *headsGroup) sameDim(d int) bool {
	if h.headDim == 0 {
		h.headDim = d
	}
	return h.headDim == d
}

// access returns the elements of one access, or 0 if none keeps pairs together:
// those that turn, and those of f16 that share a word. A processor has two, where partners then lie
// as far apart in all lanes and their angles beside each other: it loads what lies in a row.
func (h *headsGroup) access(t *target.Target) int {
	unit := h.headDim
	if h.rope != nil {
		unit = h.rope.Attrs.Int("n_rot")
		if h.rope.Attrs.Str("kind") == "neox" {
			unit /= 2
		}
	}
	blocks := slices.ContainsFunc(h.chains, (*headChain).inBlocks)
	for _, v := range []int{4, 2} {
		if v == 4 && t.LaneRows && !blocks && h.inRuns(2) || v == 2 && blocks {
			continue
		}
		if h.headDim%v == 0 && unit%v == 0 {
			return v
		}
	}
	if v := h.accessApart(); v > 0 {
		return v
	}
	if h.rope != nil || slices.ContainsFunc(h.chains, func(c *headChain) bool { return c.cache != nil || c.half }) {
		return 0
	}
	return 1
}

// inRuns reports whether the lanes of a subgroup have accesses, of vec elements, that all turn with others as
// far on in the head, or as far back.
func (h *headsGroup) inRuns(vec int) bool {
	return h.rope != nil && h.rope.Attrs.Str("kind") == "neox" && h.rope.Attrs.Int("n_rot")%(2*vec*h.wave) == 0
}

// cachesFit reports whether heads can be written to their caches. A block that has a scale is made
// by eight lanes.
func (h *headsGroup) cachesFit(s *site.Site) bool {
	for _, c := range h.chains {
		if c.inBlocks() && (h.vec != 4 || h.headDim%scaled != 0) {
			return false
		}
		if c.cache == nil {
			continue
		}
		if !site.Indexable(s, c.cache, h.vec) {
			return false
		}
		h.kept = c.kept
	}
	return !slices.ContainsFunc(h.chains, func(c *headChain) bool { return c.cache != nil && c.kept.unlike(h.kept) })
}

// format returns how a chain's cache holds codes; nil if there is none or it holds no codes.
func (c *headChain) format() *scaledFormat {
	if c.cache == nil {
		return nil
	}
	return scaledFormats[c.cache.Type.DType]
}

func (c *headChain) scales() bool { return c.format() != nil }

// inBlocks reports whether eight lanes have a block of the chain, of four elements each.
func (c *headChain) inBlocks() bool { return c.scales() || c.turns }

func (h *headsGroup) key() string {
	key := fmt.Sprintf("heads hd=%d w=%d", h.headDim, h.wave)
	if h.vec == 2 && h.inRuns(h.vec) {
		key += " pairs"
	}
	if h.rope != nil {
		key += fmt.Sprintf(" %s/%d", h.rope.Attrs.Str("kind"), h.rope.Attrs.Int("n_rot"))
	}
	for _, c := range h.chains {
		key += " " + c.key()
	}
	key += h.kept.key()
	if h.slot != nil {
		key += h.rows.PartKey()
	}
	return fmt.Sprintf("%s side=%dx%d%s", key, h.side, h.down, h.rows.Key())
}

// headsSubgroups is how many subgroups a workgroup has, where there are enough of them.
const headsSubgroups = 8

// share decides how many heads of a chain, and of how many rows, a workgroup has: as many as
// leave workgroups for all units.
func (h *headsGroup) share(t *target.Target) {
	heads := 0
	most := min(headsSubgroups, t.Workgroup/t.Wave)
	h.side, h.down = most, 1
	for _, c := range h.chains {
		n := c.width() / h.headDim
		heads += n
		for n%h.side != 0 {
			h.side /= 2
		}
	}
	for h.side > 1 && h.rows.Max*heads/h.side < 2*t.Units {
		h.side /= 2
	}
	for h.side*h.down < most && h.rows.Max*heads/h.side/(2*h.down) >= 2*t.Units {
		h.down *= 2
	}
}

// firsts returns the first workgroup of each chain, and how many there are for a row.
func (h *headsGroup) firsts() (list []int, n int) {
	for _, c := range h.chains {
		list = append(list, n)
		n += c.width() / h.headDim / h.side
	}
	return list, n
}

// candidate is a subgroup for each row and head of each chain.
func (h *headsGroup) candidate(s *site.Site) site.Candidate {
	h.share(s.Target)
	c := site.Candidate{
		Kernel: h.key(),

		Sequences: ir.ManySequences, Parts: true,
	}
	firsts, n := h.firsts()
	for i, ch := range h.chains {
		c.Cover = append(c.Cover, plans.Cover{Arg: fmt.Sprint("y", i), Dims: []int{h.rows.Max, ch.width()}, Tile: []int{h.down, h.side * h.headDim},
			Axis: []int{1, 0}, First: []int{0, firsts[i]}})
	}
	c.Grid = [3]int{n, site.CeilDiv(h.rows.Max, h.down), 1}
	return site.Implement(c, "heads", h.kernel)
}

func (h *headsGroup) kernel(s *site.Signature) func(b *kernel.Builder) {
	k := &headsKernel{headMaker: headMaker{headsGroup: h}}
	extent := h.rows.Declare(s)
	var pos, slot *kernel.Buffer
	var ctx kernel.Value
	if h.pos != nil {
		ctx = s.U32("ctx", h.ctx, 4096, "positions of a sequence")
		pos = s.Read("pos", h.pos)
	}
	if h.slot != nil {
		slot, k.caches.ctx = s.Read("slot", h.slot), ctx
	}
	h.kept.declareRows(s, &k.caches)
	if slices.ContainsFunc(h.chains, (*headChain).scales) {
		h.kept.declareScales(s, &k.caches)
	}
	k.declare(s)
	starts, _ := h.firsts()
	var firsts []kernel.Value
	for i, first := range starts {
		firsts = append(firsts, s.U32(fmt.Sprint("first", i), first, 0, "first workgroup of the chain"))
	}
	var chains []*chainArgs
	var results []*kernel.Buffer
	for i, c := range h.chains {
		chains = append(chains, k.declareChain(s, i))
		to := c.cache
		if to == nil {
			to = c.last
		}
		results = append(results, s.Write(fmt.Sprint("y", i), to))
	}
	return func(b *kernel.Builder) {
		k.b = b
		rows := extent.Load(b)
		b.Workgroup(h.side * h.down * h.wave)

		row := b.WorkgroupID(1)
		if h.down > 1 {
			row = b.Add(b.Mul(row, h.down), b.Div(b.SubgroupID(), h.side))
		}
		k.live, k.row = b.Lt(row, rows), row
		if h.down > 1 {
			k.row = b.Min(row, b.Sub(rows, 1))
		}
		if pos != nil {
			at := pos.Load(kernel.U32, k.row)
			k.live = b.And(k.live, b.Lt(at, ctx)) // not beyond the caches and the table
			k.at = b.Select(k.live, at, 0)
		}
		if slot != nil {
			k.part, k.within = slot.Load(kernel.U32, k.row), k.caches.within(b, k.at)
			if h.rows.Part > 0 {
				k.live = b.And(k.live, b.Not(h.rows.Dead(b, k.part)))
			}
			if k.caches.table != nil { // nobody follows the slot of a row that the step does not have
				k.part = k.caches.part(b, b.Select(k.live, k.part, 0), k.at)
			}
			k.cached = b.Add(k.caches.first(b, k.part), k.within)
		}
		for i, a := range chains {
			inside := b.Ge(b.WorkgroupID(0), firsts[i])
			if i+1 < len(firsts) {
				inside = b.And(inside, b.Lt(b.WorkgroupID(0), firsts[i+1]))
			}
			k.chain(a, results[i], firsts[i], inside)
		}
	}
}

// headMaker computes heads of chains, each in one subgroup.
type headMaker struct {
	*headsGroup
	b       *kernel.Builder
	turns   []*kernel.Buffer // tables of the rotations
	cosSin  *kernel.Buffer   // that of the chain
	epsilon kernel.Value
	at      kernel.Value // position of the row

	early  map[*chainArgs]*earlyHead // of chains that were loaded ahead
	turn   []kernel.Value            // what the lane's access turns by, if that was loaded ahead
	loaded *earlyHead                // of the head at hand, or nil
	chunk  int                       // of the lane's accesses, the one at hand
}

// headsKernel is what the chains of the kernel share.
type headsKernel struct {
	headMaker
	row    kernel.Value
	live   kernel.Value // the row is one of this step
	caches places
	part   kernel.Value // of the caches: the sequence, or its page
	within kernel.Value // of the rows of its part, that of the row's position
	cached kernel.Value // that row
}

// chain computes the heads of a chain into y, whose first workgroup is first, if the workgroup is one of them.
func (k *headsKernel) chain(a *chainArgs, y *kernel.Buffer, first, inside kernel.Value) {
	b, c := k.b, a.headChain
	b.If(inside, func() {
		at := b.Mul(b.Sub(b.WorkgroupID(0), first), k.side)
		if k.side > 1 {
			at = b.Add(at, b.Mod(b.SubgroupID(), k.side))
		}
		head := b.Add(b.Mul(k.row, a.heads), at)
		to := head
		if c.cache != nil {
			to = b.Add(b.Mul(k.cached, a.heads), at)
		}
		to = b.Mul(to, k.headDim/k.vec)
		var scales kernel.Value
		if c.scales() {
			dim := b.U32(uint32(k.headDim))
			scales = b.Add(k.caches.scales(b, c.format(), a.heads, k.part, at, dim), k.within)
			to = k.caches.behind(b, k.part, a.heads, dim, to, k.vec*c.format().bits)
		}
		k.make(a, head, func(j, v kernel.Value) {
			switch {
			case c.scales():
				var scale kernel.Value
				v, scale = c.format().round(b, v)
				b.If(k.live, func() { storeScale(b, y, scales, k.caches.rows(), j, scale) })
			case c.half:
				v = packHalves(b, b.Clamp(v, -65504.0, 65504.0))
			case c.cache != nil && c.cache.Type.DType == ir.F16:
				v = packHalves(b, v)
			}
			b.If(k.live, func() { c.format().store(y, b.Add(to, j), v) })
		})
	})
}

// chainArgs are a chain's arguments and constants in a kernel.
type chainArgs struct {
	*headChain
	x, gain     *kernel.Buffer // gain is nil where there is none
	heads       kernel.Value
	parts, part kernel.Value // if there are several parts
	latentArgs  *latentArgs  // if heads are of two
}

func (k *headMaker) declareChain(s *site.Signature, i int) *chainArgs {
	c := k.chains[i]
	a := &chainArgs{headChain: c, x: s.Read(fmt.Sprint("x", i), c.x), heads: s.U32(fmt.Sprint("heads", i), c.width()/k.headDim, 1, "heads of a row")}
	if c.parts > 1 {
		a.parts, a.part = s.U32(fmt.Sprint("parts", i), c.parts, 1, "runs of a head in x"), s.U32(fmt.Sprint("part", i), c.part, 0, "which of them counts")
	}
	if c.gain != nil {
		a.gain = s.Read(fmt.Sprint("gain", i), c.gain)
	}
	if c.latent != nil {
		a.latentArgs = c.latent.declare(s, i)
	}
	return a
}

// declare declares what all chains share: the tables of the rotations and the norms' constant.
func (k *headMaker) declare(s *site.Signature) {
	for i, t := range k.tables {
		name := "table"
		if i > 0 {
			name = fmt.Sprint("table", i)
		}
		k.turns = append(k.turns, s.Read(name, t))
	}
	if k.norm != nil {
		k.epsilon = s.F32("eps", k.norm.Attrs.Float("eps"), 1e-6, "added to the mean square of a head")
	}
}

// make computes a head of a chain, counted through all rows, and calls body with
// what each access of it becomes.
func (k *headMaker) make(a *chainArgs, head kernel.Value, body func(j, v kernel.Value)) {
	k.loaded = k.early[a]
	if a.rope {
		k.cosSin = k.turns[a.headChain.table]
	}
	if a.latent != nil {
		k.makeLatent(a, head, body)
		return
	}
	from := k.begin(a, head)
	var scale kernel.Value
	if a.norm {
		scale = k.rstd(a.x, from)
	}
	k.chunks(func(first int, j kernel.Value) {
		gain, before := a.gain, scale
		if a.after { // a rotation changes no sum of squares
			gain, before = nil, kernel.Value{}
		}
		v := k.load(a.x, from, gain, before, j)
		if a.rope {
			v = k.rotate(v, a.x, from, gain, before, first, j)
		}
		if a.after {
			v = k.normed(v, a.gain, scale, j)
		}
		if a.headChain.turns {
			v = turnBlock(k.b, v)
		}
		body(j, v)
	})
}

// begin returns where a head of a chain begins in x, in accesses.
func (k *headMaker) begin(a *chainArgs, head kernel.Value) kernel.Value {
	if a.headChain.parts > 1 {
		head = k.b.Add(k.b.Mul(head, a.parts), a.part)
	}
	return k.b.Mul(head, k.headDim/k.vec)
}

// chunks runs body for the accesses of a head that are this lane's; first is that of the first lane.
func (k *headMaker) chunks(body func(first int, j kernel.Value)) {
	n, laneID := k.headDim/k.vec, k.b.SubgroupLane()
	for first := 0; first < n; first += k.wave {
		j := k.b.Add(laneID, first)
		k.chunk = first / k.wave
		if first+k.wave <= n {
			body(first, j)
		} else {
			k.b.If(k.b.Lt(j, n), func() { body(first, j) })
		}
	}
}

// rstd returns the factor of a head's norm.
func (k *headMaker) rstd(x *kernel.Buffer, from kernel.Value) kernel.Value {
	b := k.b
	sum := b.Var(kernel.F32, 0)
	k.chunks(func(_ int, j kernel.Value) {
		v := k.elements(x, from, j)
		for _, e := range lane.Elements(b, v) {
			sum.Set(b.FMA(e, e, sum.Get()))
		}
	})
	mean := b.Div(b.SubgroupAdd(sum.Get()), float64(k.headDim))
	return b.InverseSqrt(b.Add(mean, k.epsilon))
}

// elements returns access j of the head.
func (k *headMaker) elements(x *kernel.Buffer, from, j kernel.Value) kernel.Value {
	if k.loaded != nil {
		return k.loaded.x[k.chunk].Get()
	}
	return x.Load(kernel.F32.Vec(k.vec), k.b.Add(from, j))
}

// load returns access j of the head, normed.
func (k *headMaker) load(x *kernel.Buffer, from kernel.Value, gain *kernel.Buffer, scale, j kernel.Value) kernel.Value {
	v := k.elements(x, from, j)
	if scale == (kernel.Value{}) {
		return v
	}
	return k.normed(v, gain, scale, j)
}

// normed returns access j of the head times the norm's scale and, if there is one, its weight.
func (k *headMaker) normed(v kernel.Value, gain *kernel.Buffer, scale, j kernel.Value) kernel.Value {
	v = k.b.Mul(v, lane.Splat(k.b, scale, k.vec))
	switch {
	case gain == nil:
		return v
	case k.loaded != nil:
		return k.b.Mul(v, k.loaded.gain[k.chunk].Get())
	}
	return k.b.Mul(v, gain.Load(kernel.F32.Vec(k.vec), j))
}

// rotate returns v, access j of the head, first in the first lane, rotated by the angles of the position.
func (k *headMaker) rotate(v kernel.Value, x *kernel.Buffer, from kernel.Value, gain *kernel.Buffer, scale kernel.Value, first int, j kernel.Value) kernel.Value {
	b, nRot := k.b, k.rope.Attrs.Int("n_rot")
	rotated := nRot / k.vec // accesses that turn
	if k.apart() {
		return k.rotateApart(v, x, from, gain, scale, j)
	}
	if k.vec == 2 && k.inRuns(k.vec) {
		return k.rotateRun(v, x, from, gain, scale, first, j)
	}
	half := rotated / 2
	neox := k.rope.Attrs.Str("kind") == "neox"
	var other kernel.Value // what is as far in the other half
	lanes := neox && rotated <= k.wave && half&(half-1) == 0
	if lanes {
		other = b.SubgroupShuffleXor(v, half)
	}
	out := b.Var(v.Type(), v)
	turn := func() {
		if !neox {
			out.Set(k.turnPairs(v, b.Add(b.Mul(k.at, rotated), j)))
			return
		}
		low := b.Lt(j, half)
		i := b.Select(low, j, b.Sub(j, half))
		if !lanes {
			other = k.load(x, from, gain, scale, b.Select(low, b.Add(j, half), i))
		}
		cos, sin := k.angles(b.Add(b.Mul(k.at, rotated), b.Mul(i, 2)))
		// a cos - b sin for the first of a pair, b cos + a sin for the second.
		out.Set(b.Add(b.Mul(v, cos), b.Mul(b.Select(low, b.Neg(other), other), sin)))
	}
	if nRot < k.headDim {
		b.If(b.Lt(j, rotated), turn)
	} else {
		turn()
	}
	return out.Get()
}

// rotateRun is rotate where all lanes have accesses of one half of what turns, see inRuns.
func (k *headMaker) rotateRun(v kernel.Value, x *kernel.Buffer, from kernel.Value, gain *kernel.Buffer, scale kernel.Value, first int, j kernel.Value) kernel.Value {
	b := k.b
	half := k.rope.Attrs.Int("n_rot") / k.vec / 2
	if first >= 2*half {
		return v
	}
	i, partner := j, b.Add(j, half)
	if first >= half {
		i = b.Sub(j, half)
		partner = i
	}
	other := k.load(x, from, gain, scale, partner)
	if first < half {
		other = b.Neg(other)
	}
	both := k.cosSin.Load(lane.F32x4, b.Add(b.Mul(k.at, half), i)) // of two pairs
	cos, sin := b.Vec(b.Elem(both, 0), b.Elem(both, 2)), b.Vec(b.Elem(both, 1), b.Elem(both, 3))
	return b.Add(b.Mul(v, cos), b.Mul(other, sin))
}

// turnPairs rotates the neighbours in v by the cosines and sines at the access i
// of the table, which lie like them.
func (k *headMaker) turnPairs(v, i kernel.Value) kernel.Value {
	b := k.b
	cs := k.turnAt(i, 1)[0]
	elems := make([]kernel.Operand, k.vec)
	for e := 0; e < k.vec; e += 2 {
		x, y, cos, sin := b.Elem(v, e), b.Elem(v, e+1), b.Elem(cs, e), b.Elem(cs, e+1)
		elems[e] = b.Sub(b.Mul(x, cos), b.Mul(y, sin))
		elems[e+1] = b.Add(b.Mul(x, sin), b.Mul(y, cos))
	}
	return b.Vec(elems...)
}

// angles returns the cosines and sines of as many pairs as an access has
// elements, from the table's accesses i and i+1.
func (k *headMaker) angles(i kernel.Value) (cos, sin kernel.Value) {
	b, both := k.b, k.turnAt(i, 2)
	c, s := make([]kernel.Operand, k.vec), make([]kernel.Operand, k.vec)
	for e := range k.vec {
		from := both[2*e/k.vec]
		c[e], s[e] = b.Elem(from, 2*e%k.vec), b.Elem(from, 2*e%k.vec+1)
	}
	return b.Vec(c...), b.Vec(s...)
}

// turnAt returns n accesses of the table from access i on, or what was loaded of it ahead.
func (k *headMaker) turnAt(i kernel.Value, n int) (list []kernel.Value) {
	if k.turn != nil {
		return k.turn
	}
	for e := range n {
		at := i
		if e > 0 {
			at = k.b.Add(i, e)
		}
		list = append(list, k.cosSin.Load(kernel.F32.Vec(k.vec), at))
	}
	return list
}

// packHalves returns the 2 or 4 floats of v as f16 in words.
func packHalves(b *kernel.Builder, v kernel.Value) kernel.Value {
	low := b.PackHalf(b.Vec(b.Elem(v, 0), b.Elem(v, 1)))
	if v.Type().Lanes() == 2 {
		return low
	}
	return b.Vec(low, b.PackHalf(b.Vec(b.Elem(v, 2), b.Elem(v, 3))))
}

// turnBlock returns v, the four elements of a lane, eight of which have a block, as op hadamard does.
func turnBlock(b *kernel.Builder, v kernel.Value) kernel.Value {
	e := lane.Elements(b, v)
	for apart := 1; apart < 4; apart *= 2 {
		for i := range e {
			if i&apart == 0 {
				e[i], e[i+apart] = b.Add(e[i], e[i+apart]), b.Sub(e[i], e[i+apart])
			}
		}
	}
	v = b.Mul(b.Vec(e[0], e[1], e[2], e[3]), b.Splat(b.F32(float32(1/math.Sqrt(scaled))), 4))
	for apart := 1; apart < scaled/4; apart *= 2 {
		other := b.SubgroupShuffleXor(v, apart)
		second := b.Ne(b.And(b.SubgroupLane(), apart), 0)
		v = b.Add(other, b.Mul(v, b.Splat(b.Select(second, b.F32(-1), b.F32(1)), 4)))
	}
	return v
}
