package chat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/plans"
)

// Dialect is how a model writes what is more than text, and what its template
// takes. The compiler finds it by rendering and stores it in the plan.
type Dialect plans.Dialect

// form is one way to write calls. A section of calls begins in the text with
// one of opens; a call also without a section, with one of starts.
type form struct {
	name   string
	opens  []string
	closes []string
	starts []string
	// between is what may stand between calls of a section, beside white space.
	between string
	// read reads the call that in begins with; final says that no more follows.
	read func(in string, final bool, e *env) reading
	tags *params // arguments stand between marks
}

// env is what readers of calls know beside the text.
type env struct {
	tools tools
	text  quoter // of the argument that is being read
}

// reading is what is known of a call from the text so far. As the text grows,
// name and id stay once they are known and args only grows.
type reading struct {
	state    readState
	n        int // bytes of the text that are the call, when it is done
	id, name string
	named    bool
	args     string // JSON text
}

type readState uint8

const (
	more readState = iota // the call goes on
	done
	bad // not a call
)

// Forms with each argument between marks.
var (
	functionTag = params{open: "<function=", named: ">", param: "<parameter=", key: ">", value: "</parameter>", end: "</function>", lined: true}
	argTags     = params{named: "<arg_key>", line: true, param: "<arg_key>", key: "</arg_key>", val: "<arg_value>", value: "</arg_value>", end: "</tool_call>", keepEnd: true}
	minimaxTags = params{open: `<invoke name="`, named: `">`, param: `<parameter name="`, key: `">`, value: "</parameter>", end: "</invoke>"}
	dsmlTags    = params{open: `<｜DSML｜invoke name="`, named: `">`, param: `<｜DSML｜parameter name="`, key: `">`, kind: `" string="`, value: "</｜DSML｜parameter>", end: "</｜DSML｜invoke>"}
)

// forms are tried in this order: the first one that reads back what a template
// writes is its form.
var forms = []form{
	{name: "json-tag", opens: []string{"<tool_call>"}, closes: []string{"</tool_call>"}, read: jsonCall(false)},
	{name: "function-tag", opens: []string{"<tool_call>"}, closes: []string{"</tool_call>"}, starts: []string{"<function="},
		read: functionTag.read, tags: &functionTag},
	{name: "mistral", starts: []string{"[TOOL_CALLS]"},
		read: named{open: "[TOOL_CALLS]", sep: "[ARGS]", id: "[CALL_ID]"}.read},
	{name: "mistral-list", opens: []string{"[TOOL_CALLS]"}, between: "[],", read: jsonCall(false)},
	{name: "gemma", starts: []string{"<|tool_call>"}, read: gemmaCall},
	{name: "arg-tags", opens: []string{"<tool_call>"}, closes: []string{"</tool_call>"},
		read: argTags.read, tags: &argTags},
	{name: "deepseek", opens: []string{"<｜tool▁calls▁begin｜>"}, closes: []string{"<｜tool▁calls▁end｜>"}, starts: []string{"<｜tool▁call▁begin｜>"},
		read: named{open: "<｜tool▁call▁begin｜>", sep: "<｜tool▁sep｜>", end: "<｜tool▁call▁end｜>", fence: true}.read},
	{name: "kimi", opens: []string{"<|tool_calls_section_begin|>"}, closes: []string{"<|tool_calls_section_end|>"}, starts: []string{"<|tool_call_begin|>"},
		read: named{open: "<|tool_call_begin|>", sep: "<|tool_call_argument_begin|>", end: "<|tool_call_end|>", numbered: true}.read},
	{name: "minimax", opens: []string{"<minimax:tool_call>"}, closes: []string{"</minimax:tool_call>"},
		read: minimaxTags.read, tags: &minimaxTags},
	{name: "dsml", opens: []string{"<｜DSML｜function_calls>", "<｜DSML｜tool_calls>"}, closes: []string{"</｜DSML｜function_calls>", "</｜DSML｜tool_calls>"},
		read: dsmlTags.read, tags: &dsmlTags},
	{name: "function-json", starts: []string{"<function="},
		read: named{open: "<function=", sep: ">", end: "</function>"}.read},
	{name: "list-tag", opens: []string{"<tool_calls>", "<TOOLCALL>", "<|START_ACTION|>", "<|function_call|>"},
		closes: []string{"</tool_calls>", "</TOOLCALL>", "<|END_ACTION|>"}, between: "[],", read: jsonCall(false)},
	{name: pythonicName, opens: []string{pythonicOpen}, closes: []string{pythonicClose}, between: "[],", read: pythonCall},
	{name: harmonyName, starts: []string{"<|channel|>", "<|start|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>", "<|constrain|>"}},
	{name: bareName, between: ";", starts: []string{"<|python_tag|>"}, read: jsonCall(true)},
}

const (
	// bareName is the form whose calls are the whole message, without a mark.
	bareName = "json-bare"
	// harmonyName is the form in which everything is a message with a header.
	harmonyName = "harmony"
	// contentName is the dialect of a template without calls.
	contentName = "content"
)

// Forms returns the names of all forms of calls.
func Forms() []string {
	var names []string
	for _, f := range forms {
		names = append(names, f.name)
	}
	return names
}

// Dialects returns the names that Dialect.As takes.
func Dialects() []string { return append(Forms(), contentName) }

// As returns d with another form of calls.
func (d Dialect) As(name string) Dialect {
	d.Name, d.Calls = name, name
	switch name {
	case contentName:
		d.Calls = ""
	case harmonyName:
		d.ReasoningOpen, d.ReasoningClose = "<|channel|>analysis<|message|>", "<|end|>"
	}
	if d.Calls != "" && d.lacks("tool") {
		d.Roles = append(slices.Clone(d.Roles), "tool")
	}
	return d
}

func formOf(name string) *form {
	i := slices.IndexFunc(forms, func(f form) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &forms[i]
}

// Markers returns the texts that a Parser looks for. Where one is a control
// token, whoever turns tokens into text must show it.
func (d Dialect) Markers() []string {
	var out []string
	for _, m := range []string{d.ReasoningOpen, d.ReasoningClose} {
		if m != "" {
			out = append(out, m)
		}
	}
	if f := formOf(d.Calls); f != nil {
		out = append(append(append(out, f.opens...), f.closes...), f.starts...)
		out = append(out, extraMarkers[f.name]...)
	}
	return out
}

// extraMarkers stand within a call.
var extraMarkers = map[string][]string{
	"mistral":  {"[ARGS]", "[CALL_ID]"},
	"gemma":    {"<tool_call|>", gemmaQuote, "<|channel>"},
	"deepseek": {"<｜tool▁sep｜>", "<｜tool▁call▁end｜>"},
	"kimi":     {"<|tool_call_argument_begin|>", "<|tool_call_end|>"},
	"arg-tags": {"<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"},
	"dsml":     {"｜DSML｜"},
}

// Thinks says whether the model goes on inside its reasoning after a prompt.
func (d Dialect) Thinks(prompt string) bool {
	return d.ReasoningOpen != "" && strings.HasSuffix(strings.TrimSpace(prompt), d.ReasoningOpen)
}

// tools has what a request says of its tools: the schemas of their parameters.
type tools map[string]map[string]any

// readTools reads the API's tool objects. It passes over anything else: the API has
// checked them.
func readTools(raw []json.RawMessage) tools {
	t := tools{}
	for _, r := range raw {
		var tool struct {
			Name     string
			Function struct {
				Name       string
				Parameters map[string]any
			}
		}
		if json.Unmarshal(r, &tool) == nil {
			name := tool.Function.Name
			if name == "" {
				name = tool.Name
			}
			t[name] = tool.Function.Parameters
		}
	}
	return t
}

// isText says whether a parameter's value is taken as the text that it is: unless
// its schema has other types only.
func (t tools) isText(tool, param string) bool {
	properties, _ := t[tool]["properties"].(map[string]any)
	return textual(t[tool], properties[param], 0)
}

// IsText says whether the value of a parameter is taken as the text that it is, by the schema of all of them.
func IsText(schema json.RawMessage, param string) bool {
	var parameters map[string]any
	if json.Unmarshal(schema, &parameters) != nil {
		return true
	}
	return tools{"": parameters}.isText("", param)
}

// textual is isText of a schema within root.
func textual(root map[string]any, s any, depth int) bool {
	m, ok := s.(map[string]any)
	if !ok || depth > 8 {
		return true
	}
	switch kind := m["type"].(type) {
	case string:
		return kind == "string"
	case []any:
		return slices.Contains(kind, any("string"))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if options, ok := m[key].([]any); ok && len(options) > 0 {
			return slices.ContainsFunc(options, func(o any) bool { return textual(root, o, depth+1) })
		}
	}
	if ref, ok := m["$ref"].(string); ok && strings.HasPrefix(ref, "#/") {
		var at any = root
		for _, part := range strings.Split(ref[2:], "/") {
			in, _ := at.(map[string]any)
			at = in[part]
		}
		return textual(root, at, depth+1)
	}
	return true
}
