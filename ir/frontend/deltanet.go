package frontend

import (
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/ir"
)

// deltaNet is the mixer of qwen3next, qwen35 and qwen35moe: a gated DeltaNet (Yang, Kautz,
// Hatamizadeh 2024, arXiv 2412.06464).
type deltaNet struct {
	headMap string // which key head a value head reads, see op deltanet
	merged  bool   // one tensor projects to beta and alpha of every key head
	deltaParams
}

// convRing is the number of past rows of a convolution that are kept: those that a
// decode step reads and the up to 8 that it writes are different ones, so that it
// need not read all before it writes.
const (
	convRing    = 16
	maxConvTaps = convRing - 8 + 1
)

// deltaParams are the hyperparameters of the DeltaNet layers.
type deltaParams struct {
	taps   int // of the convolution
	dim    int // of a key or value head
	kHeads int
	vHeads int
	linear []bool // which layers have a DeltaNet
}

func (h deltaNet) read(m *model) (mixer, error) {
	r := &metadata{f: m.f, prefix: m.arch + "."}
	d := deltaParams{
		taps:   r.int("ssm.conv_kernel", 0),
		dim:    r.int("ssm.state_size", 0),
		kHeads: r.int("ssm.group_count", 0),
		vHeads: r.int("ssm.time_step_rank", 0),
		linear: r.linearLayers(m.layers),
	}
	inner := r.int("ssm.inner_size", 0)
	switch {
	case r.err != nil:
	case d.dim > 1<<12 || d.vHeads > 1<<12 || d.vHeads%d.kHeads != 0 || d.vHeads*d.dim != inner:
		r.fail(fmt.Errorf("metadata %sssm: %d value heads of %d over %d key heads do not fit an inner size of %d", r.prefix, d.vHeads, d.dim, d.kHeads, inner))
	case d.taps > maxConvTaps:
		r.fail(ir.Unsupported("metadata %sssm.conv_kernel: %d is above %d", r.prefix, d.taps, maxConvTaps))
	}
	h.deltaParams = d
	return h, r.err
}

func (h deltaNet) takes(i int) bool { return h.linear[i] }

// linearLayers reads which layers do not attend: a list, or all but every n-th.
func (r *metadata) linearLayers(layers int) []bool {
	const key = "attention.recurrent_layers"
	if list := r.bools(key, layers); list != nil || r.err != nil {
		return list
	}
	if _, ok := r.f.Value(r.prefix + key); ok {
		r.fail(fmt.Errorf("metadata %s%s: not a list of bools", r.prefix, key))
	}
	list, interval := make([]bool, layers), r.int("full_attention_interval", 4)
	for i := range list {
		list[i] = (i+1)%interval != 0
	}
	return list
}

// build has projections first and next to each other, so that one dispatch can do them all.
func (h deltaNet) build(l *layer, x *ir.Value) *ir.Value {
	m, d, blk := l.model, h.deltaParams, l.blk
	keys, values := d.kHeads*d.dim, d.vHeads*d.dim
	channels := 2*keys + values
	n := l.pre(x, m.row.norms.attn)
	mixed := m.linear(n, blk+"attn_qkv", m.embd, channels)
	z := m.linear(n, blk+"attn_gate", m.embd, values)
	alpha, beta := h.alphaBeta(m, n, blk)

	ring := m.state(blk+"conv", convRing, channels)
	c := m.op("conv1d", nil, mixed, m.weight(blk+"ssm_conv1d.weight", channels, d.taps), ring, m.pos, m.slot)
	m.op("conv_write", nil, mixed, ring, m.pos, m.slot)
	q := m.slice(c, 0, keys)
	k := m.slice(c, keys, keys)
	v := m.slice(c, 2*keys, values)
	unit := ir.Attrs{{Name: "eps", Value: m.eps}, {Name: "group", Value: int64(d.dim)}}
	q = m.op("l2norm", unit, q)
	k = m.op("l2norm", unit, k)
	g := m.op("decay", nil, alpha, m.weight(blk+"ssm_dt.bias", d.vHeads), m.weight(blk+"ssm_a", d.vHeads))
	beta = m.op("sigmoid", nil, beta)
	o := m.op("deltanet", ir.Attrs{
		{Name: "head_dim", Value: int64(d.dim)}, {Name: "k_heads", Value: int64(d.kHeads)}, {Name: "v_heads", Value: int64(d.vHeads)},
		{Name: "map", Value: h.headMap}, {Name: "scale", Value: 1 / math.Sqrt(float64(d.dim))},
	}, q, k, v, g, beta, m.state(blk+"delta", d.vHeads, d.dim, d.dim), m.pos, m.slot)
	o = m.op("gated_rmsnorm", unit, o, m.weight(blk+"ssm_norm.weight", d.dim), z)
	return m.linear(o, blk+"ssm_out", values, m.embd)
}

// alphaBeta projects to the inputs of every value head's decay and update rate.
func (h deltaNet) alphaBeta(m *model, x *ir.Value, blk string) (alpha, beta *ir.Value) {
	if !h.merged {
		alpha = m.linear(x, blk+"ssm_alpha", m.embd, h.vHeads)
		return alpha, m.linear(x, blk+"ssm_beta", m.embd, h.vHeads)
	}
	// For every key head, the betas of its value heads, then their alphas.
	both, group := m.linear(x, blk+"ssm_ba", m.embd, 2*h.vHeads), h.vHeads/h.kHeads
	return m.headSlice(both, group, 2, 1), m.headSlice(both, group, 2, 0)
}
