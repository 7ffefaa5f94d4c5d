package zincc_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// hybrid is a model of architecture qwen35moe to be written: of every interval
// layers the last attends, the others have a DeltaNet; random weights of the types
// that published files have.
type hybrid struct {
	layers, interval int
	embd, vocab      int
	heads, kv, dim   int  // of attention
	rope             int  // dims of a head that are rotated
	kHeads, vHeads   int  // of the DeltaNet, whose heads are 128 wide
	experts, used    int  // all and those of a token
	ff, shared       int  // widths of an expert and of the one that all tokens use
	merged           bool // one tensor has gate and up matrices of every expert
	predict          bool // a layer that predicts further tokens follows the trunk
}

// hybrids are the models that are not in testdata but written for the tests. Those
// whose number of key heads is no power of two are the ones where indices go wrong.
var hybrids = map[string]hybrid{
	"tiny-qwen35moe": {
		layers: 4, interval: 4, embd: 256, vocab: 1024, heads: 4, kv: 2, dim: 128, rope: 64,
		kHeads: 2, vHeads: 4, experts: 16, used: 4, ff: 256, shared: 256,
	},
	"tiny-qwen35moe-3-6": {
		layers: 4, interval: 4, embd: 256, vocab: 1024, heads: 4, kv: 2, dim: 128, rope: 64,
		kHeads: 3, vHeads: 6, experts: 16, used: 4, ff: 256, shared: 256, merged: true, predict: true,
	},
}

const (
	hybridState = 128 // width of a DeltaNet head
	hybridTaps  = 4   // of the convolution
)

// write writes the model, the same bytes every time.
func (h hybrid) write(path string) error {
	meta, tensors := h.model(rand.New(rand.NewPCG(uint64(h.kHeads), 35)))
	var b bytes.Buffer
	if err := gguf.Write(&b, meta, tensors); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o666)
}

// model returns the contents of the file; without r, the tensors have no data.
func (h hybrid) model(r *rand.Rand) ([]gguf.KV, []gguf.TensorData) {
	w := weightWriter{rand: r}
	w.weight("token_embd.weight", ir.Q4_K, h.embd, h.vocab)
	w.scales("output_norm.weight", 1, h.embd)
	w.weight("output.weight", ir.Q6_K, h.embd, h.vocab)
	blocks := h.layers
	if h.predict {
		blocks++
	}
	for i := range blocks {
		blk := fmt.Sprintf("blk.%d.", i)
		if i == h.layers || (i+1)%h.interval == 0 {
			h.attention(&w, blk)
		} else {
			h.deltaNet(&w, blk)
		}
		h.ffn(&w, blk)
		if i == h.layers {
			w.weight(blk+"nextn.eh_proj.weight", ir.Q8_0, 2*h.embd, h.embd)
			w.scales(blk+"nextn.enorm.weight", 1, h.embd)
			w.scales(blk+"nextn.hnorm.weight", 1, h.embd)
			w.scales(blk+"nextn.shared_head_norm.weight", 1, h.embd)
		}
	}
	return h.metadata(blocks), w.tensors
}

func (h hybrid) metadata(blocks int) []gguf.KV {
	meta := []gguf.KV{{Key: "general.architecture", Value: "qwen35moe"}, {Key: "general.name", Value: "tiny qwen35moe"}}
	for _, e := range []gguf.KV{
		{Key: "block_count", Value: uint32(blocks)},
		{Key: "nextn_predict_layers", Value: uint32(blocks - h.layers)},
		{Key: "context_length", Value: uint32(512)},
		{Key: "embedding_length", Value: uint32(h.embd)},
		{Key: "attention.head_count", Value: uint32(h.heads)},
		{Key: "attention.head_count_kv", Value: uint32(h.kv)},
		{Key: "attention.key_length", Value: uint32(h.dim)},
		{Key: "attention.value_length", Value: uint32(h.dim)},
		{Key: "attention.layer_norm_rms_epsilon", Value: float32(1e-6)},
		{Key: "rope.freq_base", Value: float32(1e7)},
		{Key: "rope.dimension_count", Value: uint32(h.rope)},
		{Key: "rope.dimension_sections", Value: []int32{11, 11, 10, 0}},
		{Key: "full_attention_interval", Value: uint32(h.interval)},
		{Key: "ssm.conv_kernel", Value: uint32(hybridTaps)},
		{Key: "ssm.inner_size", Value: uint32(h.vHeads * hybridState)},
		{Key: "ssm.state_size", Value: uint32(hybridState)},
		{Key: "ssm.time_step_rank", Value: uint32(h.vHeads)},
		{Key: "ssm.group_count", Value: uint32(h.kHeads)},
		{Key: "expert_count", Value: uint32(h.experts)},
		{Key: "expert_used_count", Value: uint32(h.used)},
		{Key: "expert_feed_forward_length", Value: uint32(h.ff)},
		{Key: "expert_shared_feed_forward_length", Value: uint32(h.shared)},
	} {
		meta = append(meta, gguf.KV{Key: "qwen35moe." + e.Key, Value: e.Value})
	}
	tokens, types := byteTokens(h.vocab)
	return append(meta,
		gguf.KV{Key: "tokenizer.ggml.model", Value: "gpt2"}, gguf.KV{Key: "tokenizer.ggml.pre", Value: "qwen2"},
		gguf.KV{Key: "tokenizer.ggml.tokens", Value: tokens}, gguf.KV{Key: "tokenizer.ggml.token_type", Value: types},
		gguf.KV{Key: "tokenizer.ggml.merges", Value: []string{"[ 2"}}, gguf.KV{Key: "tokenizer.ggml.eos_token_id", Value: uint32(0)},
		gguf.KV{Key: "tokenizer.ggml.add_bos_token", Value: false})
}

// byteTokens is a vocabulary of bytes: token 1+b is the byte b as GPT-2 spells it.
// The rest never come out of a text.
func byteTokens(n int) (tokens []string, types []int32) {
	tokens, types = append(tokens, "<|endoftext|>"), append(types, 3)
	other := rune(256)
	for b := range rune(256) {
		if b > ' ' && b <= '~' || b >= 0xa1 && b != 0xad {
			tokens = append(tokens, string(b))
		} else {
			tokens = append(tokens, string(other))
			other++
		}
	}
	for i := len(tokens); i < n; i++ {
		tokens = append(tokens, fmt.Sprintf("[%d]", i))
	}
	for range len(tokens) - 1 {
		types = append(types, 1)
	}
	return tokens, types
}

// weightWriter collects tensors; without rand, they have no data.
type weightWriter struct {
	rand    *rand.Rand
	tensors []gguf.TensorData
}

func (h hybrid) attention(w *weightWriter, blk string) {
	q, kv := h.heads*h.dim, h.kv*h.dim
	w.scales(blk+"attn_norm.weight", 1, h.embd)
	w.weight(blk+"attn_q.weight", ir.Q8_0, h.embd, 2*q) // per head: query, gate
	w.weight(blk+"attn_k.weight", ir.Q8_0, h.embd, kv)
	w.weight(blk+"attn_v.weight", ir.Q8_0, h.embd, kv)
	w.weight(blk+"attn_output.weight", ir.Q8_0, q, h.embd)
	w.scales(blk+"attn_q_norm.weight", 1, h.dim)
	w.scales(blk+"attn_k_norm.weight", 1, h.dim)
}

func (h hybrid) deltaNet(w *weightWriter, blk string) {
	keys, values := h.kHeads*hybridState, h.vHeads*hybridState
	w.scales(blk+"attn_norm.weight", 1, h.embd)
	w.weight(blk+"attn_qkv.weight", ir.Q8_0, h.embd, 2*keys+values)
	w.weight(blk+"attn_gate.weight", ir.Q8_0, h.embd, values)
	w.weight(blk+"ssm_conv1d.weight", ir.F32, hybridTaps, 2*keys+values)
	w.scales(blk+"ssm_dt.bias", 0, h.vHeads)
	w.scales(blk+"ssm_a", -1, h.vHeads)
	w.weight(blk+"ssm_alpha.weight", ir.F32, h.embd, h.vHeads)
	w.weight(blk+"ssm_beta.weight", ir.F32, h.embd, h.vHeads)
	w.scales(blk+"ssm_norm.weight", 1, hybridState)
	w.weight(blk+"ssm_out.weight", ir.Q8_0, values, h.embd)
}

func (h hybrid) ffn(w *weightWriter, blk string) {
	w.scales(blk+"post_attention_norm.weight", 1, h.embd)
	w.weight(blk+"ffn_gate_inp.weight", ir.F32, h.embd, h.experts)
	if h.merged {
		w.weight(blk+"ffn_gate_up_exps.weight", ir.Q4_K, h.embd, 2*h.ff, h.experts)
	} else {
		w.weight(blk+"ffn_gate_exps.weight", ir.Q4_K, h.embd, h.ff, h.experts)
		w.weight(blk+"ffn_up_exps.weight", ir.Q4_K, h.embd, h.ff, h.experts)
	}
	w.weight(blk+"ffn_down_exps.weight", ir.Q5_K, h.ff, h.embd, h.experts)
	w.scales(blk+"ffn_gate_inp_shexp.weight", 0, h.embd)
	w.weight(blk+"ffn_gate_shexp.weight", ir.Q8_0, h.embd, h.shared)
	w.weight(blk+"ffn_up_shexp.weight", ir.Q8_0, h.embd, h.shared)
	w.weight(blk+"ffn_down_shexp.weight", ir.Q8_0, h.shared, h.embd)
}

// scales adds a float32 vector of values near mean.
func (w *weightWriter) scales(name string, mean float64, n int) {
	var data []byte
	for i := 0; i < n && w.rand != nil; i++ {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(mean+0.1*w.rand.NormFloat64())))
	}
	w.tensors = append(w.tensors, gguf.TensorData{Name: name, Type: ir.F32, Shape: []int64{int64(n)}, Data: data})
}

// weight adds a matrix, or several, whose products with rows of variance 1 have a
// variance near 1. Blocks are random but for their float16 scales.
func (w *weightWriter) weight(name string, kind ir.DType, shape ...int) {
	t := gguf.TensorData{Name: name, Type: kind}
	elements := int64(1)
	for _, d := range shape {
		t.Shape = append(t.Shape, int64(d))
		elements *= int64(d)
	}
	if w.rand != nil {
		t.Data = w.blocks(kind, elements, 1/math.Sqrt(float64(shape[0])))
	}
	w.tensors = append(w.tensors, t)
}

func (w *weightWriter) blocks(kind ir.DType, elements int64, sd float64) []byte {
	data := make([]byte, kind.Bytes(elements))
	for block := data; len(block) > 0; block = block[kind.BlockBytes():] {
		w.block(block[:kind.BlockBytes()], kind, sd)
	}
	return data
}

// block fills one block. The K formats have 6-bit scales of their own, whose mean
// is near 32, and but for q6_k minima that bring the mean of the elements near 0.
func (w *weightWriter) block(b []byte, kind ir.DType, sd float64) {
	if kind == ir.F32 {
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(sd*w.rand.NormFloat64())))
		return
	}
	for i := range b {
		b[i] = byte(w.rand.Uint32())
	}
	half := func(at int, x float64) {
		binary.LittleEndian.PutUint16(b[at:], gguf.F32ToF16(float32(x)))
	}
	switch kind {
	case ir.Q8_0: // deviation of a random int8: 74
		half(0, sd/74)
	case ir.Q4_K: // deviation and mean of 4 bits: 4.6, 7.5
		half(0, sd/32/4.6)
		half(2, sd/32/4.6*7.5)
	case ir.Q5_K: // deviation and mean of 5 bits: 9.2, 15.5
		half(0, sd/32/9.2)
		half(2, sd/32/9.2*15.5)
	case ir.Q6_K: // 8-bit scales, 6 bits around 0
		half(208, sd/74/18)
	default:
		panic("no block of " + kind.String())
	}
}
