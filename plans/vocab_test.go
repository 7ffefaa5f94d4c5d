package plans

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir/gguf"
)

// TestSettings reads general.sampling.*: numbers of any type, in one order, and no texts.
func TestSettings(t *testing.T) {
	read := func(meta ...gguf.KV) (Vocab, error) {
		path := filepath.Join(t.TempDir(), "m.gguf")
		out, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := gguf.Write(out, meta, nil); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return ReadVocab(f)
	}
	v, err := read(gguf.KV{Key: "general.sampling.top_p", Value: float32(0.95)}, gguf.KV{Key: "general.sampling.sequence", Value: "kfypmxt"},
		gguf.KV{Key: "general.sampling.top_k", Value: int32(20)}, gguf.KV{Key: "general.samplings", Value: float32(1)})
	if want := []Setting{{"top_k", 20}, {"top_p", 0.95}}; err != nil || !slices.Equal(v.Sampling, want) {
		t.Errorf("%v, %v, want %v", v.Sampling, err, want)
	}
	if v, err := read(gguf.KV{Key: "tokenizer.ggml.suppress_tokens", Value: []int32{9, 3}}); err != nil || !slices.Equal(v.Suppress, []int32{9, 3}) {
		t.Errorf("suppressed: %v, %v", v.Suppress, err)
	}
	for _, x := range []any{float32(math.NaN()), math.Inf(1), -math.MaxFloat64} {
		if _, err := read(gguf.KV{Key: "general.sampling.temp", Value: x}); err == nil || !strings.Contains(err.Error(), "general.sampling.temp") {
			t.Errorf("%v: %v", x, err)
		}
	}
}
