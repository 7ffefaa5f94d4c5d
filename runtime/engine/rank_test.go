package engine_test

import (
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/text"
)

var rankModel = flag.String("rank-model", "", "write the model of TestRanks to this file")

const (
	poolRank     = 4
	rankTemplate = "<|im_start|>user\n{query}\n// {document}<|im_end|>\n"
)

// rankFile writes gopher as a model that ranks texts: its labels are rows of its embeddings.
func rankFile(t *testing.T) string {
	t.Helper()
	f, err := gguf.Open("../../testdata/models/gopher-q4_k_m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var meta []gguf.KV
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		if meta = append(meta, gguf.KV{Key: key, Value: v}); key == "general.architecture" {
			arch := v.(string)
			meta = append(meta, gguf.KV{Key: arch + ".pooling_type", Value: uint32(poolRank)}, gguf.KV{Key: arch + ".classifier.output_labels", Value: []string{"yes", "no"}},
				gguf.KV{Key: "tokenizer.chat_template.rerank", Value: rankTemplate})
		}
	}
	var tensors []gguf.TensorData
	for i := range f.Tensors {
		w := &f.Tensors[i]
		if tensors = append(tensors, gguf.TensorData{Name: w.Name, Type: w.Type, Shape: w.Shape, Data: f.Data(w)}); w.Name == "token_embd.weight" {
			row := int64(len(f.Data(w))) / w.Shape[1]
			tensors = append(tensors, gguf.TensorData{Name: "cls.output.weight", Type: w.Type, Shape: []int64{w.Shape[0], 2}, Data: f.Data(w)[300*row : 302*row]})
		}
	}
	path := filepath.Join(t.TempDir(), "ranks.gguf")
	if *rankModel != "" {
		path = *rankModel
	}
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(gguf.Write(out, meta, tensors), out.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRanks holds the scores of documents against llama-server's, which rounds what it multiplies with such weights to
// 8 bits. To renew them: go test -run TestRanks -rank-model ranks.gguf, then llama-server -m ranks.gguf --reranking -fa
// off -ctk f32 -ctv f32 --device none, whose /v1/rerank is asked for the query and the documents.
func TestRanks(t *testing.T) {
	m := loadFile(t, rankFile(t), frontend.Options{Ctx: 128, KV: ir.F32})
	if !runtime.Ranks(m.plan) || !runtime.Embeds(m.plan) {
		t.Fatal("the plan does not rank")
	}
	var golden struct {
		Query     string
		Documents []string
		Scores    []float64
	}
	raw, err := os.ReadFile("testdata/ranks.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &golden); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.New(m.plan, m.exec, m.tok, engine.Options{}); err != runtime.ErrRanks {
		t.Errorf("it predicts tokens: %v", err)
	}
	v, err := engine.NewVectors(m.plan, m.exec)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for i, document := range golden.Documents {
		ids, err := m.tok.EncodeSpans(t.Context(), []text.Span{{Text: "<|im_start|>user\n"}, {Text: golden.Query, Literal: true}, {Text: "\n// "}, {Text: document, Literal: true}, {Text: "<|im_end|>\n"}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := v.Embed(t.Context(), [][]int32{ids})
		if err != nil {
			t.Fatal(err)
		}
		if p := got[0]; len(p) != 2 || math.Abs(float64(p[0])+float64(p[1])-1) > 1e-6 || math.Abs(float64(p[0])-golden.Scores[i]) > 0.03 {
			t.Errorf("%q: %v, want %g first", document, p, golden.Scores[i])
		}
	}
}
