package conform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

// schemas are those of OpenAI's description, or of the reduced copy.
var schemas = sync.OnceValues(func() (func(name string) (*jsonschema.Schema, error), error) {
	path := *openapi
	if path == "" {
		path = "testdata/openapi.yml"
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var doc any
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	doc = plain(doc)
	if err := patch(doc); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("file:///openapi.json", doc); err != nil {
		return nil, err
	}
	compiled := map[string]*jsonschema.Schema{}
	var mu sync.Mutex
	return func(name string) (*jsonschema.Schema, error) {
		mu.Lock()
		defer mu.Unlock()
		if s := compiled[name]; s != nil {
			return s, nil
		}
		s, err := c.Compile("file:///openapi.json#/components/schemas/" + name)
		compiled[name] = s
		return s, err
	}, nil
})

// patch lets events of completions have null as finish_reason until the end: OpenAI's own have, and
// its description, which has one schema for replies and events, forgets it.
func patch(doc any) error {
	v := doc
	for _, key := range []string{"components", "schemas", "CreateCompletionResponse", "properties", "choices", "items", "properties"} {
		m, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("no %s in the schema of completions", key)
		}
		v = m[key]
	}
	choice := v.(map[string]any)
	choice["finish_reason"] = map[string]any{"anyOf": []any{choice["finish_reason"], map[string]any{"type": "null"}}}
	return nil
}

// plain makes of YAML what encoding/json would make of JSON, without keywords that newer drafts do not have.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "$recursiveAnchor")
		for k, x := range v {
			v[k] = plain(x)
		}
		if v["nullable"] == true { // as version 3.0 said it
			delete(v, "nullable")
			return map[string]any{"anyOf": []any{v, map[string]any{"type": "null"}}}
		}
		return v
	case []any:
		for i, x := range v {
			v[i] = plain(x)
		}
		return v
	case int:
		return json.Number(fmt.Sprint(v))
	case float64:
		return json.Number(fmt.Sprint(v))
	case string, bool, nil:
		return v
	}
	return fmt.Sprint(v)
}

// valid fails unless a JSON text is what the schema of that name describes.
func valid(t testing.TB, name string, text []byte) {
	t.Helper()
	find, err := schemas()
	if err != nil {
		t.Fatal(err)
	}
	schema, err := find(name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Errorf("%s: %s: %s", name, err, text)
		return
	}
	if err := schema.Validate(v); err != nil {
		t.Errorf("%s: %s: %s", name, err, text)
	}
}

// described are the schemas of replies and of events, by path.
var described = map[string]struct{ reply, event string }{
	"/v1/chat/completions": {"CreateChatCompletionResponse", "CreateChatCompletionStreamResponse"},
	"/v1/completions":      {"CreateCompletionResponse", "CreateCompletionResponse"},
	"/v1/responses":        {"Response", "ResponseStreamEvent"},
	"/v1/embeddings":       {"CreateEmbeddingResponse", ""},
	"/v1/models":           {"ListModelsResponse", ""},
	"/v1/models/":          {"Model", ""},
}

// A checker is a transport that validates all that comes from the server.
type checker struct {
	t       testing.TB
	headers map[string]string
	seen    map[string]int
	mu      sync.Mutex
}

func (c *checker) RoundTrip(r *http.Request) (*http.Response, error) {
	for k, v := range c.headers {
		r.Header.Set(k, v)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	path := r.URL.Path
	if rest, ok := strings.CutPrefix(path, "/v1/models/"); ok && rest != "" {
		path = "/v1/models/"
	}
	d, ok := described[path]
	if !ok {
		return resp, nil
	}
	resp.Body = &checked{ReadCloser: resp.Body, done: func(body []byte) { c.check(resp, d.reply, d.event, body) }}
	return resp, nil
}

func (c *checker) check(resp *http.Response, reply, event string, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	if resp.StatusCode >= 400 {
		c.seen["error"]++
		valid(c.t, "ErrorResponse", body)
		return
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		c.seen[reply]++
		valid(c.t, reply, body)
		return
	}
	// An event that was cut off is left out.
	blocks := strings.Split(string(body), "\n\n")
	for _, block := range blocks[:len(blocks)-1] {
		for line := range strings.Lines(block) {
			if data, ok := strings.CutPrefix(line, "data: "); ok && strings.TrimSpace(data) != "[DONE]" {
				c.seen[event]++
				valid(c.t, event, []byte(data))
			}
		}
	}
}

// checked is a body that is looked at when it is closed.
type checked struct {
	io.ReadCloser
	read bytes.Buffer
	done func([]byte)
	once sync.Once
}

func (b *checked) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.Write(p[:n])
	return n, err
}

func (b *checked) Close() error {
	b.once.Do(func() { b.done(b.read.Bytes()) })
	return b.ReadCloser.Close()
}

// The schemas refuse what is wrong: a check that accepts all checks nothing.
func TestSchemasRefuse(t *testing.T) {
	find, err := schemas()
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"CreateChatCompletionResponse":       `{"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "x"}, "logprobs": null}]}`,
		"CreateChatCompletionStreamResponse": `{"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, "delta": {}}]}`,
		"CreateCompletionResponse":           `{"id": "a", "object": "text_completion", "created": 1, "model": "m", "choices": [{"index": 0, "text": 5, "finish_reason": "stop", "logprobs": null}]}`,
		"Response":                           `{"id": "r", "object": "response"}`,
		"ResponseStreamEvent":                `{"type": "response.output_text.delta", "delta": "x"}`,
		"ErrorResponse":                      `{"error": {"message": "x", "type": "y"}}`,
		"ListModelsResponse":                 `{"object": "list", "data": [{"id": "x"}]}`,
		"Model":                              `{"id": "x"}`,
	} {
		schema, err := find(name)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(bad))
		if err != nil {
			t.Fatal(err)
		}
		if schema.Validate(v) == nil {
			t.Errorf("%s accepts %s", name, bad)
		}
	}
}
