package api

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cache"
	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// vocabulary is that of the chat model in testdata, with its template.
var vocabulary = sync.OnceValues(func() (plans.Vocab, error) {
	f, err := gguf.Open("../../testdata/models/gopher-chat-q4_k_m.gguf")
	if err != nil {
		return plans.Vocab{}, err
	}
	defer f.Close()
	return plans.ReadVocab(f)
})

// A fakeEngine answers with the text that answers gives for the end of a prompt, a token at a time.
type fakeEngine struct {
	tok     *text.Tokenizer
	answers map[string]string // by a part of the prompt's last turn
	delay   time.Duration     // before each token
	fail    error             // behind the second token

	mu       sync.Mutex
	requests []engine.Request
	active   int
	closed   bool
	failed   chan struct{}
	draining chan struct{}
}

func newFake(tok *text.Tokenizer) *fakeEngine {
	return &fakeEngine{tok: tok, failed: make(chan struct{}), draining: make(chan struct{}), answers: map[string]string{}}
}

func (f *fakeEngine) answer(prompt []int32) string {
	all := f.tok.Decode(prompt, true)
	last := all[strings.LastIndex(all, "<|im_start|>user")+1:]
	for part, answer := range f.answers {
		if strings.Contains(last, part) {
			return answer
		}
	}
	return "I do not know."
}

func (f *fakeEngine) Generate(ctx context.Context, r engine.Request) iter.Seq2[engine.Event, error] {
	return func(yield func(engine.Event, error) bool) {
		f.mu.Lock()
		f.requests = append(f.requests, r)
		f.active++
		f.mu.Unlock()
		defer func() {
			f.mu.Lock()
			f.active--
			f.mu.Unlock()
		}()
		u := engine.Usage{Prompt: len(r.Prompt), Cached: r.Turn / 2, Prefill: time.Millisecond}
		end := func(reason, stop string, err error) {
			yield(engine.Event{Done: &engine.Done{Reason: reason, Stop: stop, Usage: u, Err: err}}, err)
		}
		said := ""
		for i, id := range f.tok.Encode(f.answer(r.Prompt), encodeSpecial) {
			select {
			case <-ctx.Done():
				end(engine.Cancelled, "", nil)
				return
			case <-f.draining:
				yield(engine.Event{Done: &engine.Done{Reason: engine.Length, Drained: true, Usage: u}}, nil)
				return
			case <-time.After(f.delay):
			}
			if f.fail != nil && i == 2 {
				end(engine.Failed, "", f.fail)
				return
			}
			if i == r.Max {
				end(engine.Length, "", nil)
				return
			}
			piece := f.tok.Piece(id, true)
			for _, stop := range r.Stops {
				if strings.Contains(said+piece, stop) {
					end(engine.Stopped, stop, nil)
					return
				}
			}
			said += piece
			u.Completion++
			u.Decode += time.Millisecond
			t := engine.Token{ID: id, Text: piece, Logprob: -0.5}
			for n := range max(0, r.TopLogprobs) {
				t.Top = append(t.Top, engine.Alternative{ID: id + int32(n), Text: f.tok.Piece(id+int32(n), true), Logprob: -0.5 - float32(n)})
			}
			if !yield(engine.Event{Tokens: []engine.Token{t}, Text: piece}, nil) {
				return
			}
		}
		end(engine.Stopped, "", nil)
	}
}

func (f *fakeEngine) Stats() engine.Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := engine.Stats{Device: "fake", Ctx: 2048, Slots: make([]engine.SlotStats, 2), WaitingFor: map[string]int{engine.ForTurn: 0},
		Cache: cache.Stats{Nodes: 3, States: 2, Tokens: 700, StateBytes: 8, ForgottenTokens: 64, EvictedStates: 1},
		Pages: cache.PageStats{Positions: 64, Total: 40, Free: 10, Held: 30, Shared: 4}, Preempted: 7,
		RestoredTokens: 32, KeptPieces: 9, KeptBytes: 4096, Decided: map[string]int64{engine.OtherSlot: 5}, PromptWaits: map[string]int64{engine.ForTokens: 6},
		Ahead: 9, Chosen: map[string]int64{engine.ByCandidates: 7}}
	s.Slots[0].Decision, s.Slots[0].Kept = engine.Decision{Why: engine.LeastMissed, Reuse: engine.OtherSlot, From: 1, Forgot: 64}, 64
	s.Slots[0].Pages = 3
	s.Slots[1].Decision, s.Slots[1].WaitsFor = engine.Decision{Why: engine.OnlySlot, Reuse: engine.OwnSlot, From: 1}, engine.ForTokens
	for i := range s.Slots {
		s.Slots[i].State = "idle"
		if i < f.active {
			s.Slots[i] = engine.SlotStats{State: "answer", Tokens: 512}
		}
	}
	return s
}

func (f *fakeEngine) Drain(ctx context.Context) error {
	for {
		f.mu.Lock()
		n := f.active
		f.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			close(f.draining)
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

func (f *fakeEngine) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}

func (f *fakeEngine) isClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// asked is how many requests there were.
func (f *fakeEngine) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.requests)
}

func (f *fakeEngine) Failed() <-chan struct{} { return f.failed }
func (f *fakeEngine) Err() error              { return f.fail }

// last returns the latest request.
func (f *fakeEngine) last() engine.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests[len(f.requests)-1]
}

func newTokenizer(v plans.Vocab) (*text.Tokenizer, error) { return text.New(v) }

// A fixture is a server with one model and what it is made of.
type fixture struct {
	t      testing.TB
	server *Server
	http   *httptest.Server
	fake   *fakeEngine
	tok    *text.Tokenizer
	ctx    int // of the model, once it is loaded
}

func newFixture(t testing.TB, change func(*Options)) *fixture {
	t.Helper()
	v, err := vocabulary()
	if err != nil {
		t.Fatal(err)
	}
	tok, err := text.New(v)
	if err != nil {
		t.Fatal(err)
	}
	x := &fixture{t: t, tok: tok, fake: newFake(tok), ctx: 2048}
	o := Options{Served: []*Served{x.served("gopher")}, Version: "test", Compat: true}
	if change != nil {
		change(&o)
	}
	x.server = New(o)
	x.http = httptest.NewServer(x.server)
	t.Cleanup(x.http.Close)
	return x
}

// served is a model of that name with the fixture's engine.
func (x *fixture) served(names ...string) *Served {
	return &Served{Names: names, Path: names[0] + ".bin", Ctx: 2048, Made: time.Unix(1700000000, 0), Bytes: 100, Open: func(context.Context) (*Model, error) {
		return x.model()
	}}
}

func (x *fixture) model() (*Model, error) {
	v, err := vocabulary()
	if err != nil {
		return nil, err
	}
	template, err := chat.New(v)
	if err != nil {
		return nil, err
	}
	return &Model{
		Header: plans.Header{Ctx: x.ctx, Slots: 2, Model: plans.Model{Arch: "qwen3", Vocab: len(v.Tokens)}}, Hash: strings.Repeat("0a", 32),
		Device: "fake", Tokenizer: x.tok, Template: template, Defaults: sample.Defaults(v.Sampling), Engine: x.fake,
	}, nil
}

// do sends a request and returns status and body.
func (x *fixture) do(method, path, body string, headers ...string) (int, string) {
	x.t.Helper()
	r, err := http.NewRequest(method, x.http.URL+path, strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// head posts a body and returns the reply's header, too.
func (x *fixture) head(path, body string) (http.Header, int, string) {
	x.t.Helper()
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	x.server.ServeHTTP(w, r)
	return w.Header(), w.Code, w.Body.String()
}

func matches(pattern, s string) bool { return regexp.MustCompile(pattern).MatchString(s) }

// get returns the value at a path of keys and indices of JSON.
func get(t *testing.T, body string, path ...any) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%s: %s", err, body)
	}
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				t.Fatalf("no object at %v of %s", path, body)
			}
			v = m[p]
		case int:
			l, ok := v.([]any)
			if !ok || p >= len(l) {
				t.Fatalf("no array of %d at %v of %s", p+1, path, body)
			}
			v = l[p]
		}
	}
	return v
}

// events returns the data of the events of a stream, without [DONE], which must end those of openai.
func events(t *testing.T, body string, done bool) []string {
	t.Helper()
	var all []string
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			all = append(all, strings.TrimSpace(data))
		}
	}
	if done {
		if len(all) == 0 || all[len(all)-1] != "[DONE]" {
			t.Fatalf("the stream does not end with [DONE]: %s", body)
		}
		all = all[:len(all)-1]
	}
	if slices.Contains(all, "[DONE]") {
		t.Fatalf("[DONE] is not at the end: %s", body)
	}
	return all
}
