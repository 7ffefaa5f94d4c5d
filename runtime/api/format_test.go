package api

import "testing"

// TestFormats: what answers are held to, by all the names that programs have for it.
func TestFormats(t *testing.T) {
	x := newFixture(t, nil)
	const schema = `{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}`
	const held, not = `{"a": 1}`, `{"b": 1}`
	ask := `"messages": [{"role": "user", "content": "Hello"}]`
	for _, c := range []struct{ path, body, yes, no string }{
		{"/v1/chat/completions", `{` + ask + `, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "strict": true, "schema": ` + schema + `}}}`, held, not},
		{"/v1/chat/completions", `{` + ask + `, "response_format": {"type": "json_object"}}`, not, `[1]`},
		{"/v1/chat/completions", `{` + ask + `, "response_format": {"type": "json_object", "schema": ` + schema + `}}`, held, not},
		{"/v1/chat/completions", `{` + ask + `, "json_schema": ` + schema + `}`, held, not},
		{"/v1/chat/completions", `{` + ask + `, "grammar": "root ::= \"ab\"+"}`, "abab", "aba"},
		{"/v1/chat/completions", `{` + ask + `, "guided_json": ` + schema + `}`, held, not},
		{"/v1/chat/completions", `{` + ask + `, "guided_regex": "a|b+"}`, "bb", "ab"},
		{"/v1/chat/completions", `{` + ask + `, "guided_choice": ["yes", "no"]}`, "no", "maybe"},
		{"/v1/chat/completions", `{` + ask + `, "structured_outputs": {"regex": "a|b+"}}`, "bb", "ab"},
		{"/v1/chat/completions", `{` + ask + `, "structured_outputs": {"json_object": true}}`, not, `1`},
		{"/v1/completions", `{"prompt": "Hello", "structured_outputs": {"json": ` + schema + `}}`, held, not},
		{"/completion", `{"prompt": "Hello", "json_schema": ` + schema + `}`, held, not},
		{"/completion", `{"prompt": "Hello", "grammar": "root ::= [0-9]+"}`, "12", "a"},
		{"/v1/responses", `{"input": "Hello", "text": {"format": {"type": "json_schema", "name": "x", "strict": true, "schema": ` + schema + `}}}`, held, not},
		{"/v1/messages", `{"max_tokens": 9, ` + ask + `, "output_config": {"format": {"type": "json_schema", "schema": ` + schema + `}}}`, held, not},
		{"/api/chat", `{"model": "gopher", "stream": false, ` + ask + `, "format": ` + schema + `}`, held, not},
		{"/api/generate", `{"model": "gopher", "stream": false, "prompt": "Hello", "format": "json"}`, not, `1`},
		{"/api/generate", `{"model": "gopher", "stream": false, "raw": true, "prompt": "Hello", "format": ` + schema + `}`, held, not},
	} {
		if status, b := x.do("POST", c.path, c.body); status != 200 {
			t.Errorf("%s %s: %d %s", c.path, c.body, status, b)
			continue
		}
		f := x.fake.last().Format
		if f == nil {
			t.Errorf("%s %s: nothing is held", c.path, c.body)
			continue
		}
		if _, ok, _ := f.Check([]byte(c.yes)); !ok {
			t.Errorf("%s %s: %s is refused", c.path, c.body, c.yes)
		}
		if _, ok, _ := f.Check([]byte(c.no)); ok {
			t.Errorf("%s %s: %s is taken", c.path, c.body, c.no)
		}
	}
}

// TestStrictTools: a tool's arguments are held to its schema if it is strict; the answer may be text all the same.
func TestStrictTools(t *testing.T) {
	x := newFixture(t, nil)
	const schema = `{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}`
	call := func(name, args string) string {
		return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + args + "}\n</tool_call>"
	}
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"messages": [{"role": "user", "content": "Hello"}], "tools": [{"type": "function", "function": {"name": "f", "strict": true, "parameters": ` + schema + `}}, {"type": "function", "function": {"name": "g", "parameters": {"unevaluatedItems": false}}}]}`,
		"/v1/responses":        `{"input": "Hello", "tools": [{"type": "function", "name": "f", "strict": true, "parameters": ` + schema + `}, {"type": "function", "name": "g", "strict": false, "parameters": {"unevaluatedItems": false}}]}`,
		"/v1/messages":         `{"max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}], "tools": [{"name": "f", "strict": true, "input_schema": ` + schema + `}, {"name": "g", "input_schema": {"unevaluatedItems": false}}]}`,
	} {
		if status, b := x.do("POST", path, body); status != 200 {
			t.Fatalf("%s: %d %s", path, status, b)
		}
		f := x.fake.last().Format
		if f == nil {
			t.Fatalf("%s: nothing is held", path)
		}
		for text, want := range map[string]bool{
			"": true, "Hello there. 1 < 2": true, call("f", `{"a": 1}`): true, "Let me see.\n" + call("f", `{"a": 1}`): true,
			call("f", `{"b": 1}`): false, call("g", `{"b": [1, 1]}`): true, call("h", `{}`): false, call("f", `{"a": 1}`) + "\n" + call("g", `{}`): true,
		} {
			if _, ok, err := f.Check([]byte(text)); ok != want || err != nil {
				t.Errorf("%s: %q: %v %v", path, text, ok, err)
			}
		}
	}
	status, b := x.do("POST", "/v1/chat/completions", `{"messages": [{"role": "user", "content": "Hello"}], "tools": [{"type": "function", "function": {"name": "f", "strict": true, "parameters": {"unevaluatedItems": false}}}]}`)
	if status != 400 || get(t, b, "error", "param") != "tools" || get(t, b, "error", "code") != "unsupported_schema" {
		t.Errorf("a strict schema that is refused: %d %s", status, b)
	}
}
