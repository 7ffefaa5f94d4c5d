package main

import (
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/internal/hosted"
	"github.com/zincc-dev/zincc/runtime/api"
)

// TestRows asks zincrun's server every row.
func TestRows(t *testing.T) {
	s := site{name: zincrun}
	for url, keys := range map[*string][]api.Key{&s.open: nil, &s.keyed: {{Key: key}}} {
		server := httptest.NewServer(hosted.Serve(t, "gopher-chat", ctx, 2, api.Options{Loopback: true, Keys: keys, Version: "test"}))
		t.Cleanup(server.Close)
		*url = server.URL
	}
	for _, r := range rows {
		for _, wrong := range try(t.Context(), r, s) {
			t.Errorf("%s: %s: %s", r.group, r.name, wrong)
		}
	}
	if len(rows) < 100 {
		t.Errorf("only %d rows", len(rows))
	}
}

// TestWrong: what a row does not want is seen.
func TestWrong(t *testing.T) {
	server := httptest.NewServer(hosted.Serve(t, "gopher-chat", 256, 1, api.Options{Loopback: true}))
	t.Cleanup(server.Close)
	ask := func(t *trial) {
		t.get("/health").code(201).eq("status", "no").says("status", "").size("status", 2).is(false, "not so").fails(404)
		t.completion(`{"prompt": "a", "max_tokens": 1, "stream": true}`).eq("done", false).eq("events.9.choices", []int{})
	}
	wrong := try(t.Context(), row{"", "", "", ask}, site{zincrun, server.URL, ""})
	if len(wrong) != 9 {
		t.Errorf("%d: %s", len(wrong), strings.Join(wrong, "\n"))
	}
	if wrong := try(t.Context(), row{"", "", "", ask}, site{zincrun, "http://127.0.0.1:1", ""}); len(wrong) < 2 {
		t.Errorf("nobody listens, and that is right: %q", wrong)
	}
}

// TestDifferences: the document lists the rows in which the servers differ.
func TestDifferences(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/serving.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "<!-- differences -->\n")
	have, _, _ := strings.Cut(rest, "<!-- end -->")
	if have != differences() {
		t.Errorf("docs/serving.md has not the table that `go run ./internal/tools/peerapi differences` prints:\n%s", differences())
	}
}
