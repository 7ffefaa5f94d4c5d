package talk

import (
	"encoding/json"
	"strings"

	"github.com/zincc-dev/zincc/runtime/grammar"
)

// Tool is what a request says of a tool beside what the model reads.
type Tool struct {
	Name   string
	Schema json.RawMessage // of the arguments
	Strict bool            // the arguments are held to the schema
}

// harmonyLeads are what a harmony answer begins with: at once, and behind its reasoning.
var harmonyLeads = []string{"<|channel|>final<|message|>", "<|start|>assistant<|channel|>final<|message|>"}

// FormatError says what of a format or of a tool's schema cannot be used.
type FormatError struct {
	Tool bool // of a tool
	Err  error
}

func (e *FormatError) Error() string { return e.Err.Error() }
func (e *FormatError) Unwrap() error { return e.Err }

// StrictError says that calls of this model are not written as JSON, so that they cannot be held to a schema.
type StrictError struct{ Dialect string }

func (e *StrictError) Error() string {
	return "the calls of this model, in the form " + e.Dialect + ", cannot be held to a schema"
}

// format returns what an answer is held to; nil: nothing. Without a form of the calls, forced ones begin with an Opening, and
// the tools are not held to their schemas.
func (m *Model) format(o *Options) (*grammar.Grammar, error) {
	strict := false
	for _, t := range o.Tools {
		strict = strict || t.Strict
	}
	if o.Format == nil && !strict && len(o.Call) == 0 {
		return nil, nil
	}
	var s grammar.Source
	if o.Format != nil {
		s = *o.Format
	}
	if m.Template.Dialect().Calls == "harmony" {
		s.Leads = harmonyLeads
	}
	tools := o.Tools
	if len(o.Call) > 0 {
		tools = nil
		for _, t := range o.Tools {
			for _, name := range o.Call {
				if t.Name == name {
					tools = append(tools, t)
				}
			}
		}
	}
	if len(tools) > 0 {
		calls, mark := m.calls(tools, o)
		switch {
		case calls == nil && len(o.Call) > 0:
			return nil, nil // an Opening
		case calls == nil && o.Format == nil:
			return nil, nil
		case calls == nil:
			return nil, &StrictError{m.Template.Dialect().Calls}
		case len(o.Call) > 0:
			s.OnlyCalls = true
		case o.Format == nil && mark == "":
			return nil, nil
		case o.Format == nil:
			s.Kind, s.Text = grammar.Free, mark
		}
		s.Calls = calls
	} else if len(o.Call) > 0 {
		return nil, nil
	}
	g, err := grammar.Make(s)
	if err != nil {
		return nil, &FormatError{Tool: o.Format == nil, Err: err}
	}
	return g, nil
}

// calls returns how calls of tools are written; nil where the template does not show it.
func (m *Model) calls(tools []Tool, o *Options) (c *grammar.Calls, mark string) {
	c = &grammar.Calls{}
	for i, t := range tools {
		f, ok := m.Template.CallForm(t.Name)
		if !ok {
			return nil, ""
		}
		mark = f.Mark
		if i > 0 && (f.Open != c.Open || f.Close != c.Close || f.Between != c.Between) {
			return nil, ""
		}
		c.Open, c.Close, c.Between, c.Parallel = f.Open, f.Close, f.Between, f.Parallel && !o.Single
		tool := grammar.Tool{Name: t.Name, Before: f.Prefix, After: f.After, Loose: !t.Strict}
		if t.Strict || len(o.Call) > 0 {
			tool.Schema = t.Schema
		}
		c.Tools = append(c.Tools, tool)
	}
	return c, mark
}

// Strict says whether calls can be held to schemas: whether the template shows how it writes them as JSON.
func (m *Model) Strict() bool {
	if m.Template == nil {
		return false
	}
	f, ok := m.Template.CallForm("f")
	return ok && (f.Mark != "" || strings.TrimSpace(f.Open+f.Prefix) != "")
}
