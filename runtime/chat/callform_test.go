package chat

import "testing"

// TestCallForm names how the templates of testdata write calls whose arguments are JSON.
func TestCallForm(t *testing.T) {
	all := own(t)
	forms := map[string]CallForm{
		"json-tag": {Prefix: "<tool_call>\n{\"name\": \"get_time\", \"arguments\": ", After: "}\n</tool_call>", Between: "\n", Parallel: true, Mark: "<tool_call>"},
		"list-tag": {Open: "\n<tool_calls>[", Prefix: "{\"name\": \"get_time\", \"arguments\": ", After: "}", Between: ", ", Close: "]</tool_calls>",
			Parallel: true, Mark: "<tool_calls>"},
		"function-json": {Prefix: "<function=get_time>", After: "</function>", Parallel: true, Mark: "<function="},
		"json-bare":     {Prefix: "{\"name\": \"get_time\", \"parameters\": ", After: "}"},
		"kimi": {Prefix: "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_time:0<|tool_call_argument_begin|>",
			After: "<|tool_call_end|><|tool_calls_section_end|>", Mark: "<|tool_calls_section_begin|>"},
		"deepseek": {Open: "<｜tool▁calls▁begin｜>", Prefix: "<｜tool▁call▁begin｜>get_time<｜tool▁sep｜>", After: "<｜tool▁call▁end｜>",
			Close: "<｜tool▁calls▁end｜>", Parallel: true, Mark: "<｜tool▁calls▁begin｜>"},
	}
	for name, tmpl := range all {
		want, has := forms[name]
		if f, ok := tmpl.CallForm("get_time"); ok != has || ok && f != want {
			t.Errorf("%s: %+v, %v", name, f, ok)
		}
	}
	if _, ok := all["json-tag"].CallForm("a\"b"); ok {
		t.Error("a name that breaks the form")
	}
}
