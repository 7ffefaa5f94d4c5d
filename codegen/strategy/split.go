package strategy

import (
	"cmp"
	"math"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/attention"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// How many workgroups share one result. docs/lab has the measurements: decoding.md, prompts.md
// and hybrids.md.

const (
	// splitBlock is the granularity of a split in KV positions, at least.
	splitBlock = 32
	// maxSplits bounds what a merge has to read.
	maxSplits = 32
	// wideSplits is the same of workgroups of eight heads, which merge by twos.
	wideSplits = 66
	// evenHead is the elements of heads whose positions are shared evenly, also where there are fewer workgroups than
	// units.
	evenHead = 256
	// splitRows is the granularity of splits that have at least as much as a workgroup takes at once.
	splitRows = 16
	// argmaxSplit is the least number of logits of a part, where the target states none.
	argmaxSplit = 4096
	// deepSplits is the most splits of a tile of rows that its kernel merges, deepLeast the least positions of one.
	// More of them would cost steps that have all of their rows.
	deepSplits = 4
	deepLeast  = 8192
	// chunkedRows is the least number of rows of a step for which the delta rule is faster chunk by chunk.
	chunkedRows = 256
)

// DecodeSplits returns the number of workgroups that share the positions of a row and KV head in decode entries, the
// granularity of their parts, and the least positions of a part if that is more: those that a workgroup of
// attention_split takes at once, on matrices or in teams of lanes. It does not depend on the rows of the step, so every
// decode entry adds in the same order.
func DecodeSplits(op *ir.Op, ctx int, t *target.Target) (n, block, least int) {
	block = splitBlock
	dim := op.Attrs.Int("head_dim")
	matrices := t.Fragments && dim%64 == 0
	switch {
	case matrices:
		block = 4 * splitBlock
	case t.FewKernels && dim <= 64 && maxPositions(op, ctx) >= 2*4*splitBlock:
		block = 4 * splitBlock // a second split makes q again, and is added up, which takes 2 us; of attention without splits no kernels are held
	case dim <= 64:
		block = 2 * splitBlock
	}
	all, heads := op.Attrs.Int("heads"), max(1, op.Attrs.Int("kv_heads"))
	n = 2 * t.Units / heads
	// Of workgroups of four heads that load ahead, and of eight, a unit has one: more than there are units begin when
	// the first end. With two heads 16 splits are slower than 32 (docs/lab/cuda.md); one and three are not
	// measured.
	most := maxSplits
	if share := attention.MatrixShare(op, ctx, t); t.Thresholds.LoadsEarly && share%4 == 0 {
		n = t.Units / (all / share)
		if share > 4 {
			most = wideSplits
		}
		if matrices && (n <= most || dim == evenHead && op.Attrs.Int("window") == 0) { // others were not measured with fewer than fill the units
			block, least = splitRows, block
		}
	}
	n = min(n, most)
	return max(1, min(n, maxPositions(op, ctx)/max(block, least))), block, least
}

// TiledSplits returns the number of workgroups that share the positions of a tile of rows in attention of many rows,
// the rows of a tile, and the granularity of their parts. The number is 1 if no family takes parts. In functions that
// are alike it is that of the widest. If least is not 0, a part has as many positions at least, and the workgroups
// merge parts themselves: functions that are alike have such parts, as steps of few rows do not fill the device.
func TiledSplits(s *kernels.Site, op *ir.Op) (n, rows, block, least int) {
	for _, w := range kernels.Wants(s) {
		if w.Tiles > 0 && (w.Family != "attention_wgmma" || s.Func.Rows >= s.Target.Thresholds.WgmmaRows) {
			block = max(splitBlock, w.TileKV)
			n = max(1, min(s.Target.Units/alikeTiles(s, w.Tiles), maxSplits, maxPositions(op, s.Program.Ctx)/block))
			if deep := min(deepSplits, s.Program.Ctx/deepLeast); n == 1 && deep > 1 && s.Func.Class == ir.AlikeStep && w.Merges > 0 {
				n, block, least = deep, w.Merges, deepLeast
			}
			return n, w.TileRows, block, least
		}
	}
	return 1, 1, splitBlock, 0
}

// maxPositions is how many positions a row sees at most.
func maxPositions(op *ir.Op, ctx int) int {
	if w := op.Attrs.Int("window"); w > 0 {
		return min(w, ctx)
	}
	return ctx
}

// ArgmaxParts returns the number of workgroups that share so many logits of each of some rows. Those of more rows than
// kernels compute together are as many as units have at once: more of them come in rounds, and all are counted. Where
// candidates decide most rows, counting takes longer than the rest.
func ArgmaxParts(logits, rows int, decided bool, t *target.Target) int {
	n, atOnce := min(logits/cmp.Or(t.ArgmaxPart, argmaxSplit), maxSplits), argmaxAtOnce
	if decided {
		atOnce = decidedAtOnce
	}
	if rows > target.DecodeRows {
		n = min(n, atOnce*t.Units/rows)
	}
	return max(1, n)
}

// argmaxAtOnce is the workgroups of argmax that a unit has at once, decidedAtOnce those that it gets where candidates
// decide most rows.
const argmaxAtOnce, decidedAtOnce = 8, 2

// FusesHorizontally reports whether a delta rule of one row, of so many heads, has the projection of its gate beside
// it: where the rule leaves half of the units or more. That was measured through CUDA only, of 32 heads on 132 units
// (docs/lab/hybrids.md).
func FusesHorizontally(t *target.Target, heads int) bool { return t.Overlaps() && 2*heads <= t.Units }

// codedBytes is what a weight of few bits takes in memory, as Q4_K has it.
const codedBytes = 144.0 / 256

// FloatsApart returns the least rows of an exact step, and products of all of them, of projections of a few bits that
// do not share a dispatch with some in float32, for which matrices multiply nothing. That is what was measured or, by
// the roofline, as many rows as take longer to multiply without matrices than the weights to read, but two tiles at
// most, since each takes weights apart anew; and as many products as take longer than another dispatch.
func FloatsApart(t *target.Target) (rows int, work int64) {
	switch apart := t.Thresholds.Apart; {
	case !t.Fragments:
		return 0, 0
	case apart.Rows > 0:
		return apart.Rows, apart.Work
	case t.FLOPs == 0:
		return 2 * target.DecodeRows, 0
	}
	return min(2*target.DecodeRows, int(math.Ceil(codedBytes/2*t.FLOPs/t.Bandwidth))), int64(t.Stage * t.FLOPs)
}

// Chunks reports whether the delta rule of so many rows is computed chunk by chunk.
func Chunks(t *target.Target, rows int) bool { return t.Chunks && rows >= chunkedRows }
