package api

import (
	"encoding/json"
	"slices"
)

// A toolChoice says which tools the model may or must call.
type toolChoice struct {
	mode    string   // "" and auto, none, required, or named
	name    string   // of the tool that it must call
	allowed []string // names of those that it may call; nil: of all
}

// namedTool is a tool as a choice names it.
type namedTool struct {
	Type      string    `json:"type"`
	Name      string    `json:"name"` // of Responses
	Namespace string    `json:"namespace"`
	Function  toolNamed `json:"function"`
	Custom    toolNamed `json:"custom"`
}

type toolNamed struct {
	Name string `json:"name"`
}

type allowedTools struct {
	Mode  string      `json:"mode"`
	Tools []namedTool `json:"tools"`
}

// named returns the name of the tool that the model knows, "" for one of a service.
func (n namedTool) named() string {
	for _, name := range []string{n.Name, n.Function.Name, n.Custom.Name} {
		if name != "" && (n.Type == "function" || n.Type == "custom") {
			return qualified(n.Namespace, name)
		}
	}
	return ""
}

func (t *toolChoice) decode(d *decoder, raw []byte, path string) error {
	if raw[0] == '"' {
		var mode string
		json.Unmarshal(raw, &mode)
		if !slices.Contains([]string{"auto", "none", "required"}, mode) {
			return wrongType(path, "auto, none, required or a function", raw)
		}
		t.mode = mode
		return nil
	}
	var one struct {
		namedTool
		allowedTools
		Allowed allowedTools `json:"allowed_tools"` // of chat completions
	}
	if err := d.into(raw, &one, path); err != nil {
		return err
	}
	if one.Type == "allowed_tools" {
		if one.Allowed.Tools != nil {
			one.allowedTools = one.Allowed
		}
		return t.allow(one.allowedTools, path)
	}
	name := one.named()
	if name == "" {
		return unsupported(path, "%s: want auto, none, required or a function with its name", path)
	}
	*t = toolChoice{mode: "named", name: name}
	return nil
}

func (t *toolChoice) allow(a allowedTools, path string) error {
	if a.Mode != "auto" && a.Mode != "required" {
		return badParam(path+".mode", "%s.mode: want auto or required, have %q", path, a.Mode)
	}
	*t = toolChoice{mode: a.Mode, allowed: []string{}}
	for _, one := range a.Tools {
		if name := one.named(); name != "" {
			t.allowed = append(t.allowed, name)
		}
	}
	return nil
}

// functionCall is the choice of the legacy functions.
type functionCall struct{ toolChoice }

func (f *functionCall) decode(d *decoder, raw []byte, path string) error {
	if raw[0] == '"' {
		return f.toolChoice.decode(d, raw, path)
	}
	var one toolNamed
	if err := d.into(raw, &one, path); err != nil {
		return err
	}
	if one.Name == "" {
		return badParam(path+".name", "%s.name is missing", path)
	}
	f.mode, f.name = "named", one.Name
	return nil
}

// visible are the tools that the model is told of.
func (t toolChoice) visible(s toolset) []tool {
	if t.mode == "none" {
		return nil
	}
	if t.allowed == nil {
		return s.tools
	}
	var all []tool
	for _, one := range s.tools {
		if slices.Contains(t.allowed, one.name) {
			all = append(all, one)
		}
	}
	return all
}

// forced returns the names of the tools of which the answer must call one; none if it need not.
func (t toolChoice) forced(s toolset) ([]string, error) {
	for _, name := range t.allowed {
		if _, ok := s.find(name); !ok {
			return nil, badParam("tool_choice", "tool_choice: there is no tool %q", name)
		}
	}
	if t.mode != "required" && t.mode != "named" {
		return nil, nil
	}
	var names []string
	for _, one := range t.visible(s) {
		if t.mode == "required" || one.name == t.name {
			names = append(names, one.name)
		}
	}
	switch {
	case len(s.tools) == 0:
		return nil, badParam("tool_choice", "tool_choice: there are no tools")
	case len(names) == 0:
		return nil, badParam("tool_choice", "tool_choice: there is no tool %q", t.name)
	}
	return names, nil
}
