package synth

// archs are the architectures. Key and tensor names are those that llama.cpp's converters write.
var archs = []arch{
	{"llama", denseKeys, func(m *Model, blk string, i int) {
		m.attention(blk, 1)
		m.vector(blk+"ffn_norm.weight", m.Embd)
		m.ffn(blk)
	}},
	{"qwen2", denseKeys, func(m *Model, blk string, i int) {
		m.attention(blk, 1)
		m.vector(blk+"attn_q.bias", m.Heads*m.HeadDim)
		m.vector(blk+"attn_k.bias", m.KVHeads*m.HeadDim)
		m.vector(blk+"attn_v.bias", m.KVHeads*m.HeadDim)
		m.vector(blk+"ffn_norm.weight", m.Embd)
		m.ffn(blk)
	}},
	{"qwen3", denseKeys, func(m *Model, blk string, i int) {
		m.attention(blk, 1)
		m.headNorms(blk)
		m.vector(blk+"ffn_norm.weight", m.Embd)
		m.ffn(blk)
	}},
	{"qwen3moe", expertKeys, func(m *Model, blk string, i int) {
		m.attention(blk, 1)
		m.headNorms(blk)
		m.vector(blk+"ffn_norm.weight", m.Embd)
		m.experts(blk)
	}},
	{"qwen35", func(m *Model) { denseKeys(m); deltaKeys(m) }, func(m *Model, blk string, i int) {
		m.hybrid(blk, i)
		m.ffn(blk)
	}},
	{"qwen35moe", func(m *Model) { expertKeys(m); deltaKeys(m) }, func(m *Model, blk string, i int) {
		m.hybrid(blk, i)
		m.experts(blk)
		m.sharedExpert(blk)
	}},
}

func denseKeys(m *Model) { m.set("feed_forward_length", m.FF) }

func expertKeys(m *Model) {
	e := m.Experts
	m.set("expert_count", e.Count)
	m.set("expert_used_count", e.Used)
	m.set("expert_feed_forward_length", e.FF)
	if e.Shared > 0 {
		m.set("expert_shared_feed_forward_length", e.Shared)
	}
}

func deltaKeys(m *Model) {
	d := m.DeltaNet
	m.set("full_attention_interval", d.Interval)
	m.set("ssm.conv_kernel", d.Taps)
	m.set("ssm.inner_size", d.ValueHeads*d.State)
	m.set("ssm.state_size", d.State)
	m.set("ssm.time_step_rank", d.ValueHeads)
	m.set("ssm.group_count", d.KeyHeads)
}

// attention has queries of that many times the heads' width: twice where a gate comes with them.
func (m *Model) attention(blk string, times int) {
	q, kv := m.Heads*m.HeadDim, m.KVHeads*m.HeadDim
	m.vector(blk+"attn_norm.weight", m.Embd)
	m.matrix(blk+"attn_q.weight", m.Embd, times*q)
	m.matrix(blk+"attn_k.weight", m.Embd, kv)
	m.matrix(blk+"attn_v.weight", m.Embd, kv)
	m.matrix(blk+"attn_output.weight", q, m.Embd)
}

func (m *Model) headNorms(blk string) {
	m.vector(blk+"attn_q_norm.weight", m.HeadDim)
	m.vector(blk+"attn_k_norm.weight", m.HeadDim)
}

func (m *Model) ffn(blk string) {
	m.matrix(blk+"ffn_gate.weight", m.Embd, m.FF)
	m.matrix(blk+"ffn_up.weight", m.Embd, m.FF)
	m.matrix(blk+"ffn_down.weight", m.FF, m.Embd)
}

func (m *Model) experts(blk string) {
	e := m.Experts
	m.vector(blk+"ffn_gate_inp.weight", m.Embd, e.Count)
	m.matrix(blk+"ffn_gate_exps.weight", m.Embd, e.FF, e.Count)
	m.matrix(blk+"ffn_up_exps.weight", m.Embd, e.FF, e.Count)
	m.matrix(blk+"ffn_down_exps.weight", e.FF, m.Embd, e.Count)
}

func (m *Model) sharedExpert(blk string) {
	m.vector(blk+"ffn_gate_inp_shexp.weight", m.Embd)
	m.matrix(blk+"ffn_gate_shexp.weight", m.Embd, m.Experts.Shared)
	m.matrix(blk+"ffn_up_shexp.weight", m.Embd, m.Experts.Shared)
	m.matrix(blk+"ffn_down_shexp.weight", m.Experts.Shared, m.Embd)
}

// hybrid is a layer of the qwen35 family up to its FFN: a gated delta rule, or in every
// Interval-th layer attention with a gate.
func (m *Model) hybrid(blk string, i int) {
	if (i+1)%m.DeltaNet.Interval == 0 {
		m.attention(blk, 2)
		m.headNorms(blk)
	} else {
		m.deltaNet(blk)
	}
	m.vector(blk+"post_attention_norm.weight", m.Embd)
}

func (m *Model) deltaNet(blk string) {
	d := m.DeltaNet
	keys, values := d.KeyHeads*d.State, d.ValueHeads*d.State
	m.vector(blk+"attn_norm.weight", m.Embd)
	m.matrix(blk+"attn_qkv.weight", m.Embd, 2*keys+values)
	m.matrix(blk+"attn_gate.weight", m.Embd, values)
	m.vector(blk+"ssm_conv1d.weight", d.Taps, 2*keys+values)
	m.vector(blk+"ssm_dt.bias", d.ValueHeads)
	m.vector(blk+"ssm_a", d.ValueHeads)
	m.vector(blk+"ssm_alpha.weight", m.Embd, d.ValueHeads)
	m.vector(blk+"ssm_beta.weight", m.Embd, d.ValueHeads)
	m.vector(blk+"ssm_norm.weight", d.State)
	m.matrix(blk+"ssm_out.weight", values, m.Embd)
}
