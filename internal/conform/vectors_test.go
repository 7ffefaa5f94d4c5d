package conform

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const vectorModel = "gopher-vectors"

// writeVectorModel writes gopher as a model that makes vectors of texts, of its last row: with two more keys at the
// front, which together are as long as two units of the alignment of what follows.
func writeVectorModel(path string) error {
	file, err := os.ReadFile(root + "/testdata/models/gopher-q4_k_m.gguf")
	if err != nil {
		return err
	}
	const keys, uint32Type = 16, 4 // where their number is
	out := slices.Clone(file[:24])
	binary.LittleEndian.PutUint64(out[keys:], 2+binary.LittleEndian.Uint64(out[keys:]))
	for _, key := range []string{"qwen3.pooling_type", "conform.vector"} {
		out = binary.LittleEndian.AppendUint64(out, uint64(len(key)))
		out = append(out, key...)
		out = binary.LittleEndian.AppendUint32(out, uint32Type)
		out = binary.LittleEndian.AppendUint32(out, 3)
	}
	if len(out) != 24+64 {
		return fmt.Errorf("%d bytes of keys", len(out)-24)
	}
	return os.WriteFile(path, append(out, file[24:]...), 0o666)
}

// TestOpenAIVectors: one text and several, as text and as tokens, whole and cut, as numbers and as bytes.
func TestOpenAIVectors(t *testing.T) {
	client, c := openaiClient(t)
	texts := []string{"package sort", "// Search uses binary search", "func Cut(s, sep string)"}
	ask := func(input openai.EmbeddingNewParamsInputUnion, change func(p *openai.EmbeddingNewParams)) *openai.CreateEmbeddingResponse {
		t.Helper()
		p := openai.EmbeddingNewParams{Model: vectorModel, Input: input}
		if change != nil {
			change(&p)
		}
		r, err := client.Embeddings.New(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	batch := ask(openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts}, nil)
	if len(batch.Data) != len(texts) || batch.Usage.PromptTokens == 0 || batch.Usage.TotalTokens != batch.Usage.PromptTokens {
		t.Fatalf("%d vectors, usage %+v", len(batch.Data), batch.Usage)
	}
	for i, text := range texts {
		v := batch.Data[i].Embedding
		if batch.Data[i].Index != int64(i) || math.Abs(norm(v)-1) > 1e-6 {
			t.Errorf("vector %d has index %d and length %g", i, batch.Data[i].Index, norm(v))
		}
		if one := ask(openai.EmbeddingNewParamsInputUnion{OfString: openai.String(text)}, nil); !slices.Equal(one.Data[0].Embedding, v) {
			t.Errorf("%q has another vector alone than among others", text)
		}
	}
	text := openai.EmbeddingNewParamsInputUnion{OfString: openai.String(texts[0])}
	short := ask(text, func(p *openai.EmbeddingNewParams) { p.Dimensions = openai.Int(8) }).Data[0].Embedding
	whole := batch.Data[0].Embedding
	if len(short) != 8 || math.Abs(norm(short)-1) > 1e-6 || math.Abs(short[0]-whole[0]/norm(whole[:8])) > 1e-6 {
		t.Errorf("8 of %v are %v", whole[:8], short)
	}
	tokens := ask(openai.EmbeddingNewParamsInputUnion{OfArrayOfTokenArrays: [][]int64{{5, 6, 7}, {8}}}, nil)
	if len(tokens.Data) != 2 || tokens.Usage.PromptTokens != 4 {
		t.Errorf("%d vectors of token ids, usage %+v", len(tokens.Data), tokens.Usage)
	}

	// OpenAI's description and the SDK know numbers only, so bytes are decoded here; the SDK of npm asks for them by
	// itself.
	bare := openai.NewClient(option.WithBaseURL(server+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
	p := openai.EmbeddingNewParams{Model: vectorModel, Input: text, EncodingFormat: openai.EmbeddingNewParamsEncodingFormatBase64}
	var raw struct{ Data []struct{ Embedding string } }
	var body []byte
	if err := bare.Post(t.Context(), "embeddings", p, &body); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		t.Fatal(err)
	}
	b, err := base64.StdEncoding.DecodeString(raw.Data[0].Embedding)
	if err != nil || len(b) != 4*len(whole) {
		t.Fatalf("%d bytes for %d numbers: %v", len(b), len(whole), err)
	}
	for i, x := range whole {
		if y := math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])); y != float32(x) {
			t.Fatalf("element %d is %g as bytes, %g as a number", i, y, x)
		}
	}
	if c.seen["CreateEmbeddingResponse"] < 6 {
		t.Errorf("seen %v", c.seen)
	}

	var e *openai.Error
	if _, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: model, Input: text}); !errors.As(err, &e) || e.StatusCode != 400 || !strings.Contains(e.Message, "vectors") {
		t.Errorf("a chat model: %v", err)
	}
	if _, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: vectorModel, Input: text, Dimensions: openai.Int(1 << 20)}); !errors.As(err, &e) || e.StatusCode != 400 || e.Param != "dimensions" {
		t.Errorf("too many dimensions: %v", err)
	}
}

func norm(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}
