package main

import (
	"encoding/json"
	"math"
	"strings"
)

const (
	asked    = `"messages": [{"role": "user", "content": "What does strings.Cut do?"}], "temperature": 0`
	answer   = "Cut slices s around the first instance of sep, returning the text before and after sep."
	thought  = "strings.Cut is in package strings. I recall its comment."
	sum      = `"messages": [{"role": "user", "content": "What is 17 plus 25?"}], "temperature": 0`
	adds     = `{"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}`
	addTool  = `"tools": [{"type": "function", "function": {"name": "add", "description": "Adds two numbers.", "parameters": ` + adds + `}}]`
	addInput = `"tools": [{"name": "add", "description": "Adds two numbers.", "input_schema": ` + adds + `}]`
	called   = `"messages": [{"role": "user", "content": "What is 17 plus 25?"},
		{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 17, \"b\": 25}"}}]},
		{"role": "tool", "tool_call_id": "c1", "content": "42"}], ` + addTool
	message = "choices.0.message."
	delta   = "events.*.choices.0.delta."
)

// answers wants the answer to asked.
func (r *reply) answers() *reply {
	r.code(200).says(message+"content", answer)
	return r
}

// adds wants the call that answers sum.
func (r *reply) adds(name, arguments string) *reply {
	var args struct{ A, B float64 }
	err := json.Unmarshal([]byte(r.str(arguments)), &args)
	return r.code(200).says(name, "add").is(err == nil && args.A == 17 && args.B == 25, "want 17 and 25 added")
}

var chatRows = []row{
	{"chat", "an answer", "", func(t *trial) {
		r := t.chat(`{`+asked+`, "max_tokens": 100}`).answers().eq("object", "chat.completion").eq("choices.0.finish_reason", "stop").eq(message+"role", "assistant")
		r.is(strings.TrimSpace(r.str(message+"reasoning_content")) == thought, "want the reasoning apart").eq("usage.prompt_tokens", 14)
		r.is(r.str("id") != "" && r.num("created") > 1e9 && r.str("model") == "gopher-chat", "want id, created and model")
	}},
	{"chat", "white space around reasoning", "is no part of it; llama-server leaves the line feed at its end", func(t *trial) {
		t.chat(`{`+asked+`, "max_tokens": 100}`).says(message+"reasoning_content", thought+either(t, "", "\n"))
	}},
	{"chat", "length", "", func(t *trial) {
		for _, max := range []string{`"max_tokens": 3`, `"max_completion_tokens": 3`, `"n_predict": 3`} {
			t.chat(`{`+asked+`, `+max+`}`).code(200).eq("choices.0.finish_reason", "length").eq("usage.completion_tokens", 3)
		}
	}},
	{"chat", "system, turns, parts of text", "", func(t *trial) {
		t.chat(`{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."},
			{"role": "user", "content": [{"type": "text", "text": "What does "}, {"type": "text", "text": "strings.Cut do?"}]}], "max_tokens": 4}`).code(200).eq("usage.completion_tokens", 4)
	}},
	{"chat", "stream", "", func(t *trial) {
		r := t.chat(`{`+asked+`, "max_tokens": 100, "stream": true}`).code(200).eq("done", true).eq("events.0.choices.0.delta.role", "assistant")
		r.says(delta+"content", answer).says("events.*.choices.0.finish_reason", "stop").eq("events.0.object", "chat.completion.chunk")
		r.is(strings.TrimSpace(r.str(delta+"reasoning_content")) == thought, "want the reasoning apart").size(delta+"role", 1)
	}},
	{"chat", "usage of a stream", "", func(t *trial) {
		r := t.chat(`{`+asked+`, "max_tokens": 3, "stream": true, "stream_options": {"include_usage": true}}`).size("events.*.usage.completion_tokens", 1)
		r.is(r.num("events.*.usage.completion_tokens") == 3 && r.num("events.*.usage.prompt_tokens") == 14, "want usage in the last event")
		t.chat(`{`+asked+`, "max_tokens": 3, "stream": true}`).size("events.*.usage", 0)
	}},
	{"chat", "several answers", "", func(t *trial) {
		r := t.chat(`{`+asked+`, "max_tokens": 4, "n": 2}`).code(200).size("choices.*", 2).eq("choices.1.index", 1)
		r.says("choices.1.message.reasoning_content", r.str("choices.0.message.reasoning_content"))
	}},
	{"chat", "logprobs", "", func(t *trial) {
		r := t.chat(`{`+asked+`, "max_tokens": 3, "logprobs": true, "top_logprobs": 2}`).code(200).size("choices.0.logprobs.content.*", 3).size("choices.0.logprobs.content.0.top_logprobs.*", 2)
		third := "choices.0.logprobs.content.2."
		r.eq(third+"token", "strings").eq(third+"bytes", []int{115, 116, 114, 105, 110, 103, 115}).is(math.Abs(r.num(third+"logprob")+0.387) < 0.05, "want about -0.387").eq(third+"top_logprobs.0.token", "strings")
		t.chat(`{` + asked + `, "max_tokens": 1, "top_logprobs": 2}`).fails(400)
	}},
	{"chat", "logprobs of a stream", "covers all tokens; llama-server leaves out tokens that add no text", func(t *trial) {
		t.chat(`{`+asked+`, "max_tokens": 5, "logprobs": true, "stream": true}`).code(200).size("events.*.choices.0.logprobs.content.*.logprob", either(t, 5, 4))
	}},
	{"chat", "stop", "", func(t *trial) {
		t.chat(`{`+asked+`, "max_tokens": 100, "stop": ["first"]}`).code(200).says(message+"content", "Cut slices s around the ").eq("choices.0.finish_reason", "stop")
	}},
	{"chat", "reasoning off", "", func(t *trial) {
		for _, off := range []string{`"chat_template_kwargs": {"enable_thinking": false}`, `"reasoning_effort": "none"`} {
			t.chat(`{`+asked+`, "max_tokens": 100, `+off+`}`).answers().eq(message+"reasoning_content", nil).eq("usage.prompt_tokens", 18)
		}
	}},
	{"chat", "reasoning in the content", "", func(t *trial) {
		const whole = "<think>\n" + thought + "\n</think>\n\n" + answer
		t.chat(`{`+asked+`, "max_tokens": 100, "reasoning_format": "none"}`).code(200).says(message+"content", whole).eq(message+"reasoning_content", nil)
		t.chat(`{`+asked+`, "max_tokens": 100, "reasoning_format": "none", "stream": true}`).code(200).says(delta+"content", whole)
	}},
	{"chat", "budget of reasoning", "", func(t *trial) {
		t.chat(`{`+asked+`, "max_tokens": 100, "thinking_budget_tokens": 3}`).answers().says(message+"reasoning_content", "strings.Cut")
		t.chat(`{`+asked+`, "max_tokens": 100, "thinking_budget_tokens": 0}`).answers().eq(message+"reasoning_content", nil)
	}},
	{"chat", "messages that are wrong", "", func(t *trial) {
		for _, body := range []string{`{"max_tokens": 2}`, `{"messages": 5}`, `{"messages": [{"role": "user"}], "max_tokens": 2}`} {
			t.chat(body).fails(400)
		}
	}},
	{"chat", "no messages", "gives an error; llama-server answers the empty conversation", func(t *trial) {
		t.chat(`{"messages": [], "max_tokens": 2}`).code(either(t, 400, 200))
	}},
	{"chat", "no role, malformed tools", "gives 400, since it is the client's error; llama-server gives 500", func(t *trial) {
		t.chat(`{"messages": [{"content": "a"}], "max_tokens": 2}`).fails(either(t, 400, 500))
		t.chat(`{` + asked + `, "max_tokens": 2, "tools": 5}`).fails(either(t, 400, 500))
		t.chat(`{` + asked + `, "max_tokens": 2, "tools": [{"type": "x"}]}`).fails(either(t, 400, 500))
	}},
	{"chat", "images to a model without image input", "gives 400, since it is the client's error; llama-server gives 500", func(t *trial) {
		t.chat(`{"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]}`).fails(either(t, 400, 500))
	}},
	{"chat", "an unknown role", "gives an error; llama-server leaves it to the template, which may drop the message", func(t *trial) {
		t.chat(`{"messages": [{"role": "wizard", "content": "a"}], "max_tokens": 2}`).code(either(t, 400, 200))
	}},
	{"chat", "an assistant's message at the end", "counts as a finished turn, as in OpenAI's API, so a new answer follows; llama-server continues it", func(t *trial) {
		r := t.chat(`{"messages": [{"role": "user", "content": "What does strings.Cut do?"}, {"role": "assistant", "content": "Cut slices s around"}], "max_tokens": 6, "temperature": 0}`).code(200)
		r.is(strings.HasPrefix(r.str(message+"content"), "Cut slices s around the first") != t.ours(), "want it continued by llama-server alone")
	}},
	{"chat", "a JSON schema", "", func(t *trial) {
		const schema = `{"type": "object", "properties": {"title": {"type": "string", "maxLength": 8}, "year": {"type": "integer", "minimum": 1900, "maximum": 2030}}, "required": ["title", "year"], "additionalProperties": false}`
		r := t.chat(`{` + asked + `, "max_tokens": 100, "temperature": 0, "reasoning_effort": "none", "response_format": {"type": "json_schema", "json_schema": {"name": "book", "schema": ` + schema + `}}}`).code(200)
		var book struct {
			Title string
			Year  int
		}
		r.is(json.Unmarshal([]byte(r.str(message+"content")), &book) == nil && book.Year >= 1900 && book.Year <= 2030, "want JSON of the schema")
	}},
	{"chat", "a response_format that nobody knows", "", func(t *trial) {
		t.chat(`{` + asked + `, "response_format": {"type": "nonsense"}}`).fails(400)
		t.chat(`{` + asked + `, "max_tokens": 2, "response_format": {"type": "text"}}`).code(200)
	}},
	{"tools", "a call", "", func(t *trial) {
		r := t.chat(`{`+sum+`, `+addTool+`}`).adds(message+"tool_calls.0.function.name", message+"tool_calls.0.function.arguments").eq("choices.0.finish_reason", "tool_calls")
		r.eq(message+"tool_calls.0.type", "function").is(r.str(message+"tool_calls.0.id") != "" && r.str(message+"content") == "", "want an id and no content").size(message+"tool_calls.*", 1)
	}},
	{"tools", "a streamed call", "", func(t *trial) {
		r := t.chat(`{`+sum+`, `+addTool+`, "stream": true}`).adds(delta+"tool_calls.*.function.name", delta+"tool_calls.*.function.arguments").says("events.*.choices.0.finish_reason", "tool_calls")
		r.size(delta+"tool_calls.*.id", 1).is(r.str(delta+"content") == "", "want no content").is(len(r.all(delta+"tool_calls.*.index")) > 3, "want arguments in pieces")
	}},
	{"tools", "the result", "", func(t *trial) {
		t.chat(`{`+called+`, "temperature": 0, "max_tokens": 60}`).code(200).says(message+"content", "The sum is 42.").eq("choices.0.finish_reason", "stop")
	}},
	{"tools", "tool_choice: none", "hides the tools from the model; llama-server shows it the tools and returns its call as text", func(t *trial) {
		r := t.chat(`{`+sum+`, `+addTool+`, "tool_choice": "none", "max_tokens": 60}`).code(200).size(message+"tool_calls", 0)
		r.is(strings.Contains(r.str(message+"content"), "<tool_call>") != t.ours(), "want a call in the text of llama-server alone")
	}},
	{"tools", "tool_choice: required", "", func(t *trial) {
		for _, more := range []string{"", `, "reasoning_effort": "none"`} {
			r := t.chat(`{`+sum+more+`, `+addTool+`, "tool_choice": "required"}`).adds(message+"tool_calls.0.function.name", message+"tool_calls.0.function.arguments")
			r.eq("choices.0.finish_reason", "tool_calls").says(message+"content", "")
		}
		t.chat(`{`+sum+`, `+addTool+`, "tool_choice": "required", "stream": true}`).adds(delta+"tool_calls.*.function.name", delta+"tool_calls.*.function.arguments")
	}},
	{"tools", "tool_choice: required, of several", "", func(t *trial) {
		both := strings.Replace(addTool, `[{`, `[{"type": "function", "function": {"name": "go_doc", "description": "Shows the documentation of a Go symbol.",
			"parameters": {"type": "object", "properties": {"symbol": {"type": "string"}}, "required": ["symbol"]}}}, {`, 1)
		t.chat(`{`+sum+`, `+both+`, "tool_choice": "required", "max_tokens": 100}`).adds(message+"tool_calls.0.function.name", message+"tool_calls.0.function.arguments")
		t.chat(`{`+asked+`, `+both+`, "tool_choice": "required", "max_tokens": 100}`).eq(message+"tool_calls.0.function.name", "go_doc").says(message+"tool_calls.0.function.arguments", `{"symbol": "strings.Cut"}`)
	}},
	{"tools", "tool_choice: required, and no tool fits", "", func(t *trial) {
		r := t.chat(`{`+asked+`, `+addTool+`, "tool_choice": "required", "max_tokens": 100}`).code(200).eq(message+"tool_calls.0.function.name", "add")
		r.eq("choices.0.finish_reason", "tool_calls").is(json.Valid([]byte(r.str(message+"tool_calls.0.function.arguments"))), "want JSON")
	}},
	{"tools", "tool_choice: a function", "", func(t *trial) {
		t.chat(`{`+sum+`, `+addTool+`, "tool_choice": {"type": "function", "function": {"name": "add"}}}`).adds(message+"tool_calls.0.function.name", message+"tool_calls.0.function.arguments").
			size(message+"tool_calls.*", 1)
	}},
	{"tools", "tool_choice: no such function", "gives an error; llama-server ignores it", func(t *trial) {
		t.chat(`{` + sum + `, ` + addTool + `, "max_tokens": 3, "tool_choice": {"type": "function", "function": {"name": "other"}}}`).code(either(t, 400, 200))
	}},
	{"tools", "a tool_choice that nobody knows", "", func(t *trial) { t.chat(`{` + sum + `, ` + addTool + `, "tool_choice": "nonsense"}`).fails(400) }},
	{"tools", "tool_choice without tools", "gives an error; llama-server ignores it", func(t *trial) {
		t.chat(`{` + sum + `, "tool_choice": "required", "max_tokens": 3}`).code(either(t, 400, 200))
	}},
	{"tools", "parallel_tool_calls: false", "", func(t *trial) {
		t.chat(`{`+sum+`, `+addTool+`, "parallel_tool_calls": false}`).adds(message+"tool_calls.0.function.name", message+"tool_calls.0.function.arguments").size(message+"tool_calls.*", 1)
	}},
	{"tools", "no tools", "", func(t *trial) { t.chat(`{` + asked + `, "max_tokens": 100, "tools": []}`).answers() }},
	{"messages", "an answer", "", func(t *trial) {
		r := t.post("/v1/messages", `{`+asked+`, "max_tokens": 100}`).code(200).eq("type", "message").eq("role", "assistant").eq("stop_reason", "end_turn").eq("stop_sequence", nil)
		r.says("content.*.text", answer).eq("content.0.type", "thinking").eq("content.1.type", "text").is(strings.TrimSpace(r.str("content.0.thinking")) == thought, "want the reasoning")
		r.is(r.num("usage.input_tokens")+r.num("usage.cache_read_input_tokens") == 14, "want 14 tokens of input")
	}},
	{"messages", "system, parts of text", "", func(t *trial) {
		for _, system := range []string{`"Be brief."`, `[{"type": "text", "text": "Be brief."}]`} {
			t.post("/v1/messages/count_tokens", `{"system": `+system+`, "messages": [{"role": "user", "content": [{"type": "text", "text": "What does strings.Cut do?"}]}]}`).code(200).eq("input_tokens", 22)
		}
	}},
	{"messages", "stream", "", func(t *trial) {
		r := t.post("/v1/messages", `{`+asked+`, "max_tokens": 100, "stream": true}`).code(200).eq("events.0.type", "message_start").eq("events.0.message.role", "assistant")
		r.says("events.*.delta.text", answer).says("events.*.delta.stop_reason", "end_turn").is(strings.TrimSpace(r.str("events.*.delta.thinking")) == thought, "want the reasoning")
		kinds := r.all("events.*.type")
		r.is(kinds[len(kinds)-1] == "message_stop", "want message_stop at the end").size("events.*.content_block", 2)
	}},
	{"messages", "length", "", func(t *trial) {
		t.post("/v1/messages", `{`+asked+`, "max_tokens": 3}`).code(200).eq("stop_reason", "max_tokens").eq("usage.output_tokens", 3)
	}},
	{"messages", "stop_sequences", "", func(t *trial) {
		t.post("/v1/messages", `{`+asked+`, "max_tokens": 100, "stop_sequences": ["first"]}`).code(200).says("content.*.text", "Cut slices s around the ").eq("stop_sequence", "first")
	}},
	{"messages", "stop_reason of a stop sequence", "is stop_sequence, as in Anthropic's API; llama-server says end_turn", func(t *trial) {
		t.post("/v1/messages", `{`+asked+`, "max_tokens": 100, "stop_sequences": ["first"]}`).eq("stop_reason", either(t, "stop_sequence", "end_turn"))
	}},
	{"messages", "a call", "", func(t *trial) {
		r := t.post("/v1/messages", `{`+sum+`, "max_tokens": 100, `+addInput+`}`).code(200).eq("stop_reason", "tool_use").eq("content.1.type", "tool_use").eq("content.1.name", "add")
		r.eq("content.1.input", map[string]any{"a": 17, "b": 25}).is(r.str("content.1.id") != "", "want an id")
	}},
	{"messages", "tool_choice", "", func(t *trial) {
		for _, choice := range []string{`{"type": "any"}`, `{"type": "tool", "name": "add"}`} {
			r := t.post("/v1/messages", `{`+sum+`, "max_tokens": 100, "tool_choice": `+choice+`, `+addInput+`}`).code(200).eq("stop_reason", "tool_use")
			r.eq("content.1.name", "add").eq("content.1.input", map[string]any{"a": 17, "b": 25})
		}
	}},
	{"messages", "a streamed call", "", func(t *trial) {
		r := t.post("/v1/messages", `{`+sum+`, "max_tokens": 100, "stream": true, `+addInput+`}`).adds("events.*.content_block.name", "events.*.delta.partial_json")
		r.says("events.*.delta.stop_reason", "tool_use")
	}},
	{"messages", "the result", "", func(t *trial) {
		t.post("/v1/messages", `{"messages": [{"role": "user", "content": "What is 17 plus 25?"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 17, "b": 25}}]},
			{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "42"}]}], "temperature": 0, "max_tokens": 60, `+addInput+`}`).code(200).says("content.*.text", "The sum is 42.")
	}},
	{"messages", "thinking disabled", "turns reasoning off; llama-server reasons", func(t *trial) {
		t.post("/v1/messages", `{`+asked+`, "max_tokens": 100, "thinking": {"type": "disabled"}}`).code(200).says("content.*.text", answer).eq("content.0.type", either(t, "text", "thinking"))
	}},
	{"messages", "no max_tokens", "gives an error, as in Anthropic's API; llama-server generates to the end", func(t *trial) {
		t.post("/v1/messages", `{`+asked+`}`).code(either(t, 400, 200))
	}},
	{"messages", "no messages", "gives 400, since it is the client's error; llama-server gives 500", func(t *trial) {
		t.post("/v1/messages", `{"max_tokens": 5}`).code(either(t, 400, 500))
	}},
	{"responses", "an answer", "", func(t *trial) {
		r := t.post("/v1/responses", `{"input": "What does strings.Cut do?", "temperature": 0, "max_output_tokens": 100}`).code(200).eq("object", "response").eq("status", "completed")
		r.eq("output.0.type", "reasoning").eq("output.1.type", "message").says("output.1.content.*.text", answer).eq("usage.input_tokens", 14)
	}},
	{"responses", "stream", "", func(t *trial) {
		r := t.post("/v1/responses", `{"input": [{"role": "user", "content": "What does strings.Cut do?"}], "temperature": 0, "max_output_tokens": 100, "stream": true}`).code(200)
		kinds := r.all("events.*.type")
		r.eq("events.0.type", "response.created").is(kinds[len(kinds)-1] == "response.completed", "want response.completed at the end")
		var text strings.Builder
		for _, e := range r.all("events.*") {
			if e := e.(map[string]any); e["type"] == "response.output_text.delta" {
				text.WriteString(e["delta"].(string))
			}
		}
		r.is(text.String() == answer, "want the answer in deltas")
	}},
	{"responses", "length", "gives status incomplete, as in OpenAI's API; llama-server says completed", func(t *trial) {
		t.post("/v1/responses", `{"input": "What does strings.Cut do?", "temperature": 0, "max_output_tokens": 2}`).code(200).eq("status", either(t, "incomplete", "completed"))
	}},
	{"responses", "what is wrong", "", func(t *trial) {
		t.post("/v1/responses", `{"temperature": 0}`).fails(400)
		t.post("/v1/responses", `{"input": "a", "previous_response_id": "x"}`).fails(400)
	}},
}
