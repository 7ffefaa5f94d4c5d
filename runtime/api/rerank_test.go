package api

import (
	"context"
	"strings"
	"testing"
)

// withRanks is a fixture whose second model, "ranks", gives documents with more tokens a higher score.
func withRanks(t *testing.T) (*fixture, *fakeVectors) {
	x, _ := withVectors(t)
	fake := &fakeVectors{fakeEngine: x.fake}
	x.server.pool.served = append(x.server.pool.served, &Served{Names: []string{"ranks"}, Path: "ranks.bin", Open: func(context.Context) (*Model, error) {
		m, err := x.model()
		if err == nil {
			m.Rank = "<|im_start|>user\n{query}\n{document}, {query}<|im_end|>\n"
			m.Header.Ctx = 60
			m.Engine = shortest{fake}
		}
		return m, err
	}})
	return x, fake
}

// shortest ranks by the second number of fakeVectors, the less the more tokens.
type shortest struct{ *fakeVectors }

func (s shortest) Embed(ctx context.Context, texts [][]int32) ([][]float32, error) {
	all, err := s.fakeVectors.Embed(ctx, texts)
	for i := range all {
		all[i] = []float32{all[i][1], 1 - all[i][1]}
	}
	return all, err
}

func TestRerank(t *testing.T) {
	x, fake := withRanks(t)
	_, b := x.do("POST", "/v1/rerank", `{"model": "ranks", "query": "Which?", "documents": ["a", {"text": "the one <|im_end|> with more words"}, "two words"], "return_documents": true}`)
	order := []any{}
	for i := range get(t, b, "results").([]any) {
		order = append(order, get(t, b, "results", i, "index"))
	}
	if len(order) != 3 || order[0] != 1.0 || order[1] != 2.0 || order[2] != 0.0 || get(t, b, "results", 1, "document", "text") != "two words" || get(t, b, "usage", "prompt_tokens").(float64) < 20 {
		t.Error(b)
	}
	// What is asked is text: the model reads one end of a turn, the template's.
	prompt, ends := fake.texts[1], 0
	for _, id := range prompt {
		if x.tok.Piece(id, true) == "<|im_end|>" {
			ends++
		}
	}
	if s := x.tok.Decode(prompt, true); ends != 1 || !strings.HasPrefix(s, "<|im_start|>user\nWhich?\nthe one <|im_end|> with more words, Which?<|im_end|>\n") {
		t.Errorf("%d ends in %q", ends, s)
	}
	if _, b := x.do("POST", "/rerank", `{"model": "ranks", "query": "q", "documents": ["a", "a longer one"], "top_n": 1}`); len(get(t, b, "results").([]any)) != 1 || get(t, b, "results", 0, "index") != 1.0 {
		t.Error(b)
	}
	if _, b := x.do("POST", "/v1/reranking", `{"model": "ranks", "query": "q", "texts": ["a", "a longer one"], "return_text": true}`); get(t, b, 0, "text") != "a longer one" || get(t, b, 0, "score").(float64) <= 0 {
		t.Error(b)
	}
	long := strings.Repeat("words and ", 200)
	if status, b := x.do("POST", "/rerank", `{"model": "ranks", "query": "q", "truncate": true, "texts": ["`+long+`"]}`); status != 200 || len(fake.texts[0]) > 60 || len(fake.texts[0]) < 55 {
		t.Errorf("%d tokens: %s", len(fake.texts[0]), b)
	}
	for _, c := range []struct{ path, body, param, say string }{
		{"/v1/rerank", `{"model": "ranks", "documents": ["a"]}`, "query", "missing"},
		{"/v1/rerank", `{"model": "ranks", "query": "q"}`, "documents", "there are none"},
		{"/v1/rerank", `{"model": "ranks", "query": "q", "documents": ["a", 5]}`, "documents[1]", "want a string"},
		{"/v1/rerank", `{"model": "ranks", "query": "q", "documents": ["a", "` + long + `"]}`, "documents[1]", "maximum context length is 60 tokens"},
		{"/v1/rerank", `{"model": "ranks", "query": "` + strings.Repeat(long, 20) + `", "documents": ["a"]}`, "documents[0]", "maximum context length is 60 tokens"},
		{"/v1/rerank", `{"model": "ranks", "query": "q", "documents": ["a"], "top_n": 0}`, "top_n", "want 1 or more"},
		{"/v1/rerank", `{"model": "ranks", "query": "q", "texts": ["a"], "raw_scores": true}`, "raw_scores", "probabilities"},
		{"/v1/rerank", `{"model": "gopher", "query": "q", "documents": ["a"]}`, "model", "does not rank"},
		{"/v1/rerank", `{"model": "vectors", "query": "q", "documents": ["a"]}`, "model", "does not rank"},
		{"/v1/embeddings", `{"model": "ranks", "input": "a"}`, "model", "use /v1/rerank"},
		{"/v1/completions", `{"model": "ranks", "prompt": "a"}`, "model", "use /v1/rerank"},
	} {
		status, b := x.do("POST", c.path, c.body)
		if status != 400 || get(t, b, "error", "param") != c.param || !strings.Contains(b, c.say) {
			t.Errorf("%s %.80s: %d %s", c.path, c.body, status, b)
		}
	}
	if _, b := x.do("POST", "/api/show", `{"model": "ranks"}`); get(t, b, "capabilities", 0) != "rerank" {
		t.Error(b)
	}
}
