package chat

import (
	"strings"
	"testing"
)

// readAs is what a form makes of an answer.
func readAs(form, text string) Message {
	return Collect(Dialect{Calls: form}.Parser(false, testTools), text)
}

// TestNamesOfCalls: what has no name that a tool could have is no call, and stays text.
func TestNamesOfCalls(t *testing.T) {
	for _, c := range []struct {
		name string
		call bool
	}{
		{"look_up", true}, {strings.Repeat("n", 300), true}, {strings.Repeat("n", 301), false}, {" ", false}, {"a<b", false}, {`a"b`, false}, {"a\nb", false}, {"a{b", false},
	} {
		text := "[TOOL_CALLS]" + c.name + "[ARGS]{}"
		m := readAs("mistral", text)
		if c.call && (len(m.Calls) != 1 || m.Calls[0].Name != c.name) || !c.call && (len(m.Calls) != 0 || m.Content != text) {
			t.Errorf("%.20q: %d calls, content %.40q", c.name, len(m.Calls), m.Content)
		}
	}
}

// TestKindOfArgument: where the model says whether a value is text, that counts, whatever the tool's schema says or
// leaves open.
func TestKindOfArgument(t *testing.T) {
	for _, c := range []struct{ tool, key, kind, want string }{
		{"look_up", "n", "true", `{"n": "2"}`}, {"look_up", "n", "false", `{"n": 2}`}, {"look_up", "word", "false", `{"word": 2}`}, {"other", "x", "false", `{"x": 2}`}, {"other", "x", "true", `{"x": "2"}`},
	} {
		text := "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"" + c.tool + "\">\n<｜DSML｜parameter name=\"" + c.key + "\" string=\"" + c.kind + "\">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"
		if m := readAs("dsml", text); len(m.Calls) != 1 || m.Calls[0].Arguments != c.want {
			t.Errorf("%s, string=%s: %+v, want %s", c.key, c.kind, m, c.want)
		}
	}
}

// TestTextAroundCalls: white space next to a call is no part of the content; marks that no call follows are.
func TestTextAroundCalls(t *testing.T) {
	const call = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"
	for _, c := range []struct {
		text, content string
		calls         int
	}{
		{call + "\n\n Bye.", "Bye.", 1}, {"Hi.\n" + call + "\n\nBye.", "Hi.Bye.", 1}, {" Hi.", " Hi.", 0}, {"Hi.\n" + call + "\n" + call + "\n Bye.\n\nAnd.", "Hi.Bye.\n\nAnd.", 2},
		{"<tool_call>\n<tool_call>\nhello", "<tool_call>\n<tool_call>\nhello", 0}, {"<tool_call>hello</tool_call>", "<tool_call>hello</tool_call>", 0},
	} {
		if m := readAs("json-tag", c.text); m.Content != c.content || len(m.Calls) != c.calls {
			t.Errorf("%q: content %q, %d calls", c.text, m.Content, len(m.Calls))
		}
	}
}

// TestDepthOfArguments: arguments of Gemma's form that are nested deeper than anybody needs are no call.
func TestDepthOfArguments(t *testing.T) {
	for _, c := range []struct {
		open, close string
		depth       int
		call        bool
	}{{"{a:", "}", 90, true}, {"{a:", "}", 5000, false}, {"[", "]", 90, true}, {"[", "]", 5000, false}} {
		text := "<|tool_call>call:now{a:" + strings.Repeat(c.open, c.depth) + "1" + strings.Repeat(c.close, c.depth) + "}<tool_call|>"
		if m := readAs("gemma", text); (len(m.Calls) == 1 && m.Content == "") != c.call {
			t.Errorf("%d of %s: %d calls, content %.40q", c.depth, c.open, len(m.Calls), m.Content)
		}
	}
}
