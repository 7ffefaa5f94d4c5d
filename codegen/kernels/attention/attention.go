// Package attention has the families of attention and what stands right before and behind it:
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
	kv      ir.DType // of both caches: F32, F16 or Q8_0
	slots   int
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
		group: a.Int("heads") / a.Int("kv_heads"), ctx: s.Program.Ctx,
		scale: float32(a.Float("scale")), window: a.Int("window"), wave: s.Target.Wave,
	}
	if len(op.Args) > 5 {
		shape.sinks = op.Args[5]
	}
	ok = ok && shape.headDim%chunk == 0 && v.Type.DType == shape.kv && k.Type.Shape[0] == v.Type.Shape[0]
	shape.slots = int(k.Type.Shape[0])
	return shape, ok && site.Indexable(s, k, 4) && site.Indexable(s, v, 4)
}

// exact reports whether neither q nor the result is f16.
func (a attentionShape) exact(op *ir.Op) bool {
	return op.Args[0].Type.DType == ir.F32 && !a.gate.half
}

// operands are those of q, the caches, pos and slot.
func (a attentionShape) operands(op *ir.Op) []site.Operand {
	list := append(a.rows.Operands(), a.gate.operands()...)
	for i, v := range op.Args[:5] {
		list = append(list, site.Operand{Name: op.Kind.Params[i], Value: v, Access: kernel.Read})
	}
	return append(list, a.sinkOperands()...)
}

func (a attentionShape) sinkOperands() []site.Operand { return sinkOperands(a.sinks) }

func sinkOperands(sinks *ir.Value) []site.Operand {
	if sinks == nil {
		return nil
	}
	return []site.Operand{{Name: "sinks", Value: sinks, Access: kernel.Read}}
}

// key tells kernels with a window or sinks from others.
func (a attentionShape) key() string {
	key := a.gate.key()
	if a.window > 0 {
		key += " window"
	}
	if a.sinks != nil {
		key += " sinks"
	}
	return key + a.rows.Key()
}

func (a attentionShape) consts() []ir.Const {
	list := append(a.rows.Consts(), a.gate.consts()...)
	if a.kv == ir.Q8_0 {
		list = append(list, ir.Const{Name: "slots", Value: uint32(a.slots)})
	}
	if a.window > 0 {
		list = append(list, ir.Const{Name: "window", Value: uint32(a.window)})
	}
	return append(list,
		ir.Const{Name: "heads", Value: uint32(a.heads)},
		ir.Const{Name: "group", Value: uint32(a.group)},
		ir.Const{Name: "ctx", Value: uint32(a.ctx)},
		ir.FloatConst("scale", float64(a.scale)))
}

// attentionArgs are the arguments and constants of the kernels of attention.
type attentionArgs struct {
	rows         kernel.Value
	gate         gateArgs
	q, k, v      *kernel.Buffer
	pos, slot    *kernel.Buffer
	heads, group kernel.Value
	ctx, scale   kernel.Value
	slots        kernel.Value // of q8_0
	window       kernel.Value // if there is one
	sinks        *kernel.Buffer
	kvRow        kernel.Value // chunks of a cached row
}

func (a attentionShape) declare(b *kernel.Builder) attentionArgs {
	d := attentionArgs{rows: a.rows.Bound(b), gate: a.gate.declare(b), q: b.Arg("q", kernel.Read)}
	d.declareCaches(a, b, kernel.Read)
	return d
}

// declareCaches declares what there is besides q.
func (d *attentionArgs) declareCaches(a attentionShape, b *kernel.Builder, access kernel.Access) {
	d.k, d.v = b.Arg("k", access), b.Arg("v", access)
	d.pos, d.slot = b.Arg("pos", kernel.Read), b.Arg("slot", kernel.Read)
	d.heads, d.group = b.SpecU32("heads", 1), b.SpecU32("group", 1)
	d.ctx, d.scale = b.SpecU32("ctx", 4096), b.SpecF32("scale", 1)
	if a.kv == ir.Q8_0 {
		d.slots = b.SpecU32("slots", 1)
	}
	if a.window > 0 {
		d.window = b.SpecU32("window", 1024)
	}
	if a.sinks != nil {
		d.sinks = b.Arg("sinks", kernel.Read)
	}
	d.kvRow = b.Mul(b.Div(d.heads, d.group), a.headDim/chunk)
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
