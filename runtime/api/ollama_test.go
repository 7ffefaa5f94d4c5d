package api

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

// lines are the values of a stream of lines.
func lines(t *testing.T, body string) []string {
	t.Helper()
	var all []string
	for line := range strings.Lines(body) {
		if !json.Valid([]byte(line)) {
			t.Fatalf("%q is no JSON in %s", line, body)
		}
		all = append(all, line)
	}
	return all
}

func TestOllamaChat(t *testing.T) {
	x := newFixture(t, nil)
	x.fake.answers["Hello"] = "<think>\nThe user greets.\n</think>\n\nHello, gopher."
	x.fake.answers["weather"] = twoCalls
	header, status, b := x.head("/api/chat", `{"model": "gopher:latest", "messages": [{"role": "user", "content": "Hello"}], "options": {"temperature": 0.25, "num_predict": 50, "seed": 3, "stop": ["zzz"], "num_ctx": 9999, "num_gpu": 99}, "keep_alive": "5m"}`)
	if status != 200 || header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("%d %s: %s", status, header.Get("Content-Type"), b)
	}
	if left := header.Get("X-Zincrun-Left-Out"); left != "num_gpu, num_ctx" {
		t.Errorf("left out %q", left)
	}
	said, thought := "", ""
	all := lines(t, b)
	for i, line := range all {
		said += get(t, line, "message", "content").(string)
		if s, ok := get(t, line, "message").(map[string]any)["thinking"].(string); ok {
			thought += s
		}
		if done := get(t, line, "done").(bool); done != (i == len(all)-1) || get(t, line, "model") != "gopher:latest" {
			t.Errorf("line %d of %d: %s", i, len(all), line)
		}
	}
	if said != "Hello, gopher." || thought != "The user greets." {
		t.Errorf("%q, thought %q", said, thought)
	}
	if last := all[len(all)-1]; get(t, last, "done_reason") != "stop" || get(t, last, "eval_count").(float64) < 1 || get(t, last, "total_duration").(float64) < 1 {
		t.Error(last)
	}
	if r := x.fake.last(); r.Sampling.Temp != 0.25 || r.Max != 50 || r.Sampling.Seed != 3 || len(r.Stops) != 1 || r.Sampling.TopK != 20 {
		t.Errorf("%+v", r)
	}

	tools := `"tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]`
	for _, stream := range []string{"true", "false"} {
		_, b = x.do("POST", "/api/chat", `{"model": "gopher", "messages": [{"role": "user", "content": "weather"}], "stream": `+stream+`, `+tools+`}`)
		var towns []any
		for _, line := range lines(t, b) {
			calls, _ := get(t, line, "message").(map[string]any)["tool_calls"].([]any)
			for _, c := range calls {
				towns = append(towns, c.(map[string]any)["function"].(map[string]any)["arguments"].(map[string]any)["town"])
			}
		}
		if len(towns) != 2 || towns[0] != "Bern" || towns[1] != "Oslo" {
			t.Errorf("stream %s: %v: %s", stream, towns, b)
		}
	}
	// The answers of tools come without ids.
	x.do("POST", "/api/chat", `{"model": "gopher", "stream": false, "think": false, "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "get_weather", "arguments": {"town": "Bern"}}}]},
		{"role": "tool", "tool_name": "get_weather", "content": "22 degrees"}], `+tools+`}`)
	if p := x.tok.Decode(x.fake.last().Prompt, true); !strings.Contains(p, `{"town": "Bern"}`) || !strings.Contains(p, "22 degrees") || !strings.HasSuffix(p, "</think>\n\n") {
		t.Errorf("the prompt is %s", p)
	}
	_, b = x.do("POST", "/api/chat", `{"model": "gopher", "stream": false, "messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Well,"}]}`)
	if p := x.tok.Decode(x.fake.last().Prompt, true); !strings.HasSuffix(p, "Well,") {
		t.Errorf("the answer that has begun does not go on: %s: %s", p, b)
	}
}

func TestOllamaGenerate(t *testing.T) {
	x := newFixture(t, nil)
	x.fake.answers["Hello"] = "<think>\nHm.\n</think>\n\nHi."
	_, b := x.do("POST", "/api/generate", `{"model": "gopher", "prompt": "Hello", "system": "Be brief.", "stream": false}`)
	if get(t, b, "response") != "Hi." || get(t, b, "thinking") != "Hm." || get(t, b, "done") != true {
		t.Error(b)
	}
	if p := x.tok.Decode(x.fake.last().Prompt, true); !strings.Contains(p, "Be brief.") {
		t.Error(p)
	}
	_, b = x.do("POST", "/api/generate", `{"model": "gopher", "prompt": "func main", "raw": true}`)
	if p := x.tok.Decode(x.fake.last().Prompt, true); !strings.HasSuffix(p, "func main") || strings.Contains(p, "im_start") || len(lines(t, b)) < 2 {
		t.Errorf("%s: %s", p, b)
	}
	// curl's media type, and nothing to generate: the model is loaded.
	if status, b := x.do("POST", "/api/generate", `{"model": "gopher"}`, "Content-Type", "application/x-www-form-urlencoded"); status != 200 || get(t, b, "done_reason") != "load" {
		t.Errorf("%d %s", status, b)
	}
	_, b = x.do("POST", "/api/generate", `{"model": "gopher", "keep_alive": 0}`)
	if state, _ := x.server.pool.state(x.server.o.Served[0]); get(t, b, "done_reason") != "unload" || state != "unloaded" {
		t.Errorf("%s: %s", state, b)
	}
}

// TestOllamaKeepAlive: a model leaves the memory when its time is over, counted from its last use, and not while it is
// used.
func TestOllamaKeepAlive(t *testing.T) {
	x := newFixture(t, nil)
	state := func() string {
		s, _ := x.server.pool.state(x.server.o.Served[0])
		return s
	}
	chat := func(keep string) {
		t.Helper()
		if status, b := x.do("POST", "/api/chat", `{"model": "gopher", "stream": false, "messages": [{"role": "user", "content": "Hello"}], "keep_alive": `+keep+`}`); status != 200 {
			t.Fatalf("%d %s", status, b)
		}
	}
	if chat("0"); state() != "unloaded" {
		t.Error(state())
	}
	chat("0.05")
	for begun := time.Now(); state() != "unloaded"; time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > 10*time.Second {
			t.Fatal("it stays")
		}
	}
	chat(`"1h30m"`)
	if _, b := x.do("GET", "/api/ps", ""); !matches(`"expires_at":"`+time.Now().UTC().Add(90*time.Minute).Format("2006-01-02"), b) {
		t.Error(b)
	}
	chat("-1")
	if _, b := x.do("GET", "/api/ps", ""); !matches(`"expires_at":"21`, b) || state() != "loaded" {
		t.Error(b)
	}
	if status, b := x.do("POST", "/api/chat", `{"model": "gopher", "messages": [], "keep_alive": "soon"}`); status != 400 || !strings.Contains(b, "keep_alive: want seconds") {
		t.Errorf("%d %s", status, b)
	}
}

// shelf is a library of tests.
type shelf struct{ pulled, deleted string }

func (s *shelf) Pull(_ context.Context, name string, progress func(Pulling)) error {
	progress(Pulling{Step: "pulling", File: "a.gguf", Done: 1, Total: 2})
	if s.pulled = name; name == "none" {
		return errors.New("there is no such model")
	}
	return nil
}

func (s *shelf) Delete(_ context.Context, name string) error { s.deleted = name; return nil }

func TestOllamaModels(t *testing.T) {
	s := &shelf{}
	x := newFixture(t, func(o *Options) { o.Library, o.Loopback = s, true })
	_, b := x.do("GET", "/api/version", "")
	if get(t, b, "version") != ollamaVersion {
		t.Error(b)
	}
	x.do("POST", "/v1/chat/completions", body(""))
	_, b = x.do("GET", "/api/tags", "")
	if get(t, b, "models", 0, "name") != "gopher" || get(t, b, "models", 0, "details", "format") != "gguf" || len(get(t, b, "models", 0, "digest").(string)) != 64 {
		t.Error(b)
	}
	file := &Served{Names: []string{"file"}, Path: "../../testdata/models/gopher-chat-q4_k_m.gguf"}
	if d := x.server.row(file, nil).Details; d.Family != "qwen3" || d.Parameters != "20M" || d.Quantization != "Q4_K" {
		t.Errorf("%+v", d)
	}
	_, b = x.do("GET", "/api/ps", "")
	if get(t, b, "models", 0, "model") != "gopher" || get(t, b, "models", 0, "context_length") != 2048.0 {
		t.Error(b)
	}
	_, b = x.do("POST", "/api/show", `{"name": "gopher"}`)
	if c := get(t, b, "capabilities").([]any); len(c) != 3 || c[1] != "tools" || c[2] != "thinking" || get(t, b, "model_info", "qwen3.context_length") != 2048.0 || get(t, b, "template") == "" {
		t.Error(b)
	}
	_, b = x.do("POST", "/api/pull", `{"model": "qwen3:8b"}`)
	if all := lines(t, b); s.pulled != "qwen3:8b" || len(all) != 3 || get(t, all[1], "total") != 2.0 || get(t, all[2], "status") != "success" {
		t.Error(b)
	}
	if status, b := x.do("POST", "/api/pull", `{"model": "none", "stream": false}`); status != 400 || get(t, b, "error") != "there is no such model" {
		t.Errorf("%d %s", status, b)
	}
	if _, b = x.do("POST", "/api/pull", `{"model": "none"}`); get(t, lines(t, b)[2], "error") != "there is no such model" {
		t.Error(b)
	}
	if status, b := x.do("DELETE", "/api/delete", `{"model": "gopher"}`); status != 200 || s.deleted != "gopher" {
		t.Errorf("%d %s", status, b)
	}
}

// TestDescribe: what /api/show says of a model that is not loaded is in its file.
func TestDescribe(t *testing.T) {
	x := newFixture(t, nil)
	x.server.o.Served[0].Path = "../../testdata/models/gopher-chat-q4_k_m.gguf"
	_, b := x.do("POST", "/api/show", `{"model": "gopher"}`)
	if get(t, b, "details", "family") != "qwen3" || get(t, b, "details", "parameter_size") != "20M" || get(t, b, "model_info", "qwen3.context_length") != 2048.0 ||
		get(t, b, "details", "quantization_level") != "Q4_K" || len(get(t, b, "capabilities").([]any)) != 3 {
		t.Error(b[:min(len(b), 300)], b[max(0, len(b)-500):])
	}
}

func TestOllamaRefusals(t *testing.T) {
	x := newFixture(t, nil)
	for _, c := range []struct {
		method, path, body, say string
		status                  int
	}{
		{"POST", "/api/chat", `{"messages": []}`, "model is missing", 400},
		{"POST", "/api/chat", `{"model": "none", "messages": [{"role": "user", "content": "a"}]}`, "there is no model", 404},
		{"POST", "/api/chat", `{"model": "gopher", "messages": [{"role": "user", "content": "a", "images": ["x"]}]}`, "images are not supported", 400},
		{"POST", "/api/chat", `{"model": "gopher", "messages": [{"role": "robot"}]}`, "messages[0].role", 400},
		{"POST", "/api/chat", `{"model": "gopher", "format": "yaml", "messages": [{"role": "user", "content": "a"}]}`, "format", 400},
		{"POST", "/api/chat", `{"model": "gopher", "options": {"mirostat": 1}, "messages": [{"role": "user", "content": "a"}]}`, "options.mirostat", 400},
		{"POST", "/api/chat", `{"model": "gopher", "options": {"temperature": "x"}, "messages": [{"role": "user", "content": "a"}]}`, "options.temperature", 400},
		{"POST", "/api/chat", `{"model": "gopher", "think": 5, "messages": [{"role": "user", "content": "a"}]}`, "think", 400},
		{"POST", "/api/generate", `{"model": "gopher", "prompt": "a", "template": "x"}`, "template", 400},
		{"POST", "/api/generate", `{"model": "gopher", "prompt": "a", "context": [1]}`, "context", 400},
		{"POST", "/api/generate", `{"model": "gopher", "prompt": "a", "suffix": "b"}`, "gaps", 400},
		{"POST", "/api/embed", `{"model": "gopher", "input": "a"}`, "makes no vectors", 400},
		{"POST", "/api/embed", `{"model": "gopher", "input": []}`, "input is missing", 400},
		{"POST", "/api/show", `{}`, "model is missing", 400},
		{"POST", "/api/pull", `{"model": "a"}`, "", 403},
		{"DELETE", "/api/delete", `{"model": "gopher"}`, "", 403},
		{"POST", "/api/create", `{"model": "a"}`, "not supported", 501},
		{"POST", "/api/nothing", `{}`, "there is no", 404},
		{"GET", "/api/chat", ``, "is not for", 405},
		{"POST", "/api/chat", `{`, "not JSON", 400},
	} {
		status, b := x.do(c.method, c.path, c.body)
		if s, ok := get(t, b, "error").(string); !ok || status != c.status || !strings.Contains(s, c.say) {
			t.Errorf("%s %s: %d %s, want %d", c.path, c.body, status, b, c.status)
		}
	}
	if len(x.fake.requests) > 0 {
		t.Errorf("%d bad requests came to the engine", len(x.fake.requests))
	}
}

func TestLlamaCompletion(t *testing.T) {
	x := newFixture(t, nil)
	x.fake.answers[""] = "a\nb c"
	_, b := x.do("POST", "/completion", `{"prompt": "x", "n_predict": 5, "n_probs": 2, "temperature": 0.5, "return_tokens": true}`)
	if get(t, b, "content") != "a\nb c" || get(t, b, "stop") != true || get(t, b, "stop_type") != "eos" || get(t, b, "has_new_line") != true || get(t, b, "prompt") != "x" ||
		get(t, b, "generation_settings", "temperature") != 0.5 || len(get(t, b, "completion_probabilities").([]any)) != len(get(t, b, "tokens").([]any)) {
		t.Error(b)
	}
	_, b = x.do("POST", "/completion", `{"prompt": [1, 2], "stop": ["b"], "stream": true}`)
	all := events(t, b, false)
	said := ""
	for i, e := range all {
		if said += get(t, e, "content").(string); get(t, e, "stop").(bool) != (i == len(all)-1) {
			t.Error(e)
		}
	}
	if last := all[len(all)-1]; said != "a\n" || get(t, last, "stop_type") != "word" || get(t, last, "stopping_word") != "b" {
		t.Errorf("%q: %s", said, last)
	}
	for _, c := range []struct{ path, body, param string }{
		{"/completion", `{}`, "prompt"}, {"/completion", `{"prompt": ["a", "b"]}`, "prompt"}, {"/completion", `{"prompt": "a", "grammar": "root ::= x"}`, "grammar"},
		{"/completion", `{"prompt": "a", "n": 2}`, "n"}, {"/completion", `{"prompt": "a", "n_probs": 99}`, "n_probs"}, {"/completion", `{"prompt": "a", "mirostat": 2}`, "mirostat"},
		{"/infill", `{"input_prefix": "a", "input_suffix": "b"}`, "model"}, {"/v1/rerank", `{"query": "a", "documents": ["b"]}`, "model"}, {"/rerank", `{}`, "query"},
	} {
		if status, b := x.do("POST", c.path, c.body); status != 400 || get(t, b, "error", "param") != c.param {
			t.Errorf("%s %s: %d %s", c.path, c.body, status, b)
		}
	}
}

func TestGap(t *testing.T) {
	v, err := vocabulary()
	if err != nil {
		t.Fatal(err)
	}
	v.Tokens = append(v.Tokens[:len(v.Tokens):len(v.Tokens)], "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>")
	v.Types = append(v.Types[:len(v.Types):len(v.Types)], 3, 3, 3, 3)
	x := newFixture(t, nil)
	if x.tok, err = newTokenizer(v); err != nil {
		t.Fatal(err)
	}
	x.fake.tok = x.tok
	x.do("POST", "/infill", `{"input_prefix": "func a() {", "input_suffix": "}", "prompt": "\tb", "input_extra": [{"filename": "b.go", "text": "func b() {}"}], "n_predict": 4}`)
	if p := x.tok.Decode(x.fake.last().Prompt, true); p != "<|file_sep|>b.go\nfunc b() {}<|file_sep|>file\n<|fim_prefix|>func a() {<|fim_suffix|>}<|fim_middle|>\tb" {
		t.Errorf("the prompt is %q", p)
	}
	// What is near the gap counts.
	long := strings.Repeat("x y z ", 2000)
	x.do("POST", "/infill", `{"input_prefix": "`+long+`near", "input_suffix": "close`+long+`", "n_predict": 100}`)
	r := x.fake.last()
	if p := x.tok.Decode(r.Prompt, true); len(r.Prompt) > 1948 || len(r.Prompt) < 1900 || !strings.Contains(p, "near<|fim_suffix|>close") {
		t.Errorf("%d tokens", len(r.Prompt))
	}
	_, b := x.do("POST", "/api/generate", `{"model": "gopher", "prompt": "a", "suffix": "b", "stream": false}`)
	if p := x.tok.Decode(x.fake.last().Prompt, true); p != "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>" {
		t.Errorf("%q: %s", p, b)
	}
}

func TestAnyModel(t *testing.T) {
	x := newFixture(t, func(o *Options) { o.AnyModel, o.System = true, "Be brief." })
	status, b := x.do("POST", "/v1/chat/completions", strings.Replace(body(""), "gopher", "gpt-4o", 1))
	if status != 200 || get(t, b, "model") != "gpt-4o" {
		t.Errorf("%d %s", status, b)
	}
	if p := x.tok.Decode(x.fake.last().Prompt, true); !strings.Contains(p, "system\nBe brief.") {
		t.Errorf("no system prompt in %s", p)
	}
	x.do("POST", "/v1/chat/completions", `{"messages": [{"role": "system", "content": "Be long."}, {"role": "user", "content": "a"}]}`)
	if p := x.tok.Decode(x.fake.last().Prompt, true); strings.Contains(p, "Be brief.") {
		t.Errorf("a system prompt of ours beside one of the client's: %s", p)
	}
	two := newFixture(t, func(o *Options) {
		o.AnyModel = true
		o.Served = append(o.Served, &Served{Names: []string{"other"}, Open: o.Served[0].Open})
	})
	if status, _ := two.do("POST", "/v1/chat/completions", strings.Replace(body(""), "gopher", "gpt-4o", 1)); status != 404 {
		t.Errorf("two models, none loaded: %d", status)
	}
	two.do("POST", "/v1/chat/completions", body(""))
	if status, _ := two.do("POST", "/v1/chat/completions", strings.Replace(body(""), "gopher", "gpt-4o", 1)); status != 200 {
		t.Errorf("two models, one loaded: %d", status)
	}
}

func TestForeignHost(t *testing.T) {
	x := newFixture(t, func(o *Options) { o.Loopback, o.Hosts = true, []string{"models.example"} })
	for host, want := range map[string]int{"models.example": 200, "models.example:80": 200, "other.example": 403, "localhost": 200} {
		status, b := x.do("GET", "/v1/models", "", "Host", host)
		if status != want || status == 403 && !strings.Contains(b, "--allow-host other.example") {
			t.Errorf("%s: %d %s", host, status, b)
		}
	}
}
