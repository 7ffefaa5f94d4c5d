package frontend_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
)

// TestNumbersOfMetadata holds that a number which is none, or absurd, is one line that names it.
func TestNumbersOfMetadata(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		arch, key string
		bad       []float64
	}{
		{"llama", "attention.layer_norm_rms_epsilon", []float64{nan, inf, -inf, 0, -1e-5, 2, 1e-60}},
		{"llama", "attention.scale", []float64{nan, inf, -inf, -1, 1e30}},
		{"llama", "rope.freq_base", []float64{nan, inf, -inf, 0, 1, 1e30}},
		{"llama", "rope.scaling.factor", []float64{nan, inf, -inf, -1, 1e30}},
		{"llama", "rope.scale_linear", []float64{nan, inf, -1}},
		{"llama", "rope.scaling.original_context_length", []float64{nan, inf, 0, -4}},
		{"llama", "rope.scaling.attn_factor", []float64{nan, inf, -1}},
		{"qwen3", "rope.scaling.yarn_ext_factor", []float64{nan, inf}},
		{"qwen3", "rope.scaling.yarn_attn_factor", []float64{nan, inf}},
		{"qwen3", "rope.scaling.yarn_beta_fast", []float64{nan, inf, -1}},
		{"qwen3", "rope.scaling.yarn_beta_slow", []float64{nan, inf, -1}},
		{"qwen3", "rope.scaling.yarn_log_multiplier", []float64{nan, inf, -inf}},
		{"qwen3moe", "expert_weights_scale", []float64{nan, inf, -1}},
		{"qwen35", "rope.dimension_sections", []float64{nan, inf}},
	} {
		for _, v := range c.bad {
			m := tinyModels[c.arch]()
			m.set("rope.scaling.type", "yarn")
			m.set(c.key, v)
			p, err := frontend.Load(m.open(t), options)
			if p != nil || err == nil || !strings.Contains(err.Error(), c.arch+".") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s.%s = %g: %v", c.arch, c.key, v, err)
			}
		}
	}
	// Each is in its range, what they make together is not.
	m := tinyModels["qwen3"]()
	m.set("rope.scaling.type", "yarn")
	m.set("rope.scaling.factor", float32(8))
	m.set("rope.scaling.yarn_log_multiplier", -10/math.Log(8))
	if p, err := frontend.Load(m.open(t), options); p != nil || err == nil || !strings.Contains(err.Error(), "metadata qwen3.rope: scaling gives") {
		t.Errorf("%v", err)
	}
}

// change is a value of metadata: of a type, from bits or a text.
func change(kind uint8, bits uint64, text string) any {
	return []any{
		math.Float32frombits(uint32(bits)), math.Float64frombits(bits), uint32(bits), int32(bits), bits, int64(bits), uint8(bits), bits%2 == 0, text,
		[]float32{math.Float32frombits(uint32(bits))}, []int32{int32(bits), int32(bits >> 32)}, []uint32{uint32(bits)}, []string{text, text}, []bool{true, false},
	}[int(kind)%14]
}

// FuzzCompile: a model with any metadata is refused in one line, or its plan for the host
// is read back as it was written.
func FuzzCompile(f *testing.F) {
	host, err := target.Lookup("host")
	if err != nil {
		f.Fatal(err)
	}
	type model struct {
		prefix  string
		meta    []gguf.KV
		tensors []gguf.TensorData
	}
	var models []model
	for arch, name := range frontend.Archs() {
		m := tinyModels[name]()
		if name == "llama" {
			m.drop("rope_freqs.weight") // only headers are written
		}
		models = append(models, model{m.prefix, m.meta, m.tensors})
		for i, e := range m.meta {
			f.Add(uint8(arch), e.Key, uint8(i), uint64(2+i), "gpt2")
		}
	}
	for i, key := range []string{"attention.layer_norm_rms_epsilon", "attention.scale", "rope.freq_base", "rope.scaling.factor", "expert_weights_scale"} {
		for _, v := range []float64{math.NaN(), math.Inf(1), 1e-300, 4} {
			f.Add(uint8(i%len(models)), models[i].prefix+key, uint8(0), uint64(math.Float32bits(float32(v))), "")
			f.Add(uint8(i%len(models)), models[i].prefix+key, uint8(1), math.Float64bits(v), "")
		}
	}
	f.Add(uint8(0), "general.name", uint8(8), uint64(0), "\xff\x1b[2J\n\x00\u202e")
	f.Add(uint8(1), "qwen2.rope.scaling.type", uint8(8), uint64(0), "yarn")
	path := filepath.Join(f.TempDir(), "model.gguf")
	f.Fuzz(func(t *testing.T, arch uint8, key string, kind uint8, bits uint64, text string) {
		m := models[int(arch)%len(models)]
		meta := append(slices.DeleteFunc(slices.Clone(m.meta), func(e gguf.KV) bool { return e.Key == key }), gguf.KV{Key: key, Value: change(kind, bits, text)})
		var b bytes.Buffer
		if err := gguf.WriteHeader(&b, meta, m.tensors); err != nil {
			return
		}
		if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := compileAndRead(t, path, host); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("error of several lines: %v", err)
		}
	})
}

// compileAndRead returns why the model cannot be compiled. That its plan is not read as it
// was written fails the test.
func compileAndRead(t *testing.T, path string, on *target.Target) error {
	f, err := gguf.OpenHeader(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := codegen.Compile(t.Context(), codegen.Source{Model: f}, codegen.Options{Target: on, Import: frontend.Options{KV: ir.F16, MaxRows: 8}})
	if err != nil {
		return err
	}
	var first, second bytes.Buffer
	if err := plans.Write(&first, r.Plan); err != nil {
		return err
	}
	read, err := plans.Decode(first.Bytes())
	if err != nil {
		t.Fatalf("cannot be read back: %v", err)
	}
	if err := plans.Write(&second, read); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Fatalf("is not read as it was written: %v", err)
	}
	return nil
}
