package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// llamaRequest is the body of llama-server's POST /completion and /infill.
type llamaRequest struct {
	sampling
	Model   string  `json:"model"`
	Prompt  *prompt `json:"prompt"`
	Stream  bool    `json:"stream"`
	Predict *int    `json:"n_predict"`
	Max     *int    `json:"max_tokens"` // its other name
	Probs   *int    `json:"n_probs"`
	// Of /infill.
	Prefix string      `json:"input_prefix"`
	Suffix string      `json:"input_suffix"`
	Extra  []gapBeside `json:"input_extra"`
	// What is not there.
	Mirostat *float64 `json:"mirostat"`
	Images   []any    `json:"image_data"`
	Lora     []any    `json:"lora"`
}

func (p *prompt) decode(d *decoder, raw []byte, path string) error {
	all, err := decodePrompts(d, raw, path, 1)
	if err == nil {
		*p = all[0]
	}
	return err
}

// llamaReply is a reply, and each event of a streamed one: a streamed event has the first part only, but for the last.
type llamaReply struct {
	Index     int         `json:"index"`
	Content   string      `json:"content"`
	Tokens    []int32     `json:"tokens"`
	Slot      int         `json:"id_slot"`
	Stop      bool        `json:"stop"`
	Predicted int         `json:"tokens_predicted"`
	Evaluated int         `json:"tokens_evaluated"`
	Probs     []llamaProb `json:"completion_probabilities,omitempty"`
	*llamaEnd
}

type llamaEnd struct {
	Model     string        `json:"model"`
	Settings  llamaSettings `json:"generation_settings"`
	Prompt    string        `json:"prompt"`
	NewLine   bool          `json:"has_new_line"`
	Truncated bool          `json:"truncated"`
	StopType  string        `json:"stop_type"`
	StopWord  string        `json:"stopping_word"`
	Cached    int           `json:"tokens_cached"`
	Timings   *timings      `json:"timings"`
}

type llamaSettings struct {
	sample.Params
	Predict int      `json:"n_predict"`
	Stop    []string `json:"stop"`
	Stream  bool     `json:"stream"`
	Probs   int      `json:"n_probs"`
}

// llamaProb is the log probability of a token.
type llamaProb = tokenLogprob

func handleLlamaCompletion(c *call) error {
	var q llamaRequest
	if err := c.body(&q); err != nil {
		return err
	}
	if q.Prompt == nil {
		return badParam("prompt", "prompt is missing")
	}
	return q.run(c, func(ctx context.Context, m *Model) ([]int32, error) { return q.Prompt.tokens(ctx, m, "prompt", true) })
}

func handleInfill(c *call) error {
	var q llamaRequest
	if err := c.body(&q); err != nil {
		return err
	}
	g := gap{prefix: q.Prefix, suffix: q.Suffix, beside: q.Extra}
	if q.Prompt != nil {
		if q.Prompt.ids != nil {
			return wrongType("prompt", "a string", []byte("token ids"))
		}
		g.begun = q.Prompt.text
	}
	if len(q.Extra) > maxItems {
		return badParam("input_extra", "input_extra: more than %d", maxItems)
	}
	return q.run(c, func(ctx context.Context, m *Model) ([]int32, error) {
		room := m.Header.Ctx / 2
		if q.Predict != nil && *q.Predict >= 0 {
			room = m.Header.Ctx - min(*q.Predict, room)
		}
		return g.tokens(ctx, m, room)
	})
}

// run answers with what follows the prompt.
func (q *llamaRequest) run(c *call, tokens func(context.Context, *Model) ([]int32, error)) error {
	switch {
	case q.Mirostat != nil && *q.Mirostat != 0:
		return unsupported("mirostat", "mirostat: there is no such sampler")
	case len(q.Images) > 0:
		return notText("image_data", "image")
	case len(q.Lora) > 0:
		return unsupported("lora", "lora: adapters are not supported")
	case q.Probs != nil && (*q.Probs < 0 || *q.Probs > maxTop):
		return badParam("n_probs", "n_probs: want 0 to %d, have %d", maxTop, *q.Probs)
	case q.choices() != 1:
		return unsupported("n", "n: one answer only; /v1/completions gives several")
	}
	if err := c.admit(); err != nil {
		return err
	}
	m, err := c.model(q.Model)
	if err != nil {
		return err
	}
	if err := m.predicts(); err != nil {
		return err
	}
	var r engine.Request
	err = c.text(func(ctx context.Context) error {
		if r, err = q.request(m, c.raw); err != nil {
			return err
		}
		if r.Format, err = q.held(); err == nil {
			r.Prompt, err = tokens(ctx, m)
		}
		return err
	})
	c.forget()
	if err != nil {
		return err
	}
	most, param := q.Predict, "n_predict"
	if most == nil {
		most, param = q.Max, "max_tokens"
	}
	if err := budget(m, &r, most, param); err != nil {
		return err
	}
	if q.Probs != nil && *q.Probs > 0 {
		r.TopLogprobs = *q.Probs
	}
	if c.user != nil {
		r.Priority = min(r.Priority, c.user.Priority)
	}
	if c.s.o.LogText {
		c.log.prompt = m.Tokenizer.Decode(r.Prompt, true)
	}
	return q.tell(c, m, r)
}

func (q *llamaRequest) tell(c *call, m *Model, r engine.Request) error {
	var out *stream
	if q.Stream {
		out = newStream(c.w)
	}
	var whole llamaReply
	whole.Tokens, whole.Evaluated = []int32{}, len(r.Prompt)
	line := false
	for p := range (&run{call: c, model: m, reqs: []engine.Request{r}}).parts() {
		switch {
		case p.err != nil && out != nil:
			return c.breakOff(out, p.err)
		case p.err != nil:
			return p.err
		case p.idle && out != nil:
			if err := out.comment(); err != nil {
				return gone(err)
			}
		}
		if p.idle {
			continue
		}
		one := llamaReply{Content: p.event.Text, Tokens: []int32{}, Evaluated: len(r.Prompt)}
		if q.ReturnTokens || q.Stream {
			one.Tokens = ids(p.event.Tokens)
		}
		if r.TopLogprobs >= 0 {
			one.Probs = logprobsOf(p.event.Tokens).Content
		}
		whole.Predicted += len(p.event.Tokens)
		one.Predicted = whole.Predicted
		line = line || strings.Contains(one.Content, "\n")
		whole.Content += one.Content
		whole.Tokens, whole.Probs = append(whole.Tokens, one.Tokens...), append(whole.Probs, one.Probs...)
		if out != nil && (one.Content != "" || len(one.Tokens) > 0) {
			if err := out.data("", one); err != nil {
				return gone(err)
			}
		}
		done := p.event.Done
		if done == nil {
			continue
		}
		whole.Stop, whole.Predicted = true, done.Usage.Completion
		whole.llamaEnd = &llamaEnd{Model: c.asked, Prompt: m.Tokenizer.Decode(r.Prompt, true), NewLine: line, StopType: stopType(*done), StopWord: done.Stop,
			Cached: done.Usage.Prompt + done.Usage.Completion, Timings: timingsOf(done.Usage),
			Settings: llamaSettings{r.Sampling, r.Max, append([]string{}, r.Stops...), q.Stream, max(0, r.TopLogprobs)}}
		if out == nil {
			return c.reply(whole)
		}
		whole.Content, whole.Tokens, whole.Probs = "", []int32{}, nil
		return gone(out.data("", whole))
	}
	return nil
}

// stopType is why an answer ended, in llama-server's words.
func stopType(done engine.Done) string {
	switch {
	case *finish(done, 0, false) == "length":
		return "limit"
	case done.Stop != "":
		return "word"
	}
	return "eos"
}

// A gap is what stands around text that is to be written.
type gap struct {
	prefix, suffix string
	begun          string // of the text in the gap
	beside         []gapBeside
}

// gapBeside is text of another file.
type gapBeside struct {
	Name string `json:"filename"`
	Text string `json:"text"`
}

// tokens are the prompt, of at most room tokens: other files first, then what is before and behind the gap, of which
// what is near it counts.
func (g *gap) tokens(ctx context.Context, m *Model, room int) ([]int32, error) {
	t := m.Tokenizer
	mark, ok := t.Gap()
	if !ok {
		return nil, unsupported("model", "this model was not trained to fill gaps: it has no tokens for that")
	}
	var cancelled error
	plain := func(s string) []int32 {
		ids, err := t.EncodeContext(ctx, s, encodePlain)
		cancelled = cmp.Or(cancelled, err)
		return ids
	}
	before, behind := plain(g.prefix), plain(g.suffix)
	begun := plain(g.begun)
	if left := room - len(begun) - 4; len(before)+len(behind) > left { // three parts of four before, as far as they are needed
		if left < 1 {
			return nil, tooLong(len(before)+len(behind)+len(begun), m.Header.Ctx)
		}
		keep := min(len(before), max(left-left/4, left-len(behind)))
		before = before[len(before)-keep:]
		behind = behind[:min(len(behind), left-keep)]
	}
	var ids []int32
	if t.AddsBOS() {
		ids = append(ids, t.BOS())
	}
	room -= len(before) + len(behind) + len(begun) + 4
	if extra := g.others(plain, mark); len(extra) <= room {
		ids = append(ids, extra...)
	} else if len(extra) > 0 && room > 0 {
		ids = append(ids, extra[len(extra)-room:]...)
	}
	return slices.Concat(ids, []int32{mark.Prefix}, before, []int32{mark.Suffix}, behind, []int32{mark.Middle}, begun), cancelled
}

// others is the text of other files, as the model was trained to see it.
func (g *gap) others(plain func(string) []int32, mark text.Gap) (ids []int32) {
	if len(g.beside) == 0 {
		return nil
	}
	if mark.Repo >= 0 {
		ids = append(append(ids, mark.Repo), plain("project\n")...)
	}
	for i, f := range g.beside {
		name := f.Name
		if name == "" {
			name = fmt.Sprintf("file%d", i+1)
		}
		if mark.File >= 0 {
			ids = append(append(ids, mark.File), plain(name+"\n")...)
		} else {
			ids = append(ids, plain("\n\n--- "+name+" ---\n\n")...)
		}
		ids = append(ids, plain(f.Text)...)
	}
	if mark.File >= 0 {
		ids = append(append(ids, mark.File), plain("file\n")...)
	}
	return ids
}
