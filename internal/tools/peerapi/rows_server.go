package main

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// rows are all things asked of both servers, which serve gopher-chat in two slots.
var rows = append(append(append(serverRows, textRows...), completionRows...), chatRows...)

var serverRows = []row{
	{"server", "health", "", func(t *trial) {
		for _, path := range []string{"/health", "/v1/health"} {
			t.get(path).code(200).eq("status", "ok")
		}
	}},
	{"server", "props", "", func(t *trial) {
		r := t.get("/props").code(200).eq("total_slots", 2).eq("default_generation_settings.params.top_k", 20).eq("eos_token", "<|im_end|>")
		r.is(r.num("default_generation_settings.n_ctx") == ctx, "want n_ctx").is(strings.Contains(r.str("chat_template"), "<|im_start|>"), "want chat_template")
		r.is(r.str("model_path") != "" && r.str("build_info") != "", "want model_path and build_info")
	}},
	{"server", "models", "", func(t *trial) {
		for _, path := range []string{"/v1/models", "/models"} {
			t.get(path).code(200).eq("object", "list").eq("data.0.id", "gopher-chat").eq("data.0.object", "model").eq("data.0.meta.n_vocab", 4096)
		}
	}},
	{"server", "one model", "llama-server has no `GET /v1/models/{id}`", func(t *trial) {
		t.get("/v1/models/gopher-chat").code(either(t, 200, 404))
	}},
	{"server", "slots", "", func(t *trial) {
		t.get("/slots").code(200).size("*.id", 2).eq("0.is_processing", false).is(t.get("/slots").num("1.n_ctx") == ctx, "want n_ctx")
	}},
	{"server", "metrics", "", func(t *trial) {
		r := t.get("/metrics").code(200)
		r.is(strings.HasPrefix(r.header.Get("Content-Type"), "text/plain"), "want text").is(strings.Contains(r.text, "# TYPE "), "want Prometheus's text format")
	}},
	{"server", "no such path", "", func(t *trial) {
		t.get("/nothing").fails(404)
		t.post("/v1/nothing", "{}").fails(404)
	}},
	{"server", "wrong method", "names the method that the path takes; llama-server says that there is no such file", func(t *trial) {
		r := t.get("/v1/completions").fails(either(t, 405, 404))
		r.is(!t.ours() || r.header.Get("Allow") == "POST", "want Allow: POST")
	}},
	{"server", "not JSON", "", func(t *trial) {
		for _, body := range []string{"{bad", `{"prompt": "a"`, `[1]`, `"text"`} {
			t.completion(body).fails(400)
		}
	}},
	{"server", "media type", "must be JSON, since a form on any page could send others; llama-server takes all", func(t *trial) {
		t.with(map[string]string{"Content-Type": "text/plain"}).post("/tokenize", `{"content": "a"}`).code(either(t, 415, 200))
	}},
	{"server", "key", "", func(t *trial) {
		k := t.keyed()
		defer t.join(k)
		const body = `{"prompt": "package a", "max_tokens": 1}`
		k.completion(body).fails(401).eq("error.type", "authentication_error")
		for _, h := range []map[string]string{{"Authorization": "Bearer wrong"}, {"X-Api-Key": "wrong"}} {
			k.with(h).post("/v1/completions", body).fails(401)
		}
		for _, h := range []map[string]string{{"Authorization": "Bearer " + key}, {"X-Api-Key": key}} {
			k.with(h).post("/v1/completions", body).code(200)
		}
		k.get("/health").code(200)
		k.get("/props").fails(401)
		k.get("/v1/models").fails(401)
	}},
	{"server", "pages of other origins", "are refused, since any page in a browser on this computer could use the server; `--cors-origin` admits pages", func(t *trial) {
		h := t.with(map[string]string{"Origin": "http://a.example", "Access-Control-Request-Method": "POST"})
		for _, r := range []*reply{h.send("OPTIONS", "/v1/completions", "").code(either(t, 403, 200)), h.send("GET", "/health", "").code(200)} {
			if have, want := r.header.Get("Access-Control-Allow-Origin"), either(t, "", "http://a.example"); have != want {
				r.errorf("Access-Control-Allow-Origin: want %q, have %q", want, have)
			}
		}
	}},
	{"server", "a client that leaves", "", func(t *trial) {
		body := `{"prompt": "package sort", "max_tokens": 400, "ignore_eos": true, "stream": true, "temperature": 0}`
		req, err := http.NewRequestWithContext(t.ctx, "POST", t.site.open+"/v1/completions", strings.NewReader(body))
		if err != nil {
			t.errorf("%v", err)
			return
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			t.errorf("%v", err)
			return
		}
		resp.Body.Read(make([]byte, 64))
		if r := t.get("/slots"); r.status == 200 && !contains(r.all("*.is_processing"), true) {
			r.errorf("want a slot in use while a stream is read")
		}
		resp.Body.Close()
		for end := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			r := t.get("/slots")
			if !contains(r.all("*.is_processing"), true) {
				return
			}
			if time.Now().After(end) {
				r.errorf("want idle slots, as the client is gone")
				return
			}
		}
	}},
	{"server", "two at a time", "", func(t *trial) {
		ask := func(t *trial, what string) *reply {
			return t.completion(fmt.Sprintf(`{"prompt": "package %s", "max_tokens": 8, "temperature": 0}`, what)).code(200)
		}
		names := []string{"sort", "strings", "os", "bytes"}
		together := make(chan *trial)
		texts := make([]string, len(names))
		for i, name := range names {
			go func() {
				one := &trial{ctx: t.ctx, site: t.site}
				texts[i] = ask(one, name).str("choices.0.text")
				together <- one
			}()
		}
		for range names {
			t.join(<-together)
		}
		for i, name := range names {
			ask(t, name).says("choices.0.text", texts[i])
		}
	}},
}

func contains(values []any, want any) bool {
	for _, v := range values {
		if v == want {
			return true
		}
	}
	return false
}

var textRows = []row{
	{"text", "tokenize", "", func(t *trial) {
		t.post("/tokenize", `{"content": "hello wörld <|im_end|>"}`).code(200).eq("tokens", []int{277, 84, 328, 318, 136, 123, 90, 941, 229, 2})
		t.post("/tokenize", `{"content": ""}`).code(200).eq("tokens", []int{})
	}},
	{"text", "tokenize: parse_special", "", func(t *trial) {
		t.post("/tokenize", `{"content": "hello <|im_end|>", "parse_special": false}`).eq("tokens", []int{277, 84, 328, 433, 100, 625, 71, 1123, 100, 38})
	}},
	{"text", "tokenize: add_special", "", func(t *trial) {
		t.post("/tokenize", `{"content": "hello", "add_special": true}`).eq("tokens", []int{277, 84, 328})
	}},
	{"text", "tokenize: with_pieces", "", func(t *trial) {
		t.post("/tokenize", `{"content": "hello ö", "with_pieces": true}`).code(200).eq("tokens.0", map[string]any{"id": 277, "piece": "he"}).eq("tokens.5.piece", []int{182})
	}},
	{"text", "tokenize: wrong", "", func(t *trial) { t.post("/tokenize", `{"content": 5}`).fails(400) }},
	{"text", "tokenize: nothing", "gives an error that names the missing field; llama-server returns no tokens", func(t *trial) {
		t.post("/tokenize", `{}`).code(either(t, 400, 200))
	}},
	{"text", "detokenize", "", func(t *trial) {
		t.post("/detokenize", `{"tokens": [300, 301]}`).code(200).eq("content", " {\nde")
		t.post("/detokenize", `{"tokens": []}`).code(200).eq("content", "")
		t.post("/detokenize", `{}`).code(200).eq("content", "")
		t.post("/detokenize", `{"tokens": "x"}`).fails(400)
	}},
	{"text", "there and back", "", func(t *trial) {
		for _, text := range []string{"func main() {\n\tx := 1\n}", "Grüße, 世界! 🙂", "  two  spaces ", "<think>\n</think>"} {
			ids := t.post("/tokenize", fmt.Sprintf(`{"content": %q}`, text)).code(200)
			var list []string
			for _, id := range ids.all("tokens.*") {
				list = append(list, fmt.Sprint(id))
			}
			t.post("/detokenize", `{"tokens": [`+strings.Join(list, ",")+`]}`).eq("content", text)
		}
	}},
	{"text", "template", "", func(t *trial) {
		t.post("/apply-template", `{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]}`).code(200).
			eq("prompt", "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
	}},
	{"text", "template: add_generation_prompt", "", func(t *trial) {
		t.post("/apply-template", `{"messages": [{"role": "user", "content": "Hi"}], "add_generation_prompt": false}`).eq("prompt", "<|im_start|>user\nHi<|im_end|>\n")
	}},
	{"text", "template: chat_template_kwargs", "", func(t *trial) {
		t.post("/apply-template", `{"messages": [{"role": "user", "content": "Hi"}], "chat_template_kwargs": {"enable_thinking": false}}`).
			eq("prompt", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n")
	}},
	{"text", "template: tools", "", func(t *trial) {
		r := t.post("/apply-template", `{"messages": [{"role": "user", "content": "Hi"}], `+addTool+`}`).code(200)
		r.is(strings.Contains(r.str("prompt"), `"name": "add"`) && strings.HasPrefix(r.str("prompt"), "<|im_start|>system\n# Tools"), "want the tool in the prompt")
	}},
	{"text", "template: an earlier call", "", func(t *trial) {
		r := t.post("/apply-template", `{`+called+`}`).code(200)
		r.is(strings.Contains(r.str("prompt"), "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 17, \"b\": 25}}\n</tool_call>"), "want the call")
		r.is(strings.Contains(r.str("prompt"), "<tool_response>\n42\n</tool_response>"), "want its result")
	}},
	{"text", "template: wrong", "", func(t *trial) {
		t.post("/apply-template", `{}`).fails(400)
		t.post("/apply-template", `{"messages": 5}`).fails(400)
	}},
}
