package frontend_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// tinyModel is a GGUF file to be: small, of random weights, complete enough for
// other engines to load it.
type tinyModel struct {
	prefix  string
	meta    []gguf.KV
	tensors []gguf.TensorData
	rand    *rand.Rand
}

// The sizes that all tiny models share.
const (
	tinyEmbd, tinyHeads, tinyKV, tinyDim = 64, 4, 2, 16
	tinyFF                               = 96
	tinyVocab                            = 272
	tinyWindow                           = 8 // the prompt is longer
)

func newTiny(arch string) *tinyModel {
	m := &tinyModel{prefix: arch + ".", rand: rand.New(rand.NewPCG(1, 2))}
	m.meta = []gguf.KV{{Key: "general.architecture", Value: arch}, {Key: "general.name", Value: "tiny " + arch}}
	m.set("block_count", uint32(2))
	m.set("context_length", uint32(128))
	m.set("embedding_length", uint32(tinyEmbd))
	m.set("attention.head_count", uint32(tinyHeads))
	m.set("attention.head_count_kv", uint32(tinyKV))
	m.set("attention.key_length", uint32(tinyDim))
	m.set("attention.value_length", uint32(tinyDim))
	m.set("rope.dimension_count", uint32(tinyDim))
	m.set("attention.layer_norm_rms_epsilon", float32(1e-5))
	m.set("rope.freq_base", float32(10000))
	m.vocabulary()
	m.add("token_embd.weight", tinyEmbd, tinyVocab)
	m.add("output_norm.weight", tinyEmbd)
	return m
}

// vocabulary is byte-level: token 1+b is the byte b.
func (m *tinyModel) vocabulary() {
	tokens, types := []string{"<|endoftext|>"}, []int32{3}
	next := rune(256)
	for b := range rune(256) {
		r := b
		if !(b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae) {
			r = next
			next++
		}
		tokens = append(tokens, string(r))
	}
	for len(tokens) < tinyVocab {
		tokens = append(tokens, fmt.Sprintf("[%d]", len(tokens)))
	}
	for len(types) < tinyVocab {
		types = append(types, 1)
	}
	m.meta = append(m.meta,
		gguf.KV{Key: "tokenizer.ggml.model", Value: "gpt2"}, gguf.KV{Key: "tokenizer.ggml.pre", Value: "qwen2"},
		gguf.KV{Key: "tokenizer.ggml.tokens", Value: tokens}, gguf.KV{Key: "tokenizer.ggml.token_type", Value: types},
		gguf.KV{Key: "tokenizer.ggml.merges", Value: []string{"[ 2"}}, gguf.KV{Key: "tokenizer.ggml.eos_token_id", Value: uint32(0)},
		gguf.KV{Key: "tokenizer.ggml.add_bos_token", Value: false})
}

// set adds or replaces a key under the architecture's prefix; nil removes it.
func (m *tinyModel) set(key string, v any) {
	kept := m.meta[:0]
	for _, e := range m.meta {
		if e.Key != m.prefix+key {
			kept = append(kept, e)
		}
	}
	if m.meta = kept; v != nil {
		m.meta = append(m.meta, gguf.KV{Key: m.prefix + key, Value: v})
	}
}

// add appends a tensor of float32, whose shape is in GGUF order: weights for rows of
// dims[0] elements, scales near 1 for norms, rates below 0 for ssm_a.
func (m *tinyModel) add(name string, dims ...int64) {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	sd := 1 / math.Sqrt(float64(dims[0]))
	var data []byte
	for range n {
		v := m.rand.NormFloat64() * sd
		switch {
		case strings.HasSuffix(name, "norm.weight"):
			v = 1 + m.rand.NormFloat64()*0.1
		case strings.HasSuffix(name, "ssm_a"):
			v = -0.1 - m.rand.Float64()
		case strings.HasPrefix(name, "rope_f"):
			v = 1 + 3*m.rand.Float64()
		}
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(v)))
	}
	m.tensors = append(m.tensors, gguf.TensorData{Name: name, Type: ir.F32, Shape: dims, Data: data})
}

// tensor returns the tensor of that name, to be changed.
func (m *tinyModel) tensor(name string) *gguf.TensorData {
	for i := range m.tensors {
		if m.tensors[i].Name == name {
			return &m.tensors[i]
		}
	}
	panic("no tensor " + name)
}

func (m *tinyModel) drop(name string) {
	t := m.tensor(name)
	*t = m.tensors[0]
	m.tensors = m.tensors[1:]
}

func (m *tinyModel) write(t *testing.T, path string) {
	t.Helper()
	var b bytes.Buffer
	if err := gguf.Write(&b, m.meta, m.tensors); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

func (m *tinyModel) open(t *testing.T) *gguf.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	m.write(t, path)
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func (m *tinyModel) attention(blk string, qWidth int64) {
	m.add(blk+"attn_norm.weight", tinyEmbd)
	m.add(blk+"attn_q.weight", tinyEmbd, qWidth)
	m.add(blk+"attn_k.weight", tinyEmbd, tinyKV*tinyDim)
	m.add(blk+"attn_v.weight", tinyEmbd, tinyKV*tinyDim)
	m.add(blk+"attn_output.weight", tinyHeads*tinyDim, tinyEmbd)
}

func (m *tinyModel) headNorms(blk string) {
	m.add(blk+"attn_q_norm.weight", tinyDim)
	m.add(blk+"attn_k_norm.weight", tinyDim)
}

func (m *tinyModel) denseFFN(blk string) {
	m.set("feed_forward_length", uint32(tinyFF))
	m.add(blk+"ffn_gate.weight", tinyEmbd, tinyFF)
	m.add(blk+"ffn_up.weight", tinyEmbd, tinyFF)
	m.add(blk+"ffn_down.weight", tinyFF, tinyEmbd)
}

func (m *tinyModel) moeFFN(blk string, merged bool) {
	const experts, used, ff = 8, 3, 32
	m.set("expert_count", uint32(experts))
	m.set("expert_used_count", uint32(used))
	m.set("expert_feed_forward_length", uint32(ff))
	m.add(blk+"ffn_gate_inp.weight", tinyEmbd, experts)
	if merged {
		m.add(blk+"ffn_gate_up_exps.weight", tinyEmbd, 2*ff, experts)
	} else {
		m.add(blk+"ffn_gate_exps.weight", tinyEmbd, ff, experts)
		m.add(blk+"ffn_up_exps.weight", tinyEmbd, ff, experts)
	}
	m.add(blk+"ffn_down_exps.weight", ff, tinyEmbd, experts)
}

func (m *tinyModel) sharedExpert(blk string) {
	const ff = 48
	m.set("expert_shared_feed_forward_length", uint32(ff))
	m.add(blk+"ffn_gate_inp_shexp.weight", tinyEmbd)
	m.add(blk+"ffn_gate_shexp.weight", tinyEmbd, ff)
	m.add(blk+"ffn_up_shexp.weight", tinyEmbd, ff)
	m.add(blk+"ffn_down_shexp.weight", ff, tinyEmbd)
}

func (m *tinyModel) deltaNet(blk string, mergedBA bool) {
	const d, kHeads, vHeads, taps = 16, 2, 4, 4
	m.set("ssm.conv_kernel", uint32(taps))
	m.set("ssm.inner_size", uint32(vHeads*d))
	m.set("ssm.state_size", uint32(d))
	m.set("ssm.time_step_rank", uint32(vHeads))
	m.set("ssm.group_count", uint32(kHeads))
	m.add(blk+"attn_norm.weight", tinyEmbd)
	m.add(blk+"attn_qkv.weight", tinyEmbd, (2*kHeads+vHeads)*d)
	m.add(blk+"attn_gate.weight", tinyEmbd, vHeads*d)
	m.add(blk+"ssm_conv1d.weight", taps, (2*kHeads+vHeads)*d)
	m.add(blk+"ssm_dt.bias", vHeads)
	m.add(blk+"ssm_a", vHeads)
	if mergedBA {
		m.add(blk+"ssm_ba.weight", tinyEmbd, 2*vHeads)
	} else {
		m.add(blk+"ssm_beta.weight", tinyEmbd, vHeads)
		m.add(blk+"ssm_alpha.weight", tinyEmbd, vHeads)
	}
	m.add(blk+"ssm_norm.weight", d)
	m.add(blk+"ssm_out.weight", vHeads*d, tinyEmbd)
}

// resizeExperts gives the experts of a layer another width.
func (m *tinyModel) resizeExperts(blk string, ff int64) {
	for _, name := range []string{"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"} {
		m.drop(blk + name + ".weight")
	}
	m.add(blk+"ffn_gate_exps.weight", tinyEmbd, ff, 8)
	m.add(blk+"ffn_up_exps.weight", tinyEmbd, ff, 8)
	m.add(blk+"ffn_down_exps.weight", ff, tinyEmbd, 8)
}

// packed makes of the model one as early converters wrote it: per key head, the rows
// of q, k, v and z in one tensor.
func (m *tinyModel) packed(blk string) {
	const d, kHeads, perKey = 16, 2, 2 // as in deltaNet
	qkv, z := m.tensor(blk+"attn_qkv.weight").Data, m.tensor(blk+"attn_gate.weight").Data
	var data []byte
	rows := func(from []byte, first, n int) { data = append(data, from[4*tinyEmbd*first:][:4*tinyEmbd*n]...) }
	for h := range kHeads {
		rows(qkv, h*d, d)
		rows(qkv, (kHeads+h)*d, d)
		rows(qkv, (2*kHeads+h*perKey)*d, perKey*d)
		rows(z, h*perKey*d, perKey*d)
	}
	m.drop(blk + "attn_qkv.weight")
	m.drop(blk + "attn_gate.weight")
	m.tensors = append(m.tensors, gguf.TensorData{Name: blk + "ssm_in.weight", Type: ir.F32, Shape: []int64{tinyEmbd, kHeads * (2 + 2*perKey) * d}, Data: data})
}

// hybridTiny has one DeltaNet layer and one of attention.
func hybridTiny(arch string, mergedBA bool, ffn func(m *tinyModel, blk string)) *tinyModel {
	m := newTiny(arch)
	m.set("full_attention_interval", uint32(2))
	m.set("attention.layer_norm_rms_epsilon", float32(1e-3)) // published is 1e-6; this shows where eps stands in the norms of q and k
	m.set("rope.dimension_count", uint32(8))
	if arch != "qwen3next" {
		m.set("rope.dimension_sections", []int32{2, 1, 1, 0})
	}
	m.add("output.weight", tinyEmbd, tinyVocab)
	m.deltaNet("blk.0.", mergedBA)
	m.attention("blk.1.", 2*tinyHeads*tinyDim)
	m.headNorms("blk.1.")
	for _, blk := range []string{"blk.0.", "blk.1."} {
		m.add(blk+"post_attention_norm.weight", tinyEmbd)
		ffn(m, blk)
	}
	return m
}

// denseTiny has two layers of attention, each finished by rest.
func denseTiny(arch string, rest func(m *tinyModel, blk string)) *tinyModel {
	m := newTiny(arch)
	for _, blk := range []string{"blk.0.", "blk.1."} {
		m.attention(blk, tinyHeads*tinyDim)
		m.add(blk+"ffn_norm.weight", tinyEmbd)
		rest(m, blk)
	}
	return m
}

// sandwichTiny has norms before and after each part of a layer.
func sandwichTiny(arch string, layers int) *tinyModel {
	m := newTiny(arch)
	m.set("block_count", uint32(layers))
	m.set("attention.sliding_window", uint32(tinyWindow))
	for i := range layers {
		blk := fmt.Sprintf("blk.%d.", i)
		m.attention(blk, tinyHeads*tinyDim)
		m.headNorms(blk)
		m.add(blk+"post_attention_norm.weight", tinyEmbd)
		m.add(blk+"ffn_norm.weight", tinyEmbd)
		m.denseFFN(blk)
		m.add(blk+"post_ffw_norm.weight", tinyEmbd)
	}
	return m
}

// behindTiny has norms behind each part of a layer, and none before.
func behindTiny(arch string, layers int, heads func(m *tinyModel, blk string)) *tinyModel {
	m := newTiny(arch)
	m.set("block_count", uint32(layers))
	for i := range layers {
		blk := fmt.Sprintf("blk.%d.", i)
		m.attention(blk, tinyHeads*tinyDim)
		m.drop(blk + "attn_norm.weight")
		heads(m, blk)
		m.add(blk+"post_attention_norm.weight", tinyEmbd)
		m.denseFFN(blk)
		m.add(blk+"post_ffw_norm.weight", tinyEmbd)
	}
	return m
}

func (m *tinyModel) rowNorms(blk string) {
	m.add(blk+"attn_q_norm.weight", tinyHeads*tinyDim)
	m.add(blk+"attn_k_norm.weight", tinyKV*tinyDim)
}

func (m *tinyModel) qkvBiases(blk string) {
	m.add(blk+"attn_q.bias", tinyHeads*tinyDim)
	m.add(blk+"attn_k.bias", tinyKV*tinyDim)
	m.add(blk+"attn_v.bias", tinyKV*tinyDim)
}

// ungated is a shared expert without a gate.
func (m *tinyModel) ungated(blk string) {
	m.sharedExpert(blk)
	m.drop(blk + "ffn_gate_inp_shexp.weight")
}

// fuse makes one tensor of several, weights that read the same input or their biases.
func (m *tinyModel) fuse(name, kind string, parts ...string) {
	var all gguf.TensorData
	for _, p := range parts {
		t := *m.tensor(p + kind)
		m.drop(p + kind)
		if all.Data != nil {
			t.Data, t.Shape = append(slices.Clone(all.Data), t.Data...), slices.Clone(t.Shape)
			t.Shape[len(t.Shape)-1] += all.Shape[len(t.Shape)-1]
		}
		all = t
	}
	all.Name = name + kind
	m.tensors = append(m.tensors, all)
}

// asSeed has the norm before the FFN called as in other architectures that behind attention.
func asSeed(arch string, rest func(m *tinyModel, blk string)) *tinyModel {
	return denseTiny(arch, func(m *tinyModel, blk string) {
		m.tensor(blk + "ffn_norm.weight").Name = blk + "post_attention_norm.weight"
		rest(m, blk)
	})
}

// seeing is the part for texts of a model that is also given images, whose tokens have three positions.
func seeing(arch string, heads, ffn func(m *tinyModel, blk string)) *tinyModel {
	m := denseTiny(arch, func(m *tinyModel, blk string) {
		heads(m, blk)
		ffn(m, blk)
	})
	m.set("rope.dimension_sections", []int32{2, 3, 2, 1})
	m.set("attention.layer_norm_rms_epsilon", float32(1e-8)) // llama.cpp (build 11669) takes 0 in qwen2vl, whatever the file says
	return m
}

// yarn has a context four times that of training.
func (m *tinyModel) yarn(original uint32) {
	m.set("rope.scaling.type", "yarn")
	m.set("rope.scaling.factor", float32(4))
	m.set("rope.scaling.original_context_length", original)
}

func graniteTiny(arch string, rest func(m *tinyModel, blk string)) *tinyModel {
	m := denseTiny(arch, rest)
	m.set("attention.scale", float32(0.2))
	m.set("embedding_scale", float32(3))
	m.set("residual_scale", float32(0.3))
	m.set("logit_scale", float32(1.5))
	return m
}

// gemma4Tiny has layers with a window and without by turns, of other heads. The last two have no caches and wider FFNs,
// the second no values of its own, the third experts. Of a width, layers have embeddings of their own.
func gemma4Tiny(width int64) *tinyModel {
	const layers, wide = 6, 32
	m := newTiny("gemma4")
	m.set("block_count", uint32(layers))
	m.set("attention.sliding_window", uint32(tinyWindow))
	m.set("attention.sliding_window_pattern", []bool{true, false, true, false, true, false})
	m.set("attention.shared_kv_layers", uint32(2))
	m.set("attention.head_count_kv", []int32{2, 1, 2, 1, 2, 1})
	m.set("feed_forward_length", []int32{tinyFF, tinyFF, tinyFF, tinyFF, 2 * tinyFF, 2 * tinyFF})
	m.set("attention.key_length", uint32(wide))
	m.set("attention.value_length", uint32(wide))
	m.set("attention.key_length_swa", uint32(tinyDim))
	m.set("attention.value_length_swa", uint32(tinyDim))
	m.set("rope.dimension_count", uint32(wide))
	m.set("rope.dimension_count_swa", uint32(tinyDim))
	m.set("rope.freq_base", float32(1e6))
	m.set("embedding_length_per_layer_input", uint32(width))
	m.set("final_logit_softcapping", float32(3))
	m.add("rope_freqs.weight", wide/2)
	freqs := m.tensor("rope_freqs.weight").Data
	for i := range wide / 2 {
		f := float32(1)
		if i >= wide/8 {
			f = 1e30 // turns nothing
		}
		binary.LittleEndian.PutUint32(freqs[4*i:], math.Float32bits(f))
	}
	if width > 0 {
		m.add("per_layer_token_embd.weight", width*layers, tinyVocab)
		m.add("per_layer_model_proj.weight", tinyEmbd, width*layers)
		m.add("per_layer_proj_norm.weight", width)
	}
	for i := range int64(layers) {
		blk := fmt.Sprintf("blk.%d.", i)
		dim, kv, ff := int64(tinyDim), int64(2), int64(tinyFF)
		if i%2 == 1 {
			dim, kv = wide, 1
		}
		m.add(blk+"attn_norm.weight", tinyEmbd)
		m.add(blk+"attn_q.weight", tinyEmbd, tinyHeads*dim)
		m.add(blk+"attn_q_norm.weight", dim)
		if i < 4 {
			m.add(blk+"attn_k.weight", tinyEmbd, kv*dim)
			m.add(blk+"attn_k_norm.weight", dim)
		} else {
			ff *= 2
		}
		if i < 4 && i != 1 {
			m.add(blk+"attn_v.weight", tinyEmbd, kv*dim)
		}
		m.add(blk+"attn_output.weight", tinyHeads*dim, tinyEmbd)
		m.add(blk+"post_attention_norm.weight", tinyEmbd)
		m.add(blk+"ffn_norm.weight", tinyEmbd)
		m.add(blk+"ffn_gate.weight", tinyEmbd, ff)
		m.add(blk+"ffn_up.weight", tinyEmbd, ff)
		m.add(blk+"ffn_down.weight", ff, tinyEmbd)
		m.add(blk+"post_ffw_norm.weight", tinyEmbd)
		if width > 0 {
			m.add(blk+"inp_gate.weight", tinyEmbd, width)
			m.add(blk+"proj.weight", width, tinyEmbd)
			m.add(blk+"post_norm.weight", tinyEmbd)
		}
		m.add(blk+"layer_output_scale.weight", 1)
		if i != 2 || width == 0 {
			continue
		}
		m.moeFFN(blk, true)
		m.add(blk+"ffn_gate_inp.scale", tinyEmbd)
		m.add(blk+"ffn_down_exps.scale", 8)
		m.add(blk+"pre_ffw_norm_2.weight", tinyEmbd)
		m.add(blk+"post_ffw_norm_1.weight", tinyEmbd)
		m.add(blk+"post_ffw_norm_2.weight", tinyEmbd)
	}
	return m
}

// lfm2Tiny has a convolution in the first and third layer of three.
func lfm2Tiny(arch string, ffn func(m *tinyModel, blk string)) *tinyModel {
	m := newTiny(arch)
	m.set("block_count", uint32(3))
	m.set("attention.head_count_kv", []int32{0, tinyKV, 0})
	m.set("shortconv.l_cache", uint32(3))
	m.tensor("output_norm.weight").Name = "token_embd_norm.weight"
	for i := range 3 {
		blk := fmt.Sprintf("blk.%d.", i)
		if i == 1 {
			m.attention(blk, tinyHeads*tinyDim)
			m.headNorms(blk)
		} else {
			m.add(blk+"attn_norm.weight", tinyEmbd)
			m.add(blk+"shortconv.in_proj.weight", tinyEmbd, 3*tinyEmbd)
			m.add(blk+"shortconv.conv.weight", 3, tinyEmbd)
			m.add(blk+"shortconv.out_proj.weight", tinyEmbd, tinyEmbd)
		}
		m.add(blk+"ffn_norm.weight", tinyEmbd)
		ffn(m, blk)
	}
	return m
}

// latentTiny has latent attention, and experts behind the first layer.
func latentTiny(arch string, layers int, query, width int64) *tinyModel {
	const plain, turned, value = 24, 8, 16
	m := newTiny(arch)
	m.set("block_count", uint32(layers))
	m.set("attention.head_count_kv", uint32(1))
	m.set("attention.kv_lora_rank", uint32(width))
	m.set("attention.key_length", uint32(width+turned))
	m.set("attention.value_length", uint32(width))
	m.set("attention.key_length_mla", uint32(plain+turned))
	m.set("attention.value_length_mla", uint32(value))
	m.set("rope.dimension_count", uint32(turned))
	m.set("leading_dense_block_count", uint32(1))
	m.add("output.weight", tinyEmbd, tinyVocab)
	for i := range layers {
		blk := fmt.Sprintf("blk.%d.", i)
		m.add(blk+"attn_norm.weight", tinyEmbd)
		if query > 0 {
			m.set("attention.q_lora_rank", uint32(query))
			m.add(blk+"attn_q_a.weight", tinyEmbd, query)
			m.add(blk+"attn_q_a_norm.weight", query)
			m.add(blk+"attn_q_b.weight", query, tinyHeads*(plain+turned))
		} else {
			m.add(blk+"attn_q.weight", tinyEmbd, tinyHeads*(plain+turned))
		}
		m.add(blk+"attn_kv_a_mqa.weight", tinyEmbd, width+turned)
		m.add(blk+"attn_kv_a_norm.weight", width)
		m.add(blk+"attn_k_b.weight", plain, width, tinyHeads)
		m.add(blk+"attn_v_b.weight", width, value, tinyHeads)
		m.add(blk+"attn_output.weight", tinyHeads*value, tinyEmbd)
		m.add(blk+"ffn_norm.weight", tinyEmbd)
		if i == 0 {
			m.denseFFN(blk)
			continue
		}
		m.moeFFN(blk, false)
		m.ungated(blk)
		m.resizeExperts(blk, 48)
		if query > 0 {
			m.add(blk+"exp_probs_b.bias", 8)
		}
	}
	m.set("expert_shared_feed_forward_length", nil)
	m.set("expert_shared_count", uint32(1))
	m.set("expert_feed_forward_length", uint32(48))
	m.set("expert_weights_scale", float32(1.8))
	return m
}

// mamba adds a Mamba2 layer up to its FFN.
func (m *tinyModel) mamba(blk string, heads, groups int64) {
	const dim, state, taps = 16, 16, 4
	inner := heads * dim
	m.set("ssm.conv_kernel", uint32(taps))
	m.set("ssm.inner_size", uint32(inner))
	m.set("ssm.state_size", uint32(state))
	m.set("ssm.time_step_rank", uint32(heads))
	m.set("ssm.group_count", uint32(groups))
	channels := inner + 2*groups*state
	m.add(blk+"attn_norm.weight", tinyEmbd)
	m.add(blk+"ssm_in.weight", tinyEmbd, inner+channels+heads)
	m.add(blk+"ssm_conv1d.weight", taps, channels)
	m.add(blk+"ssm_conv1d.bias", channels)
	m.add(blk+"ssm_dt.bias", heads)
	m.add(blk+"ssm_a", 1, heads)
	m.add(blk+"ssm_d", 1, heads)
	m.add(blk+"ssm_norm.weight", inner/groups, groups)
	m.add(blk+"ssm_out.weight", inner, tinyEmbd)
}

// quietGelu makes what passes through gelu count for a thousandth: llama.cpp looks gelu up in a table of float16 on the
// CPU. A wrong formula is off by hundred times the bound of TestLogits still.
func (m *tinyModel) quietGelu() *tinyModel {
	for _, t := range m.tensors {
		if !strings.HasSuffix(t.Name, ".post_ffw_norm.weight") && !strings.HasSuffix(t.Name, ".post_norm.weight") {
			continue
		}
		for i := 0; i < len(t.Data); i += 4 {
			w := math.Float32frombits(binary.LittleEndian.Uint32(t.Data[i:]))
			binary.LittleEndian.PutUint32(t.Data[i:], math.Float32bits(w/1024))
		}
	}
	return m
}

// graniteHybridTiny has Mamba2 in the first and third layer of three.
func graniteHybridTiny(ffn func(m *tinyModel, blk string)) *tinyModel {
	m := newTiny("granitehybrid")
	m.set("block_count", uint32(3))
	m.set("attention.head_count_kv", []int32{0, tinyKV, 0})
	m.set("rope.scaling.finetuned", false)
	m.set("attention.scale", float32(0.2))
	m.set("embedding_scale", float32(3))
	m.set("residual_scale", float32(0.3))
	m.set("logit_scale", float32(1.5))
	for i := range 3 {
		blk := fmt.Sprintf("blk.%d.", i)
		if i == 1 {
			m.attention(blk, tinyHeads*tinyDim)
		} else {
			m.mamba(blk, 8, 1)
		}
		m.add(blk+"ffn_norm.weight", tinyEmbd)
		ffn(m, blk)
	}
	return m
}

// nemotronTiny has layers of one part each: Mamba2, an FFN, attention, an FFN.
func nemotronTiny(arch string, ffn func(m *tinyModel, blk string)) *tinyModel {
	m := newTiny(arch)
	m.set("block_count", uint32(4))
	m.set("attention.head_count_kv", []int32{0, 0, tinyKV, 0})
	m.set("attention.layer_norm_epsilon", float32(1e-5)) // which llama.cpp asks for and has no use for
	m.set("rope.dimension_count", uint32(84))            // of published files, which have no use for it
	m.add("output.weight", tinyEmbd, tinyVocab)
	m.mamba("blk.0.", 4, 2)
	m.attention("blk.2.", tinyHeads*tinyDim)
	for _, blk := range []string{"blk.1.", "blk.3."} {
		m.add(blk+"attn_norm.weight", tinyEmbd)
		ffn(m, blk)
	}
	m.set("feed_forward_length", []int32{0, tinyFF, 0, tinyFF})
	return m
}

// latentYarnTiny has the router of GLM-4.7-Flash, the YaRN of DeepSeek and the temperature of Mistral.
func latentYarnTiny(arch string) *tinyModel {
	m := latentTiny(arch, 3, 40, 32)
	m.set("expert_gating_func", uint32(2))
	m.set("expert_weights_norm", true)
	m.yarn(16)
	m.set("rope.scaling.yarn_log_multiplier", float32(0.0707))
	m.set("attention.temperature_scale", float32(0.1))
	m.set("attention.temperature_length", uint32(6))
	return m
}

// groupsTiny chooses two groups of experts first.
func groupsTiny() *tinyModel {
	m := latentTiny("deepseek2", 3, 40, 32)
	m.set("expert_gating_func", uint32(2))
	m.set("expert_group_count", uint32(4))
	m.set("expert_group_used_count", uint32(2))
	return m
}

// nemotronExpertsTiny has experts that read and make rows of that width, or of the residual stream's.
func nemotronExpertsTiny(latent int64) *tinyModel {
	const experts, ff, shared = 8, 32, 48
	m := nemotronTiny("nemotron_h_moe", func(m *tinyModel, blk string) {
		width := int64(tinyEmbd)
		if latent > 0 {
			width = latent
			m.set("moe_latent_size", uint32(latent))
			m.add(blk+"ffn_latent_down.weight", tinyEmbd, latent)
			m.add(blk+"ffn_latent_up.weight", latent, tinyEmbd)
		}
		m.add(blk+"ffn_gate_inp.weight", tinyEmbd, experts)
		m.add(blk+"exp_probs_b.bias", experts)
		m.add(blk+"ffn_up_exps.weight", width, ff, experts)
		m.add(blk+"ffn_down_exps.weight", ff, width, experts)
		m.add(blk+"ffn_up_shexp.weight", tinyEmbd, shared)
		m.add(blk+"ffn_down_shexp.weight", shared, tinyEmbd)
	})
	m.set("expert_count", uint32(experts))
	m.set("expert_used_count", uint32(3))
	m.set("expert_feed_forward_length", uint32(ff))
	m.set("expert_shared_feed_forward_length", uint32(shared))
	m.set("expert_shared_count", uint32(1))
	m.set("expert_weights_norm", true)
	m.set("expert_weights_scale", float32(2.5))
	return m
}

// scales puts numbers beside the matrices of all layers, as files of NVFP4 have them: one, or one for each expert.
func (m *tinyModel) scales() *tinyModel {
	for _, w := range slices.Clone(m.tensors) {
		name, ok := strings.CutSuffix(w.Name, ".weight")
		if !ok || !strings.HasPrefix(name, "blk.") || len(w.Shape) < 2 || strings.HasSuffix(name, "ffn_gate_inp") {
			continue
		}
		n := int64(1)
		if len(w.Shape) == 3 {
			n = w.Shape[2]
		}
		m.add(name+".scale", n)
		data := m.tensor(name + ".scale").Data
		for i := range int(n) {
			binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(0.5+m.rand.Float32()))
		}
	}
	return m
}

// variants are what other models of an architecture have, by the name of their logits.
var variants = map[string]func() *tinyModel{
	"nemotron_h_moe-latent": func() *tinyModel { return nemotronExpertsTiny(24) },
	"granitehybrid-dense":   func() *tinyModel { return graniteHybridTiny((*tinyModel).denseFFN) },
	"deepseek2-groups":      groupsTiny,
	"deepseek2-groups-unbiased": func() *tinyModel {
		m := groupsTiny()
		m.drop("blk.1.exp_probs_b.bias")
		m.drop("blk.2.exp_probs_b.bias")
		m.set("expert_gating_func", uint32(1))
		return m
	},
	"gemma4-dense": func() *tinyModel { return gemma4Tiny(0).quietGelu() },
	"glm4-streams": func() *tinyModel { // of a model that sees
		m := tinyModels["glm4"]()
		m.set("rope.dimension_sections", []int32{2, 1, 1, 0})
		return m
	},
	"phi3-short": func() *tinyModel {
		m := tinyModels["phi3"]()
		m.set("rope.scaling.original_context_length", uint32(4096))
		return m
	},
	"llama-experts": func() *tinyModel { // as Mixtral
		m := denseTiny("llama", func(m *tinyModel, blk string) { m.moeFFN(blk, false) })
		m.set("expert_feed_forward_length", nil)
		m.set("feed_forward_length", uint32(32))
		m.add("output.weight", tinyEmbd, tinyVocab)
		return m
	},
	"qwen2-fused": func() *tinyModel { // one matrix for q, k and v, and biases of these and of the logits
		m := tinyModels["qwen2"]()
		for _, blk := range []string{"blk.0.", "blk.1."} {
			m.fuse(blk+"attn_qkv", ".weight", blk+"attn_q", blk+"attn_k", blk+"attn_v")
			m.fuse(blk+"attn_qkv", ".bias", blk+"attn_q", blk+"attn_k", blk+"attn_v")
		}
		m.add("output.bias", tinyVocab)
		return m
	},
	"glm4moe-odd": func() *tinyModel { // of three pairs
		m := tinyModels["glm4moe"]()
		m.set("rope.dimension_count", uint32(6))
		return m
	},
	"lfm2-window": func() *tinyModel {
		m := tinyModels["lfm2"]()
		m.set("attention.sliding_window", uint32(tinyWindow))
		return m
	},
	"olmo2-magnitude": func() *tinyModel { // as OLMo 3
		m := tinyModels["olmo2"]()
		m.set("rope.scaling.yarn_attn_factor", float32(0.1*math.Log(4)+1))
		return m
	},
	"qwen2moe-early": func() *tinyModel { // as Qwen1.5-MoE, whose files say no width of experts
		m := tinyModels["qwen2moe"]()
		m.set("expert_shared_feed_forward_length", nil)
		m.set("expert_feed_forward_length", nil)
		m.set("feed_forward_length", uint32(96)) // three experts of 32
		for _, blk := range []string{"blk.0.", "blk.1."} {
			for _, name := range []string{"ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp"} {
				m.drop(blk + name + ".weight")
			}
			m.add(blk+"ffn_gate_shexp.weight", tinyEmbd, 96)
			m.add(blk+"ffn_up_shexp.weight", tinyEmbd, 96)
			m.add(blk+"ffn_down_shexp.weight", 96, tinyEmbd)
		}
		return m
	},
	"llama-longrope": func() *tinyModel { // as MiniCPM
		m := tinyModels["llama"]()
		m.drop("rope_freqs.weight")
		m.set("rope.scaling.type", "longrope")
		m.set("rope.scaling.original_context_length", uint32(16))
		m.set("rope.scaling.attn_factor", float32(1.2))
		m.add("rope_factors_short.weight", tinyDim/2)
		m.add("rope_factors_long.weight", tinyDim/2)
		return m
	},
	"qwen3moe-scales": func() *tinyModel { return tinyModels["qwen3moe"]().scales() },
	"deepseek2-wide":  func() *tinyModel { return latentTiny("deepseek2", 2, 40, 512) }, // 64 times what turns
	"deepseek2-lite":  func() *tinyModel { return latentTiny("deepseek2", 27, 0, 32) },  // llama.cpp tells them by the number of layers
}

// tinyModels builds one model of every architecture.
var tinyModels = map[string]func() *tinyModel{
	"llama": func() *tinyModel {
		m := denseTiny("llama", (*tinyModel).denseFFN)
		m.add("output.weight", tinyEmbd, tinyVocab)
		m.add("rope_freqs.weight", tinyDim/2)
		return m
	},
	"qwen2": func() *tinyModel {
		return denseTiny("qwen2", func(m *tinyModel, blk string) {
			m.add(blk+"attn_q.bias", tinyHeads*tinyDim)
			m.add(blk+"attn_k.bias", tinyKV*tinyDim)
			m.add(blk+"attn_v.bias", tinyKV*tinyDim)
			m.denseFFN(blk)
		})
	},
	"qwen3": func() *tinyModel {
		return denseTiny("qwen3", func(m *tinyModel, blk string) {
			m.headNorms(blk)
			m.denseFFN(blk)
		})
	},
	"qwen3moe": func() *tinyModel {
		return denseTiny("qwen3moe", func(m *tinyModel, blk string) {
			m.headNorms(blk)
			m.moeFFN(blk, false)
		})
	},
	"qwen2vl": func() *tinyModel { return seeing("qwen2vl", (*tinyModel).qkvBiases, (*tinyModel).denseFFN) },
	"qwen3vl": func() *tinyModel { return seeing("qwen3vl", (*tinyModel).headNorms, (*tinyModel).denseFFN) },
	"qwen3vlmoe": func() *tinyModel {
		return seeing("qwen3vlmoe", (*tinyModel).headNorms, func(m *tinyModel, blk string) { m.moeFFN(blk, false) })
	},
	"qwen3next": func() *tinyModel {
		return hybridTiny("qwen3next", true, func(m *tinyModel, blk string) {
			m.moeFFN(blk, false)
			m.sharedExpert(blk)
		})
	},
	"gemma3": func() *tinyModel {
		m := sandwichTiny("gemma3", 7)
		m.set("rope.freq_base", float32(1e6))
		m.set("rope.scaling.type", "linear")
		m.set("rope.scaling.factor", float32(8))
		return m.quietGelu()
	},
	"gemma4": func() *tinyModel { return gemma4Tiny(8).quietGelu() },
	"gpt-oss": func() *tinyModel {
		m := asSeed("gpt-oss", func(m *tinyModel, blk string) {
			m.qkvBiases(blk)
			m.add(blk+"attn_output.bias", tinyEmbd)
			m.add(blk+"attn_sinks.weight", tinyHeads)
			m.moeFFN(blk, false)
			m.add(blk+"ffn_gate_inp.bias", 8)
			m.add(blk+"ffn_gate_exps.bias", 32, 8)
			m.add(blk+"ffn_up_exps.bias", 32, 8)
			m.add(blk+"ffn_down_exps.bias", tinyEmbd, 8)
		})
		m.set("attention.sliding_window", uint32(tinyWindow))
		m.yarn(16)
		m.add("output.weight", tinyEmbd, tinyVocab)
		return m
	},
	"granite": func() *tinyModel { return graniteTiny("granite", (*tinyModel).denseFFN) },
	"granitemoe": func() *tinyModel {
		m := graniteTiny("granitemoe", func(m *tinyModel, blk string) {
			m.moeFFN(blk, false)
			m.ungated(blk)
		})
		m.set("expert_feed_forward_length", nil)
		m.set("feed_forward_length", uint32(32))
		return m
	},
	"mistral3": func() *tinyModel {
		m := denseTiny("mistral3", (*tinyModel).denseFFN)
		m.yarn(10) // the prompt goes beyond
		m.set("rope.scaling.yarn_log_multiplier", float32(1))
		m.set("attention.temperature_scale", float32(0.1))
		m.add("output.weight", tinyEmbd, tinyVocab)
		return m
	},
	"phi3": func() *tinyModel {
		m := denseTiny("phi3", (*tinyModel).denseFFN)
		m.meta[1].Value = "tiny" // a name with phi3 has llama.cpp look for its tokens
		for _, blk := range []string{"blk.0.", "blk.1."} {
			m.fuse(blk+"attn_qkv", ".weight", blk+"attn_q", blk+"attn_k", blk+"attn_v")
			m.fuse(blk+"ffn_up", ".weight", blk+"ffn_gate", blk+"ffn_up")
		}
		m.set("rope.dimension_count", uint32(8))
		m.set("rope.scaling.original_context_length", uint32(16))
		m.set("rope.scaling.attn_factor", float32(1.2))
		m.add("rope_factors_short.weight", 4)
		m.add("rope_factors_long.weight", 4)
		m.add("output.weight", tinyEmbd, tinyVocab)
		return m
	},
	"glm4": func() *tinyModel {
		m := sandwichTiny("glm4", 2)
		m.set("attention.sliding_window", nil)
		m.set("rope.dimension_count", uint32(8))
		for _, blk := range []string{"blk.0.", "blk.1."} {
			m.drop(blk + "attn_q_norm.weight")
			m.drop(blk + "attn_k_norm.weight")
			m.qkvBiases(blk)
			m.fuse(blk+"ffn_up", ".weight", blk+"ffn_gate", blk+"ffn_up")
		}
		m.add("output.weight", tinyEmbd, tinyVocab)
		return m
	},
	"glm4moe": func() *tinyModel {
		m := asSeed("glm4moe", func(m *tinyModel, blk string) {
			m.qkvBiases(blk)
			m.headNorms(blk)
			if blk == "blk.0." {
				m.denseFFN(blk)
				return
			}
			m.moeFFN(blk, false)
			m.ungated(blk)
			m.add(blk+"exp_probs_b.bias", 8)
		})
		m.set("rope.dimension_count", uint32(8))
		m.set("leading_dense_block_count", uint32(1))
		m.set("expert_shared_feed_forward_length", nil)
		m.set("expert_shared_count", uint32(1))
		m.set("expert_gating_func", uint32(2))
		m.set("expert_weights_norm", true)
		m.set("expert_weights_scale", float32(1.8))
		m.set("expert_feed_forward_length", uint32(48))
		m.resizeExperts("blk.1.", 48)
		m.add("output.weight", tinyEmbd, tinyVocab)
		return m
	},
	"smollm3": func() *tinyModel {
		m := newTiny("smollm3")
		m.set("block_count", uint32(4))
		for i := range 4 {
			blk := fmt.Sprintf("blk.%d.", i)
			m.attention(blk, tinyHeads*tinyDim)
			m.add(blk+"ffn_norm.weight", tinyEmbd)
			m.denseFFN(blk)
		}
		return m
	},
	"seed_oss": func() *tinyModel {
		return asSeed("seed_oss", func(m *tinyModel, blk string) {
			m.qkvBiases(blk)
			m.denseFFN(blk)
		})
	},
	"olmo2": func() *tinyModel {
		m := behindTiny("olmo2", 4, (*tinyModel).rowNorms)
		m.set("attention.sliding_window", uint32(tinyWindow))
		m.yarn(16)
		m.add("output.weight", tinyEmbd, tinyVocab)
		return m
	},
	"ernie4_5": func() *tinyModel { return denseTiny("ernie4_5", (*tinyModel).denseFFN) },
	"ernie4_5-moe": func() *tinyModel {
		m := denseTiny("ernie4_5-moe", func(m *tinyModel, blk string) {
			if blk == "blk.0." {
				m.denseFFN(blk)
				return
			}
			m.moeFFN(blk, false)
			m.ungated(blk)
			m.add(blk+"exp_probs_b.bias", 8)
		})
		m.set("leading_dense_block_count", uint32(1))
		m.set("interleave_moe_layer_step", uint32(1))
		m.set("expert_shared_count", uint32(1))
		return m
	},
	"hunyuan-dense": func() *tinyModel {
		return denseTiny("hunyuan-dense", func(m *tinyModel, blk string) {
			m.headNorms(blk)
			m.denseFFN(blk)
		})
	},
	"hunyuan-moe": func() *tinyModel {
		m := denseTiny("hunyuan-moe", func(m *tinyModel, blk string) {
			m.headNorms(blk)
			m.moeFFN(blk, false)
			m.ungated(blk)
		})
		m.set("feed_forward_length", uint32(32))
		return m
	},
	"exaone4": func() *tinyModel {
		m := behindTiny("exaone4", 64, (*tinyModel).headNorms) // llama.cpp has windows in models of so many layers only
		m.set("attention.sliding_window", uint32(tinyWindow))
		m.set("attention.sliding_window_pattern", uint32(4))
		return m
	},
	"lfm2": func() *tinyModel { return lfm2Tiny("lfm2", (*tinyModel).denseFFN) },
	"lfm2moe": func() *tinyModel {
		m := lfm2Tiny("lfm2moe", func(m *tinyModel, blk string) {
			if blk == "blk.0." {
				m.denseFFN(blk)
				return
			}
			m.moeFFN(blk, false)
			m.add(blk+"exp_probs_b.bias", 8)
		})
		m.set("leading_dense_block_count", uint32(1))
		m.set("expert_gating_func", uint32(2))
		return m
	},
	"deepseek2": func() *tinyModel { return latentYarnTiny("deepseek2") },
	"granitehybrid": func() *tinyModel {
		m := graniteHybridTiny(func(m *tinyModel, blk string) {
			m.moeFFN(blk, false)
			m.ungated(blk)
		})
		m.set("expert_feed_forward_length", nil)
		m.set("feed_forward_length", uint32(32))
		return m
	},
	"nemotron_h": func() *tinyModel {
		return nemotronTiny("nemotron_h", func(m *tinyModel, blk string) {
			m.add(blk+"ffn_up.weight", tinyEmbd, tinyFF)
			m.add(blk+"ffn_down.weight", tinyFF, tinyEmbd)
		})
	},
	"nemotron_h_moe": func() *tinyModel { return nemotronExpertsTiny(0) },
	"muse-glimmer": func() *tinyModel {
		m := sandwichTiny("muse-glimmer", 5)
		m.set("attention.sliding_window_pattern", uint32(4))
		m.set("rope.freq_base_swa", float32(1e5))
		m.set("logit_scale", float32(0.7))
		m.set("final_logit_softcapping", float32(3))
		for i := range 5 {
			m.add(fmt.Sprintf("blk.%d.attn_gate.weight", i), tinyEmbd, tinyHeads*tinyDim)
		}
		m.add("output.weight", tinyEmbd, tinyVocab)
		return m
	},
	"qwen2moe": func() *tinyModel {
		m := denseTiny("qwen2moe", func(m *tinyModel, blk string) {
			m.qkvBiases(blk)
			m.moeFFN(blk, false)
			m.sharedExpert(blk)
		})
		m.add("output.weight", tinyEmbd, tinyVocab)
		return m
	},
	"arcee": func() *tinyModel {
		return denseTiny("arcee", func(m *tinyModel, blk string) {
			m.denseFFN(blk)
			m.drop(blk + "ffn_gate.weight")
		})
	},
	"mistral4": func() *tinyModel {
		m := latentYarnTiny("mistral4")
		m.set("expert_gating_func", uint32(1))
		return m
	},
	"minimax-m2": func() *tinyModel {
		m := denseTiny("minimax-m2", func(m *tinyModel, blk string) {
			m.rowNorms(blk)
			m.moeFFN(blk, false)
			m.add(blk+"exp_probs_b.bias", 8)
		})
		m.set("rope.dimension_count", uint32(8))
		m.set("feed_forward_length", uint32(32))
		m.set("expert_gating_func", uint32(2))
		m.add("output.weight", tinyEmbd, tinyVocab)
		return m
	},
	"qwen35": func() *tinyModel {
		return hybridTiny("qwen35", false, (*tinyModel).denseFFN)
	},
	"qwen35moe": func() *tinyModel {
		return hybridTiny("qwen35moe", false, func(m *tinyModel, blk string) {
			m.moeFFN(blk, true)
			m.sharedExpert(blk)
		})
	},
}
