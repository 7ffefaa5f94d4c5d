package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/runtime/text"
)

// rerankRequest is the body of POST /v1/rerank, as llama-server, Jina and Cohere have it; texts instead of documents is
// the form of text-embeddings-inference.
type rerankRequest struct {
	Model           string    `json:"model"`
	Query           string    `json:"query"`
	Documents       documents `json:"documents"`
	Texts           documents `json:"texts"`
	Top             *int      `json:"top_n"`
	ReturnDocuments bool      `json:"return_documents"`
	ReturnText      bool      `json:"return_text"`
	Truncate        bool      `json:"truncate"`
	Raw             bool      `json:"raw_scores"`
	MaxChunks       *int      `json:"max_chunks_per_doc"`
	RankFields      []string  `json:"rank_fields"`
}

// documents are texts, or objects with a text.
type documents []string

func (t *documents) decode(d *decoder, raw []byte, path string) error {
	if raw[0] != '[' {
		return wrongType(path, "an array of strings", raw)
	}
	*t = documents{}
	for i, r := range elements(raw) {
		at := fmt.Sprintf("%s[%d]", path, i)
		if i == maxInputs {
			return badParam(path, "%s: more than %d", path, maxInputs)
		}
		var one struct {
			Text *string `json:"text"`
		}
		switch r[0] {
		case '"':
			one.Text = new(string)
			if err := d.into(r, one.Text, at); err != nil {
				return err
			}
		case '{':
			if err := d.into(r, &one, at); err != nil {
				return err
			}
		}
		if one.Text == nil {
			return wrongType(at, "a string, or an object with text", r)
		}
		*t = append(*t, *one.Text)
	}
	return nil
}

// ranked is a document and its score, 0 to 1.
type ranked struct {
	Index    int     `json:"index"`
	Score    float32 `json:"relevance_score"`
	Document *struct {
		Text string `json:"text"`
	} `json:"document,omitempty"`
}

// rankedText is the same in the form of text-embeddings-inference.
type rankedText struct {
	Index int     `json:"index"`
	Score float32 `json:"score"`
	Text  string  `json:"text,omitempty"`
}

func handleRerank(c *call) error {
	var q rerankRequest
	if err := c.body(&q); err != nil {
		return err
	}
	all, param := q.Documents, "documents"
	if all == nil && q.Texts != nil {
		all, param = q.Texts, "texts"
	}
	switch {
	case q.Query == "":
		return badParam("query", "query is missing")
	case len(all) == 0:
		return badParam(param, "%s: there are none", param)
	case q.Top != nil && *q.Top < 1:
		return badParam("top_n", "top_n: want 1 or more, have %d", *q.Top)
	case q.Raw:
		return unsupported("raw_scores", "raw_scores: scores are probabilities")
	case q.MaxChunks != nil:
		return unsupported("max_chunks_per_doc", "max_chunks_per_doc: a document is read as a whole")
	case len(q.RankFields) > 0:
		return unsupported("rank_fields", "rank_fields: a document is its text")
	}
	scores, tokens, err := c.embed(q.Model, func(ctx context.Context, c *call, m *Model) ([][]int32, error) {
		return q.ranking(ctx, m, all, param)
	})
	if err != nil {
		return err
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b][0], scores[a][0]) })
	if q.Top != nil {
		order = order[:min(*q.Top, len(order))]
	}
	if param == "texts" {
		rows := []rankedText{}
		for _, i := range order {
			row := rankedText{Index: i, Score: scores[i][0]}
			if q.ReturnText {
				row.Text = all[i]
			}
			rows = append(rows, row)
		}
		return c.reply(rows)
	}
	type usage struct {
		Prompt int `json:"prompt_tokens"`
		Total  int `json:"total_tokens"`
	}
	rows := []ranked{}
	for _, i := range order {
		row := ranked{Index: i, Score: scores[i][0]}
		if q.ReturnDocuments {
			row.Document = &struct {
				Text string `json:"text"`
			}{all[i]}
		}
		rows = append(rows, row)
	}
	return c.reply(struct {
		Object string   `json:"object"`
		Model  string   `json:"model"`
		Rows   []ranked `json:"results"`
		Usage  usage    `json:"usage"`
	}{"list", c.asked, rows, usage{tokens, tokens}})
}

// ranking returns the tokens that a model that ranks texts reads of the query and each document. What these say is
// text, whatever the template's special tokens are.
func (q *rerankRequest) ranking(ctx context.Context, m *Model, all []string, param string) ([][]int32, error) {
	if m.Rank == "" {
		return nil, unsupported("model", "this model does not rank texts: /v1/rerank is for models such as Qwen3-Reranker (pooling_type rank)")
	}
	var texts [][]int32
	most := m.Header.Ctx
	for i, document := range all {
		if room := (most + 64) * m.Tokenizer.Longest(); q.Truncate && len(document) > room {
			document = strings.ToValidUTF8(document[:room], "") // more than is kept
		} else if n := len(m.Rank) + len(q.Query) + len(document); n > room {
			return nil, longRanking(param, i, fmt.Sprintf("at least %d", n/m.Tokenizer.Longest()), most)
		}
		ids, err := m.Tokenizer.EncodeSpans(ctx, rankSpans(m.Rank, q.Query, document))
		if over := len(ids) - most; err == nil && over > 0 && q.Truncate {
			plain := m.Tokenizer.Encode(document, encodePlain)
			document = strings.ToValidUTF8(m.Tokenizer.Decode(plain[:max(0, len(plain)-over)], true), "")
			ids, err = m.Tokenizer.EncodeSpans(ctx, rankSpans(m.Rank, q.Query, document))
		}
		switch {
		case err != nil:
			return nil, err
		case len(ids) > most:
			return nil, longRanking(param, i, itoa(len(ids)), most)
		}
		texts = append(texts, ids)
	}
	return texts, nil
}

func longRanking(param string, i int, tokens string, most int) error {
	e := longPrompt(tokens, most)
	e.Param = fmt.Sprintf("%s[%d]", param, i)
	return e
}

// rankSpans fills a template.
func rankSpans(template, query, document string) (spans []text.Span) {
	for template != "" {
		at, place, value := len(template), "", ""
		for _, f := range [][2]string{{"{query}", query}, {"{document}", document}} {
			if i := strings.Index(template, f[0]); i >= 0 && i < at {
				at, place, value = i, f[0], f[1]
			}
		}
		spans = append(spans, text.Span{Text: template[:at]}, text.Span{Text: value, Literal: true})
		template = template[at+len(place):]
	}
	return spans
}
