package kernels

import (
	"math"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/ir"
)

// decodeRows is up to how many rows attention reads the cache once for each row;
// steps of more rows share what they read of it.
const decodeRows = 8

// chunk is the elements of a cached head that a lane loads at once: 16 bytes of
// f16.
const chunk = 8

// attentionShape is what the kernels of attention share.
type attentionShape struct {
	rows    extent
	gate    headGate
	headDim int      // a multiple of chunk
	kv      ir.DType // of both caches: F16 or F32
	heads   int
	group   int // heads that share a KV head
	ctx     int
	scale   float32
	wave    int
}

// attentionOf reads an op of attention, whole or split. It refuses what the
// kernels cannot index.
func attentionOf(s *Site, op *ir.Op, gate headGate) (attentionShape, bool) {
	a := op.Attrs
	k, v := op.Args[1], op.Args[2]
	rows, ok := extentOf(s, op.Args[0])
	shape := attentionShape{
		rows: rows, gate: gate, headDim: a.Int("head_dim"), kv: k.Type.DType, heads: a.Int("heads"),
		group: a.Int("heads") / a.Int("kv_heads"), ctx: s.Program.Ctx,
		scale: float32(a.Float("scale")), wave: s.Target.Wave,
	}
	ok = ok && shape.headDim%chunk == 0 && v.Type.DType == shape.kv && (shape.kv == ir.F16 || shape.kv == ir.F32)
	return shape, ok && cacheFits(s, k, 4) && cacheFits(s, v, 4)
}

// exact reports whether neither q nor the result is f16.
func (a attentionShape) exact(op *ir.Op) bool {
	return op.Args[0].Type.DType == ir.F32 && !a.gate.half
}

// operands are those of q, the caches, pos and slot.
func (a attentionShape) operands(op *ir.Op) []Operand {
	list := append(a.rows.operands(), a.gate.operands()...)
	for i, v := range op.Args[:5] {
		list = append(list, Operand{op.Kind.Params[i], v, kernel.Read})
	}
	return list
}

func (a attentionShape) consts() []ir.Const {
	return append(append(a.rows.consts(), a.gate.consts()...),
		ir.Const{Name: "heads", Value: uint32(a.heads)},
		ir.Const{Name: "group", Value: uint32(a.group)},
		ir.Const{Name: "ctx", Value: uint32(a.ctx)},
		ir.Const{Name: "scale", Value: math.Float32bits(a.scale)})
}

// attentionArgs are the arguments and constants of the kernels of attention.
type attentionArgs struct {
	rows         kernel.Value
	gate         gateArgs
	q, k, v      *kernel.Buffer
	pos, slot    *kernel.Buffer
	heads, group kernel.Value
	ctx, scale   kernel.Value
	kvRow        kernel.Value // chunks of a cached row
}

func (a attentionShape) declare(b *kernel.Builder) attentionArgs {
	d := attentionArgs{rows: a.rows.bound(b), gate: a.gate.declare(b), q: b.Arg("q", kernel.Read)}
	d.declareCaches(a, b, kernel.Read)
	return d
}

// declareCaches declares what there is besides q.
func (d *attentionArgs) declareCaches(a attentionShape, b *kernel.Builder, access kernel.Access) {
	d.k, d.v = b.Arg("k", access), b.Arg("v", access)
	d.pos, d.slot = b.Arg("pos", kernel.Read), b.Arg("slot", kernel.Read)
	d.heads, d.group = b.SpecU32("heads", 1), b.SpecU32("group", 1)
	d.ctx, d.scale = b.SpecU32("ctx", 4096), b.SpecF32("scale", 1)
	d.kvRow = b.Mul(b.Div(d.heads, d.group), a.headDim/chunk)
}

// loadChunk returns the elements of chunk i of a cache.
func (a attentionShape) loadChunk(b *kernel.Builder, cache *kernel.Buffer, i kernel.Value) [2]kernel.Value {
	words := a.loadWords(b, cache, i)
	if a.kv == ir.F32 {
		return [2]kernel.Value(words)
	}
	return unpackHalves(b, words[0])
}

// loadWords returns chunk i of a cache as it is: two vec4 of f32, or one of words.
func (a attentionShape) loadWords(b *kernel.Builder, cache *kernel.Buffer, i kernel.Value) []kernel.Value {
	if a.kv == ir.F32 {
		i = b.Mul(i, 2)
		return []kernel.Value{cache.Load(f32x4, i), cache.Load(f32x4, b.Add(i, 1))}
	}
	return []kernel.Value{cache.Load(u32x4, i)}
}

// unpackHalves returns the 8 f16 in the words of v.
func unpackHalves(b *kernel.Builder, v kernel.Value) [2]kernel.Value {
	var out [2]kernel.Value
	for i := range out {
		x, y := b.UnpackHalf(b.Elem(v, 2*i)), b.UnpackHalf(b.Elem(v, 2*i+1))
		out[i] = b.Vec(b.Elem(x, 0), b.Elem(x, 1), b.Elem(y, 0), b.Elem(y, 1))
	}
	return out
}
