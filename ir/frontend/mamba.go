package frontend

import (
	"fmt"

	"github.com/zincc-dev/zincc/ir"
)

// mamba is the mixer of granitehybrid and nemotron_h in layers without KV heads: Mamba2 (Dao, Gu 2024, arXiv
// 2405.21060).
type mamba struct {
	taps   int // of the convolution
	inner  int // width of all heads
	state  int // rows of a head's state
	heads  int
	groups int // of heads that share what they read and write the state by
	layers []bool
}

func readMamba(m *model) (mixer, error) {
	r := &metadata{f: m.f, prefix: m.arch + "."}
	h := &mamba{
		taps: r.int("ssm.conv_kernel", 0), inner: r.int("ssm.inner_size", 0), state: r.int("ssm.state_size", 0),
		heads: r.int("ssm.time_step_rank", 0), groups: r.int("ssm.group_count", 1),
	}
	const most = 1 << 12
	switch {
	case r.err != nil:
	case h.inner%h.heads != 0 || h.heads%h.groups != 0 || h.inner/h.heads > most || max(h.heads, h.state, h.groups) > most:
		r.fail(fmt.Errorf("metadata %sssm: %d heads in %d groups with a state of %d do not fit an inner size of %d", r.prefix, h.heads, h.groups, h.state, h.inner))
	case h.taps > maxConvTaps:
		r.fail(ir.Unsupported("metadata %sssm.conv_kernel: %d is above %d", r.prefix, h.taps, maxConvTaps))
	}
	for i, of := range m.attention {
		h.layers = append(h.layers, of.kv == 0 && (!m.row.onePart || m.ff[i] == 0))
	}
	return h, r.err
}

func (h *mamba) takes(i int) bool { return h.layers[i] }

func (h *mamba) build(l *layer, x *ir.Value) *ir.Value {
	blk, shared := l.blk, 2*h.groups*h.state
	channels := h.inner + shared
	made := l.linear(l.pre(x, l.row.norms.attn), blk+"ssm_in", l.embd, h.inner+channels+h.heads) // gate, input with what reads and writes the state, time steps
	input := func() *ir.Value { return l.slice(made, h.inner, channels) }
	ring := l.state(blk+"conv", convRing, channels)
	args := []*ir.Value{input(), l.weight(blk+"ssm_conv1d.weight", channels, h.taps), ring, l.pos, l.slot}
	if bias := l.optional(blk+"ssm_conv1d.bias", channels); bias != nil {
		args = append(args, bias)
	}
	c := l.op("conv1d", nil, args...)
	l.op("conv_write", nil, input(), ring, l.pos, l.slot)
	dim := h.inner / h.heads
	y := l.op("ssd", ir.Attrs{
		{Name: "heads", Value: int64(h.heads)}, {Name: "head_dim", Value: int64(dim)}, {Name: "groups", Value: int64(h.groups)}, {Name: "state_dim", Value: int64(h.state)},
	}, c, l.slice(made, h.inner+channels, h.heads), l.weight(blk+"ssm_dt.bias", h.heads), l.vector(blk+"ssm_a", h.heads, 1), l.vector(blk+"ssm_d", h.heads, 1),
		l.state(blk+"ssm", h.heads, h.state, dim), l.pos, l.slot)
	y = l.op("glu", ir.Attrs{{Name: "act", Value: "silu"}}, l.slice(made, 0, h.inner), y)
	y = l.op("rmsnorm", ir.Attrs{{Name: "eps", Value: l.eps}, {Name: "group", Value: int64(h.inner / h.groups)}}, y, l.vector(blk+"ssm_norm.weight", h.groups, h.inner/h.groups))
	return l.linear(y, blk+"ssm_out", h.inner, l.embd)
}
