package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/internal/hosted"
	"github.com/zincc-dev/zincc/runtime/api"
)

// A chatServer answers conversations with an event that says who speaks, and later with tokens; a byte is a token.
type chatServer struct {
	wait  time.Duration
	asked [][]message
}

func (f *chatServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Content  string
		Messages []message
		Max      int `json:"max_tokens"`
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if r.URL.Path == "/tokenize" {
		json.NewEncoder(w).Encode(map[string]any{"tokens": make([]int, len(q.Content))})
		return
	}
	f.asked = append(f.asked, q.Messages)
	prompt := 0
	for _, m := range q.Messages {
		prompt += len(m.Content)
	}
	io.WriteString(w, `data: {"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}`+"\n\n")
	http.NewResponseController(w).Flush()
	time.Sleep(f.wait)
	fmt.Fprintf(w, `data: {"choices":[{"delta":{"content":%q},"finish_reason":null}]}`+"\n\n", strings.Repeat("x", q.Max))
	io.WriteString(w, `data: {"choices":[{"delta":{},"finish_reason":"length"}]}`+"\n\n")
	fmt.Fprintf(w, `data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`+"\n\ndata: [DONE]\n\n", prompt, q.Max)
}

// newTurns are of a server, with short answers.
func newTurns(t *testing.T, h http.Handler) *turns {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := newClient(server.URL, "", false)
	if err != nil {
		t.Fatal(err)
	}
	o := &turns{client: c, requests: 3, fresh: 20, answer: 4, limit: time.Minute}
	if o.texts, err = newTexts(t.Context(), c, 1); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestTurnsOfAnAgent holds what an agent's turns say, how they grow and how they go back.
func TestTurnsOfAnAgent(t *testing.T) {
	f := &chatServer{wait: 20 * time.Millisecond}
	o := newTurns(t, f)
	all, err := o.agent(t.Context(), turnCase{behind: 500, until: 2500, turns: 9, forks: 5})
	if err != nil {
		t.Fatal(err)
	}
	for i, trace := range all {
		if len(trace.times) != 1 || trace.times[0] < f.wait {
			t.Errorf("turn %d: pieces at %v: the event that says who speaks is none", i, trace.times)
		}
		if want := 500 + 250*i; trace.prompt < want*8/10 || trace.prompt > want*12/10 {
			t.Errorf("turn %d has %d tokens, want about %d", i, trace.prompt, want)
		}
		want := 1 + 2*i
		if i >= 5 {
			want -= 4
		}
		said := f.asked[i]
		if len(said) != want {
			t.Fatalf("turn %d has %d messages, want %d", i, len(said), want)
		}
		for k, m := range said {
			switch {
			case k == 0 && m.Role != "user",
				k%2 == 1 && (m.Role != "assistant" || m.Content != strings.Repeat("x", 16)),
				k > 0 && k%2 == 0 && (m.Role != "tool" || m.CallID != said[k-1].Calls[0].ID):
				t.Errorf("turn %d, message %d: %+v", i, k, m)
			}
			if i > 0 && i != 5 && k < len(f.asked[i-1]) && m.Content != f.asked[i-1][k].Content {
				t.Errorf("turn %d, message %d is another than before", i, k)
			}
		}
	}
}

// TestTurnsBehind holds that turns go on from what was said, each with another message.
func TestTurnsBehind(t *testing.T) {
	f := &chatServer{}
	o := newTurns(t, f)
	if _, err := o.behind(t.Context(), turnCase{system: 300}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.behind(t.Context(), turnCase{behind: 400}); err != nil {
		t.Fatal(err)
	}
	texts := map[string]bool{}
	for i, said := range f.asked {
		want, before := 2, f.asked[0][:1]
		if i >= 4 { // the second case: one conversation
			want, before = 1+2*(i-4), nil
		}
		if i > 4 {
			before = f.asked[i-1]
		}
		if len(said) != want || !slices.EqualFunc(said[:len(before)], before, func(a, b message) bool { return a.Content == b.Content }) {
			t.Errorf("request %d has %d messages, want %d, which go on from those before", i, len(said), want)
		}
		if last := said[len(said)-1]; last.Role != "user" || texts[last.Content] {
			t.Errorf("request %d ends with %+v, which is not new", i, last)
		} else {
			texts[last.Content] = true
		}
	}
}

// TestTurnsOfServer: a server with a model on this processor has in its cache what the turns come behind.
func TestTurnsOfServer(t *testing.T) {
	o := newTurns(t, hosted.Serve(t, "gopher-chat", 512, 2, api.Options{Loopback: true}))
	for _, c := range []turnCase{{system: 150}, {behind: 150}} {
		all, err := o.behind(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for i, trace := range all {
			if trace.prompt < 150 || trace.cached < 64 || trace.cached > trace.prompt {
				t.Errorf("%+v, turn %d: %d tokens, %d of them cached", c, i, trace.prompt, trace.cached)
			}
		}
	}
}
