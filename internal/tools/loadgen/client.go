package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/sse"
)

// client speaks to one server.
type client struct {
	base  string // without a slash at its end
	model string // "" for the only one
	http  *http.Client
}

// newClient refuses other computers unless remote is set. It follows no redirection and uses no proxy:
// requests go where the URL says.
func newClient(base, model string, remote bool) (*client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
		return nil, cli.Usagef("%q is no URL of a server; http://127.0.0.1:8080 would be one", base)
	}
	if !remote && !loopback(u.Hostname()) {
		return nil, cli.Usagef("%s is not this computer: say --remote if its owner agrees to the load", u.Hostname())
	}
	return &client{
		base: strings.TrimSuffix(u.String(), "/"), model: model,
		http: &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: 1024},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// loopback says whether host can only be this computer.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// ask is one request for an answer of a fixed length.
type ask struct {
	prompt  []int32
	answer  int // tokens
	sampler sampler
	seed    uint32
	schema  json.RawMessage // of the answer; nil: any text
	ids     bool            // the ids of the answer's tokens are wanted
}

// sampler says how tokens are drawn.
type sampler struct {
	Temp float64  `json:"temperature"`
	TopP *float64 `json:"top_p,omitempty"` // nil: the server's default, as for the others
	TopK *int     `json:"top_k,omitempty"`
	MinP *float64 `json:"min_p,omitempty"`
}

// body returns the JSON of the request. Beyond OpenAI's API, zincrun and llama-server
// agree.
func (a ask) body(model string) []byte {
	type options struct {
		Usage bool `json:"include_usage"`
	}
	q := struct {
		Model     string  `json:"model,omitempty"`
		Prompt    []int32 `json:"prompt"`
		Max       int     `json:"max_tokens"`
		IgnoreEOS bool    `json:"ignore_eos"`
		sampler
		Seed    uint32          `json:"seed"`
		Schema  json.RawMessage `json:"json_schema,omitempty"`
		Stream  bool            `json:"stream"`
		Options options         `json:"stream_options"`
		// zincrun tells the ids of tokens with return_tokens, llama-server with logprobs.
		ReturnTokens bool `json:"return_tokens,omitempty"`
		Logprobs     int  `json:"logprobs,omitempty"`
	}{Model: model, Prompt: a.prompt, Max: a.answer, IgnoreEOS: true, sampler: a.sampler, Seed: a.seed, Schema: a.schema, Stream: true, Options: options{true}}
	if a.ids {
		q.ReturnTokens, q.Logprobs = true, 1
	}
	b, err := json.Marshal(q)
	if err != nil {
		panic(err) // numbers of flags, none of them NaN
	}
	return b
}

// trace is what a client sees of an answer. Times count from the last byte of the request.
type trace struct {
	times      []time.Duration // at which pieces of the answer came
	text       string
	ids        []int32 // if they were asked for and the server tells them
	prompt     int     // tokens of the prompt, as the server counts
	cached     int     // of these the server had in its cache
	completion int     // tokens of the answer
	err        error
}

// chunk is an event of POST /v1/completions or /v1/chat/completions.
type chunk struct {
	Choices []struct {
		Text     string  `json:"text"`
		Delta    *delta  `json:"delta"`
		Finish   *string `json:"finish_reason"`
		Tokens   []int32 `json:"token_ids"`
		Logprobs *struct {
			Content []struct {
				ID int32 `json:"id"`
			} `json:"content"`
		} `json:"logprobs"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// delta is what is new of a message.
type delta struct {
	Content   string `json:"content"`
	Reasoning string `json:"reasoning_content"`
	Calls     []any  `json:"tool_calls"`
}

// generate asks and reads the answer to its end.
func (c *client) generate(ctx context.Context, a ask) trace {
	return c.stream(ctx, "/v1/completions", a.body(c.model))
}

// stream sends a body and reads the stream of its answer to its end.
func (c *client) stream(ctx context.Context, path string, body []byte) trace {
	var start atomic.Pointer[time.Time]
	now := func() { start.Store(new(time.Now())) }
	now() // until it is written
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { now() }})
	r, err := c.do(ctx, "POST", path, bytes.NewReader(body))
	if err != nil {
		return trace{err: err}
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return trace{err: statusError(r)}
	}
	return readTrace(r.Body, *start.Load())
}

// readTrace reads the stream of an answer that was asked for at start. An answer without its end or
// its count of tokens is an error.
func readTrace(stream io.Reader, start time.Time) (t trace) {
	ev := sse.NewReader(stream)
	var text strings.Builder
	finished := false
	for {
		data, err := ev.Next()
		at := time.Since(start)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			t.err = err
			return t
		}
		if string(data) == "[DONE]" {
			break
		}
		var ch chunk
		if err := json.Unmarshal(data, &ch); err != nil {
			t.err = fmt.Errorf("an event of the stream: %w", err)
			return t
		}
		if ch.Error != nil {
			t.err = errors.New(ch.Error.Message)
			return t
		}
		if u := ch.Usage; u != nil {
			t.prompt, t.completion, t.cached = u.Prompt, u.Completion, u.Details.Cached
		}
		for _, choice := range ch.Choices {
			t.ids = append(t.ids, choice.Tokens...)
			if l := choice.Logprobs; l != nil {
				for _, token := range l.Content {
					t.ids = append(t.ids, token.ID)
				}
			}
			text.WriteString(choice.Text)
			// An event that only says why the answer ended is no piece of it, nor one that only says who speaks.
			piece := choice.Finish == nil || choice.Text != ""
			if d := choice.Delta; d != nil {
				text.WriteString(d.Content)
				piece = d.Content != "" || d.Reasoning != "" || len(d.Calls) > 0
			}
			if piece {
				t.times = append(t.times, at)
			}
			finished = finished || choice.Finish != nil
		}
	}
	t.text = text.String()
	switch {
	case !finished:
		t.err = errors.New("the stream ended without a finish_reason")
	case t.completion == 0 || len(t.times) == 0:
		t.err = errors.New("the stream has no tokens, or does not count them (usage)")
	}
	return t
}

func (c *client) do(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	if method == "POST" {
		r.Header.Set("Content-Type", "application/json")
		// A connection that the server closes just now is no error: net/http then sends a request
		// again that it takes for idempotent. An empty list is not sent.
		r.Header["Idempotency-Key"] = []string{}
	}
	return c.http.Do(r)
}

// maxReply bounds the bytes of a reply that is no stream.
const maxReply = 16 << 20

// call sends in as JSON unless it is nil, and reads the reply into out.
func (c *client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	r, err := c.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %w", method, path, statusError(r))
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, maxReply)).Decode(out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// statusError is the error of a reply that is not 200, with the message that it has.
func statusError(r *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(r.Body, 4096))
	var e chunk
	if json.Unmarshal(b, &e) == nil && e.Error != nil {
		return fmt.Errorf("%s: %s", r.Status, e.Error.Message)
	}
	return errors.New(r.Status)
}
