package api

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zincc-dev/zincc/runtime/grammar"
	"github.com/zincc-dev/zincc/runtime/talk"
)

// format is what an answer is to be a text of, and the parameter that says it.
type format struct {
	param  string
	source grammar.Source
}

// responseFormat is response_format of chat completions, and what Responses and Messages have instead.
type responseFormat struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Strict      *bool           `json:"strict"`
	Schema      json.RawMessage `json:"schema"` // where it has no object of its own
	JSONSchema  struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Strict      *bool           `json:"strict"`
		Schema      json.RawMessage `json:"schema"`
	} `json:"json_schema"`
	Grammar string `json:"grammar"`
}

// format returns what is asked for; nil: text.
func (f *responseFormat) format(param string) (*format, error) {
	schema, at := f.Schema, param+".schema"
	if f.JSONSchema.Schema != nil {
		schema, at = f.JSONSchema.Schema, param+".json_schema.schema"
	}
	switch f.Type {
	case "", "text":
		return nil, nil
	case "json_object":
		if schema == nil {
			return &format{param, grammar.AnyObject()}, nil
		}
	case "json_schema":
		if schema == nil {
			return nil, badParam(param, "%s: the schema is missing", param)
		}
	case "grammar":
		return &format{param + ".grammar", grammar.Source{Kind: grammar.GBNFText, Text: f.Grammar}}, nil
	default:
		return nil, unsupported(param, "%s: want text, json_object, json_schema or grammar, have %q", param, f.Type)
	}
	return &format{at, grammar.Source{Kind: grammar.JSONSchema, Text: string(schema)}}, nil
}

// structured are the fields in which vLLM has what an answer is to be.
type structured struct {
	JSON    json.RawMessage `json:"json"`
	Object  bool            `json:"json_object"`
	Regex   string          `json:"regex"`
	Choice  []string        `json:"choice"`
	Grammar string          `json:"grammar"`
}

// guided are the same fields by their older names, and those of llama-server.
type guided struct {
	Grammar       string          `json:"grammar"`
	JSONSchema    json.RawMessage `json:"json_schema"`
	GuidedJSON    json.RawMessage `json:"guided_json"`
	GuidedRegex   string          `json:"guided_regex"`
	GuidedChoice  []string        `json:"guided_choice"`
	GuidedGrammar string          `json:"guided_grammar"`
	Structured    structured      `json:"structured_outputs"`
}

// formats returns all that is asked for.
func (g *guided) formats() (list []format) {
	text := func(param string, kind grammar.Kind, s string) {
		if s != "" {
			list = append(list, format{param, grammar.Source{Kind: kind, Text: s}})
		}
	}
	choice := func(param string, texts []string) {
		if texts != nil {
			list = append(list, format{param, grammar.Source{Kind: grammar.Choices, Texts: texts}})
		}
	}
	text("grammar", grammar.GBNFText, g.Grammar)
	text("json_schema", grammar.JSONSchema, schemaText(g.JSONSchema))
	text("guided_json", grammar.JSONSchema, schemaText(g.GuidedJSON))
	text("guided_regex", grammar.Pattern, g.GuidedRegex)
	choice("guided_choice", g.GuidedChoice)
	text("guided_grammar", grammar.GBNFText, g.GuidedGrammar)
	s := &g.Structured
	text("structured_outputs.json", grammar.JSONSchema, schemaText(s.JSON))
	text("structured_outputs.regex", grammar.Pattern, s.Regex)
	choice("structured_outputs.choice", s.Choice)
	text("structured_outputs.grammar", grammar.GBNFText, s.Grammar)
	if s.Object {
		list = append(list, format{"structured_outputs.json_object", grammar.AnyObject()})
	}
	return list
}

// schemaText is a schema as it is, or in a string.
func schemaText(raw json.RawMessage) string {
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}

// format returns the one format of a request; nil: text. more are those that its API has beside.
func (p *sampling) format(more ...*format) (*format, error) {
	list := p.formats()
	for _, f := range more {
		if f != nil {
			list = append(list, *f)
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	if len(list) > 1 {
		return nil, badParam(list[1].param, "%s: an answer has one format, and %s says another", list[1].param, list[0].param)
	}
	return &list[0], nil
}

// held returns what the continuation of a text is held to.
func (p *sampling) held(more ...*format) (*grammar.Grammar, error) {
	f, err := p.format(more...)
	if f == nil || err != nil {
		return nil, err
	}
	g, err := grammar.Make(f.source)
	return g, f.refusal(err)
}

// within takes errors of formats and tools for what they are, and leaves others.
func (f *format) within(err error) error {
	var of *talk.FormatError
	var strict *talk.StrictError
	if errors.As(err, &of) || errors.As(err, &strict) {
		return f.refusal(err)
	}
	return err
}

// refusal says what of a format, or with talk's error of a tool, cannot be used.
func (f *format) refusal(err error) error {
	var strict *talk.StrictError
	var of *talk.FormatError
	param := "tools"
	switch {
	case err == nil:
		return nil
	case errors.As(err, &strict) && f == nil:
		return unsupported("tools", "tools: strict: %s", err)
	case errors.As(err, &strict):
		return unsupported("tools", "%s: not beside tools: %s", f.param, err)
	case errors.As(err, &of) && of.Tool:
	case f != nil:
		param = f.param
	}
	e := &Error{Kind: invalid, Param: param, Code: "invalid_schema", Message: fmt.Sprintf("%s: %s", param, err)}
	if errors.Is(err, errors.ErrUnsupported) {
		e.Code = "unsupported_schema"
	}
	return e
}
