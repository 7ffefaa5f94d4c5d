package synth_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// TestParse changes the quantization and the layers of a shape.
func TestParse(t *testing.T) {
	for asked, want := range map[string]string{
		"llama-8b": "Q6_K 32", "llama-8b:Q8_0": "Q8_0 32", "llama-8b:4": "Q6_K 4", "llama-8b:Q8_0:4": "Q8_0 4", "grid-4096-11008": "EACH 8",
		"llama-9b": "no shape", "llama-8b:Q9": "no quantization", "llama-8b:0": "0 layers", "llama-8b:-1": "-1 layers",
	} {
		s, err := synth.Parse(asked)
		if err != nil && !strings.Contains(err.Error(), want) || err == nil && fmt.Sprint(s.Quant, " ", s.Layers) != want {
			t.Errorf("%s: %s, %d layers, %v", asked, s.Quant, s.Layers, err)
		}
	}
}

// TestShapes imports every shape: the frontend knows all its keys and tensors, and finds all
// that it looks for.
func TestShapes(t *testing.T) {
	parameters := map[string]float64{ // in 1e9, as published
		"qwen3-8b": 8.2, "qwen35-35b-a3b": 34.7, "llama-1b": 1.24, "qwen3-14b": 14.8, "llama-8b": 8.0,
		"gpt-oss-20b": 20.9, "gemma4-26b-a4b": 25.2, "gemma3-12b": 11.8, "glm45-air": 106.8, "nemotron3-nano": 31.6, "granite4-h-tiny": 6.9,
		"gemma4-12b": 11.96, "lfm2-8b-a1b": 8.34, "qwen3-0.6b": 0.6,
		"qwen3-4b": 4.0, "qwen3-30b-a3b": 30.5, "qwen2-7b": 7.6, "qwen35-27b": 27,
	}
	types := map[ir.DType]bool{}
	for _, s := range slices.Concat(synth.Named(), synth.Small()) {
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

// TestWrite writes whole files in every quantization, and reads all their weights: of a magnitude that sums keep.
func TestWrite(t *testing.T) {
	for _, quant := range synth.Quants() {
		s := synth.Shape{Name: quant, Arch: "lfm2moe", Quant: quant, Layers: 4, Embd: 256, FF: 512, Vocab: 300, Ctx: 64, Heads: 4, KVHeads: 1, HeadDim: 64,
			RopeBase: 1e4, Experts: synth.Experts{Count: 4, Used: 2, FF: 256}, Mixers: "CC*C"}
		m, err := synth.New(s)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), quant+".gguf")
		if err := m.Write(path); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := frontend.Load(f, frontend.Options{KV: ir.F16, MaxRows: 8}); err != nil {
			t.Error(err)
		}
		for _, w := range f.Tensors {
			values := make([]float32, w.Elements())
			if err := gguf.Dequantize(values, f.Data(&w), w.Type); err != nil {
				t.Fatal(err)
			}
			squares, cols := 0.0, float64(w.Shape[0])
			for _, v := range values {
				squares += float64(v) * float64(v)
			}
			if strings.Contains(w.Name, "norm") {
				cols = 1 // these are factors
			}
			if rms := math.Sqrt(squares / float64(len(values)) * cols); !(rms > 0.1 && rms < 5) {
				t.Errorf("%s: %s of %s: a row of ones gives %.3g", quant, w.Name, w.Type, rms)
			}
		}
	}
}

// TestHollow compares a file without weights with a whole one: its header, its size and its factors are the same.
func TestHollow(t *testing.T) {
	s := synth.Shape{Name: "hollow", Arch: "gemma4", Quant: "Q8_0", Layers: 2, Embd: 256, FF: 512, Vocab: 300, Ctx: 64, Heads: 4, KVHeads: 1, HeadDim: 64,
		RopeBase: 1e4, Windows: synth.Windows{Size: 16, Period: 2, WideDim: 128, WideHeads: 1}}
	m, err := synth.New(s)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := errors.Join(m.Write(filepath.Join(dir, "whole")), m.WriteHollow(filepath.Join(dir, "hollow"))); err != nil {
		t.Fatal(err)
	}
	whole, err := gguf.Open(filepath.Join(dir, "whole"))
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	hollow, err := gguf.Open(filepath.Join(dir, "hollow"))
	if err != nil {
		t.Fatal(err)
	}
	defer hollow.Close()
	for i, w := range whole.Tensors {
		h := hollow.Tensors[i]
		if h.Name != w.Name || h.Offset != w.Offset {
			t.Fatalf("%s at %d is %s at %d", w.Name, w.Offset, h.Name, h.Offset)
		}
		same := bytes.Equal(whole.Data(&w), hollow.Data(&h))
		if isFactor := strings.Contains(w.Name, "norm") || strings.Contains(w.Name, "rope") || strings.Contains(w.Name, "scale"); same != isFactor {
			t.Errorf("%s: the same: %v", w.Name, same)
		}
	}
}
