package frontend

import (
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/ir"
)

// dense is the family of llama, qwen2 and qwen3: attention and a gated FFN, dense
// or of experts, in every layer.
type dense struct {
	rope     string // kind of pairs
	headNorm bool   // RMS norm over each query and key head before RoPE
}

func (d dense) lower(m *model) error {
	table := m.ropeTable()
	x := m.embed()
	for i := range m.layers {
		blk := fmt.Sprintf("blk.%d.", i)
		x = m.op("add", nil, d.attention(m, x, table, blk, i), x)
		x = m.op("add", nil, m.ffn(x, blk, "ffn_norm", i), x)
	}
	m.head(x)
	return m.err
}

func (d dense) attention(m *model, x, table *ir.Value, blk string, layer int) *ir.Value {
	hd, heads, kvHeads := m.headDim, m.heads[layer], m.kvHeads[layer]
	h := m.norm(x, blk+"attn_norm", m.embd)
	q := m.linear(h, blk+"attn_q", m.embd, heads*hd)
	k := m.linear(h, blk+"attn_k", m.embd, kvHeads*hd)
	v := m.linear(h, blk+"attn_v", m.embd, kvHeads*hd)
	if d.headNorm {
		q = m.norm(q, blk+"attn_q_norm", hd)
		k = m.norm(k, blk+"attn_k_norm", hd)
	}
	a := m.attend(q, k, v, table, d.rope, blk, layer)
	return m.linear(a, blk+"attn_output", heads*hd, m.embd)
}

// attend rotates q and k, appends k and v to the layer's KV cache and lets every
// query head attend.
func (m *model) attend(q, k, v, table *ir.Value, kind, blk string, layer int) *ir.Value {
	hd, heads, kvHeads := m.headDim, m.heads[layer], m.kvHeads[layer]
	rope := ir.Attrs{{Name: "kind", Value: kind}, {Name: "head_dim", Value: int64(hd)}, {Name: "n_rot", Value: int64(m.rope.dims)}}
	q = m.op("rope", rope, q, m.pos, table)
	k = m.op("rope", rope, k, m.pos, table)
	if m.err == nil && hd%m.kv.Block() != 0 {
		m.err = ir.Unsupported("a KV cache of %s holds heads of whole blocks of %d, not of %d", m.kv, m.kv.Block(), hd)
	}
	kc := m.cache(blk+"k", m.kv, kvHeads*hd)
	vc := m.cache(blk+"v", m.kv, kvHeads*hd)
	m.op("kvwrite", nil, k, m.pos, m.slot, kc)
	m.op("kvwrite", nil, v, m.pos, m.slot, vc)
	scale := m.scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(hd))
	}
	return m.op("attention", ir.Attrs{
		{Name: "head_dim", Value: int64(hd)}, {Name: "heads", Value: int64(heads)},
		{Name: "kv_heads", Value: int64(kvHeads)}, {Name: "scale", Value: scale},
	}, q, kc, vc, m.pos, m.slot)
}

// ffn is the FFN of a layer behind the norm of that name, dense or with experts.
func (m *model) ffn(x *ir.Value, blk, norm string, layer int) *ir.Value {
	h := m.norm(x, blk+norm, m.embd)
	if m.experts.count > 0 {
		return moe(m, h, blk)
	}
	gate := m.linear(h, blk+"ffn_gate", m.embd, m.ff[layer])
	up := m.linear(h, blk+"ffn_up", m.embd, m.ff[layer])
	return m.linear(m.swiglu(gate, up), blk+"ffn_down", m.ff[layer], m.embd)
}

// swiglu is the activation of Shazeer 2020 (arXiv 2002.05202).
func (m *model) swiglu(gate, up *ir.Value) *ir.Value {
	return m.op("glu", ir.Attrs{{Name: "act", Value: "silu"}}, gate, up)
}
