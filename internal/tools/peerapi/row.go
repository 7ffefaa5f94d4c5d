package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/internal/sse"
)

// A row is a thing that both servers do. ask asks for it and says what the reply must be; where the
// servers differ on purpose, ask says with either what each must do, and differs says why.
type row struct {
	group, name string
	differs     string // "": they do the same
	ask         func(t *trial)
}

// Names of the servers.
const (
	zincrun = "zincrun"
	llama   = "llama-server"
)

// site is where a server listens: once for everybody and once with key.
type site struct{ name, open, keyed string }

// ctx is how many positions a sequence has at both servers.
const ctx = 512

// key is what the servers at site.keyed want.
const key = "a-key-of-both"

// trial is a row asked of one server.
type trial struct {
	ctx   context.Context
	site  site
	wrong []string
}

// askTime bounds a row.
const askTime = time.Minute

// try asks a row of a server and returns what was wrong.
func try(within context.Context, r row, s site) []string {
	within, cancel := context.WithTimeoutCause(within, askTime, fmt.Errorf("no answer within %s", askTime))
	defer cancel()
	t := &trial{ctx: within, site: s}
	r.ask(t)
	return t.wrong
}

func (t *trial) errorf(format string, args ...any) {
	t.wrong = append(t.wrong, fmt.Sprintf(format, args...))
}

// ours says which server is asked.
func (t *trial) ours() bool { return t.site.name == zincrun }

// either is what must be, where the servers differ.
func either[T any](t *trial, ours, theirs T) T {
	if t.ours() {
		return ours
	}
	return theirs
}

// A reply is a JSON body, or {"events": [...], "done": bool} of a stream.
type reply struct {
	t      *trial
	what   string
	status int
	header http.Header
	body   any
	text   string
}

func (t *trial) get(path string) *reply             { return t.send("GET", path, "", nil) }
func (t *trial) post(path, body string) *reply      { return t.send("POST", path, body, nil) }
func (t *trial) completion(body string) *reply      { return t.post("/v1/completions", body) }
func (t *trial) chat(body string) *reply            { return t.post("/v1/chat/completions", body) }
func (t *trial) with(h map[string]string) header    { return header{t, h} }
func (h header) post(path, body string) *reply      { return h.t.send("POST", path, body, h.set) }
func (h header) send(method, path, b string) *reply { return h.t.send(method, path, b, h.set) }
func (t *trial) keyed() *trial                      { return &trial{ctx: t.ctx, site: site{t.site.name, t.site.keyed, ""}} }
func (t *trial) join(of *trial)                     { t.wrong = append(t.wrong, of.wrong...) }

// header is a trial whose requests have headers.
type header struct {
	t   *trial
	set map[string]string
}

// client keeps no connections: a server may close one when the next request is on its way.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// maxReply bounds what is read of a reply.
const maxReply = 8 << 20

// send asks. A request that cannot be made is wrong, and its reply empty.
func (t *trial) send(method, path, body string, set map[string]string) *reply {
	r := &reply{t: t, what: strings.TrimSpace(method + " " + path + " " + short(body)), header: http.Header{}}
	req, err := http.NewRequestWithContext(t.ctx, method, t.site.open+path, strings.NewReader(body))
	if err != nil {
		t.errorf("%s: %v", r.what, err)
		return r
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range set {
		req.Header.Set(k, v)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.errorf("%s: %v", r.what, err)
		return r
	}
	defer resp.Body.Close()
	r.status, r.header = resp.StatusCode, resp.Header
	if err := r.read(io.LimitReader(resp.Body, maxReply)); err != nil {
		t.errorf("%s: %v", r.what, err)
	}
	return r
}

func (r *reply) read(in io.Reader) error {
	if !strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream") {
		data, err := io.ReadAll(in)
		r.text = string(data)
		if err == nil && strings.HasPrefix(r.header.Get("Content-Type"), "application/json") {
			err = json.Unmarshal(data, &r.body)
		}
		return err
	}
	events, done := []any{}, false
	r.body = map[string]any{"events": events}
	for in := sse.NewReader(in); ; {
		data, err := in.Next()
		if errors.Is(err, io.EOF) {
			r.body = map[string]any{"events": events, "done": done}
			return nil
		}
		if err != nil {
			return err
		}
		if done = bytes.Equal(data, []byte("[DONE]")); done {
			continue
		}
		var event any
		if err := json.Unmarshal(data, &event); err != nil {
			return err
		}
		events = append(events, event)
	}
}

// all returns the values at a path such as choices.0.text; * stands for all indexes.
func (r *reply) all(path string) []any {
	values := []any{r.body}
	for _, name := range strings.Split(path, ".") {
		var next []any
		for _, v := range values {
			switch v := v.(type) {
			case map[string]any:
				if x, ok := v[name]; ok {
					next = append(next, x)
				}
			case []any:
				if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v) {
					next = append(next, v[i])
				} else if name == "*" {
					next = append(next, v...)
				}
			}
		}
		values = next
	}
	return values
}

// at is the value at a path, nil if there is none.
func (r *reply) at(path string) any {
	if v := r.all(path); len(v) > 0 {
		return v[0]
	}
	return nil
}

// str puts all strings at a path together.
func (r *reply) str(path string) string {
	var b strings.Builder
	for _, v := range r.all(path) {
		if s, ok := v.(string); ok {
			b.WriteString(s)
		}
	}
	return b.String()
}

// num is the number at a path, -1 if there is none.
func (r *reply) num(path string) float64 {
	if x, ok := r.at(path).(float64); ok {
		return x
	}
	return -1
}

func (r *reply) errorf(format string, args ...any) {
	r.t.errorf("%s: %s; have %d %s", r.what, fmt.Sprintf(format, args...), r.status, short(r.show()))
}

func (r *reply) show() string {
	if r.body == nil {
		return r.text
	}
	data, _ := json.Marshal(r.body)
	return string(data)
}

// code wants a status.
func (r *reply) code(want int) *reply {
	if r.status != want {
		r.errorf("want %d", want)
	}
	return r
}

// eq wants a value at a path. Numbers are compared as numbers.
func (r *reply) eq(path string, want any) *reply {
	data, _ := json.Marshal(want)
	var w any
	json.Unmarshal(data, &w)
	if have := r.at(path); !reflect.DeepEqual(have, w) {
		r.errorf("%s: want %s, have %v", path, data, have)
	}
	return r
}

// text wants the strings at a path to be one together.
func (r *reply) says(path, want string) *reply {
	if have := r.str(path); have != want {
		r.errorf("%s: want %q, have %q", path, want, have)
	}
	return r
}

// size wants so many values at a path.
func (r *reply) size(path string, want int) *reply {
	if have := len(r.all(path)); have != want {
		r.errorf("%s: want %d values, have %d", path, want, have)
	}
	return r
}

// is wants what was found out about the reply to be so.
func (r *reply) is(so bool, what string) *reply {
	if !so {
		r.errorf("%s", what)
	}
	return r
}

// fails wants an error of a status, in OpenAI's form.
func (r *reply) fails(want int) *reply {
	return r.code(want).is(r.str("error.message") != "" && r.str("error.type") != "", "want an error with message and type")
}

func short(s string) string {
	if len(s) > 300 {
		return strings.ToValidUTF8(s[:300], "") + "..."
	}
	return s
}
