package api

import (
	"fmt"
	"strings"
	"testing"
)

// TestKServe holds the server to what KServe's LLMInferenceService wants of one, as its tests and configurations at
// aaac4e2 say: config-llm-template.yaml and kserve-vllmserver.yaml (probes, names), test_llm_inference_service.py
// (completions, chats, models by a publisher's name), and run-tests.sh of agentic-tool-calling (tools in two dialects).
func TestKServe(t *testing.T) {
	const published = "publishers/team/models/qwen"
	x := newFixture(t, func(o *Options) { o.Served[0].Names = []string{"qwen", published} })
	if status, _ := x.do("GET", "/health", ""); status != 503 {
		t.Errorf("a probe before the model is loaded: %d", status)
	}
	_, b := x.do("GET", "/v1/models", "")
	var ids []any
	for i := range get(t, b, "data").([]any) {
		ids = append(ids, get(t, b, "data", i, "id"))
	}
	if fmt.Sprint(ids) != "[qwen "+published+"]" {
		t.Errorf("models %v", ids)
	}
	for _, name := range []string{"qwen", published} {
		for path, what := range map[string]string{"/v1/completions": `"prompt": "What is KServe?"`, "/v1/chat/completions": `"messages": [{"role": "user", "content": "What is KServe?"}]`} {
			status, b := x.do("POST", path, fmt.Sprintf(`{"model": %q, %s, "max_tokens": 9}`, name, what), "X-Gateway-Model-Name", name)
			if status != 200 || get(t, b, "model") != name || len(get(t, b, "choices").([]any)) != 1 {
				t.Errorf("%s of %s: %d %s", path, name, status, b)
			}
		}
	}
	for _, path := range []string{"/health", "/v1/models", "/metrics"} {
		if status, b := x.do("GET", path, ""); status != 200 {
			t.Errorf("a probe of %s: %d %s", path, status, b)
		}
	}
}

// TestKServeTools: a call, its stream, an answer behind its result, several tools; as chats and as messages.
func TestKServeTools(t *testing.T) {
	const (
		schema   = `{"type": "object", "properties": {"location": {"type": "string", "description": "a city"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}, "required": ["location"]}`
		call     = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"location\": \"San Francisco\"}}\n</tool_call>"
		both     = call + "\n<tool_call>\n{\"name\": \"get_time\", \"arguments\": {\"location\": \"Tokyo\"}}\n</tool_call>"
		asks     = `{"role": "user", "content": "Which weather has San Francisco?"}`
		asksBoth = `{"role": "user", "content": "Which weather has San Francisco, which time Tokyo?"}`
		system   = "Use get_weather and get_time."
	)
	x := newFixture(t, nil)
	x.fake.answers["Which weather has San Francisco?"] = call
	x.fake.answers["Which weather has San Francisco, which time Tokyo?"] = both
	x.fake.answers["foggy"] = "It is foggy."
	tool := func(name string) string {
		return fmt.Sprintf(`{"type": "function", "function": {"name": %q, "description": "of a place", "parameters": %s}}`, name, schema)
	}
	chat := func(messages, tools, more string) (string, string) {
		status, b := x.do("POST", "/v1/chat/completions", fmt.Sprintf(`{"model": "gopher", "temperature": 0, "messages": [{"role": "system", "content": %q}, %s], "tools": [%s]%s}`, system, messages, tools, more))
		return fmt.Sprint(status), b
	}
	message := func(messages, tools, more string) (string, string) {
		status, b := x.do("POST", "/v1/messages", fmt.Sprintf(`{"model": "gopher", "temperature": 0, "max_tokens": 1024, "system": %q, "messages": [%s], "tools": [%s]%s}`, system, messages, tools, more),
			"x-api-key", "dummy", "anthropic-version", "2023-06-01")
		return fmt.Sprint(status), b
	}
	const result = `{\"temperature\": 62, \"condition\": \"foggy\"}`
	for _, e := range []struct {
		name string
		ask  func(messages, tools, more string) (string, string)
		tool func(name string) string
		auto string
		used string // what a client reads of a call
		turn string // what follows the question when the tool has answered
		said string
	}{
		{"chat", chat, tool, `, "tool_choice": "auto", "parallel_tool_calls": true`, `"function":{"name":%q`,
			`, {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"location\": \"San Francisco\"}"}}]}, {"role": "tool", "tool_call_id": "call_1", "content": "` + result + `"}`,
			`"finish_reason":"stop"`},
		{"messages", message, func(name string) string {
			return fmt.Sprintf(`{"name": %q, "description": "of a place", "input_schema": %s}`, name, schema)
		}, `, "tool_choice": {"type": "auto"}`, `"name":%q`,
			`, {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"location": "San Francisco"}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "` + result + `"}]}`,
			`"stop_reason":"end_turn"`},
	} {
		one, two := e.tool("get_weather"), e.tool("get_weather")+", "+e.tool("get_time")
		for what, want := range map[[3]string][]string{
			{asks, one, e.auto}:                      {"get_weather"},
			{asks, one, e.auto + `, "stream": true`}: {"get_weather"},
			{asksBoth, two, e.auto}:                  {"get_weather", "get_time"},
		} {
			status, b := e.ask(what[0], what[1], what[2])
			for _, name := range want {
				if status != "200" || !strings.Contains(b, fmt.Sprintf(e.used, name)) {
					t.Errorf("%s: no call of %s: %s %s", e.name, name, status, b)
				}
			}
		}
		if status, b := e.ask(asks+e.turn, one, ""); status != "200" || !strings.Contains(b, "It is foggy.") || !strings.Contains(b, e.said) || strings.Contains(b, "tool_use") {
			t.Errorf("%s: %s %s", e.name, status, b)
		}
	}
}
