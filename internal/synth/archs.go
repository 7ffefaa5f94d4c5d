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
		m.qkvBiases(blk)
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
	{"gemma3", gemmaKeys, func(m *Model, blk string, i int) {
		m.attention(blk, 1)
		m.headNorms(blk)
		m.sandwich(blk)
		m.ffn(blk)
	}},
	{"gemma4", gemma4Keys, (*Model).gemma4},
	{"gpt-oss", func(m *Model) {
		expertKeys(m)
		m.set("attention.sliding_window", m.Windows.Size)
		m.add("rope.scaling.type", "yarn")
		m.float("rope.scaling.factor", 32)
		m.set("rope.scaling.original_context_length", 4096)
	}, func(m *Model, blk string, i int) {
		m.attention(blk, 1)
		m.qkvBiases(blk)
		m.vector(blk+"attn_output.bias", m.Embd)
		m.vector(blk+"attn_sinks.weight", m.Heads)
		m.vector(blk+"post_attention_norm.weight", m.Embd)
		m.experts(blk)
		m.vector(blk+"ffn_gate_inp.bias", m.Experts.Count)
		m.vector(blk+"ffn_gate_exps.bias", m.Experts.FF, m.Experts.Count)
		m.vector(blk+"ffn_up_exps.bias", m.Experts.FF, m.Experts.Count)
		m.vector(blk+"ffn_down_exps.bias", m.Embd, m.Experts.Count)
	}},
	{"glm4moe", glmKeys, func(m *Model, blk string, i int) {
		m.attention(blk, 1)
		m.qkvBiases(blk)
		m.vector(blk+"post_attention_norm.weight", m.Embd)
		m.glmFFN(blk, i)
	}},
	{"deepseek2", func(m *Model) {
		glmKeys(m)
		l := m.Latent
		m.replace("attention.value_length", uint32(l.Width))
		m.set("attention.kv_lora_rank", l.Width)
		if l.Query > 0 {
			m.set("attention.q_lora_rank", l.Query)
		}
		m.set("attention.key_length_mla", l.Key+m.RopeDims)
		m.set("attention.value_length_mla", l.Value)
		m.float("expert_weights_scale", 1.8)
	}, func(m *Model, blk string, i int) {
		m.latentAttention(blk)
		m.vector(blk+"ffn_norm.weight", m.Embd)
		m.glmFFN(blk, i)
	}},
	{"lfm2moe", func(m *Model) {
		denseKeys(m)
		expertKeys(m)
		m.headsOfMixers()
		m.set("shortconv.l_cache", lfmTaps)
		m.set("expert_gating_func", 2)
		m.set("leading_dense_block_count", lfmDense)
		m.lastNorm = "token_embd_norm"
	}, func(m *Model, blk string, i int) {
		if m.mixer(i) == '*' {
			m.attention(blk, 1)
			m.headNorms(blk)
		} else {
			m.vector(blk+"attn_norm.weight", m.Embd)
			m.matrix(blk+"shortconv.in_proj.weight", m.Embd, 3*m.Embd)
			m.vector(blk+"shortconv.conv.weight", lfmTaps, m.Embd)
			m.matrix(blk+"shortconv.out_proj.weight", m.Embd, m.Embd)
		}
		m.vector(blk+"ffn_norm.weight", m.Embd)
		if i < lfmDense {
			m.ffn(blk)
			return
		}
		m.experts(blk)
		m.vector(blk+"exp_probs_b.bias", m.Experts.Count)
	}},
	{"granitehybrid", func(m *Model) {
		expertKeys(m)
		mambaKeys(m)
		m.add("rope.scaling.finetuned", false)
		for _, key := range []string{"embedding_scale", "residual_scale", "attention.scale", "logit_scale"} {
			m.float(key, 0.5)
		}
	}, func(m *Model, blk string, i int) {
		m.mambaOrAttention(blk, i)
		m.vector(blk+"ffn_norm.weight", m.Embd)
		m.experts(blk)
		m.matrix(blk+"ffn_gate_shexp.weight", m.Embd, m.Experts.Shared)
		m.matrix(blk+"ffn_up_shexp.weight", m.Embd, m.Experts.Shared)
		m.matrix(blk+"ffn_down_shexp.weight", m.Experts.Shared, m.Embd)
	}},
	{"nemotron_h_moe", func(m *Model) {
		var ff []int32
		for i := range m.Layers {
			ff = append(ff, map[byte]int32{'E': int32(m.Experts.FF)}[m.mixer(i)])
		}
		m.add("feed_forward_length", ff)
		expertKeys(m)
		mambaKeys(m)
		m.float("attention.layer_norm_epsilon", 1e-6)
		m.add("expert_weights_norm", true)
		m.float("expert_weights_scale", 2.5)
	}, func(m *Model, blk string, i int) {
		if m.mixer(i) != 'E' {
			m.mambaOrAttention(blk, i)
			return
		}
		e := m.Experts
		m.vector(blk+"attn_norm.weight", m.Embd)
		m.vector(blk+"ffn_gate_inp.weight", m.Embd, e.Count)
		m.vector(blk+"exp_probs_b.bias", e.Count)
		m.matrix(blk+"ffn_up_exps.weight", m.Embd, e.FF, e.Count)
		m.matrix(blk+"ffn_down_exps.weight", e.FF, m.Embd, e.Count)
		m.matrix(blk+"ffn_up_shexp.weight", m.Embd, e.Shared)
		m.matrix(blk+"ffn_down_shexp.weight", e.Shared, m.Embd)
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

// glmKeys are those of models whose first layer is dense, and others have experts beside one that all tokens use.
func glmKeys(m *Model) {
	denseKeys(m)
	expertKeys(m)
	m.set("expert_shared_count", 1)
	m.set("expert_gating_func", 2)
	m.set("leading_dense_block_count", 1)
}

func (m *Model) glmFFN(blk string, i int) {
	if i == 0 {
		m.ffn(blk)
		return
	}
	m.experts(blk)
	m.vector(blk+"exp_probs_b.bias", m.Experts.Count)
	m.matrix(blk+"ffn_gate_shexp.weight", m.Embd, m.Experts.FF)
	m.matrix(blk+"ffn_up_shexp.weight", m.Embd, m.Experts.FF)
	m.matrix(blk+"ffn_down_shexp.weight", m.Experts.FF, m.Embd)
}

func (m *Model) latentAttention(blk string) {
	l, key := m.Latent, m.Latent.Key+m.RopeDims
	m.vector(blk+"attn_norm.weight", m.Embd)
	if l.Query > 0 {
		m.matrix(blk+"attn_q_a.weight", m.Embd, l.Query)
		m.vector(blk+"attn_q_a_norm.weight", l.Query)
		m.matrix(blk+"attn_q_b.weight", l.Query, m.Heads*key)
	} else {
		m.matrix(blk+"attn_q.weight", m.Embd, m.Heads*key)
	}
	m.matrix(blk+"attn_kv_a_mqa.weight", m.Embd, l.Width+m.RopeDims)
	m.vector(blk+"attn_kv_a_norm.weight", l.Width)
	m.matrix(blk+"attn_k_b.weight", l.Key, l.Width, m.Heads)
	m.matrix(blk+"attn_v_b.weight", l.Width, l.Value, m.Heads)
	m.matrix(blk+"attn_output.weight", m.Heads*l.Value, m.Embd)
}

func gemmaKeys(m *Model) {
	denseKeys(m)
	m.set("attention.sliding_window", m.Windows.Size)
}

// sandwich has the norms before and behind the parts of a layer that others do not have.
func (m *Model) sandwich(blk string) {
	m.vector(blk+"post_attention_norm.weight", m.Embd)
	m.vector(blk+"ffn_norm.weight", m.Embd)
	m.vector(blk+"post_ffw_norm.weight", m.Embd)
}

// wide reports whether layer i has no window.
func (m *Model) wide(i int) bool { return (i+1)%m.Windows.Period == 0 }

// kvHeads returns the number of KV heads of layer i of gemma4, and their width.
func (m *Model) kvHeads(i int) (heads, dim int) {
	if m.wide(i) {
		return m.Windows.WideHeads, m.Windows.WideDim
	}
	return m.KVHeads, m.HeadDim
}

func gemma4Keys(m *Model) {
	w := m.Windows
	var pattern []bool
	var heads []int32
	for i := range m.Layers {
		kv, _ := m.kvHeads(i)
		pattern, heads = append(pattern, !m.wide(i)), append(heads, int32(kv))
	}
	denseKeys(m)
	if m.Experts.Count > 0 {
		expertKeys(m)
	}
	m.replace("attention.head_count_kv", heads)
	m.replace("attention.key_length", uint32(w.WideDim))
	m.replace("attention.value_length", uint32(w.WideDim))
	m.set("attention.key_length_swa", m.HeadDim)
	m.set("attention.value_length_swa", m.HeadDim)
	m.set("rope.dimension_count_swa", m.HeadDim)
	m.set("attention.sliding_window", w.Size)
	m.add("attention.sliding_window_pattern", pattern)
	m.float("final_logit_softcapping", 30)
	if w.Own > 0 {
		m.set("attention.shared_kv_layers", max(0, m.Layers-w.Own))
	}
	m.set("embedding_length_per_layer_input", w.PerLayer)
	if w.PerLayer > 0 {
		m.matrix("per_layer_token_embd.weight", w.PerLayer*m.Layers, m.Vocab)
		m.matrix("per_layer_model_proj.weight", m.Embd, w.PerLayer*m.Layers)
		m.vector("per_layer_proj_norm.weight", w.PerLayer)
	}
	m.vector("rope_freqs.weight", w.WideDim/2)
}

func (m *Model) gemma4(blk string, i int) {
	w := m.Windows
	kv, dim := m.kvHeads(i)
	m.vector(blk+"attn_norm.weight", m.Embd)
	m.matrix(blk+"attn_q.weight", m.Embd, m.Heads*dim)
	m.vector(blk+"attn_q_norm.weight", dim)
	if w.Own == 0 || i < w.Own {
		m.matrix(blk+"attn_k.weight", m.Embd, kv*dim)
		m.matrix(blk+"attn_v.weight", m.Embd, kv*dim)
		m.vector(blk+"attn_k_norm.weight", dim)
	}
	m.matrix(blk+"attn_output.weight", m.Heads*dim, m.Embd)
	m.sandwich(blk)
	m.ffn(blk)
	m.vector(blk+"layer_output_scale.weight", 1)
	if m.Experts.Count > 0 {
		m.experts(blk)
		m.vector(blk+"ffn_gate_inp.scale", m.Embd)
		m.vector(blk+"ffn_down_exps.scale", m.Experts.Count)
		for _, name := range []string{"pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2"} {
			m.vector(blk+name+".weight", m.Embd)
		}
	}
	if w.PerLayer > 0 {
		m.matrix(blk+"inp_gate.weight", m.Embd, w.PerLayer)
		m.matrix(blk+"proj.weight", w.PerLayer, m.Embd)
		m.vector(blk+"post_norm.weight", m.Embd)
	}
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

// headsOfMixers replaces the number of KV heads by that of each layer: none but where layers have attention.
func (m *Model) headsOfMixers() {
	var heads []int32
	for i := range m.Layers {
		heads = append(heads, map[byte]int32{'*': int32(m.KVHeads)}[m.mixer(i)])
	}
	m.replace("attention.head_count_kv", heads)
}

func mambaKeys(m *Model) {
	m.headsOfMixers()
	s := m.Mamba
	m.set("ssm.conv_kernel", mambaTaps)
	m.set("ssm.inner_size", s.Inner)
	m.set("ssm.state_size", s.State)
	m.set("ssm.time_step_rank", s.Heads)
	m.set("ssm.group_count", s.Groups)
}

const (
	mambaTaps = 4
	lfmTaps   = 3
	lfmDense  = 2 // layers without experts
)

// mambaOrAttention is a layer up to its FFN, if it has one.
func (m *Model) mambaOrAttention(blk string, i int) {
	s := m.Mamba
	if m.mixer(i) == '*' {
		m.attention(blk, 1)
		return
	}
	channels := s.Inner + 2*s.Groups*s.State
	m.vector(blk+"attn_norm.weight", m.Embd)
	m.matrix(blk+"ssm_in.weight", m.Embd, s.Inner+channels+s.Heads)
	m.vector(blk+"ssm_conv1d.weight", mambaTaps, channels)
	m.vector(blk+"ssm_conv1d.bias", channels)
	m.vector(blk+"ssm_dt.bias", s.Heads)
	m.vector(blk+"ssm_a", 1, s.Heads)
	m.vector(blk+"ssm_d", 1, s.Heads)
	m.vector(blk+"ssm_norm.weight", s.Inner/s.Groups, s.Groups)
	m.matrix(blk+"ssm_out.weight", s.Inner, m.Embd)
}

func deltaKeys(m *Model) {
	d, pairs := m.DeltaNet, int32(m.RopeDims/2)
	m.add("rope.dimension_sections", []int32{(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3, 0})
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

func (m *Model) qkvBiases(blk string) {
	m.vector(blk+"attn_q.bias", m.Heads*m.HeadDim)
	m.vector(blk+"attn_k.bias", m.KVHeads*m.HeadDim)
	m.vector(blk+"attn_v.bias", m.KVHeads*m.HeadDim)
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
