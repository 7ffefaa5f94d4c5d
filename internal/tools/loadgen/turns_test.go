package main

import (
	"context"
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

// A chatServer answers conversations with an event that says who speaks, and later with tokens, whose text is three
// times as many when it is read; a byte is a token.
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
		ids := []int{}
		for _, b := range []byte(q.Content) {
			ids = append(ids, int(b))
		}
		json.NewEncoder(w).Encode(map[string]any{"tokens": ids})
		return
	}
	prompt := ""
	for _, m := range q.Messages {
		prompt += "<" + m.Content + ">"
	}
	if r.URL.Path == "/apply-template" {
		json.NewEncoder(w).Encode(map[string]any{"prompt": prompt})
		return
	}
	f.asked = append(f.asked, q.Messages)
	io.WriteString(w, `data: {"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}`+"\n\n")
	http.NewResponseController(w).Flush()
	time.Sleep(f.wait)
	fmt.Fprintf(w, `data: {"choices":[{"delta":{"content":%q},"finish_reason":null}]}`+"\n\n", strings.Repeat("x", 3*q.Max))
	io.WriteString(w, `data: {"choices":[{"delta":{},"finish_reason":"length"}]}`+"\n\n")
	fmt.Fprintf(w, `data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`+"\n\ndata: [DONE]\n\n", len(prompt), q.Max)
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
		if want := 500 + 250*i; i == 0 && (trace.prompt < want*9/10 || trace.prompt > want*11/10) || i > 0 && trace.prompt != want {
			t.Errorf("turn %d has %d tokens, want %d", i, trace.prompt, want)
		}
		// It goes on from the turn before, and once from that before two others.
		from := i - 1
		if i == 5 {
			from = 2
		}
		if i > 0 && trace.fresh != trace.prompt-all[from].prompt {
			t.Errorf("turn %d has %d tokens that are new, want %d", i, trace.fresh, trace.prompt-all[from].prompt)
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
	first, err := o.conversations(t.Context(), turnCase{system: 300})
	if err != nil {
		t.Fatal(err)
	}
	second, err := o.behind(t.Context(), turnCase{behind: 400})
	if err != nil {
		t.Fatal(err)
	}
	asked := f.asked
	for i, trace := range slices.Concat(first, second) {
		if trace.fresh != o.fresh {
			t.Errorf("turn %d has %d new tokens, want %d", i, trace.fresh, o.fresh)
		}
	}
	f.asked = nil
	third, err := o.behind(t.Context(), turnCase{behind: 400, talks: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i, said := range f.asked { // two first requests, then turns of both
		if want := 1 + 2*(i/2); len(said) != want || said[0].Content != f.asked[i%2][0].Content || i >= 2 && third[i-2].fresh != o.fresh {
			t.Errorf("request %d of two conversations has %d messages, want %d", i, len(said), want)
		}
	}
	o.fresh = 8
	if _, err := o.behind(t.Context(), turnCase{behind: 400}); err == nil || !strings.Contains(err.Error(), "take 8 of a turn's 8 tokens") {
		t.Errorf("without room for a message: %v", err)
	}
	f.asked = asked
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
	o.fresh = 40 // the template has 10 of it
	for _, c := range []struct {
		of   func(context.Context, turnCase) ([]turn, error)
		size turnCase
	}{{o.conversations, turnCase{system: 150}}, {o.behind, turnCase{behind: 150}}} {
		all, err := c.of(t.Context(), c.size)
		if err != nil {
			t.Fatal(err)
		}
		for i, trace := range all {
			if trace.prompt < 150 || trace.cached < 64 || trace.cached > trace.prompt || trace.fresh != o.fresh {
				t.Errorf("%+v, turn %d: %d tokens, %d of them cached, %d new", c.size, i, trace.prompt, trace.cached, trace.fresh)
			}
		}
	}
}
