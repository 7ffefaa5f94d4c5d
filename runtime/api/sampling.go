package api

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
)

// Bounds of what one request may ask for.
const (
	maxMessages = 4096
	maxTools    = 512
	maxStops    = 16
	maxStopLen  = 1024
	maxChoices  = 16
	maxPrompts  = 128 // times choices
	maxTop      = 20
	maxBias     = 1024
)

// sampling are the fields of a request that say how tokens are drawn and when to stop;
// those that OpenAI's API has and those that it has not.
type sampling struct {
	sample.Params
	Bias         bias    `json:"logit_bias"`
	Seed         *int64  `json:"seed"` // -1: a new one
	Stop         texts   `json:"stop"`
	StopTokens   []int32 `json:"stop_token_ids"`
	IgnoreEOS    bool    `json:"ignore_eos"`
	MinTokens    int     `json:"min_tokens"`
	N            *int    `json:"n"`
	Priority     int     `json:"priority"`
	CachePrompt  *bool   `json:"cache_prompt"`
	ReturnTokens bool    `json:"return_tokens"`
	guided
}

// texts is a string or an array of strings.
type texts []string

func (t *texts) decode(d *decoder, raw []byte, path string) error {
	if raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return badParam(path, "%s: %s", path, err)
		}
		*t = texts{s}
		return nil
	}
	if raw[0] != '[' {
		return wrongType(path, "a string or an array of strings", raw)
	}
	for i, r := range elements(raw) {
		if i == maxItems {
			return badParam(path, "%s: more than %d", path, maxItems)
		}
		var s *string
		if json.Unmarshal(r, &s) != nil || s == nil {
			return wrongType(fmt.Sprintf("%s[%d]", path, i), "a string", r)
		}
		*t = append(*t, *s)
	}
	return nil
}

// bias holds what is added to logits: an object by ids or texts of tokens, or
// llama-server's array of pairs. false bans a token.
type bias []biased

type biased struct {
	token string // as it was written
	id    int32  // if text is not set
	text  bool
	add   float64
}

func (b *bias) decode(d *decoder, raw []byte, path string) error {
	if raw[0] == '{' {
		for name, r := range members(raw) {
			id, err := strconv.ParseInt(name, 10, 32)
			if err := b.add(biased{name, int32(id), err != nil, 0}, r, join(path, name)); err != nil {
				return err
			}
		}
		return nil
	}
	if raw[0] != '[' {
		return wrongType(path, "an object of numbers, or an array of pairs", raw)
	}
	for i, r := range elements(raw) {
		at := fmt.Sprintf("%s[%d]", path, i)
		var p []json.RawMessage
		if r[0] != '[' || json.Unmarshal(r, &p) != nil || len(p) != 2 {
			return badParam(at, "%s: want a token and a number", at)
		}
		e := biased{token: string(p[0])}
		if json.Unmarshal(p[0], &e.id) != nil {
			if json.Unmarshal(p[0], &e.token) != nil {
				return wrongType(at, "the id or the text of a token", p[0])
			}
			e.text = true
		}
		if err := b.add(e, p[1], at); err != nil {
			return err
		}
	}
	return nil
}

func (b *bias) add(e biased, raw json.RawMessage, path string) error {
	if string(raw) == "false" {
		e.add = -1e9
	} else if json.Unmarshal(raw, &e.add) != nil {
		return wrongType(path, "a number", raw)
	}
	if *b = append(*b, e); len(*b) > maxBias {
		return badParam(path, "logit_bias: more than %d tokens", maxBias)
	}
	return nil
}

// request returns what to ask the engine for, but for the prompt. body is the request's: what
// it does not say of the draws is as the model's file has it.
func (p *sampling) request(m *Model, body []byte) (engine.Request, error) {
	r := engine.Request{TopLogprobs: -1}
	own := sampling{Params: m.Defaults}
	d := decoder{ignored: func(string) {}} // of a body that was decoded before
	if err := d.into(body, &own, ""); err != nil {
		return r, err
	}
	r.Sampling = own.Params
	s := &r.Sampling
	s.Seed = rand.Uint64()
	if p.Seed != nil && *p.Seed != -1 {
		s.Seed = uint64(*p.Seed)
	}
	if err := p.biases(m, s); err != nil {
		return r, err
	}
	if err := s.Validate(); err != nil {
		return r, err
	}
	switch {
	case len(p.Stop) > maxStops:
		return r, badParam("stop", "stop: %d texts, at most %d", len(p.Stop), maxStops)
	case len(p.StopTokens) > maxStops:
		return r, badParam("stop_token_ids", "stop_token_ids: %d, at most %d", len(p.StopTokens), maxStops)
	case p.N != nil && (*p.N < 1 || *p.N > maxChoices):
		return r, badParam("n", "n: want 1 to %d, have %d", maxChoices, *p.N)
	case p.MinTokens < 0:
		return r, badParam("min_tokens", "min_tokens: want 0 or more, have %d", p.MinTokens)
	}
	for i, stop := range p.Stop {
		if stop == "" || len(stop) > maxStopLen {
			return r, badParam(fmt.Sprintf("stop[%d]", i), "stop[%d]: want 1 to %d bytes, have %d", i, maxStopLen, len(stop))
		}
	}
	r.Stops = p.Stop
	r.StopTokens = p.StopTokens
	r.IgnoreEOG = p.IgnoreEOS
	r.Min = p.MinTokens
	r.Priority = p.Priority
	r.NoCache = p.CachePrompt != nil && !*p.CachePrompt
	return r, nil
}

func (p *sampling) biases(m *Model, s *sample.Params) error {
	if len(p.Bias) == 0 {
		return nil
	}
	all := map[int32]float64{}
	for _, b := range p.Bias {
		ids := []int32{b.id}
		if b.text {
			ids = m.Tokenizer.Encode(b.token, encodePlain)
		}
		for _, id := range ids {
			if id < 0 || int(id) >= m.Tokenizer.Len() {
				return badParam("logit_bias", "logit_bias: there is no token %s", b.token)
			}
			all[id] += b.add
		}
	}
	s.Bias = all
	return nil
}

func (p *sampling) choices() int {
	if p.N == nil {
		return 1
	}
	return *p.N
}

// budget sets how many tokens are generated at most: as asked for, in as many positions as are left.
func budget(m *Model, r *engine.Request, asked *int, param string) error {
	room := m.Header.Ctx - len(r.Prompt)
	if len(r.Prompt) == 0 {
		return badParam("", "the prompt has no tokens")
	}
	if room < 1 {
		return tooLong(len(r.Prompt), m.Header.Ctx)
	}
	r.Max = room
	if asked != nil && *asked != -1 {
		if *asked < 0 {
			return badParam(param, "%s: want 0 or more, or -1 for as many as there is room for, have %d", param, *asked)
		}
		r.Max = min(room, *asked)
	}
	if r.Min > r.Max {
		return badParam("min_tokens", "min_tokens: %d, but at most %d are generated", r.Min, r.Max)
	}
	return nil
}
