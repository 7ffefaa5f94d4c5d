package frontend

import (
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/ir"
)

// dense is the family of llama, qwen2 and qwen3: attention and a gated FFN in
// every layer.
type dense struct {
	rope     string // kind of pairs
	headNorm bool   // RMS norm over each query and key head before RoPE
}

func (d dense) lower(m *model) error {
	if m.vocab <= 0 {
		return fmt.Errorf("tensor %q is missing or not a matrix", "token_embd.weight")
	}
	table := m.ropeTable()
	x := m.op("embed", ir.Attrs{{Name: "scale", Value: 1.0}}, m.token, m.weight("token_embd.weight", m.vocab, m.embd))
	for i := range m.layers {
		blk := fmt.Sprintf("blk.%d.", i)
		x = m.op("add", nil, d.attention(m, x, table, blk, i), x)
		x = m.op("add", nil, ffn(m, x, blk, m.ff[i]), x)
	}
	m.head(x, m.vocab)
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
	rope := ir.Attrs{{Name: "kind", Value: d.rope}, {Name: "head_dim", Value: int64(hd)}, {Name: "n_rot", Value: int64(m.params.rope.dims)}}
	q = m.op("rope", rope, q, m.pos, table)
	k = m.op("rope", rope, k, m.pos, table)
	kc := m.cache(blk+"k", m.kv, kvHeads*hd)
	vc := m.cache(blk+"v", m.kv, kvHeads*hd)
	m.op("kvwrite", nil, k, m.pos, m.slot, kc)
	m.op("kvwrite", nil, v, m.pos, m.slot, vc)
	scale := m.scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(hd))
	}
	a := m.op("attention", ir.Attrs{
		{Name: "head_dim", Value: int64(hd)}, {Name: "heads", Value: int64(heads)},
		{Name: "kv_heads", Value: int64(kvHeads)}, {Name: "scale", Value: scale},
	}, q, kc, vc, m.pos, m.slot)
	return m.linear(a, blk+"attn_output", heads*hd, m.embd)
}

// ffn is the SwiGLU feed-forward network (Shazeer 2020, arXiv 2002.05202).
func ffn(m *model, x *ir.Value, blk string, width int) *ir.Value {
	h := m.norm(x, blk+"ffn_norm", m.embd)
	gate := m.linear(h, blk+"ffn_gate", m.embd, width)
	up := m.linear(h, blk+"ffn_up", m.embd, width)
	act := m.op("glu", ir.Attrs{{Name: "act", Value: "silu"}}, gate, up)
	return m.linear(act, blk+"ffn_down", width, m.embd)
}
