package attention

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
)

// How kernels see the caches of keys and values: package layout says how those that have scales
// lie. Codes are loaded and stored a chunk of a head at a time, as the elements of other
// types, scales by themselves.

// cachedHead is where a head of a sequence begins in a cache, at the first position or at
// another: in chunks, and, where there are some, in scales. In caches of pages that follows once the page is known.
type cachedHead struct {
	chunks, scales kernel.Value
	slot, kvHead   kernel.Value // whose page is to be found; else void
}

// cachedHead returns where a KV head of a sequence is.
func (d *attentionArgs) cachedHead(b *kernel.Builder, slot, kvHead kernel.Value) cachedHead {
	if d.caches.table != nil {
		return cachedHead{slot: slot, kvHead: kvHead}
	}
	return cachedHead{chunks: d.chunksOf(b, slot, kvHead), scales: d.scalesOf(b, slot, kvHead)}
}

// chunksOf and scalesOf return where chunks and scales of a head begin in a part of the cache.
func (d *attentionArgs) chunksOf(b *kernel.Builder, part, kvHead kernel.Value) kernel.Value {
	chunks := b.Add(b.Mul(d.caches.first(b, part), d.kvRow), b.Mul(kvHead, b.Div(d.headWidth, chunk)))
	if d.format == nil || d.caches.table == nil {
		return chunks
	}
	return d.caches.behind(b, part, d.kvRow, b.U32(uint32(chunk)), chunks, chunk*d.format.bits)
}

func (d *attentionArgs) scalesOf(b *kernel.Builder, part, kvHead kernel.Value) kernel.Value {
	if d.format == nil {
		return kernel.Value{}
	}
	return d.caches.scales(b, d.format, b.Div(d.heads, d.group), part, kvHead, d.headWidth)
}

// near returns where the head begins for positions that lie side by side with p: all of a tile of positions, which has
// no positions of two pages. So a page is looked up once for the tile.
func (d *attentionArgs) near(b *kernel.Builder, head cachedHead, p kernel.Value) cachedHead {
	if head.slot == (kernel.Value{}) {
		return head
	}
	page := d.caches.part(b, head.slot, p)
	return cachedHead{chunks: d.chunksOf(b, page, head.kvHead), scales: d.scalesOf(b, page, head.kvHead)}
}

// at returns where position p of the head is.
func (d *attentionArgs) at(b *kernel.Builder, head cachedHead, p kernel.Value) cachedHead {
	head = d.near(b, head, p)
	p = d.caches.within(b, p)
	at := cachedHead{chunks: b.Add(head.chunks, b.Mul(p, d.kvRow))}
	if head.scales != (kernel.Value{}) {
		at.scales = b.Add(head.scales, p)
	}
	return at
}

// loadWords returns chunk c of a head as it is: two vec4 of f32, one of words, or two
// words, or one, and the scale.
func (d *attentionArgs) loadWords(b *kernel.Builder, a attentionShape, cache *kernel.Buffer, at cachedHead, c kernel.Value) []kernel.Value {
	i := b.Add(at.chunks, c)
	switch a.kv {
	case ir.F32:
		i = b.Mul(i, 2)
		return []kernel.Value{cache.Load(lane.F32x4, i), cache.Load(lane.F32x4, b.Add(i, 1))}
	case ir.F16:
		return []kernel.Value{cache.Load(lane.U32x4, i)}
	}
	return []kernel.Value{cache.Load(kernel.U32.Vec(a.chunkWords()), i), cache.Load16(b.Add(at.scales, b.Mul(b.Div(c, scaled/chunk), d.caches.rows())))}
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
	f := a.scaled()
	code := f.code(b, i, cache)
	scale := cache.Load16(b.Add(at.scales, b.Mul(b.Div(j, scaled/lanesWide), d.caches.rows())))
	return b.Mul(b.Sub(b.Convert(kernel.F32, code), f.bias), b.Elem(b.UnpackHalf(scale), 0))
}

// loadOctets returns what stores the octets at unit c of a head: the
// units count as many octets.
func (d *attentionArgs) loadOctets(b *kernel.Builder, a attentionShape, cache *kernel.Buffer, at cachedHead, c kernel.Value) func(store func(octet int, x kernel.Value)) {
	if a.kv == ir.F16 {
		words := d.loadWords(b, a, cache, at, c)
		return func(store func(octet int, x kernel.Value)) { store(0, words[0]) }
	}
	words := cache.Load(lane.U32x4, b.Add(b.Div(at.chunks, a.octets()), c))
	scale := cache.Load16(b.Add(at.scales, b.Mul(b.Div(c, scaled/chunk/a.octets()), d.caches.rows())))
	return func(store func(octet int, x kernel.Value)) {
		both := b.Or(scale, b.Shl(scale, 16))
		for i := range a.octets() {
			store(i, a.scaled().octet(b, words, i, both))
		}
	}
}

// octets is how many a unit of loadOctets has, of 16 bytes.
func (a attentionShape) octets() int {
	if f := a.scaled(); f != nil {
		return 16 / f.bits
	}
	return 1
}

// chunkWords is the words of a chunk, without its scale.
func (a attentionShape) chunkWords() int {
	if f := a.scaled(); f != nil {
		return chunk * f.bits / 32
	}
	return int(a.kv.Bytes(chunk)) / 4
}

// scaled returns how the caches hold codes; nil if they hold no codes.
func (a attentionShape) scaled() *scaledFormat { return scaledFormats[a.kv] }

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
		u.elems[i] = a.scaled().floats(b, a.scaled().four(b, words[0], i))
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
