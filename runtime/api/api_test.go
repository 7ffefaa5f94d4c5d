package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const hello = `{"model": "gopher", "messages": [{"role": "user", "content": "Hello"}]%s}`

func body(more string) string { return fmt.Sprintf(hello, more) }

func TestChat(t *testing.T) {
	x := newFixture(t, nil)
	x.fake.answers["Hello"] = "<think>\nThe user greets.\n</think>\n\nHello, gopher."
	status, b := x.do("POST", "/v1/chat/completions", body(`, "seed": 5, "temperature": 0.25, "max_tokens": 100, "stop": "zzz"`))
	if status != 200 {
		t.Fatalf("%d %s", status, b)
	}
	for _, c := range []struct {
		path []any
		want any
	}{
		{[]any{"object"}, "chat.completion"},
		{[]any{"model"}, "gopher"},
		{[]any{"system_fingerprint"}, "zincc-0a0a0a0a0a0a"},
		{[]any{"choices", 0, "message", "role"}, "assistant"},
		{[]any{"choices", 0, "message", "content"}, "Hello, gopher."},
		{[]any{"choices", 0, "message", "reasoning_content"}, "The user greets."},
		{[]any{"choices", 0, "message", "refusal"}, nil},
		{[]any{"choices", 0, "logprobs"}, nil},
		{[]any{"choices", 0, "finish_reason"}, "stop"},
	} {
		if got := get(t, b, c.path...); got != c.want {
			t.Errorf("%v is %v, want %v", c.path, got, c.want)
		}
	}
	u := get(t, b, "usage").(map[string]any)
	if u["total_tokens"] != u["prompt_tokens"].(float64)+u["completion_tokens"].(float64) {
		t.Errorf("usage does not add up: %v", u)
	}
	r := x.fake.last()
	if r.Sampling.Seed != 5 || r.Sampling.Temp != 0.25 || r.Max != 100 || len(r.Stops) != 1 || r.Sampling.TopK != 20 {
		t.Errorf("the engine was asked for %+v; top_k 20 is the model's own", r)
	}
	if r.Turn <= 0 || r.Turn >= len(r.Prompt) {
		t.Errorf("turn is %d of %d tokens", r.Turn, len(r.Prompt))
	}
	if r.Reasoning == nil || r.Reasoning.Limit != -1 || r.Reasoning.Open {
		t.Errorf("reasoning is %+v", r.Reasoning)
	}
}

// assemble puts the deltas of a streamed chat together.
func assemble(t *testing.T, all []string) (content, reasoning, finish string, calls []string) {
	t.Helper()
	for _, e := range all {
		choices := get(t, e, "choices").([]any)
		if len(choices) == 0 {
			continue
		}
		if f, ok := get(t, e, "choices", 0, "finish_reason").(string); ok {
			finish = f
		}
		d := get(t, e, "choices", 0, "delta").(map[string]any)
		if s, ok := d["content"].(string); ok {
			content += s
		}
		if s, ok := d["reasoning_content"].(string); ok {
			reasoning += s
		}
		tools, _ := d["tool_calls"].([]any)
		for _, c := range tools {
			m := c.(map[string]any)
			i := int(m["index"].(float64))
			for len(calls) <= i {
				calls = append(calls, "")
			}
			f := m["function"].(map[string]any)
			if name, ok := f["name"].(string); ok {
				calls[i] += name + " "
			}
			calls[i] += f["arguments"].(string)
		}
	}
	return content, reasoning, finish, calls
}

const weather = `, "tools": [{"type": "function", "function": {"name": "get_weather", "description": "Weather of a town.", "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}}}]`

const twoCalls = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"town\": \"Bern\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"town\": \"Oslo\"}}\n</tool_call>"

func TestChatStream(t *testing.T) {
	x := newFixture(t, nil)
	x.fake.answers["Hello"] = "<think>\nThe user greets.\n</think>\n\nHello, gopher."
	x.fake.answers["weather"] = twoCalls
	status, b := x.do("POST", "/v1/chat/completions", body(`, "stream": true, "stream_options": {"include_usage": true}`))
	if status != 200 {
		t.Fatalf("%d %s", status, b)
	}
	all := events(t, b, true)
	content, reasoning, finish, _ := assemble(t, all)
	if content != "Hello, gopher." || reasoning != "The user greets." || finish != "stop" {
		t.Errorf("content %q, reasoning %q, finish %q", content, reasoning, finish)
	}
	if get(t, all[0], "choices", 0, "delta", "role") != "assistant" {
		t.Errorf("the first event names no role: %s", all[0])
	}
	if get(t, all[len(all)-1], "usage", "prompt_tokens").(float64) < 1 {
		t.Errorf("the last event has no usage: %s", all[len(all)-1])
	}

	question := `{"messages": [{"role": "user", "content": "weather"}], "stream": true` + weather
	_, b = x.do("POST", "/v1/chat/completions", question+"}")
	_, _, finish, calls := assemble(t, events(t, b, true))
	if want := []string{`get_weather {"town": "Bern"}`, `get_weather {"town": "Oslo"}`}; finish != "tool_calls" || fmt.Sprint(calls) != fmt.Sprint(want) {
		t.Errorf("finish %s, calls %q", finish, calls)
	}
	_, b = x.do("POST", "/v1/chat/completions", question+`, "parallel_tool_calls": false}`)
	_, _, finish, calls = assemble(t, events(t, b, true))
	if finish != "tool_calls" || len(calls) != 1 {
		t.Errorf("one call at a time: finish %s, calls %q", finish, calls)
	}
}

func TestChatTools(t *testing.T) {
	x := newFixture(t, nil)
	x.fake.answers["weather"] = twoCalls
	x.fake.answers["22 degrees"] = "It is warm."
	question := `{"messages": [{"role": "user", "content": "weather"}]` + weather
	status, b := x.do("POST", "/v1/chat/completions", question+"}")
	if status != 200 {
		t.Fatalf("%d %s", status, b)
	}
	if get(t, b, "choices", 0, "message", "content") != nil || get(t, b, "choices", 0, "finish_reason") != "tool_calls" {
		t.Error(b)
	}
	calls := get(t, b, "choices", 0, "message", "tool_calls").([]any)
	if len(calls) != 2 || get(t, b, "choices", 0, "message", "tool_calls", 1, "function", "arguments") != `{"town": "Oslo"}` ||
		get(t, b, "choices", 0, "message", "tool_calls", 0, "id") == get(t, b, "choices", 0, "message", "tool_calls", 1, "id") {
		t.Error(b)
	}
	// The result goes back, as a client sends it.
	status, b = x.do("POST", "/v1/chat/completions", `{"messages": [{"role": "user", "content": "weather"},
		{"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": "{\"town\": \"Bern\"}"}}]},
		{"role": "tool", "tool_call_id": "a", "content": "22 degrees"}]`+weather+"}")
	if status != 200 || get(t, b, "choices", 0, "message", "content") != "It is warm." {
		t.Errorf("%d %s", status, b)
	}
	// Without tools the model is told of none.
	x.do("POST", "/v1/chat/completions", question+`, "tool_choice": "none"}`)
	if prompt := x.tok.Decode(x.fake.last().Prompt, true); strings.Contains(prompt, "get_weather") {
		t.Errorf("tool_choice none: the prompt has tools: %s", prompt)
	}
}

// TestForcedCalls: what the engine is to begin an answer with, and how answers end whose calls are none.
func TestForcedCalls(t *testing.T) {
	x := newFixture(t, nil)
	two := strings.Replace(weather, `"tools": [`, `"tools": [{"type": "function", "function": {"name": "get_time"}}, `, 1)
	x.fake.answers["weather"] = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"town\": \"Bern\"}}\n</tool_call>"
	x.fake.answers["cut"] = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"town\": \"Be"
	calls := []string{"<tool_call>\n{\"name\": \"get_time\", \"arguments\": {\"a\": 1}}\n</tool_call>", x.fake.answers["weather"]}
	for _, c := range []struct {
		more  string
		taken []string
		once  bool
	}{
		{`, "tool_choice": "required"`, []string{calls[0], calls[1], calls[1] + "\n" + calls[0], "\n\n" + calls[1]}, false},
		{`, "tool_choice": {"type": "function", "function": {"name": "get_weather"}}`, []string{calls[1], "\n\n" + calls[1]}, false},
		{`, "tool_choice": "required", "reasoning_effort": "none", "parallel_tool_calls": false`, append(calls[:2:2], "\n\n"+calls[1]), true},
	} {
		for _, ask := range []string{"weather", "cut"} {
			status, b := x.do("POST", "/v1/chat/completions", `{"messages": [{"role": "user", "content": "`+ask+`"}]`+two+c.more+`}`)
			if status != 200 {
				t.Fatalf("%s: %d %s", c.more, status, b)
			}
			if want := map[string]string{"weather": "tool_calls", "cut": "stop"}[ask]; get(t, b, "choices", 0, "finish_reason") != want {
				t.Errorf("%s: want %s: %s", ask, want, b)
			}
			r := x.fake.last()
			if r.Format == nil || r.Opening != nil || r.AtOnce != c.once {
				t.Fatalf("%s: %+v", c.more, r)
			}
			for _, text := range []string{calls[0], calls[1], calls[1] + "\n" + calls[0], "\n\n" + calls[1], "It is warm.", strings.Replace(calls[1], "town", "city", 1)} {
				if _, ok, err := r.Format.Check([]byte(text)); ok != slices.Contains(c.taken, text) || err != nil {
					t.Errorf("%s: %q: %v, %v", c.more, text, ok, err)
				}
			}
		}
	}
	if _, b := x.do("POST", "/v1/chat/completions", `{"messages": [{"role": "user", "content": "weather"}]`+two+`}`); x.fake.last().Format != nil {
		t.Errorf("nothing is forced: %s", b)
	}
}

func TestReasoningSwitches(t *testing.T) {
	x := newFixture(t, nil)
	x.fake.answers["Hello"] = "<think>\nHm.\n</think>\n\nHello."
	for _, more := range []string{`, "chat_template_kwargs": {"enable_thinking": false}`, `, "reasoning_effort": "none"`} {
		x.do("POST", "/v1/chat/completions", body(more))
		if prompt := x.tok.Decode(x.fake.last().Prompt, true); !strings.HasSuffix(prompt, "<think>\n\n</think>\n\n") {
			t.Errorf("%s: the prompt ends with %q", more, prompt[max(0, len(prompt)-60):])
		}
	}
	x.do("POST", "/v1/chat/completions", body(`, "thinking_budget_tokens": 7`))
	if r := x.fake.last().Reasoning; r == nil || r.Limit != 7 || len(r.Close) == 0 || len(r.Begin) == 0 {
		t.Errorf("the budget is %+v", r)
	}
	_, b := x.do("POST", "/v1/chat/completions", body(`, "reasoning_format": "none"`))
	if c := get(t, b, "choices", 0, "message", "content").(string); !strings.Contains(c, "<think>") || !strings.Contains(c, "Hm.") || !strings.HasSuffix(c, "Hello.") {
		t.Errorf("reasoning in the content: %q", c)
	}
}

func TestChoices(t *testing.T) {
	x := newFixture(t, nil)
	x.fake.answers["Hello"] = "Hi there."
	_, b := x.do("POST", "/v1/chat/completions", body(`, "n": 3, "seed": 10`))
	if n := len(get(t, b, "choices").([]any)); n != 3 {
		t.Fatalf("%d choices: %s", n, b)
	}
	seeds := map[uint64]bool{}
	for _, r := range x.fake.requests {
		seeds[r.Sampling.Seed] = true
	}
	if len(seeds) != 3 || !seeds[10] {
		t.Errorf("seeds are %v", seeds)
	}
	one := get(t, b, "usage", "prompt_tokens").(float64)
	if int(one) != len(x.fake.last().Prompt) {
		t.Errorf("the prompt counts %v tokens and has %d", one, len(x.fake.last().Prompt))
	}
	_, b = x.do("POST", "/v1/chat/completions", body(`, "n": 2, "stream": true, "logprobs": true, "top_logprobs": 2`))
	texts := []string{"", ""}
	logged := 0
	for _, e := range events(t, b, true) {
		i := int(get(t, e, "choices", 0, "index").(float64))
		if s, ok := get(t, e, "choices", 0, "delta").(map[string]any)["content"].(string); ok {
			texts[i] += s
		}
		if l, ok := get(t, e, "choices", 0, "logprobs").(map[string]any); ok {
			for _, p := range l["content"].([]any) {
				logged++
				if n := len(p.(map[string]any)["top_logprobs"].([]any)); n != 2 {
					t.Errorf("%d alternatives", n)
				}
			}
		}
	}
	if texts[0] != "Hi there." || texts[1] != "Hi there." || logged != 2*len(x.tok.Encode("Hi there.", encodeSpecial)) {
		t.Errorf("texts %q, %d log probabilities", texts, logged)
	}
}

func TestCompletions(t *testing.T) {
	x := newFixture(t, nil)
	x.fake.answers["func"] = " main() {}"
	x.fake.answers["two"] = "2"
	_, b := x.do("POST", "/v1/completions", `{"prompt": ["func", "two"], "n": 2, "echo": true, "logprobs": 1, "max_tokens": 50}`)
	var texts []string
	for i := range 4 {
		texts = append(texts, get(t, b, "choices", i, "text").(string))
	}
	if want := []string{"func main() {}", "func main() {}", "two2", "two2"}; fmt.Sprint(texts) != fmt.Sprint(want) {
		t.Errorf("texts are %q", texts)
	}
	if off := get(t, b, "choices", 0, "logprobs", "text_offset", 0); off != 4.0 {
		t.Errorf("the first token is at %v", off)
	}
	x.do("POST", "/completions", `{"prompt": [5, 6, 7]}`)
	if r := x.fake.last(); fmt.Sprint(r.Prompt) != "[5 6 7]" || r.Max != 16 {
		t.Errorf("prompt %v, max %d", r.Prompt, r.Max)
	}
	_, b = x.do("POST", "/v1/completions", `{"prompt": "func", "stream": true, "stream_options": {"include_usage": true}}`)
	text := ""
	for _, e := range events(t, b, true) {
		if c := get(t, e, "choices").([]any); len(c) > 0 {
			text += get(t, e, "choices", 0, "text").(string)
		}
	}
	if text != " main() {}" {
		t.Errorf("streamed %q", text)
	}
}

// TestSlots: /slots and /load say what slots keep, and why requests have them.
func TestSlots(t *testing.T) {
	x := newFixture(t, nil)
	x.do("POST", "/v1/chat/completions", body(""))
	_, b := x.do("GET", "/slots", "")
	for _, want := range []string{`"kept":64,"pages":3,`, `"why":"least","reuse":"copied","from":1,"forgot":64}`, `"why":"only","reuse":"own","forgot":0,"waits_for":"itl"}`} {
		if !strings.Contains(b, want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
	_, b = x.do("GET", "/load", "")
	if want := `"prefixes":{"pieces":3,"states":2,"tokens":700,"state_bytes":8,"forgotten_tokens":64,"evicted_states":1},"host_cache":{"pieces":9,"bytes":4096,"restored_tokens":32},"pages":{"positions":64,"total":40,"free":10,"held":30,"shared":4,"preemptions":7}`; !strings.Contains(b, want) || !strings.Contains(b, `"waiting_for":{"turn":0}`) {
		t.Errorf("no %s in %s", want, b)
	}
}

// TestRender: a router gets the tokens that the same request would have the model read, and nothing is generated. The
// exchanges are those of llm-d-router's tests at ebab687 (vllm_http_test.go): a text or several, messages, tools and
// their calls, the model's name put in.
func TestRender(t *testing.T) {
	x := newFixture(t, nil)
	tokens := func(v any) string { return strings.Join(strings.Fields(fmt.Sprint(v)), " ") }
	const history = `{"model": "gopher", "messages": [{"role": "user", "content": "weather?"},
		{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"city\": \"Zurich\"}"}}]},
		{"role": "tool", "tool_call_id": "c1", "content": "sunny"}], "tools": [{"type": "function", "function": {"name": "f"}}]}`
	for _, q := range []string{body(""), history, body(`, "tools": [{"type": "function", "function": {"name": "f"}}], "chat_template_kwargs": {"enable_thinking": false}`)} {
		x.do("POST", "/v1/chat/completions", q)
		want, asked := tokens(x.fake.last().Prompt), len(x.fake.requests)
		status, b := x.do("POST", "/v1/chat/completions/render", q)
		if have := tokens(get(t, b, "token_ids")); status != 200 || have != want || get(t, b, "features") != nil || get(t, b, "request_id") == "" {
			t.Errorf("%d %s, want %s", status, b, want)
		}
		if len(x.fake.requests) != asked {
			t.Error("it generates")
		}
	}
	x.do("POST", "/v1/completions", `{"prompt": "func"}`)
	want := tokens(x.fake.last().Prompt)
	_, b := x.do("POST", "/completions/render", `{"model": "gopher", "prompt": ["func", "b"]}`)
	if have := tokens(get(t, b, 0, "token_ids")); have != want {
		t.Errorf("%s, want %s", b, want)
	}
	if _, b = x.do("POST", "/v1/completions/render", `{"prompt": [[5, 6, 7], [8]]}`); tokens(get(t, b, 0, "token_ids")) != "[5 6 7]" || tokens(get(t, b, 1, "token_ids")) != "[8]" {
		t.Errorf("%s", b)
	}
	if status, b := x.do("POST", "/v1/completions/render", `{}`); status != 400 || get(t, b, "error", "param") != "prompt" {
		t.Errorf("%d %s", status, b)
	}
}

func TestRefusals(t *testing.T) {
	x := newFixture(t, nil)
	chat, completion, message, response := "/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"
	for _, c := range []struct {
		path, body  string
		status      int
		param, code string
	}{
		{chat, `{`, 400, "", ""},
		{chat, `[]`, 400, "", ""},
		{chat, `{} {}`, 400, "", ""},
		{chat, `{}`, 400, "messages", ""},
		{chat, `{"messages": "hi"}`, 400, "messages", ""},
		{chat, `{"messages": [null]}`, 400, "messages[0]", ""},
		{chat, `{"messages": [{"role": "user", "content": 5}]}`, 400, "messages[0].content", ""},
		{chat, `{"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}`, 400, "messages[0].content[0].type", "unsupported_parameter"},
		{chat, `{"messages": [{"role": "robot", "content": "x"}]}`, 400, "messages[0].role", ""},
		{chat, body(`, "temperature": "hot"`), 400, "temperature", ""},
		{chat, body(`, "temperature": -1`), 400, "temperature", ""},
		{chat, body(`, "temperature": 1e999`), 400, "temperature", ""},
		{chat, body(`, "top_p": 2`), 400, "top_p", ""},
		{chat, body(`, "samplers": ["nothing"]`), 400, "samplers", ""},
		{chat, body(`, "n": 0`), 400, "n", ""},
		{chat, body(`, "n": 1.5`), 400, "n", ""},
		{chat, body(`, "n": 99`), 400, "n", ""},
		{chat, body(`, "stop": [""]`), 400, "stop[0]", ""},
		{chat, body(`, "stop": 5`), 400, "stop", ""},
		{chat, body(`, "max_tokens": -2`), 400, "max_tokens", ""},
		{chat, body(`, "max_completion_tokens": -5`), 400, "max_completion_tokens", ""},
		{chat, body(`, "top_logprobs": 2`), 400, "top_logprobs", ""},
		{chat, body(`, "logprobs": true, "top_logprobs": 21`), 400, "top_logprobs", ""},
		{chat, body(`, "logit_bias": {"99999": 1}`), 400, "logit_bias", ""},
		{chat, body(`, "logit_bias": {"5": "x"}`), 400, "logit_bias.5", ""},
		{chat, body(`, "response_format": {"type": "yaml"}`), 400, "response_format", "unsupported_parameter"},
		{chat, body(`, "response_format": {"type": "json_schema"}`), 400, "response_format", ""},
		{chat, body(`, "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"unevaluatedItems": false}}}`), 400, "response_format.json_schema.schema", "unsupported_schema"},
		{chat, body(`, "response_format": {"type": "json_object"}, "guided_regex": "a"`), 400, "response_format", ""},
		{chat, body(`, "grammar": "root ::= x"`), 400, "grammar", "invalid_schema"},
		{chat, body(`, "guided_regex": "(a)\\1"`), 400, "guided_regex", "unsupported_schema"},
		{chat, body(`, "structured_outputs": {"choice": []}`), 400, "structured_outputs.choice", "invalid_schema"},
		{chat, body(`, "tools": [{"type": "retrieval"}]`), 400, "tools[0].type", "unsupported_parameter"},
		{chat, body(`, "tools": [{"type": "function", "function": {}}]`), 400, "tools[0].function.name", ""},
		{chat, body(weather + `, "tool_choice": "maybe"`), 400, "tool_choice", ""},
		{chat, body(weather + `, "tool_choice": {"type": "function", "function": {"name": "other"}}`), 400, "tool_choice", ""},
		{chat, body(strings.ReplaceAll(weather, "get_weather", "get weather") + `, "tool_choice": "required"`), 400, "tool_choice", "unsupported_parameter"},
		{chat, body(`, "chat_template_kwargs": {"enable_thinking": "yes"}`), 400, "chat_template_kwargs.enable_thinking", ""},
		{chat, strings.Replace(body(""), "gopher", "other", 1), 404, "model", "model_not_found"},
		{chat, strings.Replace(body(""), "Hello", strings.Repeat("a b c d ", 2000), 1), 400, "", "context_length_exceeded"},
		{chat, "{\"messages\": \"\xff\"}", 400, "", ""},
		{chat, strings.Repeat(`{"metadata":`, 300) + "1" + strings.Repeat("}", 300), 400, "", ""},
		{completion, `{}`, 400, "prompt", ""},
		{completion, `{"prompt": [99999]}`, 400, "prompt[0]", ""},
		{completion, `{"prompt": [[1], "a", 5]}`, 400, "prompt[2]", ""},
		{completion, `{"prompt": "a", "suffix": "b"}`, 400, "suffix", "unsupported_parameter"},
		{completion, `{"prompt": ""}`, 400, "", ""},
		{response, `{}`, 400, "input", ""},
		{response, `{"input": "a", "previous_response_id": "resp_1"}`, 400, "previous_response_id", "previous_response_not_found"},
		{response, `{"input": "a", "conversation": "conv_1"}`, 400, "conversation", "unsupported_parameter"},
		{response, `{"input": "a", "prompt": {"id": "p"}}`, 400, "prompt", "unsupported_parameter"},
		{response, `{"input": "a", "truncation": "some"}`, 400, "truncation", ""},
		{response, `{"input": "a", "text": {"format": {"type": "json_schema"}}}`, 400, "text.format", ""},
		{response, `{"input": "a", "tools": [{"name": "f"}]}`, 400, "tools[0].type", ""},
		{response, `{"input": "a", "tools": [{"type": "namespace", "name": "n", "tools": [{"type": "function"}]}]}`, 400, "tools[0].tools[0].name", ""},
		{response, `{"input": "a", "tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}`, 400, "tool_choice", "unsupported_parameter"},
		{response, `{"input": [{"type": "item_reference", "id": "rs_1"}]}`, 404, "input[0].id", "item_not_found"},
		{response, `{"input": [{"type": "thing"}]}`, 400, "input[0].type", "unsupported_parameter"},
		{response, `{"input": [{"type": "compaction", "encrypted_content": "x"}]}`, 400, "input[0].type", "unsupported_parameter"},
		{response, `{"input": [{"type": "computer_call_output", "call_id": "1", "output": {"type": "computer_screenshot"}}]}`, 400, "input[0].type", "unsupported_parameter"},
		{response, `{"input": [{"type": "function_call_output", "call_id": "1", "output": [{"type": "input_image", "image_url": "x"}]}]}`, 400, "input[0].output[0].type", "unsupported_parameter"},
		{chat, body(`, "modalities": ["text", "audio"]`), 400, "modalities", "unsupported_parameter"},
		{chat, body(`, "continue_final_message": true`), 400, "continue_final_message", ""},
		{chat, body(`, "functions": [{"parameters": {}}]`), 400, "functions[0].name", ""},
		{chat, body(weather + `, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "other"}}]}}`), 400, "tool_choice", ""},
		{chat, body(weather + `, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "any"}}`), 400, "tool_choice.mode", ""},
		{"/tokenize", `{}`, 400, "content", ""},
		{"/detokenize", `{"tokens": [-1]}`, 400, "tokens", ""},
		{"/nowhere", `{}`, 404, "", "not_found"},
	} {
		status, b := x.do("POST", c.path, c.body)
		orEmpty := func(v any) string { s, _ := v.(string); return s }
		param, code := orEmpty(get(t, b, "error", "param")), orEmpty(get(t, b, "error", "code"))
		if status != c.status || param != c.param || code != c.code {
			t.Errorf("%s %.80s: %d param %q code %q, want %d %q %q: %s", c.path, c.body, status, param, code, c.status, c.param, c.code, b)
		}
	}
	for _, c := range []struct {
		body, kind string
		status     int
	}{
		{`{"messages": [{"role": "user", "content": "a"}]}`, "invalid_request_error", 400}, // no max_tokens
		{`{"max_tokens": 5, "messages": []}`, "invalid_request_error", 400},
		{`{"max_tokens": 5, "messages": [{"role": "tool", "content": "a"}]}`, "invalid_request_error", 400},
		{`{"max_tokens": 5, "messages": [{"role": "user", "content": [{"type": "image"}]}]}`, "invalid_request_error", 400},
		{`{"max_tokens": 5, "model": "other", "messages": [{"role": "user", "content": "a"}]}`, "not_found_error", 404},
	} {
		status, b := x.do("POST", message, c.body)
		if status != c.status || get(t, b, "type") != "error" || get(t, b, "error", "type") != c.kind || get(t, b, "request_id") == "" {
			t.Errorf("%s: %d %s", c.body, status, b)
		}
	}
	if len(x.fake.requests) != 0 {
		t.Errorf("%d bad requests came to the engine", len(x.fake.requests))
	}
}

func TestHTTP(t *testing.T) {
	x := newFixture(t, func(o *Options) { o.MaxBody = 1000; o.Loopback = true; o.Origins = []string{"https://page.example"} })
	for _, c := range []struct {
		method, path, body string
		headers            []string
		status             int
	}{
		{"GET", "/v1/chat/completions", "", nil, 405},
		{"POST", "/v1/models", "{}", nil, 405},
		{"DELETE", "/health", "", nil, 405},
		{"POST", "/v1/chat/completions", "hi", []string{"Content-Type", "text/plain"}, 415},
		{"POST", "/v1/chat/completions", body(`, "x": "` + strings.Repeat("x", 2000) + `"`), nil, 413},
		{"GET", "/live", "", []string{"Host", "evil.example"}, 403},
		{"GET", "/live", "", []string{"Host", "localhost:8080"}, 200},
		{"GET", "/live", "", []string{"Host", "[::1]:80"}, 200},
		{"GET", "/live", "", []string{"Host", "127.0.0.1.evil.example"}, 403},
		{"POST", "/v1/chat/completions", body(""), []string{"Origin", "https://evil.example"}, 403},
		{"POST", "/v1/chat/completions", body(""), []string{"Origin", "https://page.example"}, 200},
		{"OPTIONS", "/v1/chat/completions", "", []string{"Origin", "https://page.example", "Access-Control-Request-Method", "POST"}, 204},
		{"GET", "/metrics", "", nil, 200},
		{"GET", "/version", "", nil, 200},
		{"GET", "/props", "", nil, 200},
		{"GET", "/slots", "", nil, 200},
		{"GET", "/load", "", nil, 200},
		{"GET", "/v1/models/gopher", "", nil, 200},
		{"GET", "/models/other", "", nil, 404},
		{"GET", "/health?deep=1", "", nil, 200},
		{"GET", "/", "", nil, 404},
	} {
		status, b := x.do(c.method, c.path, c.body, c.headers...)
		if status != c.status {
			t.Errorf("%s %s %v: %d, want %d: %s", c.method, c.path, c.headers, status, c.status, b)
		}
	}
	r, _ := http.NewRequest("GET", x.http.URL+"/live", nil)
	r.Header.Set("X-Request-Id", "mine-1")
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.Header.Get("X-Request-Id") != "mine-1" {
		t.Errorf("the request's id is %q, %v", resp.Header.Get("X-Request-Id"), err)
	}
	resp.Body.Close()
}

func TestKeys(t *testing.T) {
	x := newFixture(t, func(o *Options) {
		o.Keys = []Key{{Key: "one", Requests: 2}, {Key: "two", AtOnce: 1, Priority: 3}, {Key: "root", Admin: true}}
	})
	ask := func(headers ...string) int {
		status, _ := x.do("POST", "/v1/chat/completions", body(`, "priority": 9`), headers...)
		return status
	}
	for _, c := range []struct {
		headers []string
		want    int
	}{
		{nil, 401},
		{[]string{"Authorization", "Bearer wrong"}, 401},
		{[]string{"Authorization", "Bearer one"}, 200},
		{[]string{"X-Api-Key", "one"}, 200},
		{[]string{"Authorization", "bearer one"}, 429},
		{[]string{"Authorization", "Bearer two"}, 200},
	} {
		if got := ask(c.headers...); got != c.want {
			t.Errorf("%v: %d, want %d", c.headers, got, c.want)
		}
	}
	if p := x.fake.last().Priority; p != 3 {
		t.Errorf("priority is %d, the key's is 3", p)
	}
	if status, _ := x.do("GET", "/health", ""); status != 200 {
		t.Errorf("health needs a key: %d", status)
	}
	if status, _ := x.do("POST", "/drain", "", "Authorization", "Bearer one"); status != 403 {
		t.Errorf("any key may drain: %d", status)
	}
	if status, _ := x.do("POST", "/drain", "", "Authorization", "Bearer root"); status != 202 {
		t.Errorf("drain: %d", status)
	}
	select {
	case <-x.server.Asked():
	default:
		t.Error("nobody asked for a drain")
	}
	if got := ask("Authorization", "Bearer two"); got != 503 {
		t.Errorf("while draining: %d", got)
	}
}

func TestErrorInStream(t *testing.T) {
	x := newFixture(t, nil)
	x.fake.fail = errors.New("the device burns")
	x.fake.answers["Hello"] = "one two three four five"
	status, b := x.do("POST", "/v1/chat/completions", body(`, "stream": true`))
	all := events(t, b, true)
	last := all[len(all)-1]
	if status != 200 || get(t, last, "error", "type") != "server_error" {
		t.Errorf("%d %s", status, b)
	}
	if strings.Contains(b, "burns") {
		t.Errorf("the client is told of the inside: %s", b)
	}
	if status, _ = x.do("POST", "/v1/chat/completions", body("")); status != 500 {
		t.Errorf("without a stream: %d", status)
	}
	_, b = x.do("POST", "/v1/messages", `{"max_tokens": 50, "stream": true, "messages": [{"role": "user", "content": "Hello"}]}`)
	if !strings.Contains(b, "event: error\n") {
		t.Errorf("no event error: %s", b)
	}
	_, b = x.do("POST", "/v1/responses", `{"input": "Hello", "stream": true}`)
	if !strings.Contains(b, "event: response.failed\n") {
		t.Errorf("no event response.failed: %s", b)
	}
}

// A client that leaves ends its sequence.
func TestClientLeaves(t *testing.T) {
	x := newFixture(t, nil)
	x.fake.delay = 2 * time.Millisecond
	x.fake.answers["Hello"] = strings.Repeat("more and ", 400)
	for _, stream := range []string{"", `, "stream": true`} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		r, _ := http.NewRequestWithContext(ctx, "POST", x.http.URL+"/v1/chat/completions", strings.NewReader(body(stream)))
		r.Header.Set("Content-Type", "application/json")
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Read(make([]byte, 10))
			cancel()
			resp.Body.Close()
		}
		cancel()
	}
	x.settled()
}

// settled waits until the engine has nothing to do.
func (x *fixture) settled() {
	x.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		x.fake.mu.Lock()
		n := x.fake.active
		x.fake.mu.Unlock()
		if n == 0 && x.server.inFlight.Load() == 0 {
			return
		}
	}
	x.t.Error("sequences still run")
}

func TestDrain(t *testing.T) {
	x := newFixture(t, nil)
	x.fake.delay = 5 * time.Millisecond
	x.fake.answers["Hello"] = strings.Repeat("more and ", 400)
	x.server.Load(t.Context(), "")
	got := make(chan string)
	go func() {
		_, b := x.do("POST", "/v1/chat/completions", body(""))
		got <- b
	}()
	for x.server.inFlight.Load() == 0 || x.fake.asked() == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := x.server.Drain(ctx); err != nil {
		t.Error(err)
	}
	b := <-got
	if get(t, b, "choices", 0, "finish_reason") != "length" || get(t, b, "drained") != true {
		t.Errorf("the answer was not cut short: %s", b)
	}
	if status, _ := x.do("GET", "/ready", ""); status != 503 {
		t.Errorf("ready while draining: %d", status)
	}
	if status, _ := x.do("GET", "/live", ""); status != 200 {
		t.Errorf("not live: %d", status)
	}
	if !x.fake.isClosed() {
		t.Error("the engine is not closed")
	}
}

func TestKeepAlive(t *testing.T) {
	x := newFixture(t, func(o *Options) { o.KeepAlive = 10 * time.Millisecond })
	x.fake.delay = 60 * time.Millisecond
	x.fake.answers["Hello"] = "a b"
	_, b := x.do("POST", "/v1/chat/completions", body(`, "stream": true`))
	if strings.Count(b, ": keep-alive\n\n") < 3 {
		t.Errorf("no comments: %s", b)
	}
	if content, _, _, _ := assemble(t, events(t, b, true)); content != "a b" {
		t.Errorf("content %q", content)
	}
}

func TestSeveralModels(t *testing.T) {
	var x *fixture
	var mu sync.Mutex
	opened := map[string]int{}
	open := func(name string) *Served {
		return &Served{Names: []string{name, "alias-" + name}, Bytes: 100, Ctx: 2048, Open: func(context.Context) (*Model, error) {
			mu.Lock()
			opened[name]++
			mu.Unlock()
			m, err := x.model()
			if err == nil {
				m.Engine = newFake(x.tok)
			}
			return m, err
		}}
	}
	x = newFixture(t, func(o *Options) { o.Served = []*Served{open("a"), open("b"), open("c")}; o.Memory = 250 })
	ask := func(name string) {
		status, b := x.do("POST", "/v1/chat/completions", strings.Replace(body(""), "gopher", name, 1))
		if status != 200 {
			t.Errorf("%s: %d %s", name, status, b)
		}
	}
	if status, b := x.do("POST", "/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}]}`); status != 404 {
		t.Errorf("no model named among several: %d %s", status, b)
	}
	for _, name := range []string{"a", "b", "a", "c", "alias-a", "b"} { // c takes the place of b, b that of c
		ask(name)
	}
	if opened["a"] != 1 || opened["b"] != 2 || opened["c"] != 1 {
		t.Errorf("opened %v", opened)
	}
	_, b := x.do("GET", "/v1/models", "")
	states := map[any]any{}
	for i := range get(t, b, "data").([]any) {
		states[get(t, b, "data", i, "id")] = get(t, b, "data", i, "state")
	}
	if states["a"] != "loaded" || states["alias-b"] != "loaded" || states["c"] != "unloaded" || len(states) != 6 {
		t.Errorf("models are %v", states)
	}
	// All three at once, many times: nobody waits for ever, no model goes while it is used.
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() { ask([]string{"a", "b", "c"}[i%3]) })
	}
	all.Wait()
}

// A model in use is not unloaded: whoever needs its place waits, but not for ever.
func TestWaitForRoom(t *testing.T) {
	var x *fixture
	x = newFixture(t, func(o *Options) {
		o.Served = []*Served{
			{Names: []string{"a"}, Bytes: 100, Ctx: 2048, Open: func(context.Context) (*Model, error) { return x.model() }},
			{Names: []string{"b"}, Bytes: 100, Ctx: 2048, Open: func(context.Context) (*Model, error) { return x.model() }},
		}
		o.Memory, o.QueueTimeout = 150, 400*time.Millisecond
	})
	x.fake.answers["Hello"] = strings.Repeat("more and ", 400)
	x.fake.delay = 20 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, _ := http.NewRequestWithContext(ctx, "POST", x.http.URL+"/v1/chat/completions", strings.NewReader(strings.Replace(body(""), "gopher", "a", 1)))
		r.Header.Set("Content-Type", "application/json")
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
		}
	}()
	for {
		x.fake.mu.Lock()
		n := x.fake.active
		x.fake.mu.Unlock()
		if n > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	ask := strings.Replace(strings.Replace(body(""), "gopher", "b", 1), "Hello", "other", 1)
	if status, b := x.do("POST", "/v1/chat/completions", ask); status != 429 || get(t, b, "error", "code") != "queue_timeout" {
		t.Errorf("while the other is in use: %d %s", status, b)
	}
	cancel()
	<-done
	x.settled()
	if status, b := x.do("POST", "/v1/chat/completions", ask); status != 200 {
		t.Errorf("afterwards: %d %s", status, b)
	}
}

func TestLoadFails(t *testing.T) {
	tries := 0
	x := newFixture(t, func(o *Options) {
		o.Served = []*Served{{Names: []string{"gopher"}, Open: func(context.Context) (*Model, error) { tries++; return nil, errors.New("no such file") }}}
	})
	for range 2 {
		if status, b := x.do("POST", "/v1/chat/completions", body("")); status != 500 {
			t.Errorf("%d %s", status, b)
		}
	}
	if tries != 2 {
		t.Errorf("tried %d times", tries)
	}
	if status, _ := x.do("GET", "/health", ""); status != 503 {
		t.Errorf("healthy without a model: %d", status)
	}
}

func TestNative(t *testing.T) {
	x := newFixture(t, nil)
	_, b := x.do("POST", "/tokenize", `{"content": "func main<|im_end|>é", "with_pieces": true}`)
	if get(t, b, "tokens", 0, "piece") == nil || !strings.Contains(b, "<|im_end|>") {
		t.Error(b)
	}
	_, b = x.do("POST", "/tokenize", `{"content": "func main"}`)
	ids := strings.TrimSpace(strings.TrimPrefix(b, `{"tokens":`))
	_, back := x.do("POST", "/detokenize", `{"tokens":`+ids)
	if get(t, back, "content") != "func main" {
		t.Errorf("%s gives %s", b, back)
	}
	_, b = x.do("POST", "/apply-template", body(""))
	if p := get(t, b, "prompt"); p != "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n" {
		t.Errorf("prompt %q", p)
	}
	// What a user writes is never a special token.
	_, b = x.do("POST", "/v1/messages/count_tokens", `{"messages": [{"role": "user", "content": "a"}]}`)
	few := get(t, b, "input_tokens").(float64)
	_, b = x.do("POST", "/v1/messages/count_tokens", `{"messages": [{"role": "user", "content": "a<|im_end|>"}]}`)
	if many := get(t, b, "input_tokens").(float64); many < few+3 {
		t.Errorf("%v tokens with a written <|im_end|>, %v without", many, few)
	}
}

func TestMetrics(t *testing.T) {
	x := newFixture(t, nil)
	x.do("POST", "/v1/chat/completions", body(`, "unheard_of": 1`))
	_, b := x.do("GET", "/metrics", "")
	for _, want := range []string{
		`zincrun_requests_total{finish_reason="stop",model_name="gopher"} 1`,
		`vllm:request_success_total{finished_reason="stop",model_name="gopher"} 1`,
		`zincrun_ignored_fields_total 1`,
		`vllm:num_requests_waiting{model_name="gopher"} 0`,
		`vllm:num_requests_running{model_name="gopher"} 0`,
		`vllm:kv_cache_usage_perc{model_name="gopher"} 0`,
		`vllm:cache_config_info{block_size="64",model_name="gopher",num_gpu_blocks="40"} 1`,
		`vllm:time_to_first_token_seconds_count{model_name="gopher"} 1`,
		`vllm:request_prompt_tokens_count{model_name="gopher"} 1`,
		`zincrun_model_loaded{model_name="gopher"} 1`,
		`zincrun_prefix_tokens_kept{model_name="gopher"} 700`,
		`zincrun_prefix_pieces_kept{model_name="gopher"} 3`,
		`zincrun_states_used{model_name="gopher"} 2`,
		`zincrun_pages_total{model_name="gopher"} 40`,
		`zincrun_pages_free{model_name="gopher"} 10`,
		`zincrun_pages_held{model_name="gopher"} 30`,
		`zincrun_pages_shared{model_name="gopher"} 4`,
		`zincrun_preemptions_total{model_name="gopher"} 7`,
		`vllm:num_preemptions_total{model_name="gopher"} 7`,
		`zincrun_state_bytes{model_name="gopher"} 8`,
		`zincrun_prefix_tokens_forgotten_total{model_name="gopher"} 64`,
		`zincrun_states_evicted_total{model_name="gopher"} 1`,
		`zincrun_prefix_tokens_restored_total{model_name="gopher"} 32`,
		`zincrun_admissions_total{model_name="gopher",reuse="copied"} 5`,
		`zincrun_prompt_waits_total{model_name="gopher",reason="itl"} 6`,
		`zincrun_tokens_chosen_total{by="candidates",model_name="gopher"} 7`,
		`zincrun_submissions_ahead_total{model_name="gopher"} 9`,
		`zincrun_requests_waiting_for{model_name="gopher",reason="turn"} 0`,
		`vllm:num_requests_waiting_by_reason{model_name="gopher",reason="capacity"} 0`,
		`vllm:num_requests_waiting_by_reason{model_name="gopher",reason="deferred"} 0`,
	} {
		if !strings.Contains(b, want+"\n") {
			t.Errorf("no %s in\n%s", want, b)
		}
	}
	for _, name := range []string{"go_goroutines", "process_resident_memory_bytes", "process_open_fds"} {
		if !strings.Contains(b, "\n"+name+" ") {
			t.Errorf("no %s", name)
		}
	}
	y := newFixture(t, func(o *Options) { o.Compat = false })
	if _, b := y.do("GET", "/metrics", ""); strings.Contains(b, "vllm:") {
		t.Error("vLLM's names are there")
	}
}
