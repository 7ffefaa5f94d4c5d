package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// schema is one that was found.
type schema struct {
	name string
	text []byte
}

// find returns the schemas in files and folders, in a fixed order.
func find(paths []string) ([]schema, error) {
	var out []schema
	for _, path := range paths {
		err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if ext := filepath.Ext(file); ext != ".json" && ext != ".schema" && file != path {
				return nil
			}
			list, err := schemasOf(file, file == path)
			out = append(out, list...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no schema in %s", strings.Join(paths, ", "))
	}
	return out, nil
}

// schemasOf returns the schemas of a file. named says that the file itself was asked for.
func schemasOf(file string, named bool) ([]schema, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if filepath.Ext(file) == ".yml" || filepath.Ext(file) == ".yaml" {
		var v any
		if err := yaml.Unmarshal(data, &v); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if data, err = json.Marshal(v); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	data = []byte(strings.TrimPrefix(string(data), "\ufeff"))
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil {
		return suiteSchemas(file, list), nil
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(data, &top); err != nil {
		if named {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return nil, nil
	}
	if top["openapi"] != nil || top["swagger"] != nil {
		return described(file, data)
	}
	if tools := top["tools"]; tools != nil {
		return toolSchemas(file, tools), nil
	}
	if named || top["$schema"] != nil || top["properties"] != nil || top["definitions"] != nil || top["$defs"] != nil ||
		top["anyOf"] != nil || top["oneOf"] != nil || top["$ref"] != nil {
		return []schema{{file, data}}, nil
	}
	return nil, nil
}

// suiteSchemas are those of a file of the JSON-Schema-Test-Suite.
func suiteSchemas(file string, list []json.RawMessage) (out []schema) {
	for _, raw := range list {
		var group struct {
			Description string
			Schema      json.RawMessage
			Tests       []json.RawMessage
		}
		if json.Unmarshal(raw, &group) == nil && group.Schema != nil && group.Tests != nil {
			out = append(out, schema{file + ": " + group.Description, group.Schema})
		}
	}
	return out
}

// described are the component schemas of an OpenAPI description, each with all others to refer to.
func described(file string, data []byte) ([]schema, error) {
	var top struct {
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal(data, &top); err != nil {
		return nil, err
	}
	var names []string
	for name := range top.Components.Schemas {
		names = append(names, name)
	}
	slices.Sort(names)
	// What a schema refers to comes with it; the whole file would be too large.
	var out []schema
	for _, name := range names {
		need := map[string]json.RawMessage{}
		var add func(raw []byte)
		add = func(raw []byte) {
			for _, part := range strings.Split(string(raw), `"#/components/schemas/`)[1:] {
				to, _, _ := strings.Cut(part, `"`)
				if s, ok := top.Components.Schemas[to]; ok && need[to] == nil {
					need[to] = s
					add(s)
				}
			}
		}
		add(top.Components.Schemas[name])
		need[name] = top.Components.Schemas[name]
		text, err := json.Marshal(map[string]any{"$ref": "#/components/schemas/" + name,
			"components": map[string]any{"schemas": need}})
		if err != nil {
			return nil, err
		}
		out = append(out, schema{file + ": " + name, text})
	}
	return out, nil
}

// toolSchemas are the parameters of the tools of a request.
func toolSchemas(file string, raw json.RawMessage) (out []schema) {
	var tools []struct {
		Name        string
		Parameters  json.RawMessage
		InputSchema json.RawMessage `json:"input_schema"`
		Function    struct {
			Name       string
			Parameters json.RawMessage
		}
		Tools []json.RawMessage // of a namespace
	}
	if json.Unmarshal(raw, &tools) != nil {
		return nil
	}
	for _, t := range tools {
		for _, text := range []json.RawMessage{t.Parameters, t.InputSchema, t.Function.Parameters} {
			if len(text) > 0 && text[0] == '{' {
				out = append(out, schema{file + ": " + t.Name + t.Function.Name, text})
			}
		}
		if len(t.Tools) > 0 {
			nested, _ := json.Marshal(t.Tools)
			out = append(out, toolSchemas(file, nested)...)
		}
	}
	return out
}
