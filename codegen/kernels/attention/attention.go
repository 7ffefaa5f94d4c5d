// Package attention has the families of attention, and of the work right before and behind it:
// heads with rotary embedding and cache writes, splits and their merge.
package attention

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

// chunk is the elements of a cached head that a lane loads at once: 16 bytes of
// f16, 8 of codes.
const chunk = 8

// attentionShape is what the kernels of attention share.
type attentionShape struct {
	rows    site.Extent
	gate    headGate
	headDim int      // a multiple of chunk
	kv      ir.DType // of both caches
	kept    kept
	heads   int
	group   int // heads that share a KV head
	ctx     int
	scale   float32
	window  int       // positions that a row sees; 0 for all
	sinks   *ir.Value // of the heads; nil if they have none
	wave    int
}

// attentionOf reads an op of attention, whole or split. It refuses what the
// kernels cannot index.
func attentionOf(s *site.Site, op *ir.Op, gate headGate) (attentionShape, bool) {
	a := op.Attrs
	k, v := op.Args[1], op.Args[2]
	rows, ok := site.ExtentOf(s, op.Args[0])
	shape := attentionShape{
		rows: rows, gate: gate, headDim: a.Int("head_dim"), kv: k.Type.DType, heads: a.Int("heads"),
		group: a.Int("heads") / a.Int("kv_heads"), ctx: s.Program.Ctx, kept: keptOf(op, k),
		scale: float32(a.Float("scale")), window: a.Int("window"), wave: s.Target.Wave,
	}
	shape.sinks = op.Sinks()
	ok = ok && shape.headDim%chunk == 0 && shape.kept.ring%ringUnit == 0 && v.Type.DType == shape.kv && k.Type.Shape[0] == v.Type.Shape[0]
	return shape, ok && site.Indexable(s, k, 4) && site.Indexable(s, v, 4)
}

// ringUnit is what positions of a ring are a multiple of: what kernels load of consecutive positions at once lies
// together.
const ringUnit = 32

// exact reports whether neither q nor the result is f16.
func (a attentionShape) exact(op *ir.Op) bool {
	return op.Args[0].Type.DType == ir.F32 && !a.gate.half
}

// key tells kernels with a window, rings or sinks from others.
func (a attentionShape) key() string {
	key := a.gate.key()
	if a.window > 0 {
		key += " window"
	}
	key += a.kept.key()
	if a.sinks != nil {
		key += " sinks"
	}
	return key + a.rows.PartKey() + a.rows.Key()
}

// attentionArgs are the arguments and constants of the kernels of attention.
type attentionArgs struct {
	extent       site.StepRows
	rows         kernel.Value // of this step
	gate         gateArgs
	q, k, v      *kernel.Buffer
	pos, slot    *kernel.Buffer
	heads, group kernel.Value
	ctx, scale   kernel.Value
	caches       places
	format       *scaledFormat // of the caches; nil if they hold no codes
	window       kernel.Value  // if there is one
	sinks        *kernel.Buffer
	headWidth    kernel.Value // as the shape has it, or a constant that the kernel leaves open
	kvRow        kernel.Value // chunks of a cached row
}

// declare declares what attention takes: op's operands, the gate and the shape.
func (a attentionShape) declare(s *site.Signature, op *ir.Op) attentionArgs {
	d := attentionArgs{extent: a.rows.Declare(s), gate: a.gate.declare(s), q: s.Read("q", op.Args[0])}
	d.declareCaches(a, s, op, kernel.Read)
	return d
}

// declareCaches declares what there is besides q.
func (d *attentionArgs) declareCaches(a attentionShape, s *site.Signature, op *ir.Op, access kernel.Access) {
	d.k, d.v = s.Arg("k", op.Args[1], access), s.Arg("v", op.Args[2], access)
	d.pos, d.slot = s.Read("pos", op.Args[3]), s.Read("slot", op.Args[4])
	d.heads, d.group = s.U32("heads", a.heads, 1, "heads of a row"), s.U32("group", a.group, 1, "heads that share a KV head")
	d.ctx, d.scale = s.U32("ctx", a.ctx, 4096, "positions of a sequence"), s.F32("scale", float64(a.scale), 1, "factor of the scores")
	d.caches.ctx = d.ctx
	if d.format = a.scaled(); d.format != nil {
		a.kept.declareScales(s, &d.caches)
	}
	a.kept.declareRows(s, &d.caches)
	if a.window > 0 {
		d.window = s.U32("window", a.window, 1024, "positions that a row sees")
	}
	d.sinks = declareSinks(s, a.sinks)
}

// declareSinks declares the sinks of the heads, if they have some.
func declareSinks(s *site.Signature, sinks *ir.Value) *kernel.Buffer {
	if sinks == nil {
		return nil
	}
	return s.Read("sinks", sinks)
}

// begin loads the rows of the step.
func (d *attentionArgs) begin(b *kernel.Builder, a attentionShape) {
	if d.headWidth == (kernel.Value{}) {
		d.headWidth = b.U32(uint32(a.headDim))
	}
	d.rows, d.kvRow = d.extent.Load(b), b.Mul(b.Div(d.heads, d.group), b.Div(d.headWidth, chunk))
}

// Windows. What a row at position p sees begins at p+1 less the window.

// first returns the first position that the row at p sees.
func (d *attentionArgs) first(b *kernel.Builder, p kernel.Value) kernel.Value {
	if d.window == (kernel.Value{}) {
		return b.U32(0)
	}
	return b.Sub(b.Max(b.Add(p, 1), d.window), d.window)
}

// firstIn returns where positions begin for rows of which that at p is the first: at a
// multiple of block.
func (d *attentionArgs) firstIn(b *kernel.Builder, p kernel.Value, block kernel.Operand) kernel.Value {
	if d.window == (kernel.Value{}) {
		return b.U32(0)
	}
	return b.Mul(b.Div(d.first(b, p), block), block)
}

// sees is seen where position p is in the window of a row that sees positions below limit, both
// of any number of lanes.
func (d *attentionArgs) sees(b *kernel.Builder, seen, p, limit kernel.Value) kernel.Value {
	if d.window == (kernel.Value{}) {
		return seen
	}
	return b.And(seen, b.Ge(b.Add(p, lane.Splat(b, d.window, p.Type().Lanes())), limit))
}

// withSink adds to a sum of weights, which are relative to top, that of the head's sink. Its
// exponent is bounded: beyond, the sum outweighs all that it divides.
func withSink(b *kernel.Builder, sinks *kernel.Buffer, head kernel.Value, top func() kernel.Value, weight kernel.Value) kernel.Value {
	if sinks == nil {
		return weight
	}
	return b.Add(weight, b.Exp(b.Min(b.Sub(sinks.Load(kernel.F32, head), top()), 80.0)))
}
