package chat

import (
	"reflect"
	"testing"
)

// TestCallForm names how the templates of testdata write calls.
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
		"mistral": {Prefix: "[TOOL_CALLS]get_time[CALL_ID]" + CallID + "[ARGS]", Parallel: true, Mark: "[TOOL_CALLS]"},
		"mistral-list": {Open: "[TOOL_CALLS][", Prefix: "{\"name\": \"get_time\", \"arguments\": ", After: ", \"id\": \"" + CallID + "\"}", Between: ", ",
			Close: "]", Parallel: true, Mark: "[TOOL_CALLS]"},
		"function-tag": {Open: "\n\n", Prefix: "<tool_call>\n<function=get_time>\n", After: "</function>\n</tool_call>", Between: "\n\n", Parallel: true, Mark: "<tool_call>",
			Args: &ArgForm{Open: "<parameter=", Text: ">\n", Other: ">\n", Close: "\n</parameter>\n", End: "</parameter>"}},
		"minimax": {Open: "\n<minimax:tool_call>\n", Close: "</minimax:tool_call>", Prefix: "<invoke name=\"get_time\">\n", After: "</invoke>\n", Parallel: true,
			Mark: "<minimax:tool_call>", Args: &ArgForm{Open: "<parameter name=\"", Text: "\">", Other: "\">", Close: "</parameter>\n", End: "</parameter>"}},
		"arg-tags": {Open: "\n", Prefix: "<tool_call>get_time\n", After: "</tool_call>", Between: "\n", Parallel: true, Mark: "<tool_call>",
			Args: &ArgForm{Open: "<arg_key>", Text: "</arg_key>\n<arg_value>", Other: "</arg_key>\n<arg_value>", Close: "</arg_value>\n", End: "</arg_value>"}},
		"dsml": {Open: "\n\n<｜DSML｜function_calls>\n", Close: "</｜DSML｜function_calls>", Prefix: "<｜DSML｜invoke name=\"get_time\">\n", After: "</｜DSML｜invoke>\n",
			Parallel: true, Mark: "<｜DSML｜function_calls>", Args: &ArgForm{Open: "<｜DSML｜parameter name=\"", Text: "\" string=\"true\">",
				Other: "\" string=\"false\">", Close: "</｜DSML｜parameter>\n", End: "</｜DSML｜parameter>"}},
		"deepseek": {Open: "<｜tool▁calls▁begin｜>", Prefix: "<｜tool▁call▁begin｜>get_time<｜tool▁sep｜>", After: "<｜tool▁call▁end｜>",
			Close: "<｜tool▁calls▁end｜>", Parallel: true, Mark: "<｜tool▁calls▁begin｜>"},
		"gemma": {Prefix: "<|tool_call>call:get_time", After: "<tool_call|>", Notation: "gemma", Parallel: true, Mark: "<|tool_call>"},
		"pythonic": {Open: "<|tool_call_start|>[", Close: "]<|tool_call_end|>", Prefix: "get_time(", After: ")", Between: ", ", Notation: "pythonic", Parallel: true,
			Mark: "<|tool_call_start|>"},
	}
	for name, tmpl := range all {
		want, has := forms[name]
		if f, ok := tmpl.CallForm("get_time"); ok != has || ok && !reflect.DeepEqual(f, want) {
			t.Errorf("%s: %+v %+v, %v", name, f, f.Args, ok)
		}
	}
	if _, ok := all["json-tag"].CallForm("a\"b"); ok {
		t.Error("a name that breaks the form")
	}
}
