package api

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/text"
)

// completionRequest is the body of POST /v1/completions.
type completionRequest struct {
	sampling
	Model         string        `json:"model"`
	Prompt        prompts       `json:"prompt"`
	Suffix        string        `json:"suffix"`
	Echo          bool          `json:"echo"`
	BestOf        *int          `json:"best_of"`
	Stream        bool          `json:"stream"`
	StreamOptions streamOptions `json:"stream_options"`
	MaxTokens     *int          `json:"max_tokens"`
	Predict       *int          `json:"n_predict"` // llama-server's name
	Logprobs      *int          `json:"logprobs"`
}

// prompts is a text, an array of token ids, or an array of these.
type prompts []prompt

type prompt struct {
	text string
	ids  []int32 // instead of text
}

func (p *prompts) decode(d *decoder, raw []byte, path string) error {
	all, err := decodePrompts(d, raw, path, maxPrompts)
	*p = prompts(all)
	return err
}

// decodePrompts decodes a text, an array of token ids, or an array of at most most of these.
func decodePrompts(d *decoder, raw []byte, path string, most int) ([]prompt, error) {
	if raw[0] == '"' {
		var s string
		json.Unmarshal(raw, &s)
		return []prompt{{text: s}}, nil
	}
	if raw[0] != '[' {
		return nil, wrongType(path, "a string, an array of token ids or an array of these", raw)
	}
	var all []prompt
	for i, r := range elements(raw) {
		var one prompt
		if i == 0 && r[0] != '"' && r[0] != '[' {
			err := d.into(raw, &one.ids, path)
			return []prompt{one}, err
		}
		if i == most {
			return nil, badParam(path, "%s: more than %d", path, most)
		}
		at := fmt.Sprintf("%s[%d]", path, i)
		var err error
		if r[0] == '"' {
			err = d.into(r, &one.text, at)
		} else {
			err = d.into(r, &one.ids, at)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, badParam(path, "%s: there is none", path)
	}
	return all, nil
}

// tokens returns the ids of a prompt; one that is to fit the context is refused if it has too many bytes.
func (p prompt) tokens(ctx context.Context, m *Model, at string, fit bool) ([]int32, error) {
	if p.ids == nil {
		if err := m.talker().Fits(len(p.text)); fit && err != nil {
			return nil, m.refusal(err)
		}
		return m.Tokenizer.EncodeContext(ctx, p.text, text.EncodeOptions{AddSpecial: true, ParseSpecial: true})
	}
	return p.ids, p.check(m, at)
}

// check returns an error for an id that is none.
func (p prompt) check(m *Model, at string) error {
	for i, id := range p.ids {
		if id < 0 || int(id) >= m.Tokenizer.Len() {
			return badParam(at, "%s: there is no token %d, the %dth", at, id, i+1)
		}
	}
	return nil
}

type completionReply struct {
	ID          string             `json:"id"`
	Object      string             `json:"object"`
	Created     int64              `json:"created"`
	Model       string             `json:"model"`
	Fingerprint string             `json:"system_fingerprint"`
	Choices     []completionChoice `json:"choices"`
	Usage       *usage             `json:"usage,omitempty"`
	Timings     *timings           `json:"timings,omitempty"`
	Drained     bool               `json:"drained,omitempty"`
}

type completionChoice struct {
	Text     string              `json:"text"`
	Index    int                 `json:"index"`
	Logprobs *completionLogprobs `json:"logprobs"`
	Finish   *string             `json:"finish_reason"`
	Tokens   []int32             `json:"token_ids,omitempty"`
}

type completionLogprobs struct {
	Tokens  []string             `json:"tokens"`
	Values  []float32            `json:"token_logprobs"`
	Top     []map[string]float32 `json:"top_logprobs"`
	Offsets []int                `json:"text_offset"`
}

// completionLogprobsOf returns the log probabilities of tokens whose text begins at the
// character offset of the answer.
func completionLogprobsOf(tokens []engine.Token, offset int) *completionLogprobs {
	l := &completionLogprobs{Tokens: []string{}, Values: []float32{}, Top: []map[string]float32{}, Offsets: []int{}}
	for _, t := range tokens {
		l.Tokens = append(l.Tokens, t.Text)
		l.Values = append(l.Values, max(t.Logprob, -9999))
		top := map[string]float32{}
		for _, a := range t.Top {
			top[a.Text] = max(a.Logprob, -9999)
		}
		l.Top = append(l.Top, top)
		l.Offsets = append(l.Offsets, offset)
		offset += utf8.RuneCountInString(t.Text)
	}
	return l
}

// run makes the sequences that answer; choice i belongs to prompt i/n.
func (c *call) completion(q *completionRequest) (*run, []string, error) {
	switch {
	case len(q.Prompt) == 0:
		return nil, nil, badParam("prompt", "prompt is missing")
	case q.Suffix != "":
		return nil, nil, unsupported("suffix", "suffix: text cannot be put into a gap")
	case q.BestOf != nil && *q.BestOf != q.choices():
		return nil, nil, unsupported("best_of", "best_of: want the same as n")
	case len(q.Prompt)*q.choices() > maxPrompts:
		return nil, nil, badParam("prompt", "prompt: %d prompts times %d answers, at most %d", len(q.Prompt), q.choices(), maxPrompts)
	case q.Logprobs != nil && (*q.Logprobs < 0 || *q.Logprobs > maxTop):
		return nil, nil, badParam("logprobs", "logprobs: want 0 to %d, have %d", maxTop, *q.Logprobs)
	}
	if err := c.admit(); err != nil {
		return nil, nil, err
	}
	m, err := c.model(q.Model)
	if err != nil {
		return nil, nil, err
	}
	if err := m.predicts(); err != nil {
		return nil, nil, err
	}
	g := &run{call: c, model: m}
	var echo []string
	err = c.text(func(ctx context.Context) error {
		r, err := q.request(m, c.raw)
		if err != nil {
			return err
		}
		if r.Format, err = q.held(); err != nil {
			return err
		}
		for i, p := range q.Prompt {
			text, err := q.add(ctx, g, r, p, fmt.Sprintf("prompt[%d]", i))
			if err != nil {
				return err
			}
			if q.Echo {
				echo = append(echo, slices.Repeat([]string{text}, q.choices())...)
			}
		}
		return nil
	})
	c.forget()
	return g, echo, err
}

// add adds the sequences that answer a prompt, and returns its text, if somebody wants it.
func (q *completionRequest) add(ctx context.Context, g *run, r engine.Request, p prompt, at string) (text string, err error) {
	m, c := g.model, g.call
	if r.Prompt, err = p.tokens(ctx, m, at, true); err != nil {
		return "", err
	}
	most, param := 16, "max_tokens" // OpenAI's default
	switch {
	case q.MaxTokens != nil:
		most = *q.MaxTokens
	case q.Predict != nil:
		most, param = *q.Predict, "n_predict"
	}
	if err := budget(m, &r, &most, param); err != nil {
		return "", err
	}
	if q.Logprobs != nil {
		r.TopLogprobs = *q.Logprobs
	}
	if c.user != nil {
		r.Priority = min(r.Priority, c.user.Priority)
	}
	g.reqs = append(g.reqs, spread(r, q.choices())...)
	if q.Echo || c.s.o.LogText {
		if text = p.text; p.ids != nil {
			text = m.Tokenizer.Decode(p.ids, true)
		}
	}
	if c.s.o.LogText {
		c.log.prompt += text
	}
	return text, nil
}

func handleCompletion(c *call) error {
	var q completionRequest
	if err := c.body(&q); err != nil {
		return err
	}
	g, echo, err := c.completion(&q)
	if err != nil {
		return err
	}
	a := &completing{
		q:       &q,
		reply:   completionReply{ID: "cmpl-" + random(12), Object: "text_completion", Created: time.Now().Unix(), Model: c.asked, Fingerprint: g.model.fingerprint()},
		choices: make([]completionChoice, len(g.reqs)), tokens: make([][]engine.Token, len(g.reqs)), offsets: make([]int, len(g.reqs)),
	}
	for i := range a.choices {
		a.choices[i].Index = i
		if q.Echo {
			a.choices[i].Text = echo[i]
			a.offsets[i] = utf8.RuneCountInString(echo[i])
		}
	}
	if q.Stream {
		a.out = newStream(c.w)
	}
	for p := range g.parts() {
		switch {
		case p.err != nil && a.out != nil:
			return c.breakOff(a.out, p.err)
		case p.err != nil:
			return p.err
		case p.idle && a.out != nil:
			err = a.out.comment()
		case !p.idle:
			err = a.take(&p)
		}
		if err != nil {
			return gone(err)
		}
	}
	if a.out != nil {
		return gone(a.end())
	}
	return c.reply(a.whole())
}

// completing is an answer to /v1/completions while it comes.
type completing struct {
	q       *completionRequest
	out     *stream // nil: the reply comes as a whole
	reply   completionReply
	total   engine.Usage
	choices []completionChoice // what has come; of a stream what is before the first piece
	tokens  [][]engine.Token   // none of a stream
	offsets []int              // where the next log probabilities begin, in characters
}

// take keeps what has come of a choice, or sends it.
func (a *completing) take(p *part) error {
	done := p.event.Done
	if done != nil {
		a.reply.Drained = a.reply.Drained || done.Drained
		a.total = sumChoice(a.total, done.Usage, p.choice%a.q.choices() == 0)
	}
	if a.out != nil {
		return a.send(p)
	}
	ch := &a.choices[p.choice]
	ch.Text += p.event.Text
	a.tokens[p.choice] = append(a.tokens[p.choice], p.event.Tokens...)
	if done != nil {
		ch.Finish = finish(*done, 0, false)
	}
	return nil
}

// send sends a piece of a choice, unless there is nothing in it.
func (a *completing) send(p *part) error {
	before, done := &a.choices[p.choice].Text, p.event.Done
	ch := completionChoice{Index: p.choice, Text: *before + p.event.Text}
	*before = ""
	if a.q.Logprobs != nil && len(p.event.Tokens) > 0 {
		ch.Logprobs = completionLogprobsOf(p.event.Tokens, a.offsets[p.choice])
		for _, t := range p.event.Tokens {
			a.offsets[p.choice] += utf8.RuneCountInString(t.Text)
		}
	}
	if a.q.ReturnTokens {
		ch.Tokens = ids(p.event.Tokens)
	}
	if ch.Text == "" && done == nil && ch.Logprobs == nil && len(ch.Tokens) == 0 {
		return nil
	}
	reply := a.reply
	reply.Choices = []completionChoice{ch}
	if done != nil {
		reply.Choices[0].Finish = finish(*done, 0, false)
		reply.Timings = timingsOf(done.Usage)
	}
	return a.out.data("", reply)
}

// end ends a stream.
func (a *completing) end() error {
	if a.q.StreamOptions.IncludeUsage {
		reply := a.reply
		reply.Choices = []completionChoice{}
		reply.Usage, reply.Timings = usageOf(a.total), timingsOf(a.total)
		if err := a.out.data("", reply); err != nil {
			return err
		}
	}
	return a.out.end()
}

// whole is the reply that is none of a stream.
func (a *completing) whole() completionReply {
	for i := range a.choices {
		if a.q.Logprobs != nil {
			a.choices[i].Logprobs = completionLogprobsOf(a.tokens[i], a.offsets[i])
		}
		if a.q.ReturnTokens {
			a.choices[i].Tokens = ids(a.tokens[i])
		}
	}
	a.reply.Choices = a.choices
	a.reply.Usage, a.reply.Timings = usageOf(a.total), timingsOf(a.total)
	return a.reply
}
