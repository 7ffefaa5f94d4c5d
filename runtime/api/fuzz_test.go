package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Whatever comes as a body, the answer is JSON, and never says that we failed.
func FuzzBodies(f *testing.F) {
	for _, s := range []string{
		body(""), body(weather), body(`, "stream": true, "n": 2, "logprobs": true`), body(`, "logit_bias": [[5, false], ["a", 1.5]], "stop": ["x"], "samplers": ["top_k"]`),
		`{"prompt": [[1, 2], [3]], "echo": true, "max_tokens": 3}`, `{"prompt": "a", "stream": true, "logprobs": 3}`,
		`{"input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}]}, {"type": "function_call", "name": "f", "call_id": "1", "arguments": "{}"}, {"type": "function_call_output", "call_id": "1", "output": "x"}], "stream": true}`,
		`{"max_tokens": 9, "system": [{"type": "text", "text": "s"}], "messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "x"}]}]}`,
		`{"messages": [{"role": "assistant", "content": null, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{"}}]}]}`,
		`{"model": "gopher", "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}, {"role": "tool", "content": "x"}], "options": {"num_predict": 3}, "think": "low"}`,
		`{"model": "gopher", "prompt": "a", "raw": true, "stream": false}`, `{"prompt": "a", "n_probs": 2, "n_predict": 3}`, `{"input_prefix": "a", "input_suffix": "b", "input_extra": [{"text": "c"}]}`,
		`{"input": [{"type": "custom_tool_call", "call_id": "1", "name": "f", "input": "x"}, {"id": "a"}], "tools": [{"type": "namespace", "name": "n", "tools": [{"type": "custom", "name": "f"}]}], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "custom", "name": "f", "namespace": "n"}]}}`,
		`{"content": "a", "with_pieces": true}`, `{"tokens": [1, 2]}`, `[1e999]`, `{"a":{"a":{"a":[[[[]]]]}}}`, `{"messages": "\ud800"}`,
	} {
		f.Add([]byte(s))
	}
	x := newFixture(f, nil)
	paths := []string{"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens", "/v1/chat/completions/render", "/v1/completions/render", "/tokenize", "/detokenize", "/apply-template",
		"/v1/responses/input_tokens", "/api/chat", "/api/generate", "/api/embed", "/api/show", "/completion", "/infill"}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, path := range paths {
			r := httptest.NewRequest("POST", path, bytes.NewReader(raw))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			x.server.ServeHTTP(w, r)
			if w.Code >= 500 {
				t.Fatalf("%s: %d %s", path, w.Code, w.Body)
			}
			if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
				checkEvents(t, w.Body.String())
			} else if w.Header().Get("Content-Type") == "application/x-ndjson" {
				lines(t, w.Body.String())
			} else if !json.Valid(w.Body.Bytes()) {
				t.Fatalf("%s: %d not JSON: %s", path, w.Code, w.Body)
			}
		}
	})
}

// checkEvents fails unless a stream is what the standard says of events with data of JSON.
func checkEvents(t *testing.T, stream string) {
	t.Helper()
	if !strings.HasSuffix(stream, "\n\n") {
		t.Fatalf("the last event has no end: %q", stream)
	}
	for block := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		data := 0
		for line := range strings.SplitSeq(block, "\n") {
			field, value, ok := strings.Cut(line, ":")
			switch {
			case !ok || field != "" && field != "event" && field != "data":
				t.Fatalf("line %q", line)
			case field == "data":
				data++
				if v := strings.TrimSpace(value); v != "[DONE]" && !json.Valid([]byte(v)) {
					t.Fatalf("data %q", value)
				}
			}
		}
		if data > 1 || data == 0 && !strings.HasPrefix(block, ":") {
			t.Fatalf("event %q has %d data", block, data)
		}
	}
}

// Text of any kind goes through an event and comes out as it was, as far as it is UTF-8.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{"a", "a\nb\r\n\r\nc", "data: x\n\n", "\u2028\u2029\x00\x7f", "<script>&", "\xff\xfe", "é😀"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w := httptest.NewRecorder()
		s := newStream(http.ResponseWriter(w))
		if err := s.data("", map[string]string{"text": text}); err != nil {
			t.Fatal(err)
		}
		out := w.Body.String()
		checkEvents(t, out)
		var back struct{ Text string }
		if err := json.Unmarshal([]byte(strings.TrimPrefix(out, "data: ")), &back); err != nil {
			t.Fatal(err)
		}
		if back.Text != strings.ToValidUTF8(text, "\ufffd") && back.Text != strings.Map(func(r rune) rune { return r }, text) {
			t.Errorf("%q became %q", text, back.Text)
		}
	})
}
