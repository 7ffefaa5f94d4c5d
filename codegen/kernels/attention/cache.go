package attention

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
)

// How kernels see the caches of keys and values: package layout says how one of q8_0
// lies. Its codes are loaded and stored a chunk of a head at a time, as those of other
// types, its scales by themselves.

// scaled is the elements that share a scale.
const scaled = 32

// cachedHead is where a head of a sequence begins in a cache, at the first position or at
// another: in chunks, and, of q8_0, in scales.
type cachedHead struct{ chunks, scales kernel.Value }

// head returns where a KV head is, whose sequence begins at a row of the cache.
func (d *attentionArgs) cachedHead(b *kernel.Builder, a attentionShape, slot, kvHead kernel.Value) cachedHead {
	return cachedHead{
		chunks: b.Add(b.Mul(b.Mul(slot, d.positions()), d.kvRow), b.Mul(kvHead, b.Div(d.headWidth, chunk))),
		scales: d.scalesOf(b, a, slot, kvHead),
	}
}

// positions is how many a sequence has in the caches.
func (d *attentionArgs) positions() kernel.Value {
	if d.ring == (kernel.Value{}) {
		return d.ctx
	}
	return d.ring
}

// placeOf returns where position p is among those of its sequence in the caches.
func (d *attentionArgs) placeOf(b *kernel.Builder, p kernel.Value) kernel.Value {
	return placeIn(b, d.ring, p)
}

// placeIn returns where position p is in a ring of so many; without one, p.
func placeIn(b *kernel.Builder, ring, p kernel.Value) kernel.Value {
	if ring == (kernel.Value{}) {
		return p
	}
	return b.Mod(p, ring)
}

// scalesOf returns where the scales of a head begin.
func (d *attentionArgs) scalesOf(b *kernel.Builder, a attentionShape, slot, kvHead kernel.Value) kernel.Value {
	if a.kv != ir.Q8_0 {
		return kernel.Value{}
	}
	return scalesOf(b, d.slots, d.positions(), b.Div(d.heads, d.group), slot, kvHead, d.headWidth)
}

// scalesOf returns the index of the first scale of a head of a sequence, in a cache of
// that many slots, positions and heads.
func scalesOf(b *kernel.Builder, slots, ctx, heads, slot, head, headDim kernel.Value) kernel.Value {
	codes := b.Mul(b.Mul(slots, ctx), b.Mul(heads, b.Div(headDim, 2))) // in units of scales
	return b.Add(codes, b.Mul(b.Mul(b.Add(b.Mul(slot, heads), head), b.Div(headDim, scaled)), ctx))
}

// at returns where position p of the head is.
func (d *attentionArgs) at(b *kernel.Builder, head cachedHead, p kernel.Value) cachedHead {
	p = d.placeOf(b, p)
	at := cachedHead{chunks: b.Add(head.chunks, b.Mul(p, d.kvRow))}
	if head.scales != (kernel.Value{}) {
		at.scales = b.Add(head.scales, p)
	}
	return at
}

// loadWords returns chunk c of a head as it is: two vec4 of f32, one of words, or two
// words and the scale.
func (d *attentionArgs) loadWords(b *kernel.Builder, a attentionShape, cache *kernel.Buffer, at cachedHead, c kernel.Value) []kernel.Value {
	i := b.Add(at.chunks, c)
	switch a.kv {
	case ir.F32:
		i = b.Mul(i, 2)
		return []kernel.Value{cache.Load(lane.F32x4, i), cache.Load(lane.F32x4, b.Add(i, 1))}
	case ir.F16:
		return []kernel.Value{cache.Load(lane.U32x4, i)}
	}
	return []kernel.Value{cache.Load(lane.U32x2, i), cache.Load16(b.Add(at.scales, b.Mul(b.Div(c, scaled/chunk), d.positions())))}
}

// element returns, on a processor, element j*lanesWide and on of a head, one in each lane. Heads lie far
// apart, so that what follows them is not asked for ahead.
func (d *attentionArgs) element(b *kernel.Builder, a attentionShape, cache *kernel.Buffer, at cachedHead, j kernel.Value) kernel.Value {
	i := b.Add(b.Mul(at.chunks, chunk), b.Mul(j, lanesWide), b.LocalID())
	cache = cache.Ahead()
	switch a.kv {
	case ir.F32:
		return cache.Load(kernel.F32, i)
	case ir.F16:
		return b.Elem(b.UnpackHalf(cache.Load16(i)), 0)
	}
	// A word has elements 0, 2, 1 and 3 of four, each more by 128.
	shift := b.Or(b.Shl(b.And(i, 1), 4), b.Shl(b.And(i, 2), 2))
	code := b.And(b.Shr(cache.Load(kernel.U32, b.Shr(i, 2)), shift), 0xff)
	scale := cache.Load16(b.Add(at.scales, b.Mul(b.Div(j, scaled/lanesWide), d.positions())))
	return b.Mul(b.Sub(b.Convert(kernel.F32, code), 128.0), b.Elem(b.UnpackHalf(scale), 0))
}

// loadOctets returns what stores the octets of f16, two of q8_0, at unit c of a head: the
// units count as many octets.
func (d *attentionArgs) loadOctets(b *kernel.Builder, a attentionShape, cache *kernel.Buffer, at cachedHead, c kernel.Value) func(store func(octet int, x kernel.Value)) {
	if a.kv == ir.F16 {
		words := d.loadWords(b, a, cache, at, c)
		return func(store func(octet int, x kernel.Value)) { store(0, words[0]) }
	}
	words := cache.Load(lane.U32x4, b.Add(b.Div(at.chunks, 2), c))
	scale := cache.Load16(b.Add(at.scales, b.Mul(b.Div(c, scaled/chunk/2), d.positions())))
	return func(store func(octet int, x kernel.Value)) {
		both := b.Or(scale, b.Shl(scale, 16))
		for i := range 2 {
			store(i, halfElements(b, [2]kernel.Value{b.Elem(words, 2*i), b.Elem(words, 2*i+1)}, both))
		}
	}
}

// octets is how many a unit of loadOctets has.
func (a attentionShape) octets() int {
	if a.kv == ir.Q8_0 {
		return 2
	}
	return 1
}

// unpacked is the elements of a chunk: elems, times scale if there is one.
type unpacked struct {
	elems [2]kernel.Value // vec4
	scale kernel.Value
}

// unpack returns what loadWords has loaded.
func (a attentionShape) unpack(b *kernel.Builder, words []kernel.Value) unpacked {
	switch a.kv {
	case ir.F32:
		return unpacked{elems: [2]kernel.Value(words)}
	case ir.F16:
		return unpacked{elems: unpackHalves(b, words[0])}
	}
	u := unpacked{scale: weight.LowHalf(b, words[1])}
	for i := range u.elems {
		u.elems[i] = unpackCodes(b, b.Elem(words[0], i))
	}
	return u
}

// whole returns the elements with their scale.
func (u unpacked) whole(b *kernel.Builder) [2]kernel.Value {
	if u.scale == (kernel.Value{}) {
		return u.elems
	}
	s := b.Splat(u.scale, 4)
	return [2]kernel.Value{b.Mul(u.elems[0], s), b.Mul(u.elems[1], s)}
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

// Pairs of f16: 1, 1024, and what takes 1024 and the bias of codes away.
const halfOnes, halfMagic, halfBias = uint32(0x3c003c00), uint32(0x64006400), uint32(0xe480e480)

// halfCodes returns the four codes in a word of a cache as two pairs of f16. A byte in the
// low bits of 1024 is added to it.
func halfCodes(b *kernel.Builder, w kernel.Value) [2]kernel.Value {
	const mask = 0x00ff00ff
	return [2]kernel.Value{
		b.FMAHalf(b.Or(b.And(w, mask), halfMagic), halfOnes, halfBias),
		b.FMAHalf(b.Or(b.And(b.Shr(w, 8), mask), halfMagic), halfOnes, halfBias),
	}
}

// unpackCodes returns the four codes in a word of a cache as F32x4.
func unpackCodes(b *kernel.Builder, w kernel.Value) kernel.Value {
	pairs := halfCodes(b, w)
	low, high := b.UnpackHalf(pairs[0]), b.UnpackHalf(pairs[1])
	return b.Vec(b.Elem(low, 0), b.Elem(low, 1), b.Elem(high, 0), b.Elem(high, 1))
}

// halfElements returns the elements whose codes are in two words of a cache as 8 f16. both
// is the scale twice, a pair of f16: each product is rounded once.
func halfElements(b *kernel.Builder, words [2]kernel.Value, both kernel.Value) kernel.Value {
	var out []kernel.Operand
	for _, w := range words {
		for _, pair := range halfCodes(b, w) {
			out = append(out, b.FMAHalf(pair, both, uint32(0)))
		}
	}
	return b.Vec(out...)
}

// roundQ8 rounds x, the four elements of a lane, eight of which have a block, as op
// kvwrite does. It returns the codes as a word of a cache, and the scale, an f16 in the
// low half of a word, that all eight have.
func roundQ8(b *kernel.Builder, x kernel.Value) (codes, scale kernel.Value) {
	most := b.Abs(b.Elem(x, 0))
	for e := 1; e < 4; e++ {
		most = b.Max(most, b.Abs(b.Elem(x, e)))
	}
	most = lane.Fold(b, most, 1, scaled/4, func(x, y kernel.Value) kernel.Value { return b.Max(x, y) })
	d := b.Mul(most, 1.0/127)
	scale = positiveHalf(b, d)
	inverse := b.Bitcast(kernel.F32, b.Sub(b.U32(0x7ef311c7), b.Bitcast(kernel.U32, d)))
	for range 4 {
		inverse = b.Add(inverse, b.Mul(inverse, b.Sub(1.0, b.Mul(d, inverse))))
	}
	inverse = b.Select(b.Eq(scale, 0), 0, inverse)
	codes = b.U32(0)
	for e, at := range []int{0, 16, 8, 24} {
		v := b.Elem(x, e)
		magnitude := b.Convert(kernel.U32, b.Add(b.Mul(b.Abs(v), inverse), 0.5))
		code := b.Select(b.Lt(v, 0), b.Sub(128, magnitude), b.Add(magnitude, 128))
		codes = b.Or(codes, b.Shl(code, at))
	}
	return codes, scale
}

// positiveHalf returns x, which is not negative, as the nearest f16, ties to even, in the
// low half of a word. PackHalf leaves the rounding to the device.
func positiveHalf(b *kernel.Builder, x kernel.Value) kernel.Value {
	bits := b.Bitcast(kernel.U32, x)
	normal := b.Sub(b.Shr(b.Add(bits, 0xfff, b.And(b.Shr(bits, 13), 1)), 13), 112<<10)
	small := b.Sub(b.Bitcast(kernel.U32, b.Add(x, 0.5)), 0x3f000000) // the unit of subnormals is that of f32 at 0.5
	return b.Select(b.Lt(x, 0x1p-14), small, b.Min(normal, 0x7c00))
}

// storeScale stores the scale of the block that access j of a head, of four elements, is
// a part of. scales is where the position's scale of the head's first block is.
func storeScale(b *kernel.Builder, cache *kernel.Buffer, scales, stride, j, scale kernel.Value) {
	ofBlock(b, j, func(block kernel.Value) { cache.Store16(b.Add(scales, b.Mul(block, stride)), scale) })
}

// ofBlock emits body for the first of the accesses of a block, which is the head's
// block-th.
func ofBlock(b *kernel.Builder, j kernel.Value, body func(block kernel.Value)) {
	const accesses = scaled / 4
	b.If(b.Eq(b.Mod(j, accesses), 0), func() { body(b.Div(j, accesses)) })
}
