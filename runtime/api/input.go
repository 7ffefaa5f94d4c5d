package api

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/runtime/chat"
)

// input is what POST /v1/responses is to answer: a text of the user, or items.
type input struct {
	items []inputItem
	given bool
}

// inputItem is an item of an input. Fields are read of the types that are taken only.
type inputItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   content         `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	Server    string          `json:"server_label"`
	Arguments jsonText        `json:"arguments"`
	Input     string          `json:"input"`
	Action    json.RawMessage `json:"action"`
	Operation json.RawMessage `json:"operation"`
	Output    outputText      `json:"output"`
	Error     json.RawMessage `json:"error"`
	Summary   content         `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
	Tools     []responseTool  `json:"tools"`
}

// outputText is what a tool answered: a text, parts of text, or JSON.
type outputText string

func (o *outputText) decode(d *decoder, raw []byte, path string) error {
	var head []struct {
		Type string `json:"type"`
	}
	if raw[0] == '"' || raw[0] == '[' && json.Unmarshal(raw, &head) == nil && !slices.ContainsFunc(head, func(h struct {
		Type string `json:"type"`
	}) bool {
		return h.Type == ""
	}) {
		return (*content)(o).decode(d, raw, path)
	}
	*o = outputText(raw)
	return nil
}

// An itemKind is a row of the table of items: what is done with one.
type itemKind struct {
	take   func(*reading, *inputItem, string) error // nil: it is not taken
	refuse string                                   // why; "": requests go on without it
}

// itemKinds are the types of items of OpenAI's description. Items of tools that only a service has say
// what these did; the message behind them has what came of it.
var itemKinds map[string]itemKind

func init() {
	itemKinds = map[string]itemKind{
		"message":                 {take: (*reading).message},
		"reasoning":               {take: (*reading).reasoning},
		"function_call":           {take: (*reading).function},
		"function_call_output":    {take: (*reading).output},
		"custom_tool_call":        {take: (*reading).custom},
		"custom_tool_call_output": {take: (*reading).output},
		"item_reference":          {take: (*reading).reference},
		"additional_tools":        {take: (*reading).more},
		"mcp_call":                {take: (*reading).mcp},
		"local_shell_call":        {take: (*reading).builtin},
		"local_shell_call_output": {take: (*reading).output},
		"shell_call":              {take: (*reading).builtin},
		"shell_call_output":       {take: (*reading).output},
		"apply_patch_call":        {take: (*reading).builtin},
		"apply_patch_call_output": {take: (*reading).output},
		"file_search_call":        {},
		"web_search_call":         {},
		"code_interpreter_call":   {},
		"mcp_list_tools":          {},
		"mcp_approval_request":    {},
		"mcp_approval_response":   {},
		"tool_search_call":        {},
		"tool_search_output":      {},
		"program":                 {},
		"program_output":          {},
		"computer_call":           {refuse: "this model cannot use a computer's screen"},
		"computer_call_output":    {refuse: "images are not supported by this model: it takes text only"},
		"image_generation_call":   {refuse: "images are not supported by this model: it takes text only"},
		"compaction":              {refuse: "only the server that made it can read it"},
		"compaction_trigger":      {refuse: "this server does not compact conversations"},
	}
}

func (in *input) decode(d *decoder, raw []byte, path string) error {
	in.given = true
	if raw[0] == '"' {
		item := inputItem{Type: "message", Role: "user"}
		json.Unmarshal(raw, (*string)(&item.Content))
		in.items = []inputItem{item}
		return nil
	}
	if raw[0] != '[' {
		return wrongType(path, "a string or an array of items", raw)
	}
	return d.into(raw, &in.items, path)
}

func (i *inputItem) decode(d *decoder, raw []byte, path string) error {
	var head struct {
		Type string `json:"type"`
		Role string `json:"role"`
		ID   string `json:"id"`
	}
	if err := (&decoder{ignored: func(string) {}}).into(raw, &head, path); err != nil {
		return err
	}
	if i.Type = head.Type; i.Type == "" {
		if i.Type = "message"; head.Role == "" && head.ID != "" {
			i.Type = "item_reference"
		}
	}
	kind, ok := itemKinds[i.Type]
	switch {
	case !ok:
		return unsupported(path+".type", "%s.type: there is no item of type %q", path, i.Type)
	case kind.refuse != "":
		return unsupported(path+".type", "%s.type: %q: %s", path, i.Type, kind.refuse)
	case kind.take == nil:
		return nil
	}
	type plain inputItem
	known := i.Type
	if err := d.into(raw, (*plain)(i), path); err != nil {
		return err
	}
	i.Type = known
	return nil
}

// A reading makes messages of items: one of what the model said in a row, reasoning, text and calls.
type reading struct {
	out   []chat.Message
	tools *toolset
	kept  func(id string) (inputItem, bool) // items of earlier answers
}

func (r *reading) take(items []inputItem, at string) error {
	for i := range items {
		if err := r.one(&items[i], fmt.Sprintf("%s[%d]", at, i)); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) one(item *inputItem, at string) error {
	if kind := itemKinds[item.Type]; kind.take != nil {
		return kind.take(r, item, at)
	}
	r.tools.leave(item.Type)
	return nil
}

// turn is the message of the model that is going on, or a new one.
func (r *reading) turn() *chat.Message {
	if n := len(r.out); n > 0 && r.out[n-1].Role == "assistant" {
		return &r.out[n-1]
	}
	r.out = append(r.out, chat.Message{Role: "assistant"})
	return &r.out[len(r.out)-1]
}

func (r *reading) message(item *inputItem, at string) error {
	switch item.Role {
	case "system", "developer", "user":
		r.out = append(r.out, chat.Message{Role: item.Role, Content: string(item.Content)})
	case "assistant":
		r.turn().Content += string(item.Content)
	default:
		return badParam(at+".role", "%s.role: want system, developer, user or assistant, have %q", at, item.Role)
	}
	return nil
}

func (r *reading) reasoning(item *inputItem, at string) error {
	text := string(item.Content)
	if text == "" {
		var ok bool
		if text, ok = unseal(item.Encrypted); !ok && item.Summary == "" && item.Encrypted != "" {
			r.tools.leave("reasoning.encrypted_content")
		}
	}
	if text == "" {
		text = string(item.Summary)
	}
	// Reasoning begins a turn.
	if n := len(r.out); n > 0 && r.out[n-1].Role == "assistant" && (r.out[n-1].Content != "" || len(r.out[n-1].Calls) > 0) {
		r.out = append(r.out, chat.Message{Role: "assistant"})
	}
	r.turn().Reasoning += text
	return nil
}

func (r *reading) call(item *inputItem, at, name, arguments string) error {
	if name == "" || item.CallID == "" {
		return badParam(at, "%s: a %s needs name and call_id", at, item.Type)
	}
	m := r.turn()
	m.Calls = append(m.Calls, chat.Call{ID: item.CallID, Name: name, Arguments: arguments})
	return nil
}

func (r *reading) function(item *inputItem, at string) error {
	name := item.Name
	if name != "" {
		name = qualified(item.Namespace, name)
	}
	return r.call(item, at, name, string(item.Arguments))
}

func (r *reading) custom(item *inputItem, at string) error {
	name := item.Name
	if name != "" {
		name = qualified(item.Namespace, name)
	}
	return r.call(item, at, name, textCall(item.Input))
}

// builtin is a call of a tool that OpenAI's models know, such as local_shell.
func (r *reading) builtin(item *inputItem, at string) error {
	arguments := item.Action
	if len(arguments) == 0 {
		arguments = item.Operation
	}
	if len(arguments) > 0 && arguments[0] != '{' {
		return wrongType(at+".action", "an object", arguments)
	}
	return r.call(item, at, strings.TrimSuffix(item.Type, "_call"), string(arguments))
}

func (r *reading) output(item *inputItem, at string) error {
	if item.CallID == "" && item.Type == "local_shell_call_output" {
		item.CallID = item.ID
	}
	if item.CallID == "" {
		return badParam(at+".call_id", "%s.call_id is missing", at)
	}
	r.out = append(r.out, chat.Message{Role: "tool", ToolCallID: item.CallID, Content: string(item.Output)})
	return nil
}

// mcp is a call of a tool of a server, with its answer.
func (r *reading) mcp(item *inputItem, at string) error {
	item.CallID = item.ID
	if err := r.call(item, at, qualified(item.Server, item.Name), string(item.Arguments)); err != nil {
		return err
	}
	if item.Output == "" && len(item.Error) > 0 {
		item.Output = outputText("Error: " + string(item.Error))
	}
	return r.output(item, at)
}

// more adds tools.
func (r *reading) more(item *inputItem, at string) error {
	return addTools(r.tools, item.Tools, at+".tools")
}

func (r *reading) reference(item *inputItem, at string) error {
	kept, ok := r.kept(item.ID)
	if !ok {
		return &Error{Kind: notFound, Param: at + ".id", Code: "item_not_found",
			Message: fmt.Sprintf("%s.id: there is no item %q: the server keeps those of late, in memory; send the item itself", at, item.ID)}
	}
	return r.one(&kept, at)
}

// sealed is what encrypted reasoning of this server begins with. Nothing is secret about it: it is what the
// client sees as text, for clients that send back nothing else.
const sealed = "zincrun."

func seal(text string) string { return sealed + base64.StdEncoding.EncodeToString([]byte(text)) }

func unseal(s string) (string, bool) {
	code, ok := strings.CutPrefix(s, sealed)
	text, err := base64.StdEncoding.DecodeString(code)
	return strings.ToValidUTF8(string(text), "\ufffd"), ok && err == nil
}

// responseTool is a tool of Responses.
type responseTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
	Format      customFormat    `json:"format"`
	Tools       []responseTool  `json:"tools"` // of a namespace
	raw         json.RawMessage
}

func (t *responseTool) decode(d *decoder, raw []byte, path string) error {
	var head struct {
		Type string `json:"type"`
	}
	t.raw = bytes.Clone(raw)
	if err := (&decoder{ignored: func(string) {}}).into(raw, &head, path); err != nil {
		return err
	}
	if t.Type = head.Type; !slices.Contains([]string{"function", "custom", "namespace"}, t.Type) {
		return nil
	}
	type plain responseTool
	return d.into(raw, (*plain)(t), path)
}

// addTools adds the tools of a request.
func addTools(s *toolset, tools []responseTool, at string) error {
	for i, t := range tools {
		if err := t.add(s, "", "", fmt.Sprintf("%s[%d]", at, i)); err != nil {
			return err
		}
	}
	return nil
}

// add adds a tool of a namespace, whose description goes before its own; "" is none.
func (t *responseTool) add(s *toolset, space, about, at string) error {
	switch {
	case t.Type == "":
		return badParam(at+".type", "%s.type is missing", at)
	case t.Type != "function" && t.Type != "custom" && t.Type != "namespace":
		s.leaveOut(t.Type)
		return nil
	case t.Name == "":
		return badParam(at+".name", "%s.name is missing", at)
	case t.Parameters != nil && t.Parameters[0] != '{':
		return wrongType(at+".parameters", "an object", t.Parameters)
	case t.Type == "namespace" && space != "":
		return badParam(at+".type", "%s.type: a namespace cannot stand in another", at)
	case t.Type == "namespace":
		for i := range t.Tools {
			if err := t.Tools[i].add(s, t.Name, t.Description, fmt.Sprintf("%s.tools[%d]", at, i)); err != nil {
				return err
			}
		}
		return nil
	}
	name, description := qualified(space, t.Name), strings.TrimSpace(about+"\n\n"+t.Description)
	if t.Type == "custom" {
		s.custom(name, description, t.Format)
	} else {
		s.function(name, description, t.Parameters)
	}
	last := &s.tools[len(s.tools)-1]
	if t.Type == "function" {
		last.strict = t.Strict != nil && *t.Strict
	}
	last.space, last.own = space, t.Name
	return nil
}
