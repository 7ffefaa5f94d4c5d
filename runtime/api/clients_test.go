package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestClientBodies sends what real programs sent, and wants an answer with a call of one of their tools.
func TestClientBodies(t *testing.T) {
	var log bytes.Buffer
	x := newFixture(t, func(o *Options) { o.Log = slog.New(slog.NewJSONHandler(&log, nil)) })
	x.ctx = 100000
	paths, _ := filepath.Glob("testdata/clients/*.json")
	if len(paths) != 7 {
		t.Fatalf("%d bodies", len(paths))
	}
	for _, path := range paths {
		name := filepath.Base(path)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		api, _, _ := strings.Cut(name, "-")
		to := map[string]string{"chat": "/v1/chat/completions", "messages": "/v1/messages?beta=true", "responses": "/v1/responses"}[api]
		clear(x.fake.answers)
		x.fake.answers[""] = "<think>\nHm.\n</think>\n\n<tool_call>\n{\"name\": \"any_tool\", \"arguments\": {\"a\": 1}}\n</tool_call>"
		status, b := x.do("POST", to, strings.Replace(string(raw), `"MODEL"`, `"gopher"`, 1))
		if status != 200 {
			t.Errorf("%s: %d %s", name, status, b)
			continue
		}
		if want := `"any_tool"`; strings.Contains(string(raw), `"tools"`) && !strings.Contains(b, want) {
			t.Errorf("%s: no call: %s", name, b)
		}
		if have, want := strings.Contains(log.String(), `"left_out":["web_search"]`), name == "responses-codex-0.171.json"; have != want {
			t.Errorf("%s: the log says what was left out: %v", name, have)
		}
		log.Reset()
		// What the template has a place for is there, once for each member of a namespace, too.
		prompt := x.tok.Decode(x.fake.last().Prompt, true)
		if name == "responses-codex-0.171.json" && !strings.Contains(prompt, `"name": "multi_agent_v1__spawn_agent"`) {
			t.Errorf("%s: the members of a namespace are no tools", name)
		}
	}
	if _, b := x.do("GET", "/metrics", ""); !strings.Contains(b, `zincrun_left_out_total{what="web_search"} 1`) {
		t.Error("the counter does not say what was left out")
	}
}

func TestLeftOut(t *testing.T) {
	x := newFixture(t, nil)
	for _, c := range []struct{ path, body, want string }{
		{"/v1/responses", `{"input": "a", "tools": [{"type": "web_search"}, {"type": "mcp", "server_label": "x", "name": 5}, {"type": "new thing!"}]}`, "web_search, mcp, other"},
		{"/v1/responses", `{"input": [{"type": "web_search_call", "id": "w", "action": {}}, {"role": "user", "content": "a"}]}`, "web_search_call"},
		{"/v1/responses", `{"input": [{"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "gAAAA"}, {"role": "user", "content": "a"}]}`, "reasoning.encrypted_content"},
		{"/v1/responses", `{"input": "a", "tools": [{"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"}}]}`, "grammar of patch"},
		{"/v1/messages", `{"max_tokens": 5, "messages": [{"role": "user", "content": "a"}], "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}], "mcp_servers": [{}]}`, "web_search, mcp"},
		{"/v1/messages", `{"max_tokens": 5, "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}, "messages": [{"role": "user", "content": "a"},
			{"role": "assistant", "content": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}, {"type": "text", "text": "b"}]},
			{"role": "user", "content": "c"}]}`, "context_management, server_tool_use, web_search_tool_result"},
		{"/v1/chat/completions", body(`, "web_search_options": {}`), "web_search"},
		{"/v1/messages", `{"max_tokens": 5, "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}, "messages": [{"role": "user", "content": "a"}]}`, ""},
	} {
		header, status, b := x.head(c.path, c.body)
		if status != 200 || header.Get("X-Zincrun-Left-Out") != c.want {
			t.Errorf("%s %.60s: %d, left out %q, want %q: %s", c.path, c.body, status, header.Get("X-Zincrun-Left-Out"), c.want, b)
		}
	}
}

// TestRegexTools: the text of a custom tool is held to a regular expression, or the request is refused with what of it
// is not supported.
func TestRegexTools(t *testing.T) {
	x := newFixture(t, nil)
	body := `{"input": "Hello", "tool_choice": "required", "tools": [{"type": "custom", "name": "code", "format": {"type": "grammar", "syntax": "regex", "definition": %q}}]}`
	header, status, b := x.head("/v1/responses", fmt.Sprintf(body, "[0-9]{3}-[a-c]+|x"))
	if status != 200 || header.Get("X-Zincrun-Left-Out") != "" {
		t.Errorf("%d, left out %q: %s", status, header.Get("X-Zincrun-Left-Out"), b)
	}
	if f := x.fake.last().Format; f == nil {
		t.Error("the answer is held to nothing")
	}
	if _, status, b := x.head("/v1/responses", fmt.Sprintf(body, "(?<=ab)b")); status != 400 || get(t, b, "error", "code") != "unsupported_schema" || !strings.Contains(b, "code: schema: /properties/input: pattern: look-behind") {
		t.Errorf("%d %s", status, b)
	}
}

// TestOwnTools: tools of Anthropic's API that clients run are functions with the schemas that their documentation
// gives.
func TestOwnTools(t *testing.T) {
	x := newFixture(t, nil)
	x.fake.answers["Hello"] = "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>"
	header, status, b := x.head("/v1/messages", `{"max_tokens": 50, "messages": [{"role": "user", "content": "Hello"}], "tools": [{"type": "bash_20250124", "name": "bash"},
		{"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 100}, {"type": "memory_20250818", "name": "memory"}, {"type": "computer_20250124", "name": "computer", "display_width_px": 1}]}`)
	if status != 200 || header.Get("X-Zincrun-Left-Out") != "computer" || get(t, b, "content", 0, "input", "command") != "ls" || get(t, b, "stop_reason") != "tool_use" {
		t.Errorf("%d left out %s: %s", status, header.Get("X-Zincrun-Left-Out"), b)
	}
	prompt := x.tok.Decode(x.fake.last().Prompt, true)
	for _, want := range []string{`"name": "bash"`, `"restart"`, `"name": "str_replace_based_edit_tool"`, `"view_range"`, `"name": "memory"`, `"new_path"`} {
		if !strings.Contains(prompt, want) {
			t.Errorf("the model is not told of %s", want)
		}
	}
	for _, tool := range ownTools {
		if !json.Valid([]byte(tool.schema)) {
			t.Errorf("%s: %s", tool.kind, tool.schema)
		}
	}
}

// TestCustomTools: a tool that takes a text, in both APIs, streamed and whole, and back in the history.
func TestCustomTools(t *testing.T) {
	x := newFixture(t, nil)
	x.fake.answers["Hello"] = "<tool_call>\n{\"name\": \"patch\", \"arguments\": {\"input\": \"*** a\\n\\\"b\\\" \\u00e9\"}}\n</tool_call>"
	const text = "*** a\n\"b\" é"
	chatTools := `, "tools": [{"type": "custom", "custom": {"name": "patch", "description": "Applies."}}]`
	_, b := x.do("POST", "/v1/chat/completions", body(chatTools))
	if call := get(t, b, "choices", 0, "message", "tool_calls", 0).(map[string]any); call["type"] != "custom" || get(t, b, "choices", 0, "message", "tool_calls", 0, "custom", "input") != text ||
		get(t, b, "choices", 0, "finish_reason") != "tool_calls" {
		t.Error(b)
	}
	_, b = x.do("POST", "/v1/chat/completions", body(chatTools+`, "stream": true`))
	said := ""
	for _, e := range events(t, b, true) {
		if calls, ok := get(t, e, "choices", 0, "delta").(map[string]any)["tool_calls"].([]any); ok {
			said += calls[0].(map[string]any)["custom"].(map[string]any)["input"].(string)
		}
	}
	if said != text {
		t.Errorf("%q: %s", said, b)
	}
	tools := `"tools": [{"type": "custom", "name": "patch"}, {"type": "namespace", "name": "agents", "description": "Helpers.", "tools": [{"type": "function", "name": "ask", "parameters": {"type": "object"}}]}]`
	_, b = x.do("POST", "/v1/responses", `{"input": "Hello", `+tools+`}`)
	if get(t, b, "output", 0, "type") != "custom_tool_call" || get(t, b, "output", 0, "name") != "patch" || get(t, b, "output", 0, "input") != text {
		t.Error(b)
	}
	_, b = x.do("POST", "/v1/responses", `{"input": "Hello", "stream": true, `+tools+`}`)
	said = ""
	for _, e := range events(t, b, false) {
		switch get(t, e, "type") {
		case "response.custom_tool_call_input.delta":
			said += get(t, e, "delta").(string)
		case "response.custom_tool_call_input.done":
			if said != text || get(t, e, "input") != text {
				t.Errorf("%q: %s", said, e)
			}
		}
	}
	if said != text {
		t.Errorf("%q: %s", said, b)
	}
	// Back in the history, with a call of a namespace.
	x.fake.answers["thanks"] = "<tool_call>\n{\"name\": \"agents__ask\", \"arguments\": {}}\n</tool_call>"
	_, b = x.do("POST", "/v1/responses", `{"input": [{"role": "user", "content": "a"}, {"type": "custom_tool_call", "call_id": "1", "name": "patch", "input": "*** x"},
		{"type": "custom_tool_call_output", "call_id": "1", "output": [{"type": "input_text", "text": "done"}]}, {"type": "function_call", "call_id": "2", "namespace": "agents", "name": "ask", "arguments": "{}"},
		{"type": "function_call_output", "call_id": "2", "output": "fine"}, {"role": "user", "content": "thanks"}], `+tools+`}`)
	if get(t, b, "output", 0, "type") != "function_call" || get(t, b, "output", 0, "namespace") != "agents" || get(t, b, "output", 0, "name") != "ask" {
		t.Error(b)
	}
	prompt := x.tok.Decode(x.fake.last().Prompt, true)
	for _, want := range []string{`{"name": "patch", "arguments": {"input": "*** x"}}`, "done", `{"name": "agents__ask", "arguments": {}}`, "fine", "Helpers."} {
		if !strings.Contains(prompt, want) {
			t.Errorf("the prompt has no %s: %s", want, prompt)
		}
	}
}

// TestTexting: however the arguments are cut, the text is the same, and only grows.
func TestTexting(t *testing.T) {
	for args, want := range map[string]string{
		`{"input": "a\nb \"c\" \u00e9 \ud83d\ude00 é😀"}`: "a\nb \"c\" é 😀 é😀",
		` { "input" : "" } `:       "",
		`{"input": "cut`:           "cut",
		`{"input": "cut \`:         "cut ",
		`{"patch": "x"}`:           "x",
		`{"input": 5}`:             `{"input": 5}`,
		"no JSON":                  "no JSON",
		`{"input": "\d+ \ud800 x"`: `\d+ \ud800 x`,
		"{\"input\": \"a\nb\"}":    "a\nb",
	} {
		if got := textOf(args); got != want && args[len(args)-1] != '"' {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
		if strings.Contains(args, `\d`) {
			continue // what is no JSON may be read in other pieces
		}
		var one texting
		got := ""
		for i := range len(args) {
			got += one.add(args[i : i+1])
		}
		if got += one.close(); got != want {
			t.Errorf("%s, byte by byte: %q, want %q", args, got, want)
		}
	}
}

func TestAllowedTools(t *testing.T) {
	x := newFixture(t, nil)
	two := strings.Replace(weather, `"tools": [`, `"tools": [{"type": "function", "function": {"name": "get_time"}}, `, 1)
	allowed := `, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "%s", "tools": [{"type": "function", "function": {"name": "get_weather"}}]}}`
	for mode, forced := range map[string]bool{"auto": false, "required": true} {
		status, b := x.do("POST", "/v1/chat/completions", body(two+fmt.Sprintf(allowed, mode)))
		if prompt := x.tok.Decode(x.fake.last().Prompt, true); status != 200 || strings.Contains(prompt, "get_time") || !strings.Contains(prompt, "get_weather") {
			t.Errorf("%s: %d %s: %s", mode, status, b, prompt)
		}
		if f := x.fake.last().Format; (f != nil) != forced {
			t.Errorf("%s: answers are held to %v", mode, f)
		} else if forced {
			if _, ok, _ := f.Check([]byte("<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_call>")); ok {
				t.Error("a tool that is not allowed can be called")
			}
		}
	}
	x.do("POST", "/v1/responses", `{"input": "a", "tools": [{"type": "function", "name": "f"}, {"type": "function", "name": "g"}], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "g"}, {"type": "web_search"}]}}`)
	if prompt := x.tok.Decode(x.fake.last().Prompt, true); strings.Contains(prompt, `"name": "f"`) || !strings.Contains(prompt, `"name": "g"`) {
		t.Error(prompt)
	}
}

// TestFunctions: functions and function_call, from before there were tools.
func TestFunctions(t *testing.T) {
	x := newFixture(t, nil)
	x.fake.answers["Hello"] = twoCalls
	x.fake.answers["22 degrees"] = "It is warm."
	const functions = `, "functions": [{"name": "get_weather", "parameters": {"type": "object"}}]`
	_, b := x.do("POST", "/v1/chat/completions", body(functions))
	if get(t, b, "choices", 0, "finish_reason") != "function_call" || get(t, b, "choices", 0, "message", "function_call", "name") != "get_weather" ||
		get(t, b, "choices", 0, "message", "function_call", "arguments") != `{"town": "Bern"}` || strings.Contains(b, "tool_calls") {
		t.Error(b)
	}
	_, b = x.do("POST", "/v1/chat/completions", body(functions+`, "stream": true`))
	said := ""
	for _, e := range events(t, b, true) {
		if f, ok := get(t, e, "choices", 0, "delta").(map[string]any)["function_call"].(map[string]any); ok {
			said += f["arguments"].(string)
		}
	}
	if said != `{"town": "Bern"}` || !strings.Contains(b, `"finish_reason":"function_call"`) {
		t.Errorf("%q: %s", said, b)
	}
	_, b = x.do("POST", "/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": null, "function_call": {"name": "get_weather", "arguments": "{\"town\": \"Bern\"}"}},
		{"role": "function", "name": "get_weather", "content": "22 degrees"}]`+functions+`}`)
	if get(t, b, "choices", 0, "message", "content") != "It is warm." || !strings.Contains(x.tok.Decode(x.fake.last().Prompt, true), `{"town": "Bern"}`) {
		t.Error(b)
	}
	x.do("POST", "/v1/chat/completions", body(functions+`, "function_call": {"name": "get_weather"}`))
	if x.fake.last().Format == nil {
		t.Error("function_call forces nothing")
	}
	x.do("POST", "/v1/chat/completions", body(functions+`, "function_call": "none"`))
	if prompt := x.tok.Decode(x.fake.last().Prompt, true); strings.Contains(prompt, "get_weather") {
		t.Errorf("none: %s", prompt)
	}
}

// TestResume: an answer that has begun goes on.
func TestResume(t *testing.T) {
	x := newFixture(t, nil)
	x.fake.answers["Hello"] = " 1, 2, 3]"
	const history = `"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "The list: ["}]`
	_, b := x.do("POST", "/v1/messages", `{"max_tokens": 20, `+history+`}`)
	if get(t, b, "content", 0, "text") != " 1, 2, 3]" {
		t.Error(b)
	}
	prompt := func() string { return x.tok.Decode(x.fake.last().Prompt, true) }
	if p := prompt(); !strings.HasSuffix(p, "The list: [") {
		t.Errorf("the prompt ends with %q", p[max(0, len(p)-80):])
	}
	if r := x.fake.last(); r.Turn <= 0 || r.Turn >= len(r.Prompt) {
		t.Errorf("turn is %d of %d", r.Turn, len(r.Prompt))
	}
	_, b = x.do("POST", "/v1/messages/count_tokens", `{`+history+`}`)
	if n := get(t, b, "input_tokens").(float64); int(n) != len(x.fake.last().Prompt) {
		t.Errorf("%v tokens are counted, %d read", n, len(x.fake.last().Prompt))
	}
	_, b = x.do("POST", "/v1/chat/completions", `{`+history+`, "continue_final_message": true, "add_generation_prompt": false}`)
	if get(t, b, "choices", 0, "message", "content") != " 1, 2, 3]" || !strings.HasSuffix(prompt(), "The list: [") {
		t.Error(b)
	}
	x.do("POST", "/v1/chat/completions", `{`+history+`}`)
	if !strings.HasSuffix(prompt(), "assistant\n") {
		t.Errorf("without it a new answer begins: %q", prompt())
	}
	for _, c := range []struct{ path, body, param string }{
		{"/v1/messages", `{"max_tokens": 5, "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]}]}`, "messages[1]"},
		{"/v1/messages", `{"max_tokens": 5, "output_config": {"format": {"type": "json_schema", "schema": {"unevaluatedProperties": false}}}, "messages": [{"role": "user", "content": "a"}]}`, "output_config.format.schema"},
		{"/v1/messages", `{"max_tokens": 5, "tools": [{"name": "f", "input_schema": {}}], "tool_choice": {"type": "any"}, ` + history + `}`, "tool_choice"},
		{"/v1/messages", `{"max_tokens": 5, "messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}`, "images are not supported"},
		{"/v1/chat/completions", `{` + history + `, "continue_final_message": true, "add_generation_prompt": true}`, "continue_final_message"},
	} {
		if status, b := x.do("POST", c.path, c.body); status != 400 || !strings.Contains(b, c.param) {
			t.Errorf("%s: %d %s", c.body, status, b)
		}
	}
}

// TestOverflow: the words that clients look for.
func TestOverflow(t *testing.T) {
	x := newFixture(t, nil)
	long := strings.Repeat("a b c d ", 2000)
	for path, c := range map[string]struct{ body, want string }{
		"/v1/messages":         {`{"max_tokens": 5, "messages": [{"role": "user", "content": "` + long + `"}]}`, `prompt is too long: \d+ tokens > 2048 maximum`},
		"/v1/chat/completions": {`{"messages": [{"role": "user", "content": "` + long + `"}]}`, `maximum context length is 2048 tokens.* exceeds the available context size`},
		"/v1/responses":        {`{"input": "` + long + `", "stream": true}`, `maximum context length is 2048 tokens`},
		"/v1/completions":      {`{"prompt": "` + long + `"}`, `maximum context length is 2048 tokens`},
	} {
		if status, b := x.do("POST", path, c.body); status != 400 || !matches(c.want, b) {
			t.Errorf("%s: %d %s", path, status, b)
		}
	}
}

// TestResponseReferences: what an answer said can be referred to, by the same key only, unless it was not to be kept.
func TestResponseReferences(t *testing.T) {
	x := newFixture(t, func(o *Options) { o.Keys = []Key{{Key: "a"}, {Key: "b"}} })
	x.fake.answers["Hello"] = "<think>\nThe user greets.\n</think>\n\n" + twoCalls
	x.fake.answers["22 degrees"] = "Warm."
	as := func(key, body string) (int, string) {
		return x.do("POST", "/v1/responses", body, "Authorization", "Bearer "+key)
	}
	tools := `, "tools": [{"type": "function", "name": "get_weather", "parameters": {"type": "object"}}]`
	_, first := as("a", `{"input": "Hello"`+tools+`, "include": ["reasoning.encrypted_content"]}`)
	id := func(i int) string { return get(t, first, "output", i, "id").(string) }
	outputs := ""
	for i := range 2 {
		outputs += fmt.Sprintf(`, {"type": "function_call_output", "call_id": %q, "output": "22 degrees"}`, get(t, first, "output", 1+i, "call_id"))
	}
	references := fmt.Sprintf(`{"input": [{"role": "user", "content": "Hello"}, {"type": "item_reference", "id": %q}, {"id": %q}, {"type": "item_reference", "id": %q}%s]%s}`, id(0), id(1), id(2), outputs, tools)
	status, b := as("a", references)
	if status != 200 || get(t, b, "output", 0, "content", 0, "text") != "Warm." {
		t.Fatalf("%d %s", status, b)
	}
	byItems := slices.Clone(x.fake.last().Prompt)
	if p := x.tok.Decode(byItems, true); !strings.Contains(p, "The user greets.") || !strings.Contains(p, `{"town": "Oslo"}`) {
		t.Errorf("the prompt is %s", p)
	}
	previous := fmt.Sprintf(`{"previous_response_id": %q, "input": [%s]%s}`, get(t, first, "id"), outputs[2:], tools)
	if status, b = as("a", previous); status != 200 || !slices.Equal(x.fake.last().Prompt, byItems) {
		t.Errorf("%d %s: %s", status, b, x.tok.Decode(x.fake.last().Prompt, true))
	}
	for _, body := range []string{references, previous} {
		if status, b := as("b", body); status == 200 {
			t.Errorf("another key: %s", b)
		}
	}
	// A client that sends back only what is encrypted.
	sealed := get(t, first, "output", 0, "encrypted_content").(string)
	as("a", fmt.Sprintf(`{"input": [{"role": "user", "content": "Hello"}, {"type": "reasoning", "id": "x", "summary": [], "encrypted_content": %q}, {"type": "function_call", "call_id": "1", "name": "get_weather", "arguments": "{}"},
		{"type": "function_call_output", "call_id": "1", "output": "22 degrees"}]}`, sealed))
	if p := x.tok.Decode(x.fake.last().Prompt, true); !strings.Contains(p, "The user greets.") {
		t.Errorf("the prompt is %s", p)
	}
	_, b = as("a", `{"input": "Hello", "store": false}`)
	if status, b := as("a", fmt.Sprintf(`{"input": "a", "previous_response_id": %q}`, get(t, b, "id"))); status != 400 {
		t.Errorf("%d %s", status, b)
	}
	_, b = x.do("POST", "/v1/responses/input_tokens", references, "Authorization", "Bearer a")
	if n := get(t, b, "input_tokens").(float64); int(n) != len(byItems) || get(t, b, "object") != "response.input_tokens" {
		t.Errorf("%s, want %d", b, len(byItems))
	}
}

// TestItems: every type of item of the description is taken or refused by name.
func TestItems(t *testing.T) {
	x := newFixture(t, nil)
	for _, item := range []string{
		`{"type": "message", "role": "assistant", "id": "m", "status": "completed", "content": [{"type": "output_text", "text": "a", "annotations": []}, {"type": "refusal", "refusal": "b"}, {"type": "reasoning_text", "text": "c"}]}`,
		`{"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "s"}], "content": [{"type": "reasoning_text", "text": "t"}]}`,
		`{"type": "mcp_call", "id": "1", "server_label": "s", "name": "f", "arguments": "{}", "output": "o"}`,
		`{"type": "mcp_call", "id": "1", "server_label": "s", "name": "f", "arguments": "{}", "error": {"type": "e"}}`,
		`{"type": "local_shell_call", "id": "l", "call_id": "1", "action": {"type": "exec", "command": ["ls"]}, "status": "completed"}`,
		`{"type": "local_shell_call_output", "id": "1", "output": "x"}`,
		`{"type": "shell_call", "call_id": "1", "action": {"commands": ["ls"]}}`,
		`{"type": "shell_call_output", "call_id": "1", "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]}`,
		`{"type": "apply_patch_call", "call_id": "1", "status": "completed", "operation": {"type": "delete_file", "path": "a"}}`,
		`{"type": "apply_patch_call_output", "call_id": "1", "status": "completed", "output": "ok"}`,
		`{"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "f"}]}`,
		`{"type": "function_call", "call_id": "1", "name": "f", "arguments": {"a": 1}}`,
	} {
		status, b := x.do("POST", "/v1/responses", `{"input": [{"role": "user", "content": "a"}, `+item+`, {"role": "user", "content": "z"}]}`)
		if status != 200 {
			t.Errorf("%s: %d %s", item, status, b)
		}
	}
	for name, kind := range itemKinds {
		status, b := x.do("POST", "/v1/responses", fmt.Sprintf(`{"input": [{"type": %q}, {"role": "user", "content": "z"}]}`, name))
		if kind.refuse != "" && (status != 400 || !strings.Contains(b, name)) || kind.take == nil && kind.refuse == "" && status != 200 || status >= 500 {
			t.Errorf("%s: %d %s", name, status, b)
		}
	}
	var description struct{ Items []string }
	raw, err := os.ReadFile("testdata/items.json")
	if err == nil {
		err = json.Unmarshal(raw, &description)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range description.Items {
		if _, ok := itemKinds[name]; !ok {
			t.Errorf("%s is an item of the description", name)
		}
	}
}

func TestStore(t *testing.T) {
	of := func(key, id string) kept { return kept{key: key, items: []inputItem{{ID: id}}} }
	s := newStore(1 << 20)
	s.put(of("0", "old"))
	each := s.used
	s = newStore(4 * each)
	for i := range 10 {
		s.put(of(fmt.Sprint(i), "old"))
	}
	s.put(of("9", "new"))
	s.put(of("large", strings.Repeat("x", 5*int(each))))
	for i := range 10 {
		k := s.get(fmt.Sprint(i))
		if (k != nil) != (i >= 6) || i == 9 && k.items[0].ID != "new" {
			t.Errorf("%d: %v", i, k)
		}
	}
	if s.used != 4*each || s.order.Len() != 4 {
		t.Errorf("%d bytes, %d entries", s.used, s.order.Len())
	}
}
