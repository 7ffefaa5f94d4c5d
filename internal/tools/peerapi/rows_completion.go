package main

import (
	"fmt"
	"math"
	"strings"
)

const (
	// imports is a prompt that all continue in the same way.
	imports  = `"prompt": "package sort\n\nimport ", "temperature": 0`
	unsafe4  = " \"unsafe\"\n\n//"
	packageA = `"prompt": "package a", "temperature": 0`
	// dialogue is a prompt whose continuation has an end.
	dialogue  = `"prompt": "<|im_start|>user\nWhat does strings.Cut do?<|im_end|>\n<|im_start|>assistant\n", "temperature": 0`
	packageA3 = " package\n//"
)

var completionRows = []row{
	{"completion", "text", "", func(t *trial) {
		r := t.completion(`{`+imports+`, "max_tokens": 4}`).code(200).eq("object", "text_completion").size("choices.*", 1)
		r.says("choices.0.text", unsafe4).eq("choices.0.index", 0).eq("choices.0.finish_reason", "length").eq("choices.0.logprobs", nil)
		r.eq("usage.prompt_tokens", 5).eq("usage.completion_tokens", 4).eq("usage.total_tokens", 9)
		r.is(r.str("id") != "" && r.num("created") > 1e9 && r.str("model") == "gopher-chat" && r.str("system_fingerprint") != "", "want id, created, model, system_fingerprint")
	}},
	{"completion", "without /v1", "", func(t *trial) {
		t.post("/completions", `{`+imports+`, "max_tokens": 4}`).code(200).says(either(t, "choices.0.text", "content"), unsafe4)
	}},
	{"completion", "n_predict", "", func(t *trial) {
		t.completion(`{`+imports+`, "n_predict": 4}`).says("choices.0.text", unsafe4).eq("usage.completion_tokens", 4)
	}},
	{"completion", "max_tokens: as many as there is room for", "", func(t *trial) {
		t.completion(`{`+dialogue+`, "max_tokens": -1}`).code(200).eq("choices.0.finish_reason", "stop")
	}},
	{"completion", "max_tokens below -1", "", func(t *trial) { t.completion(`{` + packageA + `, "max_tokens": -2}`).fails(400) }},
	{"completion", "max_tokens: 0", "returns no token, as asked; llama-server returns one", func(t *trial) {
		t.completion(`{`+packageA+`, "max_tokens": 0}`).code(200).eq("usage.completion_tokens", either(t, 0, 1)).eq("choices.0.finish_reason", "length")
	}},
	{"completion", "max_tokens left out", "means 16 tokens, as in OpenAI's API; llama-server generates to the end", func(t *trial) {
		t.completion(`{`+dialogue+`}`).code(200).eq("choices.0.finish_reason", either(t, "length", "stop")).eq("usage.completion_tokens", either(t, 16, 40))
	}},
	{"completion", "token ids", "", func(t *trial) {
		t.completion(`{"prompt": [300, 301], "temperature": 0, "max_tokens": 2}`).says("choices.0.text", "scribe").eq("usage.prompt_tokens", 2)
		for _, ids := range []string{"[99999]", "[-1]", "[300, 4096]"} {
			t.completion(`{"prompt": ` + ids + `, "max_tokens": 2}`).fails(400)
		}
	}},
	{"completion", "ids mixed with texts", "gives an error, since OpenAI's API has no such prompts", func(t *trial) {
		t.completion(`{"prompt": [300, "ab", 301], "temperature": 0, "max_tokens": 2}`).code(either(t, 400, 200))
	}},
	{"completion", "several prompts", "", func(t *trial) {
		r := t.completion(`{"prompt": ["package a", "package b"], "temperature": 0, "max_tokens": 2}`).code(200).size("choices.*", 2)
		r.says("choices.0.text", " package\n").eq("choices.0.index", 0).says("choices.1.text", "aon").eq("choices.1.index", 1)
	}},
	{"completion", "usage of several prompts", "counts all prompts; llama-server counts the first", func(t *trial) {
		t.completion(`{"prompt": ["package a", "package b"], "temperature": 0, "max_tokens": 2}`).eq("usage.prompt_tokens", either(t, 4, 2)).eq("usage.completion_tokens", either(t, 4, 2))
	}},
	{"completion", "several answers", "", func(t *trial) {
		r := t.completion(`{`+packageA+`, "max_tokens": 2, "n": 2}`).code(200).size("choices.*", 2).eq("usage.prompt_tokens", 2)
		r.says("choices.0.text", " package\n").says("choices.1.text", " package\n").eq("choices.1.index", 1)
	}},
	{"completion", "no prompt", "", func(t *trial) {
		t.completion(`{"max_tokens": 2}`).fails(400)
		t.completion(`{"prompt": [], "max_tokens": 2}`).fails(400)
		t.completion(`{"prompt": {"a": 1}, "max_tokens": 2}`).fails(400)
	}},
	{"completion", "empty prompt", "gives an error for a model without a begin token, since there is nothing to continue; llama-server returns nothing", func(t *trial) {
		t.completion(`{"prompt": "", "max_tokens": 2}`).code(either(t, 400, 200))
	}},
	{"completion", "stream", "", func(t *trial) {
		for _, body := range []string{imports + `, "max_tokens": 8`, packageA + `, "max_tokens": 8, "stop": ["//"]`} {
			whole := t.completion(`{` + body + `}`).code(200)
			r := t.completion(`{`+body+`, "stream": true}`).code(200).eq("done", true).says("events.*.choices.0.text", whole.str("choices.0.text"))
			r.says("events.*.choices.0.finish_reason", whole.str("choices.0.finish_reason")).eq("events.0.object", "text_completion").eq("events.0.choices.0.finish_reason", nil)
			r.is(strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream"), "want text/event-stream")
		}
	}},
	{"completion", "stream of several answers", "", func(t *trial) {
		r := t.completion(`{` + packageA + `, "max_tokens": 3, "n": 2, "stream": true}`).code(200)
		texts := map[float64]string{}
		for _, v := range r.all("events.*.choices.*") {
			c := v.(map[string]any)
			i, _ := c["index"].(float64)
			s, _ := c["text"].(string)
			texts[i] += s
		}
		r.is(len(texts) == 2 && texts[0] == packageA3 && texts[1] == packageA3, fmt.Sprintf("want the same text twice, have %v", texts))
	}},
	{"completion", "usage of a stream", "comes in an event of its own, if asked for; llama-server puts it into the last event with text", func(t *trial) {
		r := t.completion(`{` + packageA + `, "max_tokens": 3, "stream": true, "stream_options": {"include_usage": true}}`)
		r.size("events.*.usage", 1).is(r.num("events.*.usage.completion_tokens") == 3, "want 3 tokens")
		r = t.completion(`{` + packageA + `, "max_tokens": 3, "stream": true}`)
		r.size("events.*.usage", either(t, 0, 1))
	}},
	{"completion", "timings", "", func(t *trial) {
		r := t.completion(`{`+imports+`, "max_tokens": 4}`).eq("timings.predicted_n", 4)
		r.is(r.num("timings.prompt_n")+r.num("timings.cache_n") == 5 && r.num("timings.prompt_ms") > 0 && r.num("timings.predicted_per_second") > 0, "want timings")
		r = t.completion(`{` + imports + `, "max_tokens": 4, "stream": true}`)
		r.is(len(r.all("events.*.timings.predicted_n")) == 1, "want timings at the end")
	}},
	{"completion", "timings of each token", "are left out, since each event of the stream comes with its token", func(t *trial) {
		r := t.completion(`{` + packageA + `, "max_tokens": 3, "stream": true, "timings_per_token": true}`)
		r.size("events.*.timings", either(t, 1, 4))
	}},
	{"completion", "stop", "", func(t *trial) {
		for stop, text := range map[string]string{`"unsafe"`: ` "`, `["not there", "unsafe"]`: ` "`, `["safe", "unsafe\"\n"]`: ` "un`} {
			t.completion(`{`+imports+`, "max_tokens": 8, "stop": `+stop+`}`).code(200).says("choices.0.text", text).eq("choices.0.finish_reason", "stop")
		}
	}},
	{"completion", "stop of a wrong type", "gives an error that names the field; llama-server ignores it", func(t *trial) {
		t.completion(`{` + packageA + `, "max_tokens": 2, "stop": 5}`).code(either(t, 400, 200))
	}},
	{"completion", "ignore_eos", "", func(t *trial) {
		ends := `{` + dialogue + `, "max_tokens": 48`
		t.completion(ends+`}`).eq("choices.0.finish_reason", "stop")
		t.completion(ends+`, "ignore_eos": true}`).eq("choices.0.finish_reason", "length").eq("usage.completion_tokens", 48)
	}},
	{"completion", "the end token", "is no part of the answer and not counted; llama-server counts it", func(t *trial) {
		t.completion(`{`+dialogue+`, "max_tokens": 48}`).
			eq("usage.completion_tokens", either(t, 39, 40))
	}},
	{"completion", "seed", "", func(t *trial) {
		ask := func(seed int) string {
			return t.completion(fmt.Sprintf(`{"prompt": "package ", "max_tokens": 12, "temperature": 1.5, "top_k": 0, "top_p": 1, "min_p": 0, "seed": %d}`, seed)).code(200).str("choices.0.text")
		}
		seen := map[string]bool{}
		for seed := 40; seed < 44; seed++ {
			first := ask(seed)
			if again := ask(seed); again != first {
				t.errorf("seed %d: %q and then %q", seed, first, again)
			}
			seen[first] = true
		}
		if len(seen) < 3 {
			t.errorf("4 seeds gave %d texts", len(seen))
		}
	}},
	{"completion", "no seed", "", func(t *trial) {
		seen := map[string]bool{}
		for _, seed := range []string{"", `, "seed": -1`, ""} {
			seen[t.completion(`{"prompt": "package ", "max_tokens": 12, "temperature": 1.5, "top_k": 0, "top_p": 1, "min_p": 0`+seed+`}`).code(200).str("choices.0.text")] = true
		}
		if len(seen) < 2 {
			t.errorf("3 answers without a seed are the same")
		}
	}},
	{"completion", "samplers that leave one token", "", func(t *trial) {
		for _, s := range []string{`"top_k": 1`, `"top_p": 0.0001`, `"min_p": 1`, `"top_n_sigma": 0.000001`} {
			t.completion(`{"prompt": "package a", "temperature": 1.8, "max_tokens": 3, `+s+`}`).says("choices.0.text", packageA3)
		}
	}},
	{"completion", "samplers", "", func(t *trial) {
		t.completion(`{"prompt": "package a", "temperature": 1.8, "max_tokens": 3, "top_k": 1, "samplers": ["top_k"]}`).code(200).says("choices.0.text", packageA3)
	}},
	{"completion", "unknown samplers", "give an error; llama-server samples without them", func(t *trial) {
		t.completion(`{` + packageA + `, "max_tokens": 2, "samplers": ["nonsense"]}`).code(either(t, 400, 200))
	}},
	{"completion", "repeat_penalty", "", func(t *trial) {
		braces := packageA + `, "max_tokens": 4, "logit_bias": {"300": 100, "504": 80}`
		t.completion(`{`+braces+`}`).says("choices.0.text", " {\n {\n {\n {\n")
		r := t.completion(`{` + braces + `, "repeat_penalty": 2, "repeat_last_n": 64}`).code(200)
		r.is(strings.HasPrefix(r.str("choices.0.text"), " {\n package"), "want another token behind the first")
	}},
	{"completion", "temperature of a wrong type", "", func(t *trial) { t.completion(`{` + `"prompt": "a", "temperature": "hot"}`).fails(400) }},
	{"completion", "temperature below 0", "gives an error; llama-server takes it as 0", func(t *trial) {
		t.completion(`{"prompt": "package a", "max_tokens": 1, "temperature": -1}`).code(either(t, 400, 200))
	}},
	{"completion", "fields that nobody knows", "", func(t *trial) {
		t.completion(`{`+packageA+`, "max_tokens": 3, "user": "me", "nonsense": {"a": [1]}}`).code(200).says("choices.0.text", packageA3)
	}},
	{"completion", "another model's name", "gives an error, since a server may have several models; llama-server has one and takes any name", func(t *trial) {
		t.completion(`{` + packageA + `, "max_tokens": 1, "model": "other"}`).code(either(t, 404, 200))
	}},
	{"completion", "logit_bias", "", func(t *trial) {
		for _, bias := range []string{`{"504": -100}`, `[[504, false]]`, `[[504, -100]]`, `[[" package", -100]]`, `{" package": -100}`} {
			t.completion(`{`+packageA+`, "max_tokens": 3, "logit_bias": `+bias+`}`).says("choices.0.text", "ction\n\n//")
		}
		t.completion(`{`+packageA+`, "max_tokens": 3, "logit_bias": {"300": 100}}`).says("choices.0.text", " {\n {\n {\n")
	}},
	{"completion", "logit_bias of no token", "gives an error; llama-server ignores it", func(t *trial) {
		t.completion(`{` + packageA + `, "max_tokens": 1, "logit_bias": [[99999, 1]]}`).code(either(t, 400, 200))
	}},
	{"completion", "logprobs", "has the form of OpenAI's completions; llama-server uses that of chat completions", func(t *trial) {
		r := t.completion(`{` + packageA + `, "max_tokens": 2, "logprobs": 2}`).code(200)
		path := either(t, "choices.0.logprobs.token_logprobs.0", "choices.0.logprobs.content.0.logprob")
		r.is(math.Abs(r.num(path)+0.66) < 0.1, "want about -0.66")
		r.size(either(t, "choices.0.logprobs.tokens.*", "choices.0.logprobs.content.*.token"), 2)
	}},
	{"completion", "echo", "puts the prompt in front of the text; llama-server ignores it", func(t *trial) {
		t.completion(`{`+packageA+`, "max_tokens": 3, "echo": true}`).says("choices.0.text", either(t, "package a"+packageA3, packageA3))
	}},
	{"completion", "suffix and best_of", "are refused; llama-server ignores them", func(t *trial) {
		t.completion(`{` + packageA + `, "max_tokens": 1, "suffix": "x"}`).code(either(t, 400, 200))
		t.completion(`{` + packageA + `, "max_tokens": 1, "best_of": 3}`).code(either(t, 400, 200))
	}},
	{"completion", "cache_prompt", "", func(t *trial) {
		prompt := `{"prompt": "` + strings.Repeat("func cached() int { return 7 }\\n", 12) + `", "temperature": 0, "max_tokens": 2`
		first := t.completion(prompt+`, "cache_prompt": false}`).code(200).eq("timings.cache_n", 0)
		again := t.completion(prompt+`}`).code(200).says("choices.0.text", first.str("choices.0.text"))
		again.is(again.num("timings.cache_n") >= 64 && again.num("usage.prompt_tokens_details.cached_tokens") == again.num("timings.cache_n"), "want tokens from the cache")
		t.completion(prompt+`, "cache_prompt": false}`).eq("timings.cache_n", 0).says("choices.0.text", first.str("choices.0.text"))
	}},
	{"completion", "a prompt that does not fit", "", func(t *trial) {
		r := t.completion(`{"prompt": "` + strings.Repeat("word ", 600) + `", "max_tokens": 2}`).fails(400)
		r.is(strings.Contains(r.str("error.message"), "601") && strings.Contains(r.str("error.message"), "512"), "want both numbers in the message")
	}},
	{"completion", "error for a prompt that does not fit", "has the `code` of OpenAI's API; llama-server has a type of its own", func(t *trial) {
		r := t.completion(`{"prompt": "` + strings.Repeat("word ", 600) + `", "max_tokens": 2}`)
		r.eq(either(t, "error.code", "error.type"), either(t, "context_length_exceeded", "exceed_context_size_error"))
	}},
	{"completion", "the end of the context", "", func(t *trial) {
		ids := strings.TrimSuffix(strings.Repeat("300,", ctx-8), ",")
		r := t.completion(`{"prompt": [`+ids+`], "max_tokens": 50, "temperature": 0, "ignore_eos": true}`).code(200).eq("choices.0.finish_reason", "length")
		r.is(r.num("usage.completion_tokens") == 8 || r.num("usage.completion_tokens") == 9, "want as many tokens as there was room for")
	}},
}
