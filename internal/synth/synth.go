// Package synth makes GGUF models in the published shapes of architectures: the keys,
// tensor names, types and shapes of real files. A compiler and a planner need no more;
// for what runs them, weights are random.
package synth

import (
	"fmt"
	"os"
	"slices"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// Shape is what a model is built from. Sizes that an architecture does not have stay zero.
type Shape struct {
	Name  string // what the digests and tests call it
	Arch  string // general.architecture
	Quant string // a name of quants, such as Q4_K_M

	Layers, Embd, FF, Vocab, Ctx int
	Heads, KVHeads, HeadDim      int
	RopeDims                     int // rotated elements of a head; 0: all
	RopeBase                     float32
	Tied                         bool // the output projection is the embedding
	// What layers are, where they differ; the pattern is repeated: M for Mamba2, C for a short convolution, * for
	// attention, E for an FFN of experts where that is a layer of its own.
	Mixers string

	Experts  Experts
	DeltaNet DeltaNet
	Windows  Windows
	Latent   Latent
	Mamba    Mamba
}

// Mamba are the sizes of Mamba2 layers.
type Mamba struct{ Inner, State, Heads, Groups int }

// mixer is what layer i is.
func (s Shape) mixer(i int) byte { return s.Mixers[i%len(s.Mixers)] }

// Latent are the sizes of latent attention: of the vector of queries, 0 for none, and of that which is cached beside
// RopeDims elements of the key; of a head's key without those, and of its value.
type Latent struct{ Query, Width, Key, Value int }

// Windows are the sizes of layers that attend to a window, and of those that do not, which are
// every Period-th. Layers from Own on have no caches.
type Windows struct {
	Size, Period       int
	WideDim, WideHeads int // a head's width and the KV heads of layers without a window, where others than Shape says
	Own                int
	PerLayer           int // width of the embedding that each layer has of a token
}

// Experts are the sizes of FFNs that are mixtures of experts.
type Experts struct{ Count, Used, FF, Shared int }

// DeltaNet are the sizes of layers with a gated delta rule; every Interval-th layer has attention.
type DeltaNet struct{ KeyHeads, ValueHeads, State, Taps, Interval int }

// Model is a file to be written.
type Model struct {
	Shape
	Meta    []gguf.KV
	Tensors []gguf.TensorData // without data

	lastNorm string
}

// arch is one row of the table of architectures: its keys beyond those that all have,
// and the tensors of layer i.
type arch struct {
	name  string
	keys  func(m *Model)
	layer func(m *Model, blk string, i int)
}

// New builds the model of a shape.
func New(s Shape) (*Model, error) {
	at := slices.IndexFunc(archs, func(a arch) bool { return a.name == s.Arch })
	if at < 0 {
		return nil, fmt.Errorf("%s: no architecture %q", s.Name, s.Arch)
	}
	if _, ok := quants[s.Quant]; !ok {
		return nil, fmt.Errorf("%s: no quantization %q", s.Name, s.Quant)
	}
	a := archs[at]
	m := &Model{Shape: s, lastNorm: "output_norm"}
	m.Meta = []gguf.KV{{Key: "general.architecture", Value: s.Arch}, {Key: "general.name", Value: s.Name}}
	m.set("block_count", s.Layers)
	m.set("context_length", s.Ctx)
	m.set("embedding_length", s.Embd)
	m.set("attention.head_count", s.Heads)
	m.set("attention.head_count_kv", s.KVHeads)
	m.set("attention.key_length", s.HeadDim)
	m.set("attention.value_length", s.HeadDim)
	if s.RopeDims > 0 {
		m.set("rope.dimension_count", s.RopeDims)
	}
	m.float("rope.freq_base", s.RopeBase)
	m.float("attention.layer_norm_rms_epsilon", 1e-6)
	a.keys(m)
	m.vocabulary()
	m.matrix("token_embd.weight", s.Embd, s.Vocab)
	m.vector(m.lastNorm+".weight", s.Embd)
	if !s.Tied {
		m.matrix("output.weight", s.Embd, s.Vocab)
	}
	for i := range s.Layers {
		a.layer(m, fmt.Sprintf("blk.%d.", i), i)
	}
	return m, nil
}

// set adds an integer under the architecture's prefix.
func (m *Model) set(key string, v int) { m.add(key, uint32(v)) }

func (m *Model) float(key string, v float32) { m.add(key, v) }

// replace changes what a key under the architecture's prefix is.
func (m *Model) replace(key string, v any) {
	for i := range m.Meta {
		if m.Meta[i].Key == m.Arch+"."+key {
			m.Meta[i].Value = v
		}
	}
}

func (m *Model) add(key string, v any) {
	m.Meta = append(m.Meta, gguf.KV{Key: m.Arch + "." + key, Value: v})
}

// matrix adds a tensor of the type that the quantization gives it; dims are in GGUF order.
func (m *Model) matrix(name string, dims ...int) {
	m.tensor(name, quants[m.Quant](m, name, dims), dims...)
}

// vector adds a tensor that stays in float32.
func (m *Model) vector(name string, dims ...int) { m.tensor(name, ir.F32, dims...) }

func (m *Model) tensor(name string, t ir.DType, dims ...int) {
	shape := make([]int64, len(dims))
	for i, n := range dims {
		shape[i] = int64(n)
	}
	m.Tensors = append(m.Tensors, gguf.TensorData{Name: name, Type: t, Shape: shape})
}

// vocabulary is one of bytes, as GPT-2 spells them; the other tokens come out of no text.
func (m *Model) vocabulary() {
	tokens, types := []string{"<|endoftext|>"}, []int32{3}
	other := rune(256)
	for b := range rune(256) {
		if b > ' ' && b <= '~' || b >= 0xa1 && b != 0xad {
			tokens = append(tokens, string(b))
		} else {
			tokens = append(tokens, string(other))
			other++
		}
	}
	for len(tokens) < m.Vocab {
		tokens = append(tokens, fmt.Sprintf("[%d]", len(tokens)))
	}
	for len(types) < len(tokens) {
		types = append(types, 1)
	}
	m.Meta = append(m.Meta,
		gguf.KV{Key: "tokenizer.ggml.model", Value: "gpt2"}, gguf.KV{Key: "tokenizer.ggml.pre", Value: "qwen2"},
		gguf.KV{Key: "tokenizer.ggml.tokens", Value: tokens}, gguf.KV{Key: "tokenizer.ggml.token_type", Value: types},
		gguf.KV{Key: "tokenizer.ggml.merges", Value: []string{"[ 2"}}, gguf.KV{Key: "tokenizer.ggml.eos_token_id", Value: uint32(0)},
		gguf.KV{Key: "tokenizer.ggml.add_bos_token", Value: false})
}

// WriteHeader writes the file up to its weights; gguf.OpenHeader reads it.
func (m *Model) WriteHeader(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := gguf.WriteHeader(f, m.Meta, m.Tensors); err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", path, err)
	}
	return f.Close()
}
