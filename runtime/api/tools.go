package api

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A tool is one that the model may call. To the model all are functions.
type tool struct {
	name   string          // that the model knows it by
	raw    json.RawMessage // in the form of chat completions
	custom bool            // takes a text, not an object
	schema json.RawMessage // of the arguments
	strict bool            // the arguments are held to it
	space  string          // the namespace of a tool of Responses
	own    string          // its name there
}

// A toolset is the tools of a request, whatever API it came by.
type toolset struct {
	tools []tool
	left  []string // what was left out, since the model cannot have it
}

// textParam is the parameter of the function that a custom tool becomes.
const textParam = "input"

// function adds a function.
func (s *toolset) function(name, description string, parameters json.RawMessage) {
	s.tools = append(s.tools, tool{name: name, own: name, raw: flatTool(name, description, parameters), schema: parameters})
}

// customFormat is what the text of a custom tool must look like.
type customFormat struct {
	Type       string `json:"type"`
	Syntax     string `json:"syntax"`
	Definition string `json:"definition"`
}

// custom adds a tool that takes a text, as a function with a string. The model is told of the grammar of the
// text. The text is held to a regular expression; a grammar of Lark is left out by name.
func (s *toolset) custom(name, description string, f customFormat) {
	text := `{"type": "string"}`
	if f.Definition != "" {
		description = strings.TrimSpace(fmt.Sprintf("%s\n\nThe text in %q follows this grammar (%s):\n%s", description, textParam, f.Syntax, f.Definition))
		if f.Syntax == "regex" {
			text = `{"type": "string", "pattern": ` + quote("^(?:"+f.Definition+")$") + "}"
		} else {
			s.leave("grammar of " + name)
		}
	}
	s.function(name, description, json.RawMessage(objectOf(textParam, `"`+textParam+`": `+text)))
	last := &s.tools[len(s.tools)-1]
	last.custom, last.strict = true, f.Syntax == "regex"
}

// leave says that something of the request was left out.
func (s *toolset) leave(what string) {
	if !slices.Contains(s.left, what) {
		s.left = append(s.left, what)
	}
}

// find returns the tool that the model knows by that name.
func (s *toolset) find(name string) (tool, bool) {
	i := slices.IndexFunc(s.tools, func(t tool) bool { return t.name == name })
	if i < 0 {
		return tool{name: name, own: name}, false
	}
	return s.tools[i], true
}

// raws are tools as templates get them.
func raws(tools []tool) []json.RawMessage {
	var all []json.RawMessage
	for _, t := range tools {
		all = append(all, t.raw)
	}
	return all
}

// check looks at the number of tools.
func (s *toolset) check() error {
	if len(s.tools) > maxTools {
		return badParam("tools", "tools: %d, at most %d", len(s.tools), maxTools)
	}
	return nil
}

// qualified is the name of a tool of a namespace, as the model knows it.
func qualified(space, name string) string {
	switch {
	case space == "":
		return name
	case strings.HasSuffix(space, "__"):
		return space + name
	}
	return space + "__" + name
}

// services are the kinds of tools that a service runs itself, or that only its own models know. A local model
// cannot have them: requests go on without them. Names may end in a date.
var services = []string{
	"web_search", "web_search_preview", "web_fetch", "file_search", "code_interpreter", "code_execution", "image_generation", "mcp", "mcp_toolset",
	"computer", "computer_use", "computer_use_preview", "local_shell", "shell", "apply_patch", "tool_search", "tool_search_tool_regex", "tool_search_tool_bm25",
	"programmatic_tool_calling", "advisor",
}

var dated = regexp.MustCompile(`[-_](\d{8}|\d{4}[-_]\d{2}[-_]\d{2})$`)

// service returns the kind of a tool that only a service has: its type without its date.
func service(kind string) (string, bool) {
	kind = dated.ReplaceAllString(kind, "")
	return kind, slices.Contains(services, kind)
}

// leaveOut takes a tool of a service out of a request. Services get new ones.
func (s *toolset) leaveOut(kind string) {
	base, _ := service(kind)
	if !plainKind.MatchString(base) {
		base = "other"
	}
	s.leave(base)
}

var plainKind = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// flatTool makes of a tool of another API one in the form of chat completions, with
// the order of its keys kept.
func flatTool(name, description string, parameters json.RawMessage) json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"type": "function", "function": {"name": ` + quote(name))
	if description != "" {
		b.WriteString(`, "description": ` + quote(description))
	}
	if len(parameters) > 0 {
		b.WriteString(`, "parameters": ` + string(parameters))
	}
	b.WriteString("}}")
	return json.RawMessage(b.String())
}

// quote returns s as JSON, with nothing escaped that needs no escape.
func quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}

// textCall is the arguments of a call of a custom tool.
func textCall(text string) string { return `{"` + textParam + `": ` + quote(text) + "}" }

// A texting makes the text of a call of a custom tool of the call's arguments, as they come.
type texting struct {
	args string // until the text begins, then what of it is not decoded
	open bool   // it has begun
	over bool   // it has ended
}

var (
	textOpening = regexp.MustCompile(`^\s*\{\s*"` + textParam + `"\s*:\s*"`)
	surrogate   = regexp.MustCompile(`^\\u[dD][89abAB]`)
)

// add takes more of the arguments, and returns what is certain of the text.
func (t *texting) add(args string) string {
	if t.over {
		return ""
	}
	t.args += args
	if !t.open {
		begin := textOpening.FindString(t.args)
		if begin == "" {
			return ""
		}
		t.open, t.args = true, t.args[len(begin):]
	}
	end := 0 // of what is whole
	for end < len(t.args) && t.args[end] != '"' {
		n := 1
		if t.args[end] == '\\' {
			n = 2
			switch rest := t.args[end:]; {
			case surrogate.MatchString(rest):
				n = 12 // half a code point, with the other half
			case strings.HasPrefix(rest, `\u`):
				n = 6
			}
		} else if !utf8.FullRuneInString(t.args[end:]) {
			break
		}
		if end+n > len(t.args) {
			break
		}
		end += n
	}
	said := t.args[:end]
	t.args = t.args[end:]
	t.over = strings.HasPrefix(t.args, `"`)
	var text string
	if json.Unmarshal([]byte(`"`+strings.NewReplacer("\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(said)+`"`), &text) != nil {
		return said // an escape that is none
	}
	return text
}

// close returns the text of arguments that do not begin as expected: what their only string says, or all.
func (t *texting) close() string {
	if t.open {
		return ""
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(t.args), &object) == nil && len(object) == 1 {
		for _, raw := range object {
			var text string
			if json.Unmarshal(raw, &text) == nil {
				return text
			}
		}
	}
	return t.args
}

// textOf returns the text of a whole call.
func textOf(arguments string) string {
	var t texting
	text := t.add(arguments)
	return text + t.close()
}
