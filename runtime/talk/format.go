package talk

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/zincc-dev/zincc/runtime/chat"
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

// StrictError says that calls of this model cannot be held to a schema.
type StrictError struct{ Dialect string }

func (e *StrictError) Error() string {
	return "the calls of this model, in the form " + e.Dialect + ", cannot be held to a schema"
}

// notations are those of package chat's forms of calls.
var notations = map[string]grammar.Notation{"gemma": grammar.Gemma, "pythonic": grammar.Python}

// harmonyCalls are what a harmony answer that is a call begins with, before and behind the name: at once, and behind
// its reasoning.
var harmonyCalls = [][2]string{
	{"<|channel|>commentary to=functions.", " <|constrain|>json<|message|>"},
	{"<|start|>assistant<|channel|>commentary to=functions.", " <|constrain|>json<|message|>"},
	{" to=functions.", "<|channel|>commentary <|constrain|>json<|message|>"},
	{"<|start|>assistant to=functions.", "<|channel|>commentary <|constrain|>json<|message|>"},
}

// anyText and noBraces are patterns of texts beside which calls may be the answer.
const anyText, noBraces = `[^]*`, `(?:\s*[^\s{][^]*)?`

// format returns what an answer is held to; nil: nothing. Without a form of the calls, forced ones begin with an
// Opening, and the tools are not held to their schemas.
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
		strict = slices.ContainsFunc(tools, func(t Tool) bool { return t.Strict })
		calls, mark := m.calls(tools, o)
		switch {
		case calls == nil && (strict || o.Format != nil):
			return nil, &StrictError{m.Template.Dialect().Calls}
		case calls == nil:
			return nil, nil // an Opening
		case len(o.Call) > 0:
			s.OnlyCalls = true
		case o.Format != nil:
		case len(s.Leads) > 0:
			s.Kind, s.Text = grammar.Pattern, anyText
		case mark == "":
			s.Kind, s.Text = grammar.Pattern, noBraces
		default:
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
	if m.Template.Dialect().Calls == "harmony" {
		for _, t := range tools {
			for _, lead := range harmonyCalls {
				c.Tools = append(c.Tools, tool(t, o, lead[0]+t.Name+lead[1], ""))
			}
		}
		return c, ""
	}
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
		g := tool(t, o, f.Prefix, f.After)
		g.Notation = notations[f.Notation]
		if a := f.Args; a != nil {
			g.Tags = &grammar.Tags{Open: a.Open, Text: a.Text, Other: a.Other, Close: a.Close, End: a.End, JSON: notText(t.Schema)}
		}
		c.Tools = append(c.Tools, g)
	}
	return c, mark
}

// notText are the arguments by a schema that are not read as text.
func notText(schema json.RawMessage) (names []string) {
	var s struct{ Properties map[string]json.RawMessage }
	json.Unmarshal(schema, &s)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !chat.IsText(schema, name) {
			names = append(names, name)
		}
	}
	return names
}

// tool returns how calls of a tool are written.
func tool(t Tool, o *Options, before, after string) grammar.Tool {
	g := grammar.Tool{Name: t.Name, Before: before, After: after, Loose: !t.Strict}
	if t.Strict || len(o.Call) > 0 {
		g.Schema = t.Schema
	}
	return g
}
