package api

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/runtime/engine"
)

// fakeVectors makes of a text the vector (3, 4 n, 0) / |(3, 4 n)|, n its tokens.
type fakeVectors struct {
	*fakeEngine
	texts [][]int32
}

func (f *fakeVectors) Embed(_ context.Context, texts [][]int32) (all [][]float32, err error) {
	f.texts = texts
	for _, ids := range texts {
		if len(ids) > 100 {
			return nil, &engine.ContextError{Prompt: len(ids), Ctx: 100}
		}
		y := 4 * float64(len(ids))
		all = append(all, []float32{float32(3 / math.Hypot(3, y)), float32(y / math.Hypot(3, y)), 0})
	}
	return all, nil
}

func (f *fakeVectors) Width() int { return 3 }

// withVectors is a fixture that serves a second model, "vectors".
func withVectors(t *testing.T) (*fixture, *fakeVectors) {
	fake := &fakeVectors{}
	var x *fixture
	x = newFixture(t, func(o *Options) {
		o.Served = append(o.Served, &Served{Names: []string{"vectors"}, Path: "vectors.bin", Open: func(context.Context) (*Model, error) {
			m, err := x.model()
			if err == nil {
				fake.fakeEngine, m.Engine = x.fake, fake
			}
			return m, err
		}})
	})
	return x, fake
}

func TestEmbeddings(t *testing.T) {
	x, fake := withVectors(t)
	status, b := x.do("POST", "/v1/embeddings", `{"model": "vectors", "input": ["Hello", "Hello, gopher"], "user": "u"}`)
	if status != 200 {
		t.Fatalf("%d %s", status, b)
	}
	n := len(fake.texts[0]) + len(fake.texts[1])
	for _, c := range []struct {
		path []any
		want any
	}{
		{[]any{"object"}, "list"}, {[]any{"model"}, "vectors"},
		{[]any{"data", 0, "object"}, "embedding"}, {[]any{"data", 0, "index"}, 0.0}, {[]any{"data", 1, "index"}, 1.0},
		{[]any{"data", 1, "embedding", 2}, 0.0},
		{[]any{"usage", "prompt_tokens"}, float64(n)}, {[]any{"usage", "total_tokens"}, float64(n)},
	} {
		if got := get(t, b, c.path...); got != c.want {
			t.Errorf("%v is %v, want %v", c.path, got, c.want)
		}
	}
	if len(fake.texts) != 2 || len(fake.texts[0]) >= len(fake.texts[1]) {
		t.Errorf("the texts are %v", fake.texts)
	}

	status, b = x.do("POST", "/v1/embeddings", `{"model": "vectors", "input": [7], "encoding_format": "base64"}`)
	raw, err := base64.StdEncoding.DecodeString(get(t, b, "data", 0, "embedding").(string))
	if status != 200 || err != nil || len(raw) != 12 {
		t.Fatalf("%d %s %v", status, b, err)
	}
	if v := math.Float32frombits(binary.LittleEndian.Uint32(raw[4:])); v != 0.8 {
		t.Errorf("the second number is %g, want 0.8", v)
	}

	status, b = x.do("POST", "/embeddings", `{"model": "vectors", "input": [[7], [8, 9]], "dimensions": 1}`)
	if got := get(t, b, "data", 1, "embedding").([]any); status != 200 || len(got) != 1 || got[0] != 1.0 {
		t.Errorf("of one dimension: %d %s", status, b)
	}
	if _, b := x.do("GET", "/health?deep=1", ""); !strings.Contains(b, "ok") || len(fake.texts[0]) != 1 {
		t.Errorf("health: %s", b)
	}
}

func TestEmbeddingsRefused(t *testing.T) {
	x, fake := withVectors(t)
	for _, c := range []struct{ path, body, param, say string }{
		{"/v1/embeddings", `{"model": "vectors"}`, "input", "missing"},
		{"/v1/embeddings", `{"model": "vectors", "input": []}`, "input", "there is none"},
		{"/v1/embeddings", `{"model": "vectors", "input": [1, "a"]}`, "input[1]", ""},
		{"/v1/embeddings", `{"model": "vectors", "input": [1000000]}`, "input[0]", "there is no token 1000000"},
		{"/v1/embeddings", fmt.Sprintf(`{"model": "vectors", "input": ["a"%s]}`, strings.Repeat(`, "a"`, 2048)), "input", "more than 2048"},
		{"/v1/embeddings", `{"model": "vectors", "input": "a", "encoding_format": "hex"}`, "encoding_format", "want float or base64"},
		{"/v1/embeddings", `{"model": "vectors", "input": "a", "dimensions": 0}`, "dimensions", "1 or more"},
		{"/v1/embeddings", `{"model": "vectors", "input": "a", "dimensions": 4}`, "dimensions", "have 3"},
		{"/v1/embeddings", fmt.Sprintf(`{"model": "vectors", "input": [1%s]}`, strings.Repeat(", 1", 100)), "", "maximum context length is 100 tokens"},
		{"/v1/embeddings", `{"model": "gopher", "input": "a"}`, "model", "predicts tokens and makes no vectors"},
		{"/v1/chat/completions", `{"model": "vectors", "messages": [{"role": "user", "content": "Hello"}]}`, "model", "use /v1/embeddings"},
		{"/v1/completions", `{"model": "vectors", "prompt": "a"}`, "model", "use /v1/embeddings"},
	} {
		status, b := x.do("POST", c.path, c.body)
		if status != 400 {
			t.Errorf("%s %.60s: %d %s", c.path, c.body, status, b)
			continue
		}
		if param, _ := get(t, b, "error", "param").(string); param != c.param || !strings.Contains(b, c.say) {
			t.Errorf("%s %.60s: %s", c.path, c.body, b)
		}
		if c.param == "dimensions" && fake.texts != nil {
			t.Errorf("%.60s: vectors were made", c.body)
		}
	}
}
