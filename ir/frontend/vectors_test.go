package frontend_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// vectors are models that make vectors of texts, by the file in testdata that has llama.cpp's of the prompt.
var vectors = map[string]func() *tinyModel{
	"embed-last": func() *tinyModel { return embedTiny(3) },
	"embed-mean": func() *tinyModel { return embedTiny(1) },
}

// embedTiny has the keys of Qwen3-Embedding: its tokenizer ends each text.
func embedTiny(pooling uint32) *tinyModel {
	m := tinyModels["qwen3"]()
	m.set("pooling_type", pooling)
	m.meta = append(m.meta, gguf.KV{Key: "tokenizer.ggml.add_eos_token", Value: true})
	return m
}

// TestVectors holds the vector of the prompt and the end token against llama.cpp's. To renew them: go test -models DIR,
// then llama-server -m DIR/embed-last.gguf --embeddings -fa off -ctk f32 -ctv f32 --device none --embd-normalize -1 -b
// 128 -ub 128, whose /v1/embeddings is asked for the prompt.
func TestVectors(t *testing.T) {
	for name, build := range vectors {
		t.Run(name, func(t *testing.T) {
			m := build()
			if *models != "" {
				m.write(t, filepath.Join(*models, name+".gguf"))
			}
			want := readVector(t, name)
			all := feedIDs(t, m.open(t), append(promptIDs(), 0), len(prompt)+1)
			got := make([]float64, tinyEmbd)
			for i, x := range all {
				got[i%tinyEmbd] += float64(x) * tinyEmbd / float64(len(all))
			}
			var off, length float64
			for i, w := range want {
				off += (got[i] - w) * (got[i] - w)
				length += w * w
			}
			if r := math.Sqrt(off / length); !(r <= 1e-5) {
				t.Errorf("the vector is %g of its length away from llama.cpp's", r)
			}
		})
	}
}

// rankTiny has the keys and the tensor of Qwen3-Reranker.
func rankTiny() *tinyModel {
	m := embedTiny(4)
	m.set("classifier.output_labels", []string{"yes", "no", "perhaps"})
	m.meta = append(m.meta, gguf.KV{Key: "tokenizer.chat_template.rerank", Value: "{query}// {document}"})
	m.add("cls.output.weight", tinyEmbd, 3)
	return m
}

// TestRanks holds the score of the prompt against llama.cpp's. To renew it: go test -models DIR, then llama-server -m
// DIR/rank.gguf --reranking -fa off -ctk f32 -ctv f32 --device none -b 128 -ub 128, whose /v1/rerank is asked for the
// query "package sort " and the document "Search".
func TestRanks(t *testing.T) {
	m := rankTiny()
	if *models != "" {
		m.write(t, filepath.Join(*models, "rank.gguf"))
	}
	scores := feedIDs(t, m.open(t), promptIDs(), len(prompt))
	if len(scores) != 3 {
		t.Fatalf("%d scores", len(scores))
	}
	sum := 0.0
	for _, x := range scores {
		sum += math.Exp(float64(x))
	}
	const want = 0.6152024269104004
	if p := math.Exp(float64(scores[0])) / sum; math.Abs(p-want) > 1e-6 {
		t.Errorf("the score is %.8f, llama.cpp's is %.8f", p, want)
	}
	for _, c := range []struct {
		change func(m *tinyModel)
		want   string
	}{
		{func(m *tinyModel) { m.drop("cls.output.weight") }, "cls.output.weight"},
		{func(m *tinyModel) { m.add("cls.weight", tinyEmbd, tinyEmbd) }, "cls.weight"},
		{func(m *tinyModel) { m.drop("cls.output.weight"); m.add("cls.output.weight", tinyEmbd, 1) }, "two labels"},
	} {
		m := rankTiny()
		c.change(m)
		if _, err := frontend.Load(m.open(t), options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want an error with %q, have %v", c.want, err)
		}
	}
}

func readVector(t *testing.T, name string) []float64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var reply struct {
		Data []struct{ Embedding []float64 }
	}
	if err := json.Unmarshal(text, &reply); err != nil {
		t.Fatal(err)
	}
	if len(reply.Data) != 1 || len(reply.Data[0].Embedding) != tinyEmbd {
		t.Fatalf("%s.json is no vector of %d numbers", name, tinyEmbd)
	}
	return reply.Data[0].Embedding
}

func TestVectorsNotSupported(t *testing.T) {
	for _, c := range []struct {
		change func(m *tinyModel)
		want   string
	}{
		{func(m *tinyModel) { m.set("pooling_type", uint32(2)) }, "pooling_type: 2, the first row, is not supported"},
		{func(m *tinyModel) { m.set("pooling_type", uint32(4)) }, "tokenizer.chat_template.rerank is missing"},
		{func(m *tinyModel) { m.set("pooling_type", uint32(7)) }, "pooling_type: 7 is not known"},
		{func(m *tinyModel) { m.set("attention.causal", false) }, "attention.causal: models whose rows see later rows are not supported"},
	} {
		m := embedTiny(3)
		c.change(m)
		if _, err := frontend.Load(m.open(t), options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want an error with %q, have %v", c.want, err)
		}
	}
}

// TestOutputOfVectors: a projection to the vocabulary is left where it is.
func TestOutputOfVectors(t *testing.T) {
	m := embedTiny(3)
	m.add("output.weight", tinyEmbd, tinyVocab)
	f := m.open(t)
	p, err := frontend.Load(f, options)
	if err != nil {
		t.Fatal(err)
	}
	if p.Global("output.weight") != nil {
		t.Error("the program has output.weight")
	}
	if names := frontend.Ignored(f); len(names) != 1 || names[0] != "output.weight" {
		t.Errorf("ignored are %q", names)
	}
}
