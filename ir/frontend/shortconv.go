package frontend

import (
	"github.com/zincc-dev/zincc/ir"
)

// shortConv is the mixer of lfm2 and lfm2moe, in layers without KV heads: a short convolution
// over positions of a gated input, whose result is gated again.
type shortConv struct {
	taps   int
	layers []bool
}

func readShortConv(m *model) (mixer, error) {
	r := &metadata{f: m.f, prefix: m.arch + "."}
	c := shortConv{taps: r.int("shortconv.l_cache", 0)}
	if r.err == nil && c.taps > maxConvTaps {
		r.fail(ir.Unsupported("metadata %sshortconv.l_cache: %d is above %d", r.prefix, c.taps, maxConvTaps))
	}
	for _, h := range m.attention {
		c.layers = append(c.layers, h.kv == 0)
	}
	return c, r.err
}

func (c shortConv) takes(i int) bool { return c.layers[i] }

func (c shortConv) build(l *layer, x *ir.Value) *ir.Value {
	n := l.embd
	parts := l.linear(l.pre(x, l.row.norms.attn), l.blk+"shortconv.in_proj", n, 3*n) // gate, gate of the result, input
	u := l.op("mul", nil, l.slice(parts, 0, n), l.slice(parts, 2*n, n))
	ring := l.state(l.blk+"conv", convRing, n)
	y := l.op("conv1d", ir.Attrs{{Name: "act", Value: "none"}}, u, l.weight(l.blk+"shortconv.conv.weight", n, c.taps), ring, l.pos, l.slot)
	l.op("conv_write", nil, u, ring, l.pos, l.slot)
	return l.linear(l.op("mul", nil, l.slice(parts, n, n), y), l.blk+"shortconv.out_proj", n, n)
}
