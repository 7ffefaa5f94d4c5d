package main

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/internal/hosted"
	"github.com/zincc-dev/zincc/runtime/api"
)

// TestSoakServer is a short soak of the server with a model on this processor, with -short a shorter one.
func TestSoakServer(t *testing.T) {
	server := httptest.NewServer(hosted.Serve(t, "gopher-chat", 256, 4, api.Options{Loopback: true}))
	defer server.Close()
	requests := 200
	if testing.Short() {
		requests = 60
	}
	s := newSoak(t, server.URL, requests)
	s.rest = 20 * time.Second
	if err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.verdict(); err != nil {
		t.Error(err)
	}
	if len(s.left) < 5 {
		t.Errorf("the server tells only %+v", s.left)
	}
}

// TestMeasureServer: what a measurement counts is what the server did, of models with attention alone and with
// recurrent state.
func TestMeasureServer(t *testing.T) {
	const piece, behind = 64, 100 // tokens: a prompt's largest entry reads a piece
	for _, name := range []string{"gopher-chat", "gopher-moe"} {
		server := httptest.NewServer(hosted.Serve(t, name, 256, 4, api.Options{Loopback: true}))
		defer server.Close()
		c, err := newClient(server.URL, "", false)
		if err != nil {
			t.Fatal(err)
		}
		p, err := newPrompts(t.Context(), c, 1)
		if err != nil {
			t.Fatal(err)
		}
		r, err := load{users: 2, requests: 2, limit: time.Minute, prompt: 3, answer: 4, behind: behind}.run(t.Context(), c, p, func() {})
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.traces {
			first, second := r.first[i], r.traces[i]
			if first.err != nil || second.err != nil {
				t.Fatal(first.err, second.err)
			}
			if first.prompt != behind || first.completion != firstAnswer || len(first.ids) != firstAnswer || first.cached != 0 {
				t.Errorf("%s, first turn: %d tokens, %d of them cached, answer of %d, %d ids", name, first.prompt, first.cached, first.completion, len(first.ids))
			}
			// Whole pieces of prompts alone are reused, so that the bits are those of a run without cache.
			if second.prompt != behind+firstAnswer+3 || second.completion != 4 || second.cached < piece || second.cached >= behind {
				t.Errorf("%s, second turn: %d tokens, %d of them cached, answer of %d", name, second.prompt, second.cached, second.completion)
			}
		}
	}
}

// TestAsked: questions go through the chat template, each is another one, and a schema holds for the answers.
func TestAsked(t *testing.T) {
	server := httptest.NewServer(hosted.Serve(t, "gopher-chat", 256, 4, api.Options{Loopback: true}))
	defer server.Close()
	c, err := newClient(server.URL, "", false)
	if err != nil {
		t.Fatal(err)
	}
	want, err := c.tokenize(t.Context(), "<|im_start|>user\n"+fmt.Sprintf(listPeople, 7<<16)+"<|im_end|>\n<|im_start|>assistant\n")
	if err != nil {
		t.Fatal(err)
	}
	have, err := c.rendered(t.Context(), []message{{Role: "user", Content: fmt.Sprintf(listPeople, 7<<16)}}, map[string]bool{"enable_thinking": false})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index(have, want[0]) // behind a system prompt, if there is one
	for at >= 0 && at < len(have) && !slices.Equal(have[at:][:min(len(want), len(have)-at)], want) {
		next := slices.Index(have[at+1:], want[0])
		if at += 1 + next; next < 0 {
			at = -1
		}
	}
	if at < 0 {
		t.Errorf("%d are not %d", have, want)
	}
	l := load{users: 2, requests: 2, limit: time.Minute, answer: 12, question: listPeople, schema: people, seed: 7}
	r, err := l.run(t.Context(), c, nil, func() {})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range r.traces {
		if one.err != nil || one.prompt != len(have) || one.completion != 12 || !strings.HasPrefix(strings.TrimSpace(one.text), "[") {
			t.Errorf("%d tokens of %d, %q: %v", one.prompt, len(have), one.text, one.err)
		}
	}
}
