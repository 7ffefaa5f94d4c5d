package synth_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// TestShapes imports every shape: the frontend knows all its keys and tensors, and finds all
// that it looks for.
func TestShapes(t *testing.T) {
	parameters := map[string]float64{ // in 1e9, as published
		"qwen3-8b": 8.2, "qwen35-35b-a3b": 34.7, "llama-1b": 1.24, "qwen3-14b": 14.8, "llama-8b": 8.0,
		"gpt-oss-20b": 20.9, "gemma4-26b-a4b": 25.2, "gemma3-12b": 11.8, "glm45-air": 106.8, "nemotron3-nano": 31.6, "granite4-h-tiny": 6.9,
		"qwen3-4b": 4.0, "qwen3-30b-a3b": 30.5, "qwen2-7b": 7.6, "qwen35-27b": 27,
	}
	types := map[ir.DType]bool{}
	for _, s := range slices.Concat(synth.Published, synth.Small()) {
		m, err := synth.New(s)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), s.Name+".gguf")
		if err := m.WriteHeader(path); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.OpenHeader(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := frontend.Load(f, frontend.Options{KV: ir.F16, MaxRows: 8}); err != nil {
			t.Error(err)
		}
		n := 0.0
		for _, tensor := range f.Tensors {
			n += float64(tensor.Elements()) / 1e9
			types[tensor.Type] = true
		}
		if want, ok := parameters[s.Name]; ok && (n < want*0.97 || n > want*1.03) {
			t.Errorf("%s has %.2f billion parameters, published are %.2f", s.Name, n, want)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, d := range ir.DTypes() {
		if ir.Computable(d) && !types[d] {
			t.Errorf("no tensor of type %s", d)
		}
	}
}

func TestUnknownNames(t *testing.T) {
	for _, s := range []synth.Shape{{Arch: "nobody", Quant: "Q8_0"}, {Arch: "llama", Quant: "Q9"}} {
		if _, err := synth.New(s); err == nil {
			t.Errorf("%+v: no error", s)
		}
	}
}
