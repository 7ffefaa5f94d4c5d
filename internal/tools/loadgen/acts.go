package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/internal/sse"
)

// acts are what a soak does to a server; weights are per cent.
var acts = []struct {
	name   string
	weight int
	do     func(s *soak, ctx context.Context, r *rand.Rand) error
}{
	{"stream", 30, (*soak).whole},
	{"one reply", 10, (*soak).reply},
	{"slow reader", 8, (*soak).slow},
	{"cancelled", 25, (*soak).cancel},
	{"reset", 5, (*soak).reset},
	{"half a request", 4, (*soak).half},
	{"malformed", 13, (*soak).malformed},
	{"oversized", 2, (*soak).oversized},
	{"other endpoints", 3, (*soak).look},
}

// pick draws an act.
func pick(r *rand.Rand) int {
	n := r.IntN(100)
	for i, a := range acts {
		if n -= a.weight; n < 0 {
			return i
		}
	}
	return 0
}

// errBusy is a refusal for now, which is a server's right.
var errBusy = errors.New("busy")

// wrongError is an answer that nothing excuses.
type wrongError struct{ what string }

func (e *wrongError) Error() string { return e.what }

func wrongf(format string, args ...any) error { return &wrongError{fmt.Sprintf(format, args...)} }

// judge compares an answer with that to the same request alone.
func (k knownAnswer) judge(text string) error {
	if text != k.text {
		return wrongf("the answer is %q, and alone it was %q", text, k.text)
	}
	return nil
}

// one draws a known request.
func (s *soak) one(r *rand.Rand) knownAnswer { return s.known[r.IntN(len(s.known))] }

// open asks for a completion.
func (s *soak) open(ctx context.Context, body []byte) (*http.Response, error) {
	resp, err := s.client.do(ctx, "POST", "/v1/completions", bytes.NewReader(body))
	if err != nil || resp.StatusCode == http.StatusOK {
		return resp, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		return nil, errBusy
	}
	return nil, statusError(resp)
}

// whole reads a stream as it comes.
func (s *soak) whole(ctx context.Context, r *rand.Rand) error { return s.stream(ctx, s.one(r)) }

func (s *soak) stream(ctx context.Context, k knownAnswer) error {
	return s.read(ctx, k, func(b io.Reader) io.Reader { return b })
}

// slow reads a stream a little at a time.
func (s *soak) slow(ctx context.Context, r *rand.Rand) error {
	return s.read(ctx, s.one(r), func(b io.Reader) io.Reader {
		return &slowReader{ctx: ctx, r: b, pause: time.Duration(1+r.IntN(20)) * time.Millisecond}
	})
}

func (s *soak) read(ctx context.Context, k knownAnswer, through func(io.Reader) io.Reader) error {
	resp, err := s.open(ctx, k.ask.body(s.client.model))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	t := readTrace(through(resp.Body), time.Now())
	if t.err != nil {
		return t.err
	}
	return k.judge(t.text)
}

type slowReader struct {
	ctx   context.Context
	r     io.Reader
	pause time.Duration
}

func (s *slowReader) Read(p []byte) (int, error) {
	select {
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-time.After(s.pause):
	}
	return s.r.Read(p[:min(len(p), 256)])
}

// reply asks for an answer that is no stream.
func (s *soak) reply(ctx context.Context, r *rand.Rand) error { return s.whenDone(ctx, s.one(r)) }

func (s *soak) whenDone(ctx context.Context, k knownAnswer) error {
	var q map[string]json.RawMessage
	if err := json.Unmarshal(k.ask.body(s.client.model), &q); err != nil {
		return err
	}
	delete(q, "stream")
	delete(q, "stream_options")
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	resp, err := s.open(ctx, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var c chunk
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxReply)).Decode(&c); err != nil {
		return err
	}
	if len(c.Choices) != 1 {
		return wrongf("a reply of %d choices", len(c.Choices))
	}
	return k.judge(c.Choices[0].Text)
}

// cancel goes away after some events, or before the first.
func (s *soak) cancel(ctx context.Context, r *rand.Rand) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k := s.one(r)
	after := r.IntN(k.ask.answer + 1)
	if after == 0 {
		time.AfterFunc(time.Duration(r.IntN(50))*time.Millisecond, cancel)
	}
	resp, err := s.open(ctx, k.ask.body(s.client.model))
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	ev := sse.NewReader(resp.Body)
	for range after {
		if _, err := ev.Next(); err == io.EOF { // tokens may share an event
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// reset asks, and closes the connection so that the server gets a TCP reset.
func (s *soak) reset(ctx context.Context, r *rand.Rand) error {
	body := s.one(r).ask.body(s.client.model)
	return s.raw(ctx, len(body), body, time.Duration(r.IntN(100))*time.Millisecond)
}

// half sends a part of a request, and closes the connection.
func (s *soak) half(ctx context.Context, r *rand.Rand) error {
	body := s.one(r).ask.body(s.client.model)
	return s.raw(ctx, len(body), body[:r.IntN(len(body))], time.Duration(r.IntN(20))*time.Millisecond)
}

// raw sends a request of length bytes of which only those of body come, waits, and resets the
// connection.
func (s *soak) raw(ctx context.Context, length int, body []byte, wait time.Duration) error {
	u, err := url.Parse(s.client.base)
	if err != nil {
		return err
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return err
	}
	defer c.Close()
	if t, ok := c.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	if _, err := fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", u.Host, length, body); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
	return nil
}

// malformations are bodies that no server should take.
var malformations = []string{
	"", "{", "null", "[]", "7", `"prompt"`, "{}", `{"prompt":}`, `{"prompt":null}`, `{"prompt":[]}`, `{"prompt":{}}`, "{\"prompt\":\"\xff\"}",
	`{"prompt":[-1]}`, `{"prompt":[1.5]}`, `{"prompt":[4294967297]}`, `{"prompt":[1e300]}`, `{"prompt":[2000000000]}`, `{"prompt":[[1],["a"]]}`,
	`{"prompt":"a","max_tokens":-5}`, `{"prompt":"a","max_tokens":"many"}`, `{"prompt":"a","max_tokens":1e99}`,
	`{"prompt":"a","temperature":"hot"}`, `{"prompt":"a","temperature":1e999}`, `{"prompt":"a","temperature":-1}`, `{"prompt":"a","top_p":7}`,
	`{"prompt":"a","n":0}`, `{"prompt":"a","n":1000000}`, `{"prompt":"a","stop":[1,2]}`, `{"prompt":"a","stream":"yes"}`,
	`{"prompt":"a","logit_bias":{"x":"y"}}`, `{"prompt":"a","stream_options":7}`, `{"prompt":"a"}{"prompt":"a"}`,
	`{"prompt":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}",
	`{"prompt":[` + strings.Repeat("1,", 100_000) + "1]}", // longer than a small model's context
	`{"prompt":"a","model":"there is no such model"}`,
}

// malformed wants an error of the client, with a message.
func (s *soak) malformed(ctx context.Context, r *rand.Rand) error {
	body := malformations[r.IntN(len(malformations))]
	resp, err := s.client.do(ctx, "POST", "/v1/completions", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusServiceUnavailable {
		return errBusy
	}
	var c chunk
	if resp.StatusCode < 400 || resp.StatusCode > 499 || json.Unmarshal(b, &c) != nil || c.Error == nil || c.Error.Message == "" {
		return wrongf("to the body %.60q: %s: %.200q", body, resp.Status, b)
	}
	return nil
}

// tooMuch is the bytes of an oversized body.
const tooMuch = 64 << 20

// oversized sends more than a server should read. It may refuse, and it may stop to listen.
func (s *soak) oversized(ctx context.Context, r *rand.Rand) error {
	body := io.MultiReader(strings.NewReader(`{"prompt":"`), io.LimitReader(letters{}, tooMuch), strings.NewReader(`"}`))
	resp, err := s.client.do(ctx, "POST", "/v1/completions", body)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	if resp.StatusCode < 400 || resp.StatusCode > 499 && resp.StatusCode != http.StatusServiceUnavailable {
		return wrongf("to a body of %d bytes: %s", tooMuch, resp.Status)
	}
	return nil
}

// letters is a text without end.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

// look reads what people and monitors look at meanwhile.
func (s *soak) look(ctx context.Context, r *rand.Rand) error {
	paths := []string{"/slots", "/metrics", "/v1/models", "/props", "/health"}
	path := paths[r.IntN(len(paths))]
	resp, err := s.client.do(ctx, "GET", path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode == http.StatusServiceUnavailable {
		return errBusy
	}
	if resp.StatusCode != http.StatusOK {
		return wrongf("GET %s: %s", path, resp.Status)
	}
	return nil
}
