package verify_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/exec"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

// TestMain runs the tests on lavapipe unless VK_DRIVER_FILES names another
// driver, and away from the user's pipeline cache. What Mesa has compiled it shares with other packages.
func TestMain(m *testing.M) {
	if os.Getenv("VK_DRIVER_FILES") == "" {
		os.Setenv("VK_DRIVER_FILES", "/usr/share/vulkan/icd.d/lvp_icd.json")
	}
	dir, err := os.MkdirTemp("", "zincc-cache-")
	if err != nil {
		panic(err)
	}
	if caches, err := os.UserCacheDir(); err == nil && os.Getenv("MESA_SHADER_CACHE_DIR") == "" {
		os.Setenv("MESA_SHADER_CACHE_DIR", caches)
	}
	os.Setenv("XDG_CACHE_HOME", dir)
	os.Setenv("XDG_CONFIG_HOME", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// The model: qwen3 with random weights.
const (
	layers  = 2
	width   = 128
	heads   = 4
	kvHeads = 2
	headDim = 32
	ff      = 192
	vocab   = 320
	ctx     = 192
)

// writeModel writes the model: q8_0 and, in the FFN's second half, f16.
func writeModel(t *testing.T) string {
	t.Helper()
	return writeModelOf(t, 1)
}

// writeModelOf writes the model with scores of attention of gain times gain their size.
func writeModelOf(t *testing.T, gain float32) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	var tensors []gguf.TensorData
	add := func(name string, kind ir.DType, shape ...int64) {
		n := int64(1)
		for _, d := range shape {
			n *= d
		}
		scale := 1 / math.Sqrt(float64(shape[0]))
		var data []byte
		for i := range n {
			switch x := float32(rng.NormFloat64() * scale); {
			case strings.Contains(name, "attn_q_norm") || strings.Contains(name, "attn_k_norm"):
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(gain*(1+x)))
			case kind == ir.F32:
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(1+x))
			case kind == ir.F16:
				data = binary.LittleEndian.AppendUint16(data, gguf.F32ToF16(x))
			default:
				if i%32 == 0 {
					data = binary.LittleEndian.AppendUint16(data, gguf.F32ToF16(float32(scale)/64))
				}
				data = append(data, byte(rng.IntN(255)-127))
			}
		}
		tensors = append(tensors, gguf.TensorData{Name: name, Type: kind, Shape: shape, Data: data})
	}
	add("token_embd.weight", ir.Q8_0, width, vocab)
	for i := range layers {
		b := fmt.Sprintf("blk.%d.", i)
		add(b+"attn_norm.weight", ir.F32, width)
		add(b+"attn_q.weight", ir.Q8_0, width, heads*headDim)
		add(b+"attn_k.weight", ir.Q8_0, width, kvHeads*headDim)
		add(b+"attn_v.weight", ir.Q8_0, width, kvHeads*headDim)
		add(b+"attn_q_norm.weight", ir.F32, headDim)
		add(b+"attn_k_norm.weight", ir.F32, headDim)
		add(b+"attn_output.weight", ir.Q8_0, heads*headDim, width)
		add(b+"ffn_norm.weight", ir.F32, width)
		add(b+"ffn_gate.weight", ir.Q8_0, width, ff)
		add(b+"ffn_up.weight", ir.Q8_0, width, ff)
		add(b+"ffn_down.weight", ir.F16, ff, width)
	}
	add("output_norm.weight", ir.F32, width)
	var tokens []string
	var types []int32
	for i := range vocab {
		tokens, types = append(tokens, fmt.Sprintf("t%d", i)), append(types, 1)
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	err = gguf.Write(f, []gguf.KV{
		{Key: "general.architecture", Value: "qwen3"}, {Key: "general.name", Value: "tiny"},
		{Key: "qwen3.block_count", Value: uint32(layers)}, {Key: "qwen3.embedding_length", Value: uint32(width)},
		{Key: "qwen3.context_length", Value: uint32(ctx)}, {Key: "qwen3.feed_forward_length", Value: uint32(ff)},
		{Key: "qwen3.attention.head_count", Value: uint32(heads)}, {Key: "qwen3.attention.head_count_kv", Value: uint32(kvHeads)},
		{Key: "qwen3.attention.key_length", Value: uint32(headDim)}, {Key: "qwen3.attention.value_length", Value: uint32(headDim)},
		{Key: "qwen3.attention.layer_norm_rms_epsilon", Value: float32(1e-6)}, {Key: "qwen3.rope.freq_base", Value: float32(10000)},
		{Key: "tokenizer.ggml.model", Value: "gpt2"}, {Key: "tokenizer.ggml.pre", Value: "qwen2"},
		{Key: "tokenizer.ggml.tokens", Value: tokens}, {Key: "tokenizer.ggml.token_type", Value: types},
	}, tensors)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// compile makes a plan of the model for a target.
func compile(t *testing.T, model, to string, kv ir.DType) *plans.Plan {
	t.Helper()
	return compileSlots(t, model, to, kv, 1)
}

// compileSlots is compile for so many sequences.
func compileSlots(t *testing.T, model, to string, kv ir.DType, slots int) *plans.Plan {
	t.Helper()
	f, err := gguf.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	device, err := target.Lookup(to)
	if err != nil {
		t.Fatal(err)
	}
	r, err := codegen.Compile(t.Context(), codegen.Source{Model: f}, codegen.Options{Target: device, Import: frontend.Options{Slots: slots, KV: kv}, Embed: true})
	if err != nil {
		t.Fatal(err)
	}
	return r.Plan
}

// open loads the plan on the first Vulkan device.
func open(t *testing.T, plan *plans.Plan) (*plans.Source, *exec.Inspector) {
	t.Helper()
	src, err := plans.OpenSource(plan, "plan.bin", "")
	if err != nil {
		t.Fatal(err)
	}
	x, err := vulkan.NewExecutor(context.Background(), 0, plan, src, nil)
	if err != nil {
		t.Fatalf("a Vulkan device (lavapipe, from mesa-vulkan-drivers) is needed: %v", err)
	}
	t.Cleanup(func() { x.Close(); src.Close() })
	dev, err := x.Inspect()
	if err != nil {
		t.Fatal(err)
	}
	return src, dev
}
