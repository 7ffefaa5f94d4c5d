package api

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/engine"
)

// An Embedder makes vectors of texts: an Engine of a model that predicts no tokens.
type Embedder interface {
	Embed(ctx context.Context, texts [][]int32) ([][]float32, error)
	Width() int // of a vector
}

// predicts returns an error of the request if the model only makes vectors.
func (m *Model) predicts() error {
	if m.Rank != "" {
		return unsupported("model", "this model ranks texts and predicts no tokens: use /v1/rerank")
	}
	if _, ok := m.Engine.(Embedder); ok {
		return unsupported("model", "this model makes vectors of texts and predicts no tokens: use /v1/embeddings")
	}
	return nil
}

// maxInputs is how many texts a request may have.
const maxInputs = 2048

// inputs is a text, an array of token ids, or an array of these.
type inputs []prompt

func (p *inputs) decode(d *decoder, raw []byte, path string) error {
	all, err := decodePrompts(d, raw, path, maxInputs)
	*p = inputs(all)
	return err
}

// embeddingsRequest is the body of POST /v1/embeddings.
type embeddingsRequest struct {
	Model      string `json:"model"`
	Input      inputs `json:"input"`
	Format     string `json:"encoding_format"`
	Dimensions *int   `json:"dimensions"`
	User       string `json:"user"`
	truncate   bool   // texts that do not fit
}

type embedding struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"` // numbers, or as base64 little-endian float32
}

func handleEmbeddings(c *call) error {
	var q embeddingsRequest
	if err := c.body(&q); err != nil {
		return err
	}
	if q.Format != "" && q.Format != "float" && q.Format != "base64" {
		return badParam("encoding_format", "encoding_format: want float or base64, have %q", q.Format)
	}
	vectors, tokens, err := q.vectors(c)
	if err != nil {
		return err
	}
	return q.reply(c, vectors, tokens)
}

// vectors returns the vectors, and how many tokens were read.
func (q *embeddingsRequest) vectors(c *call) ([][]float32, int, error) {
	switch {
	case len(q.Input) == 0:
		return nil, 0, badParam("input", "input is missing")
	case len(q.Input) > maxInputs:
		return nil, 0, badParam("input", "input: more than %d", maxInputs)
	case q.Dimensions != nil && *q.Dimensions < 1:
		return nil, 0, badParam("dimensions", "dimensions: want 1 or more, have %d", *q.Dimensions)
	}
	vectors, tokens, err := c.embed(q.Model, q.tokens)
	if n := q.Dimensions; n != nil && err == nil {
		for i, v := range vectors {
			if vectors[i], err = runtime.Shorten(v, *n); err != nil {
				return nil, 0, err
			}
		}
	}
	return vectors, tokens, err
}

// tokens returns the tokens of all texts.
func (q *embeddingsRequest) tokens(ctx context.Context, c *call, m *Model) ([][]int32, error) {
	e, ok := m.Engine.(Embedder)
	switch {
	case !ok:
		return nil, unsupported("model", "this model predicts tokens and makes no vectors of texts: /v1/embeddings is for models such as Qwen3-Embedding")
	case m.Rank != "":
		return nil, unsupported("model", "this model ranks texts and makes no vectors of them: use /v1/rerank")
	}
	if n := q.Dimensions; n != nil && *n > e.Width() {
		return nil, badParam("dimensions", "dimensions: %d, the vectors of this model have %d", *n, e.Width())
	}
	var texts [][]int32
	for i, p := range q.Input {
		if most := (m.Header.Ctx + 64) * m.Tokenizer.Longest(); q.truncate && len(p.text) > most {
			p.text = p.text[:most] // more than is kept
		}
		ids, err := p.tokens(ctx, m, fmt.Sprintf("input[%d]", i), !q.truncate)
		if err != nil {
			return nil, err
		}
		if most := m.Header.Ctx; q.truncate && len(ids) > most { // what ends a text is kept
			ids = append(ids[:most-1:most-1], ids[len(ids)-1])
		}
		texts = append(texts, ids)
		if c.s.o.LogText {
			c.log.prompt += p.text
		}
	}
	q.Input = nil
	return texts, nil
}

// embed returns the vectors of texts, whose tokens are made when the model is there, and how many tokens were read.
func (c *call) embed(model string, tokens func(context.Context, *call, *Model) ([][]int32, error)) ([][]float32, int, error) {
	if err := c.admit(); err != nil {
		return nil, 0, err
	}
	m, err := c.model(model)
	if err != nil {
		return nil, 0, err
	}
	var texts [][]int32
	if err = c.text(func(ctx context.Context) error {
		texts, err = tokens(ctx, c, m)
		return err
	}); err != nil {
		return nil, 0, err
	}
	c.forget()
	var u engine.Usage
	for _, ids := range texts {
		u.Prompt += len(ids)
	}
	if e := c.user.charge(u.Prompt); e != nil {
		return nil, 0, e
	}
	start := time.Now()
	vectors, err := m.Engine.(Embedder).Embed(c.r.Context(), texts)
	c.log.key = c.user.name()
	if err != nil {
		c.log.finish = "error"
		c.s.metrics.failed(c.log.model, errorOf(err))
		return nil, 0, err
	}
	u.Prefill = time.Since(start)
	c.log.usage, c.log.finish = u, engine.Stopped
	c.s.metrics.done(c.log.model, engine.Stopped, u, time.Since(c.log.start))
	return vectors, u.Prompt, nil
}

func (q *embeddingsRequest) reply(c *call, vectors [][]float32, tokens int) error {
	type usage struct {
		Prompt int `json:"prompt_tokens"`
		Total  int `json:"total_tokens"`
	}
	reply := struct {
		Object string      `json:"object"`
		Model  string      `json:"model"`
		Data   []embedding `json:"data"`
		Usage  usage       `json:"usage"`
	}{"list", c.asked, nil, usage{tokens, tokens}}
	for i, v := range vectors {
		one := embedding{"embedding", i, v}
		if q.Format == "base64" {
			var b []byte
			for _, x := range v {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
			}
			one.Embedding = base64.StdEncoding.EncodeToString(b)
		}
		reply.Data = append(reply.Data, one)
	}
	return c.reply(reply)
}
