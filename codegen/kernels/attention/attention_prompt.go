package attention

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// promptAttention is what the kernels of many rows of one sequence share that multiply matrices. A row of
// a tile is one head of one row of q: heads that share a KV head share its loads from the cache.
type promptAttention struct {
	attentionShape
	op      *ir.Op
	result  *ir.Value
	splits  int       // ranges of the positions of a tile
	partial bool      // write sums, maximum and weight of each split, not the quotient
	merge   *ir.Op    // adds up the splits in the same dispatch; nil if none does
	counts  *ir.Value // counters of that, see attention_share.go
	times   int       // workgroups by tile
	fold    int       // heads of a tile
	// tile lays out the result in tiles, of these orders; nil if it lies in rows.
	tile   *ir.Op
	orders [][2]int
}

// matchPrompt returns what a site has of attention of many rows; nil if it is something else.
func matchPrompt(s *site.Site, op *ir.Op) *promptAttention {
	last, splits, merge := op, 1, mergeOf(s.Group, op)
	partial := op.Kind.Name == "attention_split" && merge == nil
	if op.Kind.Name == "attention_split" {
		splits = op.Attrs.Int("splits")
	}
	if merge != nil {
		last = merge
	}
	gate, result := gateOf(s, last, slices.DeleteFunc(slices.Clone(s.Group.Ops), func(o *ir.Op) bool { return o == op || o == merge }))
	if result == nil || partial && !site.Alone(s, op) {
		return nil
	}
	shape, ok := attentionOf(s, op, gate)
	if !ok || s.Mixes() && shape.rows.Part == 0 || shape.kv == ir.F32 {
		return nil
	}
	if merge != nil && len(merge.Args) > 1 {
		shape.sinks = merge.Args[1]
	}
	k := &promptAttention{attentionShape: shape, op: op, result: result, splits: splits, partial: partial, merge: merge, fold: 1}
	for k.fold < fragment.Square && k.group%(2*k.fold) == 0 {
		k.fold *= 2
	}
	return k
}

// splitsAt reports whether tiles of so many rows of q and positions fit the splits, if there are some.
func (k *promptAttention) splitsAt(rows, positions int) bool {
	return !k.partial && k.merge == nil || k.op.Attrs.Int("rows")%rows == 0 && k.op.Attrs.Int("block")%positions == 0
}

// wants asks for q in f16. If attention is not split, it says how many tiles there are, so that positions can be split
// where tiles do not fill the device, and what splits are a multiple of that it can merge; 0 if it cannot.
func (k *promptAttention) wants(s *site.Site, rows, positions, merges int) []site.Rewrite {
	var wants []site.Rewrite
	if !k.partial && k.merge == nil {
		wants = append(wants, site.Rewrite{Tiles: k.tilesOf(rows) * k.heads / k.fold, TileRows: rows, TileKV: positions, Merges: merges})
	}
	if q := k.op.Args[0]; q.Type.DType == ir.F32 && q.Def != nil {
		wants = append(wants, site.Half(s, q)...)
	}
	return wants
}

// tilesOf is how many tiles of so many rows of q the heads of a tile have.
func (k *promptAttention) tilesOf(rows int) int { return site.CeilDiv(k.rows.Max, rows) }

// candidate is a kernel of a family for tiles of so many rows of q. tile and form go into the module's name; shape and
// form tell the candidate from others of the site.
func (k *promptAttention) candidate(family string, rows int, tile, shape, form string, declare site.Kernel) site.Candidate {
	cover := plans.Cover{Arg: "y", Dims: []int{k.rows.Max, k.heads * k.headDim}, Tile: []int{rows, k.fold * k.headDim}, Axis: []int{1, 0}}
	if k.partial {
		form = " part" + form
		cover = plans.Cover{Arg: "y", Dims: []int{k.rows.Max, k.heads, k.splits, k.headDim + 2}, Tile: []int{rows, k.fold, 1, k.headDim + 2}, Axis: []int{1, 0, 2, -1}}
	}
	kv := ""
	if k.kv != ir.F16 {
		kv = " " + k.kv.String()
	}
	return site.Implement(site.Candidate{
		Kernel: fmt.Sprintf("%s%s hd=%d fold=%d tile=%s%s%s", family, kv, k.headDim, k.fold, tile, form, k.attentionShape.key()),
		Shape:  fmt.Sprintf("fold %d tile %s%s", k.fold, shape, form),
		Grid:   [3]int{k.heads / k.fold, k.tilesOf(rows), k.splits},
		Grain:  k.grain(rows),
		Parts:  k.rows.FollowsParts(k.grain(rows)),
		Cover:  []plans.Cover{cover},
	}, family, declare)
}

// grain is that of tiles of so many rows of q: rows share what makes the top of one of them change, where their
// positions begin and, of splits, where those end.
func (k *promptAttention) grain(rows int) int {
	if k.partial {
		return k.op.Attrs.Int("rows")
	}
	return rows
}

// promptRun is such a kernel while it is built.
type promptRun struct {
	attentionArgs
	of              *promptAttention
	b               *kernel.Builder
	shared          *kernel.Array
	y               *kernel.Buffer
	block, together kernel.Value // of splits: positions that one has or has not, rows whose splits are the same
	row             kernel.Value // first of the tile
	head            kernel.Value // first of the tile
	stepLast        kernel.Value // last row of the step
	lastRow         kernel.Value // of the step or, where that has parts, of the tile, that is live
	end             kernel.Value // of the positions of the tile or, of those, of the split
	all             kernel.Value // of the positions of the tile
	share           tileShare    // where workgroups share a tile
	base            cachedHead
}

func (k *promptAttention) declarePrompt(s *site.Signature) promptRun {
	r := promptRun{of: k, attentionArgs: k.declare(s, k.op), y: s.Write("y", k.result)}
	r.declareShare(s)
	if k.partial {
		r.block = s.U32("split_block", k.op.Attrs.Int("block"), 32, "positions that a split has or has not")
		r.together = s.U32("split_rows", k.op.Attrs.Int("rows"), 1, "rows whose splits are the same")
	}
	return r
}

// findTile finds the workgroup's tile, of so many rows of q; it has so many lanes, and units of 16 bytes of shared
// memory. It calls body with the position of the first row, unless the step has none of the rows or what they see is
// beyond the cache. In a kernel that has body once, it may run for several tiles, one behind the other.
//
// Rows that are dead are as those that the step has not.
func (r *promptRun) findTile(b *kernel.Builder, lanes, units, queryRows int, body func(first kernel.Value)) {
	r.b = b
	r.begin(b, r.of.attentionShape)
	b.Workgroup(lanes)
	r.shared = b.Shared(lane.U32x4, units)
	// The last rows see most: they come first.
	last := func(axis int) kernel.Value { return b.Sub(b.Sub(b.NumWorkgroups(axis), 1), b.WorkgroupID(axis)) }
	tile := last(1)
	if r.of.tile != nil {
		tile = b.Add(b.Mul(last(2), b.NumWorkgroups(1)), tile)
	}
	r.row, r.head = b.Mul(tile, queryRows), b.Mul(b.WorkgroupID(0), r.of.fold)
	none := r.orDead(b.Ge(r.row, r.rows))
	if r.of.tile != nil {
		b.If(r.inTiles(none), func() { r.clearTiles(lanes, queryRows) })
	}
	if r.of.merge != nil {
		r.eachShare(tile, queryRows, body)
		return
	}
	b.ReturnIf(none)
	first := r.findEnd(queryRows)
	b.ReturnIf(b.Gt(r.end, r.ctx)) // beyond the cache
	r.findHead()
	body(first)
}

// findEnd finds which of the tile's rows are live, and what they see. It returns the position of the first one.
func (r *promptRun) findEnd(queryRows int) (first kernel.Value) {
	b := r.b
	r.stepLast = b.Sub(r.rows, 1)
	first = r.pos.Load(kernel.U32, r.row)
	lastPos := r.pos.Load(kernel.U32, b.Min(b.Add(r.row, queryRows-1), r.stepLast))
	r.end, r.lastRow = b.Add(lastPos, 1), r.stepLast
	if r.of.rows.Part > 0 { // dead rows have the position of the last live one
		r.lastRow = b.Add(r.row, b.Sub(lastPos, first))
	}
	return first
}

// findHead finds where what the rows see lies.
func (r *promptRun) findHead() {
	b := r.b
	r.all = r.end
	slot := r.slot.Load(kernel.U32, r.row)
	r.base = r.cachedHead(b, slot, b.Div(r.head, r.group))
}

// orDead reports whether that is so, or the tile's first row is one that a step with parts has of no sequence.
func (r *promptRun) orDead(so kernel.Value) kernel.Value {
	b, rows := r.b, r.of.rows
	if rows.Part == 0 {
		return so
	}
	row := r.row
	if r.of.merge != nil { // it may lie behind those of the entry
		row = b.Min(row, b.Sub(r.share.room, 1))
	}
	return b.Or(so, rows.Dead(b, r.slot.Load(kernel.U32, row)))
}

// span finds the positions of the workgroup, and returns where the tiles of so many begin; first is the position of the
// first row.
func (r *promptRun) span(first kernel.Value, positions int) (begin kernel.Value) {
	b := r.b
	if r.of.merge != nil {
		return r.share.begin
	}
	begin = r.firstIn(b, first, positions)
	if !r.of.partial {
		return begin
	}
	splits := b.NumWorkgroups(2)
	last := b.Sub(b.Mul(b.Add(b.Div(r.row, r.together), 1), r.together), 1)
	most := b.Add(r.pos.Load(kernel.U32, b.Min(last, r.stepLast)), 1)
	round := b.Mul(splits, r.block)
	length, from := most, kernel.Value{}
	if r.of.window > 0 {
		from = r.firstIn(b, r.pos.Load(kernel.U32, b.Mul(b.Div(r.row, r.together), r.together)), r.block)
		length = b.Sub(most, from)
	}
	step := b.Mul(b.Div(b.Sub(b.Add(length, round), 1), round), r.block)
	begin = b.Mul(b.WorkgroupID(2), step)
	if r.of.window > 0 {
		begin = b.Add(from, begin)
	}
	r.end = b.Min(r.end, b.Add(begin, step))
	return begin
}

// masked reports whether some row of the tile, whose first row has position first, does not
// see all of the tile of the cache from `from` on; next is where the next begins.
func (r *promptRun) masked(from, next, first kernel.Value) kernel.Value {
	b := r.b
	masked := b.Gt(next, b.Add(first, 1))
	if r.of.window > 0 {
		masked = b.Or(masked, b.Lt(b.Add(from, r.window), r.all))
	}
	return masked
}

// headAt returns where the head is for a tile of so many positions from `from` on, if they lie in one page.
func (r *promptRun) headAt(from kernel.Value, positions int) cachedHead {
	if !r.of.kept.inPages(positions) {
		return r.base
	}
	return r.near(r.b, r.base, r.b.Min(from, r.b.Sub(r.end, 1)))
}

// fillUnit puts unit u of position p of a tile into an array, of f16 by a copy that lanes wait for later. Its octets
// lie there where into says. Positions from end on are the last.
func (r *promptRun) fillUnit(cache *kernel.Buffer, tile cachedHead, from, p, u kernel.Value, into func(octet int) kernel.Value) {
	b := r.b
	at := r.at(b, tile, b.Min(b.Add(from, p), b.Sub(r.end, 1)))
	if r.of.kv == ir.F16 {
		cache.Copy(lane.U32x4, r.shared, into(0), b.Add(at.chunks, u))
		return
	}
	r.loadOctets(b, r.of.attentionShape, cache, at, u)(func(octet int, x kernel.Value) { r.shared.Store(into(octet), x) })
}

// fillDone makes what the lane has begun to copy a group.
func (r *promptRun) fillDone() {
	if r.of.kv == ir.F16 {
		r.b.CopyGroup()
	}
}

// rowOf returns a row of the tile among the rows of q.
func (r *promptRun) rowOf(inTile kernel.Value) kernel.Value {
	return r.b.Add(r.row, r.b.Div(inTile, r.of.fold))
}

// place calls body with the head, counted through all rows, that is a row of the tile,
// if it is of this step.
func (r *promptRun) place(inTile kernel.Value, body func(head kernel.Value)) {
	b := r.b
	row := r.rowOf(inTile)
	b.If(b.Le(row, r.lastRow), func() { body(b.Add(b.Mul(row, r.heads), r.head, b.Mod(inTile, r.of.fold))) })
}

// pairs returns where in y, in pairs of f32, the split's sums of a head begin.
func (r *promptRun) pairs(head kernel.Value) kernel.Value {
	b := r.b
	return b.Mul(b.Add(b.Mul(head, b.NumWorkgroups(2)), b.WorkgroupID(2)), (r.of.headDim+2)/2)
}

// writeQuad stores four dims of a head, times a number.
func (r *promptRun) writeQuad(head, quad, v, number kernel.Value) {
	b, y := r.b, r.y
	if r.of.partial {
		v = b.Mul(v, number)
		at := b.Add(r.pairs(head), b.Mul(quad, 2))
		y.Store(at, b.Vec(b.Elem(v, 0), b.Elem(v, 1)))
		y.Store(b.Add(at, 1), b.Vec(b.Elem(v, 2), b.Elem(v, 3)))
		return
	}
	v = r.quotients(head, quad, v, number)
	y.Store(b.Add(b.Mul(head, r.of.headDim/4), quad), v)
}

// quotients returns four dims of a head, times a number, as the result has them.
func (r *promptRun) quotients(head, quad, v, number kernel.Value) kernel.Value {
	b := r.b
	v = b.Mul(v, number)
	v = r.gate.load(b, lane.F32x4, head, quad, r.of.headDim/4)(v)
	if r.of.gate.half {
		v = lane.RoundHalf(b, v)
	}
	return v
}
